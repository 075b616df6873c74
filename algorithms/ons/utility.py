"""Utility of a released table compared with the actual one: transition matrices and three distances."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["CLASSES", "transition_matrix", "utility"]

CLASSES = ("0", "1", "2", "3", "4", "5-10", "11-25", "26-50", "51-100", "101-1000", "1000+")
"""Classes of counts in the pilot's Tables 6 and 7. A count of 1,000 is in "101-1000"."""
_BEGINNINGS = np.array([0, 1, 2, 3, 4, 5, 11, 26, 51, 101, 1001])


def transition_matrix(actual: ArrayLike, released: ArrayLike) -> NDArray[np.int64]:
    """Count cells by class of the actual count and of the rounded released one (Tables 6 and 7): shape (11, 12)."""
    before, after = np.asarray(actual), np.asarray(released)
    if before.shape != after.shape:
        raise ValueError(f"actual and released must have one shape, got {before.shape} and {after.shape}")
    if before.size and before.min() < 0:
        raise ValueError(f"actual counts must not be negative, got {before.min()}")
    rows, columns = (np.searchsorted(_BEGINNINGS, np.rint(counts), side="right") - 1 for counts in (before, after))
    columns = np.where(columns < 0, len(CLASSES), columns)
    matrix = np.zeros((len(CLASSES), len(CLASSES) + 1), np.int64)
    np.add.at(matrix, (rows, columns), 1)
    return matrix


def utility(actual: ArrayLike, released: ArrayLike) -> dict[str, float]:
    """Return the pilot's four measures (section 5, Figures 3 to 6) of the error of a released table of counts.

    They are the share of counts that stay in their class, and the L1, L2 and Hellinger distances.
    """
    matrix = transition_matrix(actual, released)
    if not matrix.sum():
        raise ValueError("tables must have one cell at least, got none")
    before, after = np.asarray(actual, np.float64), np.asarray(released, np.float64)
    difference, possible = after - before, after.min() >= 0
    return {
        "on_diagonal": float(np.trace(matrix) / matrix.sum()),
        "l1": float(np.abs(difference).sum()),
        "l2": float(np.sqrt(np.square(difference).sum())),
        "hellinger": float(np.sqrt(np.square(np.sqrt(after) - np.sqrt(before)).sum() / 2)) if possible else math.nan,
    }
