"""Pairs of neighboring databases: checked by plaudit, or declared by the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from audit.arguments import whole_number
from audit.claims import Relation, check_relation
from audit.io.html import as_html
from audit.neighbors.counts import At, check_counts, check_records, filled, inside, place_of, where
from audit.neighbors.tables import as_given, check_table, compared, distance_of_tables, joined, replaced, units_of

__all__ = ["Adjacency", "NeighborPair", "Unit"]

Unit = Literal["person", "household", "record"]
Adjacency = Literal["verified", "declared"]


@dataclass(frozen=True, eq=False)
class NeighborPair:
    """Two databases, their neighbor relation and their distance.

    plaudit compares counts entry by entry, and records and tables row by row as multisets. It refuses a pair that is
    not at the stated distance. Use `declared` for databases that it cannot compare.

    Attributes
    ----------
    x, y : ndarray
        The two databases, copied: counts of one shape, records (one per row), or tables with the same columns (frames
        of pandas or polars, lists of dicts). Arrays are read-only. With ``adjacency="declared"``, anything.
    relation : {"add_remove", "replace_one"}
        What one step between neighbors is.
    distance : int
        Steps from `x` to `y`; a measured loss is divided by it, as group privacy allows.
    unit : {"person", "household", "record"}
        Whose data changes in one step. Arrays are records if it is ``"record"``, and counts otherwise.
    adjacency : {"verified", "declared"}
        Whether plaudit computed the distance, or the caller declared it.
    label : str
        Description of the pair.
    confidential : bool
        Whether the databases are confidential: every result then says that it is.
    key : str, optional
        Table column that names the unit of each row, if a unit may have several rows.

    Examples
    --------
    >>> pair = NeighborPair.move_people([5, 0, 2], source=0, target=2)
    >>> pair.y, pair.relation, pair.distance
    (array([4, 0, 3]), 'replace_one', 1)
    """

    x: Any
    y: Any
    relation: Relation
    distance: int = 1
    unit: Unit = "person"
    adjacency: Adjacency = "verified"
    label: str = ""
    confidential: bool = False
    key: str | None = None

    def _repr_html_(self) -> str:
        step = {"add_remove": "added or removed", "replace_one": "replaced"}[self.relation]
        known = {"verified": "computed from the databases", "declared": "declared by the caller"}[self.adjacency]
        facts = [
            ("neighbors", f"one {self.unit} {step}"),
            ("distance", f"{'1 step' if self.distance == 1 else f'{self.distance:,} steps'}, {known}"),
            ("databases", f"{type(self.x).__name__} {getattr(self.x, 'shape', '')}"),
        ]
        notes = self.confidential * ["CONFIDENTIAL: the databases are."]
        return as_html(self.label or "Neighboring databases", facts, notes=notes)

    def __post_init__(self) -> None:
        check_relation(self.relation)
        if self.unit not in get_args(Unit):
            raise ValueError(f"unit must be one of {', '.join(get_args(Unit))}, got {self.unit!r}")
        if self.adjacency not in get_args(Adjacency):
            raise ValueError(f'adjacency must be "verified" or "declared", got {self.adjacency!r}')
        object.__setattr__(self, "distance", whole_number("distance", self.distance, least=1))
        x, y, steps = (
            compared(self.x, self.y, self.relation, records=self.unit == "record", key=self.key)
            if self.adjacency == "verified"
            else (as_given(self.x), as_given(self.y), self.distance)
        )
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)
        if steps != self.distance:
            actual = "no number of steps" if steps is None else f"distance {steps}"
            raise ValueError(f"the databases must be at distance {self.distance} under {self.relation}, got {actual}")

    @classmethod
    def add_people(
        cls, counts: ArrayLike, cell: int | tuple[int, ...], people: int = 1, *, label: str = ""
    ) -> NeighborPair:
        """Add people to one cell of counts of any shape: a pair under ``"add_remove"``; each person is one step."""
        x = check_counts(counts)
        people = whole_number("people", people, least=1)
        y = x.copy()
        y[inside(cell, x)] += people
        return cls(x, y, "add_remove", people, label=label or f"{_people(people)} added to cell {cell}")

    @classmethod
    def move_people(
        cls,
        counts: ArrayLike,
        source: int | tuple[int, ...],
        target: int | tuple[int, ...],
        people: int = 1,
        *,
        label: str = "",
    ) -> NeighborPair:
        """Move people from the cell `source` to `target`: a pair under ``"replace_one"``; see `add_people`."""
        x = check_counts(counts)
        people = whole_number("people", people, least=1)
        start, end = inside(source, x), inside(target, x)
        if start == end:
            raise ValueError(f"source and target must differ, got {source} twice")
        if x[start] < people:
            raise ValueError(f"cell {source} must hold the people who move: {people}, got {x[start]}")
        y = x.copy()
        y[start] -= people
        y[end] += people
        return cls(
            x, y, "replace_one", people, label=label or f"{_people(people)} moved from cell {source} to {target}"
        )

    @classmethod
    def add_record(cls, records: ArrayLike, record: ArrayLike, *, at: At = "last", label: str = "") -> NeighborPair:
        """Add one record to `records`, shape (n, ...): a pair under ``"add_remove"``, with unit ``"record"``.

        In the record, shape (...), None is NaN, NaT or empty text; whole numbers are then floats on both sides. `at` is
        its place: ``"last"``, ``"first"``, an index, or ``"random"``, which depends on the number of records only.
        """
        x = check_records(records)
        row, place = filled(record, x), place_of(at, len(x))
        if row.shape != x.shape[1:]:
            raise ValueError(f"a record must have the shape of a row, {x.shape[1:]}, got {row.shape}")
        x = x.astype(np.result_type(x, row))
        y = np.concatenate([x[:place], row[None].astype(x.dtype), x[place:]])
        return cls(x, y, "add_remove", unit="record", label=label or f"1 record added{where(place, len(x))}")

    @classmethod
    def add_row(
        cls, table: Any, row: Mapping[Any, Any], *, at: At = "last", unit: Unit = "person", label: str = ""
    ) -> NeighborPair:
        """Add one row to a table, the data of one unit: a pair under ``"add_remove"``; `at` as in `add_record`.

        The table, of pandas or polars or a list of dicts, is copied and compared: about 5 s for a million rows of ten
        columns. The row maps every column to a value of its type, or to None, which becomes the column's missing value:
        a pandas column of integers or booleans then gets a type that has missing values, on both sides.
        """
        return cls.add_group(table, [row], at=at, unit=unit, label=label)

    @classmethod
    def add_group(
        cls,
        table: Any,
        rows: Sequence[Mapping[Any, Any]],
        *,
        at: At = "last",
        key: str | None = None,
        unit: Unit = "person",
        label: str = "",
    ) -> NeighborPair:
        """Add several rows to a table: a group of units, or all rows of units that may have several rows.

        The distance is the number of units that the rows belong to. The column `key` names the unit of each row, which
        is not in the table yet; without it each row is a separate unit. See `add_row`.
        """
        rows = list(rows)
        if not rows:
            raise ValueError("at least one row must be added, got none")
        x = check_table(table)
        place = place_of(at, len(x))
        x, y = joined(x, rows, place)
        units = len(rows)
        if key is not None:
            before, after = units_of(x, key), units_of(y, key)
            for name, data in before.items():
                if after[name] != data:
                    raise ValueError(f"units that are added must not be in the table, got {key} {name}")
            units = len(after) - len(before)
        words = f"{len(rows)} row{'s' * (len(rows) > 1)}" + (f" of {units} {key}{'s' * (units > 1)}" if key else "")
        label = label or f"{words} added{where(place, len(x))}"
        return cls(x, y, "add_remove", units, unit, label=label, key=key)

    @classmethod
    def replace_row(
        cls, table: Any, index: int, row: Mapping[Any, Any], *, unit: Unit = "person", label: str = ""
    ) -> NeighborPair:
        """Replace the row at an index, from 0, of a table: a pair under ``"replace_one"``; see `add_row`."""
        return cls.replace_group(table, [index], [row], unit=unit, label=label or f"row {index} replaced")

    @classmethod
    def replace_group(
        cls,
        table: Any,
        indices: Sequence[int],
        rows: Sequence[Mapping[Any, Any]],
        *,
        key: str | None = None,
        unit: Unit = "person",
        label: str = "",
    ) -> NeighborPair:
        """Replace rows of a table, at indices in order: those of a group of units, or of units with several rows.

        The distance is the number of units that the replaced rows belong to, as in `add_group`. As many units replace
        them, which may have other numbers of rows than before.
        """
        indices = list(indices)
        x, y = replaced(check_table(table), indices, list(rows))
        units = distance_of_tables(x, y, "replace_one", key) or 1  # the pair is then refused
        return cls(x, y, "replace_one", units, unit, label=label or f"{len(indices)} rows replaced", key=key)

    @classmethod
    def declared(
        cls, x: Any, y: Any, relation: Relation, *, distance: int = 1, unit: Unit = "person", label: str = ""
    ) -> NeighborPair:
        """Trust the caller that two databases, whatever the mechanism reads, are neighbors; every result says so."""
        return cls(x, y, relation, distance, unit, "declared", label or "a declared pair")

    def as_confidential(self) -> NeighborPair:
        """Return the same pair, marked as confidential: every result, report and figure of its audits says so."""
        return replace(self, confidential=True)

    def under(self, relation: Relation) -> NeighborPair:
        """Return the same two databases under another relation, with the distance under that relation.

        Replacing is removing and adding, so a replacement is two steps of ``"add_remove"``; the other way is an error.
        """
        check_relation(relation)
        if relation == self.relation:
            return self
        if relation == "replace_one":
            raise ValueError("people added or removed are not replaced: build the pair with move_people")
        return replace(self, relation=relation, distance=2 * self.distance)


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"
