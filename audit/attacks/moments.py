"""The attack on variances and correlations: entries whose moments, or products in pairs, change while means stay."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import Explored, clearly, explore, index_of, is_number, largest
from audit.attacks.protocol import Exploration
from audit.attacks.statistics import distance_from
from audit.attacks.weak_signals import one_thread
from audit.events import Statistic, cell

__all__ = ["candidates", "product", "search_pairs", "search_spreads"]

Floats = NDArray[np.float64]

MOST = 3  # entries, and pairs of entries, that are tried
FEWEST, FEW = 8, 32  # a normal law needs more values than half the runs, clipped to these limits
PAIRED = 256  # entries among which pairs are searched: all, or those that change most by themselves
PRODUCTS = 2**28  # products of two entries that are added up for that, in about 0.1 seconds


def candidates(exploration: Exploration) -> Iterator[Statistic]:
    """Yield distances from the mean, and products of two entries, that clearly change; `digits` tries three entries."""
    explored = explore(exploration)
    yield from search_spreads(explored, exploration.words)
    with one_thread():
        pairs = list(search_pairs(explored))
    yield from pairs


def search_spreads(explored: Explored, words: Collection[int] = ()) -> Iterator[Statistic]:
    """Yield distances from the middle, and normal log-likelihood ratios, of entries whose moments clearly change.

    If an output is a single number, its distance is always tried: few runs hardly ever show a change clearly.
    """
    middle, changed = explored.center + (explored.x.mean + explored.y.mean) / 2, explored.that_spread(MOST)
    for entry in [0] if explored.center.size == 1 else map(int, changed):
        # Codes of words have no distances. A value that is not a number is an event by itself.
        if entry in words or not all(is_number(side[:, entry]).all() for side in explored.held):
            continue
        yield distance_from(index_of(entry, explored.shape), float(middle[entry]))
        varied = all(np.unique(side[:, entry]).size > np.clip(len(side) // 2, FEWEST, FEW) for side in explored.held)
        if entry in changed and varied and min(explored.x.sd[entry], explored.y.sd[entry]) > 0:
            yield normal_ratio(explored, entry)


def search_pairs(explored: Explored) -> Iterator[Statistic]:
    """Yield the products of two entries whose mean clearly changes."""
    entries = np.sort(largest(explored.changes, PAIRED))
    runs = max(2, PRODUCTS // entries.size**2)
    means, errors = [], []
    for side in explored.held:
        values = explored.standard(side[:runs, entries], entries)
        values -= values.mean(axis=0)  # means that move are left to the attack on entries
        mean = values.T @ values / len(values)
        square = np.square(values)
        means.append(mean)
        errors.append(np.maximum(square.T @ square / len(values) - mean**2, 1 / len(values)) / len(values))
    by = np.triu(np.abs(means[1] - means[0]) / np.sqrt(errors[0] + errors[1]), 1)
    for place in largest(by.reshape(-1), MOST):
        one, other = np.unravel_index(place, by.shape)
        if by[one, other] >= clearly(by.size):
            yield product(explored, int(entries[one]), int(entries[other]))


def normal_ratio(explored: Explored, entry: int) -> Statistic:
    """Return the log-likelihood ratio of an entry under normal laws; selection runs test whether it fits."""
    at = np.array([entry])
    spread = float(np.hypot(explored.x.sd[entry], explored.y.sd[entry]))
    shift = float(explored.y.mean[entry] - explored.x.mean[entry]) / spread
    on_x, on_y = (float(side.sd[entry]) / spread for side in (explored.x, explored.y))

    def score(outputs: NDArray[Any]) -> Floats:
        value = explored.standard(outputs.reshape(len(outputs), -1)[:, at], at)[:, 0]
        by_x, by_y = (value + shift / 2) / on_x, (value - shift / 2) / on_y
        return np.asarray(np.log(on_x / on_y) + (np.square(by_x) - np.square(by_y)) / 2)

    where = cell(*index_of(entry, explored.shape)).name
    return Statistic(f"log-likelihood ratio of normal laws of {where}", score, proportional=True)


def product(explored: Explored, one: int, other: int) -> Statistic:
    """Return the product of two entries' distances from their means, in standard deviations."""
    pair = np.array([one, other])
    first, second = (f"output[{', '.join(map(str, index_of(entry, explored.shape)))}]" for entry in (one, other))

    def score(outputs: NDArray[Any]) -> Floats:
        return np.asarray(explored.standard(outputs.reshape(len(outputs), -1)[:, pair], pair).prod(axis=1))

    return Statistic(f"product of {first} and {second} about their means", score)
