"""Counts of people and arrays of records: their checks, the places of added records, and distances."""

from __future__ import annotations

import random
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from audit.arguments import LARGEST, whole_number
from audit.claims import Relation

__all__ = [
    "At",
    "check_counts",
    "check_records",
    "distance_of_counts",
    "distance_of_records",
    "filled",
    "frozen",
    "inside",
    "is_missing",
    "place_of",
    "steps",
    "where",
]

At = int | Literal["last", "first", "random"]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only copy."""
    array = array.copy()
    array.flags.writeable = False
    return array


def check_counts(data: Any) -> NDArray[np.int64]:
    """Return counts of people, of any shape, as a read-only copy; refuse other data."""
    array = np.asarray(data)
    if array.dtype.kind not in "iuf":
        wrong = next((one for one in array.ravel().tolist() if type(one) not in (int, float)), array.dtype)
        raise TypeError(f"counts must be numbers, got {wrong!r} (in Python use NeighborPair.declared for other data)")
    if array.size == 0:
        raise ValueError(f"counts must have at least one cell, got shape {array.shape}")
    broken = array[~(np.isfinite(array) & (array == np.floor(array)))]
    if broken.size:
        raise ValueError(f"counts must be whole numbers, got {broken[0]}")
    if array.min() < 0:
        raise ValueError(f"counts must not be negative, got {array.min()}")
    if array.max() >= LARGEST:
        raise ValueError(f"counts must be below 2**53, got {array.max()}")
    return frozen(array.astype(np.int64))


def check_records(data: Any) -> NDArray[Any]:
    """Return records, one a row, as a read-only copy; refuse other data."""
    array = np.asarray(data)
    if array.dtype.kind == "O":
        raise TypeError("records must be numbers or text, got Python objects (use NeighborPair.declared for them)")
    if array.ndim == 0:
        raise ValueError("records must be one a row, got a single value")
    if array.dtype.kind not in "fmM" and np.any(array != array):
        raise ValueError("records must not hold NaN inside complex numbers or named fields (use NeighborPair.declared)")
    return frozen(array)


def filled(record: Any, records: NDArray[Any]) -> NDArray[Any]:
    """Return a record as an array, with missing values as records of this type have them."""
    array = np.asarray(record)
    values = np.asarray(record, object).ravel().tolist()
    if not any(map(is_missing, values)):
        return array
    kind = records.dtype.kind
    gap = {"U": "", "S": b"", "m": "NaT", "M": "NaT"}.get(kind, np.nan)
    values = [gap if is_missing(value) else value for value in values]
    return np.array(values, records.dtype if kind in "mM" else None).reshape(array.shape)


def is_missing(value: Any) -> bool:
    """Tell whether a value is missing: None, NaN, or a missing value of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return not getattr(value, "ndim", 0) and bool(value != value)


def place_of(at: object, number: int) -> int:
    """Return the place at which something is added to `number` others; a random one depends on `number` only."""
    places = {"first": 0, "last": number, "random": int(random.Random(number).random() * (number + 1))}
    if isinstance(at, str) and at in places:
        return places[at]
    if isinstance(at, bool) or not isinstance(at, int | np.integer) or not 0 <= at <= number:
        raise ValueError(f'at must be "last", "first", "random" or an index from 0 to {number}, got {at!r}')
    return int(at)


def where(place: int, number: int) -> str:
    """Return in words the place at which something was added to `number` others; empty if it is the last."""
    return "" if place == number else f" at index {place}" if place else " in front"


def inside(cell: int | tuple[int, ...], counts: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the index of a cell of `counts`, or refuse it: negative indices do not count from the end."""
    index = tuple(whole_number("cell", i, least=0) for i in (cell if isinstance(cell, tuple) else (cell,)))
    if len(index) != counts.ndim or any(i >= n for i, n in zip(index, counts.shape, strict=True)):
        raise ValueError(f"cell must be from {', '.join(f'0 to {n - 1}' for n in counts.shape)}, got {cell}")
    return index


def distance_of_counts(x: NDArray[np.int64], y: NDArray[np.int64], relation: Relation) -> int | None:
    """Return the steps between two tables of counts, or None if no number of steps leads from one to the other."""
    if x.shape != y.shape:
        return None
    return steps(int(np.maximum(y - x, 0).sum()), int(np.maximum(x - y, 0).sum()), relation)


def distance_of_records(x: NDArray[Any], y: NDArray[Any], relation: Relation) -> int | None:
    """Return the steps between two multisets of records, or None if there is no such number."""
    if x.shape[1:] != y.shape[1:]:
        return None
    rows = np.concatenate([x, y])
    if rows.dtype.kind in "fmM" and np.any(gaps := rows != rows):  # NaN, which equals nothing, itself included
        rows = np.stack([np.where(gaps, np.zeros((), rows.dtype), rows), gaps.astype(rows.dtype)], axis=-1)
    _, which = np.unique(rows, axis=0, return_inverse=True)
    difference = np.bincount(which, np.repeat([-1, 1], [len(x), len(y)]))
    return distance_of_counts(np.zeros_like(difference), difference, relation)


def steps(added: int, removed: int, relation: Relation) -> int | None:
    """Return the steps that so many additions and removals take, or None if replacements cannot do it."""
    if relation == "add_remove":
        return added + removed
    return added if added == removed else None
