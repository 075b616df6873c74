"""The loss caused by exact totals, for neighbors that keep the totals, and for neighbors that change them.

A promise with invariants only holds for neighbors that keep them, which may differ in more than one person: Bailie,
Gong and Meng, arXiv 2501.08449; Cho and Awan, arXiv 2410.17468.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from algorithms.topdown.estimation.constraints import Invariant
from audit import NeighborPair, PureDP, measure_loss
from audit.results import plain_number
from audit.results.plots import BLUE, GRAY, GREEN, PALE
from experiments.audits import all_or_none, bounds, kept, largest_loss, median, none_above, repeat
from experiments.drawing import INFINITE, bar_key, head, keys, line_key, losses, name_rows, page, promise
from experiments.experiment import CONFIDENCE, DATA, Check, Checks, Numbers, between, down, violations
from experiments.topdown.bugs import SCHEMA, TREE, neighbors, total_of_first

EPSILON, SHARES = 1.0, ("1/10", "9/20", "9/20")
TOTALS = {0: "no exact totals", 1: "exact totals of states", 2: "exact totals of districts"}  # by level of the areas
LEAVES = {1: 3, 2: 1}  # districts in the first area of a level
HOME, NEXT, FAR, KIND = 0, 1, TREE.n_leaves - 1, SCHEMA.cells - 1
CASES: dict[str, tuple[str, float, int]] = DATA["invariants"]["cases"]
SIZE, FEW, AUDITS = 100_000, 200, 10
LIMIT = 2.8  # end of the axis, in units of the promise


@dataclass(frozen=True, eq=False)
class Published:
    """The tables of TopDown on any two databases, including pairs that its promise does not cover."""

    topdown: TopDown

    def __call__(self, data: NDArray[np.int64], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return self.topdown(data, size, rng)

    def support_masses(self, pair: NeighborPair) -> tuple[float, float]:
        """Return the probability of totals impossible on the other database: 1 if exact totals differ, else 0."""
        x, y = (self.topdown.tables(data).sum(axis=-1) for data in (pair.x, pair.y))
        apart = any((x != y)[self.topdown.tree.level(one.level)].any() for one in self.topdown.invariants)
        return float(apart), float(apart)


def release(level: int) -> Published:
    budget = Budget(PureDP(EPSILON, "replace_one"), SHARES, [{"detailed": 1}] * len(SHARES))
    invariants = [Invariant("total", level)] if level else []
    return Published(TopDown(SCHEMA, TREE, budget, solver="batched", invariants=invariants))


def two_databases(case: str) -> NeighborPair:
    """Return a pair: databases with a person in the first district, and with the person as in the case."""
    x = neighbors("moved").x
    if case == "added":
        return NeighborPair.add_people(x, (HOME, 0))
    if case != "exchange":
        return NeighborPair.move_people(x, (HOME, 0), {"kind": (HOME, KIND), "district": (NEXT, 0)}.get(case, (FAR, 0)))
    y = x.copy()
    for place, change in (((HOME, 0), -1), ((FAR, 0), 1), ((FAR, KIND), -1), ((HOME, KIND), 1)):
        y[place] += change
    return NeighborPair(x, y, "replace_one", 2)


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit five pairs under three sets of totals 10 times (quick: once, with a tenth of the runs)."""
    (stream,) = np.random.SeedSequence(seed).spawn(1)
    setups = [(case, level) for case in CASES for level in TOTALS]
    size, times = (SIZE // 10, 1) if quick else (SIZE, AUDITS)
    tasks = [(*one, size) for one in setups]
    audits = repeat(_audit, tasks, stream.spawn(len(setups)), times, jobs=jobs, words="exact totals")
    return {"rows": [{**_about(*one), "audits": own} for one, own in zip(setups, audits, strict=True)]}


def _about(case: str, level: int) -> dict[str, Any]:
    """Return the exact loss: of the measurements, or infinite if exact totals differ."""
    tables, pair = release(level), two_databases(case)
    covered = not max(tables.support_masses(pair))
    loss = largest_loss(tables.topdown.stage("measurements"), pair) if covered else np.inf
    return {"case": case, "level": level, "loss": plain_number(loss)}


def _audit(case: str, level: int, size: int, stream: np.random.SeedSequence) -> dict[str, Any]:
    tables, pair = release(level), two_databases(case)
    options: dict[str, Any] = {"size": size, "confidence": CONFIDENCE, "rng": stream}
    mechanism: Any = tables.topdown.stage("measurements")
    if max(tables.support_masses(pair)):
        mechanism, options["size"], options["event"] = tables, FEW, total_of_first(pair, LEAVES[level])
    saved = kept(measure_loss(mechanism, pair, PureDP(EPSILON, pair.relation), **options))
    return saved | {"lower_bound": pair.distance * float(saved["lower_bound"])}  # bound for the pair, not for one step


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        (words, share, finest), audits, loss = CASES[row["case"]], row["audits"], float(row["loss"])
        what = f"{words}, {TOTALS[row['level']]}"
        expected = share if row["level"] <= finest else math.inf
        yield Check(f"{what}: exact loss {loss:.4g}, expected {expected:g}", math.isclose(loss, expected, rel_tol=1e-9))
        if math.isfinite(loss):
            yield none_above(what, audits, loss)
            yield between(f"{what}: median lower bound / exact loss", median(audits) / loss, 0.2, 1)
        else:
            yield all_or_none(what, audits, violated=True)
            yield Check(f"{what}: every release is a witness", all(audit["witness"] == 1 for audit in audits))


def facts(numbers: Numbers) -> dict[str, Any]:
    by_case = {case: [row for row in numbers["rows"] if row["case"] == case] for case in CASES}
    rows = []
    for case, own in by_case.items():
        exact = (f"{float(row['loss']):.2g}".replace("inf", "infinite") for row in own)
        proved = (down(median(row["audits"])) for row in own)
        rows.append((CASES[case][0], *map("{} ({})".format, exact, proved)))
    apart = [audit for row in numbers["rows"] if row["loss"] == "inf" for audit in row["audits"]]
    alone, together = by_case["state"][0]["loss"], by_case["exchange"][-1]["loss"]
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, (ax,) = page(4.4)
    colors, names = dict(zip(TOTALS, (PALE, BLUE, GREEN), strict=True)), list(CASES)
    for row in numbers["rows"]:
        at = names.index(row["case"]) + 0.26 * (row["level"] - 1)
        look: dict[str, Any] = {"violated": violations(row["audits"]) > 0, "color": colors[row["level"]]}
        losses(ax, at, bounds(row["audits"]), float(row["loss"]), end=LIMIT, height=0.22, **look)
    promise(ax)
    name_rows(ax, [fill(CASES[name][0], 28) for name in names], half=0.42)
    ax.set(xlim=(0, LIMIT), xlabel="loss of the two databases / promise of one person replaced ($\\varepsilon$ = 1)")
    handles = [
        *(bar_key(f"lower bound, {words}", colors[level]) for level, words in TOTALS.items()),
        bar_key("hatched: violated", GRAY, violated=True),
        *keys(exact="exact loss", promise="promise"),
        line_key("exact loss infinite, in every release", **INFINITE),
    ]
    head(ax, "one person, who in the second database ...", handles, ncols=2, x=-0.32)
    return figure
