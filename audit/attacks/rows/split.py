"""Which rows, and pairs of values, stand in tables on one database more often than on the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from audit.attacks.rows.tables import NO_ROW, Codes

__all__ = [
    "COLUMNS",
    "FEWEST",
    "HASHED",
    "Differing",
    "agreeing",
    "differing_pairs",
    "differing_rows",
    "hashed",
    "less",
]

Floats = NDArray[np.float64]

CHANCE = 1e-3  # that some of the rows which are compared differ as clearly on databases of equal laws
FEWEST = 8  # tables that hold a row from which it is compared
COLUMNS = 64  # up to which rows less one column are looked at, and pairs of columns
HASHED = np.uint64(8)  # bits of a hash that are not looked at: the others tell rows apart
REPEATS = 127  # of a row in one table that are told apart
PAIRED = 2**22  # numbers of pairs that are held in memory
FINE = 2.0**20  # of which weights are fractions, so that sums are exact in any order


class Differing(NamedTuple):
    """Rows less one column, or less none (-1), that differ: hashes in order, what each weighs, how clearly; one row."""

    without: int
    values: Codes
    weights: Floats
    by: Floats
    example: Codes  # of those that differ most clearly


def hashed(codes: Codes) -> Codes:
    """Return a hash of every row, shape (runs, rows): a sum, from which a column can be taken."""
    total = np.zeros(codes.shape[1:], np.uint64)
    for column, factor in zip(codes, _factors(codes), strict=True):
        total += column * factor
    return total


def less(hashes: Codes, codes: Codes, without: int) -> Codes:
    """Return the hashes of rows less one column, or less none, as far as they are looked at."""
    return (hashes if without < 0 else hashes - codes[without] * _factors(codes)[without]) >> HASHED


def _factors(codes: Codes) -> Codes:
    """Return an odd number for each column, always the same."""
    return np.random.default_rng(0).integers(2**63, size=len(codes), dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def differing_rows(sides: Sequence[Codes]) -> list[Differing]:
    """Return the rows, whole and less one column, whose number in a table clearly differs; most clearly first."""
    width, whole = len(sides[0]), [hashed(codes) for codes in sides]
    tallies = {}
    for without in range(-1, width if 1 < width <= COLUMNS else 0):
        none = less(hashed(no_row := np.full((width, 1, 1), NO_ROW)), no_row, without)[0, 0]
        tallies[without] = _tally([less(*of, without) for of in zip(whole, sides, strict=True)], none)
    clearly = -special.ndtri(CHANCE / 2 / max(sum(by.size for _, _, by in tallies.values()), 1))
    differing = []
    for without, (values, weights, by) in tallies.items():
        if (far := np.abs(by) > clearly).any():
            of_most = values[np.abs(by).argmax()]
            rows = [codes[:, less(of, codes, without) == of_most] for of, codes in zip(whole, sides, strict=True)]
            example = np.concatenate(rows, axis=1)[:, 0]
            differing.append(Differing(without, values[far], weights[far], by[far], example))
    return sorted(differing, key=lambda one: -np.abs(one.by).max())


def _tally(sides: Sequence[Codes], none: np.uint64) -> tuple[Codes, Floats, Floats]:
    """Return the hashes that enough tables have, what each weighs, and by how many standard errors it differs."""
    packed = []
    for side, hashes in enumerate(sides):  # in one number: the row, which database it is of, how often the table has it
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
    """Return where rows have the values of a row, as 0 and 1 of shape (runs, columns, rows)."""
    return np.asarray(np.moveaxis(codes == row[:, None, None], 0, 1), np.float64)


def differing_pairs(sides: Sequence[Codes], row: Codes) -> Floats:
    """Return what pairs of columns weigh, by how many rows have the values of one in both: 0 if that hardly differs."""
    few = [agreeing(codes[:, : PAIRED // row.size**2], row) for codes in sides]
    counts = [np.triu(part @ np.swapaxes(part, 1, 2)) for part in few]
    x, y = (part.sum(axis=0) for part in counts)
    squares = sum((part**2).sum(axis=0) for part in counts)
    weights, by = _compared(x, y, squares, *map(len, counts))
    clearly = -special.ndtri(CHANCE / row.size**2)
    return np.asarray(np.where(np.abs(by) > clearly, weights, 0.0))
