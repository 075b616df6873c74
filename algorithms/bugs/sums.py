"""Known bugs of sums: the sensitivity that was declared is not that of the values that are added up.

**Claim.** All of them promise pure DP with `epsilon` when one person is added or removed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bugs.bug import KnownBug, TotalBug, UnboundedBug, noisy_total, whole
from algorithms.bugs.output_laws import loss_of_one_output, loss_of_shift, table_reach
from algorithms.noise import Rng, TwoTailedGeometric
from algorithms.noise.counts import ATOMS, Pair
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["KNOWN", "BoundsFromData", "NaNSurvivesClipping", "RawDataSummed", "one_each"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
KNOWN: dict[str, KnownBug] = {}  # by name


@dataclass(frozen=True)
class RawDataSummed(TotalBug, UnboundedBug):
    """The sum of a variable: sensitivity for values clipped to `bound`, but the raw values are added up.

    **Bug.** The clipped copy is made, and never used.
    **True loss.** A value v costs ``epsilon * v / bound``: unbounded, as values are.
    **Source.** Cebere, Erb, Desfontaines, Bellet and Fitzsimons, "Privacy in Theory, Bugs in Practice: Grey-Box
    Auditing of Differential Privacy Libraries", 2026, have it among 13 violations found; opendp/smartnoise-sdk#622 is
    one.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    bound : int
        Largest value that the noise is made for, at least 1.

    Examples
    --------
    >>> RawDataSummed(0.5)([3, 0, 12], 4, np.random.default_rng(0)).shape
    (4,)
    """

    bound: int = whole(10, least=1)

    @property
    def spent(self) -> float:
        """Budget in nats that each unit of the sum really spends."""
        return self.epsilon / self.bound

    def total(self, data: ArrayLike) -> int:
        """Return the sum of whole numbers, shape (people,)."""
        return int(_whole(data).sum())


KNOWN["raw-data-summed"] = KnownBug(
    RawDataSummed(1.0, bound=10),
    [3, 1, 6],
    [3, 1, 6, 40],
    loss=4.0,
    size=1_000,
    event="the sum is 10 or less",
    source="Cebere et al. 2026; opendp/smartnoise-sdk#622",
)


@dataclass(frozen=True)
class BoundsFromData(UnboundedBug):
    """The sum of a variable, with noise for the largest value that occurs: the domain is read from the data.

    **Bug.** Whoever has the largest value sets the scale of the noise.
    **True loss.** Infinite, though every output is possible on either database: the tails of two scales drift apart
    without end.
    **Source.** Holohan, Braghin, Mac Aonghusa and Levacher, "Diffprivlib: the IBM Differential Privacy Library", 2019,
    which takes bounds from the data where none are given, and warns; IBM/differential-privacy-library#90.

    Examples
    --------
    >>> BoundsFromData(0.5)([3, 0, 12], 4, np.random.default_rng(0)).shape
    (4,)
    """

    def __call__(self, values: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release the sum of `values`, whole numbers, shape (people,), `size` times over: shape (size,)."""
        exact = _whole(values)
        return noisy_total(int(exact.sum()), self.epsilon / _largest(exact), size, rng)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, or None where its table would be too large."""
        x, y = _whole(pair.x), _whole(pair.y)
        shift, scales = int(y.sum() - x.sum()), (_largest(x), _largest(y))
        if scales[0] == scales[1]:
            return loss_of_shift(self.epsilon / scales[0], shift)
        reach = table_reach(self.epsilon / max(scales))
        if reach is None or reach + abs(shift) > ATOMS:
            return None
        outputs = np.arange(min(shift, 0) - reach, max(shift, 0) + reach + 1)
        on_x, on_y = (TwoTailedGeometric(self.epsilon / scale) for scale in scales)
        law = loss_from_logs(on_x.logpmf(outputs), on_y.logpmf(outputs - shift))
        wider_x = scales[0] > scales[1]
        return replace(law, supremum=math.inf if wider_x else None, infimum=None if wider_x else -math.inf)


KNOWN["bounds-from-data"] = KnownBug(
    BoundsFromData(1.0),
    [3, 1, 6],
    [3, 1, 6, 40],
    size=1_000,
    event="the sum is far from 10",
    source="Holohan et al. 2019; IBM/differential-privacy-library#90",
)


@dataclass(frozen=True)
class NaNSurvivesClipping(UnboundedBug):
    """The sum of a variable clipped to `bound`, with noise for that; a missing value passes through the clipping.

    **Bug.** No comparison with NaN holds, so that clipping leaves it; one makes the sum and the noisy sum NaN, and a
    last step writes 0 for what is missing.
    **True loss.** Infinite: with a missing value the release is 0 for certain.
    **Source.** google/differential-privacy#405 (NaN passes clamping) and opendp/opendp#2935 (NaN becomes 0 where noise
    is added).

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    bound : int
        Largest value that counts, at least 1.

    Examples
    --------
    >>> NaNSurvivesClipping(0.5)([3, 0, float("nan")], 4, np.random.default_rng(0))
    array([0., 0., 0., 0.])
    """

    bound: int = whole(10, least=1)

    def __call__(self, values: ArrayLike, size: int, rng: Rng) -> Floats:
        """Release the sum of `values`, whole numbers or NaN, shape (people,), `size` times over: shape (size,)."""
        noise = TwoTailedGeometric(self.epsilon / self.bound).sample(size, rng)
        return np.asarray(np.nan_to_num(self._sum(values) + noise))

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        x, y = self._sum(pair.x), self._sum(pair.y)
        if math.isnan(x) == math.isnan(y):
            return loss_of_shift(self.epsilon / self.bound, 0 if math.isnan(x) else y - x)
        noise = TwoTailedGeometric(self.epsilon / self.bound)
        return loss_of_one_output(*(0.0 if math.isnan(total) else float(noise.logpmf(total)) for total in (x, y)))

    def _sum(self, values: ArrayLike) -> float:
        given = one_each(values)
        _whole(given[~np.isnan(given)])  # refuses anything but whole numbers
        return float(np.clip(given, 0, self.bound).sum())


KNOWN["nan-survives-clipping"] = KnownBug(
    NaNSurvivesClipping(1.0, bound=10),
    [30.0, 1.0, 6.0],
    [30.0, 1.0, 6.0, math.nan],
    size=500,
    event="the sum is 0",
    source="google/differential-privacy#405; opendp/opendp#2935",
)


def _largest(values: Integers) -> int:
    return max(1, int(values.max(initial=0)))  # a guard against noise of scale 0


def one_each(values: ArrayLike) -> Floats:
    """Return one number a person, shape (people,), or say what is wrong with them; NaN is let through."""
    given = np.asarray(values)
    if given.dtype.kind not in "iuf":
        raise TypeError(f"values must be numbers, got dtype {given.dtype}")
    if given.ndim != 1:
        raise ValueError(f"values must be one a person, got shape {given.shape}")
    return given.astype(np.float64)


def _whole(values: ArrayLike) -> Integers:
    given = one_each(values)
    bad = ~(np.isfinite(given) & (given == np.floor(given)) & (given >= 0) & (given < 2**31))
    if bad.any():
        raise ValueError(f"values must be whole numbers from 0 to 2**31 - 1, got {given[bad][0]}")
    return given.astype(np.int64)
