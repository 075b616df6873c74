"""Known bugs of where the noise comes from: two-tailed geometric, for a sensitivity of 1.

**Claim.** All of them promise pure DP with `epsilon` when one person is added or removed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from algorithms.bugs.bug import NO_LOSS, Integers, TableBug, int_field, loss_of_counts, table_reach
from algorithms.flaxman import GDPC
from algorithms.noise import Rng
from algorithms.noise.counts import DISJOINT
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["CachedNoise", "ForkedAreas", "OneStream", "SeededByData", "SeededByTime"]


class SeededByData(TableBug):
    """Noise drawn from a generator that the counts themselves seed, so that a table always looks the same.

    **Bug.** Whoever knows the algorithm knows the noise of every possible table. **True loss.** Infinite: all runs on
    one database are equal.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        return np.tile(GDPC(self.epsilon)(exact, 1, np.random.default_rng(exact)), (size, 1))

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        only_x, only_y = (self._release(counts, 1, "secure") for counts in (x, y))  # the generator is not used
        return NO_LOSS if np.array_equal(only_x, only_y) else DISJOINT


@dataclass(frozen=True)
class OneStream(TableBug):
    """Noise drawn from a generator with a fixed seed, left behind from testing: every table gets the same stream.

    **Bug.** The noise is in the source code; that of two tables cancels in their difference. **True loss.** Infinite:
    one output for each database. Runs share their noise, so an audit must refuse them.
    """

    seed: int = int_field(20200401, least=0)

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        return GDPC(self.epsilon)(exact, size, np.random.default_rng(self.seed))

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        return NO_LOSS if np.array_equal(x, y) else DISJOINT


@dataclass(frozen=True)
class SeededByTime(TableBug):
    """Noise drawn from a generator that is seeded with the time in whole seconds when a batch begins.

    **Bug.** A year has 3 * 10**7 seconds, and the day of a release is known. `clock` returns the time in seconds.
    **True loss.** Infinite for whoever knows the second. Runs are not independent, so an audit must refuse them.
    """

    clock: Callable[[], float] = time.time

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        return OneStream(self.epsilon, seed=int(self.clock()))._release(exact, size, rng)

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        return OneStream(self.epsilon)._loss(x, y)  # the same in every second


@dataclass(frozen=True)
class ForkedAreas(TableBug):
    """Noise added to parts of the table by worker processes, each with a copy of one generator.

    **Bug.** A fork inherits the generator's state: the first area of every worker gets the same noise.
    **True loss.** Infinite: differences of such areas are exact. Each area alone keeps the promise.
    """

    workers: int = int_field(2, least=2)

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        place = self._place(exact.size)
        return exact + self.noise.sample((size, int(place.max()) + 1), rng)[:, place]

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        place, shift = self._place(x.size), y - x
        if (shift != shift[place]).any():
            return DISJOINT
        first = slice(int(place.max()) + 1)  # areas of the first worker, which has the most
        return loss_of_counts(self.epsilon, x[first], y[first])

    def _place(self, areas: int) -> NDArray[np.intp]:
        """Which of a worker's draws each area gets, shape (areas,)."""
        parts = np.array_split(np.arange(areas), self.workers)
        return np.concatenate([np.arange(part.size) for part in parts])


class CachedNoise(TableBug):
    """Noise kept in a cache, so that the same question gets the same answer; its key is the true count.

    **Bug.** Cells with the same count get the same noise. **True loss.** Infinite: two cells of 7 people always agree,
    cells of 7 and 8 mostly do not. Each cell alone keeps the promise: the event must be joint.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        values, key = np.unique(exact, return_inverse=True)
        return GDPC(self.epsilon)(values, size, rng)[:, key]

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        reach, changed = table_reach(self.epsilon), np.flatnonzero(x != y)
        if changed.size != 1 or reach is None:
            return None if changed.size else NO_LOSS
        cell, shift = changed[0], int((y - x)[changed[0]])
        had, has = (bool(np.sum(counts == counts[cell]) > 1) for counts in (x, y))  # company of the same count
        if not (had or has):
            return loss_of_counts(self.epsilon, x, y)
        if has:
            law = None if had else self._loss(y, x)
            return None if law is None else law.reverse()
        k = np.arange(-reach - abs(shift), reach + abs(shift) + 1)  # the noise that the company shows
        agree = self.noise.logpmf(k) + self.noise.logpmf(k - shift)  # and a noise of its own has the same result
        log_p = np.append(self.noise.logpmf(k), -np.inf)
        law = loss_from_logs(log_p, np.append(agree, math.log1p(-math.fsum(np.exp(agree)))))
        return replace(law, supremum=math.inf)
