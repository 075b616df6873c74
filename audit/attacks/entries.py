"""What may be looked at in an output: entries that change or move, alone and together, and likelihood ratios."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.events import Statistic, agreement, cell, distance_from, sum_of_entries, weighted_sum
from audit.neighbors import NeighborPair

__all__ = ["Moments", "changed_cells", "entries_to_learn", "likelihood_ratio", "moved_cells", "other_moved_cells"]

Floats = NDArray[np.float64]

CLEARLY = 5.0  # standard errors beyond which a mean has moved
INFINITE = 1e100  # what stands for infinity in a mean, so that its square is finite
FEW_CELLS, MOST_TO_LEARN = 32, 16  # entries that a classifier gets: all of so few, else those that move most
MOST_CELLS = 8  # coordinates of an output that are searched, singly and jointly

LIKELIHOOD_RATIO = "log-likelihood ratio of y over x"


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of every entry of the outputs on one database, each of shape (cells,)."""

    runs: int
    mean: Floats
    sd: Floats

    @classmethod
    def of(cls, blocks: Iterable[Floats]) -> Moments:
        """Add up blocks of what `reduce` kept, as they come: each is as large as an output."""
        runs, total, squares = functools.reduce(np.add, blocks)
        mean = total / runs
        return cls(int(runs[0]), mean, np.sqrt(np.maximum(squares / runs - mean**2, 0.0)))

    @staticmethod
    def reducer(center: Floats) -> Callable[[NDArray[Any]], Floats]:
        """Return what keeps the runs, sums and sums of squares about `center` of a block, shape (3, cells)."""

        def reduce(outputs: NDArray[Any]) -> Floats:
            flat = outputs.reshape(len(outputs), -1) - center
            np.clip(flat, -INFINITE, INFINITE, out=flat)
            return np.array([np.full(flat.shape[1], float(len(flat))), flat.sum(axis=0), np.square(flat).sum(axis=0)])

        return reduce


def changed_cells(pair: NeighborPair, shape: tuple[int, ...]) -> tuple[Statistic, ...] | None:
    """Return statistics of the entries that a pair changes.

    Parameters
    ----------
    pair : NeighborPair
        The two databases.
    shape : tuple of int
        Of one output.

    Returns
    -------
    tuple of Statistic or None
        Each entry, the most changed first, and several jointly; None where outputs are not shaped like the counts.
    """
    if math.prod(shape) == 1:
        return (cell(*(0,) * len(shape)),)
    if not _is_like(pair, shape):
        return None
    change = pair.y.astype(float) - pair.x
    largest = np.argsort(-np.abs(change), axis=None, kind="stable")[:MOST_CELLS]
    where = [tuple(map(int, index)) for index in zip(*np.unravel_index(largest, shape), strict=True) if change[index]]
    if not where:
        return None
    middles = [float(pair.x[index]) + change[index] / 2 for index in where]
    changes = [float(change[index]) for index in where]
    found = _single_and_joint(where, middles, [float(np.sign(one)) for one in changes], changes)
    return (*found, sum_of_entries()) if change.sum() != 0 else found


def moved_cells(shape: tuple[int, ...], center: Floats, x: Moments, y: Moments) -> tuple[Statistic, ...]:
    """Return statistics of the entries whose mean moves most from `x` to `y`, in standard errors.

    Parameters
    ----------
    shape : tuple of int
        Of one output.
    center : ndarray of float, shape (cells,)
        What the moments are about.
    x, y : Moments
        Of the outputs on either database.

    Returns
    -------
    tuple of Statistic
        Each of those entries, and several jointly.
    """
    shift, scale, best, moved = _movers(x, y)
    clear = best[moved > CLEARLY]
    if clear.size == 0:
        clear = best[:3]
    where = [tuple(map(int, np.unravel_index(index, shape))) for index in clear]
    middles = [float(center[index] + (x.mean[index] + y.mean[index]) / 2) for index in clear]
    signs = [float(np.sign(shift[index]) or 1.0) / float(scale[index] or 1.0) for index in clear]
    noise = np.where(scale[clear] > 0, scale[clear], 1.0)
    weights = shift[clear] / noise**2
    weights /= np.abs(weights * noise).max() or 1.0  # scores as large as their noise, whatever outputs are counted in
    return _single_and_joint(where, middles, signs, weights.tolist())


def other_moved_cells(
    shape: tuple[int, ...], x: Moments, y: Moments, known: Sequence[Statistic]
) -> tuple[Statistic, ...]:
    """Return statistics of single entries whose mean clearly moves from `x` to `y` and that are not known to.

    Parameters
    ----------
    shape : tuple of int
        Of one output.
    x, y : Moments
        Of the outputs on either database.
    known : sequence of Statistic
        What is looked at anyway.

    Returns
    -------
    tuple of Statistic
        None of `known` among them; empty where nothing else moves.
    """
    _, _, best, moved = _movers(x, y, MOST_CELLS + len(known))
    found = [cell(*map(int, np.unravel_index(index, shape))) for index in best[moved > CLEARLY]]
    names = {statistic.name for statistic in known}
    return tuple(statistic for statistic in found if statistic.name not in names)[:MOST_CELLS]


def _movers(x: Moments, y: Moments, most: int = MOST_CELLS) -> tuple[Floats, Floats, NDArray[np.intp], Floats]:
    """Return the shift and scale of every entry, which of them move most, and those by how many standard errors."""
    shift = y.mean - x.mean
    scale = np.sqrt((x.sd**2 + y.sd**2) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(shift == 0, 0.0, np.abs(shift) / (scale * math.sqrt(1 / x.runs + 1 / y.runs)))
    best = np.argsort(-moved, kind="stable")[:most]
    return shift, scale, best, moved[best]


def entries_to_learn(pair: NeighborPair, shape: tuple[int, ...], x: Moments, y: Moments) -> NDArray[np.intp]:
    """Return the entries of an output that a classifier should look at.

    Parameters
    ----------
    pair : NeighborPair
        The two databases.
    shape : tuple of int
        Of one output.
    x, y : Moments
        Of the outputs on either database.

    Returns
    -------
    ndarray of int, shape (entries,)
        Their places in a flattened output: all if there are few, else what changes or moves most.
    """
    if math.prod(shape) <= FEW_CELLS:
        return np.arange(math.prod(shape))
    best = _movers(x, y, MOST_TO_LEARN)[2]
    if _is_like(pair, shape):
        change = np.abs(pair.y.astype(np.float64) - pair.x).reshape(-1)
        largest = np.argsort(-change, kind="stable")[:MOST_TO_LEARN]
        best = np.concatenate([largest[change[largest] > 0], best])
    return np.unique(best)


def _is_like(pair: NeighborPair, shape: tuple[int, ...]) -> bool:
    """Tell whether both databases are finite numbers in the shape of an output."""
    return all(
        isinstance(data, np.ndarray)
        and data.shape == shape
        and data.dtype.kind in "iuf"
        and bool(np.isfinite(data).all())
        for data in (pair.x, pair.y)
    )


def likelihood_ratio(
    log_likelihood: Callable[[NDArray[Any], Any], NDArray[Any]], pair: NeighborPair, *, entrywise: bool = False
) -> Statistic:
    """Return the statistic that no other surpasses: the likelihood ratio of `y` over `x`, as the mechanism knows it.

    Parameters
    ----------
    log_likelihood : callable
        Takes outputs, shape (runs, *output), and a database; returns one number a run.
    pair : NeighborPair
        The two databases.
    entrywise : bool
        Whether each entry of an output depends on its own entry of the data alone: then those that are the same on
        both databases cancel, and are left out.

    Returns
    -------
    Statistic
        Infinite where one database only can give the output, and 0 where neither can.
    """
    changed = np.flatnonzero(pair.x != pair.y) if entrywise else slice(None)

    def score(outputs: NDArray[Any]) -> Floats:
        seen = outputs.reshape(len(outputs), -1)[:, changed] if entrywise else outputs
        data = (pair.x.reshape(-1)[changed], pair.y.reshape(-1)[changed]) if entrywise else (pair.x, pair.y)
        on_x, on_y = (np.asarray(log_likelihood(seen, one), np.float64) for one in data)
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(on_x) & np.isneginf(on_y), 0.0, on_y - on_x)

    return Statistic(LIKELIHOOD_RATIO, score, log_ratio=True)


def _single_and_joint(
    where: list[tuple[int, ...]], middles: list[float], signs: list[float], weights: list[float]
) -> tuple[Statistic, ...]:
    """Return single entries, then several together: those that all move, the sum, and the largest one both ways."""
    joint = [agreement(where[:n], middles[:n], signs[:n]) for n in range(2, len(where) + 1)]
    if len(where) > 1:
        joint.append(weighted_sum(where, middles, weights))
    return (*(cell(*index) for index in where), *joint, distance_from(where[0], middles[0]))
