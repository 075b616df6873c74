"""Counts of people and arrays of records: what they may be, and how far apart two of them are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.arguments import LARGEST
from audit.claims import Relation

__all__ = ["check_counts", "check_records", "distance_of_counts", "distance_of_records", "frozen", "steps"]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only copy."""
    array = array.copy()
    array.flags.writeable = False
    return array


def check_counts(data: Any) -> NDArray[np.int64]:
    """Return counts of people, of any shape, as a read-only copy, or say what is wrong with them."""
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
    """One record a row, as a read-only copy."""
    array = np.asarray(data)
    if array.dtype.kind == "O":
        raise TypeError("records must be numbers or text, got Python objects (use NeighborPair.declared for them)")
    if array.ndim == 0:
        raise ValueError("records must be one a row, got a single value")
    if np.any(array != array):
        raise ValueError("records must not hold NaN, which equals no other record (use NeighborPair.declared for them)")
    return frozen(array)


def distance_of_counts(x: NDArray[np.int64], y: NDArray[np.int64], relation: Relation) -> int | None:
    """Return the steps between two tables of counts, or None where no number of steps leads from one to the other."""
    if x.shape != y.shape:
        return None
    return steps(int(np.maximum(y - x, 0).sum()), int(np.maximum(x - y, 0).sum()), relation)


def distance_of_records(x: NDArray[Any], y: NDArray[Any], relation: Relation) -> int | None:
    """Return the steps between two multisets of records, or None where there is no such number."""
    if x.shape[1:] != y.shape[1:]:
        return None
    _, which = np.unique(np.concatenate([x, y]), axis=0, return_inverse=True)
    difference = np.bincount(which, np.repeat([-1, 1], [len(x), len(y)]))
    return distance_of_counts(np.zeros_like(difference), difference, relation)


def steps(added: int, removed: int, relation: Relation) -> int | None:
    """Return the steps that so many additions and removals take, or None where replacing does not lead there."""
    if relation == "add_remove":
        return added + removed
    return added if added == removed else None
