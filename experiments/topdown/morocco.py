"""TopDown on the communes of Morocco by area (urban, rural) and sex: errors and loss of the published tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.population import load
from algorithms.schema import Schema
from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from algorithms.topdown.estimation.constraints import Invariant
from audit import NeighborPair, PureDP
from audit.results.plots import BLACK, GRAY
from experiments.audits import audited, opened
from experiments.drawing import budget_axis, head, line_key, own_keys, page, styles
from experiments.experiment import Check, Checks, Numbers, between, near

SCHEMA = Schema({"area": ("urban", "rural"), "sex": ("male", "female")})
QUERIES = {"total": "1/4", "area": "1/4", "detailed": "1/2"}
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
LEVELS = ("nation", "region", "province", "commune")
RUNS, SIZE, AUDITED = 20, 30_000, 4.0


def census() -> tuple[Hierarchy, NDArray[np.int64]]:
    """Return the tree of communes, and people by area (urban, rural) and sex, shape (communes, 4)."""
    tree, _ = load("morocco")
    finest, counts = load("morocco", cells=("area", "sex"))
    place = {tree.label(leaf): leaf for leaf in range(tree.n_leaves)}
    histogram = np.zeros((tree.n_leaves, SCHEMA.cells), np.int64)
    for leaf, people in enumerate(counts):
        *commune, area, sex = finest.label(leaf).split(" / ")
        histogram[place[" / ".join(commune)], SCHEMA.where(area=area, sex=sex)] += people
    return tree, histogram


def topdown(tree: Hierarchy, epsilon: float) -> TopDown:
    levels = [f"1/{tree.depth + 1}"] * (tree.depth + 1)
    budget = Budget(PureDP(epsilon, "replace_one"), levels, [QUERIES] * len(levels))
    return TopDown(SCHEMA, tree, budget, invariants=[Invariant("total", 0)], solver="batched")


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Release 20 times at each of six budgets (quick: twice at three), and audit two paths with 30,000 runs (200)."""
    tree, histogram = census()
    epsilons = EPSILONS[1::2] if quick else EPSILONS
    streams = np.random.SeedSequence(seed).spawn(len(EPSILONS) + 2)
    rows = {}
    empty = (histogram == 0).sum(axis=1)
    for epsilon, stream in zip(epsilons, streams, strict=False):
        mechanism, rng = topdown(tree, epsilon), np.random.default_rng(stream)
        estimate = mechanism.estimate(mechanism.measure(histogram, rng, size=2 if quick else RUNS))
        tables = estimate.tables
        errors = (tables - mechanism.tables(histogram)).sum(axis=-1)
        off = [np.abs(errors[:, tree.level(j)]) for j in range(tree.depth + 1)]
        rows[f"{epsilon:g}"] = {
            "median": [float(np.median(level)) for level in off],
            "p95": [float(np.quantile(level, 0.95)) for level in off],
            "bias": {str(k): float(errors[:, tree.leaves][:, empty == k].mean()) for k in np.unique(empty)},
            "additive": bool(np.array_equal(mechanism.tables(tables[:, tree.leaves]), tables)),
            "least": int(tables.min()),
            "people": int(tables[0, 0].sum()),
            "failures": len(estimate.failures),
        }
    return {
        "people": int(histogram.sum()),
        "tree": repr(tree),
        "communes": {str(k): int((empty == k).sum()) for k in np.unique(empty)},
        "rows": rows,
        "audit": _audited(tree, histogram, 200 if quick else SIZE, streams[-1], jobs),
    }


def _audited(
    tree: Hierarchy, histogram: NDArray[np.int64], size: int, stream: np.random.SeedSequence, jobs: int
) -> dict[str, Any]:
    """Audit the replacement of a man in one region by a woman in another: exact loss, and tables of both paths."""
    mechanism = topdown(tree, AUDITED)
    source, target = 0, tree.n_leaves - 1
    man = int(np.flatnonzero(histogram[source] * SCHEMA.where(sex="male"))[0])
    woman = 3 - 2 * int(histogram[target].argmax() < 2)
    words = f"{tree.label(source)} to {tree.label(target)}"
    pair = NeighborPair.move_people(histogram, (source, man), (target, woman), label=words)
    paths = np.unique(np.concatenate([tree.path(source), tree.path(target)]))
    tables, law = mechanism.stage("rounded"), mechanism.stage("measurements").exact_loss(pair)

    def on_paths(data: Any, runs: int, rng: np.random.Generator) -> NDArray[Any]:
        return tables(data, runs, rng)[:, paths]

    saved = audited(on_paths, pair, mechanism.claim, size=size, rng=stream, jobs=jobs)
    return {"exact": None if law is None else law.supremum, "tables": saved}


def check(numbers: Numbers) -> Checks:
    for epsilon, row in numbers["rows"].items():
        where = f"epsilon {epsilon}"
        consistent = row["additive"] and row["least"] >= 0 and row["people"] == numbers["people"]
        yield Check(f"{where}: additive, not negative, and of all people", consistent)
        yield Check(f"{where}: the nation's total is exact", row["p95"][0] == 0)
        yield Check(f"{where}: {row['failures']} failsafes, expected none", row["failures"] == 0)
        most, least = row["bias"]["2"], row["bias"]["0"]
        yield Check(f"{where}: bias {most:+.2f} with empty cells, {least:+.2f} without", most > 0 > least)
    scaled = [float(epsilon) * row["median"][3] for epsilon, row in numbers["rows"].items()]
    yield between("median error of communes x epsilon, largest / smallest", max(scaled) / min(scaled), 1, 2)
    audit = opened(numbers["audit"]["tables"])
    yield Check(f"tables of both paths: {audit.verdict}", audit.verdict != "violated")
    if numbers["audit"]["exact"] is not None:
        # All queries change by 2, except the nation's total, which does not change.
        promised = AUDITED * (1 - 1 / 4 * 1 / 4)
        yield near("measurements, exact loss", numbers["audit"]["exact"], promised, 1e-6)


def facts(numbers: Numbers) -> dict[str, Any]:
    audit, exact = opened(numbers["audit"]["tables"]), numbers["audit"]["exact"]
    runs = audit.size
    epsilon = "1" if "1" in numbers["rows"] else next(iter(numbers["rows"]))
    medians = zip(LEVELS[1:], numbers["rows"][epsilon]["median"][1:], strict=True)
    errors = ", ".join(f"{error:.0f} people in a {level}" for level, error in medians)
    rows = [
        (epsilon, *(f"{error:.0f}" for error in row["median"][1:]), f"{row['bias']['2']:+.1f}, {row['bias']['0']:+.1f}")
        for epsilon, row in numbers["rows"].items()
    ]
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, (left, right) = page(4.2, 1, 2, stacked=True)
    rows = numbers["rows"].values()
    epsilons = np.array([float(epsilon) for epsilon in numbers["rows"]])
    looks = styles(LEVELS[1:], markersize=4.5, linestyle="none")
    for j, (aside, (level, look)) in enumerate(zip((0.88, 1.0, 1.14), looks.items(), strict=True), 1):
        left.loglog(aside * epsilons, [row["median"][j] for row in rows], label=level, **look)
        left.loglog(aside * epsilons, [row["p95"][j] for row in rows], markerfacecolor="white", **look)
    left.set_ylabel("|error| of the total (people, log scale)")
    gray: dict[str, Any] = {"color": GRAY, "marker": "o", "markersize": 4.5, "linestyle": "none"}
    handles = [line_key("median", **gray), line_key("95th percentile", **gray, markerfacecolor="white")]
    head(left, "(a) error by level", own_keys(left) + handles, ncols=3)
    for (k, kind), look in styles((("0", "urban and rural"), ("2", "only one of both"))).items():
        label = f"{numbers['communes'][k]:,} communes: {kind}"
        right.semilogx(epsilons, [row["bias"][k] for row in rows], **look, label=label)
    right.axhline(0, color=BLACK, linewidth=0.8)
    right.set_ylabel("mean error of the total (people)")
    head(right, "(b) bias: empty cells are lifted", own_keys(right), ncols=1)
    for ax in (left, right):
        budget_axis(ax, epsilons, "epsilon, one person replaced")
    return figure
