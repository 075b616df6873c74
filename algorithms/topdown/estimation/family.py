"""The problem of one family: split the table of an area over its parts so that they fit what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Box", "Family", "Fit", "Groups", "Joint", "Solution", "answer", "refines"]

Groups = NDArray[np.int64]
"""A query as the group that each cell falls into, shape (cells,): numbers 0, 1, ... without gaps."""
Real = NDArray[np.float64]
Number = TypeVar("Number", np.int64, np.float64)


def answer(groups: Groups, tables: NDArray[Number]) -> NDArray[Number]:
    """Return the exact answers of a query to tables, shape (..., cells): the sum of each group, shape (..., groups).

    Examples
    --------
    >>> answer(np.array([0, 0, 1]), np.array([[5, 7, 1], [0, 2, 2]]))
    array([[12,  1],
           [ 2,  2]])
    """
    if groups.max() == 0:
        total: NDArray[Number] = tables.sum(axis=-1, keepdims=True)
        return total
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(int(groups.max()) + 1))
    sums: NDArray[Number] = np.add.reduceat(tables[..., order], starts, axis=-1)
    return sums


def refines(finer: Groups, coarser: Groups) -> bool:
    """Tell whether every group of one query is within a group of another.

    Examples
    --------
    >>> refines(np.array([0, 1, 2]), np.array([0, 0, 1])), refines(np.array([0, 0, 1]), np.array([0, 1, 1]))
    (True, False)
    """
    image = np.zeros(int(finer.max()) + 1, np.int64)
    image[finer] = coarser
    return bool((image[finer] == coarser).all())


@dataclass(frozen=True)
class Fit:
    """Noisy answers of one query for every part.

    Attributes
    ----------
    name : str
        Of the query.
    groups : ndarray of int, shape (cells,)
        The query.
    answers : ndarray of float, shape (parts, groups)
        What was measured.
    weights : ndarray of float, shape (parts,)
        Inverse variance of the noise; 0 where nothing was measured.
    """

    name: str
    groups: Groups
    answers: Real
    weights: Real


@dataclass(frozen=True)
class Box:
    """Bounds on the answers of one query, part by part: ``lower <= answer <= upper``.

    Attributes
    ----------
    name : str
        What the bounds say, for messages.
    groups : ndarray of int, shape (cells,)
        The query.
    lower, upper : ndarray of float, shape (parts, groups)
        0 and infinity where there is no bound; equal where the answer is given.
    labels : tuple of str
        Names of the groups, for messages; none: their numbers.
    """

    name: str
    groups: Groups
    lower: Real
    upper: Real
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Joint:
    """A given total of several parts together.

    Attributes
    ----------
    name : str
        What the total is of, for messages.
    members : ndarray of bool, shape (parts,)
        Which parts.
    total : int
        People in them.
    """

    name: str
    members: NDArray[np.bool_]
    total: int


@dataclass(frozen=True)
class Family:
    """What is known of the parts of one area.

    The parts minimize the weighted sum of squares ``sum of w (answer - measured)^2`` over all fits, are not negative,
    keep all boxes and joint totals, and add up to their parent.

    Attributes
    ----------
    parts, cells : int
        Shape of the tables wanted.
    fits : tuple of Fit
        Measurements.
    boxes : tuple of Box
        Bounds.
    joints : tuple of Joint
        Totals of several parts.
    parent : ndarray of int, shape (cells,), or None
        Table that the parts add up to; None for the root, which is one part without a parent.
    margin : ndarray of int, shape (cells,), or None
        Query on which they add up to it; None for every cell by itself. Coarser only in the failsafe.
    slack : float or None
        With a margin: the most that ``|parent - sum of the parts|`` may add up to over all cells.
    """

    parts: int
    cells: int
    fits: tuple[Fit, ...]
    boxes: tuple[Box, ...] = ()
    joints: tuple[Joint, ...] = ()
    parent: NDArray[np.int64] | None = None
    margin: Groups | None = None
    slack: float | None = None

    def objective(self, tables: Real) -> float:
        """Return the weighted sum of squares of tables, shape (parts, cells)."""
        squares = (fit.weights @ np.sum((answer(fit.groups, tables) - fit.answers) ** 2, axis=1) for fit in self.fits)
        return float(sum(squares))


@dataclass(frozen=True)
class Solution:
    """Tables of the parts, and how well they solve the problem.

    Attributes
    ----------
    tables : ndarray of float, shape (parts, cells)
        Not negative.
    converged : bool
        Whether the solver met its tolerance.
    primal, dual : float
        Residuals: by how much constraints (in people) and optimality (in the gradient, weights scaled so that the
        largest is 1) are missed at most.
    iterations : int
        Steps taken.
    """

    tables: Real
    converged: bool
    primal: float
    dual: float
    iterations: int
