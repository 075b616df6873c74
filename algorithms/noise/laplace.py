"""The Laplace law, and a table of the privacy loss of counts with this noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from algorithms.noise.drawing import Floats, Rng, Size, draw, signs
from algorithms.noise.precision import OnReals, pick, standardize
from audit.exact import LossDistribution

__all__ = ["Laplace", "laplace_loss"]

FINEST, POINTS = 256, 2**14  # grid steps for a change by 1; most steps of all changes together


@dataclass(frozen=True)
class Laplace(OnReals):
    """Laplace law on the real line, with density exp(-|x| / scale) / (2 scale).

    Parameters
    ----------
    scale : float
        The scale, in units of the noise, from 1e-150 to 1e150.
    """

    tabulated_exactly: ClassVar[bool] = False  # only the maximum of a loss table is exact

    @property
    def variance(self) -> float:
        """Variance, twice the square of the scale."""
        return 2 * self.scale * self.scale

    def sample(self, size: Size, rng: Rng) -> Floats:
        """Draw independent values."""
        return draw(self, np.float64, size, rng, self._seeded)

    def logpdf(self, x: ArrayLike) -> Floats:
        """Return the log density at `x`."""
        return -np.abs(standardize(x, self.scale)) - math.log(2 * self.scale)

    def cdf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise <= x``."""
        z = standardize(x, self.scale)
        tail = np.exp(-np.abs(z)) / 2
        return pick(z < 0, tail, 1 - tail)

    def losses_of(self, shifts: Floats) -> list[LossDistribution] | None:
        """Return the losses of values that differ by `shifts`; whole changes share a grid, others do not."""
        if (shifts == np.rint(shifts)).all() and (law := laplace_loss(1 / self.scale, [int(d) for d in shifts])):
            return [law]
        losses = [laplace_loss(float(shift) / self.scale, [1]) for shift in shifts]
        return [loss for loss in losses if loss is not None]

    def _seeded(self, rng: np.random.Generator) -> Callable[[Floats], None]:
        def fill(out: Floats) -> None:
            rng.standard_exponential(out=out)
            out *= self.scale
            out *= signs(rng, out.size)

        return fill


def laplace_loss(epsilon: float, shifts: Sequence[int]) -> LossDistribution | None:
    """Return the loss of counts that differ by whole `shifts`, or None if these add up to more than 2**13.

    `maximum` is exact; `delta_at`, `epsilon_at` and `renyi` are upper bounds, in both orders. For a change by `d` the
    loss is ``s = d * epsilon`` with probability 1/2, ``-s`` with probability ``exp(-s) / 2``, and has density
    ``exp((loss - s) / 2) / 4`` between. The mass between two grid points, a step `h` apart, is split between them so
    that both databases keep their mass (Doroshenko et al., "Connect the Dots", 2022); this can only increase the loss.
    Each end gets ``exp((end - s) / 2) * tanh(h / 4) / 2``. All changes have the same step, so that their sums are on
    the same grid.
    """
    if 2 * sum(shifts) > POINTS:
        return None
    steps = min(FINEST, POINTS // max(1, sum(shifts)))
    law, step = LossDistribution(np.zeros(1), np.zeros(1)), 2 * epsilon / steps
    for shift, times in sorted(Counter(shifts).items()):
        law = law.compose(_one(epsilon * shift, steps * shift).self_compose(times, grid=step), grid=step)
    largest = epsilon * sum(shifts)  # exact; a sum of grid points has rounding errors
    return LossDistribution(law.loss, law.log_p, supremum=largest, infimum=-largest)


def _one(largest: float, steps: int) -> LossDistribution:
    """Return the loss of one count, on a grid of `steps` steps from the smallest loss to the largest."""
    loss = np.linspace(-largest, largest, steps + 1)
    tilt = math.tanh(largest / steps / 2)  # a step is 2 * largest / steps
    log_p = (loss - largest) / 2 + math.log(tilt)
    for end in (0, -1):
        log_p[end] = (loss[end] - largest) / 2 + math.log((1 + tilt) / 2)
    return LossDistribution(loss, log_p)
