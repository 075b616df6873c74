"""What the top-down method does to noisy counts: floor, proportional adjustment, and the maximum remainder method."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["FLOOR", "adjusted", "maximum_remainder"]

Floats = NDArray[np.float64]
FLOOR = 0.001
"""What a negative noisy value becomes."""
TIE = 1e-9  # remainders closer than this are equal: those of equal values differ in their last bits


def adjusted(parents: ArrayLike, values: ArrayLike) -> Floats:
    """Scale the parts of each parent, shape (families, parts), so that they add up to it, to rounding."""
    above, parts = np.asarray(parents, np.float64), np.asarray(values, np.float64)
    _check_families(above, parts)
    sums = parts.sum(axis=1)
    if (above[sums == 0] > 0).any():
        raise ValueError(f"parts of {above[(sums == 0) & (above > 0)][0]:g} must not all be 0")
    ratio: Floats = np.divide(above, sums, out=np.zeros_like(sums), where=sums > 0)
    return parts * ratio[:, np.newaxis]


def maximum_remainder(
    parents: ArrayLike, values: ArrayLike, rng: np.random.Generator | None = None
) -> NDArray[np.int64]:
    """Round the parts of each parent, shape (families, parts), down, and largest remainders up until all add up.

    Which of equal remainders is drawn at random, so that no part is favored (without a generator the first).
    """
    above, parts = np.asarray(parents), np.asarray(values, np.float64)
    _check_families(above, parts)
    totals = above.astype(np.int64)
    if (odd := above[totals != above]).size:
        raise ValueError(f"parents must be whole numbers, got {odd[0]}")
    sums = parts.sum(axis=1)
    _check_sums(totals, sums, np.abs(sums - totals) <= 1e-6 * np.maximum(totals, 1))
    out = np.floor(parts).astype(np.int64)
    missing = totals - out.sum(axis=1)
    _check_sums(totals, sums, (missing >= 0) & (missing <= parts.shape[1]))  # a millionth may be whole persons
    some = np.flatnonzero(missing > 0)
    remainders = parts[some] - out[some]
    remainders = np.rint(remainders / TIE)
    if rng is not None:
        remainders += rng.random(remainders.shape)
    order = np.argsort(-remainders, axis=1, kind="stable")
    up = np.arange(parts.shape[1]) < missing[some, np.newaxis]
    raised = np.zeros(order.shape, np.int64)
    np.put_along_axis(raised, order, up.astype(np.int64), axis=1)
    out[some] += raised
    return out


def _check_sums(totals: NDArray[np.int64], sums: Floats, right: NDArray[np.bool_]) -> None:
    if not right.all():
        raise ValueError(f"parts of {totals[~right][0]} must add up to it, got {sums[~right][0]:.15g}")


def _check_families(parents: NDArray[Any], values: Floats) -> None:
    if values.ndim != 2 or parents.shape != values.shape[:1]:
        shapes = f"{parents.shape} and {values.shape}"
        raise ValueError(f"parents and values must have the shapes (families,) and (families, parts), got {shapes}")
    for counts in (parents, values):
        low, high = counts.min(initial=0), counts.max(initial=0)  # NaN if one is
        if low < 0:
            raise ValueError(f"counts must not be negative, got {low:g}")
        if not high < np.inf:
            raise ValueError(f"counts must be finite, got {high:g}")
