"""The law of the privacy loss of one ordered pair of databases: its divergences, quantiles and composition."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audit.arguments import fraction
from audit.exact.arithmetic import convolve, either, log_sum, merge, spread

__all__ = ["LossDistribution"]

Floats = NDArray[np.float64]
LISTED = 10_000_000  # most outcomes of two laws that are listed one by one
MULTIPLIED = 2**32  # most products that a convolution may take: some seconds
POINTS = 2**25  # most points of its grid


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """The law of the privacy loss ``log(p / q)`` of an output drawn from `p`.

    `p` is the law of outputs on the first database, `q` on the second. `reverse` gives the other order; a promise must
    hold for both.

    Attributes
    ----------
    loss : ndarray of float, shape (m,)
        Distinct finite losses in nats, in increasing order.
    log_p : ndarray of float, shape (m,)
        Log-probability of each under `p`; under `q` it is ``log_p - loss``.
    infinite_mass : float
        Probability under `p` of outputs that `q` cannot produce: there the loss is infinite.
    missing_mass : float
        Probability under `q` of outputs that `p` cannot produce.
    supremum, infimum : float or None
        Least upper and greatest lower bound of the finite losses, if theory knows them and the listed losses only
        approach them.
    """

    loss: Floats
    log_p: Floats
    infinite_mass: float = 0.0
    missing_mass: float = 0.0
    supremum: float | None = None
    infimum: float | None = None

    @property
    def probability(self) -> Floats:
        """Probability of each loss under `p`, shape (m,)."""
        return np.exp(self.log_p)

    @property
    def maximum(self) -> float:
        """The pure-DP loss in this order: least upper bound of the loss over all outputs, infinite mass included."""
        if self.infinite_mass > 0:
            return math.inf
        if self.supremum is not None:
            return self.supremum
        return float(self.loss[-1]) if self.loss.size else -math.inf

    def delta_at(self, epsilon: float) -> float:
        """Return the smallest delta for which this pair is (epsilon, delta)-indistinguishable in this order.

        It is ``sum(max(p - exp(epsilon) q, 0))``, the hockey-stick divergence, for an epsilon of 0 or more (Barthe and
        Olmedo, "Beyond Differential Privacy", 2013, theorem 1).
        """
        if not epsilon >= 0:
            raise ValueError(f"epsilon must be 0 or more, got {epsilon}")
        above = self.loss > epsilon
        return self.infinite_mass + math.fsum(np.exp(self.log_p[above]) * -np.expm1(epsilon - self.loss[above]))

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon, 0 or more, at a delta in [0, 1); infinite below the infinite mass."""
        fraction("delta", delta, zero=True)
        if delta < self.infinite_mass:
            return math.inf
        if delta == 0:
            return max(0.0, self.maximum)
        # Between two neighboring losses delta is P - exp(epsilon) Q, with P and Q the masses above: solve each piece.
        above_p = self.infinite_mass + np.cumsum(np.exp(self.log_p[::-1]))
        log_above_q = np.logaddexp.accumulate((self.log_p - self.loss)[::-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            solved = np.log(above_p - delta) - log_above_q
        lower = np.append(self.loss[::-1][1:], -np.inf)
        holds = (above_p > delta) & (solved >= lower)
        return max(0.0, float(solved[holds][0])) if holds.any() else 0.0

    def renyi(self, alpha: float) -> float:
        """Return the Renyi divergence of `p` from `q`, ``log(sum(p**alpha * q**(1 - alpha))) / (alpha - 1)``, in nats.

        At order 1 it is the Kullback-Leibler divergence, at infinity `maximum`; infinite from order 1 on if there is
        infinite mass. It uses only the listed losses: if these only approach the supremum, that of a large finite order
        is too low (van Erven and Harremoes, "Renyi Divergence and Kullback-Leibler Divergence", 2014, theorems 4 to 6).
        """
        if not alpha >= 0:
            raise ValueError(f"alpha must be 0 or more, got {alpha}")
        if alpha >= 1 and self.infinite_mass > 0:
            return math.inf
        if alpha == math.inf:
            return self.maximum
        if alpha == 1:
            return math.fsum(self.probability * self.loss)
        with np.errstate(over="ignore"):
            exponent = (alpha - 1) * self.loss
        if exponent.size and exponent[-1] == math.inf:  # in floats, this order equals infinity
            return float(self.loss[-1])
        moment = log_sum(self.log_p + exponent)
        if abs(moment) < 0.1:  # the sum is near 1: add up its difference from 1
            p, small = self.probability, exponent < 1
            excess = np.where(small, p * np.expm1(np.where(small, exponent, 0)), np.exp(self.log_p + exponent) - p)
            moment = math.log1p(math.fsum(excess) - self.infinite_mass)
        return moment / (alpha - 1)

    def quantile(self, q: float) -> float:
        """Return the loss that an output drawn from `p` does not exceed with a probability in [0, 1].

        It is the smallest such loss, to rounding; infinite if `q` reaches into the infinite mass. At 1 it is `maximum`.
        """
        fraction("q", q, zero=True, one=True)
        if q == 1:
            return self.maximum
        above = self.infinite_mass + np.cumsum(self.probability[::-1])[::-1]  # of this loss and those above
        beyond = np.append(above[1:], self.infinite_mass)  # of those above, summed from the top: tails keep digits
        reached = np.flatnonzero(beyond <= (1 - q) * (1 + 1e-12))
        return float(self.loss[reached[0]]) if reached.size else math.inf

    def reverse(self) -> LossDistribution:
        """Return the loss in the other order: of an output drawn from `q`."""
        return LossDistribution(
            -self.loss[::-1],
            (self.log_p - self.loss)[::-1],
            self.missing_mass,
            self.infinite_mass,
            None if self.infimum is None else -self.infimum,
            None if self.supremum is None else -self.supremum,
        )

    def compose(self, other: LossDistribution, *, grid: float | None = None) -> LossDistribution:
        """Return the loss of two independent outputs seen together: losses add, probabilities multiply.

        Parameters
        ----------
        other : LossDistribution
            The loss of an output that is independent of this one on both databases.
        grid : float, optional
            Spacing in nats. With it each law is first spread over a grid that starts at its lowest loss, for large
            tables. Default: list every pair of losses, 10 million at most, with equal sums as one outcome.

        Notes
        -----
        Guarantee: with a grid, `delta_at`, `epsilon_at` and `renyi` are upper bounds, in both orders and however often
        laws are composed. `maximum` stays exact. A loss between two grid points is split between them so that both `p`
        and `q` keep their mass. Merging the two parts undoes the split, so the split output is at least as informative
        as the true one. Rounding every loss up would also give a bound, but in one order only, and with an error of
        first instead of second order in `grid`. Each `quantile` may be off by one spacing per law, and `epsilon_at` is
        too large by less than one spacing per law.

        The convolution sums products directly, so every probability above 1e-300 keeps its digits. A fast Fourier
        transform would leave errors of 1e-16 everywhere, more than the probabilities in the tails.

        References
        ----------
        .. [1] Koskela, Jalko and Honkela, "Computing Tight Differential Privacy Guarantees Using FFT", 2020.
        .. [2] Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the Dots: Tighter Discrete Approximations of
           Privacy Loss Distributions", 2022, for the split.

        Examples
        --------
        >>> from audit.exact import loss_distribution
        >>> law = loss_distribution([0.75, 0.25], [0.25, 0.75])
        >>> twice, bound = law.compose(law), law.compose(law, grid=0.01)
        >>> round(twice.delta_at(0.5), 6), round(bound.delta_at(0.5), 6)
        (0.459455, 0.459455)
        """
        masses = (either(self.infinite_mass, other.infinite_mass), either(self.missing_mass, other.missing_mass))
        if not (self.loss.size and other.loss.size):
            return LossDistribution(np.zeros(0), np.zeros(0), *masses)
        (low, high), (other_low, other_high) = self._ends, other._ends
        ends = (high + other_high, low + other_low)
        if grid is None:
            if self.loss.size * other.loss.size > LISTED:
                raise ValueError(f"composing {self.loss.size} by {other.loss.size} losses exceeds 10 million")
            sums = np.add.outer(self.loss, other.loss).ravel()
            return LossDistribution(*merge(sums, np.add.outer(self.log_p, other.log_p).ravel()), *masses, *ends)
        if not 0 < grid < math.inf:
            raise ValueError(f"grid must be positive and finite, got {grid}")
        points = [float(np.ptp(law.loss)) / grid + 2 for law in (self, other)]
        if not (math.prod(points) <= MULTIPLIED and sum(points) <= POINTS):
            raise ValueError(f"a grid of {grid} is too fine for {points[0]:.3g} by {points[1]:.3g} losses")
        p, q = map(convolve, *(spread(law.loss, law.log_p, grid) for law in (self, other)))
        loss = self.loss[0] + other.loss[0] + grid * np.arange(p.size, dtype=np.float64)
        with np.errstate(divide="ignore"):  # p or q may underflow: use the larger one
            log_p = np.where(loss >= 0, np.log(p), np.log(q) + loss)
        finite = np.isfinite(log_p)
        return LossDistribution(loss[finite], log_p[finite], *masses, *ends)

    def self_compose(self, times: int, *, grid: float | None = None) -> LossDistribution:
        """Return the loss of several independent outputs of this law seen together, by repeated squaring.

        `grid` is that of `compose`; it is not needed if sums of losses coincide, as they do for geometric noise.
        """
        if isinstance(times, bool) or not isinstance(times, int | np.integer):
            raise TypeError(f"times must be an integer, got {times!r}")
        if times < 1:
            raise ValueError(f"times must be at least 1, got {times}")
        if times == 1:
            return self
        half = self.self_compose(times // 2, grid=grid)
        squared = half.compose(half, grid=grid)
        return squared.compose(self, grid=grid) if times % 2 else squared

    @property
    def _ends(self) -> tuple[float, float]:
        return (
            float(self.loss[0]) if self.infimum is None else self.infimum,
            float(self.loss[-1]) if self.supremum is None else self.supremum,
        )

    def __repr__(self) -> str:
        return f"LossDistribution({self.loss.size} losses, maximum {self.maximum:.6g})"
