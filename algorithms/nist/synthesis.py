"""Synthetic rows from noisy histograms: for each group, independently, a bin drawn in proportion to its noisy count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.nist.groups import Groups
from algorithms.nist.records import code_type
from algorithms.schema import Schema
from audit.arguments import whole_number

__all__ = ["Fitted", "check_rows", "draw_bins"]

MOST_ROWS, MOST_VALUES = 50_000_000, 1_000_000_000  # largest release: a few gigabytes


@dataclass(frozen=True, eq=False)
class Fitted:
    """The input of synthesis: for each group, the bins with a noisy count above 0 after the cut, and these counts."""

    schema: Schema
    groups: Groups
    bins: tuple[NDArray[np.int64], ...]
    counts: tuple[NDArray[np.int64], ...]
    rows: int

    @property
    def uniform(self) -> tuple[str, ...]:
        """Names of the groups without a bin above the cut: their rows are uniform over all bins, pure noise."""
        return tuple(name for name, counts in zip(self.groups.names, self.counts, strict=True) if not counts.size)

    @property
    def people(self) -> int:
        """Noisy number of people, at least 1, from the histogram with the fewest bins: least noise, least cut off."""
        sizes = [math.prod(self._levels(group)) for group in range(len(self.groups))]
        return max(1, int(self.counts[int(np.argmin(sizes))].sum()))

    def _levels(self, group: int) -> list[int]:
        return [len(self.schema.attributes[name]) for name in self.groups.fields[group]]

    def codes(self, group: int, bins: NDArray[np.int64]) -> NDArray[Any]:
        """Return the codes of some bins of a group, in the order of its fields, shape (bins, its fields)."""
        levels = self._levels(group)
        columns = np.empty((bins.size, len(levels)), code_type(self.schema))
        for column, codes in enumerate(np.unravel_index(bins, levels)):
            columns[:, column] = codes
        return columns

    def synthesize(self, rows: int | None = None, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Make synthetic rows, shape (rows, fields); any generator will do, as the histograms are already noisy."""
        number = check_rows(self.rows if rows is None else rows, len(self.schema.attributes))
        chance = np.random.default_rng() if rng is None else rng
        place = {name: column for column, name in enumerate(self.schema.attributes)}
        people = np.empty((number, len(place)), code_type(self.schema))
        for group, names in enumerate(self.groups.fields):
            bins, counts = self.bins[group], self.counts[group]
            if counts.size:
                chosen = bins[draw_bins(counts[np.newaxis], number, chance)[0]]
            else:
                chosen = chance.integers(0, math.prod(self._levels(group)), number)
            people[:, [place[name] for name in names]] = self.codes(group, chosen)
        return people


def check_rows(rows: int, fields: int) -> int:
    """Return the number of rows; refuse more than 50 million rows or a billion values."""
    if whole_number("rows", rows, least=1) > MOST_ROWS:
        raise ValueError(f"rows must be at most {MOST_ROWS:,}, got {rows:,}")
    if rows * fields > MOST_VALUES:
        raise ValueError(f"rows x fields must be at most {MOST_VALUES:,}, got {rows:,} x {fields:,}")
    return int(rows)


def draw_bins(counts: NDArray[np.int64], rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw bins exactly in proportion to whole counts, shape (runs, bins); uniformly if all counts are 0."""
    runs, bins = counts.shape
    weights = np.where(counts.any(axis=1, keepdims=True), counts, 1)
    totals = weights.sum(axis=1, keepdims=True)
    filled = np.flatnonzero(weights)  # few bins: searching only these fits the processor's cache
    ends = weights.reshape(-1)[filled].cumsum()
    tickets = rng.integers(0, totals, (runs, rows))
    tickets += np.cumsum(totals, axis=0) - totals
    place: NDArray[np.int64] = filled[np.searchsorted(ends, tickets, side="right")]
    place -= bins * np.arange(runs)[:, np.newaxis]
    return place
