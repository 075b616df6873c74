"""How much of a promise published tables show, and how much of it post-processing hides from an audit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.figure import Figure

from algorithms.hierarchy import Hierarchy
from algorithms.systems import systems
from algorithms.topdown import TopDown, preset
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.results.plots import GRAY, PROMISE, SERIES
from experiments.asked import TREE_500
from experiments.audits import all_or_none, down, kept, run_all, up, violations
from experiments.drawing import bar, budget_axis, column, foot, line_key, name_rows, page, promise
from experiments.experiment import CONFIDENCE, Check, MarkdownTable, between, few_misses

QUESTION = "How much of the promise do published tables show, beside the measurements that they are made of?"
EXPECTATION = (
    "One person moved shows in TopDown's tables of nine areas at least 0.6 of epsilon 1 to 400,000 runs, and in those "
    "of 125 areas at least 0.5. More runs show more, tables less than the measurements that they are made of, and to "
    "100,000 runs groups of two show more a person than one alone. Bounds exceed the promise no more often than their "
    "confidence allows, and of 100 audits at 1 - 1e-6 none reports a violation."
)

TREES = {
    9: Hierarchy.regular(3, 2),
    125: Hierarchy.regular(5, 3),
    500: Hierarchy.from_codes(*zip(*TREE_500, strict=True)),
}
PEOPLE = 20  # in each of four cells of an area, on average
EPSILONS, GROUPS = (0.5, 1.0, 2.0, 4.0), (1, 2, 4, 8)
SIZES, SEEDS = (25_000, 100_000, 400_000), 5  # runs, and audits of so many
BUDGETS, GROUPED, STAGED = 200_000, 100_000, 60_000  # runs by budget, by group, and of stages of other systems
PARTS = {False: 1, True: 10}  # of which a quick form makes one
OFTEN = 100  # audits at the confidence of published verdicts: none should report a violation
GROWING = (9, 125)
STAGES = {
    "TopDown, 9 areas": ("topdown", ("measurements", "estimate", "rounded")),
    "ONS pilot, 4 areas": ("ons", ("measurements", "adjusted", "rounded", "")),
    "NistDp3": ("nist", ("measurements", "thresholded", "counted")),
}
WORDS = {"": "people", "counted": "rows, counted"}  # of stages whose names do not say it
TABLES, MEASURED = "rounded", "measurements"
CUSTOMARY = 0.95  # confidence of every bound that is shown
MARGIN = 0.1  # of the promise, by which bounds may differ by chance


@dataclass(frozen=True)
class Task:
    """What is audited: TopDown's stage on so many leaves, or that of another system on its own pair."""

    system: str
    leaves: int
    stage: str
    epsilon: float
    people: int
    size: int


def topdown(leaves: int, epsilon: float, people: int = 1) -> tuple[TopDown, NeighborPair]:
    """Return TopDown on a tree of so many leaves, and people who move from its first cell to its last."""
    before = np.random.default_rng(leaves).poisson(PEOPLE, (leaves, 4))
    pair = NeighborPair.move_people(before, (0, 0), (leaves - 1, 3), people)
    return preset("micro", TREES[leaves], epsilon=epsilon), pair


def tasks(quick: bool) -> list[Task]:
    """Return all audits: with growing runs, by budget, in groups, and of every stage (quick: nine leaves, few runs)."""
    part, trees = PARTS[quick], (9,) if quick else tuple(TREES)
    growing = [leaves for leaves in GROWING if leaves in trees]
    asked = [
        Task("topdown", leaves, TABLES, 1.0, 1, size // part)
        for leaves in growing
        for size in SIZES
        for _ in range(1 if quick else SEEDS)
    ]
    asked += [Task("topdown", leaves, TABLES, e, 1, BUDGETS // part) for leaves in trees for e in EPSILONS]
    asked += [
        Task("topdown", leaves, TABLES, 1.0, people, GROUPED // part)
        for leaves in growing
        for people in GROUPS[1:]  # of one person there are as many above
        for _ in range(1 if quick else SEEDS)
    ]
    for system, stages in STAGES.values():
        if system != "topdown":
            asked += [Task(system, 0, stage, 1.0, 1, STAGED // part) for stage in stages]
    return asked + [Task("topdown", 9, stage, 1.0, 1, BUDGETS // part) for stage in STAGES["TopDown, 9 areas"][1][:-1]]


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Audit tables of every size with growing runs, budgets and groups, then every stage, and one 100 times."""
    asked = tasks(quick)
    often = [Task("topdown", 9, TABLES, 1.0, 1, GROUPED // PARTS[quick])] * (OFTEN // PARTS[quick])
    streams = np.random.SeedSequence(seed).spawn(len(asked) + len(often))
    levels = [CUSTOMARY] * len(asked) + [CONFIDENCE] * len(often)
    work = [delayed(_audit)(*one) for one in zip(asked + often, levels, streams, strict=True)]
    found = run_all(work, jobs, "published tables")
    return {"audits": found[: len(asked)], "sound": found[len(asked) :], "quick": quick}


def _audit(task: Task, confidence: float, stream: np.random.SeedSequence) -> dict[str, Any]:
    if task.system == "topdown":
        whole, pair = topdown(task.leaves, task.epsilon, task.people)
        mechanism: Any = whole.stage(task.stage)  # type: ignore[arg-type]
    else:
        system = systems()[task.system]
        mechanism, pair = system.mechanism(stage=task.stage, epsilon=task.epsilon), system.pair()
    result = measure_loss(mechanism, pair, mechanism.claim, size=task.size, confidence=confidence, rng=stream)
    return asdict(task) | kept(result) | {"attack": result.attack}


def shares(numbers: dict[str, Any], **wanted: Any) -> list[float]:
    """Return the lower bounds of audits over their promises, a person."""
    rows = [row for row in numbers["audits"] if wanted.items() <= row.items()]
    return [float(row["lower_bound"]) / row["epsilon"] for row in rows]


def grown(numbers: dict[str, Any], leaves: int) -> dict[int, list[float]]:
    """Return the shares that one person shows in tables at epsilon 1, by the number of runs."""
    asked: dict[str, Any] = {"leaves": leaves, "stage": TABLES, "epsilon": 1.0, "people": 1}
    part = SIZES[0] // min(row["size"] for row in numbers["audits"] if row["leaves"] == leaves)
    return {size // part: shares(numbers, **asked, size=size // part) for size in SIZES}


def by_budget(numbers: dict[str, Any], leaves: int) -> list[float]:
    """Return the share that one person shows in tables, by epsilon."""
    (size,) = {row["size"] for row in numbers["audits"] if row["leaves"] == leaves and row["epsilon"] == EPSILONS[0]}
    asked: dict[str, Any] = {"leaves": leaves, "stage": TABLES, "people": 1, "size": size}
    return [shares(numbers, **asked, epsilon=epsilon)[0] for epsilon in EPSILONS]


def in_groups(numbers: dict[str, Any], leaves: int) -> list[float]:
    """Return the share that a person shows in tables at epsilon 1, by the number of people who move."""
    (size,) = {row["size"] for row in numbers["audits"] if row["leaves"] == leaves and row["people"] == GROUPS[-1]}
    asked: dict[str, Any] = {"leaves": leaves, "stage": TABLES, "epsilon": 1.0, "size": size}
    return [float(np.median(shares(numbers, **asked, people=people))) for people in GROUPS]


def stages(numbers: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the share that every stage shows at epsilon 1, by system; what is published comes last."""
    found: dict[str, dict[str, float]] = {}
    for name, (system, of_system) in STAGES.items():
        if system == "topdown":
            shown = [shares(numbers, leaves=9, stage=stage)[0] for stage in of_system[:-1]]
            shown.append(by_budget(numbers, 9)[EPSILONS.index(1.0)])
        else:
            shown = [shares(numbers, system=system, stage=stage)[0] for stage in of_system]
        found[name] = dict(zip(of_system, shown, strict=True))
    return found


def check(numbers: dict[str, Any]) -> Iterator[Check]:
    """Hold bounds against the promise, against those of fewer runs, and against what tables are made of."""
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
    for name, found in stages(numbers).items():
        *_, published = found.values()
        words = f"{name}: {published:.2f} from what is published, {found[MEASURED]:.2f} from the measurements"
        yield Check(words, published <= found[MEASURED] + MARGIN)


def finding(numbers: dict[str, Any]) -> str:
    """Return how much post-processing hides at most, and what that does not say."""
    tables = stages(numbers)["TopDown, 9 areas"][TABLES]
    return (
        f"TopDown's tables of nine areas show {down(tables)} of epsilon 1 to {BUDGETS // PARTS[numbers['quick']]:,} "
        f"runs (one person moved, lower bound at 95%), so that post-processing hides at most {up(1 - tables)}. Where "
        "tables seem to show less, these attacks may see too little: that is no proof of safety."
    )


def table(numbers: dict[str, Any]) -> MarkdownTable:
    """Return what measurements and publications show, and what more runs and groups of people add."""
    rows = [(name, down(found[MEASURED]), down([*found.values()][-1])) for name, found in stages(numbers).items()]
    for leaves in (leaves for leaves in GROWING if shares(numbers, leaves=leaves)):
        by_size = grown(numbers, leaves)
        sizes, found = ", ".join(f"{size:,}" for size in by_size), map(np.median, by_size.values())
        rows.append((f"TopDown, {leaves} areas, {sizes} runs", "", ", ".join(map(down, found))))
        people = ", ".join(map(str, GROUPS))
        rows.append(
            (f"{leaves} areas, groups of {people} people", "", ", ".join(map(down, in_groups(numbers, leaves))))
        )
    return MarkdownTable(
        ("share of epsilon 1, a person", "measurements", "published"),
        rows,
        f"Each is a lower bound at {CUSTOMARY:.0%}, by itself. {violations(numbers['sound'])} of "
        f"{len(numbers['sound'])} audits of nine areas at confidence 1 - 1e-6 report a violation.",
    )


STYLES = dict(zip(TREES, SERIES, strict=False))


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw shares of the promise by runs, by epsilon, by group and by stage."""
    figure, (by_runs, by_epsilon, by_group, by_stage) = page(6.6, 2, 2)
    for leaves, (color, dashes, marker) in STYLES.items():
        style: dict[str, Any] = {"color": color, "linestyle": dashes, "marker": marker, "markersize": 4}
        if not shares(numbers, leaves=leaves):
            continue
        by_epsilon.plot(EPSILONS, by_budget(numbers, leaves), **style)
        if leaves in GROWING:
            found = grown(numbers, leaves)
            by_runs.plot(list(found), [np.median(each) for each in found.values()], **style)
            for size, each in found.items():
                by_runs.plot([size] * len(each), each, ".", color=color, markersize=3)
            by_group.plot(GROUPS, in_groups(numbers, leaves), **style)
    sizes = list(grown(numbers, 9))
    by_runs.set_xscale("log")
    by_runs.set_xticks(sizes, [f"{size:,}" for size in sizes])
    by_runs.minorticks_off()
    by_runs.set_xlabel("runs, over both databases (log scale)")
    by_runs.set_title("(a) TopDown's tables by runs, $\\epsilon$ = 1")
    budget_axis(by_epsilon, EPSILONS, "promise, epsilon")
    by_epsilon.set_title("(b) by promise")
    budget_axis(by_group, GROUPS, "people who move")
    by_group.set_title("(c) by group, $\\epsilon$ = 1")
    for ax in (by_runs, by_epsilon, by_group):
        ax.axhline(1, **PROMISE)
        ax.set_ylim(0, 1.05)
        ax.set_ylabel("lower bound (95%) / promise")
    rows = [(name, stage, value) for name, found in stages(numbers).items() for stage, value in found.items()]
    promise(by_stage)
    for at, (_, _, value) in enumerate(rows):
        bar(by_stage, at, value)
        column(by_stage, at, down(value), 34)
    name_rows(by_stage, [f"{name}: {WORDS.get(stage, stage)}" for name, stage, _ in rows], size=7.5)
    by_stage.set_xlim(0, 1.05)
    by_stage.set_xlabel("lower bound (95%) / promise")
    by_stage.set_title("(d) by stage, $\\epsilon$ = 1", x=-1.0)
    handles: list[Any] = [
        line_key(f"TopDown, {leaves} areas", color=color, linestyle=dashes, marker=marker, markersize=4)
        for leaves, (color, dashes, marker) in STYLES.items()
    ]
    handles += [
        line_key("promise", **PROMISE),
        line_key("(a), small: single audits", color=GRAY, marker=".", linestyle="none"),
    ]
    foot(figure, handles, ncols=3)
    return figure
