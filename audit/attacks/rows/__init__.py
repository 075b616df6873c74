"""The attack on tables as sets of rows: if synthetic records come in any order, no single entry shows a person."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import EXACT_ATTACKS, clearly, explore
from audit.attacks.protocol import Exploration
from audit.attacks.rows.split import COLUMNS, FEWEST, Differing, agreeing, differing_pairs, differing_rows, hashed
from audit.attacks.rows.tables import ANY, NO_ROW, Codes, Layout, known_rows, layout_of
from audit.events import Event, Statistic, ThresholdRule

__all__ = ["candidates"]

Floats = NDArray[np.float64]

SHARE = 1 / 8  # share of the selection runs for tables in written outputs; numeric ones were explored before
KNOWN = 1 / 2  # share of the error probability for known rows, which no run has to choose
LEAST, LARGER = 240, 1 / 5  # fewest runs for written tables unless rows are known, and their largest share
HELD = 2**21  # values of either database that are compared
CODED: dict[int, Any] = {}  # cache of the codes of outputs that are in memory, shared by statistics


def candidates(exploration: Exploration) -> Iterator[Statistic]:
    """Yield statistics of rows, and of rows without one column, that differ by the pair or clearly do in a few runs."""
    layout = layout_of(exploration)
    if layout is None or exploration.statistics_by_attack.keys() & EXACT_ATTACKS:
        return
    known = known_rows(exploration, layout)
    sides = _looked_at(exploration, layout, few=bool(known))
    teach = min(codes.shape[1] for codes in sides) >= FEWEST
    found = differing_rows(sides) if teach else []
    if teach:  # a row of which no column has any value belongs to outputs of another kind
        known = [one for one in known if any((codes == one[1][:, None, None]).any() for codes in sides)]
    if not (known or found or exploration.reading or _in_any_order(exploration)):
        return
    yield Statistic("different rows", lambda outputs: _different(_coded(layout, outputs)), written=True)
    for name, row, side in known:
        equal, *others = _like(layout, name, row)
        yield from (equal, *others)
        rule = ThresholdRule(-math.inf, 1.0, side)
        exploration.registered_events.append(Event(equal, rule, share=KNOWN / len(known)))
    for row in _nearest(found):
        if not any(np.array_equal(row, one) for _, one, _ in known):
            yield from _like(layout, layout.in_words(row), row)
    for name, row, _ in known if teach and 1 < layout.width <= COLUMNS else ():
        if (weights := differing_pairs(sides, row)).any():
            yield _weighed_pairs(layout, name, row, weights)
    more = any(one.values.size > 1 for one in found)  # otherwise the clearest row, and those like it, suffice
    kinds = {one.without for one in found[:1]}, {-1}, {one.without for one in found if more}
    for columns in dict.fromkeys(map(frozenset, kinds)):
        if some := [one for one in found if one.without in columns]:
            yield _weighed_rows(layout, some)


def _looked_at(exploration: Exploration, layout: Layout, *, few: bool) -> list[Codes]:
    """Return the codes of some tables on either database, shape (columns, runs, rows)."""
    if exploration.reading is None:
        held = explore(exploration).first(HELD)
        return [layout(side.reshape(len(side), *exploration.shape)) for side in held]
    runs = int(exploration.choosing * SHARE)
    runs = runs if few else min(max(runs, LEAST), int(exploration.choosing * LARGER))
    sides = exploration.outputs(runs if runs >= 2 * FEWEST else 0, layout, written=True)
    return [_held(blocks, layout.width) for blocks in sides]


def _held(blocks: Iterator[Codes], width: int) -> Codes:
    """Return the first tables in one array."""
    held = [np.empty((width, 0, 1), np.uint64)]
    for codes in blocks:
        held += [codes] if sum(one.size for one in held) < HELD else []
    rows = max(codes.shape[2] for codes in held)
    padding = [((0, 0), (0, 0), (0, rows - codes.shape[2])) for codes in held]
    return np.concatenate([np.pad(*one, constant_values=NO_ROW) for one in zip(held, padding, strict=True)], axis=1)


def _in_any_order(exploration: Exploration) -> bool:
    """Tell whether all rows of tables have the same mean, as records in random order do."""
    explored = explore(exploration)
    x, shape = explored.x, exploration.shape
    means, errors = (explored.center + x.mean).reshape(shape), (x.sd / np.sqrt(x.runs)).reshape(shape)
    apart = np.abs(means - means.mean(axis=0))
    return bool((apart <= clearly(means.size) * errors).all())


def _nearest(found: Sequence[Differing]) -> list[Codes]:
    """Return the row that most clearly differing rows agree on; each of them may differ from it in one column."""
    rows = np.array([one.example for one in found for _ in range(2 if one.without < 0 else 1)])
    near = rows[(rows == rows[:1]).sum(axis=1) >= rows.shape[1] - 2] if len(rows) else rows
    values = [np.unique(column, return_counts=True) for column in near.T]
    return [np.array([value[times.argmax()] for value, times in values])] if values else []


def _coded(layout: Layout, outputs: NDArray[Any]) -> Codes:
    """Return the codes of outputs, shape (columns, runs, rows), cached as long as the outputs exist."""
    key = id(outputs)
    outputs_coded, by, codes = CODED.get(key, (None, None, None))
    if codes is None or outputs_coded() is not outputs or by != layout:
        codes = layout(outputs)
        CODED[key] = weakref.ref(outputs, lambda _: CODED.pop(key, None)), layout, codes
    return np.asarray(codes)


def _different(codes: Codes) -> NDArray[np.intp]:
    """Return the number of different rows of each table, up to a constant: written ones have one padding row more."""
    rows = np.sort(next(hashed(codes)), axis=1)
    return np.asarray((rows[:, 1:] != rows[:, :-1]).sum(axis=1))


def _like(layout: Layout, name: str, row: Codes) -> Iterator[Statistic]:
    """Yield the number of rows equal to `row`, whether any differs in at most one column, and most equal columns."""
    width = np.count_nonzero(row != ANY)

    def like(outputs: NDArray[Any]) -> NDArray[Any]:
        """Return in how many columns each row has the value of this one, shape (runs, rows)."""
        codes = _coded(layout, outputs)
        matching = np.zeros(codes.shape[1:], np.min_scalar_type(len(row)))
        for column, value in zip(codes, row, strict=True):
            matching += column == value
        return matching

    def most(outputs: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(like(outputs).max(axis=1, initial=0))

    yield Statistic(f"rows equal to {name}", lambda outputs: (like(outputs) == width).sum(axis=1), written=True)
    if width > 1:
        near = f"any row within one column of {name}"
        yield Statistic(near, lambda outputs: most(outputs) >= width - 1, written=True)
        yield Statistic(f"columns of the row that is most like {name}", most, written=True)


def _weighed_rows(layout: Layout, found: Sequence[Differing]) -> Statistic:
    """Return the statistic that sums the weights of those rows of a table that were found to differ."""
    top = np.uint64(40)  # bits dropped from a hash: the others rule most rows out without a look-up

    def score(outputs: NDArray[Any]) -> Floats:
        codes = _coded(layout, outputs)
        total = np.zeros(len(outputs))
        for one, rows in zip(found, hashed(codes, [one.without for one in found]), strict=True):
            maybe = np.zeros(2**16, bool)
            maybe[one.values >> top] = True
            at = np.flatnonzero(maybe[rows >> top])
            place = np.minimum(np.searchsorted(one.values, rows.flat[at]), one.values.size - 1)
            weights = np.where(one.values[place] == rows.flat[at], one.weights[place], 0.0)
            total += np.bincount(at // rows.shape[1], weights, len(rows))
        return total

    which = "" if found[0].without < 0 else f" less column {found[0].without}"
    what = f"{sum(one.values.size for one in found):,} rows{which if len(found) == 1 else ', whole or less one column'}"
    return Statistic(f"weighted sum of {what}", score, written=True)


def _weighed_pairs(layout: Layout, name: str, row: Codes, weights: Floats) -> Statistic:
    """Return the statistic that sums the weights of pairs of columns in which rows agree with `row`."""
    columns = np.flatnonzero(weights.any(axis=0) | weights.any(axis=1))
    some = weights[np.ix_(columns, columns)]

    def score(outputs: NDArray[Any]) -> Floats:
        agree = agreeing(_coded(layout, outputs)[columns], row[columns])
        return np.asarray(agree.reshape(len(agree), some.size) @ some.ravel())

    return Statistic(f"weighted pairs of columns in which rows agree with {name}", score, written=True)
