"""What exact totals cost: people whose neighbors keep them, people whose neighbors do not, and an estimate of it.

A promise beside invariants is one of neighbors that keep them, who may be more than one person apart: Bailie, Gong and
Meng, arXiv 2501.08449; Cho and Awan, arXiv 2410.17468.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.schema import Schema
from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from algorithms.topdown.estimation.constraints import Invariant
from algorithms.topdown.population import STRATA, synthetic_1940
from audit import NeighborPair, PureDP, measure_loss
from audit.estimates.residuals import residual_loss
from audit.results import plain_number
from audit.results.plots import BLACK, BLUE, EXACT, GRAY, GREEN, PALE
from experiments.audits import all_or_none, bounds, kept, largest_loss, median, none_above, repeat
from experiments.drawing import (
    INFINITE,
    bar_key,
    budget_axis,
    head,
    keys,
    line_key,
    losses,
    name_rows,
    own_keys,
    page,
    promise,
    styles,
)
from experiments.experiment import CONFIDENCE, Check, Checks, Numbers, between, down, near, published, violations
from experiments.topdown.bugs import SCHEMA, TREE, neighbors, total_of_first

EPSILON, SHARES = 1.0, ("1/10", "9/20", "9/20")
TOTALS = {0: "no exact totals", 1: "exact totals of states", 2: "exact totals of districts"}  # by level of the areas
LEAVES = {1: 3, 2: 1}  # districts in the first area of a level
HOME, NEXT, FAR, KIND = 0, 1, TREE.n_leaves - 1, SCHEMA.cells - 1
CASES = {  # of one person in the second database; half the share of every count that changes; finest totals that stay
    "kind": ("is of another kind", 1.0, 2),
    "district": ("lives in another district", 0.45, 1),
    "state": ("lives in another state", 0.9, 0),
    "exchange": ("lives in another state, and one of another kind moves back", 1.8, 2),
    "added": ("is not in the data", 0.5, 0),
}
SIZE, FEW, AUDITS = 100_000, 200, 10
LIMIT = 2.8  # of the axis, in promises

STRATA_ALONE = Schema({"stratum": tuple(map(str, range(STRATA)))})
EPSILONS, SEEDS = (0.25, 0.5, 1.0, 2.0), 5
THEIRS: dict[str, Any] = {"method": "kde", "bandwidth": 0.1, "percentile": 95, "multiplier": 1.0}
PRINTED = published("Totals that are invariant")
ESTIMATES = {"noise": "noise, before any estimation", "free": "no exact totals", "exact": "exact totals"}


@dataclass(frozen=True, eq=False)
class Published:
    """The tables of TopDown on any two databases, those that its promise does not cover among them."""

    topdown: TopDown

    def __call__(self, data: NDArray[np.int64], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Release tables of districts `size` times."""
        return self.topdown(data, size, rng)

    def support_masses(self, pair: NeighborPair) -> tuple[float, float]:
        """Return how often tables have totals that those of the other database never have: always, or never."""
        x, y = (self.topdown.tables(data).sum(axis=-1) for data in (pair.x, pair.y))
        apart = any((x != y)[self.topdown.tree.level(one.level)].any() for one in self.topdown.invariants)
        return float(apart), float(apart)


def release(level: int) -> Published:
    """Return TopDown on three states of three districts each, with exact totals of a level, or none."""
    return Published(_topdown(SCHEMA, TREE, EPSILON, SHARES, level))


def district(epsilon: float, level: int) -> TopDown:
    """Return TopDown on the strata of one district, which have the budget: with its exact total, or without."""
    return _topdown(STRATA_ALONE, Hierarchy.from_codes(["district"]), epsilon, ("1", "0"), level)


def _topdown(schema: Schema, tree: Hierarchy, epsilon: float, shares: tuple[str, ...], level: int) -> TopDown:
    budget = Budget(PureDP(epsilon, "replace_one"), shares, [{"detailed": 1}] * len(shares))
    return TopDown(schema, tree, budget, solver="batched", invariants=[Invariant("total", level)] if level else [])


def two_databases(case: str) -> NeighborPair:
    """Return the database of a person in the first district, and another that may be the true one."""
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
    """Audit five pairs under three sets of totals 10 times, and estimate at four budgets 5 times (quick: once)."""
    first, second, last = np.random.SeedSequence(seed).spawn(3)
    setups = [(case, level) for case in CASES for level in TOTALS]
    size, times, seeds = (SIZE // 10, 1, 1) if quick else (SIZE, AUDITS, SEEDS)
    tasks = [(*one, size) for one in setups]
    audits = repeat(_audit, tasks, first.spawn(len(setups)), times, jobs=jobs, words="exact totals")
    rows = [{**_about(*one), "audits": own} for one, own in zip(setups, audits, strict=True)]

    town = synthetic_1940(np.random.default_rng(last)).histogram
    strata = town.reshape(len(town), -1, STRATA).sum(axis=1)[:: 10 if quick else 1]
    inside = NeighborPair.move_people(strata[:1], (0, int(strata[0].argmax())), (0, int(strata[0].argmin())))
    settings = [(strata, epsilon, level) for epsilon in (EPSILONS[:1] if quick else EPSILONS) for level in (0, 1)]
    results = repeat(_estimated, settings, second.spawn(len(settings)), seeds, jobs=jobs, words="estimates")
    estimates: dict[str, Any] = {}
    for (_, epsilon, level), own in zip(settings, results, strict=True):
        loss = largest_loss(district(epsilon, level).stage("measurements"), inside)
        row = estimates.setdefault(f"{epsilon:g}", {"loss": loss})
        row["exact" if level else "free"], row["noise"] = ([one[key] for one in own] for key in ("tables", "noise"))
        row["zero"] = [one["zero"] for one in own]
    return {"rows": rows, "estimates": estimates, "districts": len(strata), "size": size, "quick": quick}


def _about(case: str, level: int) -> dict[str, Any]:
    """Return what is known before any run: the exact loss of the measurements, or that totals tell all."""
    tables, pair = release(level), two_databases(case)
    covered = not max(tables.support_masses(pair))
    loss = largest_loss(tables.topdown.stage("measurements"), pair) if covered else np.inf
    return {"case": case, "level": level, "loss": plain_number(loss)}


def _audit(case: str, level: int, size: int, stream: np.random.SeedSequence) -> dict[str, Any]:
    """Audit the measurements if all exact totals are kept, and otherwise the published tables with a few runs."""
    tables, pair = release(level), two_databases(case)
    options: dict[str, Any] = {"size": size, "confidence": CONFIDENCE, "rng": stream}
    mechanism: Any = tables.topdown.stage("measurements")
    if max(tables.support_masses(pair)):
        mechanism, options["size"], options["event"] = tables, FEW, total_of_first(pair, LEAVES[level])
    saved = kept(measure_loss(mechanism, pair, PureDP(EPSILON, pair.relation), **options))
    return saved | {"lower_bound": pair.distance * float(saved["lower_bound"])}  # of the pair, not of one step


def _estimated(strata: NDArray[np.int64], epsilon: float, level: int, stream: np.random.SeedSequence) -> dict[str, Any]:
    """Release every district once, and estimate from the errors of all strata as Petti and Flaxman did."""
    topdown, rng, noise, errors = district(epsilon, level), np.random.default_rng(stream), [], []
    for counts in strata:
        measurements = topdown.measure(counts[None], rng, size=1)
        noise.append(measurements.noisy[0, "detailed"].answers.ravel() - counts)
        errors.append(topdown.estimate(measurements).real[0, 0] - counts)
    largest = {
        key: float(np.nanmax(np.abs(residual_loss(np.concatenate(of), **THEIRS, rng=rng).loss)))
        for key, of in (("noise", noise), ("tables", errors))
    }
    return {**largest, "zero": float(np.mean(np.abs(errors) < 0.05))}  # to one decimal


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
    for epsilon, row in numbers["estimates"].items():
        budget, (noise, free, exact) = float(epsilon), (float(np.median(row[key])) for key in ESTIMATES)
        yield near(f"epsilon {epsilon}: exact loss of a person of another stratum", row["loss"], budget, 1e-9)
        yield between(f"epsilon {epsilon}: estimate from noise / loss of a count", 2 * noise / budget, 0.8, 2)
        yield between(f"epsilon {epsilon}: estimate without exact totals / epsilon", free / budget, 1.1, 20)
        if budget == PRINTED["epsilon"]:
            yield between(f"epsilon {epsilon}: estimate with them / published", exact / PRINTED["largest"], 0.67, 1.5)


def facts(numbers: Numbers) -> dict[str, Any]:
    by_case = {case: [row for row in numbers["rows"] if row["case"] == case] for case in CASES}
    rows = []
    for case, own in by_case.items():
        exact = (f"{float(row['loss']):.2g}".replace("inf", "infinite") for row in own)
        proved = (down(median(row["audits"])) for row in own)
        rows.append((CASES[case][0], *map("{} ({})".format, exact, proved)))
    apart = [audit for row in numbers["rows"] if row["loss"] == "inf" for audit in row["audits"]]
    alone, together = by_case["state"][0]["loss"], by_case["exchange"][-1]["loss"]
    theirs = numbers["estimates"][f"{PRINTED['epsilon']:g}"]
    estimate = {key: float(np.median(theirs[key])) for key in ESTIMATES}
    zero = float(np.median(theirs["zero"]))
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, (top, below) = page(7.4, 2, 1, heights=[1.5, 1])
    _draw_pairs(top, numbers["rows"])
    _draw_estimates(below, numbers["estimates"])
    return figure


def _draw_pairs(ax: Axes, rows: list[dict[str, Any]]) -> None:
    colors, names = dict(zip(TOTALS, (PALE, BLUE, GREEN), strict=True)), list(CASES)
    for row in rows:
        at = names.index(row["case"]) + 0.26 * (row["level"] - 1)
        look: dict[str, Any] = {"violated": violations(row["audits"]) > 0, "color": colors[row["level"]]}
        losses(ax, at, bounds(row["audits"]), float(row["loss"]), end=LIMIT, height=0.22, **look)
    promise(ax)
    name_rows(ax, [fill(CASES[name][0], 28) for name in names])
    ax.set_xlim(0, LIMIT)
    ax.set_xlabel("loss of the two databases / promise of one person replaced ($\\varepsilon$ = 1)")
    handles = [
        *(bar_key(f"lower bound, {words}", colors[level]) for level, words in TOTALS.items()),
        bar_key("hatched: violated", GRAY, violated=True),
        *keys(exact="exact loss", promise="promise"),
        line_key("exact loss infinite, in every release", **INFINITE),
    ]
    head(ax, "(a) lower bounds: one person, who in the second database ...", handles, ncols=2, x=-0.36)


def _draw_estimates(ax: Axes, rows: dict[str, Any]) -> None:
    epsilons = [float(epsilon) for epsilon in rows]
    exact = [row["loss"] for row in rows.values()]
    ax.loglog(epsilons, exact, **EXACT | {"linestyle": "-"}, label="exact loss, total kept")
    looks = styles(ESTIMATES)
    for key, words in ESTIMATES.items():
        values = np.array([row[key] for row in rows.values()])
        ax.loglog(epsilons, np.median(values, axis=1), **looks[key], label=f"estimate: {words}")
        ax.vlines(epsilons, values.min(axis=1), values.max(axis=1), color=looks[key]["color"], linewidth=1.1)
    cited: dict[str, Any] = {"marker": "x", "color": BLACK, "markersize": 8, "linestyle": "none"}
    ax.plot(PRINTED["epsilon"], PRINTED["largest"], **cited, label="published, exact totals")
    budget_axis(ax, EPSILONS, "epsilon, one person replaced")
    ax.set_yticks([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"])
    ax.minorticks_off()
    ax.set_ylabel("nats (log scale)")
    head(ax, "(b) an estimate from residuals exceeds epsilon without exact totals, too", own_keys(ax), ncols=2, x=-0.36)
