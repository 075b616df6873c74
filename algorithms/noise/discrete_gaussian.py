"""The discrete Gaussian law, and the privacy loss of counts with this noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from algorithms.noise import secure
from algorithms.noise.counts import ATOMS, CELLS, integer_losses
from algorithms.noise.drawing import CHUNK, Floats, Integers, Rng, Size, Table, draw, signs
from algorithms.noise.gaussian import Gaussian
from algorithms.noise.geometric import geometric_magnitudes
from algorithms.noise.precision import OnIntegers, minus_half_square, on_integers, parameter, pick, standardize
from audit.exact import LossDistribution

__all__ = ["DiscreteGaussian"]

LARGEST_TABLE = 1000  # up to this sigma, draws come from a table and tails are summed term by term
ORDERS = 32  # loss tables are wide enough for Renyi divergences up to this order


@dataclass(frozen=True)
class DiscreteGaussian(OnIntegers):
    r"""Discrete Gaussian law on the integers: P(k) proportional to exp(-k^2 / (2 scale^2)).

    Parameters
    ----------
    scale : float
        The parameter sigma, from 1e-12 to 1e12. Its square exceeds the variance, noticeably so below about 0.6.

    Notes
    -----
    Up to sigma 1000, draws come from a table (see `algorithms.noise.drawing.Table`). For larger sigma they come from
    rejection sampling (Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020, algorithm
    3): with :math:`t = \lfloor\sigma\rfloor + 1`, a two-tailed geometric y of epsilon 1/t is accepted with probability
    :math:`\exp(-(|y| - \sigma^2/t)^2/(2\sigma^2))`, since the two exponents add up to :math:`-y^2/(2\sigma^2)` and a
    constant. The code compares the exponent with a standard exponential draw. The float64 limits are those of
    `TwoTailedGeometric`.

    The normalizer and the variance are theta functions, summed directly or after Poisson summation; a few terms give
    all digits. Tails are summed term by term up to sigma 1000. For larger sigma they are computed by the
    Euler-Maclaurin midpoint rule with two corrections, whose relative error is below 1e-12.
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", parameter("scale", self.scale, at_least=1e-12, at_most=1e12))

    @property
    def variance(self) -> float:
        """Variance, with float64 precision at every scale."""
        return _theta(self.scale)[1]

    def sample(self, size: Size, rng: Rng) -> Integers:
        """Draw independent values."""
        return draw(self, np.int64, size, rng, self._seeded, exact=lambda: secure.discrete_gaussian(self.scale))

    def logpmf(self, k: ArrayLike) -> Floats:
        """Return the log probability of `k`; minus infinity off the integers."""
        k = np.asarray(k, dtype=np.float64)
        return on_integers(k, minus_half_square(standardize(k, self.scale)) - _theta(self.scale)[0])

    def losses_of(self, shifts: Floats) -> list[LossDistribution] | None:
        """Return the loss of each value that differs, exact up to Renyi order 32; see `algorithms.noise.losses`."""
        return integer_losses(shifts, self._tables)

    def _tables(self, shifts: Sequence[int]) -> list[LossDistribution] | None:
        reach = math.ceil(40 * self.scale) + ORDERS * max(shifts)
        if len(shifts) > CELLS or 3 * reach > ATOMS:
            return None
        tables = {}
        for shift in set(shifts):
            k = np.arange(reach + shift, -reach - 1, -1)  # on y every error is `shift` higher
            loss: Floats = np.multiply(shift / (2 * self.scale**2), shift - 2.0 * k)
            tables[shift] = LossDistribution(loss, self.logpmf(k), supremum=math.inf, infimum=-math.inf)
        return [tables[shift] for shift in shifts]

    def _tail(self, m: Floats) -> Floats:
        end = 40 * math.ceil(self.scale)  # the tail beyond is 0 in float64
        near = np.fmin(m, end)
        if self.scale <= LARGEST_TABLE:
            table = np.exp(self.logpmf(np.arange(end, -1, -1))).cumsum()[::-1]
            return pick(np.isnan(m), m, table[near.astype(np.int64)])
        x = near - 0.5
        slope = x / self.scale**2  # f' = -slope f and f''' = slope (3 / scale^2 - slope^2) f
        integral = math.sqrt(math.pi / 2) * self.scale * special.erfcx(x / (math.sqrt(2) * self.scale))  # divided by f
        corrections = -slope / 24 - 7 / 5760 * slope * (3 / self.scale**2 - slope**2)
        return pick(np.isnan(m), m, np.exp(Gaussian(self.scale).logpdf(x)) * (integral + corrections))

    def _seeded(self, rng: np.random.Generator) -> Callable[[Integers], None]:
        if self.scale <= LARGEST_TABLE:
            return partial(_table(self.scale).fill, rng)
        t = math.floor(self.scale) + 1
        center, root = self.scale * self.scale / t, math.sqrt(0.5) / self.scale
        buffers = np.empty((3, CHUNK))

        def fill(out: Integers) -> None:
            done = 0
            while done < out.size:
                proposals = min(int(1.35 * (out.size - done)) + 32, CHUNK)  # 3 of 4 are accepted if sigma >= 10
                magnitude, exponent, dice = buffers[:, :proposals]
                geometric_magnitudes(rng, magnitude, 1 / t)
                np.subtract(magnitude, center, out=exponent)
                exponent *= root
                exponent *= exponent
                rng.standard_exponential(out=dice)
                accepted = magnitude[dice >= exponent][: out.size - done]
                accepted *= signs(rng, accepted.size)
                out[done : done + accepted.size] = accepted
                done += accepted.size

        return fill


@lru_cache(maxsize=64)  # an entry has half a MiB
def _table(scale: float) -> Table:
    return Table(np.exp(DiscreteGaussian(scale).logpmf(np.arange(math.ceil(9.5 * scale) + 1))))


def _theta(scale: float) -> tuple[float, float]:
    if scale < 1:
        k = np.arange(1, 40)
        weight = 2 * np.exp(minus_half_square(k / scale))
        return math.log1p(weight.sum()), float((k**2 * weight).sum() / (1 + weight.sum()))
    m = np.arange(1, 7)
    weight = 2 * np.exp(-2 * np.square(math.pi * scale * m))
    excess = float((np.square(2 * math.pi * scale * scale * m) * weight).sum() / (1 + weight.sum()))
    return math.log(math.sqrt(2 * math.pi) * scale) + math.log1p(weight.sum()), scale * scale - excess
