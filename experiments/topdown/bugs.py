"""Four bugs in TopDown, two visible in measurements and two only in tables; and TopDown without a bug."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.bugs.systems.topdown import MissingFactorTwo, PrunedByTruth, SilentTotals, WrongLevelShare
from algorithms.hierarchy import Hierarchy
from algorithms.schema import Schema
from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from audit import ZCDP, Event, NeighborPair, PureDP
from audit.attacks.statistics import weighted_sum
from audit.events import ThresholdRule

FANOUT, DEPTH = 3, 2
TREE = Hierarchy.regular(FANOUT, DEPTH)
FIRST, LAST = (0, 0), (TREE.n_leaves - 1, 3)  # leaf and cell
SCHEMA = Schema({"sex": ("female", "male"), "age": ("17 and under", "18 and over")})
PURE, CONCENTRATED = PureDP(1.0, "replace_one"), ZCDP(0.5, "replace_one")

MEASUREMENTS, TABLES = "measurements", "tables"
COUNTS, WITNESS, HIDDEN, NEVER = "counts", "witness and counts", "hidden by post-processing", "nothing to find"


@dataclass(frozen=True)
class Case:
    """An audit of TopDown or of a bug: stage, pair, number of runs, and the expected evidence."""

    words: str
    kind: type[TopDown]
    promise: PureDP | ZCDP
    stage: str
    pair: str
    size: int
    expected: str

    @property
    def mechanism(self) -> TopDown:
        """The algorithm, with three levels of equal shares; each level measures all cells."""
        shares = [f"1/{DEPTH + 1}"] * (DEPTH + 1)
        budget = Budget(self.promise, shares, [{"detailed": 1}] * len(shares))
        return self.kind(SCHEMA, TREE, budget, solver="batched")


def cases() -> list[Case]:
    two, share, pruned, silent = MissingFactorTwo, WrongLevelShare, PrunedByTruth, SilentTotals
    factor, shares = "noise without the factor 2", "shares of 1/2 for three levels"
    return [
        Case(f"{factor}, geometric", two, PURE, MEASUREMENTS, "moved", 20_000, COUNTS),
        Case(f"{factor}, Gaussian", two, CONCENTRATED, MEASUREMENTS, "moved", 50_000, COUNTS),
        Case(f"{shares}, geometric", share, PURE, MEASUREMENTS, "moved", 200_000, COUNTS),
        Case(f"{shares}, Gaussian", share, CONCENTRATED, MEASUREMENTS, "moved", 100_000, COUNTS),
        Case("cells pruned by the true parent", pruned, PURE, TABLES, "rare", 2_000, WITNESS),
        Case("undeclared exact totals of level 1", silent, PURE, TABLES, "total", 100, WITNESS),
        Case(f"{factor}, geometric", two, PURE, TABLES, "moved", 50_000, HIDDEN),
        Case(f"{shares}, geometric", share, PURE, TABLES, "moved", 50_000, HIDDEN),
        Case("TopDown, geometric", TopDown, PURE, MEASUREMENTS, "moved", 50_000, NEVER),
        Case("TopDown, Gaussian", TopDown, CONCENTRATED, MEASUREMENTS, "moved", 100_000, NEVER),
        Case("TopDown, a person of a rare kind", TopDown, PURE, TABLES, "rare", 50_000, NEVER),
        Case("TopDown, the total of an area", TopDown, PURE, TABLES, "total", 50_000, NEVER),
    ]


def neighbors(name: str) -> NeighborPair:
    """Return a pair: a person is replaced by one in another area and cell, or the only one of a kind moves."""
    counts = 10 + np.arange(TREE.n_leaves * SCHEMA.cells).reshape(TREE.n_leaves, SCHEMA.cells) % 7
    if name != "rare":
        words = "a person replaced by one elsewhere, in another cell"
        return NeighborPair.move_people(counts, FIRST, LAST, label=words)
    cell = LAST[1]
    counts[:, cell] = 0
    counts[FIRST[0], cell] = 1
    return NeighborPair.move_people(counts, (FIRST[0], cell), LAST, label="the only person of a kind moves")


def total_of_first(pair: NeighborPair, leaves: int = FANOUT) -> Event:
    """Return the event that the total of the first districts (default: of a state) is that of `y` and not of `x`."""
    cells = [(leaf, cell) for leaf in range(leaves) for cell in range(SCHEMA.cells)]
    before, after = (float(data[:leaves].sum()) for data in (pair.x, pair.y))
    sign = after - before  # +1 or -1
    return Event(
        weighted_sum(cells, [0.0] * len(cells), [sign] * len(cells)),
        ThresholdRule(low=sign * before, high=sign * after),
    )
