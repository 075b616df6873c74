"""The normal law, and a table of the privacy loss of values with this noise."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from algorithms.noise.counts import DISJOINT
from algorithms.noise.drawing import Floats, Rng, Size, draw
from algorithms.noise.precision import OnReals, minus_half_square, standardize
from audit.exact import LossDistribution

__all__ = ["Gaussian", "gaussian_loss"]

REACH, ORDERS, STEPS = 37.0, 8, 2**15  # standard deviations, Renyi orders and grid steps covered by a loss table
LARGEST = 1e100  # change in standard deviations beyond which the databases have no output in common


@dataclass(frozen=True)
class Gaussian(OnReals):
    """Normal law with mean 0.

    Parameters
    ----------
    scale : float
        Standard deviation, in units of the noise, from 1e-150 to 1e150.
    """

    @property
    def variance(self) -> float:
        """Variance, the square of the scale."""
        return self.scale * self.scale

    def sample(self, size: Size, rng: Rng) -> Floats:
        """Draw independent values."""
        return draw(self, np.float64, size, rng, self._seeded)

    def logpdf(self, x: ArrayLike) -> Floats:
        """Return the log density at `x`."""
        return minus_half_square(standardize(x, self.scale)) - math.log(math.sqrt(2 * math.pi) * self.scale)

    def cdf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise <= x``."""
        cdf: Floats = special.ndtr(standardize(x, self.scale))
        return cdf

    def losses_of(self, shifts: Floats) -> list[LossDistribution]:
        """Return the loss of values that differ by `shifts`, all together."""
        return [gaussian_loss(float(np.linalg.norm(shifts)) / self.scale)]

    def _seeded(self, rng: np.random.Generator) -> Callable[[Floats], None]:
        def fill(out: Floats) -> None:
            rng.standard_normal(out=out)
            out *= self.scale

        return fill


@functools.lru_cache(maxsize=16)
def gaussian_loss(mu: float) -> LossDistribution:
    """Return the loss of values with normal noise that differ by `mu` standard deviations, in L2.

    The loss is normal with mean ``mu**2 / 2`` and standard deviation `mu` (Balle and Wang, 2018, lemma 3). Mass between
    two points of the grid is split as in `laplace_loss`, so that `delta_at`, `epsilon_at` and `renyi` of the table are
    upper bounds in both orders; Renyi divergences up to order 8 are too large by a few millionths.
    """
    if not 0 < mu <= LARGEST:
        return LossDistribution(np.zeros(1), np.zeros(1)) if mu == 0 else DISJOINT
    ends = mu * (mu / 2 + np.linspace(-REACH - (ORDERS + 1) * mu, REACH + ORDERS * mu, STEPS + 1))
    p, q = (_log_between(ends / mu + sign * mu / 2) for sign in (-1, 1))
    # With the upper share expm1(-over) / expm1(-step), the split keeps the mass of each interval on both databases.
    step = np.diff(ends)
    over = np.clip(p - q - ends[:-1], 0.0, step)
    with np.errstate(divide="ignore"):
        log_ratio = p - np.log(-np.expm1(-step))
        upper, lower = log_ratio + np.log(-np.expm1(-over)), log_ratio - over + np.log(-np.expm1(over - step))
    log_p = np.logaddexp(np.append(lower, -np.inf), np.append(-np.inf, upper))
    finite = np.isfinite(log_p)
    return LossDistribution(ends[finite], log_p[finite], supremum=math.inf, infimum=-math.inf)


def _log_between(z: Floats) -> Floats:
    """Log of the normal probability between neighboring points, with full precision in both tails."""
    below = z[1:] < 0
    far, near = np.where(below, z[:-1], -z[1:]), np.where(below, z[1:], -z[:-1])
    above = special.log_ndtr(near)
    between: Floats = above + np.log(-np.expm1(special.log_ndtr(far) - above))
    return between
