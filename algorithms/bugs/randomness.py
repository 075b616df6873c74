"""Known bugs of where the noise comes from.

**Claim.** All of them promise pure DP with `epsilon` when one person is added or removed, and add two-tailed geometric
noise for a sensitivity of 1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bugs.bug import KnownBug, UnboundedBug, whole
from algorithms.bugs.output_laws import NO_LOSS, Databases, loss_of_shift, table_reach, two_tables
from algorithms.flaxman import GDPC
from algorithms.noise import Rng
from algorithms.noise.counts import DISJOINT, Pair, leaf_counts
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["KNOWN", "CachedNoise", "ForkedAreas", "OneStream", "SeededByData", "SeededByTime"]

Integers = NDArray[np.int64]
KNOWN: dict[str, KnownBug] = {}  # by name


@dataclass(frozen=True)
class SeededByData(UnboundedBug):
    """Noise drawn from a generator that the counts themselves seed, so that a table always looks the same.

    **Bug.** Whoever knows the algorithm knows the noise of every possible table: all runs on one database are equal.
    **True loss.** Infinite: one output for each database.
    **Source.** Thompson, Broadfoot and Elazar, "Methodology for the Automatic Confidentialisation of Statistical
    Outputs from Remote Servers at the Australian Bureau of Statistics", 2013: keys of the records choose the noise of a
    cell there, and nothing more is promised than that.

    Examples
    --------
    >>> release = SeededByData(0.5)([10, 0, 3], 2, np.random.default_rng(0))
    >>> bool((release[0] == release[1]).all())
    True
    """

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        exact = leaf_counts(counts)
        return np.tile(GDPC(self.epsilon)(exact, 1, np.random.default_rng(exact)), (size, 1))

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        rng = np.random.default_rng(0)  # never asked
        return _loss_of_points(self(pair.x, 1, rng), self(pair.y, 1, rng))


KNOWN["seeded-by-data"] = KnownBug(
    SeededByData(1.0), [50, 3], [51, 3], size=500, event="the one table of this database", source="Thompson et al. 2013"
)


@dataclass(frozen=True)
class SeededByTime(UnboundedBug):
    """Noise drawn from a generator that is seeded with the time in whole seconds when a batch begins.

    **Bug.** A year has 3 * 10**7 seconds, and the day of a release is known: its noise can be guessed.
    **True loss.** Infinite for whoever knows the second: one output for each database. Runs are not independent, so an
    audit must refuse them.
    **Source.** MITRE, CWE-337: Predictable Seed in Pseudo-Random Number Generator.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    clock : callable
        Returns the time in seconds.

    Examples
    --------
    >>> bug, rng = SeededByTime(0.5, clock=lambda: 1_585_692_000.7), np.random.default_rng(0)
    >>> bool((bug([10, 0, 3], 5, rng) == bug([10, 0, 3], 5, rng)).all())
    True
    """

    clock: Callable[[], float] = time.time

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        return OneStream(self.epsilon, seed=int(self.clock()))(counts, size, rng)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, in one run at this second."""
        return OneStream(self.epsilon, seed=int(self.clock())).exact_loss(pair)


KNOWN["seeded-by-time"] = KnownBug(
    SeededByTime(1.0),
    [50, 3],
    [51, 3],
    size=2_000,
    event="the table that this second gives",
    found="refused",
    source="CWE-337",
)


@dataclass(frozen=True)
class OneStream(UnboundedBug):
    """Noise drawn from a generator with a fixed seed, left behind from testing: every table gets the same stream.

    **Bug.** The noise is in the source code; that of two tables cancels in their difference.
    **True loss.** Infinite: one output for each database in a first run. Runs on the two databases share their noise,
    so an audit must refuse them.
    **Source.** MITRE, CWE-336: Same Seed in Pseudo-Random Number Generator.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    seed : int
        The seed, 0 or more.

    Examples
    --------
    >>> rng, bug = np.random.default_rng(0), OneStream(0.5)
    >>> bug([8, 0], 1, rng) - bug([7, 0], 1, rng)
    array([[1, 0]])
    """

    seed: int = whole(20200401, least=0)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        return GDPC(self.epsilon)(counts, size, np.random.default_rng(self.seed))

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, in a first run."""
        rng = np.random.default_rng(0)  # never asked
        return _loss_of_points(self(pair.x, 1, rng), self(pair.y, 1, rng))


KNOWN["one-stream"] = KnownBug(
    OneStream(1.0),
    [50, 3],
    [51, 3],
    size=2_000,
    event="the table that this seed gives",
    found="refused",
    source="CWE-336",
)


@dataclass(frozen=True)
class ForkedAreas(UnboundedBug):
    """Noise added to parts of the table by worker processes, each with a copy of one generator.

    **Bug.** A forked process inherits the state of the generator: the first area of every worker gets the same noise,
    and so does the second.
    **True loss.** Infinite: differences of such areas are exact. Each area alone keeps the promise: the event must be
    joint.
    **Source.** numpy/numpy#9650: child processes repeat the random numbers of their parent.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    workers : int
        Processes, at least 2.

    Examples
    --------
    >>> release = ForkedAreas(0.5)([8, 3, 5, 1], 3, np.random.default_rng(0))
    >>> release[:, :2] - release[:, 2:]
    array([[3, 2],
           [3, 2],
           [3, 2]])
    """

    workers: int = whole(2, least=2)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (areas,), `size` times over: shape (size, areas)."""
        exact = leaf_counts(counts)
        place = self._place(exact.size)
        return exact + self.noise.sample((size, int(place.max()) + 1), rng)[:, place]

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        x, y = two_tables(pair)
        place, shift = self._place(x.size), y - x
        if (shift != shift[place]).any():
            return DISJOINT
        first = slice(int(place.max()) + 1)  # areas of the first worker, which has the most
        return GDPC(self.epsilon).exact_loss(Databases(x[first], y[first]))

    def _place(self, areas: int) -> NDArray[np.intp]:
        """Which of a worker's draws each area gets, shape (areas,)."""
        parts = np.array_split(np.arange(areas), self.workers)
        return np.concatenate([np.arange(part.size) for part in parts])


KNOWN["forked-areas"] = KnownBug(
    ForkedAreas(1.0), [50, 3], [51, 3], size=10_000, event="the two counts differ by 47", source="numpy/numpy#9650"
)


@dataclass(frozen=True)
class CachedNoise(UnboundedBug):
    """Noise kept in a cache, so that the same question gets the same answer; its key is the true count.

    **Bug.** Cells with the same count get the same noise: that two noisy counts agree tells that the true ones do.
    **True loss.** Infinite: two cells of 7 people always agree, cells of 7 and 8 mostly do not. Each cell alone keeps
    the promise: the event must be joint.
    **Source.** Our own, after Gadotti, Houssiau, Rocher, Livshits and de Montjoye, "When the Signal is in the Noise:
    Exploiting Diffix's Sticky Noise", 2019.

    Examples
    --------
    >>> release = CachedNoise(0.5)([7, 3, 7], 100, np.random.default_rng(0))
    >>> bool((release[:, 0] == release[:, 2]).all())
    True
    """

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        values, key = np.unique(leaf_counts(counts), return_inverse=True)
        return GDPC(self.epsilon)(values, size, rng)[:, key]

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, or None where more than one cell changes."""
        (x, y), reach = two_tables(pair), table_reach(self.epsilon)
        changed = np.flatnonzero(x != y)
        if changed.size == 0:
            return NO_LOSS
        if changed.size > 1 or reach is None:
            return None
        cell, shift = changed[0], int((y - x)[changed[0]])
        had, has = (bool(np.sum(counts == counts[cell]) > 1) for counts in (x, y))  # company of the same count
        if not (had or has):
            return loss_of_shift(self.epsilon, shift)
        if had and has:  # the output shows the noise of its company on x, or of that on y, or by chance of both
            agree = self._chance(np.arange(-reach - abs(shift), reach + abs(shift) + 1), shift)
            both = math.fsum(np.exp(agree))
            return LossDistribution(np.zeros(1), np.log([both]), 1 - both, 1 - both)
        if has:
            law = self.exact_loss(Databases(y, x))
            return None if law is None else law.reverse()
        k = np.arange(-reach - abs(shift), reach + abs(shift) + 1)  # the noise that the company shows
        agree = self._chance(k, shift)
        log_p = np.append(self.noise.logpmf(k), -np.inf)
        log_q = np.append(agree, math.log1p(-math.fsum(np.exp(agree))))
        return replace(loss_from_logs(log_p, log_q), supremum=math.inf)

    def _chance(self, k: Integers, shift: int) -> NDArray[np.float64]:
        """Log-probability that company shows the noise `k`, and a noise of its own has the same result."""
        return self.noise.logpmf(k) + self.noise.logpmf(k - shift)


KNOWN["cached-noise"] = KnownBug(
    CachedNoise(1.0),
    [7, 7],
    [7, 8],
    size=10_000,
    event="the two counts are equal",
    source="our own; Gadotti et al. 2019",
)


def _loss_of_points(x: Integers, y: Integers) -> LossDistribution:
    """Loss of a release that does not vary."""
    return NO_LOSS if np.array_equal(x, y) else DISJOINT
