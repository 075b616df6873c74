"""The attack on aggregates of all entries of an output: sums, extremes, counts of values, and changes of scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import EXACT_ATTACKS, Explored, clearly, explore, index_of, is_number, largest
from audit.attacks.protocol import Exploration
from audit.attacks.reading import Reading
from audit.attacks.statistics import added, dot
from audit.attacks.weak_signals import apart as distance_apart
from audit.attacks.weak_signals import one_thread, standardizer
from audit.events import Statistic, cell

__all__ = ["candidates"]

Floats = NDArray[np.float64]
Function = Callable[[NDArray[Any]], Floats]

FEWEST = 3  # fewest entries: for two, products and parities suffice
RUNS = 20  # fewest runs on either database for a test
GLIMPSE = 2**17  # numbers of either database that are compared
CLEARLY = 2.5  # scaled distance of two distribution functions that equal laws exceed with probability 7e-6
MOST = 3  # values whose number in an output is counted
TWICE = 1.4  # standard errors by which a value differs that is seen twice on one database only
SPREAD = 1 / 2  # largest share of one entry in a value's change: above it, that entry suffices
# For changes of scale:
TAUGHT = 2**18  # numbers of either database from which weights are learned
TAUGHT_CLEARLY = (
    5.7  # standard errors of both halves together, which 1 in 1,000 pairs of equal laws exceeds (3 of 3,500 did)
)
FAR = 4.0  # interquartile ranges at which values are clipped: no entry outweighs all others
SHARED = 3  # directions in which entries may vary together
BEYOND = 1.5  # least ratio of a direction's variance to the largest of independent entries
CHUNK = 2**18  # numbers that are scored at a time
POWERS = {"absolute values": 1, "squares": 2}  # best where laws are Laplace, and normal ones
NAMED = 3  # entries of largest weight, which names list


def candidates(exploration: Exploration) -> Iterator[Statistic]:
    """Yield statistics of whole outputs that clearly differ: if records have no order, no entry shows a person."""
    if math.prod(exploration.shape) < FEWEST or exploration.statistics_by_attack.keys() & EXACT_ATTACKS:
        return
    explored = explore(exploration)
    with one_thread():
        scales = list(search_scales(explored))
    yield from scales
    sides = explored.first(GLIMPSE)
    few = min(map(len, sides)) < RUNS  # then nothing differs clearly, and the value that differs most is tried anyway
    for read, value, overall in _readings(exploration.reading):
        x, y = map(read, sides)
        for name, function in ({} if few else overall).items():
            on_x, on_y = (np.sort(function(side)) for side in (x, y))
            both = np.concatenate([on_x, on_y])
            apart = np.searchsorted(on_x, both, "right") / len(x) - np.searchsorted(on_y, both, "right") / len(y)
            if np.abs(apart).max() * np.sqrt(len(x) * len(y) / len(both)) >= CLEARLY:
                yield _statistic(name, read, function)
        for held in _held_values(x, y, few=few):
            yield _statistic(f"entries that are {value(held)}", read, partial(_holding, held))


def _statistic(name: str, read: Function, function: Function) -> Statistic:
    return Statistic(name, lambda outputs: function(read(outputs.reshape(len(outputs), -1))))


def _readings(reading: Reading | None) -> Iterator[tuple[Function, Callable[[float], str], dict[str, Function]]]:
    """Yield, for numbers and for words: a function that extracts them (else NaN), a formatter, and statistics."""
    if reading is None:
        yield lambda flat: np.where(is_number(flat), flat, np.nan), "{:.10g}".format, OF_NUMBERS
        return
    parts = enumerate(reading.columns[: reading.n_parts])
    entries = [(place, column.words) for place, column in parts if column.source.startswith("output")]
    numbers = [place for place, known in entries if known is None]
    if len(numbers) >= FEWEST:
        yield lambda flat: np.where(is_number(flat[:, numbers]), flat[:, numbers], np.nan), "{:.10g}".format, OF_NUMBERS
    words = {place: known for place, known in entries if known is not None}
    longest = max(map(len, words.values()), default=0)
    if FEWEST <= len(words) <= GLIMPSE // max(1, longest):
        every = sorted(set().union(*words.values()))
        number_of = {word: number for number, word in enumerate(every)}
        places, table = list(words), np.full((len(words), longest + 1), np.nan)
        for row, known in enumerate(words.values()):
            table[row, : len(known)] = [number_of[word] for word in known]

        def numbered(flat: Floats) -> Floats:
            place = np.where(flat[:, places] >= 0, flat[:, places], longest)
            return np.asarray(table[np.arange(len(places)), place.astype(np.intp)])

        yield numbered, lambda number: repr(every[int(number)]), {"different words": _different}


def _different(entries: Floats) -> Floats:
    return np.asarray((np.diff(np.sort(entries, axis=1)) > 0).sum(axis=1), np.float64)


OF_NUMBERS: dict[str, Function] = {
    "sum of all entries": lambda entries: added(np.nan_to_num(entries, nan=0.0)),
    "largest of all entries": lambda entries: np.fmax.reduce(entries, axis=1, initial=-np.inf),
    "smallest of all entries": lambda entries: np.fmin.reduce(entries, axis=1, initial=np.inf),
    "different values": _different,
}


def _held_values(x: Floats, y: Floats, *, few: bool) -> Iterator[float]:
    """Yield the values that clearly more entries have on one database, unless one entry makes most of the change.

    Of few runs, this is the value whose number changes most.
    """
    values, places = np.unique(np.concatenate([x, y]), return_inverse=True)
    places = places.reshape(-1, x.shape[1])
    on_x, on_y = (np.bincount(part.ravel(), minlength=values.size) for part in (places[: len(x)], places[len(x) :]))
    change = np.abs(on_y / len(y) - on_x / len(x)) / np.sqrt(on_x / len(x) ** 2 + on_y / len(y) ** 2)
    change[np.isnan(values)] = 0.0
    least = TWICE if few else clearly(values.size)
    for value in largest(change, 1 if few else MOST):
        by_entry = (places[len(x) :] == value).mean(axis=0) - (places[: len(x)] == value).mean(axis=0)
        if change[value] >= least and np.abs(by_entry).max() <= SPREAD * np.abs(by_entry.sum()):
            yield float(values[value])


def _holding(value: float, entries: Floats) -> Floats:
    """Return how many entries have a value."""
    return np.asarray((entries == value).sum(axis=1), np.float64)


def search_scales(explored: Explored) -> Iterator[Statistic]:
    """Yield weighted sums of all entries' distances from their middles, with and without their common variation."""
    # The weight of an entry is the change of its mean distance, shrunk toward the mean change as far as chance explains
    # the differences (Efron and Morris, 1973). Each half of the runs tests the other's weights; few are not tested.
    runs = min(map(len, sides := explored.first(TAUGHT)))
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
            by = sum(distance_apart(x[start::2] @ taught[start], y[start::2] @ taught[start])[1] for start in (0, 1))
            if runs < RUNS or by >= TAUGHT_CLEARLY:
                weights = _weights(x, y, varies)
                most = [cell(*index_of(place, explored.shape)).name for place in largest(np.abs(weights), NAMED)]
                named = f" (most: {', '.join(most)})" if np.ptp(weights) else ""
                yield Statistic(f"weighted {name} of all entries{less}{named}", _score(distance, weights))


def _shared(x: Floats, y: Floats) -> Floats:
    """Return the principal directions in which entries clearly vary together, shape (directions, entries)."""
    about_mean = np.concatenate([x - x.mean(axis=0), y - y.mean(axis=0)])
    # Eigenvectors of the smaller Gram matrix are cheaper than a singular value decomposition.
    tall = len(about_mean) >= x.shape[1]
    gram = about_mean.T @ about_mean if tall else about_mean @ about_mean.T
    squares, vectors = np.linalg.eigh(gram)
    squares, vectors = squares[: -SHARED - 1 : -1], vectors[:, : -SHARED - 1 : -1]
    by_chance = (1 / np.sqrt(len(about_mean) - 2) + 1 / np.sqrt(x.shape[1])) ** 2 * np.trace(gram)
    clear = squares > BEYOND * by_chance
    directions = vectors.T[clear]
    return np.asarray(directions if tall else directions @ about_mean / np.sqrt(squares[clear])[:, None])


def _weights(x: Floats, y: Floats, varies: float) -> Floats:
    """Return the change of every entry's mean, shrunk toward the mean change, if an entry's variance is `varies`."""
    change = y.mean(axis=0) - x.mean(axis=0)
    by_chance = varies * (1 / len(x) + 1 / len(y))
    share = 1 - by_chance / max(float(change.var()), by_chance, 1e-300)
    return np.asarray(change.mean() + share * (change - change.mean()))


def _score(distance: Callable[[NDArray[Any]], Floats], weights: Floats) -> Callable[[NDArray[Any]], Floats]:
    """Return a function that sums weighted distances, in chunks of outputs to save memory."""
    step = max(1, CHUNK // weights.size)
    return lambda outputs: np.concatenate(
        [np.empty(0), *(dot(distance(outputs[at : at + step]), weights) for at in range(0, len(outputs), step))]
    )
