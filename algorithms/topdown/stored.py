"""The measurements of a release, level by level and in pieces, stored on disk.

Noise is drawn in the same order as in `algorithms.topdown.measure` for one run: the same seed gives the same answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import Rng, add_noise
from algorithms.noise.drawing import draws_at_a_time
from algorithms.release.spilled import LEAVES, Spilled, pieces
from algorithms.schema import DETAILED, Query
from algorithms.topdown.estimate import Outcome, Part, apply_failsafe_gaps, check_kept, stored_tables
from algorithms.topdown.estimation.family import answer
from algorithms.topdown.measure import Key, known_answers, noise_options
from algorithms.topdown.plan import Known, Plan

__all__ = ["Stored", "StoredTables", "store", "stored", "whole_table"]


@dataclass(frozen=True, eq=False)
class Stored:
    """Noisy answers of a query in all areas of a level, on disk."""

    variance: NDArray[np.float64]  # as in `Measured`
    plan: Plan
    key: Key
    spilled: Spilled

    def of(self, areas: slice) -> NDArray[np.int64]:
        """Return the answers in some areas, shape (areas, groups): 0 where unmeasured."""
        (level, name), groups = self.key, self.plan.schema.query(self.key[1]).size
        answers = np.zeros((areas.stop - areas.start, groups), np.int64)
        for number, (places, _) in enumerate(self.plan.laws(level, name)):
            first, stop = np.searchsorted(places, (areas.start, areas.stop))
            numbers = self.spilled.read((self.key, number), int(first) * groups, int(stop) * groups)
            answers[places[first:stop] - areas.start] = numbers.reshape(-1, groups)
        return answers


def store(plan: Plan, histogram: ArrayLike | Spilled, spilled: Spilled) -> Spilled:
    """Store a histogram, shape (leaves, cells), with its leaves in order; return the store. A stored one is kept."""
    leaves, cells = plan.tree.n_leaves, plan.schema.cells
    if isinstance(histogram, Spilled):
        if (size := histogram.size(LEAVES)) != leaves * cells:
            raise ValueError(f"histogram must have {leaves * cells:,} counts, leaves x cells, got {size:,}")
        return histogram
    counts, order = plan.check_histogram(histogram), _order(plan)
    for piece in pieces(leaves, cells):
        spilled.append(LEAVES, counts[order[piece]])
    return spilled


def stored(plan: Plan, spilled: Spilled, rng: Rng) -> tuple[Known, Iterator[dict[Key, Stored]]]:
    """Return the answers of the invariants, and an iterator that draws and stores measurements level by level."""

    def answers(query: Query) -> NDArray[np.int64]:
        parts = [answer(query.groups, _leaves(plan, spilled, piece)) for piece in _pieces(plan)]
        found = np.concatenate(parts)
        found[_order(plan)] = found.copy()
        return found

    return known_answers(plan, answers), _stored(plan, spilled, rng)


def _stored(plan: Plan, spilled: Spilled, rng: Rng) -> Iterator[dict[Key, Stored]]:
    for level in range(plan.tree.depth + 1):
        _store_answers(plan, spilled, level)
        for query in plan.queries[level]:
            options = noise_options(plan, level, query.name)
            for number, (_, law) in enumerate(plan.laws(level, query.name)):
                exact, noisy = ("exact", (level, query.name), number), ((level, query.name), number)
                for piece in pieces(spilled.size(exact), 1, draws_at_a_time(rng, plan.n_jobs)):
                    spilled.append(
                        noisy, add_noise(spilled.read(exact, piece.start, piece.stop), law, None, rng, **options)
                    )
                spilled.drop(exact)
        keys = [(level, query.name) for query in plan.queries[level]]
        yield {key: Stored(plan.variances(*key), plan, key, spilled) for key in keys}


def _store_answers(plan: Plan, spilled: Spilled, level: int) -> None:
    """Store the exact answers of a level, grouped by law of noise."""
    first = 0
    for table in _tables(plan, spilled, level):
        for query in plan.queries[level]:
            answers = table if query.name == DETAILED else answer(query.groups, table)
            for number, (places, _) in enumerate(plan.laws(level, query.name)):
                inside = places[slice(*np.searchsorted(places, (first, first + len(table))))]
                spilled.append(("exact", (level, query.name), number), answers[inside - first])
        first += len(table)


def _tables(plan: Plan, spilled: Spilled, level: int) -> Iterator[NDArray[np.int64]]:
    """Yield the exact tables of the areas of a level, some at a time: sums over consecutive leaves."""
    owners = plan.tree.ancestors(level)[_order(plan)] - plan.tree.level(level).start  # below 0: a leaf above the level
    open_area, last = np.zeros((0, plan.schema.cells), np.int64), -1
    for piece in _pieces(plan):
        below = owners[piece] >= 0
        own = owners[piece][below]
        starts = np.flatnonzero(np.diff(own, prepend=-1))
        if not starts.size:
            continue
        sums = np.add.reduceat(_leaves(plan, spilled, piece)[below], starts, axis=0)
        if own[0] == last:
            sums[0] += open_area[0]
        elif last >= 0:
            yield open_area
        yield sums[:-1]
        open_area, last = sums[-1:], int(own[-1])
    yield open_area


class StoredTables:
    """Tables of all areas: estimates on disk, and in memory the changes by failsafes of lower levels."""

    def __init__(self, plan: Plan, known: Known, spilled: Spilled) -> None:
        self.plan, self.known, self.spilled = plan, known, spilled
        self.outcome = Outcome(routes={})
        self.root = np.zeros(plan.schema.cells, np.int64)  # the table of all areas together
        self._changes: dict[tuple[int, int], NDArray[np.int64]] = defaultdict(
            lambda: np.zeros(plan.schema.cells, np.int64)
        )

    def add(self, part: Part) -> None:
        """Add an estimated part, in the order of the levels; its tables are already on disk."""
        self.outcome = self.outcome.and_of(part)
        if part.level == 0:
            self.root += part.tables[0, 0]
        self.root += sum(gap for _, _, gap in part.gaps)
        apply_failsafe_gaps(self.plan.tree, self._changes, part)

    @property
    def people(self) -> int:
        """Number of records."""
        return int(self.root.sum())

    def parts(self, *, checked: bool = False) -> Iterator[tuple[int, slice, NDArray[np.int64]]]:
        """Yield level, nodes and tables, shape (areas, cells), of some areas at a time, with `checked` constraints."""
        tree, constraints = self.plan.tree, self.plan.constraints(self.known) if checked else ()
        for level in range(tree.depth + 1):
            first, stop = tree.offsets[level : level + 2].tolist()
            for piece in pieces(stop - first, self.plan.schema.cells):
                nodes = slice(first + piece.start, first + piece.stop)
                tables = stored_tables(self.plan, self.spilled, level, piece)
                for node in range(nodes.start, nodes.stop):
                    if (0, node) in self._changes:
                        tables[0, node - nodes.start] += self._changes[0, node]
                check_kept(self.plan, constraints, tables, nodes)
                yield level, nodes, tables[0]


def whole_table(plan: Plan, spilled: Spilled) -> NDArray[np.int64]:
    """Return the exact table of all areas together, shape (cells,)."""
    return sum(
        (_leaves(plan, spilled, piece).sum(axis=0) for piece in _pieces(plan)), np.zeros(plan.schema.cells, np.int64)
    )


def _leaves(plan: Plan, spilled: Spilled, piece: slice) -> NDArray[np.int64]:
    cells = plan.schema.cells
    return spilled.read(LEAVES, piece.start * cells, piece.stop * cells).reshape(-1, cells)


def _pieces(plan: Plan) -> Iterator[slice]:
    return pieces(plan.tree.n_leaves, plan.schema.cells)


def _order(plan: Plan) -> NDArray[np.int64]:
    """Return the order of leaves in which the leaves of each area, at every level, are consecutive."""
    tree = plan.tree
    return np.lexsort([tree.ancestors(level) for level in range(tree.depth, 0, -1)])
