"""Records of categorical fields as codes: one row a record, one column a field; the full cross table is never made."""

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
    """Return checked records, shape (n, fields), without a copy if they are an array; there may be no records."""
    codes, fields = np.asarray(records), len(schema.attributes)
    if codes.ndim != 2 or codes.shape[1] != fields:
        raise ValueError(f"{name} must have one column for each of {fields} fields, got shape {codes.shape}")
    if not codes.size:
        return codes.astype(np.uint8)  # an empty list has no integer type
    if codes.dtype.kind not in "iu":
        raise TypeError(f"{name} must be codes, whole numbers from 0 on, got dtype {codes.dtype}")
    wrong = (codes.max(axis=0) >= np.array(schema.shape)) | (codes.min(axis=0) < 0)
    if wrong.any():
        place = int(np.argmax(wrong))
        column, levels = codes[:, place], schema.shape[place]
        code = column[(column < 0) | (column >= levels)][0]
        raise ValueError(f"codes of {list(schema.attributes)[place]} must be from 0 to {levels - 1}, got {code}")
    return codes


def bins_of(records: NDArray[Any], columns: Sequence[int], shape: Sequence[int]) -> NDArray[np.int64]:
    """Return the bin of each record in the cross table of some columns, the last of them running fastest."""
    bins = np.zeros(len(records), np.int64)
    for column in columns:
        bins *= shape[column]
        bins += records[:, column].astype(np.int64, copy=False)  # the sum of int64 and uint64 would be a float
    return bins


def code_type(schema: Schema) -> np.dtype[Any]:
    """Return the smallest unsigned type that holds the codes of every field."""
    return np.min_scalar_type(max(schema.shape, default=1) - 1)


def product(shape: Sequence[int], columns: Sequence[int]) -> int:
    """Return the number of bins in the cross table of some columns, as a Python integer, which cannot overflow."""
    return math.prod(shape[column] for column in columns)
