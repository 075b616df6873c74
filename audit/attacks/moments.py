"""The attack on spreads and correlations: entries whose means stay while they vary otherwise, alone or in pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import Explored, explored, index_of, is_number
from audit.attacks.protocol import Exploration
from audit.events import Statistic, distance_from

__all__ = ["SpreadAndPairs", "product", "search_pairs", "search_spreads", "standardized_changes"]

Floats = NDArray[np.float64]

MOST = 3  # entries, and pairs of entries, that are looked at
CLEARLY = 3.0  # standard errors, beyond the largest of as many by chance, from which one is worth a try
FAR = 1e30  # standard deviations that stand for more, so that eighth powers are finite
PAIRED = 256  # entries among which pairs are searched: all, or those that change most by themselves
PRODUCTS = 2**28  # products of two entries in a run that are added up for that, in some 0.1 seconds
GLIMPSE = 2**20  # numbers of either database whose third and fourth moments are compared


class SpreadAndPairs:
    """Second to fourth moments of entries, and products of two entries about their means.

    A few runs say which entries, and which pairs, change most in standard errors. Variances are compared in outputs of
    any size; third and fourth moments and pairs in the runs that are held in memory; pairs among 256 entries at most.
    Products of three entries are left to parities (`audit.attacks.digits`).
    """

    name = "moments"
    automatic = True

    def candidates(self, known: Exploration) -> Iterator[Statistic]:
        """Return distances from the mean, and products, that clearly change."""
        seen = explored(known)
        changes = standardized_changes(seen)
        yield from search_spreads(seen, changes)
        yield from search_pairs(seen, changes)


def standardized_changes(seen: Explored) -> Floats:
    """Return the largest change of the second to fourth moments of every entry, in standard errors."""
    x, y = seen.x, seen.y
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        second = np.abs(y.sd**2 - x.sd**2) / np.hypot(x.error, y.error)
        on_x, on_y = (_standard(seen, side) for side in seen.first(GLIMPSE))
        on_x, on_y = on_x - on_x.mean(axis=0), on_y - on_y.mean(axis=0)
        others = [
            np.abs(higher_y.mean(axis=0) - higher_x.mean(axis=0))
            / np.hypot(higher_x.std(axis=0) / np.sqrt(len(on_x)), higher_y.std(axis=0) / np.sqrt(len(on_y)))
            for higher_x, higher_y in ((on_x**3, on_y**3), (on_x**4, on_y**4))
        ]
    return np.asarray(np.nan_to_num(np.max([second, *others], axis=0), nan=0.0, posinf=0.0))


def search_spreads(seen: Explored, changes: Floats) -> Iterator[Statistic]:
    """Yield the distances from the middle of entries whose moments clearly change."""
    middle = seen.center + (seen.x.mean + seen.y.mean) / 2
    for entry in np.argsort(-changes, kind="stable")[:MOST]:
        if changes[entry] >= _chance(changes.size) + CLEARLY:
            yield distance_from(index_of(int(entry), seen.shape), float(middle[entry]))


def search_pairs(seen: Explored, changes: Floats) -> Iterator[Statistic]:
    """Yield the products of two entries whose mean clearly changes."""
    entries = np.sort(np.argsort(-changes, kind="stable")[:PAIRED])
    runs = max(2, PRODUCTS // entries.size**2)
    means, errors = [], []
    for side in seen.held:
        values = _standard(seen, side[:runs, entries], entries)
        values -= values.mean(axis=0)  # entries that move by themselves, with noise of their own, are no news
        mean = values.T @ values / len(values)
        square = np.square(values)
        means.append(mean)
        errors.append(np.maximum(square.T @ square / len(values) - mean**2, 1 / len(values)) / len(values))
    by = np.triu(np.abs(means[1] - means[0]) / np.sqrt(errors[0] + errors[1]), 1)
    for place in np.argsort(-by, axis=None, kind="stable")[:MOST]:
        one, other = np.unravel_index(place, by.shape)
        if by[one, other] >= _chance(by.size) + CLEARLY:
            yield product(seen, int(entries[one]), int(entries[other]))


def product(seen: Explored, one: int, other: int) -> Statistic:
    """Return the statistic that multiplies how far two entries lie from their means, in standard deviations."""
    pair = np.array([one, other])
    first, second = (f"output[{', '.join(map(str, index_of(entry, seen.shape)))}]" for entry in (one, other))

    def score(outputs: NDArray[Any]) -> Floats:
        return np.asarray(_standard(seen, outputs.reshape(len(outputs), -1)[:, pair], pair).prod(axis=1))

    return Statistic(f"product of {first} and {second} about their means", score)


def _standard(seen: Explored, values: NDArray[Any], entries: NDArray[np.intp] | slice = slice(None)) -> Floats:
    """Return how far values of some entries lie from their means, in standard deviations; 0 for what is no number."""
    middle = (seen.center + (seen.x.mean + seen.y.mean) / 2)[entries]
    spread = np.hypot(seen.x.sd, seen.y.sd)[entries]
    with np.errstate(over="ignore"):
        found = np.where(is_number(values), values - middle, 0.0) / np.where(spread > 0, spread, 1.0)
    return np.clip(found, -FAR, FAR)


def _chance(many: int) -> float:
    """Return the largest standardized change to be expected of so many entries that do not change."""
    return float(np.sqrt(2 * np.log(max(2, many))))
