"""Known bugs of random number generators: noise that is two-tailed geometric for a sensitivity of 1, but not random.

**Claim.** All of them promise pure DP with `epsilon` when one person is added or removed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from algorithms.bugs.bug import Integers, TableBug
from algorithms.flaxman import GDPC
from algorithms.noise import Rng

__all__ = ["CachedNoise", "ForkedAreas", "OneStream", "SeededByData", "SeededByTime"]


class SeededByData(TableBug):
    """Noise drawn from a generator that the counts themselves seed, so that a table always looks the same.

    **Bug.** A reader who knows the algorithm can compute the noise of every possible table. **True loss.** Infinite.
    **Source.** Thompson et al., 2013.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        return np.tile(GDPC(self.epsilon)(exact, 1, np.random.default_rng(exact)), (size, 1))

    def _alone(self, here: Integers, other: Integers) -> float:
        only_here, only_other = (self._release(counts, 1, "secure") for counts in (here, other))  # `rng` is not used
        return not np.array_equal(only_here, only_other)


class OneStream(TableBug):
    """Noise drawn from a generator with a fixed seed, left behind from testing: every table gets the same stream.

    **Bug.** The source code determines the noise, which cancels in the difference of tables. **True loss.** Infinite.
    Runs share their noise, so an audit must refuse them. **Source.** CWE-336.
    """

    def _seed(self) -> int:
        return 20200401

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        return GDPC(self.epsilon)(exact, size, np.random.default_rng(self._seed()))

    def _alone(self, here: Integers, other: Integers) -> float:
        return not np.array_equal(here, other)


@dataclass(frozen=True)
class SeededByTime(OneStream):
    """Noise drawn from a generator that is seeded with the time in whole seconds when a batch begins.

    **Bug.** A year has 3 * 10**7 seconds, and the day of a release is known. `clock` returns the time in seconds.
    **True loss.** Infinite if the second is known. Runs are not independent, so an audit must refuse them.
    **Source.** CWE-337.
    """

    clock: Callable[[], float] = time.time

    def _seed(self) -> int:
        return int(self.clock())


class ForkedAreas(TableBug):
    """Noise added to parts of the table by worker processes, each with a copy of one generator.

    **Bug.** The first area of both workers gets the same noise. **True loss.** Infinite: differences of such areas are
    exact. Each area alone keeps the promise. **Source.** numpy/numpy#9650.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        draw = self._draw(exact.size)
        return exact + self.noise.sample((size, int(draw.max()) + 1), rng)[:, draw]

    def _alone(self, here: Integers, other: Integers) -> float:
        shift = other - here
        return bool((shift != shift[self._draw(here.size)]).any())

    def _draw(self, areas: int) -> NDArray[np.int64]:
        """Index of the worker's draw that each area gets, shape (areas,)."""
        return np.arange(areas) % ((areas + 1) // 2)


class CachedNoise(TableBug):
    """Noise kept in a cache, so that the same question gets the same answer; its key is the true count.

    **Bug.** Cells with the same count get the same noise. **True loss.** Infinite: two cells of 7 people always agree,
    cells of 7 and 8 mostly do not. Each cell alone keeps the promise. **Source.** Our own; Gadotti et al., 2019.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        values, key = np.unique(exact, return_inverse=True)
        return GDPC(self.epsilon)(values, size, rng)[:, key]

    def _alone(self, here: Integers, other: Integers) -> float:
        changed = np.flatnonzero(here != other)
        if changed.size != 1:
            return 0.0
        cell = changed[0]
        company_here, company_other = (np.sum(counts == counts[cell]) > 1 for counts in (here, other))
        if company_here or not company_other:
            return 0.0
        # On `other` the two cells are always equal; on `here` only if their independent noises differ by `shift`.
        q, shift = math.exp(-self.epsilon), abs(int(here[cell] - other[cell]))
        return 1 - math.tanh(self.epsilon / 2) ** 2 * q**shift * (shift + (1 + q * q) / (1 - q * q))
