"""Changes of scale that are spread over many entries, none of which shows much by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import Explored, is_number
from audit.attacks.weak_signals import apart, standardizer
from audit.events import Statistic

__all__ = ["search_scales"]

Floats = NDArray[np.float64]

RUNS = 20  # on either database, from which candidates are tested
GLIMPSE = 2**18  # numbers of either database that teach
CLEARLY = 4.0  # standard errors that both halves together show of equal laws with probability 6e-5
FAR = 4.0  # interquartile ranges that stand for more: no entry outweighs all others
SHARED = 3  # directions in which entries may vary together
BEYOND = 1.5  # times the largest variance of independent entries in any direction
CHUNK = 2**18  # numbers that are scored at a time
POWERS = {"absolute values": 1, "squares": 2}  # best where laws are Laplace, and normal ones


def search_scales(seen: Explored) -> Iterator[Statistic]:
    """Yield weighted sums of all entries' distances from their middles, with and without what entries share.

    If entries are normal, independent and of one change of scale, the sum of squares orders outputs by likelihood
    ratio. An entry weighs as much as its mean distance changes, drawn to the mean change as far as chance explains the
    differences [1]_. Either half of the runs tests what the other teaches; of few runs nothing is tested.

    References
    ----------
    .. [1] Efron and Morris, "Stein's Estimation Rule and Its Competitors: An Empirical Bayes Approach", 1973.
    """
    sides = seen.first(GLIMPSE)
    runs = min(map(len, sides))
    if runs < min(RUNS, seen.x.runs, seen.y.runs):  # outputs too large to test, and so a score too slow to try
        return
    standardized = standardizer(np.concatenate(sides))

    def near(outputs: NDArray[Any]) -> Floats:
        """Return how far entries lie from their medians, in interquartile ranges; 0 for no number."""
        flat = outputs.reshape(len(outputs), -1)
        return np.where(is_number(flat), np.clip(standardized(flat), -FAR, FAR), 0.0)

    together = _shared(*map(near, sides))
    for name, shared in {"": together[:0], ", less what they share": together}.items():
        if name and not len(shared):
            return
        for what, power in POWERS.items():

            def distance(outputs: NDArray[Any], shared: Floats = shared, power: int = power) -> Floats:
                values = near(outputs)
                return np.abs(values - values @ shared.T @ shared) ** power

            x, y = map(distance, sides)
            varies = float(np.mean([side.var(axis=0, ddof=1) for side in (x, y)]))
            folds = [(x[start::2], y[start::2]) for start in (0, 1)]
            one, other = (_weights(*fold, varies) for fold in folds)
            tested = [apart(on_x @ by, on_y @ by)[1] for (on_x, on_y), by in zip(folds, (other, one), strict=True)]
            if runs < RUNS or sum(tested) >= CLEARLY * np.sqrt(2):
                yield Statistic(f"weighted {what} of all entries{name}", _summed(distance, _weights(x, y, varies)))


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
    kept = 1 - by_chance / max(float(change.var()), by_chance) if varies > 0 else 1.0
    return np.asarray(change.mean() + kept * (change - change.mean()))


def _summed(distance: Callable[[NDArray[Any]], Floats], weights: Floats) -> Callable[[NDArray[Any]], Floats]:
    """Return the score that adds up distances with their weights, of some outputs after the other."""
    step = max(1, CHUNK // weights.size)

    def score(outputs: NDArray[Any]) -> Floats:
        parts = [distance(outputs[start : start + step]) @ weights for start in range(0, len(outputs), step)]
        return np.concatenate([np.empty(0), *parts])

    return score
