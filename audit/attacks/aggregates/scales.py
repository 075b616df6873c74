"""Changes of scale that are spread over many entries, none of which shows much by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import Explored, index_of, is_number, largest
from audit.attacks.statistics import dot
from audit.attacks.weak_signals import apart, standardizer
from audit.events import Statistic, cell

__all__ = ["search_scales"]

Floats = NDArray[np.float64]

RUNS = 20  # on either database, from which candidates are tested
GLIMPSE = 2**18  # numbers of either database that teach
CLEARLY = 5.7  # standard errors of both halves together, which 1 in 1,000 pairs of equal laws shows (3 of 3,500 did)
FAR = 4.0  # interquartile ranges that stand for more: no entry outweighs all others
SHARED = 3  # directions in which entries may vary together
BEYOND = 1.5  # times the largest variance of independent entries in any direction
MOST = 3  # entries that are named, those that weigh most
CHUNK = 2**18  # numbers that are scored at a time
POWERS = {"absolute values": 1, "squares": 2}  # best where laws are Laplace, and normal ones


def search_scales(explored: Explored) -> Iterator[Statistic]:
    """Yield weighted sums of all entries' distances from their middles, with and without what entries share.

    An entry weighs as much as its mean distance changes, drawn to the mean change as far as chance explains the
    differences (Efron and Morris, 1973). Either half of the runs tests what the other teaches; few are not tested.
    """
    runs = min(map(len, sides := explored.first(GLIMPSE)))
    if runs < min(RUNS, explored.x.runs, explored.y.runs):  # outputs too large to test, and so a score too slow to try
        return
    standardized = standardizer(np.concatenate(sides))

    def near(outputs: NDArray[Any]) -> Floats:
        flat = outputs.reshape(len(outputs), -1)
        return np.where(is_number(flat), np.clip(standardized(flat), -FAR, FAR), 0.0)

    together = _shared(*map(near, sides))
    for less, shared in ("", together[:0]), (", less what they share", together):
        for name, power in POWERS.items() if len(shared) or not less else ():

            def distance(outputs: NDArray[Any], shared: Floats = shared, power: int = power) -> Floats:
                values = near(outputs)
                for direction in shared:
                    values = values - dot(values, direction)[:, None] * direction
                return np.abs(values) ** power

            x, y = map(distance, sides)
            varies = float((x.var(axis=0, ddof=1) + y.var(axis=0, ddof=1)).mean()) / 2
            taught = [_weights(x[start::2], y[start::2], varies) for start in (1, 0)]
            by = sum(apart(x[start::2] @ taught[start], y[start::2] @ taught[start])[1] for start in (0, 1))
            if runs < RUNS or by >= CLEARLY:
                weights = _weights(x, y, varies)
                most = [cell(*index_of(place, explored.shape)).name for place in largest(np.abs(weights), MOST)]
                named = f" (most: {', '.join(most)})" if np.ptp(weights) else ""
                yield Statistic(f"weighted {name} of all entries{less}{named}", _score(distance, weights))


def _shared(x: Floats, y: Floats) -> Floats:
    """Return the directions in which entries clearly vary together, shape (directions, entries); maybe none."""
    about_mean = np.concatenate([x - x.mean(axis=0), y - y.mean(axis=0)])
    _, lengths, directions = np.linalg.svd(about_mean, full_matrices=False)
    by_chance = (1 / np.sqrt(len(about_mean) - 2) + 1 / np.sqrt(x.shape[1])) ** 2 * np.square(lengths).sum()
    return np.asarray(directions[:SHARED][np.square(lengths[:SHARED]) > BEYOND * by_chance])


def _weights(x: Floats, y: Floats, varies: float) -> Floats:
    """Return by how much the mean of every entry changes, less chance, if an entry's variance is `varies`."""
    change = y.mean(axis=0) - x.mean(axis=0)
    by_chance = varies * (1 / len(x) + 1 / len(y))
    share = 1 - by_chance / max(float(change.var()), by_chance, 1e-300)
    return np.asarray(change.mean() + share * (change - change.mean()))


def _score(distance: Callable[[NDArray[Any]], Floats], weights: Floats) -> Callable[[NDArray[Any]], Floats]:
    """Return what adds up distances by their weights, of some outputs after the other: they take much memory."""
    step = max(1, CHUNK // weights.size)
    return lambda outputs: np.concatenate(
        [np.empty(0), *(dot(distance(outputs[at : at + step]), weights) for at in range(0, len(outputs), step))]
    )
