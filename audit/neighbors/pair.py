"""Pairs of neighboring databases: built so that they cannot be wrong, or declared on the caller's word."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.arguments import whole_number
from audit.claims import Relation, check_relation
from audit.io.html import as_facts
from audit.neighbors.counts import check_counts, check_records, distance_of_counts, distance_of_records, frozen
from audit.neighbors.tables import check_table, distance_of_tables, is_table, joined, replaced, units_of

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
        Whether plaudit computed the distance, or takes the caller's word. Every result repeats it.
    label : str
        What the pair is, in words.
    confidential : bool
        Whether the databases are confidential: every result then says that it is confidential, too.
    key : str, optional
        Table column that names the unit of each row, if a unit may have several rows. Without it each row is a unit.

    Raises
    ------
    ValueError
        If relation, unit or distance is not allowed, or the databases are not at that distance.
    TypeError
        If verified data are not counts, records or tables.

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
        notes = ["CONFIDENTIAL: the databases are."] if self.confidential else []
        return as_facts(self.label or "Neighboring databases", facts, notes=notes)

    def __post_init__(self) -> None:
        check_relation(self.relation)
        if self.unit not in get_args(Unit):
            raise ValueError(f"unit must be one of {', '.join(get_args(Unit))}, got {self.unit!r}")
        if self.adjacency not in get_args(Adjacency):
            raise ValueError(f'adjacency must be "verified" or "declared", got {self.adjacency!r}')
        object.__setattr__(self, "distance", whole_number("distance", self.distance, least=1))
        check: Callable[[Any], Any]
        measure: Callable[[Any, Any, Relation], int | None] | None
        if self.adjacency == "declared":
            check, measure = _as_given, None
        elif is_table(self.x) or is_table(self.y):
            check, measure = check_table, partial(distance_of_tables, key=self.key)
        elif self.unit == "record":
            check, measure = check_records, distance_of_records
        else:
            check, measure = check_counts, distance_of_counts
        for name in ("x", "y"):
            object.__setattr__(self, name, check(getattr(self, name)))
        steps = measure(self.x, self.y, self.relation) if measure else self.distance
        if steps != self.distance:
            actual = "no number of steps" if steps is None else f"distance {steps}"
            raise ValueError(f"the databases must be at distance {self.distance} under {self.relation}, got {actual}")

    @classmethod
    def add_people(
        cls, counts: ArrayLike, cell: int | tuple[int, ...], people: int = 1, *, label: str = ""
    ) -> NeighborPair:
        """Add people to one cell: a pair under ``"add_remove"``.

        Parameters
        ----------
        counts : array_like of int
            People in each cell, of any shape: the database `x`.
        cell : int or tuple of int
            Where they are added.
        people : int
            How many: the distance of the pair.
        label : str, optional
            What the pair is, in words.

        Raises
        ------
        ValueError
            If counts are negative or not whole, there is no such cell, or fewer than 1 person is added.
        TypeError
            If counts or `people` are not numbers.
        """
        x = check_counts(counts)
        people = whole_number("people", people, least=1)
        y = x.copy()
        y[_inside(cell, x)] += people
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
        """Move people from one cell to another: a pair under ``"replace_one"``.

        Parameters
        ----------
        counts : array_like of int
            People in each cell, of any shape: the database `x`.
        source, target : int or tuple of int
            Two different cells; `source` holds at least `people`.
        people : int
            How many: the distance of the pair.
        label : str, optional
            What the pair is, in words.

        Raises
        ------
        ValueError
            If counts are negative or not whole, a cell does not exist or holds too few, or source and target are one.
        TypeError
            If counts or `people` are not numbers.
        """
        x = check_counts(counts)
        people = whole_number("people", people, least=1)
        start, end = _inside(source, x), _inside(target, x)
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
    def add_record(cls, records: ArrayLike, record: ArrayLike, *, label: str = "") -> NeighborPair:
        """Add one record at the end: a pair under ``"add_remove"``, with unit ``"record"``.

        Parameters
        ----------
        records : array_like, shape (n, ...)
            One record per row: the database `x`. It may be empty if it has the columns, shape (0, ...).
        record : array_like, shape (...)
            The additional record of `y`.
        label : str, optional
            What the pair is, in words.

        Raises
        ------
        ValueError
            If the record does not have the shape of a row, or a record holds NaN.
        TypeError
            If the records are Python objects, which cannot be compared.
        """
        x = check_records(records)
        row = np.asarray(record)
        if row.shape != x.shape[1:]:
            raise ValueError(f"a record must have the shape of a row, {x.shape[1:]}, got {row.shape}")
        y = np.concatenate([x, row[None].astype(np.result_type(x, row))])
        return cls(x.astype(y.dtype), y, "add_remove", unit="record", label=label or "1 record added")

    @classmethod
    def add_row(cls, table: Any, row: Mapping[Any, Any], *, unit: Unit = "person", label: str = "") -> NeighborPair:
        """Add one row to a table, the data of one unit: a pair under ``"add_remove"``.

        Parameters
        ----------
        table : DataFrame of pandas or polars, or list of dict
            The database `x`, which is copied. A pandas frame has the index 0, 1, ...
        row : mapping
            A value for every column, of the column's type; columns keep their types. In a list of dicts a column has
            the types that its rows show.
        unit, label : str
            As in `NeighborPair`; use `add_group` where a unit has several rows.

        Raises
        ------
        ValueError
            If the row lacks a column, has an unknown one, or has a value that does not fit its column.
        TypeError
            If the table is of another kind or holds cells that cannot be compared, or the row is not a mapping.

        Notes
        -----
        Cost: plaudit compares all rows of both databases, about 5 s for a million rows of ten columns.

        Examples
        --------
        >>> pair = NeighborPair.add_row([{"age": 31, "area": "A"}], {"age": 50, "area": "B"})
        >>> pair.y
        [{'age': 31, 'area': 'A'}, {'age': 50, 'area': 'B'}]
        """
        return cls.add_group(table, [row], unit=unit, label=label)

    @classmethod
    def replace_row(
        cls, table: Any, index: int, row: Mapping[Any, Any], *, unit: Unit = "person", label: str = ""
    ) -> NeighborPair:
        """Replace one row of a table, the data of one unit: a pair under ``"replace_one"``.

        Parameters
        ----------
        table : DataFrame of pandas or polars, or list of dict
            The database `x`, as `add_row` takes it.
        index : int
            Which row, the first being 0.
        row : mapping
            What `y` has in its place: another row, as `add_row` takes it.
        unit, label : str
            As in `NeighborPair`.

        Raises
        ------
        ValueError
            If there is no such row, the new one is the same, or `add_row` would refuse it.
        TypeError
            If `index` is no integer, or the table or row is of the wrong kind.
        """
        x = check_table(table)
        y = replaced(x, index, row)
        return cls(x, y, "replace_one", unit=unit, label=label or f"row {index} replaced")

    @classmethod
    def add_group(
        cls,
        table: Any,
        rows: Sequence[Mapping[Any, Any]],
        *,
        key: str | None = None,
        unit: Unit = "person",
        label: str = "",
    ) -> NeighborPair:
        """Add several rows to a table: a group of units, or all rows of units that may have several rows.

        The distance is the number of units that the rows belong to; a measured loss is divided by it. plaudit counts
        the units itself. Without `key` each row is a unit of its own: the larger distance, and so the smaller loss.

        Parameters
        ----------
        table : DataFrame of pandas or polars, or list of dict
            The database `x`, as `add_row` takes it.
        rows : sequence of mapping
            The additional rows of `y`, at least one, each as `add_row` takes it.
        key : str, optional
            Column that names the unit of each row: rows with the same name are one unit, not yet in `table`.
        unit, label : str
            As in `NeighborPair`.

        Raises
        ------
        ValueError
            If there are no rows, a unit is in the table already or has no name, or `add_row` would refuse a row.
        TypeError
            If the table or a row is of the wrong kind.

        Examples
        --------
        >>> visits = [{"patient": "a", "cost": 10.0}]
        >>> pair = NeighborPair.add_group(visits, [{"patient": "b", "cost": 3.0}] * 5, key="patient")
        >>> len(pair.y), pair.distance, pair.label
        (6, 1, '5 rows of 1 patient added')
        """
        rows = list(rows)
        if not rows:
            raise ValueError("at least one row must be added, got none")
        x = check_table(table)
        y = joined(x, rows)
        units = len(rows)
        if key is not None:
            before, after = units_of(x, key), units_of(y, key)
            for name, data in before.items():
                if after[name] != data:
                    raise ValueError(f"units that are added must not be in the table, got {key} {name}")
            units = len(after) - len(before)
        words = f"{len(rows)} row{'s' * (len(rows) > 1)}" + (f" of {units} {key}{'s' * (units > 1)}" if key else "")
        return cls(x, y, "add_remove", units, unit, label=label or f"{words} added", key=key)

    @classmethod
    def declared(
        cls, x: Any, y: Any, relation: Relation, *, distance: int = 1, unit: Unit = "person", label: str = ""
    ) -> NeighborPair:
        """Trust the caller that two databases are neighbors; every result says so.

        Parameters
        ----------
        x, y : object
            Whatever the mechanism reads.
        relation : {"add_remove", "replace_one"}
            What one step between neighbors is.
        distance : int
            Steps from `x` to `y`.
        unit, label : str
            As in `NeighborPair`.

        Raises
        ------
        ValueError
            If relation, unit or distance is not allowed.
        """
        return cls(x, y, relation, distance, unit, "declared", label or "a declared pair")

    def as_confidential(self) -> NeighborPair:
        """Return the same pair, marked as confidential: every result, report and figure of its audits says so."""
        return replace(self, confidential=True)

    def under(self, relation: Relation) -> NeighborPair:
        """Return the same two databases under another relation, with the distance under that relation.

        Replacing is removing and adding, so a replacement is two steps of ``"add_remove"``.

        Parameters
        ----------
        relation : {"add_remove", "replace_one"}
            The relation wanted.

        Raises
        ------
        ValueError
            If the relation is unknown, or an ``"add_remove"`` pair is asked for ``"replace_one"``.
        """
        check_relation(relation)
        if relation == self.relation:
            return self
        if relation == "replace_one":
            raise ValueError("people added or removed are not replaced: build the pair with move_people")
        return replace(self, relation=relation, distance=2 * self.distance)


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"


def _as_given(data: Any) -> Any:
    """Return arrays and lists of numbers as read-only arrays, and everything else, ragged lists included, untouched."""
    if isinstance(data, list):
        try:
            array = np.asarray(data)
        except ValueError:
            return data
        return frozen(array) if array.dtype.kind in "biufc" else data
    return frozen(np.asarray(data)) if isinstance(data, np.ndarray) else data


def _inside(cell: int | tuple[int, ...], counts: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the index of a cell of `counts`, or refuse it: negative indices do not count from the end."""
    index = tuple(whole_number("cell", i, least=0) for i in (cell if isinstance(cell, tuple) else (cell,)))
    if len(index) != counts.ndim or any(i >= n for i, n in zip(index, counts.shape, strict=True)):
        raise ValueError(f"cell must be from {', '.join(f'0 to {n - 1}' for n in counts.shape)}, got {cell}")
    return index
