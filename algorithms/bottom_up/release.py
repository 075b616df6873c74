"""What a bottom-up release publishes: noisy cells, and all tables by adding them up.

The folder holds ``level_0.csv``, ``level_1.csv``, ... with every area of the level (0 is the root), and a column for
each level of areas down to it. Noisy counts may be negative.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bottom_up.calibration import agreement, check_totals, whole_cells
from algorithms.bottom_up.inverse_cdf import InverseCdf
from algorithms.bottom_up.mechanism import MOST_ATTRIBUTES, BottomUp
from algorithms.bottom_up.weighted import WeightedBottomUp
from algorithms.hierarchy import Hierarchy
from algorithms.noise import Rng, TwoTailedGeometric
from algorithms.release.columns import COUNT, TableFile, attribute_columns, check_distinct, code_columns
from algorithms.release.engine import Published, described, level_names, margins, publishing, tell_rare
from algorithms.release.frames import Frame
from algorithms.schema import CROSS, DETAILED, TOTAL, Schema

__all__ = ["LARGEST_RELEASE", "Release", "check_size", "release"]

LARGEST_RELEASE = 50_000_000
"""Most rows that are written: a few gigabytes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(Published):
    """Noisy cells in whole numbers, shape (leaves, cells), not the data; `areas` are the levels below the root."""

    mechanism: BottomUp | WeightedBottomUp
    schema: Schema
    tree: Hierarchy
    cells: NDArray[Any]
    areas: tuple[str, ...]

    @cached_property
    def tables(self) -> list[Frame]:
        """All tables of each level, the root's first."""
        margins, tables = self.mechanism.of_counts.margins(self.cells), []
        for level in range(self.tree.depth + 1):
            nodes = self.tree.level(level)
            codes = np.array([self.tree.codes(node) for node in range(nodes.start, nodes.stop)], dtype=object)
            areas = dict(zip(self.areas, codes.T, strict=False))
            tables.append(
                Frame.concatenate([_rows(self.schema, query, areas, table[nodes]) for query, table in margins.items()])
            )
        return tables

    @property
    def files(self) -> dict[str, TableFile]:
        """Areas down to the level, and the same columns at every level."""
        weighted = isinstance(self.mechanism, WeightedBottomUp)
        count = replace(COUNT, meaning="weighted number of people, with noise", unit="people") if weighted else COUNT
        attributes = attribute_columns(self.schema, more="; empty where all levels are added up")
        kept = replace(count, meaning=f"{count.meaning}; of all levels of all attributes, as published before")
        totals, files = self.mechanism.published, {}
        for level, table in enumerate(self.tables):
            last = count if totals is None or level > totals.level else kept
            files[f"level_{level}.csv"] = TableFile(
                (*code_columns(self.areas[:level]), *attributes, last), table.rows()
            )
        return files

    @property
    def summary(self) -> str:
        """Rows and levels."""
        return f"\n{sum(map(len, self.tables)):,} rows in {len(self.tables)} levels"

    @property
    def ledger(self) -> str:
        """What the release promises to lose at most, and how far its counts are off, in words."""
        mechanism, schema, tree, law = self.mechanism, self.schema, self.tree, self.mechanism.of_counts.law
        sampler = "exact" if not isinstance(law, InverseCdf) else f"inverse distribution function, {law.bits} bits"
        unit = "person" if isinstance(mechanism, BottomUp) else f"record of weight {mechanism.largest_weight:g} or less"
        deviation = math.sqrt(TwoTailedGeometric(law.epsilon).variance)
        lines = [
            f"{'promise':<24} {mechanism.claim}: {self._covered(unit)}",
            f"{'sensitivity':<24} {mechanism.sensitivity:,} in one of {tree.n_leaves * schema.cells:,} cells",
            f"{'noise of a cell':<24} two-tailed geometric, epsilon {law.epsilon:g} a person ({sampler})",
            "",
            f"{'level':<24} {'areas':>9} {'deviation of a cell':>20} {'of the total':>14}",
        ]
        leaves = tree.totals(np.ones(tree.n_leaves, np.int64))
        for j, name in enumerate(("root", *self.areas)):
            most = int(leaves[tree.level(j)].max())
            cell, total = deviation * math.sqrt(most), deviation * math.sqrt(most * schema.cells)
            lines.append(f"{name:<24} {tree.level(j).stop - tree.level(j).start:>9,} {cell:>20.4g} {total:>14.4g}")
        return "\n".join([*lines, "", *self._warnings()])

    def _covered(self, unit: str) -> str:
        totals = self.mechanism.published
        if totals is None:
            return f"one {unit} added or removed"
        if not totals.everywhere(self.tree):
            return f"one {unit} added or removed, relative to the published totals"
        return (
            "covers nobody who is added or removed, for every area has a published total; "
            f"one {unit} moved within an area costs up to {2 * self.mechanism.epsilon:g}"
        )

    def _warnings(self) -> list[str]:
        law, warnings = self.mechanism.of_counts.law, []
        if isinstance(law, InverseCdf):
            probability = "" if not law.tabulated else f" with probability {law.exact_loss(1).infinite_mass:.1e}"
            warnings.append(
                f"The sampler does not keep the promise: no noise beyond {law.reach:,} occurs, so that a count "
                f"tells{probability} that a person is there for certain."
            )
        if isinstance(self.mechanism, WeightedBottomUp):
            warnings.append("Weighted counts were rounded to whole people before noise.")
        if self.mechanism.published is not None:
            warnings.append(
                "The promise is relative to the published totals: it covers no record whose presence changes one. "
                "Counts were calibrated to them and rounded to whole people, which the deviations above leave out."
            )
        if not self.listed:
            warnings.append("Which areas there are was read from the data, and is taken as public.")
        return warnings or ["The promise is relative to no invariant: no count is published exactly."]

    @property
    def about(self) -> dict[str, Any]:
        """Sampler, sensitivity, and what is published besides."""
        mechanism, totals = self.mechanism, self.mechanism.published
        relative = {} if totals is None else {"relative_to": "published totals"}
        return {
            "promise": mechanism.claim.to_dict() | relative,
            "sampler": mechanism.noise,
            "sensitivity": mechanism.sensitivity,
            "noise_epsilon": mechanism.of_counts.law.epsilon,
            "largest_weight": None if isinstance(mechanism, BottomUp) else float(mechanism.largest_weight),
            "published_totals": None if totals is None else {"level": totals.level, "tolerance": totals.tolerance},
            **described(self.tree, ("root", *self.areas), self.schema, listed=self.listed),
        }


def check_size(areas: int, schema: Schema) -> None:
    """Refuse attributes, and so many areas, of which no release can be made, as soon as they are known."""
    if reserved := [name for name in schema.attributes if name.upper() == "COUNT"]:
        raise ValueError(f"attributes must not be called COUNT, as a column of the tables is, got {reserved[0]!r}")
    if (number := len(schema.shape)) > MOST_ATTRIBUTES:
        raise ValueError(f"a release must be of at most {MOST_ATTRIBUTES} attributes, got {number}")
    if (rows := areas * math.prod(side + 1 for side in schema.shape)) > LARGEST_RELEASE:
        raise ValueError(f"a release must have at most {LARGEST_RELEASE:,} rows, got {rows:,} or more")


def release(
    mechanism: BottomUp | WeightedBottomUp,
    counts: ArrayLike,
    *,
    out: str | os.PathLike[str] | None = None,
    rng: Rng = "secure",
    areas: Sequence[str] | None = None,
    **about: Any,
) -> Release:
    """Run the bottom-up mechanism once, publish all its tables, and write them to the new or empty folder `out`.

    Counts are people, shape (leaves, cells), of a weighted sample rounded as `mechanism.counts` does. A release takes
    secure noise; a seeded generator is for simulations.
    """
    schema, tree = mechanism.schema, mechanism.tree
    if schema is None or tree is None:
        raise ValueError("a release needs a tree and a schema, so that its tables have names")
    names = level_names(areas, tree)
    check_size(tree.n_nodes, schema)
    check_distinct((*names, *schema.attributes, "COUNT"))
    if isinstance(rng, str) and mechanism.noise != "exact":
        raise ValueError(f'a secure release needs noise="exact", got {mechanism.noise!r}: its noise ends')
    of_counts = mechanism.of_counts
    exact = of_counts.counts(counts)
    if (totals := of_counts.published) is not None:
        check_totals(totals, tree, exact)
    with publishing(out) as publish:
        cells = of_counts(exact, 1, rng)[0]
        if totals is not None:
            chance = np.random.default_rng() if isinstance(rng, str) else rng  # noise is drawn: any will do
            cells = whole_cells(cells, totals, agreement(totals, tree, exact), chance)
            tell_rare(schema, margins(schema, exact.sum(axis=0)), margins(schema, cells.sum(axis=0)), "in the tables")
        about |= {"claim": mechanism.claim, "mechanism": mechanism}
        return publish(Release(schema=schema, tree=tree, cells=cells, areas=names, **about))


def _rows(schema: Schema, query: str, areas: dict[str, NDArray[Any]], table: NDArray[Any]) -> Frame:
    """Return the rows of one margin of some areas."""
    named = {DETAILED: list(schema.attributes), TOTAL: []}.get(query, query.split(CROSS))
    sides = [len(levels) if name in named else 1 for name, levels in schema.attributes.items()]
    places = np.unravel_index(np.arange(table.shape[1]), sides)
    columns: dict[str, Any] = {name: np.repeat(codes, table.shape[1]) for name, codes in areas.items()}
    for (name, levels), place in zip(schema.attributes.items(), places, strict=True):
        words = np.array(levels if name in named else [""], dtype=object)
        columns[name] = np.tile(words[place], len(table))
    columns["COUNT"] = table.reshape(-1)
    return Frame(columns)
