"""Known bugs of TopDown as a whole: two that show in the measurements, two only in the tables.

**Claim.** The budget's promise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bugs.bug import check_levels
from algorithms.noise import Rng
from algorithms.topdown.budget import Claim, Law
from algorithms.topdown.estimation.constraints import Constraint
from algorithms.topdown.measure import Key, Measurements
from algorithms.topdown.mechanism import TopDown
from algorithms.topdown.plan import Known, Plan
from audit.neighbors import NeighborPair

__all__ = ["MissingFactorTwo", "PrunedByTruth", "SilentTotals", "WrongLevelShare"]


Laws = list[tuple[NDArray[np.int64], Law]]


def _laws(mechanism: TopDown, promise: Claim, level: int, query: str) -> Laws:
    """Return the noise of a query, share by share, that another promise needs."""
    return Plan(mechanism.schema, mechanism.tree, replace(mechanism.budget, promise=promise)).laws(level, query)


class MissingFactorTwo(TopDown):
    """TopDown with noise for unbounded neighbors under a promise about bounded ones.

    **Bug.** Noise is scaled as if one answer of a query changed by 1, but replacing a person changes two.
    **True loss.** Twice the promise, for every query by itself and for all together.
    """

    def laws(self, level: int, query: str) -> Laws:
        """Return the noise of a query: areas, counted from the first of the level, and their law."""
        return _laws(self, replace(self.budget.promise, relation="add_remove"), level, query)


class WrongLevelShare(TopDown):
    """TopDown that divides its budget by the depth of the tree, and forgets that the root is a level too.

    **Bug.** Of J + 1 levels each has 1/J of the budget, not 1/(J + 1); other shares are too large in proportion.
    **True loss.** (J + 1)/J of the promise, for every level by itself, the root included, and for all together.
    """

    def __post_init__(self) -> None:
        check_levels(self.tree)
        super().__post_init__()

    def laws(self, level: int, query: str) -> Laws:
        """Return the noise of a query: areas, counted from the first of the level, and their law."""
        return _laws(self, self.claim.at(self.claim.budget * (self.tree.depth + 1) / self.tree.depth), level, query)


class _Leaking(TopDown, ABC):
    """TopDown whose measurement step passes a true table without noise, which the estimation uses as a constraint."""

    secret: ClassVar[str]  # name of the constraint

    def measure(
        self, histogram: ArrayLike, rng: Rng, *, size: int | None = None, only: Sequence[Key] | None = None
    ) -> Measurements:
        measured = super().measure(histogram, rng, size=size, only=only)
        return replace(measured, known={**measured.known, self.secret: self._truth(histogram)})

    def constraints(self, known: Known) -> tuple[Constraint, ...]:
        declared = super().constraints(known)
        return (*declared, self._bound(known[self.secret])) if self.secret in known else declared

    @abstractmethod
    def _truth(self, histogram: ArrayLike) -> NDArray[np.int64]: ...

    @abstractmethod
    def _bound(self, truth: NDArray[np.int64]) -> Constraint: ...


class PrunedByTruth(_Leaking):
    """TopDown that drops a cell from the problem of a family if the parent truly has nobody in it.

    **Bug.** The code reads the parent's true table, not its estimate: cells that are truly empty are always 0 in the
    parts. **True loss.** Infinite, in the tables alone: all measurements together keep the promise.
    """

    secret: ClassVar[str] = "cells that are empty"

    def _truth(self, histogram: ArrayLike) -> NDArray[np.int64]:
        empty: NDArray[np.int64] = (self.tables(self.check_histogram(histogram)) == 0).astype(np.int64)
        return empty[self.tree.parent]

    def _bound(self, truth: NDArray[np.int64]) -> Constraint:
        upper = np.where(truth, 0, np.inf)
        upper[0] = np.inf  # the root has no parent
        areas, lower = np.arange(self.tree.n_nodes), np.zeros(upper.shape)
        return Constraint.spread(self.secret, self.schema.query("detailed"), self.tree, areas, lower, upper)

    def support_masses(self, pair: NeighborPair) -> tuple[float, float]:
        """Return lower bounds on the probability of a person in a cell that the other database always leaves empty.

        Suppose that all people of a cell live in one area above the finest level. Then all areas beside its path from
        the root are truly empty in that cell, so their parts are dropped and the area gets the root's whole count. The
        root's count is at least 1 if its measurement is, given that the root is measured cell by cell only and has no
        other constraints. If the other database has nobody in that area, the area's parts are always 0 there, so these
        outputs are impossible on it. The bounds are 0 where the argument does not apply.
        """
        x, y = (self.tables(self.check_histogram(data)) for data in (pair.x, pair.y))
        return max(self._alone(x, y), default=0.0), max(self._alone(y, x), default=0.0)

    def _alone(self, here: NDArray[np.int64], other: NDArray[np.int64]) -> Iterator[float]:
        """Yield the probability of a positive root count, for each cell with all people in an area empty in `other`."""
        queries, leaves = dict(self.budget.measured(0)), self.tree.level(self.tree.depth)
        regular = self.tree.n_leaves == leaves.stop - leaves.start
        if self.invariants or self.bounds or not regular or list(queries) != ["detailed"]:
            return
        ((_, law),) = self.laws(0, "detailed")
        inner = slice(0, leaves.start)
        alone = (here[inner] == here[0]) & (here[inner] > 0) & (other[inner] == 0)
        for _, cell in np.argwhere(alone):
            yield float(law.sf(-int(here[0, cell])))


class SilentTotals(_Leaking):
    """TopDown that keeps the totals of the areas of level 1 as they are, which its promise does not mention.

    **Bug.** The Bureau also keeps the totals of states, but declares this invariant: neighbors must agree on it.
    **True loss.** Infinite, at every output, if two databases differ in such a total. Measurements keep the promise.
    """

    secret: ClassVar[str] = "totals of level 1"

    def _truth(self, histogram: ArrayLike) -> NDArray[np.int64]:
        totals: NDArray[np.int64] = self.tables(self.check_histogram(histogram)).sum(axis=1, keepdims=True)
        return totals[self.tree.level(1)]

    def _bound(self, truth: NDArray[np.int64]) -> Constraint:
        areas = np.arange(*self.tree.level(1).indices(self.tree.n_nodes))
        return Constraint.spread(self.secret, self.schema.query("total"), self.tree, areas, truth, truth)

    def support_masses(self, pair: NeighborPair) -> tuple[float, float]:
        """Return the probability of outputs impossible on the other database: 1 if a total differs, or 0."""
        apart = float(np.any(self._truth(pair.x) != self._truth(pair.y)))
        return apart, apart
