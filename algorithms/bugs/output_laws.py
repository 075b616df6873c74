"""Exact losses of releases that change counts cell by cell, or tell one output from all others."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.flaxman import GDPC
from algorithms.noise.counts import Pair, leaf_counts
from audit.exact import LossDistribution, loss_from_logs

__all__ = [
    "DISJOINT",
    "NO_LOSS",
    "Databases",
    "loss_of_cells",
    "loss_of_one_output",
    "loss_of_shift",
    "table_reach",
    "two_tables",
]

CellLaw = Callable[[NDArray[np.int64], int], NDArray[np.float64]]

REACH = 50  # in units of 1 / epsilon: noise beyond it has probability below 2e-22
ATOMS = 2**22  # largest support on which an exact law is tabulated

NO_LOSS = LossDistribution(np.zeros(1), np.zeros(1))
DISJOINT = LossDistribution(np.empty(0), np.empty(0), 1.0, 1.0)  # no output is possible on both databases


@dataclass(frozen=True, eq=False)
class Databases:
    """Two databases and nothing else: what an exact loss needs to know of a pair of neighbors.

    Attributes
    ----------
    x, y : ndarray
        The databases.
    """

    x: NDArray[Any]
    y: NDArray[Any]


def two_tables(pair: Pair) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts of both databases, or say what is wrong with them.

    Parameters
    ----------
    pair : Pair
        Two databases of counts.

    Returns
    -------
    tuple of ndarray of int64, shape (cells,) each
        The counts.

    Raises
    ------
    ValueError
        If they do not have the same cells, or are not counts.
    TypeError
        If they are not numbers.
    """
    x, y = leaf_counts(pair.x), leaf_counts(pair.y)
    if x.shape != y.shape:
        raise ValueError(f"the two databases must have the same cells, got {x.size} and {y.size}")
    return x, y


def table_reach(epsilon: float) -> int | None:
    """Return how far a table of geometric noise must reach, or None where it would have too many entries.

    Parameters
    ----------
    epsilon : float
        Of the noise, in nats a step.

    Returns
    -------
    int or None
        Steps to either side of 0; the probability beyond is below 2e-22.
    """
    reach = math.ceil(REACH / epsilon)
    return reach if 2 * reach < ATOMS else None


def loss_of_shift(epsilon: float, shift: float) -> LossDistribution | None:
    """Return the loss of a whole number with two-tailed geometric noise that differs by `shift`.

    Parameters
    ----------
    epsilon : float
        Of the noise, in nats a step.
    shift : float
        Difference of the number between the databases: whole, of either sign.

    Returns
    -------
    LossDistribution or None
        None where the table would be too large.
    """
    return GDPC(epsilon).exact_loss(Databases(np.zeros(1), np.abs(np.atleast_1d(shift))))


def loss_of_one_output(log_p: float, log_q: float) -> LossDistribution:
    """Return the loss where all that can be told is whether one output came or another.

    Parameters
    ----------
    log_p, log_q : float
        Log-probability of that output on the first and on the second database.

    Returns
    -------
    LossDistribution
        Of two outcomes.
    """
    with np.errstate(divide="ignore"):
        other = np.log(-np.expm1([log_p, log_q]))
    return loss_from_logs(np.array([log_p, other[0]]), np.array([log_q, other[1]]))


def loss_of_cells(pair: Pair, law: CellLaw, epsilon: float) -> LossDistribution | None:
    """Return the loss of a table whose cells are independent, each with a law of its own count alone.

    Parameters
    ----------
    pair : Pair
        Two databases of counts.
    law : callable
        ``law(outputs, count)`` is the log-probability of each output, shape (m,), of a cell of that count; its tails
        fall by at least `epsilon` a step.
    epsilon : float
        In nats a step.

    Returns
    -------
    LossDistribution or None
        None where a table of it would be too large.

    Raises
    ------
    ValueError
        If the two databases do not have the same cells.
    """
    (x, y), reach = two_tables(pair), table_reach(epsilon)
    total: LossDistribution = NO_LOSS
    for first, second in zip(x[x != y].tolist(), y[x != y].tolist(), strict=True):
        if reach is None or abs(first - second) + 2 * reach > ATOMS:
            return None
        outputs = np.arange(min(first, second) - reach, max(first, second) + reach + 1)
        cell = loss_from_logs(law(outputs, first), law(outputs, second))
        if total.loss.size * cell.loss.size > ATOMS:
            return None
        total = total.compose(cell)
    return total
