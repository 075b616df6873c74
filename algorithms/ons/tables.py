"""Frequency tables: areas of one level by some attributes; the pilot's fourteen tables and four levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from algorithms.hierarchy import Hierarchy, check_counts
from algorithms.schema import Query, Schema

__all__ = ["PILOT_LEVELS", "PILOT_TABLES", "Counts", "Domain", "Table"]

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """A table of the areas of one level of the tree (0 is the root) by the groups of a query; see `Schema.query`."""

    level: int
    query: str

    def __str__(self) -> str:
        return f"level {self.level}: {self.query}"


PILOT_TABLES = (
    *(Table(2, query) for query in ("cause*age*sex", "cause*month*sex", "cause*marital*sex", "month*age")),
    *(Table(2, query) for query in ("month*marital", "cause", "age", "sex", "month", "marital")),
    *(Table(1, query) for query in ("cause*age", "cause*month", "cause*sex", "month*sex")),
)
"""Table 4 of the pilot: region is level 1 and clinical commissioning group level 2."""

PILOT_LEVELS = (Table(0, "total"), Table(0, "detailed"), Table(1, "detailed"), Table(2, "detailed"))
"""Total deaths; by all demographic variables; also by region; also by clinical commissioning group."""


@dataclass(frozen=True, eq=False)
class Domain:
    """Areas (all leaves at one depth) and attributes of histograms, and the sums that tables make of histograms."""

    tree: Hierarchy
    schema: Schema

    def __post_init__(self) -> None:
        pair: tuple[object, object] = (self.tree, self.schema)
        if not isinstance(pair[0], Hierarchy) or not isinstance(pair[1], Schema):
            kinds = " and ".join(type(value).__name__ for value in pair)
            raise TypeError(f"tree and schema must be a Hierarchy and a Schema, got {kinds}")
        shallow = self.tree.leaves[self.tree.leaves < self.tree.offsets[-2]]
        if shallow.size:
            raise ValueError(f"areas must end at one level, and {self.tree.name(int(shallow[0]))!r} ends above it")

    def check(self, histogram: ArrayLike) -> NDArray[np.integer]:
        """Return a checked histogram of people by leaf and cell, shape (leaves, cells); integers are not copied."""
        array, shape = np.asarray(histogram), (self.tree.n_leaves, self.schema.cells)
        if array.shape != shape:
            raise ValueError(f"histogram must have the shape (leaves, cells) = {shape}, got {array.shape}")
        counts = check_counts(array.reshape(-1)).reshape(shape)
        return counts if array.dtype.kind == "f" else array

    def query(self, table: Table) -> Query:
        """Return the query of a table."""
        self.tree.level(table.level)
        if table.query not in self._queries:
            self._queries[table.query] = self.schema.query(table.query)
        return self._queries[table.query]

    @cached_property
    def _queries(self) -> dict[str, Query]:
        """Cache of queries: making the labels of many cells takes longer than counting."""
        return {}

    def shape(self, table: Table) -> tuple[int, int]:
        """Return the number of areas and of groups of a table."""
        areas = self.tree.level(table.level)
        return areas.stop - areas.start, self.query(table).size

    def tabulate(self, histograms: NDArray[np.integer], tables: Sequence[Table]) -> list[Counts]:
        """Add people, shape (..., leaves, cells), up to tables: of shape (..., areas, groups) each."""
        added: dict[str, NDArray[np.integer]] = {}
        for table in tables:
            if table.query not in added:
                added[table.query] = self._by_group(histograms, self.query(table))
        return [self._by_area(added[table.query], table.level) for table in tables]

    def by_leaf(self, counts: Counts) -> Counts:
        """Return counts of the finest areas, shape (..., areas, groups), in the order of the leaves of histograms."""
        places = self.tree.leaves - self.tree.offsets[-2]
        return counts if (np.diff(places) == 1).all() else counts[..., places, :]

    def _by_group(self, histograms: NDArray[np.integer], query: Query) -> NDArray[np.integer]:
        if query.size == self.schema.cells:
            return histograms
        flat = histograms.reshape(-1, self.schema.cells)
        return np.asarray(flat @ _adder(query.groups.tobytes(), query.size)).reshape(*histograms.shape[:-1], query.size)

    def _by_area(self, counts: NDArray[np.integer], level: int) -> Counts:
        """Add leaves, shape (..., leaves, groups), up to the areas of a level."""
        order = np.argsort(self.tree.leaves)  # leaves of one area are side by side
        if not (np.diff(order) == 1).all():
            counts = counts[..., order, :]
        if level == self.tree.depth:
            return counts.astype(np.int64, copy=False)
        areas = self.tree.level(level)
        starts = np.searchsorted(self.tree.ancestors(level)[order], np.arange(areas.start, areas.stop))
        return np.add.reduceat(counts, starts, axis=-2, dtype=np.int64)


@lru_cache(maxsize=64)
def _adder(groups: bytes, size: int) -> sparse.csr_array:
    places = np.frombuffer(groups, np.int64)
    ones = np.ones(places.size, np.int64)
    return sparse.csr_array((ones, (np.arange(places.size), places)), shape=(places.size, size))
