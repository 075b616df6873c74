"""Draws from a table: 65,536 entries of equal probability, each a value or "draw from what is left of the law".

Sixteen random bits choose an entry. A value of probability p fills the whole part of 65536 p entries. What is left of
the law has the remaining entries, and is inverted in float64. Source: Marsaglia, Tsang and Wang, "Fast Generation of
Discrete Random Variables", 2004, who have tables for further bits, too.
"""

from __future__ import annotations

import numpy as np

from algorithms.noise.drawing import Floats, Integers

__all__ = ["Table"]

ENTRIES = 1 << 16
LEFT = np.iinfo(np.int16).min  # the entry that is no value


class Table:
    """The table of a symmetric law on the integers, from the probabilities of 0, 1, 2, ...; the rest never occurs."""

    def __init__(self, probabilities: Floats) -> None:
        k = np.arange(probabilities.size)[::-1]  # the least likely first, where sums in float64 are finest
        self.values = np.column_stack([k, -k]).reshape(-1)[:-1]  # 0 once
        chances = ENTRIES * probabilities[np.abs(self.values)]
        integers = np.floor(chances).astype(np.int64)
        self.entries = np.full(ENTRIES, LEFT, np.int16)  # no value beyond 3,500 has an entry of its own
        self.entries[: integers.sum()] = np.repeat(self.values, integers)
        self.left = (chances - integers).cumsum()

    def fill(self, rng: np.random.Generator, out: Integers) -> None:
        """Overwrite an array with independent draws."""
        bits = rng.integers(0, 1 << 64, -(-out.size // 4), np.uint64).view(np.uint16)[: out.size]
        draws = np.empty(out.size, np.int16)
        np.take(self.entries, bits, out=draws, mode="clip")  # no index is beyond the table, and numpy need not look
        out[:] = draws
        others = np.flatnonzero(draws == LEFT)
        out[others] = self.values[self.left.searchsorted(rng.random(others.size) * self.left[-1], side="right")]
