"""Rows, and pairs of values, that tables hold more often on one database than on the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from audit.attacks.rows.tables import NO_ROW, Codes

__all__ = ["COLUMNS", "FEWEST", "Differing", "agreeing", "differing_pairs", "differing_rows", "hashed"]

Floats = NDArray[np.float64]

CHANCE = 1e-3  # probability that any of the compared rows differs as clearly under equal laws
FEWEST = 8  # fewest tables that must hold a row for a comparison
COLUMNS = 64  # most columns for which rows without one column, and pairs of columns, are compared
HASHED = np.uint64(8)  # bits of a hash that are dropped: the others identify rows
REPEATS = 127  # most repeats of a row in one table that are counted
LESS = 2**19  # values of either database that are compared without one column
PAIRED = 2**22  # numbers of pairs that are held in memory
FINE = 2.0**20  # weights are multiples of 1 / FINE, so that sums are exact in any order


class Differing(NamedTuple):
    """Rows without one column, or whole (-1), that differ: sorted hashes, weights, standard errors, and an example."""

    without: int
    values: Codes
    weights: Floats
    by: Floats
    example: Codes  # a row that differs most clearly


def hashed(codes: Codes, without: Sequence[int] = (-1,)) -> Iterator[Codes]:
    """Yield hashes of all rows, shape (runs, rows), without one column or whole (-1): sums over the columns."""
    factors = np.random.default_rng(0).integers(2**63, size=len(codes), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    total = np.zeros(codes.shape[1:], np.uint64)
    for column, factor in zip(codes, factors, strict=True):
        total += column * factor
    for place in without:
        yield (total if place < 0 else total - codes[place] * factors[place]) >> HASHED


def differing_rows(sides: Sequence[Codes]) -> list[Differing]:
    """Return rows, whole and without one column, whose number in a table clearly differs; most clearly first."""
    differing, width = [], len(sides[0])
    some = [codes[:, : max(FEWEST, LESS * codes.shape[1] // codes.size)] for codes in sides]
    shorter = range(width if 1 < width <= COLUMNS else 0)
    for of, looked in ((range(-1, 0), sides), (shorter, some)):
        for without, none, *hashes in zip(
            of, *(hashed(codes, of) for codes in (np.full((width, 1, 1), NO_ROW), *looked)), strict=True
        ):
            values, weights, by = _tally(hashes, none[0, 0])
            clearly = -special.ndtri(CHANCE / 2 / (1 + len(shorter)) / max(values.size, 1))
            if (far := np.abs(by) > clearly).any():
                clearest = values[np.abs(by).argmax()]
                rows = [codes[:, of_rows == clearest] for codes, of_rows in zip(looked, hashes, strict=True)]
                differing.append(Differing(without, values[far], weights[far], by[far], np.hstack(rows)[:, 0]))
    return sorted(differing, key=lambda one: -np.abs(one.by).max())


def _tally(sides: Sequence[Codes], none: np.uint64) -> tuple[Codes, Floats, Floats]:
    """Return the hashes that enough tables have, their weights, and their differences in standard errors."""
    packed = []
    for side, hashes in enumerate(sides):  # packed in one number: the row, its database, its repeats in the table
        rows = np.sort(hashes, axis=1)
        first = np.ones(rows.shape, bool)
        first[:, 1:] = rows[:, 1:] != rows[:, :-1]
        starts = np.flatnonzero(first)
        times = np.minimum(np.diff(starts, append=first.size), REPEATS).astype(np.uint64)
        packed.append((rows.ravel()[starts] << HASHED) | np.uint64(side << 7) | times)
    both = np.sort(np.concatenate(packed))
    values = both >> HASHED
    starts = np.flatnonzero(np.diff(values, prepend=~values[:1]))
    tables = np.diff(starts, append=values.size)
    often = (tables >= FEWEST) & (values[starts] != none)
    both, values, tables = both[np.repeat(often, tables)], values[starts[often]], tables[often]
    which, times = np.repeat(np.arange(values.size), tables), (both & np.uint64(REPEATS)).astype(np.float64)
    on_y = (both >> np.uint64(7)) & np.uint64(1)
    x, y, squares = (np.bincount(which, part, values.size) for part in (times * (1 - on_y), times * on_y, times**2))
    return values, *_compared(x, y, squares, *map(len, sides))


def _compared(x: Any, y: Any, squares: Any, runs_x: int, runs_y: int) -> tuple[Floats, Floats]:
    """Return weights, which are the shift of means over the variance, and the shift in standard errors."""
    runs = runs_x + runs_y
    shift, variance = y / runs_y - x / runs_x, squares / runs - ((x + y) / runs) ** 2
    varies = np.where(variance > 0, variance, np.inf)
    return np.round(shift / varies * FINE) / FINE, shift / np.sqrt(varies * (1 / runs_x + 1 / runs_y))


def agreeing(codes: Codes, row: Codes) -> Floats:
    """Return how many rows of a table agree with `row` in two columns, shape (runs, columns, columns)."""
    alike = np.moveaxis(codes == row[:, None, None], 0, 1).astype(np.float32)
    return np.asarray(alike @ np.swapaxes(alike, 1, 2), np.float64)


def differing_pairs(sides: Sequence[Codes], row: Codes) -> Floats:
    """Return weights of pairs of columns by the number of rows that equal `row` in both; 0 if it hardly differs."""
    counts = [agreeing(codes[:, : PAIRED // row.size**2], row) for codes in sides]
    x, y = (part.sum(axis=0) for part in counts)
    squares = sum((part**2).sum(axis=0) for part in counts)
    weights, by = _compared(x, y, squares, *map(len, counts))
    clearly = -special.ndtri(CHANCE / row.size**2)
    return np.triu(np.where(np.abs(by) > clearly, weights, 0.0))
