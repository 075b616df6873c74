"""Known bugs of finite arithmetic: the numbers of a computer are not those of the proof.

**Claim.** All of them promise pure DP with `epsilon` when one person is added or removed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bugs.bug import CountsBug, KnownBug, TotalBug, UnboundedBug, whole
from algorithms.bugs.output_laws import two_tables
from algorithms.bugs.sums import one_each
from algorithms.noise.counts import Pair, leaf_counts
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["KNOWN", "LaplaceHoles", "OverflowingTotal", "ReorderedSum", "RoundedFirst"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
KNOWN: dict[str, KnownBug] = {}  # by name

HALF = np.float16  # a type so short that a small database shows what float64 does to a large one


@dataclass(frozen=True)
class ReorderedSum(TotalBug):
    """The sum of shares in [0, 1], added up in the order in which they are stored, in short floats.

    **Bug.** Float addition is not associative: small numbers vanish beside a large sum, so that a reordering changes
    the result although the database is the same. The sensitivity of 1 is that of real numbers.
    **True loss.** `epsilon` times the difference of the two sums, which grows with the number of people. In half
    precision 2056 people can change it by 8; in float32 it takes 2**13 times as many.
    **Source.** Casacuberta, Shoemate, Vadhan and Wagaman, "Widespread Underestimation of Sensitivity in Differentially
    Private Libraries and How to Fix It", 2022.

    Examples
    --------
    >>> halves, ones = [0.5] * 16, [1.0] * 2040
    >>> bug = ReorderedSum(0.5)
    >>> bug.total(halves + ones), bug.total(ones + halves)
    (2048, 2040)
    """

    def total(self, data: ArrayLike) -> int:
        """Return the whole part of the sum of shares, shape (people,), clipped and added up in their order."""
        given = one_each(data)
        if np.isnan(given).any():
            raise ValueError(f"shares must not be NaN, got {int(np.isnan(given).sum())} of {given.size}")
        running = np.add.accumulate(np.clip(given, 0, 1).astype(HALF), dtype=HALF)
        return int(running[-1]) if running.size else 0


KNOWN["reordered-sum"] = KnownBug(
    ReorderedSum(0.5),
    [0.5] * 16 + [1.0] * 2040,
    [1.0] * 2040 + [0.5] * 15,
    loss=4.0,
    size=500,
    event="the sum is 2048 or more",
    source="Casacuberta et al. 2022",
)


@dataclass(frozen=True)
class OverflowingTotal(TotalBug):
    """The total of an area, added up in 16-bit integers.

    **Bug.** Beyond 32,767 people the total wraps around to -32,768.
    **True loss.** ``65,535 * epsilon``, between a full area and one more person.
    **Source.** Casacuberta, Shoemate, Vadhan and Wagaman, 2022.

    Examples
    --------
    >>> OverflowingTotal(9.0)([20_000, 12_768], 2, np.random.default_rng(0))
    array([-32768, -32768])
    """

    @property
    def true_loss(self) -> float:
        """Loss in nats when the one person too many is added."""
        return (2**16 - 1) * self.epsilon

    def total(self, data: ArrayLike) -> int:
        """Return the total of counts, shape (cells,), in 16 bits."""
        return int(leaf_counts(data).astype(np.int16).sum(dtype=np.int16))


KNOWN["overflowing-total"] = KnownBug(
    OverflowingTotal(1.0),
    [20000, 12767],
    [20000, 12768],
    loss=65535.0,
    size=500,
    event="the total is negative",
    source="Casacuberta et al. 2022",
)


@dataclass(frozen=True)
class RoundedFirst(CountsBug):
    """Counts rounded to a base, as offices have long done, and then noise for a sensitivity of 1.

    **Bug.** One person can move a rounded count by the whole base.
    **True loss.** ``base * epsilon``.
    **Source.** Our own. Casacuberta, Shoemate, Vadhan and Wagaman, 2022, show what rounding does to the sensitivity of
    sums.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    base : int
        Published counts are multiples of it, at least 2.

    Examples
    --------
    >>> RoundedFirst(20.0)([1, 2, 3, 17], 1, np.random.default_rng(0))
    array([[ 0,  0,  5, 15]])
    """

    base: int = whole(5, least=2)

    @property
    def true_loss(self) -> float:
        """Loss in nats when the person is added who tips the balance."""
        return self.base * self.epsilon

    def measured(self, counts: ArrayLike) -> Integers:
        """Return the rounded counts, shape (cells,)."""
        return (leaf_counts(counts) + self.base // 2) // self.base * self.base


KNOWN["rounded-first"] = KnownBug(
    RoundedFirst(0.5),
    [2, 8],
    [3, 8],
    loss=2.5,
    size=1_000,
    event="the first count is 0 or less",
    source="our own; Casacuberta et al. 2022",
)


@dataclass(frozen=True)
class LaplaceHoles(UnboundedBug):
    """Counts with Laplace noise in floating point: minus the logarithm of a uniform draw, and a fair sign.

    **Bug.** A uniform draw has `bits` bits, so there are 2**bits magnitudes of noise and no others; added to another
    count, most of them end elsewhere.
    **True loss.** Infinite: most outputs are possible on one database only. No single one of them is likely, and no
    event of thresholds shows it; it takes the last bits, or the law.
    **Source.** Mironov, "On Significance of the Least Significant Bits for Differential Privacy", 2012.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    bits : int
        Of a uniform draw, from 1 to 53: 53 in float64, 24 in float32. Up to 20 the law is tabulated.

    Examples
    --------
    >>> bug = LaplaceHoles(0.5, bits=10)
    >>> release = bug([10], 50_000, np.random.default_rng(0))
    >>> len(np.unique(release)) <= 2**11
    True
    """

    bits: int = whole(53, least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bits > 53:
            raise ValueError(f"bits must be at most 53, got {self.bits}")

    def __call__(self, counts: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        exact = leaf_counts(counts)
        draws = rng.integers(1, 2**self.bits, (size, exact.size), endpoint=True)
        released: Floats = exact + self._magnitude(draws) * rng.choice([-1.0, 1.0], draws.shape)
        return released

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, or None beyond 20 bits or one changed cell."""
        x, y = two_tables(pair)
        changed = np.flatnonzero(x != y)
        if self.bits > 20 or changed.size > 1:
            return None
        magnitude = self._magnitude(np.arange(1, 2**self.bits + 1))
        noise = np.concatenate([-magnitude, magnitude])
        (on_x, times_x), (on_y, times_y) = (
            np.unique(count + noise, return_counts=True) for count in (x[changed].sum(), y[changed].sum())
        )
        outputs, place = np.unique(np.concatenate([on_x, on_y]), return_inverse=True)
        times = np.zeros((2, outputs.size))
        times[0, place[: on_x.size]], times[1, place[on_x.size :]] = times_x, times_y
        with np.errstate(divide="ignore"):
            log_p, log_q = np.log(times / noise.size)
        return loss_from_logs(log_p, log_q)

    def _magnitude(self, draws: Integers) -> Floats:
        magnitude: Floats = -np.log(draws * 0.5**self.bits) / self.epsilon
        return magnitude


KNOWN["laplace-holes"] = KnownBug(
    LaplaceHoles(1.0, bits=16),
    [10],
    [11],
    size=2_000,
    event="the last bits are those of a sum with 10",
    found="witness",
    source="Mironov 2012",
)
