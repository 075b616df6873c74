"""The attack on tables as sets of rows: who is among synthetic records shows in no entry, as rows come in any order."""

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

SHARE = 1 / 8  # of the selection runs that look at tables which are written down; others were explored before
KNOWN = 1 / 2  # of the error probability, for the rows that are known: no run has to choose them
LEAST, LARGER = 240, 1 / 5  # runs that do, unless rows are known, and the largest share that they may be
HELD = 2**21  # values of either database that are looked at
CODED: dict[int, Any] = {}  # codes of the outputs that there are, for the statistics that come next


def candidates(exploration: Exploration) -> Iterator[Statistic]:
    """Yield statistics of rows, and rows less one column, that are known to differ or clearly do in a few runs."""
    layout = layout_of(exploration)
    if layout is None or exploration.statistics_by_attack.keys() & EXACT_ATTACKS:
        return
    known = known_rows(exploration, layout)
    sides = _looked_at(exploration, layout, few=bool(known))
    teach = min(codes.shape[1] for codes in sides) >= FEWEST
    found = differing_rows(sides) if teach else []
    if teach:  # or outputs are of another kind: no column has any of the values
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
    more = any(one.values.size > 1 for one in found)  # or the clearest row, and those like it, tell as much
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
    """Tell whether all rows of tables are alike on average, as those of records in any order are."""
    explored = explore(exploration)
    x, shape = explored.x, exploration.shape
    means, errors = (explored.center + x.mean).reshape(shape), (x.sd / np.sqrt(x.runs)).reshape(shape)
    apart = np.abs(means - means.mean(axis=0))
    return bool((apart <= clearly(means.size) * errors).all())


def _nearest(found: Sequence[Differing]) -> list[Codes]:
    """Return the row that those which differ most clearly have in common: each may be it but for one column."""
    rows = np.array([one.example for one in found for _ in range(2 if one.without < 0 else 1)])
    near = rows[(rows == rows[:1]).sum(axis=1) >= rows.shape[1] - 2] if len(rows) else rows
    values = [np.unique(column, return_counts=True) for column in near.T]
    return [np.array([value[times.argmax()] for value, times in values])] if values else []


def _coded(layout: Layout, outputs: NDArray[Any]) -> Codes:
    """Return outputs in codes, shape (columns, runs, rows), which last as long as they do."""
    key = id(outputs)
    outputs_coded, by, codes = CODED.get(key, (None, None, None))
    if codes is None or outputs_coded() is not outputs or by != layout:
        codes = layout(outputs)
        CODED[key] = weakref.ref(outputs, lambda _: CODED.pop(key, None)), layout, codes
    return np.asarray(codes)


def _different(codes: Codes) -> NDArray[np.intp]:
    """Return how many different rows each table has, up to a constant: a written one has one more, which is no row."""
    rows = np.sort(next(hashed(codes)), axis=1)
    return np.asarray((rows[:, 1:] != rows[:, :-1]).sum(axis=1))


def _like(layout: Layout, name: str, row: Codes) -> Iterator[Statistic]:
    """Yield how many rows are equal to one; whether any is, but in one column; and how many columns of any row are."""
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
    """Return the statistic that adds up what all rows of a table weigh that were found to differ."""
    top = np.uint64(40)  # bits of a hash but the first, which say most often that a row need not be looked up

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
    """Return the statistic that adds up what pairs of columns weigh in which rows agree with one."""
    columns = np.flatnonzero(weights.any(axis=0) | weights.any(axis=1))
    some = weights[np.ix_(columns, columns)]

    def score(outputs: NDArray[Any]) -> Floats:
        agree = agreeing(_coded(layout, outputs)[columns], row[columns])
        return np.asarray(agree.reshape(len(agree), some.size) @ some.ravel())

    return Statistic(f"weighted pairs of columns in which rows agree with {name}", score, written=True)
