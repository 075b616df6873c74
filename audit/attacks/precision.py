"""The attack on float noise: the last bits of a noisy number can reveal the value that the noise was added to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import Explored, changed_entries, explore, index_of, is_number, largest
from audit.attacks.protocol import Exploration
from audit.attacks.statistics import of_entry
from audit.events import DECIMALS, Statistic

__all__ = ["WAY_OUT", "candidates", "lowest_bit", "significant_bits"]

IntArray = NDArray[np.int64]

WAY_OUT = (
    "The last bits of float noise tell the databases apart: release rounded or exact noise; "
    'attack=Attack.without("precision") is for a simulation whose real counterpart does not use float noise.'
)
MOST = 2  # entries whose bits are tried: those that the pair changes, and as many whose bits move most
GLIMPSE = 2**17  # numbers of either database that choose these entries
BITS = 52  # bits of the fraction of a float64
ZERO, NO_NUMBER = 2000, 3000  # codes for 0, which has no bit, and for values that are not numbers


def candidates(exploration: Exploration) -> tuple[Statistic, ...]:
    """Return statistics of the bits of some entries that are neither whole nor rounded [1]_ [2]_.

    A sum of a count and noise is rounded to the grid of floats, which is coarser for larger numbers: with a count of
    0, the sum can have bits that it never has with a count of 1.

    References
    ----------
    .. [1] Mironov, "On Significance of the Least Significant Bits for Differential Privacy", 2012.
    .. [2] Haney et al., "Precision-based attacks and interval refining", 2022, arXiv 2207.13793.
    """
    explored = explore(exploration)
    indices = changed_entries(exploration.pair, exploration.shape, MOST)
    changed = [int(np.ravel_multi_index(index, exploration.shape)) for index in indices]
    entries = [index_of(entry, exploration.shape) for entry in entries_with_bits(explored, changed)]
    return tuple(statistic for index in entries for statistic in bits_of(index))


def entries_with_bits(explored: Explored, changed: list[int]) -> list[int]:
    """Return entries whose numbers have bits beyond nine decimals: the changed ones, and those whose bits move most."""
    x, y = explored.first(GLIMPSE)
    if x.dtype.kind != "f" and y.dtype.kind != "f":
        return []
    rough: NDArray[np.bool_] = np.concatenate([_unrounded(x), _unrounded(y)]).any(axis=0)  # type: ignore[assignment]
    entries = np.flatnonzero(rough)
    bits_x, bits_y = (np.minimum(lowest_bit(side[:, entries]), 0).astype(np.float64) for side in (x, y))
    error = np.sqrt(bits_x.var(axis=0) / len(x) + bits_y.var(axis=0) / len(y)) + 1e-9
    by = np.abs(bits_x.mean(axis=0) - bits_y.mean(axis=0)) / error
    moving = entries[largest(by, MOST)].tolist()
    return list(dict.fromkeys([entry for entry in changed if rough[entry]] + moving))


def bits_of(index: tuple[int, ...]) -> tuple[Statistic, ...]:
    """Return the statistics of the bits of one entry."""
    return (
        of_entry("lowest bit of {}, as a power of 2", index, lowest_bit),
        of_entry("significant bits of {}", index, significant_bits),
    )


def lowest_bit(values: NDArray[Any]) -> IntArray:
    """Return the largest k for which each value is a multiple of 2**k; `ZERO` for 0, `NO_NUMBER` for no number."""
    mantissa, exponent, numbers = _parts(values)
    lowest = np.frexp((mantissa & -mantissa).astype(np.float64))[1] - 1
    return np.where(numbers, np.where(mantissa == 0, ZERO, lowest + exponent), NO_NUMBER)


def significant_bits(values: NDArray[Any]) -> IntArray:
    """Return the number of bits from the highest to the lowest set bit of each value; 0 for 0 and for no number."""
    mantissa, _, numbers = _parts(values)
    highest = np.frexp(np.abs(mantissa).astype(np.float64))[1]
    lowest = np.frexp((mantissa & -mantissa).astype(np.float64))[1]
    return np.where(numbers & (mantissa != 0), highest - lowest + 1, 0).astype(np.int64)


def _parts(values: NDArray[Any]) -> tuple[IntArray, IntArray, NDArray[np.bool_]]:
    """Return integers m and exponents e with values m * 2**e, and which values are numbers."""
    floats = values.astype(np.float64)
    numbers = is_number(floats)
    fraction, exponent = np.frexp(np.where(numbers, floats, 0.0))
    return np.ldexp(fraction, BITS + 1).astype(np.int64), exponent.astype(np.int64) - (BITS + 1), numbers


def _unrounded(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which values have bits that rounding to nine decimals removes."""
    floats = np.where(is_number(values), values, 0.0).astype(np.float64)
    with np.errstate(over="ignore"):
        rounded = np.round(floats, DECIMALS)
    return np.asarray((rounded != floats) & (np.rint(floats) != floats))  # whole numbers may be too large to round
