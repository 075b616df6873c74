"""Utility of synthetic rows: their total-variation distance to real rows on random margins of a few fields."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.nist.records import bins_of, check_records, product
from algorithms.schema import Schema
from audit.arguments import whole_number

__all__ = ["marginal_distance"]

MOST_CELLS = 2**63  # int64 can number this many cells
TABULATED = 2**22  # most cells of a margin counted in a full table; larger margins count only cells that occur


def marginal_distance(
    first: ArrayLike,
    second: ArrayLike,
    schema: Schema,
    *,
    ways: int = 3,
    marginals: int = 100,
    rng: np.random.Generator,
) -> float:
    """Return the mean total-variation distance between the margins of two databases, over random sets of fields.

    It is from 0 (the same margins) to 1 (nothing in common). Source: Ridgeway, Theofanos, Manley and Task, "Challenge
    Design and Lessons Learned from the 2018 Differential Privacy Challenges", NIST Technical Note 2151, 2021.

    Parameters
    ----------
    first, second : array_like of int, shape (n, fields) and (m, fields)
        Codes of at least one record each; the numbers of records may differ.
    schema : Schema
        Fields and levels.
    ways, marginals : int
        Number of fields in a margin, and number of different sets of fields, or all sets if there are fewer.
    rng : numpy Generator
        Chooses the sets; the same seed chooses the same sets.
    """
    both = [check_records(records, schema) for records in (first, second)]
    if not all(map(len, both)):
        raise ValueError(f"databases must have one record at least, got {len(both[0])} and {len(both[1])}")
    fields = len(schema.attributes)
    whole_number("marginals", marginals, least=1)
    if whole_number("ways", ways, least=1) > fields:
        raise ValueError(f"ways must be at most {fields}, got {ways}")
    sets = _sets(fields, ways, marginals, rng)
    by_column = [np.asfortranarray(records) for records in both]
    return math.fsum(_distance(by_column, schema, columns) for columns in sets) / len(sets)


def _sets(fields: int, ways: int, marginals: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    if math.comb(fields, ways) <= marginals:
        return list(combinations(range(fields), ways))
    sets: dict[tuple[int, ...], None] = {}
    while len(sets) < marginals:
        sets[tuple(sorted(rng.choice(fields, ways, replace=False).tolist()))] = None
    return list(sets)


def _distance(both: list[NDArray[np.int64]], schema: Schema, columns: tuple[int, ...]) -> float:
    if (cells := product(schema.shape, columns)) >= MOST_CELLS:
        raise ValueError(f"margins must have fewer than 2**63 cells, got {cells:,}")
    bins = [bins_of(records, columns, schema.shape) for records in both]
    if cells > TABULATED:
        known, numbers = np.unique(np.concatenate(bins), return_inverse=True)
        cells, bins = known.size, [*np.split(numbers, [len(both[0])])]
    p, q = (np.bincount(one, minlength=cells) / one.size for one in bins)
    return float(np.abs(p - q).sum() / 2)
