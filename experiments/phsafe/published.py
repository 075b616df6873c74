"""PHSafe's published tables, PH1 to PH8 after post-processing, audited by runs beside the noisy counts behind them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.figure import Figure

from algorithms.phsafe.budget import read_config
from algorithms.phsafe.measurement import PHSafe, tabulated
from algorithms.phsafe.neighbors.worst import worst_pair
from algorithms.phsafe.postprocessing.published import PublishedTables
from audit import ZCDP, GaussianDP, measure_loss_from_outputs
from audit.results.plots import BLUE, EXACT, PALE
from experiments.audits import run_all
from experiments.drawing import bar, column, foot, keys, name_rows, page, promise
from experiments.experiment import Check, Checks, Numbers, between, down, few_misses

LEVEL, RHO = "state_*", 0.5  # of every query that is measured: at production's budgets few runs show nothing
TABLES: dict[str, tuple[str, ...]] = {
    "PH1": ("PH1_num", "PH1_denom"),
    "PH2": ("PH2",),
    "PH3": ("PH3",),
    "PH4": ("PH4",),
    "PH5": ("PH4", "PH5_denom"),
    "PH6": ("PH6",),
    "PH7": ("PH7",),
    "PH8": ("PH7", "PH8_denom"),
}
RUNS, CONFIDENCE = 16_000, 0.95


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Publish every table 16,000 times (quick: one table, 2,000 times)."""
    names, runs = (("PH2",), 2_000) if quick else (tuple(TABLES), RUNS)
    streams = np.random.SeedSequence(seed).spawn(len(names))
    tasks = [delayed(_audited)(name, runs, own) for name, own in zip(names, streams, strict=True)]
    audits = run_all(tasks, jobs, "published tables")
    rows = [{"table": name, **row} for name, row in zip(names, audits, strict=True)]
    return {"rows": rows, "runs": runs, "rho": RHO}


def _audited(name: str, runs: int, stream: np.random.SeedSequence) -> dict[str, Any]:
    us, only = read_config("us"), [(query, LEVEL) for query in TABLES[name]]
    raised = {table: {**levels, LEVEL: RHO} for table, levels in us.privacy_budget.items()}
    config = replace(us, privacy_budget=raised)
    pair = tabulated(worst_pair(only[0][0], LEVEL, "DER"), config, only)
    phsafe = PHSafe(config, only)
    own = dict(zip(("counts", "published"), stream.spawn(2), strict=True))
    row: dict[str, Any] = {"pair": pair.label, "spent": float(np.sqrt(2 * phsafe.spent(pair)))}
    mechanisms: dict[str, Any] = {"counts": phsafe, "published": PublishedTables(phsafe)}
    for what, mechanism in mechanisms.items():
        draws, choice, other = own[what].spawn(3)
        rng = np.random.default_rng(draws)
        x, y = (mechanism(data, runs // 2, rng) for data in (pair.x, pair.y))
        options: dict[str, Any] = {"relation": "add_remove", "confidence": CONFIDENCE, "label": pair.label}
        bound = measure_loss_from_outputs(x, y, GaussianDP(math.sqrt(2 * RHO)), rng=choice, **options)
        promise = measure_loss_from_outputs(x, y, ZCDP(phsafe.claim.budget), rng=other, **options)
        row[what] = {"mu": bound.measured.budget, "rho": promise.measured.budget, "verdict": promise.verdict}
    return row


def check(numbers: Numbers) -> Checks:
    rows = numbers["rows"]
    if numbers["runs"] == RUNS:
        yield between("lower bound, published / counts, least of a table", min(_shares(numbers)), 0.5, 1.2)
    for what in ("counts", "published"):
        misses = sum(row[what]["mu"] > row["spent"] for row in rows)
        yield few_misses(what, misses, len(rows), CONFIDENCE)
        violated = sum(row[what]["verdict"] == "violated" for row in rows)
        yield Check(f"{what}: {violated} of {len(rows)} audits report a violation of rho", violated == 0)


def _shares(numbers: Numbers) -> list[float]:
    return [row["published"]["mu"] / max(row["counts"]["mu"], 1e-9) for row in numbers["rows"]]


def facts(numbers: Numbers) -> dict[str, Any]:
    shares, rows = _shares(numbers), []
    for row, share in zip(numbers["rows"], shares, strict=True):
        bounds = (down(row[what]["mu"]) for what in ("counts", "published"))
        rows.append((row["table"], f"{row['spent']:.3f}", *bounds, f"{share:.2f}"))
    return {"shares": shares, "rows": rows}


def draw(numbers: Numbers) -> Figure:
    figure, (ax,) = page(4.2)
    for at, row in enumerate(numbers["rows"]):
        for shift, what, color, points in ((-0.18, "counts", PALE, 40), (0.18, "published", BLUE, 84)):
            bar(ax, at + shift, row[what]["mu"], height=0.34, color=color)
            column(ax, at, down(row[what]["mu"]), points)
        ax.plot(row["spent"], at, **EXACT)
    promise(ax)
    for words, points in (("counts", 40), ("published", 84)):
        column(ax, -0.75, words, points, style="italic")
    name_rows(ax, [row["table"] for row in numbers["rows"]])
    ax.set_xlim(0, 1.05)
    ax.set_xlabel("loss of the pair of each table, $\\mu$ (a query promises $\\rho$ = 1/2, that is $\\mu$ = 1)")
    handles: list[Any] = keys(
        pale="lower bound, noisy counts",
        bound="lower bound, published table",
        exact="exact loss of the counts",
        promise="promise",
    )
    foot(figure, handles)
    return figure
