"""The problem of one family: split the table of an area over its parts, with the best fit to the measurements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Box", "Family", "Fit", "Groups", "LevelSolution", "Solution", "answer", "refines"]

Groups = NDArray[np.int64]
"""A query as the group of each cell, shape (cells,): numbers 0, 1, ... without gaps."""
Real = NDArray[np.float64]
Number = TypeVar("Number", np.int64, np.float64)


def answer(groups: Groups, tables: NDArray[Number]) -> NDArray[Number]:
    """Return the exact answers of a query to tables, shape (..., cells): the sum of each group, shape (..., groups)."""
    if groups.max() == 0:
        total: NDArray[Number] = tables.sum(axis=-1, keepdims=True)
        return total
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(int(groups.max()) + 1))
    sums: NDArray[Number] = np.add.reduceat(tables[..., order], starts, axis=-1)
    return sums


def refines(finer: Groups, coarser: Groups) -> bool:
    """Return whether every group of one query is within a group of another."""
    image = np.zeros(int(finer.max()) + 1, np.int64)
    image[finer] = coarser
    return bool((image[finer] == coarser).all())


@dataclass(frozen=True)
class Fit:
    """Noisy answers of one query for every part; for a whole level also with an axis of runs."""

    name: str
    groups: Groups
    answers: Real  # shape (parts, groups) or (runs, parts, groups); ignored where the weight is 0
    weights: Real  # shape (parts,): inverse variance of the noise, 0 if not measured


@dataclass(frozen=True)
class Box:
    """Bounds on the answers of one query for every part, ``lower <= answer <= upper``; may have an axis of runs."""

    name: str
    groups: Groups
    lower: Real  # shape (parts, groups) or (runs, parts, groups); 0 if there is no bound
    upper: Real  # same shape; infinity if there is no bound, equal to `lower` if the answer is known
    labels: tuple[str, ...] = ()  # names of the groups, for messages; none: their numbers

    def of(self, areas: slice) -> Box:
        """Return the bounds of some parts."""
        return replace(self, lower=self.lower[areas], upper=self.upper[areas])


@dataclass(frozen=True)
class Family:
    """Measurements and constraints of the parts of one area.

    The tables of the parts minimize the weighted sum of squares ``sum of w (answer - measured)^2`` over all fits, are
    not negative, keep all boxes, and add up to their parent.
    """

    parts: int
    cells: int
    fits: tuple[Fit, ...]
    boxes: tuple[Box, ...] = ()
    parent: NDArray[np.int64] | None = None  # shape (cells,); None for the root, which is one part without a parent
    margin: Groups | None = None  # query on which parts add up to the parent, for the failsafe; None: every cell
    slack: float | None = None  # with a margin: largest sum over cells of |parent - sum of the parts|


@dataclass(frozen=True)
class Solution:
    """Nonnegative tables of the parts, shape (parts, cells), and the residuals of the solution."""

    tables: Real
    converged: bool  # whether the solver met its tolerance
    primal: float  # largest violation of a constraint, in people
    dual: float  # largest violation of optimality, in the gradient, with weights scaled so that the largest is 1
    iterations: int


class LevelSolution(NamedTuple):
    """Solutions of many families in many runs: tables of shape (runs, areas, cells), the rest by run and family."""

    tables: Real
    converged: NDArray[np.bool_]
    primal: Real
    dual: Real
    iterations: NDArray[np.int64]
