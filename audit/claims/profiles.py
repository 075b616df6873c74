"""Base class of families that promise a curve of deltas: the inverse of the curve, and the joint loss of queries."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence

from audit.arguments import fraction
from audit.claims.claim import Claim, check_epsilon
from audit.exact import LossDistribution
from audit.exact.roots import brentq

__all__ = ["ROUNDING", "CurveClaim", "half_divergence"]

ROUNDING = 1e-9  # relative rounding error by which a loss may exceed its promise
TABULATION = 1e-4  # relative error that the grid of normal noise may add to Renyi divergences


class CurveClaim(Claim):
    """A promise of one number that allows a delta at every epsilon, and is measured by the shift of normal laws."""

    @abstractmethod
    def log_delta(self, epsilon: float) -> float:
        """Return the log of the delta at a finite epsilon, for a positive and finite budget."""

    def delta_at(self, epsilon: float) -> float:
        """Return the largest delta that the promise leaves possible at an epsilon."""
        check_epsilon(epsilon)
        if self.budget == 0 or epsilon == math.inf:
            return 0.0
        return 1.0 if self.budget == math.inf else math.exp(self.log_delta(epsilon))

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon that the promise guarantees at a delta; infinite at 0 unless the budget is 0."""
        fraction("delta", delta, zero=True)
        if self.budget == 0:
            return 0.0
        return math.inf if delta == 0 or self.budget == math.inf else invert(self.log_delta, delta)

    def excess(self, epsilon: float, losses: Sequence[LossDistribution]) -> tuple[str, str] | None:
        """Return the budget of normal noise with these Renyi divergences of order 2, and the promise, if too large."""
        rho = half_divergence(losses)
        if rho <= self.shift**2 / 2 * (1 + TABULATION):
            return None
        return f"{self.parameter} {self.at_shift(math.sqrt(2 * rho)).budget:.6g}", f"{self.budget:.6g}"


def half_divergence(losses: Sequence[LossDistribution]) -> float:
    """Half the Renyi divergence of order 2, which adds up over independent parts."""
    tables, times = {id(loss): loss for loss in losses}, Counter(map(id, losses))  # equal parts share a table
    return math.fsum(times[key] * loss.renyi(2) / 2 for key, loss in tables.items())


def invert(log_delta: Callable[[float], float], delta: float) -> float:
    """Return the smallest epsilon at which a falling profile is down to a positive delta."""
    target = math.log(delta)
    if log_delta(0.0) <= target:
        return 0.0
    high = 1.0
    while log_delta(high) > target:
        high *= 2
        if high == math.inf:
            return math.inf
    while log_delta(high / 2) <= target:
        high /= 2

    def excess(epsilon: float) -> float:
        return log_delta(epsilon) - target

    return brentq(excess, high / 2, high, xtol=1e-300, rtol=1e-14)
