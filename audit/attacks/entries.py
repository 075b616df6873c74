"""The attack on entries of an output, singly and jointly: those that the pair changes, and those whose mean moves."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import Moments, changed_entries, explore, index_of, movers
from audit.attacks.protocol import Exploration
from audit.attacks.statistics import agreement, distance_from, sum_of_entries, weighted_sum
from audit.events import Statistic, cell
from audit.neighbors import NeighborPair

__all__ = ["candidates"]

Floats = NDArray[np.float64]
Index = tuple[int, ...]

CLEARLY = 5.0  # standard errors beyond which a mean has moved
MOST = 8  # entries of an output that are searched, singly and jointly
STRANGE = 1e50  # an entry with a larger middle gave no number in some runs, so that it has no distances


def candidates(exploration: Exploration) -> tuple[Statistic, ...]:
    """Return statistics of entries that the pair changes, if outputs are shaped like the data, and of moving ones."""
    if math.prod(exploration.shape) == 1:
        return (cell(*(0,) * len(exploration.shape)),)
    explored, statistics = explore(exploration), changed(exploration.pair, exploration.shape)
    x, y = explored.x, explored.y
    if statistics:
        return statistics + moved_besides(exploration.shape, x, y, statistics)
    return moved(exploration.shape, explored.center, x, y, exploration.words)


def changed(pair: NeighborPair, shape: tuple[int, ...]) -> tuple[Statistic, ...]:
    """Return statistics of the entries that a pair changes, the most changed first, and their sum if that changes."""
    where = changed_entries(pair, shape, MOST)
    if not where:
        return ()
    change = pair.y.astype(float) - pair.x
    changes = [float(change[index]) for index in where]
    middles = [float(pair.x[index]) + one / 2 for index, one in zip(where, changes, strict=True)]
    statistics = _single_and_joint(where, middles, [float(np.sign(one)) for one in changes], changes)
    return (*statistics, sum_of_entries()) if change.sum() != 0 else statistics


def moved(
    shape: tuple[int, ...], center: Floats, x: Moments, y: Moments, words: Collection[int] = ()
) -> tuple[Statistic, ...]:
    """Return statistics of entries whose mean clearly moves from `x` to `y`; codes of `words` have no distances."""
    shift, scale, best, by = movers(x, y, MOST)
    clear = best[by > CLEARLY]
    if clear.size == 0:
        clear = best[:3]
    where = [index_of(index, shape) for index in clear]
    middles = [float(center[index] + (x.mean[index] + y.mean[index]) / 2) for index in clear]
    signs = [float(np.sign(shift[index]) or 1.0) / float(scale[index] or 1.0) for index in clear]
    noise = np.where(scale[clear] > 0, scale[clear], 1.0)
    weights = shift[clear] / noise**2
    weights /= np.abs(weights * noise).max() or 1.0  # scores on the scale of their noise, whatever the unit of outputs
    others = [cell(*index_of(index, shape)) for index in best if index not in clear]
    statistics = _single_and_joint(where, middles, signs, weights.tolist())
    no_middle = clear[0] in words or abs(middles[0]) > STRANGE
    return (*(statistics[:-1] if no_middle else statistics), *others)


def moved_besides(shape: tuple[int, ...], x: Moments, y: Moments, known: Sequence[Statistic]) -> tuple[Statistic, ...]:
    """Return single entries whose mean moves most from `x` to `y` and that are not known to move."""
    best = movers(x, y, MOST + len(known))[2]
    indices = [index_of(index, shape) for index in best]
    entries = {statistic.entry for statistic in known}
    return tuple(cell(*index) for index in indices if index not in entries)[:MOST]


def _single_and_joint(
    where: list[Index], middles: list[float], signs: list[float], weights: list[float]
) -> tuple[Statistic, ...]:
    """Return single entries, joint shifts of the first n, a weighted sum, and the two-sided distance of the first."""
    joint = [agreement(where[:n], middles[:n], signs[:n]) for n in range(2, len(where) + 1)]
    if len(where) > 1:
        joint.append(weighted_sum(where, middles, weights))
    return (*(cell(*index) for index in where), *joint, distance_from(where[0], middles[0]))
