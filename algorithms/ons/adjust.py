"""What the top-down method does to noisy counts: floor, proportional adjustment, and the maximum remainder method."""

from __future__ import annotations

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
    totals, parts = np.asarray(parents, np.int64), np.asarray(values, np.float64)
    sums, out = parts.sum(axis=1), np.floor(parts).astype(np.int64)
    missing = totals - out.sum(axis=1)  # a millionth, which rounding may take, may be whole persons
    right = (np.abs(sums - totals) <= 1e-6 * np.maximum(totals, 1)) & (missing >= 0) & (missing <= parts.shape[1])
    if not right.all():
        raise ValueError(f"parts of {totals[~right][0]} must add up to it, got {sums[~right][0]:.15g}")
    some = np.flatnonzero(missing > 0)
    remainders = np.rint((parts[some] - out[some]) / TIE)
    if rng is not None:
        remainders += rng.random(remainders.shape)
    order = np.argsort(-remainders, axis=1, kind="stable")
    up = np.arange(parts.shape[1]) < missing[some, np.newaxis]
    raised = np.zeros(order.shape, np.int64)
    np.put_along_axis(raised, order, up.astype(np.int64), axis=1)
    out[some] += raised
    return out
