"""Known bugs of finite arithmetic: the numbers of a computer are not those of the proof.

**Claim.** All of them promise pure DP with `epsilon` when one person is added or removed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bugs.bug import Bug, UnboundedBug, check_integer
from algorithms.bugs.output_laws import Databases, loss_of_shift, two_tables
from algorithms.bugs.sums import noisy_total, one_each
from algorithms.flaxman import GDPC
from algorithms.noise import Rng
from algorithms.noise.counts import Pair, leaf_counts
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["LaplaceHoles", "OverflowingTotal", "ReorderedSum", "RoundedFirst"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

HALF = np.float16  # a type so short that a small database shows what float64 does to a large one


@dataclass(frozen=True)
class ReorderedSum(Bug):
    """The sum of shares in [0, 1], added up in the order in which they are stored, in short floats.

    **Bug.** Float addition is not associative: small numbers vanish beside a large sum, so that a reordering changes
    the result although the database is the same. The sensitivity of 1 is that of real numbers.
    **True loss.** `epsilon` times the difference of the two sums, which grows with the number of people. In half
    precision 2056 people can change it by 8; in float32 it takes 2**13 times as many.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.

    References
    ----------
    .. [1] Casacuberta, Shoemate, Vadhan and Wagaman, "Widespread Underestimation of Sensitivity in
       Differentially Private Libraries and How to Fix It", 2022.

    Examples
    --------
    >>> halves, ones = [0.5] * 16, [1.0] * 2040
    >>> bug = ReorderedSum(0.5)
    >>> bug.total(halves + ones), bug.total(ones + halves)
    (2048, 2040)
    """

    def __call__(self, shares: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release the sum of `shares`, shape (people,), `size` times over: shape (size,)."""
        return noisy_total(self.total(shares), self.epsilon, size, rng)

    def total(self, shares: ArrayLike) -> int:
        """Return the whole part of the sum, as it is really computed.

        Parameters
        ----------
        shares : array_like of float, shape (people,)
            In the order in which they are stored; clipped to [0, 1].

        Returns
        -------
        int
            In people.

        Raises
        ------
        ValueError
            If one is NaN.
        TypeError
            If they are not numbers.
        """
        given = one_each(shares)
        if np.isnan(given).any():
            raise ValueError(f"shares must not be NaN, got {int(np.isnan(given).sum())} of {given.size}")
        running = np.add.accumulate(np.clip(given, 0, 1).astype(HALF), dtype=HALF)
        return int(running[-1]) if running.size else 0

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        return loss_of_shift(self.epsilon, self.total(pair.y) - self.total(pair.x))


@dataclass(frozen=True)
class OverflowingTotal(Bug):
    """The total of an area, added up in 16-bit integers.

    **Bug.** Beyond 32,767 people the total wraps around to -32,768.
    **True loss.** ``65,535 * epsilon``, between a full area and one more person.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.

    References
    ----------
    .. [1] Casacuberta, Shoemate, Vadhan and Wagaman, 2022.

    Examples
    --------
    >>> OverflowingTotal(9.0)([20_000, 12_768], 2, np.random.default_rng(0))
    array([-32768, -32768])
    """

    @property
    def true_loss(self) -> float:
        """Loss in nats when the one person too many is added."""
        return (2**16 - 1) * self.epsilon

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release the total of `counts`, shape (cells,), `size` times over: shape (size,)."""
        return noisy_total(self._total(counts), self.epsilon, size, rng)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        return loss_of_shift(self.epsilon, self._total(pair.y) - self._total(pair.x))

    def _total(self, counts: ArrayLike) -> int:
        return int(leaf_counts(counts).astype(np.int16).sum(dtype=np.int16))


@dataclass(frozen=True)
class RoundedFirst(Bug):
    """Counts rounded to a base, as offices have long done, and then noise for a sensitivity of 1.

    **Bug.** One person can move a rounded count by the whole base.
    **True loss.** ``base * epsilon``.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    base : int
        Published counts are multiples of it, at least 2.

    References
    ----------
    .. [1] Our own. Casacuberta, Shoemate, Vadhan and Wagaman, 2022, show what rounding does to the
       sensitivity of sums.

    Examples
    --------
    >>> RoundedFirst(20.0)([1, 2, 3, 17], 1, np.random.default_rng(0))
    array([[ 0,  0,  5, 15]])
    """

    base: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("base", self.base, least=2)

    @property
    def true_loss(self) -> float:
        """Loss in nats when the person is added who tips the balance."""
        return self.base * self.epsilon

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        return GDPC(self.epsilon)(self._rounded(counts), size, rng)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        return GDPC(self.epsilon).exact_loss(Databases(self._rounded(pair.x), self._rounded(pair.y)))

    def _rounded(self, counts: ArrayLike) -> Integers:
        return (leaf_counts(counts) + self.base // 2) // self.base * self.base


@dataclass(frozen=True)
class LaplaceHoles(UnboundedBug):
    """Counts with Laplace noise in floating point: minus the logarithm of a uniform draw, and a fair sign.

    **Bug.** A uniform draw has `bits` bits, so there are 2**bits magnitudes of noise and no others; added to another
    count, most of them end elsewhere.
    **True loss.** Infinite: most outputs are possible on one database only. No single one of them is likely, and no
    event of thresholds shows it; it takes the last bits, or the law.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    bits : int
        Of a uniform draw, from 1 to 53: 53 in float64, 24 in float32. Up to 20 the law is tabulated.

    References
    ----------
    .. [1] Mironov, "On Significance of the Least Significant Bits for Differential Privacy", 2012.

    Examples
    --------
    >>> bug = LaplaceHoles(0.5, bits=10)
    >>> release = bug([10], 50_000, np.random.default_rng(0))
    >>> len(np.unique(release)) <= 2**11
    True
    """

    bits: int = 53

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("bits", self.bits, least=1)
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
