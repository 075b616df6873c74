"""Recompute Table 10 of the PHSafe paper: the constant behind its budgets, and the coverage of its margins."""

from __future__ import annotations

import math
from itertools import groupby
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import special

from algorithms.noise import DiscreteGaussian
from algorithms.noise.budgets import exact_budget_for
from algorithms.noise.margins import coverage, exact_margin_of_error
from algorithms.phsafe.budget import noise_law, read_config
from algorithms.phsafe.explore import Z_PRODUCTION, rho_for
from algorithms.phsafe.ledger import Ledger
from audit.results.plots import BROWN, GRAY, GREEN, PURPLE
from experiments.drawing import head, name_rows, own_keys, page
from experiments.experiment import DATA, Check, Checks, Numbers, down, published

DELTA = 1e-10
CONSTANTS = {"printed": 1.64, "production": Z_PRODUCTION, "exact": NormalDist().inv_cdf(0.95)}
MATCHES = {"printed": 9, "production": 46, "exact": 32}
ROUNDED = 5e-7  # half a unit of the last printed decimal
EPSILONS = DATA["phsafe_table10"]["epsilons"]  # by formulas whose sources are in `Ledger`


def printed_table() -> list[dict[str, Any]]:
    """Return the rows of the paper's table 10, with budgets as printed text."""
    names = ("table", "level", "target", "unbounded", "bounded")
    return [dict(zip(names, row, strict=True)) for row in published("PHSafe table 10")]


def margin_of_error(rho: float, stability: int, z: float) -> int:
    """Return the paper's margin of error, the integer part of ``z * sigma`` (after corollary 2)."""
    return math.floor(z * stability / math.sqrt(2 * rho) * (1 + 1e-12))


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Recompute every row; nothing is random, and quick makes no difference."""
    us = read_config("us")
    rows = []
    for row in printed_table():
        stability = us.stability(row["table"])
        law = noise_law(us, row["table"], row["level"])
        assert isinstance(law, DiscreteGaussian)  # the preset promises zCDP
        rho, target = float(row["unbounded"]), row["target"]
        margins = {name: margin_of_error(rho, stability, z) for name, z in CONSTANTS.items()}
        rows.append(
            {
                **row,
                "stability": stability,
                "sigma": law.scale,
                "preset": us.budget(row["table"], row["level"]),
                "formula": {name: rho_for(target, stability, z=z) for name, z in CONSTANTS.items()},
                "needed": exact_budget_for(target, stability),
                "margins": margins,
                "coverage": {name: coverage(law, margin) for name, margin in [*margins.items(), ("target", target)]},
                "exact_margin": exact_margin_of_error(law),
            }
        )
    ledgers: dict[str, dict[str, Any]] = {}
    for preset in ("us", "pr"):
        account = Ledger(read_config(preset), delta=DELTA)
        ledgers[preset] = {"unbounded": account.unbounded.budget, "bounded": account.bounded.budget}
        ledgers[preset]["epsilons"] = {way: losses for way, *losses in account.epsilons.rows()}
    return {"rows": rows, "ledgers": ledgers}


def check(numbers: Numbers) -> Checks:
    rows, us, pr = numbers["rows"], numbers["ledgers"]["us"], numbers["ledgers"]["pr"]
    preset = [row["preset"] == float(row["unbounded"]) for row in rows]
    doubled = [f"{2 * float(row['unbounded']):.6f}" == f"{float(row['bounded']):.6f}" for row in rows]
    yield _count("rows whose printed budget is that of the preset", preset, 46)
    yield _count("rows whose bounded budget is printed as twice the other", doubled, 46)
    for name, expected in MATCHES.items():
        words = f"rows that z = {CONSTANTS[name]:.6g} gives to the printed digits"
        yield _count(words, _same(rows, name), expected)
    yield _digits("US: unbounded rho", us["unbounded"], "1.257281")
    yield _digits("US: bounded rho", us["bounded"], "2.514562")
    yield _digits("PR: unbounded rho", pr["unbounded"], "1.226649")
    yield _digits("PR: bounded rho", pr["bounded"], "2.453298")
    yield _digits("US: unbounded rho with 1.64", sum(row["formula"]["printed"] for row in rows), "1.24965")
    for preset_name, way, *targets in EPSILONS:
        epsilons = numbers["ledgers"][preset_name]["epsilons"][way]
        for kind, epsilon, target in zip(("unbounded", "bounded"), epsilons, targets, strict=True):
            yield _digits(f"{preset_name.upper()}: epsilon at {DELTA:g}, {way}, {kind}", epsilon, target)
    equal = [row["exact_margin"] == row["target"] for row in rows]
    coarse = [row["exact_margin"] == 496 for row in rows if row["unbounded"] == "0.000022"]
    yield _count("rows whose exact margin is the target", equal, 37)
    yield _count("rows of rho 0.000022, which was rounded up, whose exact margin is 496", coarse, 9)
    yield _count("rows whose target covers 90%", [row["coverage"]["target"] >= 0.9 for row in rows], 46)
    yield _count("rows where 1.64 sigma covers less", [row["coverage"]["printed"] < 0.9 for row in rows], 46)
    yield _digits(
        "share of a normal law within 1.64 sigma", float(1 - 2 * special.ndtr(-CONSTANTS["printed"])), "0.8990"
    )


def _same(rows: list[dict[str, Any]], name: str) -> list[bool]:
    return [f"{row['formula'][name]:.6f}" == f"{float(row['unbounded']):.6f}" for row in rows]


def _count(what: str, outcomes: list[bool], expected: int) -> Check:
    return Check(f"{what}: {sum(outcomes)} of {len(outcomes)}, expected {expected}", sum(outcomes) == expected)


def _digits(what: str, value: float, expected: str) -> Check:
    """Expect a value that rounds to these digits."""
    written = f"{value:.{len(expected.partition('.')[2])}f}"
    return Check(f"{what}: {written}, expected {expected}", written == expected)


def facts(numbers: Numbers) -> dict[str, Any]:
    budgets, us = numbers["rows"], numbers["ledgers"]["us"]
    covered, follow = [row["coverage"]["printed"] for row in budgets], sum(_same(budgets, "production"))
    names = {"production": "not printed", "exact": "the exact quantile", "printed": "printed, corollary 2"}
    rows = [
        (f"budgets that z = {CONSTANTS[name]:.6g} gives ({words})", f"{sum(_same(budgets, name))} of {len(budgets)}")
        for name, words in names.items()
    ]
    for place, (total, who) in enumerate((("unbounded", "added or removed"), ("bounded", "replaced"))):
        epsilon = us["epsilons"]["tight"][place]
        rows.append((f"all budgets, one person {who}", f"rho {us[total]:.6f}, epsilon {epsilon:.3f} at delta 1e-10"))
    least = down(min(row["coverage"]["target"] for row in budgets), 4)
    saved = 1 - sum(row["needed"] for row in budgets) / us["unbounded"]
    rows.append(("least coverage of the targets 500, 200, 68 and 20", least))
    rows.append(("budget that whole noise would save at the same targets", f"{saved:.1%}"))
    return {"covered": covered, "follow": follow, "rows": rows}


def draw(numbers: Numbers) -> Figure:
    figure, (ax,) = page(4.4)

    def kind(row: dict[str, Any]) -> tuple[int, int]:
        return -row["stability"], -row["target"]

    groups = [list(rows) for _, rows in groupby(sorted(numbers["rows"], key=kind), key=kind)]
    places = np.arange(len(groups))
    small: dict[str, Any] = {"markersize": 5, "linestyle": "none"}
    for name, words, marker, color in (
        ("printed", "1.64 (printed)", "x", PURPLE),
        ("exact", "1.64485 (exact)", "^", BROWN),
        ("production", "1.645", "o", GREEN),
    ):
        off = [abs(rows[0]["formula"][name] - float(rows[0]["unbounded"])) / ROUNDED for rows in groups]
        label = f"z = {words}: {sum(_same(numbers['rows'], name))} of {len(numbers['rows'])} rows"
        ax.plot(off, places, marker=marker, color=color, label=label, **small)
    ax.set(xscale="log", xlim=(0.03, 1e5))
    ax.axvspan(ax.get_xlim()[0], 1, color=GRAY, alpha=0.2, linewidth=0, zorder=0, label="same digits as printed")
    ax.set_xlabel("distance from the printed $\\rho$, in halves of its last digit (log scale)")
    head(ax, "budgets of Table 10", own_keys(ax), ncols=1)
    firsts = ((rows[0], f"{len(rows)} row{'s' * (len(rows) > 1)}") for rows in groups)
    labels = [f"$\\Delta$ = {row['stability']}, target {row['target']} ({number})" for row, number in firsts]
    name_rows(ax, labels)
    return figure
