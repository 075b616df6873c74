"""Records of categorical fields as codes: one row a record, one column a field, and never a cell over all fields."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.schema import Schema

__all__ = ["LARGEST_GROUP", "bins_of", "check_records", "code_type", "product"]

LARGEST_GROUP = 2**22
"""Most bins of a histogram: 32 MB an array, of which a few exist at a time."""


def check_records(records: ArrayLike, schema: Schema, *, name: str = "records") -> NDArray[Any]:
    """Return records, or say what is wrong with them.

    Parameters
    ----------
    records : array_like of int, shape (n, fields)
        Codes: the place of each record's level in each field. There may be no record, shape (0, fields): the promise
        holds for that database too.
    schema : Schema
        Fields, in the order of the columns, and their levels.
    name : str
        What they are called in an error.

    Returns
    -------
    ndarray of int, shape (n, fields)
        The same array where it was one.

    Raises
    ------
    ValueError
        If there is not one column a field, or a code is outside the levels of its field.
    TypeError
        If codes are not whole numbers.

    Examples
    --------
    >>> check_records([[0, 2], [1, 0]], Schema({"sex": "mf", "age": "abc"})).shape
    (2, 2)
    """
    given, fields = np.asarray(records), len(schema.attributes)
    if given.ndim != 2 or given.shape[1] != fields:
        raise ValueError(f"{name} must have one column for each of {fields} fields, got shape {given.shape}")
    if not given.size:
        return given.astype(np.uint8)  # an empty list has no integer type
    if given.dtype.kind not in "iu":
        raise TypeError(f"{name} must be codes, whole numbers from 0 on, got dtype {given.dtype}")
    wrong = (given.max(axis=0) >= np.array(schema.shape)) | (given.min(axis=0) < 0)
    if wrong.any():
        place = int(np.argmax(wrong))
        column, levels = given[:, place], schema.shape[place]
        code = column[(column < 0) | (column >= levels)][0]
        raise ValueError(f"codes of {list(schema.attributes)[place]} must be from 0 to {levels - 1}, got {code}")
    return given


def bins_of(records: NDArray[Any], columns: Sequence[int], shape: Sequence[int]) -> NDArray[np.int64]:
    """Return the bin of each record in the cross table of some fields, the last of them running fastest.

    Parameters
    ----------
    records : ndarray of int, shape (n, fields)
        Codes.
    columns : sequence of int
        The fields.
    shape : sequence of int
        Number of levels of every field, those not named too; the product of those named is below 2**63.

    Returns
    -------
    ndarray of int64, shape (n,)
        From 0 to the product of their levels, less 1.

    Examples
    --------
    >>> bins_of(np.array([[0, 2, 1], [1, 0, 1]]), (0, 1), (2, 3, 2))
    array([2, 3])
    """
    found = np.zeros(len(records), np.int64)
    for column in columns:
        found *= shape[column]
        found += records[:, column].astype(np.int64, copy=False)  # the sum of int64 and uint64 would be a float
    return found


def code_type(schema: Schema) -> np.dtype[Any]:
    """Return the smallest unsigned type that holds the codes of every field.

    Parameters
    ----------
    schema : Schema
        Fields and levels.

    Returns
    -------
    numpy.dtype
        Such as uint8.

    Examples
    --------
    >>> code_type(Schema({"year": [str(year) for year in range(300)]})).name
    'uint16'
    """
    return np.min_scalar_type(max(schema.shape, default=1) - 1)


def product(shape: Sequence[int], columns: Sequence[int]) -> int:
    """Return the number of bins in the cross table of some fields.

    Parameters
    ----------
    shape : sequence of int
        Number of levels of every field.
    columns : sequence of int
        The fields.

    Returns
    -------
    int
        A Python integer, which cannot overflow.
    """
    return math.prod(shape[column] for column in columns)
