"""Exact losses of releases that change counts cell by cell, or tell one output from all others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from algorithms.flaxman import GDPC
from algorithms.noise.counts import ATOMS, Pair, leaf_counts
from audit.exact import LossDistribution, loss_from_logs

__all__ = [
    *("NO_LOSS", "Databases", "loss_of_cells", "loss_of_one_output", "loss_of_shift", "table_reach", "two_tables")
]

REACH = 50  # in units of 1 / epsilon: noise beyond it has probability below 2e-22

NO_LOSS = LossDistribution(np.zeros(1), np.zeros(1))


class Databases(NamedTuple):
    """Two databases and nothing else: what an exact loss needs to know of a pair of neighbors."""

    x: NDArray[Any]
    y: NDArray[Any]


def two_tables(pair: Pair) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts of both databases, shape (cells,) each, or say what is wrong with them."""
    x, y = leaf_counts(pair.x), leaf_counts(pair.y)
    if x.shape != y.shape:
        raise ValueError(f"the two databases must have the same cells, got {x.size} and {y.size}")
    return x, y


def table_reach(epsilon: float) -> int | None:
    """Return how far a table of noise of `epsilon` a step must reach; None where it would have too many entries."""
    reach = math.ceil(REACH / epsilon)
    return reach if 2 * reach < ATOMS else None


def loss_of_shift(epsilon: float, shift: float) -> LossDistribution | None:
    """Return the loss of a whole number with two-tailed geometric noise, which differs by `shift`, of either sign."""
    return GDPC(epsilon).exact_loss(Databases(np.zeros(1), np.abs(np.atleast_1d(shift))))


def loss_of_one_output(log_p: float, log_q: float) -> LossDistribution:
    """Return the loss where only one output can be told from all others, of these log-probabilities on `x` and `y`."""
    with np.errstate(divide="ignore"):
        other = np.log(-np.expm1([log_p, log_q]))
    return loss_from_logs(np.array([log_p, other[0]]), np.array([log_q, other[1]]))


def loss_of_cells(
    x: NDArray[np.int64],
    y: NDArray[np.int64],
    law: Callable[[NDArray[np.int64], int], NDArray[np.float64]],
    epsilon: float,
) -> LossDistribution | None:
    """Return the loss of two tables of independent cells, shape (cells,); None where a table of it would be too large.

    ``law(outputs, count)`` is the log-probability of each output, shape (m,), of a cell of that count; its tails fall
    by at least `epsilon` a step, in nats.
    """
    reach = table_reach(epsilon)
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
