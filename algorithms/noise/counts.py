"""Common code of mechanisms that add noise to counts: pairs of databases, their changes, and likelihoods by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.hierarchy import check_counts
from audit.claims import PureDP
from audit.exact import LossDistribution

__all__ = [
    "ATOMS",
    "CELLS",
    "DISJOINT",
    "Databases",
    "Pair",
    "PureBudget",
    "changes",
    "chunks",
    "integer_losses",
    "leaf_counts",
    "log_likelihood_of_cells",
]

CHUNK = 2**17  # cells processed at a time: they fit the processor's cache
ATOMS = 2**22  # largest support of a tabulated law
CELLS = 1000  # most changed counts whose joint law is tabulated
EXACT = 2**53  # whole numbers below this are exact in float64
DISJOINT = LossDistribution(np.empty(0), np.empty(0), 1.0, 1.0)  # no output is possible on both databases


class Pair(Protocol):
    """Two databases of counts: the part of a pair of neighbors that exact losses use."""

    @property
    def x(self) -> NDArray[np.int64]:
        """The first database."""
        ...

    @property
    def y(self) -> NDArray[np.int64]:
        """The second database."""
        ...


class Databases(NamedTuple):
    """Two databases, without a neighbor relation or label."""

    x: NDArray[Any]
    y: NDArray[Any]


class PureBudget:
    """A mechanism that promises pure DP with `epsilon`, its budget in nats, when one person is added or removed."""

    epsilon: float

    @property
    def claim(self) -> PureDP:
        """Promise of the algorithm."""
        return PureDP(self.epsilon)


def leaf_counts(counts: ArrayLike) -> NDArray[np.int64]:
    """Return the checked counts of one database as int64, shape (leaves,)."""
    array = np.atleast_1d(np.asarray(counts))
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"counts must be one entry for each leaf, got shape {array.shape}")
    return check_counts(array)


def changes(x: NDArray[Any], y: NDArray[Any]) -> list[int]:
    """Return the absolute difference, in people, of each count that changes."""
    if x.shape != y.shape:
        raise ValueError(f"the two databases must have the same leaves, got {x.size} and {y.size}")
    differences = np.abs(y - x)
    return [int(people) for people in differences[differences > 0]]


def integer_losses(
    shifts: NDArray[np.float64], losses: Callable[[list[int]], list[LossDistribution] | None]
) -> list[LossDistribution] | None:
    """Return the losses of values with integer noise; values that differ by a fraction have no output in common."""
    if (shifts != np.rint(shifts)).any():
        return [DISJOINT]
    return losses([int(shift) for shift in shifts]) if shifts.max() < EXACT else None


def log_likelihood_of_cells(
    outputs: ArrayLike,
    counts: ArrayLike,
    log_law: Callable[[NDArray[np.float64], NDArray[np.int64]], NDArray[np.float64]],
    noun: str = "leaves",
) -> NDArray[np.float64]:
    """Add up the log-probabilities of the cells of each output, shape (runs,), without a copy of all outputs."""
    exact, array = leaf_counts(counts), np.asarray(outputs)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"outputs must be numbers, got dtype {array.dtype}")
    if array.ndim != 2 or array.shape[1] != exact.size:
        raise ValueError(f"outputs must have one column for each of {exact.size} {noun}, got shape {array.shape}")
    total = np.empty(len(array))
    for rows in chunks(len(array), exact.size):
        total[rows] = log_law(array[rows].astype(np.float64), exact).sum(axis=1)
    return total


def chunks(size: int, cells: int, most: int | None = None) -> Iterator[slice]:
    """Cut `size` runs of `cells` counts into pieces of at most `most` counts, by default as many as fit the cache."""
    rows = max(1, (most or CHUNK) // cells)
    for start in range(0, size, rows):
        yield slice(start, min(start + rows, size))
