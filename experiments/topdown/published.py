"""The share of a promise that audits of published tables prove; post-processing hides the rest."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.figure import Figure

from algorithms.hierarchy import Hierarchy
from algorithms.topdown import TopDown, preset
from audit import NeighborPair, measure_loss
from audit.results.plots import GRAY, PROMISE
from experiments.audits import all_or_none, kept, run_all
from experiments.drawing import foot, keys, line_key, own_keys, page, styles
from experiments.experiment import CONFIDENCE, Check, Checks, Numbers, between, down, few_misses, up
from experiments.systems.subjects import TREE_500

TREES = {
    9: Hierarchy.regular(3, 2),
    125: Hierarchy.regular(5, 3),
    500: Hierarchy.from_codes(*zip(*TREE_500, strict=True)),
}
PEOPLE = 20  # average in each of the four cells of an area
EPSILONS, GROUPS = (0.5, 1.0, 2.0, 4.0), (1, 2, 4, 8)
SIZES, SEEDS = (25_000, 100_000, 400_000), 5  # runs; audits for each number of runs
BUDGETS, GROUPED = 200_000, 100_000  # runs for each budget; for each group size
PARTS = {False: 1, True: 10}  # divisor of runs and audits, by whether quick
OFTEN = 100  # audits at CONFIDENCE, none of which should report a violation
GROWING = (9, 125)
CUSTOMARY = 0.95  # confidence of the bounds shown
GONE = 9  # unused random streams between those of `audited` and `often`


@dataclass(frozen=True)
class Task:
    """An audit of the tables of a tree with this number of leaves."""

    leaves: int
    epsilon: float
    people: int
    size: int


def topdown(leaves: int, epsilon: float, people: int = 1) -> tuple[TopDown, NeighborPair]:
    before = np.random.default_rng(leaves).poisson(PEOPLE, (leaves, 4))
    pair = NeighborPair.move_people(before, (0, 0), (leaves - 1, 3), people)
    return preset("micro", TREES[leaves], epsilon=epsilon), pair


def tasks(quick: bool) -> list[Task]:
    """Return all audits: with growing runs, by budget, and in groups (quick: nine leaves, few runs)."""
    part, trees = PARTS[quick], (9,) if quick else tuple(TREES)
    growing = [leaves for leaves in GROWING if leaves in trees]
    work = [
        Task(leaves, 1.0, 1, size // part) for leaves in growing for size in SIZES for _ in range(1 if quick else SEEDS)
    ]
    work += [Task(leaves, e, 1, BUDGETS // part) for leaves in trees for e in EPSILONS]
    work += [
        Task(leaves, 1.0, people, GROUPED // part)
        for leaves in growing
        for people in GROUPS[1:]  # groups of one person are in the lines above
        for _ in range(1 if quick else SEEDS)
    ]
    return work


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit tables of every size with growing runs, budgets and groups, and one case 100 times."""
    audited = tasks(quick)
    often = [Task(9, 1.0, 1, GROUPED // PARTS[quick])] * (OFTEN // PARTS[quick])
    streams = np.random.SeedSequence(seed).spawn(len(audited) + (0 if quick else GONE) + len(often))
    streams = streams[: len(audited)] + streams[-len(often) :]
    levels = [CUSTOMARY] * len(audited) + [CONFIDENCE] * len(often)
    work = [delayed(_audit)(*one) for one in zip(audited + often, levels, streams, strict=True)]
    audits = run_all(work, jobs, "published tables")
    return {"audits": audits[: len(audited)], "sound": audits[len(audited) :], "quick": quick}


def _audit(task: Task, confidence: float, stream: np.random.SeedSequence) -> dict[str, Any]:
    whole, pair = topdown(task.leaves, task.epsilon, task.people)
    mechanism = whole.stage("rounded")
    result = measure_loss(mechanism, pair, mechanism.claim, size=task.size, confidence=confidence, rng=stream)
    return asdict(task) | kept(result) | {"attack": result.attack}


def shares(numbers: Numbers, **setting: Any) -> list[float]:
    rows = [row for row in numbers["audits"] if setting.items() <= row.items()]
    return [float(row["lower_bound"]) / row["epsilon"] for row in rows]


def grown(numbers: Numbers, leaves: int) -> dict[int, list[float]]:
    part = SIZES[0] // min(row["size"] for row in numbers["audits"] if row["leaves"] == leaves)
    setting: dict[str, Any] = {"leaves": leaves, "epsilon": 1.0, "people": 1}
    return {size // part: shares(numbers, **setting, size=size // part) for size in SIZES}


def in_groups(numbers: Numbers, leaves: int) -> list[float]:
    setting = {"leaves": leaves, "epsilon": 1.0, "size": GROUPED // PARTS[numbers["quick"]]}
    return [float(np.median(shares(numbers, **setting, people=people))) for people in GROUPS]


def check(numbers: Numbers) -> Checks:
    audits = numbers["audits"]
    misses = sum(float(row["lower_bound"]) > row["epsilon"] for row in audits)
    yield few_misses("bounds above the promise", misses, len(audits), CUSTOMARY)
    yield all_or_none("TopDown's tables at 1 - 1e-6", numbers["sound"], violated=False)
    if not numbers["quick"]:
        for leaves, least in zip(GROWING, (0.6, 0.5), strict=True):
            few, *_, many = map(np.median, grown(numbers, leaves).values())
            yield between(f"{leaves} areas: share that most runs show, median", float(many), least, 1.0)
            yield Check(f"{leaves} areas: {many:.2f} of most runs, {few:.2f} of fewest", bool(many > few))
            alone, two, *_ = in_groups(numbers, leaves)
            words = f"{leaves} areas: {two:.2f} a person of two, {alone:.2f} of one person, expected less; medians"
            yield Check(words, alone < two)


def facts(numbers: Numbers) -> dict[str, Any]:
    runs, of_most = list(grown(numbers, 9).items())[-1]
    tables = float(np.median(of_most))
    rows = []
    for leaves in (leaves for leaves in GROWING if shares(numbers, leaves=leaves)):
        by_size = grown(numbers, leaves)
        sizes, medians = ", ".join(f"{size:,}" for size in by_size), map(np.median, by_size.values())
        rows.append((f"TopDown, {leaves} areas, {sizes} runs", ", ".join(map(down, medians))))
        people, grouped = ", ".join(map(str, GROUPS)), ", ".join(map(down, in_groups(numbers, leaves)))
        rows.append((f"{leaves} areas, groups of {people} people", grouped))
    return {"tables": tables, "runs": runs, "audits": len(of_most), "hidden": up(1 - tables), "rows": rows}


STYLES = styles(TREES)


def draw(numbers: Numbers) -> Figure:
    figure, (ax,) = page(3.6)
    for leaves in (leaves for leaves in GROWING if shares(numbers, leaves=leaves)):
        look, growth = STYLES[leaves], grown(numbers, leaves)
        ax.plot(list(growth), [np.median(each) for each in growth.values()], **look, label=f"{leaves} areas: median")
        for size, each in growth.items():
            ax.plot([size] * len(each), each, ".", color=look["color"], markersize=3)
    sizes = list(grown(numbers, 9))
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.minorticks_off()
    ax.set(xlabel="runs, over both databases (log scale)", ylabel="lower bound (95%) / promise", ylim=(0, 1.05))
    ax.axhline(1, **PROMISE)
    small = line_key("single audits", color=GRAY, marker=".", linestyle="none")
    foot(figure, [*own_keys(ax), *keys(promise="promise, epsilon 1"), small])
    return figure
