"""Pairs of neighboring databases: built so that they cannot be wrong, or declared on the caller's word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.arguments import LARGEST, whole_number
from audit.claims import Relation, check_relation

__all__ = ["NeighborPair", "check_counts"]


Unit = Literal["person", "household", "record"]
Adjacency = Literal["verified", "declared"]


@dataclass(frozen=True, eq=False)
class NeighborPair:
    """Two databases and what lies between them.

    Counts of people in areas or cells are compared entry by entry, databases of records row by row as multisets; a pair
    that is not at the stated distance is refused. Use `declared` for data that cannot be compared here.

    Attributes
    ----------
    x, y : ndarray
        The two databases, read-only: counts of one shape, or one record a row. With ``adjacency="declared"``, anything.
    relation : {"add_remove", "replace_one"}
        What one step between neighbors is.
    distance : int
        Steps from `x` to `y`; a measured loss is divided by it, as group privacy allows.
    unit : {"person", "household", "record"}
        Whose data changes in one step; rows are compared when it is ``"record"``, counts otherwise.
    adjacency : {"verified", "declared"}
        Whether the distance was computed or taken on the caller's word. Every result repeats it.
    label : str
        What the pair is, in words.
    confidential : bool
        Whether the databases are: every result then says that it is, too.

    Raises
    ------
    ValueError
        If relation, unit or distance is not one of the allowed, or the databases are not at that distance.
    TypeError
        If verified data are not counts or records.

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

    def __post_init__(self) -> None:
        check_relation(self.relation)
        if self.unit not in get_args(Unit):
            raise ValueError(f"unit must be one of {', '.join(get_args(Unit))}, got {self.unit!r}")
        if self.adjacency not in get_args(Adjacency):
            raise ValueError(f'adjacency must be "verified" or "declared", got {self.adjacency!r}')
        object.__setattr__(self, "distance", whole_number("distance", self.distance, least=1))
        if self.adjacency == "declared":
            for name in ("x", "y"):
                object.__setattr__(self, name, _as_given(getattr(self, name)))
            return
        as_database = _records if self.unit == "record" else check_counts
        object.__setattr__(self, "x", as_database(self.x))
        object.__setattr__(self, "y", as_database(self.y))
        measure = _distance_of_records if self.unit == "record" else _distance_of_counts
        steps = measure(self.x, self.y, self.relation)
        if steps != self.distance:
            found = "no number of steps" if steps is None else f"distance {steps}"
            raise ValueError(f"the databases must be at distance {self.distance} under {self.relation}, got {found}")

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
            One record a row: the database `x`; it may be empty when it has the columns, shape (0, ...).
        record : array_like, shape (...)
            The record that `y` has besides.
        label : str, optional
            What the pair is, in words.

        Raises
        ------
        ValueError
            If the record does not have the shape of a row, or a record holds NaN.
        TypeError
            If the records are Python objects, which cannot be compared.
        """
        x = _records(records)
        row = np.asarray(record)
        if row.shape != x.shape[1:]:
            raise ValueError(f"a record must have the shape of a row, {x.shape[1:]}, got {row.shape}")
        y = np.concatenate([x, row[None].astype(np.result_type(x, row))])
        return cls(x.astype(y.dtype), y, "add_remove", unit="record", label=label or "1 record added")

    @classmethod
    def declared(
        cls, x: Any, y: Any, relation: Relation, *, distance: int = 1, unit: Unit = "person", label: str = ""
    ) -> NeighborPair:
        """Take two databases on the caller's word; every result will say so.

        Parameters
        ----------
        x, y : object
            Whatever the mechanism reads.
        relation : {"add_remove", "replace_one"}
            What one step between neighbors is.
        distance : int
            Steps from `x` to `y`.
        unit : {"person", "household", "record"}
            Whose data changes in one step.
        label : str, optional
            What the pair is, in words.

        Raises
        ------
        ValueError
            If relation, unit or distance is not one of the allowed.
        """
        return cls(x, y, relation, distance, unit, "declared", label or "a declared pair")

    def as_confidential(self) -> NeighborPair:
        """Return the same pair, marked: whatever is made of an audit of it then says that it is confidential."""
        return replace(self, confidential=True)

    def under(self, relation: Relation) -> NeighborPair:
        """Return the same two databases under another relation, with the distance that it gives.

        Replacing is removing and adding, so a replacement is two steps of ``"add_remove"``.

        Parameters
        ----------
        relation : {"add_remove", "replace_one"}
            The relation wanted.

        Raises
        ------
        ValueError
            If the relation is unknown, or ``"replace_one"`` is asked of an ``"add_remove"`` pair.
        """
        check_relation(relation)
        if relation == self.relation:
            return self
        if relation == "replace_one":
            raise ValueError("people added or removed are not replaced: build the pair with move_people")
        return replace(self, relation=relation, distance=2 * self.distance)


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array = array.copy()
    array.flags.writeable = False
    return array


def _as_given(data: Any) -> Any:
    """Return arrays and lists of numbers as read-only arrays, and everything else, ragged lists included, untouched."""
    if isinstance(data, list):
        try:
            array = np.asarray(data)
        except ValueError:
            return data
        return _frozen(array) if array.dtype.kind in "biufc" else data
    return _frozen(np.asarray(data)) if isinstance(data, np.ndarray) else data


def check_counts(data: Any) -> NDArray[np.int64]:
    """Return counts of people, of any shape, as a read-only copy, or say what is wrong with them."""
    given = np.asarray(data)
    if given.dtype.kind not in "iuf":
        raise TypeError(f"counts must be numbers, got dtype {given.dtype} (use NeighborPair.declared for other data)")
    if given.size == 0:
        raise ValueError(f"counts must have at least one cell, got shape {given.shape}")
    if not np.all(np.isfinite(given) & (given == np.floor(given))):
        raise ValueError(
            f"counts must be whole numbers, got {given[~(np.isfinite(given) & (given == np.floor(given)))][0]}"
        )
    if given.min() < 0:
        raise ValueError(f"counts must not be negative, got {given.min()}")
    if given.max() >= LARGEST:
        raise ValueError(f"counts must be below 2**53, got {given.max()}")
    return _frozen(given.astype(np.int64))


def _records(data: Any) -> NDArray[Any]:
    """One record a row, as a read-only copy."""
    given = np.asarray(data)
    if given.dtype.kind == "O":
        raise TypeError("records must be numbers or text, got Python objects (use NeighborPair.declared for them)")
    if given.ndim == 0:
        raise ValueError("records must be one a row, got a single value")
    if np.any(given != given):
        raise ValueError("records must not hold NaN, which equals no other record (use NeighborPair.declared for them)")
    return _frozen(given)


def _inside(cell: int | tuple[int, ...], counts: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the index of a cell of `counts`, or refuse it: negative indices do not count from the end."""
    index = tuple(whole_number("cell", i, least=0) for i in (cell if isinstance(cell, tuple) else (cell,)))
    if len(index) != counts.ndim or any(i >= n for i, n in zip(index, counts.shape, strict=True)):
        raise ValueError(f"cell must be inside counts of shape {counts.shape}, got {cell}")
    return index


def _distance_of_counts(x: NDArray[np.int64], y: NDArray[np.int64], relation: Relation) -> int | None:
    if x.shape != y.shape:
        return None
    added, removed = int(np.maximum(y - x, 0).sum()), int(np.maximum(x - y, 0).sum())
    if relation == "add_remove":
        return added + removed
    return added if added == removed else None


def _distance_of_records(x: NDArray[Any], y: NDArray[Any], relation: Relation) -> int | None:
    if x.shape[1:] != y.shape[1:]:
        return None
    _, which = np.unique(np.concatenate([x, y]), axis=0, return_inverse=True)
    difference = np.bincount(which[len(x) :], minlength=which.max(initial=0) + 1) - np.bincount(
        which[: len(x)], minlength=which.max(initial=0) + 1
    )
    return _distance_of_counts(np.zeros_like(difference), difference, relation)
