"""One release of many areas proves as much as many runs of one area, if the areas do not share the budget."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from audit import Canaries, NeighborPair, measure_loss, measure_loss_one_run
from audit.results.plots import BLUE, GRAY, PALE
from experiments.drawing import column, foot, name_rows, own_keys, page, promise
from experiments.experiment import Checks, Numbers, between, down, few_misses, near
from experiments.flaxman.audit import paths_only

AREAS, PEOPLE, FANOUT, LEVELS = 100_000, 100, 46, 3  # 46**3 = 97,336 leaves
SHARE = 0.05  # of ADPC's areas for which a guess is made: rare errors have larger losses
SEEDS, FEW_SEEDS = 100, 20  # FEW_SEEDS: for runs of RDPC, which take seconds each
COLUMNS = {"one_run": 38, "repeated": 80}  # positions of written medians, in points right of the panel
CONFIDENCE = 0.95  # of each bound, low enough to count misses
# Limits of the median of one release / budget: smallest for 100 seeds, smallest for 10 seeds, largest. The smallest
# are at least 3 standard errors below the medians of GDPC, which vary for one person at a small budget.
LIMITS = {
    ("GDPC", 0.025, 1): (0.45, 0.15, 1.0),
    ("GDPC", 0.025, 80): (0.98, 0.97, 1.0),
    ("GDPC", 0.1, 1): (0.87, 0.79, 1.0),
    ("GDPC", 0.1, 20): (0.98, 0.97, 1.0),
    ("GDPC", 1.0, 1): (0.984, 0.975, 1.0),
    ("GDPC", 1.0, 2): (0.98, 0.97, 1.0),
    ("ADPC", 0.1, 47): (0.65, 0.62, 0.75),
    ("RDPC", 0.1, 80): (0.23, 0.23, 0.26),
}
REFERENCE = {("GDPC", 0.1, 1): (0.0898, 0.002), ("GDPC", 1.0, 1): (0.989, 0.004)}  # medians of an earlier simulation
KINDS = {"one_run": ("one release of all areas", BLUE, "o"), "repeated": ("as many runs of one area", PALE, "s")}
CASES = tuple(LIMITS)  # mechanism, budget, group size


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit one release with each of 100 seeds (quick: 10), and many runs of one area 100 or 20 times (quick: once)."""
    tree = Hierarchy.regular(FANOUT, LEVELS)
    rows = []
    for root, (name, epsilon, people) in zip(np.random.SeedSequence(seed).spawn(len(CASES)), CASES, strict=True):
        counts = np.full(tree.n_leaves if name == "RDPC" else AREAS, PEOPLE)
        times = (10, 1) if quick else (SEEDS, FEW_SEEDS if name == "RDPC" else SEEDS)
        once, often = (part.spawn(number) for part, number in zip(root.spawn(2), times, strict=True))
        mechanism = RDPC(epsilon, tree) if name == "RDPC" else (GDPC if name == "GDPC" else ADPC)(epsilon)
        canaries, claim = Canaries(counts, people=people), mechanism.claim
        share = SHARE if name == "ADPC" else None
        repeated, pair = mechanism, NeighborPair.add_people(counts[:1], 0, people)
        if isinstance(mechanism, RDPC):  # the runs need only the path of the area and its siblings
            cut, near_path, (place,) = paths_only(mechanism.tree, counts, (0,))
            repeated, pair = RDPC(epsilon, cut), NeighborPair.add_people(near_path, place, people)
        row: dict[str, Any] = {"algorithm": name, "epsilon": epsilon, "people": people, "areas": counts.size}
        row["one_run"] = [
            measure_loss_one_run(
                mechanism, canaries, claim, share=share, confidence=CONFIDENCE, rng=rng
            ).measured.budget
            for rng in once
        ]
        options: dict[str, Any] = {"size": counts.size, "confidence": CONFIDENCE, "n_jobs": jobs}
        row["repeated"] = [measure_loss(repeated, pair, claim, rng=rng, **options).measured.budget for rng in often]
        rows.append(row)
    return {"rows": rows}


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        once, often = (np.array(row[kind]) / row["epsilon"] for kind in KINDS)
        case, full = (row["algorithm"], row["epsilon"], row["people"]), once.size >= SEEDS
        where, median = f"{case[0]} at {case[1]:g}, {_people(case[2])}", float(np.median(once))
        low, quick_low, high = LIMITS[case]
        yield between(f"{where}: one release, median / budget", median, low if full else quick_low, high)
        for kind, bounds in (("one release", once), ("repeated", often)):
            yield few_misses(f"{where}, {kind}", int(np.sum(bounds > 1)), bounds.size, CONFIDENCE)
        if case in REFERENCE:
            target, within = REFERENCE[case]
            words = f"{where}: one release, median bound"
            yield near(words, median * case[1], target, within if full else 5 * within)
        if case[0] == "RDPC":
            yield between(f"{where}: repeated, median / budget", float(np.median(often)), 0.7, 1.0)


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"


def facts(numbers: Numbers) -> dict[str, Any]:
    medians = {
        (row["algorithm"], f"{row['epsilon']:g}", str(row["people"])): [down(np.median(row[kind])) for kind in KINDS]
        for row in numbers["rows"]
    }
    alone, group, leaves = (
        medians[case][0] for case in (("GDPC", "1", "1"), ("GDPC", "0.1", "20"), ("RDPC", "0.1", "80"))
    )
    return {"alone": alone, "group": group, "leaves": leaves, "rows": [(*case, *own) for case, own in medians.items()]}


def draw(numbers: Numbers) -> Figure:
    rows = numbers["rows"]
    figure, (ax,) = page(1.4 + 0.4 * len(rows))
    promise(ax, label="promise")
    for place, row in enumerate(rows):
        for shift, (kind, (words, color, marker)) in zip((-0.16, 0.16), KINDS.items(), strict=True):
            low, middle, high = np.quantile(np.array(row[kind]) / row["epsilon"], [0.05, 0.5, 0.95])
            ax.plot([low, high], [place + shift] * 2, color=color, linewidth=2.5, alpha=0.5, solid_capstyle="butt")
            label = f"{words}: median, 5 to 95%" if place == 0 else None
            ax.plot(middle, place + shift, marker, color=color, markersize=5, label=label)
            column(ax, place, down(middle, 3), COLUMNS[kind])
        if row["algorithm"] == "RDPC":
            label = "RDPC's share of the leaf level"
            shared: dict[str, Any] = {"color": GRAY, "linewidth": 1.4, "linestyle": ":", "label": label}
            ax.plot([1 / (LEVELS + 1)] * 2, [place - 0.42, place + 0.42], **shared)
    name_rows(ax, [f"{row['algorithm']}, $\\epsilon$ = {row['epsilon']:g}, {_people(row['people'])}" for row in rows])
    ax.set_xlim(0, 1.05)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
    ax.set_xlabel("lower bound for one person added or removed / promise (95% confidence)")
    for points, words in zip(COLUMNS.values(), ("one\nrelease", "many\nruns"), strict=True):
        column(ax, -0.6, words, points, va="bottom")
    foot(figure, own_keys(ax), ncols=2)
    return figure
