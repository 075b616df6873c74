"""What a release of the pilot's methods publishes: ``table_1.csv``, ``table_2.csv``, ..., and synthetic people.

The top-down method also has ``microdata.csv``, one row a synthetic person.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product, repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import Rng
from algorithms.ons.independent import IndependentNoise
from algorithms.ons.tables import Domain, Table
from algorithms.ons.top_down import PILOT_SHARES, OnsTopDown
from algorithms.release.columns import COUNT, TableColumn, TableFile, attribute_columns, check_distinct, code_columns
from algorithms.release.engine import Published, described, level_names, margins, publishing, tell_rare
from algorithms.release.shares import Share
from algorithms.schema import Schema

__all__ = ["LARGEST_RELEASE", "Release", "check_columns", "default_levels", "release"]

LARGEST_RELEASE = 400_000_000  # synthetic persons that are written: noise alone makes more where the budget is tiny


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(Published):
    """Released tables, each of shape (areas, groups), and the synthetic people that they were counted from, if any.

    Areas are the names of the levels below the whole; people have the shape (leaves, cells). The data are not in it.
    """

    mechanism: IndependentNoise | OnsTopDown
    areas: tuple[str, ...]
    tables: tuple[Table, ...]
    counts: tuple[NDArray[Any], ...]
    people: NDArray[np.int64] | None

    @property
    def ledger(self) -> str:
        """What the release spends on what, and promises in the end, in words."""
        mechanism = self.mechanism
        names = [self._words(table) for table in self._measured]
        width = max(map(len, names))
        lines = [f"{'':<{width}}  {'COUNTS':>9}  {'SHARE':>9}  {'EPSILON':>9}  {'VARIANCE':>10}"]  # of the noise
        for name, table, share, noise in zip(names, self._measured, mechanism.shares, mechanism.noises, strict=True):
            cells = math.prod(mechanism.domain.shape(table))
            lines.append(f"{name:<{width}}  {cells:>9,}  {share!s:>9}  {noise.epsilon:>9.4g}  {noise.variance:>10.4g}")
        what = "tables" if isinstance(mechanism, IndependentNoise) else "levels"
        source = "read from the data. Which areas exist is taken as public, and no promise covers it"
        lines += [
            f"total of all {what}: {mechanism.claim}, {mechanism.law} noise, one person added or removed",
            f"areas: {'from a public list' if self.listed else source}",
        ]
        if self.people is None and self._nonnegative:
            lines.append("Negative counts were raised to 0: counts near 0 are too high on average.")
        if self.people is not None:
            lines.append("Synthetic people and their tables are made from the noisy counts, and spend nothing more.")
            lines.append("VARIANCE is of the noisy counts. People are fitted to them: rare groups are too large.")
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        """Tables and people."""
        people = "" if self.people is None else f" and {int(self.people.sum()):,} synthetic people"
        return f"{len(self.tables)} table{'s' * (len(self.tables) != 1)}{people}"

    @property
    def about(self) -> dict[str, Any]:
        """What made the release."""
        mechanism = self.mechanism
        names = map(self._words, self._measured)
        return {
            "method": "independent" if isinstance(mechanism, IndependentNoise) else "top-down",
            "law": mechanism.law,
            "shares": {name: str(share) for name, share in zip(names, mechanism.shares, strict=True)},
            "nonnegative": self._nonnegative,
            "tables": [self._words(table) for table in self.tables],
            **described(mechanism.tree, ("total", *self.areas), mechanism.schema, listed=self.listed),
        }

    @property
    def files(self) -> dict[str, TableFile]:
        """The tables: areas, attributes and groupings, counts; of a synthetic person areas and attributes."""
        files = {}
        for number, (table, counts) in enumerate(zip(self.tables, self.counts, strict=True), 1):
            groups = (TableColumn(name, "level or group", codes=names) for name, names in self._named(table).items())
            columns = [*code_columns(self.areas[: table.level]), *groups, COUNT]
            files[f"table_{number}.csv"] = TableFile(columns, self._table_rows(table, counts))
        if self.people is not None:
            columns = [*code_columns(self.areas, noisy=True), *attribute_columns(self.mechanism.schema, noisy=True)]
            files["microdata.csv"] = TableFile(columns, self._record_rows(self.people))
        return files

    @property
    def _measured(self) -> Sequence[Table]:
        """What noise was added to."""
        return self.mechanism.tables if isinstance(self.mechanism, IndependentNoise) else self.mechanism.levels

    @property
    def _nonnegative(self) -> bool:
        """Whether no count can be negative: the top-down method counts synthetic people."""
        return not isinstance(self.mechanism, IndependentNoise) or self.mechanism.nonnegative

    def _words(self, table: Table) -> str:
        return f"{('total', *self.areas)[table.level]}: {table.query}"

    def _named(self, table: Table) -> dict[str, Sequence[str]]:
        """Return the attributes and groupings of a table with their levels, in the order of the schema."""
        schema = self.mechanism.schema
        names = [word.strip() for word in table.query.split("*")]
        columns: dict[str, Sequence[str]] = {}
        for attribute, levels in schema.attributes.items():
            if attribute in names or table.query == "detailed":
                columns[attribute] = levels
            for name, grouping in schema.groupings.items():
                if name in names and grouping.attribute == attribute:
                    columns[name] = list(grouping.groups)
        return columns

    def _table_rows(self, table: Table, counts: NDArray[Any]) -> Iterator[Sequence[Any]]:
        tree, groups = self.mechanism.tree, list(product(*self._named(table).values()))
        for node, row in zip(range(*tree.level(table.level).indices(tree.n_nodes)), counts.tolist(), strict=True):
            codes = tree.codes(node)
            for group, count in zip(groups, row, strict=True):
                yield *codes, *group, count

    def _record_rows(self, people: NDArray[np.int64]) -> Iterator[Sequence[Any]]:
        tree, cells = self.mechanism.tree, list(product(*self.mechanism.schema.attributes.values()))
        for leaf, node in enumerate(tree.leaves.tolist()):
            codes = tree.codes(node)
            for cell in np.flatnonzero(people[leaf]):
                yield from repeat((*codes, *cells[cell]), int(people[leaf, cell]))


def release(
    mechanism: IndependentNoise | OnsTopDown,
    histogram: ArrayLike,
    *,
    areas: Sequence[str],
    tables: Sequence[Table] = (),
    out: str | os.PathLike[str] | None = None,
    rng: Rng = "secure",
    **about: Any,
) -> Release:
    """Run a method of the pilot once, and write it to the folder `out`, which must not exist or be empty.

    Tables are counted from the synthetic people of the top-down method; independent noise has its own. A release takes
    secure noise, about 30 microseconds a count; a seeded generator is for simulations.
    """
    check_columns(areas, mechanism.schema)
    names, first = level_names(areas, mechanism.tree), mechanism.noises[0]
    if isinstance(rng, str):
        if mechanism.law != "geometric":
            raise ValueError(f"secure noise must be of the geometric law, got {mechanism.law}: others can be simulated")
        first.sample((0,), rng)  # a source of noise that is missing is told before the work
    if isinstance(mechanism, IndependentNoise) and tables:
        raise ValueError(f"tables of independent noise are its own, got {tables[0]} besides")
    if isinstance(mechanism, OnsTopDown):
        if not mechanism.perturb_zeros:
            raise ValueError("a release must perturb zeros: without that it promises nothing")
        for table in tables:
            mechanism.domain.query(table)  # a table that cannot be counted is told before there is noise
        if math.sqrt(first.variance) > LARGEST_RELEASE:
            raise ValueError(
                f"a release must have at most {LARGEST_RELEASE:,} people, and noise of epsilon {first.epsilon:.3g} on "
                "their number makes more: raise epsilon"
            )
    about |= {"claim": mechanism.claim, "mechanism": mechanism, "areas": names}
    with publishing(out) as publish:
        if isinstance(mechanism, IndependentNoise):
            counts = tuple(table[0] for table in mechanism.release(histogram, 1, rng))
            return publish(Release(tables=tuple(mechanism.tables), counts=counts, people=None, **about))
        people = mechanism(histogram, 1, rng)[0]
        if people.sum() > LARGEST_RELEASE:  # how many is for releases only
            raise ValueError(
                f"a release must have at most {LARGEST_RELEASE:,} people, and noise made more: raise epsilon"
            )
        _tell_rare(mechanism, names, np.asarray(histogram), people)
        counts = tuple(mechanism.domain.tabulate(people, tables))
        return publish(Release(tables=tuple(tables), counts=counts, people=people, **about))


def _tell_rare(mechanism: OnsTopDown, names: Sequence[str], histogram: NDArray[Any], people: NDArray[Any]) -> None:
    """Name levels of attributes, and areas, of which there are far more or fewer synthetic people than people."""
    exact, fitted = (margins(mechanism.schema, cells.sum(axis=0)) for cells in (histogram, people))
    tell_rare(mechanism.schema, exact, fitted, "synthetic")
    tree = mechanism.tree
    for level, name in enumerate(names, 1):
        nodes = range(*tree.level(level).indices(tree.n_nodes))
        place = Schema({name: tuple(" / ".join(tree.codes(node)) for node in nodes)})
        old, new = (tree.totals(cells.sum(axis=1))[nodes.start : nodes.stop] for cells in (histogram, people))
        tell_rare(place, [old], [new], "synthetic")


def check_columns(areas: Sequence[str], schema: Schema) -> None:
    """Refuse names of areas that a file could not have beside the others."""
    check_distinct([*areas, *schema.attributes, *schema.groupings, "COUNT"])
    if reserved := [name for name in areas if name.lower() == "total"]:
        raise ValueError(f"areas must not be called total, which is the whole, got {reserved[0]!r}")


def default_levels(domain: Domain) -> tuple[tuple[Table, ...], tuple[Share, ...]]:
    """Return levels for any depth of areas, and shares of the budget by the pilot's rule (its section 5)."""
    levels = (Table(0, "total"), *(Table(level, "detailed") for level in range(domain.tree.depth + 1)))
    if domain.tree.depth == 2:
        return levels, PILOT_SHARES
    roots = [Fraction(round(1000 * math.sqrt(math.prod(domain.shape(level))))) for level in levels[1:]]
    rest = [Fraction(99, 100) * root / sum(roots) for root in roots]
    return levels, (Fraction(1, 100), *rest)
