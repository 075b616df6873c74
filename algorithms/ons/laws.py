"""The three noise laws of the pilot: their scales, probabilities of an unchanged count, and privacy losses.

The pilot adds Laplace or Gaussian noise and rounds the sum to a whole number. The exact count plus *rounded* noise has
the same law. Laws below are those of the rounded numbers if `rounded` is True.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from algorithms.noise import Gaussian, Laplace, Rng, TwoTailedGeometric
from algorithms.noise.losses import loss_of_changes
from algorithms.noise.quadrature import laplace_log_cdf
from audit.arguments import fraction, positive_number
from audit.claims import ApproxDP, GaussianDP, PureDP
from audit.exact import LossDistribution, loss_from_logs
from audit.exact.roots import brentq

__all__ = ["PILOT_DELTA", "CountNoise", "Law", "classical_scale", "unchanged_probability"]

Law = Literal["laplace", "geometric", "gaussian"]
Floats = NDArray[np.float64]
PILOT_DELTA = 0.05  # the only delta of two digits whose classical scale gives the printed row of Table 2
CELLS, POINTS = 1000, 2**20  # most changed counts whose law is tabulated, and most outcomes of one count
LEAST_EPSILON, MOST_EPSILON, LEAST_DELTA = 1e-10, 1e6, 1e-300  # limits in which a Gaussian delta is precise
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def classical_scale(epsilon: float, delta: float) -> float:
    r"""Return the textbook's scale of Gaussian noise at sensitivity 1, :math:`\sqrt{2\log(1.25/\delta)} / \epsilon`.

    Its theorem (Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, 3.22) holds only for an
    epsilon below 1: at epsilon 10, which the pilot tabulates, the true delta is 0.21 instead of 0.05.
    """
    return math.sqrt(2 * math.log(1.25 / fraction("delta", delta))) / positive_number("epsilon", epsilon)


def unchanged_probability(law: Law, epsilon: float, *, delta: float = PILOT_DELTA) -> float:
    r"""Return the probability that a count is released unchanged, with noise rounded to whole numbers.

    :math:`1 - e^{-\epsilon/2}`, :math:`\tanh(\epsilon/2)`, or :math:`\mathrm{erf}(1 / (2\sqrt2 \sigma))`: Tables 1
    to 3 of the pilot on mortality data of the Office for National Statistics. Gaussian noise has the classical scale of
    delta. The pilot does not print its delta; Table 2 fits 0.05.
    """
    if law == "gaussian":
        return math.erf(1 / (math.sqrt(8) * classical_scale(epsilon, delta)))
    return math.exp(CountNoise(law, epsilon).log_law(np.zeros(1))[0])


@dataclass(frozen=True)
class CountNoise:
    """Noise on every count of a table to which each person adds 1, by default rounded to the nearest whole number.

    Gaussian noise has a delta, an epsilon from 1e-10 to 1e6, and the smallest scale that keeps the promise (Balle and
    Wang, "Improving the Gaussian Mechanism for Differential Privacy", 2018, theorem 8), not the classical one.
    """

    law: Law
    epsilon: float
    delta: float = 0.0
    rounded: bool = True

    def __post_init__(self) -> None:
        if self.law not in get_args(Law):
            raise ValueError(f"law must be one of {', '.join(get_args(Law))}, got {self.law!r}")
        if self.law == "gaussian":
            epsilon, delta = positive_number("epsilon", self.epsilon), fraction("delta", self.delta)
            if not (LEAST_EPSILON <= epsilon <= MOST_EPSILON and delta >= LEAST_DELTA):
                limits = f"from {LEAST_EPSILON:g} to {MOST_EPSILON:g} and a delta of {LEAST_DELTA:g} or more"
                raise ValueError(f"gaussian noise must have an epsilon {limits}, got {self.epsilon} and {self.delta}")
        elif self.delta:
            raise ValueError(f"delta must be 0 for {self.law} noise, got {self.delta}")
        _ = self.noise  # refuses a bad epsilon

    @property
    def noise(self) -> Laplace | TwoTailedGeometric | Gaussian:
        """The law before rounding."""
        geometric = TwoTailedGeometric(self.epsilon)  # so that errors about a bad epsilon name epsilon, not scale
        if self.law == "geometric":
            return geometric
        return Laplace(1 / self.epsilon) if self.law == "laplace" else Gaussian(_tight_scale(self.epsilon, self.delta))

    @property
    def scale(self) -> float:
        """Standard deviation of the noise before rounding."""
        noise = self.noise
        return noise.scale if isinstance(noise, Gaussian) else math.sqrt(noise.variance)

    @property
    def variance(self) -> float:
        """Variance of the noise, after rounding if it is rounded."""
        noise = self.noise
        if not self.rounded or isinstance(noise, TwoTailedGeometric):
            return noise.variance
        if isinstance(noise, Laplace):  # cosh(x) / (2 sinh(x)^2) with x = rate / 2, without overflow
            rate = 1 / noise.scale
            return math.exp(-rate / 2) * (1 + math.exp(-rate)) / math.expm1(-rate) ** 2
        if (scale := noise.scale) > 2:  # the error of Sheppard's correction is below 1e-30
            return scale * scale + 1 / 12
        steps = np.arange(1.0, 82.0)  # 40 standard deviations
        return float(2 * ((2 * steps - 1) * noise.sf(steps - 0.5)).sum())

    @property
    def claim(self) -> PureDP | ApproxDP:
        """Promise when one person is added or removed."""
        return ApproxDP(self.epsilon, self.delta) if self.law == "gaussian" else PureDP(self.epsilon)

    def sample(self, size: tuple[int, ...], rng: Rng) -> Floats | NDArray[np.int64]:
        """Draw noise of shape `size`; whole numbers if rounded."""
        errors = self.noise.sample(size, rng)
        if not self.rounded or errors.dtype.kind == "i":
            return errors
        return np.rint(errors, out=errors).astype(np.int64)

    def log_law(self, errors: Floats) -> Floats:
        """Return the log-probability, or log-density if not rounded, of errors: -inf if impossible, NaN for NaN."""
        noise, magnitude = self.noise, np.abs(errors)
        if isinstance(noise, TwoTailedGeometric):
            return noise.logpmf(errors)
        if not self.rounded:
            return noise.logpdf(errors)
        if isinstance(noise, Laplace):
            rate = 1 / noise.scale
            tail = math.log(math.sinh(rate / 2)) if rate < 1000 else rate / 2 - math.log(2)
            log_p = np.where(magnitude == 0, math.log(-math.expm1(-rate / 2)), tail - rate * magnitude)
        else:
            log_p = _log_cells(magnitude, noise.scale)
        possible = np.isfinite(errors) & (errors == np.rint(errors))
        return np.where(possible | np.isnan(errors), log_p, -np.inf)

    def log_below(self, errors: Floats) -> Floats:
        """Return the log-probability of errors up to `errors`, precise in both tails: that of values raised to 0."""
        noise = self.noise
        if isinstance(noise, TwoTailedGeometric):
            integers, rate = np.floor(errors), noise.epsilon
            tail = -rate * np.where(integers < 0, -integers, integers + 1) - math.log1p(math.exp(-rate))
            return np.where(integers < 0, tail, np.log1p(-np.exp(tail)))
        ends = np.asarray(errors, np.float64) + (0.5 if self.rounded else 0.0)
        return np.asarray(laplace_log_cdf(ends, noise.scale) if self.law == "laplace" else log_ndtr(ends / noise.scale))

    def exact_loss(self, shifts: Sequence[int]) -> LossDistribution | None:
        """Return the law of the loss of counts that differ by `shifts`, with independent noise.

        For unrounded Laplace noise it is an upper bound with the exact maximum. None for unrounded Gaussian noise, and
        if tables would be too large: above 1,000 changed counts, or 2**20 outcomes.
        """
        if (self.law == "gaussian" and not self.rounded) or len(shifts) > CELLS:
            return None
        return loss_of_changes([(self, shifts)])

    @property
    def continuous(self) -> bool:
        """Whether the law is continuous: every single value has probability 0."""
        return self.law != "geometric" and not self.rounded

    @property
    def tabulated_exactly(self) -> bool:
        """Whether the whole loss table is exact, not only its maximum."""
        return self.law != "laplace" or self.rounded

    def losses_of(self, shifts: Floats) -> list[LossDistribution] | None:
        """Return the losses of values that differ by `shifts`; see `algorithms.noise.losses`."""
        noise = self.noise
        if isinstance(noise, TwoTailedGeometric) or not self.rounded:
            return noise.losses_of(shifts)
        if (shifts != np.rint(shifts)).any() or len(shifts) > CELLS or shifts.sum() > POINTS:
            return None
        if isinstance(noise, Gaussian) and 72 * noise.scale + 3 * shifts.max() > POINTS:
            return None
        table = self._laplace_loss if isinstance(noise, Laplace) else self._gaussian_loss
        tables = {shift: table(noise.scale, int(shift)) for shift in set(shifts.tolist())}
        return [tables[shift] for shift in shifts.tolist()]

    def _laplace_loss(self, scale: float, shift: int) -> LossDistribution:
        """Loss of a count with rounded Laplace noise; all errors below 0 have one loss, all above `shift` another."""
        errors = np.arange(shift, -1.0, -1.0)
        most, tail = shift / scale, math.log(0.5) - 0.5 / scale  # log-probability of an error of -1 or less
        return loss_from_logs(
            np.concatenate([[tail - most], self.log_law(errors), [tail]]),
            np.concatenate([[tail], self.log_law(errors - shift), [tail - most]]),
        )

    def _gaussian_loss(self, scale: float, shift: int) -> LossDistribution:
        """Loss of a count with rounded Gaussian noise: it is unbounded in the tails."""
        reach = math.ceil(36 * scale) + shift
        errors = np.arange(-reach, reach + shift + 1.0)
        log_p, log_q = self.log_law(errors), self.log_law(errors - shift)
        return loss_from_logs(log_p, log_q, supremum=math.inf, infimum=-math.inf)


def _log_cells(magnitude: Floats, scale: float) -> Floats:
    """Return the log-probability that normal noise is rounded to each of `magnitude`, whole numbers of 0 and more."""
    center, width = magnitude / scale, 1 / scale
    near, total = np.minimum(center, 2 * scale), np.zeros(np.shape(magnitude))
    for node, weight in zip(_NODES * width / 2, _WEIGHTS / 2, strict=True):
        total += weight * np.exp(-near * node - node * node / 2)
    with np.errstate(divide="ignore", invalid="ignore"):  # entries of the other branch, and infinity
        smooth = np.log(total) - near * near / 2 - math.log(math.sqrt(2 * math.pi) * scale)
        high, low = log_ndtr(-(magnitude - 0.5) / scale), log_ndtr(-(magnitude + 0.5) / scale)
        return np.where(center + 1 < 2 * scale, smooth, high + np.log(-np.expm1(low - high)))


def _tight_scale(epsilon: float, delta: float) -> float:
    """Return the smallest standard deviation that promises (epsilon, delta) for sensitivity 1."""
    low, high = -30.0, 30.0  # log(mu) is between, for all allowed promises
    root = brentq(lambda log_mu: GaussianDP(math.exp(log_mu)).delta_at(epsilon) - delta, low, high, xtol=1e-13)
    return math.exp(-root) * (1 + 1e-12)  # covers the solver's tolerance
