"""The problem of one family: split the table of an area over its parts so that they fit what was measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Box", "Family", "Fit", "Groups", "LevelSolution", "Solution", "answer", "refines"]

Groups = NDArray[np.int64]
"""A query as the group that each cell falls into, shape (cells,): numbers 0, 1, ... without gaps."""
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
    """Tell whether every group of one query is within a group of another."""
    image = np.zeros(int(finer.max()) + 1, np.int64)
    image[finer] = coarser
    return bool((image[finer] == coarser).all())


@dataclass(frozen=True)
class Fit:
    """Noisy answers of one query for every part; of several runs where families of a level are side by side."""

    name: str
    groups: Groups
    answers: Real  # shape (parts, groups) or (runs, parts, groups); ignored where the weight is 0
    weights: Real  # shape (parts,): inverse variance of the noise, 0 where nothing was measured


@dataclass(frozen=True)
class Box:
    """Bounds on the answers of one query, part by part: ``lower <= answer <= upper``; also of several runs."""

    name: str
    groups: Groups
    lower: Real  # shape (parts, groups) or (runs, parts, groups); 0 where there is no bound
    upper: Real  # likewise; infinity where there is no bound, equal to `lower` where the answer is given
    labels: tuple[str, ...] = ()  # names of the groups, for messages; none: their numbers

    def of(self, areas: slice) -> Box:
        """Return the bounds of some parts."""
        return replace(self, lower=self.lower[areas], upper=self.upper[areas])


@dataclass(frozen=True)
class Family:
    """What is known of the parts of one area.

    The parts minimize the weighted sum of squares ``sum of w (answer - measured)^2`` over all fits, are not negative,
    keep all boxes, and add up to their parent.
    """

    parts: int
    cells: int
    fits: tuple[Fit, ...]
    boxes: tuple[Box, ...] = ()
    parent: NDArray[np.int64] | None = None  # shape (cells,); None for the root, which is one part without a parent
    margin: Groups | None = None  # query on which parts add up to it, coarser only in the failsafe; None: every cell
    slack: float | None = None  # with a margin: what |parent - sum of the parts| may add up to over all cells


@dataclass(frozen=True)
class Solution:
    """Tables of the parts, shape (parts, cells) and not negative, and how well they solve the problem."""

    tables: Real
    converged: bool  # whether the solver met its tolerance
    primal: float  # people by which constraints are missed at most
    dual: float  # what optimality is missed by at most: in the gradient, weights scaled so that the largest is 1
    iterations: int


class LevelSolution(NamedTuple):
    """The same of many families in many runs: tables of shape (runs, areas, cells), the rest by run and family."""

    tables: Real
    converged: NDArray[np.bool_]
    primal: Real
    dual: Real
    iterations: NDArray[np.int64]
