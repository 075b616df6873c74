"""Loss of one area: a quarter of RDPC's budget (all levels jointly show all of it); for ADPC, more at rare errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.flaxman import ADPC, RDPC
from algorithms.hierarchy import Hierarchy
from audit import Attack, LossEstimate, NeighborPair, PureDP, direct_loss, measure_loss
from audit.attacks.paths import path_statistics
from audit.events import cell
from audit.results.plots import EXACT, GRAY
from experiments.audits import audited, exact_law, opened, share
from experiments.drawing import bar, beside, extent, foot, keys, line_key, name_rows, page, promise
from experiments.experiment import DATA, Check, Checks, Numbers, between, down, near

FANOUT, LEVELS, PEOPLE = 10, 3, 100  # children of each area; levels below the root; people in each leaf
LEAF, OTHER = 0, FANOUT**LEVELS - 1  # in different areas at every level below the root
SHARE = 1 / (LEVELS + 1)
EPSILON, GROUP, MOVED_EPSILON = 0.1, 20, 1.0
SIZE, SEEDS = 400_000, 20
ERRORS = np.arange(-60, 121, 10)  # the answer reports the log-ratio of the event at `GROUP`
PARTS, PERCENTILES = 4, (0.5, 0.81, 0.95, 0.99, 0.999)  # parts of ADPC; percentiles of its |error|
CASES: dict[str, str] = DATA["flaxman_audit"]["cases"]


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit the whole leaf table six times (quick: 8,000 runs each); repeat two joint events 20 times (quick: 3)."""
    tree, counts = Hierarchy.regular(FANOUT, LEVELS), np.full(FANOUT**LEVELS, PEOPLE)
    streams = np.random.SeedSequence(seed).spawn(len(CASES) + 2)
    added = NeighborPair.add_people(counts, LEAF, GROUP)
    moved = NeighborPair.move_people(counts, LEAF, OTHER)
    looks = _looks(RDPC(EPSILON, tree), added) | {"leaf": Attack((cell(LEAF),))}
    looks["moved"] = _looks(RDPC(MOVED_EPSILON, tree), moved)["un-raked"]
    size = 8_000 if quick else SIZE
    rows: dict[str, Any] = {}
    for case, stream in zip(CASES, streams, strict=False):
        mechanism = RDPC(MOVED_EPSILON if case == "moved" else EPSILON, tree)
        pair = moved if case == "moved" else added
        claim = PureDP(mechanism.epsilon, pair.relation)  # also for the move: the paper compares databases in this way
        attack = looks.get(case, "auto")
        saved = audited(mechanism, pair, claim, attack=attack, size=size, rng=stream, jobs=jobs)
        rows[case] = {"exact": exact_law(mechanism, pair).maximum / pair.distance, "audit": saved}
    return {
        "rows": rows,
        "repeats": _repeat(tree, counts, size, streams[-2], jobs, seeds=3 if quick else SEEDS),
        "estimate": _estimate(tree, counts, size // 2, np.random.default_rng(streams[-1])).to_dict(),
        "adpc_exact": _adpc_by_percentile(),
    }


def _adpc_by_percentile() -> dict[str, float]:
    """Return the exact loss / budget of ADPC at percentiles of |error|; small budgets all have the same ratio."""
    law = ADPC(0.01, PARTS)
    s = np.arange(0, 40_000)
    mass = np.exp(law.logpmf_sum(s))
    below = np.cumsum(np.where(s == 0, mass, 2 * mass))
    loss = (law.logpmf_sum(s - PARTS) - law.logpmf_sum(s)) / law.epsilon
    return {f"{p:g}": float(np.interp(p, below, loss)) for p in PERCENTILES}


def _looks(mechanism: RDPC, pair: NeighborPair) -> dict[str, Attack]:
    parent, released, leaves = mechanism.areas
    statistics = path_statistics(pair, parent, released, leaves=leaves)
    unraked = tuple(statistic for statistic in statistics if "un-raked" in statistic.name)
    raked = tuple(statistic for statistic in statistics if statistic not in unraked)
    together, single = unraked[:2], unraked[2:]  # first the joint statistic and the sum, then single levels
    return {"level": Attack(single), "raked": Attack(raked), "un-raked": Attack(together)}


def _repeat(
    tree: Hierarchy, counts: NDArray[np.int64], size: int, root: np.random.SeedSequence, jobs: int, *, seeds: int
) -> dict[str, Any]:
    """Repeat the audits of the joint events at 95%, on the areas along the paths and their siblings."""
    # Raking of an area uses only its siblings and the levels above: areas below the siblings have no effect.
    cut, people, places = paths_only(tree, counts, (LEAF, OTHER))
    questions = {
        "un-raked": (RDPC(EPSILON, cut), NeighborPair.add_people(people, places[0], GROUP)),
        "moved": (RDPC(MOVED_EPSILON, cut), NeighborPair.move_people(people, *places)),
    }
    bounds = {}
    for (case, (mechanism, pair)), stream in zip(questions.items(), root.spawn(len(questions)), strict=True):
        claim, attack = PureDP(mechanism.epsilon, pair.relation), _looks(mechanism, pair)["un-raked"]
        bounds[case] = [
            measure_loss(mechanism, pair, claim, attack=attack, size=size, rng=rng, n_jobs=jobs).measured.budget
            for rng in stream.spawn(seeds)
        ]
    return bounds


def paths_only(
    tree: Hierarchy, counts: NDArray[np.int64], leaves: Sequence[int]
) -> tuple[Hierarchy, NDArray[np.int64], list[int]]:
    """Return the tree of the paths to `leaves` and their siblings, its counts, and the indices of the leaves in it."""
    paths = [tree.path(leaf) for leaf in leaves]
    nodes = np.flatnonzero((tree.parent < 0) | np.isin(tree.parent, np.concatenate(paths)))
    cut = Hierarchy.from_parents(np.append(-1, np.searchsorted(nodes, tree.parent[nodes[1:]])))
    places = [int(np.searchsorted(nodes[cut.leaves], path[-1])) for path in paths]
    return cut, tree.totals(counts)[nodes[cut.leaves]].astype(np.int64), places


def _estimate(tree: Hierarchy, counts: NDArray[np.int64], runs: int, rng: np.random.Generator) -> LossEstimate:
    """Return the direct estimate of the leaf alone; the larger database comes first, so that it is positive."""
    cut, people, (place,) = paths_only(tree, counts, (LEAF,))
    pair, mechanism = NeighborPair.add_people(people, place, GROUP), RDPC(EPSILON, cut)
    x, y = (mechanism(data, runs, rng)[:, place] for data in (pair.x, pair.y))
    return direct_loss(y, x, people[place], at=ERRORS, distance=GROUP)


def check(numbers: Numbers) -> Checks:
    audits = {case: opened(row["audit"]) for case, row in numbers["rows"].items()}
    full = audits["leaf"].size > 100_000
    limits = {
        "leaf": (0.2, 0.3),
        "level": (0.2, 0.25),
        "raked": (0.7, 1.0),
        "un-raked": (0.91, 1.0),
        "auto": (0.88, 1.0),
        "moved": (1.3, 1.5),
    }
    for case, result in audits.items():
        exact, top = numbers["rows"][case]["exact"] / result.claim.budget, limits[case][1]
        low = limits[case][0] if full else 0.0
        yield near(f"{case}: exact maximum / claim", exact, 1.5 if case == "moved" else 1.0, 1e-9)
        yield between(f"{case}: lower bound / claim", result.measured.budget / result.claim.budget, low, top)
        if case != "moved" or full:
            verdict = "violated" if case == "moved" else "not refuted"
            words = f"{case}: {result.verdict}, expected {verdict}"
            yield Check(words, result.verdict == verdict or (not full and result.verdict == "no power"))
    for case, (least, middle, top) in {"un-raked": (0.87, 0.91, 1.0), "moved": (1.3, 1.4, 1.5)}.items():
        shares = np.array(numbers["repeats"][case]) / audits[case].claim.budget
        for what, value, low in (("least", shares.min(), least), ("median", np.median(shares), middle)):
            yield between(f"{case}, {shares.size} repeats: {what}", float(value), low if full else 0.0, top)
    # The standard error is 0.0003 with 200,000 runs on each database, and 0.0025 with 4,000.
    yield near("leaf: estimated log-ratio / person", _at_group(numbers), 0.0218, 0.001 if full else 0.01)
    for percentile, loss in (("0.81", 0.5), ("0.95", 0.62)):
        words = f"ADPC: exact loss at percentile {percentile} of |error| / budget"
        yield near(words, numbers["adpc_exact"][percentile], loss, 0.01)


def facts(numbers: Numbers) -> dict[str, Any]:
    audits = {case: opened(row["audit"]) for case, row in numbers["rows"].items()}
    bound = {case: down(audit.measured.budget / audit.claim.budget) for case, audit in audits.items()}
    repeats = {case: down(np.median(own) / audits[case].claim.budget) for case, own in numbers["repeats"].items()}
    exact = {case: f"{row['exact'] / audits[case].claim.budget:g}" for case, row in numbers["rows"].items()}
    rows = []
    for case, words in (CASES | {"moved": CASES["un-raked"]}).items():
        who = "one moved" if case == "moved" else "one added"
        rows.append((words, who, exact[case], bound[case], repeats.get(case, "")))
    lost, direct = numbers["rows"]["moved"]["exact"] / MOVED_EPSILON, _at_group(numbers) / EPSILON
    verdict, runs, adpc = audits["moved"].verdict, audits["moved"].size, numbers["adpc_exact"]
    return locals()


def _at_group(numbers: Numbers) -> float:
    """Return the estimated log-ratio of the event fixed beforehand, in nats for one person."""
    estimate = LossEstimate.from_dict(numbers["estimate"])
    return float(estimate.loss[estimate.at == GROUP].item())


def draw(numbers: Numbers) -> Figure:
    figure, (ax,) = page(3.6)
    shared: dict[str, Any] = {"color": GRAY, "linewidth": 1.2, "linestyle": ":"}
    promise(ax)
    ax.axvline(SHARE, **shared, zorder=0)
    for place, (case, row) in enumerate(numbers["rows"].items()):
        result, loss = opened(row["audit"]), share(row["audit"])
        bar(ax, place, loss, violated=result.verdict == "violated")
        words = down(loss, 3)
        ax.plot(row["exact"] / result.claim.budget, place, **EXACT, zorder=4)
        if case in numbers["repeats"]:
            repeats = np.array(numbers["repeats"][case]) / result.claim.budget
            extent(ax, repeats, place)
            words += f"; repeats {down(repeats.min(), 3)} to {down(repeats.max(), 3)}"
        beside(ax, place, words, x=1.01, size=8)
    name_rows(ax, list(CASES.values()))
    ax.set(xlim=(0, 1.6), xticks=np.arange(0, 1.6, 0.25))
    ax.set_xlabel("loss for one person added (last: moved) / promise")
    handles = keys(
        bound="lower bound, confidence 1 - 1e-6",
        violated="lower bound: violated",
        exact="exact maximum of the table",
        promise="promise",
        extent=f"range of {len(numbers['repeats']['moved'])} repeats at 95%",
    )
    foot(figure, [*handles, line_key("share of one level", **shared)], ncols=3)
    return figure
