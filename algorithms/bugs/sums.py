"""Known bugs of sums and of finite arithmetic: values or machine numbers that violate the assumptions of the proof.

**Claim.** All of them promise pure DP with `epsilon` when one person is added or removed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from algorithms.bugs.bug import CountsBug, Floats, Integers, TableBug
from algorithms.noise import Rng, TwoTailedGeometric, add_noise
from algorithms.noise.counts import Pair, leaf_counts
from algorithms.noise.geometric import GeometricBudget
from audit.arguments import whole_number

__all__ = [
    *("BoundsFromData", "LaplaceHoles", "NaNSurvivesClipping", "OverflowingTotal", "RawDataSummed", "ReorderedSum"),
    "RoundedFirst",
]

HALF = np.float16  # a short type: a small database shows rounding errors that float64 has on a large one


class RawDataSummed(CountsBug):
    """The sum of a variable: sensitivity for values clipped to `bound`, but the raw values are added up.

    **Bug.** The clipped copy is never used. **True loss.** ``epsilon * v / bound`` for a value v: unbounded.
    **Source.** Cebere et al., 2026; opendp/smartnoise-sdk#622.
    """

    bound: ClassVar[int] = 10
    sensitivity: ClassVar[int] = bound

    def exact(self, data: ArrayLike) -> Integers:
        """Return the sum of whole numbers, shape (people,): shape ()."""
        return np.asarray(_whole_values(data).sum())


class BoundsFromData(GeometricBudget):
    """The sum of a variable, with noise for the largest value that occurs: the domain is read from the data.

    **Bug.** The largest value sets the scale of the noise. **True loss.** Infinite: the loss is unbounded in the tails.
    **Source.** Holohan et al., 2019; IBM/differential-privacy-library#90.
    """

    def __call__(self, values: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release the sum of `values`, whole numbers, shape (people,), `size` times over: shape (size,)."""
        exact = _whole_values(values)
        largest = max(1, int(exact.max(initial=0)))  # avoids noise of scale 0
        law = TwoTailedGeometric(self.epsilon / largest)
        return add_noise(exact.sum(), law, size, rng, query="sum", sensitivity=largest)


class NaNSurvivesClipping(GeometricBudget):
    """The sum of a variable clipped to `bound`, with noise for that; a missing value passes through the clipping.

    **Bug.** Clipping does not change NaN, and the last step replaces a sum of NaN by 0. **True loss.** Infinite.
    **Source.** google/differential-privacy#405; opendp/opendp#2935.
    """

    bound: ClassVar[int] = 10

    @property
    def _law(self) -> TwoTailedGeometric:
        return TwoTailedGeometric(self.epsilon / self.bound)

    def __call__(self, values: ArrayLike, size: int, rng: Rng) -> Floats:
        """Release the sum of `values`, whole numbers or NaN, shape (people,), `size` times over: shape (size,)."""
        noisy = add_noise(self._sum(values), self._law, size, rng, query="sum", sensitivity=self.bound)
        return np.asarray(np.nan_to_num(noisy))

    def support_masses(self, pair: Pair) -> tuple[float, float]:
        """Return the probability of a nonzero sum on each database; 0 unless only the other has a missing value."""
        sums = np.array([self._sum(pair.x), self._sum(pair.y)])
        on_x, on_y = np.where(np.isnan(sums[::-1]) & ~np.isnan(sums), -np.expm1(self._law.logpmf(sums)), 0.0)
        return float(on_x), float(on_y)

    def _sum(self, values: ArrayLike) -> float:
        array = _values(values)
        _whole_values(array[~np.isnan(array)])  # refuses values that are not whole numbers
        return float(np.clip(array, 0, self.bound).sum())


class ReorderedSum(CountsBug):
    """The sum of shares in [0, 1], added up in the order in which they are stored, in short floats.

    **Bug.** Small numbers added to a large sum are rounded away. The sensitivity of 1 holds for real numbers only.
    **True loss.** `epsilon` times the difference of the two sums: in half precision 2056 people can change it by 8; in
    float32 it takes 2**13 times as many. **Source.** Casacuberta et al., 2022.
    """

    def exact(self, data: ArrayLike) -> Integers:
        """Return the whole part of the sum of shares, shape (people,), clipped and added up in order: shape ()."""
        shares = _values(data)
        if np.isnan(shares).any():
            raise ValueError(f"shares must not be NaN, got {int(np.isnan(shares).sum())} of {shares.size}")
        running = np.add.accumulate(np.clip(shares, 0, 1).astype(HALF), dtype=HALF)
        return np.asarray(int(running[-1]) if running.size else 0)


class OverflowingTotal(CountsBug):
    """The total of an area, added up in 16-bit integers.

    **Bug.** Beyond 32,767 people the total wraps around to -32,768. **True loss.** ``65,535 * epsilon`` for one person.
    **Source.** Casacuberta et al., 2022.
    """

    def exact(self, data: ArrayLike) -> Integers:
        """Return the total of counts, shape (cells,), in 16 bits: shape ()."""
        return np.asarray(int(leaf_counts(data).astype(np.int16).sum(dtype=np.int16)))


class RoundedFirst(CountsBug):
    """Counts rounded to a base, as offices have long done, and then noise for a sensitivity of 1.

    **Bug.** One person can move a rounded count by the whole base. **True loss.** ``base * epsilon``.
    **Source.** Our own; Casacuberta et al., 2022.
    """

    base: ClassVar[int] = 5

    def exact(self, data: ArrayLike) -> Integers:
        """Return the rounded counts, shape (cells,)."""
        return (leaf_counts(data) + self.base // 2) // self.base * self.base


@dataclass(frozen=True)
class LaplaceHoles(TableBug):
    """Counts with Laplace noise in floating point: minus the logarithm of a uniform draw, and a fair sign.

    **Bug.** A uniform draw has `bits` bits (53 in float64, 24 in float32), so the noise has only 2**bits magnitudes.
    **True loss.** Infinite: most outputs are possible on one database only. No threshold event shows it; an audit needs
    the last bits, or the list of possible outputs, which is made up to 20 bits. **Source.** Mironov, 2012.
    """

    bits: int = 53

    def __post_init__(self) -> None:
        super().__post_init__()
        if whole_number("bits", self.bits, least=1) > 53:
            raise ValueError(f"bits must be at most 53, got {self.bits}")

    def _release(self, exact: Integers, size: int, rng: Any) -> Floats:  # no secure noise
        draws = rng.integers(1, 2**self.bits, (size, exact.size), endpoint=True)
        return np.asarray(exact + self._magnitude(draws) * rng.choice([-1.0, 1.0], draws.shape))

    def _alone(self, here: Integers, other: Integers) -> float:
        if self.bits > 20:
            return 0.0
        magnitude = self._magnitude(np.arange(1, 2**self.bits + 1))
        noise, changed = np.concatenate([-magnitude, magnitude]), here != other
        pairs = zip(here[changed], other[changed], strict=True)
        return 1 - math.prod(float(np.isin(count + noise, wrong + noise).mean()) for count, wrong in pairs)

    def _magnitude(self, draws: Integers) -> Floats:
        return np.asarray(-np.log(draws * 0.5**self.bits) / self.epsilon)


def _values(values: ArrayLike) -> Floats:
    """Return one number a person, shape (people,); refuse other types and shapes, but not NaN."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"values must be numbers, got dtype {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"values must be one a person, got shape {array.shape}")
    return array.astype(np.float64)


def _whole_values(values: ArrayLike) -> Integers:
    array = _values(values)
    bad = ~(np.isfinite(array) & (array == np.floor(array)) & (array >= 0) & (array < 2**31))
    if bad.any():
        raise ValueError(f"values must be whole numbers from 0 to 2**31 - 1, got {array[bad][0]}")
    return array.astype(np.int64)
