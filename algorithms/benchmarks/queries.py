"""Answers to queries: what the benchmark mechanisms read, checked, and their runs in blocks and in distinct rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import TwoTailedGeometric

__all__ = ["AnswerPair", "check_answers", "check_epsilon", "check_generator", "check_pair", "chunks", "unique_rows"]

CHUNK = 2**17  # cells worked on at a time: what fits the processor's cache


class AnswerPair(Protocol):
    """Two databases, given by their answers to the same queries: what an exact loss needs to know of a pair."""

    @property
    def x(self) -> Any:
        """Answers on the first."""

    @property
    def y(self) -> Any:
        """Answers on the second."""


def check_epsilon(epsilon: float) -> float:
    """Return a privacy budget, or say what is wrong with it.

    Parameters
    ----------
    epsilon : float
        In nats, at least 1e-12 and finite.

    Returns
    -------
    float
        The same number.
    """
    return TwoTailedGeometric(epsilon).epsilon


def check_answers(queries: ArrayLike) -> NDArray[np.float64]:
    """Return the answers of one database as floats, or say what is wrong with them.

    Parameters
    ----------
    queries : array_like of float, shape (queries,)
        True answers; a single number is one query.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The same numbers.

    Raises
    ------
    TypeError
        If they are not real numbers.
    ValueError
        If they are no list, there are none, or one is not finite.
    """
    given = np.atleast_1d(np.asarray(queries))
    if given.dtype.kind not in "iuf":
        raise TypeError(f"queries must be answered by real numbers, got dtype {given.dtype}")
    if given.ndim != 1 or given.size == 0:
        raise ValueError(f"queries must be one answer each, at least one, got shape {given.shape}")
    if not np.isfinite(given).all():
        raise ValueError(f"queries must have finite answers, got {given[~np.isfinite(given)][0]}")
    return given.astype(np.float64)


def check_pair(pair: AnswerPair) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the answers of both databases, or say what is wrong with them.

    Parameters
    ----------
    pair : AnswerPair
        With answers `x` and `y`.

    Returns
    -------
    tuple of ndarray of float64, shape (queries,) each
        The answers on `x` and on `y`.

    Raises
    ------
    ValueError
        If the two databases do not answer the same number of queries.
    """
    x, y = check_answers(pair.x), check_answers(pair.y)
    if x.size != y.size:
        raise ValueError(f"the two databases must answer the same queries, got {x.size} and {y.size}")
    return x, y


def check_generator(rng: Any) -> np.random.Generator:
    """Return a source of randomness, or say that it is none.

    Parameters
    ----------
    rng : numpy.random.Generator
        The only kind taken: these mechanisms are for audits and have no secure mode.

    Returns
    -------
    numpy.random.Generator
        The same.

    Raises
    ------
    TypeError
        If it is anything else.
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy Generator, got {rng!r}")
    return rng


def chunks(size: int, cells: int) -> Iterator[slice]:
    """Cut runs into blocks that stay in the processor's cache.

    Parameters
    ----------
    size : int
        Runs in all.
    cells : int
        Numbers that one run takes.

    Yields
    ------
    slice
        Of consecutive runs.
    """
    rows = max(1, CHUNK // cells)
    for start in range(0, size, rows):
        yield slice(start, min(start + rows, size))


def unique_rows(codes: NDArray[np.generic]) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
    """Return the distinct rows of a table, and for each row which of them it is.

    Parameters
    ----------
    codes : ndarray, shape (runs, n)
        Of any type; compared byte by byte, which is twenty times faster than number by number.

    Returns
    -------
    tuple of ndarray, shape (m, n) and (runs,)
        Rows, and their indices.
    """
    table = np.ascontiguousarray(codes)
    _, first, which = np.unique(
        table.view(f"V{table.itemsize * table.shape[1]}").ravel(), return_index=True, return_inverse=True
    )
    return table[first], which
