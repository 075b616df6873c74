"""The attack on outputs as a whole: rows in random order, sums of all entries, and changes of their scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import KNOWING, Explored, clearly, explore, is_number, largest
from audit.attacks.protocol import Exploration
from audit.attacks.whole.scales import search_scales
from audit.events import Statistic

__all__ = ["Whole"]

Floats = NDArray[np.float64]

FEWEST = 3  # entries: of two, products and parities tell as much
RUNS = 20  # on either database, fewer of which tell nothing
GLIMPSE = 2**17  # numbers of either database that say what differs
CLEARLY = 2.5  # scaled distance of two distribution functions that equal laws exceed with probability 7e-6
MOST = 3  # values whose number in an output is counted
SPREAD = 1 / 2  # largest share of one entry in a value's change: above, that entry tells as much


class Whole:
    """Sum, scale, extremes and different values of all entries, and how many of them have a certain value.

    Synthetic records come in random order: who is among them shows in no entry by itself. A few runs say which of these
    clearly differ; none is looked at else, but the scale where runs are few.
    """

    name = "whole"
    automatic = True

    def candidates(self, exploration: Exploration) -> Iterator[Statistic]:
        """Return statistics of whole outputs that clearly differ."""
        if math.prod(exploration.shape) < FEWEST or exploration.statistics_by_attack.keys() & KNOWING:
            return
        explored = explore(exploration)
        yield from search_scales(explored)
        x, y = explored.first(GLIMPSE)
        if min(len(x), len(y)) < RUNS:
            return
        for statistic in _overall():
            on_x, on_y = np.sort(statistic(x)), np.sort(statistic(y))
            both = np.concatenate([on_x, on_y])
            apart = np.searchsorted(on_x, both, "right") / len(x) - np.searchsorted(on_y, both, "right") / len(y)
            if np.abs(apart).max() * np.sqrt(len(x) * len(y) / len(both)) >= CLEARLY:
                yield statistic
        yield from _held_values(explored)


def _overall() -> tuple[Statistic, ...]:
    """Return statistics of all entries together, in which what is no number has no part."""

    def of_numbers(name: str, function: Any, none: float) -> Statistic:
        def score(outputs: NDArray[Any]) -> Floats:
            flat = outputs.reshape(len(outputs), -1)
            return np.asarray(function(np.where(is_number(flat), flat, none).astype(np.float64)), np.float64)

        return Statistic(name, score)

    return (
        of_numbers("sum of all entries", lambda entries: entries.sum(axis=1), 0.0),
        of_numbers("largest of all entries", lambda entries: entries.max(axis=1), -np.inf),
        of_numbers("smallest of all entries", lambda entries: entries.min(axis=1), np.inf),
        of_numbers("different values", lambda entries: (np.diff(np.sort(entries, axis=1)) > 0).sum(axis=1), 0.0),
    )


def _held_values(explored: Explored) -> Iterator[Statistic]:
    """Yield how many entries have a value, for those values of which there are clearly more on one database."""
    x, y = (np.where(is_number(side), side, np.nan) for side in explored.first(GLIMPSE))
    values, places = np.unique(np.concatenate([x, y]), return_inverse=True)
    places = places.reshape(-1, x.shape[1])
    on_x, on_y = (np.bincount(part.ravel(), minlength=values.size) for part in (places[: len(x)], places[len(x) :]))
    change = np.abs(on_y / len(y) - on_x / len(x)) / np.sqrt(on_x / len(x) ** 2 + on_y / len(y) ** 2)
    for value in largest(np.where(np.isnan(values), 0.0, change), MOST):
        by_entry = (places[len(x) :] == value).mean(axis=0) - (places[: len(x)] == value).mean(axis=0)
        if change[value] >= clearly(values.size) and np.abs(by_entry).max() <= SPREAD * np.abs(by_entry.sum()):
            yield _holding(float(values[value]))


def _holding(value: float) -> Statistic:
    """Return the statistic that counts the entries of a value."""
    return Statistic(
        f"entries that are {value:.10g}", lambda outputs: (outputs.reshape(len(outputs), -1) == value).sum(axis=1)
    )
