"""An alias table compiled by numba, with numpy's generator: what the samplers of noise are compared with."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["alias_sampler"]


@numba.njit(error_model="numpy")
def _fill(rng, kept, other, least, out):  # type: ignore[no-untyped-def]
    for place in range(out.size):
        scaled = rng.random() * kept.size
        column = int(scaled)
        out[place] = least + (column if scaled - column < kept[column] else other[column])


def alias_sampler(values: NDArray[np.int64], chances: NDArray[np.float64]) -> Callable[..., NDArray[np.int64]]:
    """Return a sampler of consecutive whole numbers by Walker's method, as Vose (1991) builds its table."""
    kept, other = chances / chances.sum() * values.size, np.arange(values.size)
    few, many = ([*np.flatnonzero(kept < 1)], [*np.flatnonzero(kept >= 1)])
    while few and many:
        low, high = few.pop(), many[-1]
        other[low] = high
        kept[high] -= 1 - kept[low]
        if kept[high] < 1:
            few.append(many.pop())
    for place in (*few, *many):
        kept[place] = 1.0

    def sample(size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        out = np.empty(size, np.int64)
        _fill(rng, kept, other, int(values[0]), out)
        return out

    return sample
