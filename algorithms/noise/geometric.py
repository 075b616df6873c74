"""The two-tailed geometric law, and the privacy loss of counts with this noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike

from algorithms.noise import secure
from algorithms.noise.counts import ATOMS, PureBudget, integer_losses
from algorithms.noise.drawing import CHUNK, Floats, Integers, Rng, Size, Table, draw, signs
from algorithms.noise.precision import OnIntegers, on_integers, parameter
from audit.exact import LossDistribution, compose_losses

__all__ = ["GeometricBudget", "TwoTailedGeometric", "geometric_loss", "geometric_magnitudes"]

LEAST_TABLE = 1 / 300  # from this epsilon on, a table is faster than one exponential a draw


@dataclass(frozen=True)
class TwoTailedGeometric(OnIntegers):
    r"""Two-tailed geometric law (two-sided geometric, discrete Laplace): P(k) = tanh(epsilon/2) exp(-epsilon |k|).

    Source: Ghosh, Roughgarden and Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", 2009.

    `epsilon` is the privacy loss in nats per unit of sensitivity, at least 1e-12 and finite.

    Notes
    -----
    With :math:`q = e^{-\varepsilon}`, :math:`P(|K| \ge m) = 2q^m/(1+q)` for :math:`m \ge 1`. Let E be a standard
    exponential and :math:`c = \log(2/(1+q)) = \log(1 + \tanh(\varepsilon/2))`. Since :math:`c \le \varepsilon`,

    .. math:: P(\lfloor (E+c)/\varepsilon \rfloor \ge m) = P(E \ge m\varepsilon - c) = e^c q^m = 2q^m/(1+q),

    so a draw needs one exponential and one fair sign. For an epsilon of 1/300 or more a table of the law is faster (see
    `algorithms.noise.drawing.Table`).

    In float64 both samplers truncate the tails. The table never gives values in the last 2^-53 of its mass (their true
    probabilities are below 1e-17). Without a table, magnitudes beyond 45.2 / epsilon never occur, and single
    probabilities have a relative error of about 1e-15 / epsilon; the lower limit of `epsilon` keeps this error below
    1 %, and every draw below 2^46. ``rng="secure"`` has neither flaw.
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", parameter("epsilon", self.epsilon, at_least=1e-12))

    @property
    def variance(self) -> float:
        """Variance, 2 q / (1 - q)^2 with q = exp(-epsilon)."""
        return 2 * math.exp(-self.epsilon) / math.expm1(-self.epsilon) ** 2

    def sample(self, size: Size, rng: Rng) -> Integers:
        """Draw independent values."""
        return draw(self, np.int64, size, rng, self._seeded, exact=lambda: secure.two_tailed_geometric(self.epsilon))

    def logpmf(self, k: ArrayLike) -> Floats:
        """Return the log probability of `k`; minus infinity off the integers."""
        k = np.asarray(k, dtype=np.float64)
        with np.errstate(over="ignore"):
            return on_integers(k, math.log(math.tanh(self.epsilon / 2)) - self.epsilon * np.abs(k))

    def losses_of(self, shifts: Floats) -> list[LossDistribution] | None:
        """Return the loss of values that differ by `shifts`; see `algorithms.noise.losses`."""
        return integer_losses(
            shifts, lambda integers: None if (loss := geometric_loss(self.epsilon, integers)) is None else [loss]
        )

    def _tail(self, m: Floats) -> Floats:
        with np.errstate(over="ignore"):
            tail: Floats = np.exp(-self.epsilon * m - math.log1p(math.exp(-self.epsilon)))
        return tail

    def _seeded(self, rng: np.random.Generator) -> Callable[[Integers], None]:
        if self.epsilon >= LEAST_TABLE:
            return partial(_table(self.epsilon).fill, rng)
        buffer = np.empty(CHUNK)

        def fill(out: Integers) -> None:
            magnitude = buffer[: out.size]
            geometric_magnitudes(rng, magnitude, self.epsilon)
            np.multiply(magnitude, signs(rng, out.size), out=out, casting="unsafe")

        return fill


@dataclass(frozen=True)
class GeometricBudget(PureBudget):
    """A pure budget, `epsilon` in nats, and the two-tailed geometric noise that it gives for sensitivity 1."""

    epsilon: float

    def __post_init__(self) -> None:
        _ = self.noise  # refuses a bad epsilon

    @cached_property
    def noise(self) -> TwoTailedGeometric:
        """The law of the error of every count."""
        return TwoTailedGeometric(self.epsilon)


@lru_cache(maxsize=64)  # an entry has half a MiB
def _table(epsilon: float) -> Table:
    return Table(np.exp(TwoTailedGeometric(epsilon).logpmf(np.arange(math.ceil(45 / epsilon) + 1))))


def geometric_loss(epsilon: float, shifts: list[int]) -> LossDistribution | None:
    """Loss of counts that differ by `shifts` with two-tailed geometric noise of `epsilon`; equal losses are merged."""
    before, shift = np.cumsum([0, *shifts])[:-1], np.array(shifts, np.int64)
    if ((before + 1.0) * (shift + 1)).sum() > ATOMS or not math.isfinite(epsilon * 2 * sum(shifts)):
        return None
    noise = TwoTailedGeometric(epsilon)
    law = compose_losses([])
    for people in shifts:
        k = np.arange(people, -1.0, -1.0)  # errors up to 0 have the same loss, and so have errors from `people` on
        log_p = noise.logpmf(k)
        log_p[0] -= math.log(-math.expm1(-epsilon))
        log_p[-1] = -math.log1p(math.exp(-epsilon))
        law = law.compose(LossDistribution(people - 2.0 * k, log_p))  # in units of epsilon: equal losses merge exactly
    return LossDistribution(epsilon * law.loss, law.log_p)


def geometric_magnitudes(rng: np.random.Generator, out: Floats, epsilon: float) -> None:
    """Draw magnitudes of two-tailed geometric noise; the notes of that law derive the formula."""
    rng.standard_exponential(out=out)
    out += math.log1p(math.tanh(epsilon / 2))
    out /= epsilon
    np.floor(out, out=out)
