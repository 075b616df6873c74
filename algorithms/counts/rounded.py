"""Continuous noise that is rounded to whole numbers, and how far sums of noisy counts lie from the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from algorithms.bottom_up.accuracy import expected_error
from algorithms.noise import Gaussian, Laplace, TwoTailedGeometric
from algorithms.noise.quadrature import mean_magnitude

__all__ = ["Rounded", "mean_error"]

Floats = NDArray[np.float64]

WIDE = 3.5  # standard deviation of normal noise from which on copies of its characteristic function are below 1e-26


@dataclass(frozen=True)
class Rounded:
    """Noise rounded to the nearest whole number; `law` is before rounding."""

    law: Laplace | Gaussian

    def sf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise > x``."""
        return self.law.sf(np.floor(np.asarray(x, np.float64)) + 0.5)


def mean_error(law: TwoTailedGeometric | Rounded, cells: int) -> float:
    r"""Return the mean absolute error in people of a sum of noisy counts, independent, which is their L1 error.

    The integral of `algorithms.noise.quadrature.mean_magnitude`. With :math:`q = e^{-\varepsilon}` and
    :math:`u = 1 - \cos\theta`, rounded Laplace noise has the characteristic function
    :math:`1 - \sqrt q (1+q) u / ((1-q)^2 + 2qu)`. That of rounded normal noise is the normal one times
    :math:`\sin(\theta/2) / (\theta/2)`, plus copies of it :math:`2\pi` apart. The copies are negligible from a standard
    deviation of 3.5 on; below it the sum over whole numbers has few terms.
    """
    if isinstance(law, TwoTailedGeometric):
        return expected_error(law.epsilon, cells)
    if cells < 1:
        raise ValueError(f"cells must be at least 1, got {cells}")
    scale, logs = law.law.scale, _laplace if isinstance(law.law, Laplace) else _gaussian
    return mean_magnitude(lambda tangent: cells * logs(scale, tangent), cells * law.law.variance)


def _laplace(scale: float, tangent: Floats) -> Floats:
    """Return the log of the characteristic function of rounded Laplace noise, at the tangents of half the angles."""
    q, turned = math.exp(-1 / scale), 2 / (1 + tangent**-2)
    return np.asarray(np.log1p(-math.sqrt(q) * (1 + q) * turned / (math.expm1(-1 / scale) ** 2 + 2 * q * turned)))


def _gaussian(scale: float, tangent: Floats) -> Floats:
    """Return the same of rounded normal noise."""
    half = np.arctan(tangent)
    if scale > WIDE:
        square = np.square(half)
        series = -square / 6 * (1 + square / 30 * (1 + square * 4 / 63 * (1 + square * 3 / 40)))
        with np.errstate(divide="ignore"):
            rounding = np.where(half < 0.05, series, np.log(np.sin(half) / half))
        return np.asarray(-2 * scale * scale * square + rounding)
    steps = np.arange(1.0, 42.0)  # more than 11 standard deviations
    ends = special.ndtr(-np.arange(0.5, 42.0) / scale)
    moved = 4 * np.square(np.sin(steps * half[:, None])) @ (ends[:-1] - ends[1:])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(-np.minimum(moved, 1.0)))
