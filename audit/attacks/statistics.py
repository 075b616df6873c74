"""Statistics of several entries of an output, or of a feature of one. A run's score does not depend on its batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.events import Statistic, cell
from audit.values import NAN, RAISED, is_value

__all__ = ["INFINITE", "added", "agreement", "distance_from", "dot", "of_entry", "sum_of_entries", "weighted_sum"]

Floats = NDArray[np.float64]
Index = tuple[int, ...]

INFINITE = 1e75  # replaces infinities and values that are not numbers in a sum, so that its fourth power is finite


def of_entry(name: str, index: Index, read: Callable[[NDArray[Any]], NDArray[Any]]) -> Statistic:
    """Return the statistic `read` of one entry of each output, shape (runs,); ``{}`` in `name` stands for the entry."""
    pick: tuple[Any, ...] = (slice(None), *index)
    return Statistic(name.format(cell(*index).name), lambda outputs: read(outputs[pick]))


def agreement(cells: Sequence[Index], middles: Sequence[float], signs: Sequence[float]) -> Statistic:
    """Return the statistic of a joint event: the smallest distance by which all entries lie on one side."""
    # `middles` lie half-way between the databases; `signs` point from `x` to `y`, and may be divided by an entry's
    # scale. With independent noise of equal scale, the loss of the event ``all beyond t`` is the sum of the entries'
    # losses. Events of the sum of the entries have a smaller loss.
    sides = _sides(cells, middles, signs)

    def score(outputs: NDArray[Any]) -> Floats:
        low, high = np.min(each := sides(outputs), axis=1), np.max(each, axis=1)
        return _unless_raised(outputs, np.where(low > 0, low, np.where(high < 0, high, 0.0)))

    return Statistic(f"joint shift of {_output_at(cells)}", score)


def weighted_sum(cells: Sequence[Index], middles: Sequence[float], weights: Sequence[float]) -> Statistic:
    """Return a weighted sum of entries; with weights of shift / variance, the log-likelihood ratio of normal laws."""
    sides = _sides(cells, middles, weights)
    return Statistic(
        f"weighted sum of {_output_at(cells)}", lambda outputs: _unless_raised(outputs, added(sides(outputs)))
    )


def sum_of_entries() -> Statistic:
    """Return the statistic that adds up all entries of an output: an invariant keeps this sum exact."""

    def score(outputs: NDArray[Any]) -> Floats:
        flat = outputs.reshape(len(outputs), -1)
        return np.where(is_value(flat).any(axis=1), flat.min(axis=1), added(flat))  # a run that raised has no sum

    return Statistic("sum of output", score)


def distance_from(index: Index, middle: float) -> Statistic:
    """Return the statistic of two-sided events: distance of an entry from a value; codes of runs that raised stay."""
    entry = cell(*index)

    def score(outputs: NDArray[Any]) -> Floats:
        values = entry(outputs)
        return np.where(is_value(values), values, np.abs(values - middle))

    return Statistic(f"distance of {entry.name} from {middle:.10g}", score)


def added(entries: NDArray[Any]) -> Floats:
    """Return the sum of each row, the same in every batch; 0 for opposite infinities, which favor neither database."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = np.ascontiguousarray(entries, np.float64).sum(axis=1)
    return np.where(np.isnan(total), 0.0, total)


def dot(entries: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Return the product of each row with weights, shape (runs,), the same in every batch, unlike BLAS."""
    return np.asarray(np.einsum("re,e->r", np.ascontiguousarray(entries), weights))


def _output_at(cells: Sequence[Index]) -> str:
    return ", ".join([cell(*cells[0]).name, *(cell(*index).name.removeprefix("output") for index in cells[1:])])


def _sides(
    cells: Sequence[Index], middles: Sequence[float], weights: Sequence[float]
) -> Callable[[NDArray[Any]], Floats]:
    """Return a function that gives the weighted distances of entries from their middles, shape (runs, cells)."""
    pick: tuple[Any, ...] = slice(None), *(np.array(axis) for axis in zip(*cells, strict=True))

    def sides(outputs: NDArray[Any]) -> Floats:
        entries = outputs[pick]
        return np.asarray((np.where(is_value(entries), -INFINITE, entries) - middles) * np.asarray(weights, float))

    return sides


def _unless_raised(outputs: NDArray[Any], scores: Floats) -> Floats:
    """Return scores; for runs that raised, the code of the exception."""
    first = outputs.reshape(len(outputs), -1)[:, 0]
    return np.where((first >= RAISED) & (first < NAN), first, scores)
