"""Pure differential privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from audit.arguments import fraction
from audit.claims.claim import Claim, Relation, check_epsilon
from audit.claims.families import register_claim
from audit.claims.profiles import ROUNDING
from audit.exact import LossDistribution

__all__ = ["PureDP"]


@register_claim
@dataclass(frozen=True)
class PureDP(Claim):
    """Epsilon-differential privacy: no event is more than ``exp(epsilon)`` times as likely on a neighbor.

    As a promise it bounds the loss from above; as a measurement it bounds it from below. Both may be 0 or infinite. A
    group of ``w`` people has ``w`` times the epsilon. (Dwork and Roth, "The Algorithmic Foundations of Differential
    Privacy", 2014, definition 2.4 and theorem 2.2.)

    Attributes
    ----------
    epsilon : float
        Privacy loss in nats, 0 or more.
    relation : {"add_remove", "replace_one"}
        Which databases are neighbors: one person added or removed (unbounded), or one person's data replaced (bounded).

    Examples
    --------
    >>> print(PureDP(0.5).under("replace_one"))
    epsilon 1 (replace one)
    """

    kind = "pure"
    sources = ("dwork", "kairouz")

    epsilon: float
    relation: Relation = "add_remove"

    @property
    def epsilon_delta(self) -> tuple[float, float]:
        """Epsilon, and a delta of 0."""
        return self.epsilon, 0.0

    @property
    def guessed_right(self) -> float:
        """Largest probability that a guess between two neighbors is right, whatever the output."""
        return 1 / (1 + math.exp(-self.epsilon))

    def delta_at(self, epsilon: float) -> float:
        """Return ``(exp(E) - exp(epsilon)) / (1 + exp(E))`` below the promised ``E``, else 0.

        Randomized response attains it (Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy",
        2015, section 3).
        """
        check_epsilon(epsilon)
        if epsilon >= self.epsilon:
            return 0.0
        return -math.expm1(epsilon - self.epsilon) / (1.0 + math.exp(-self.epsilon))

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon that the promise guarantees at a delta."""
        fraction("delta", delta, zero=True)
        if delta == 0:
            return self.epsilon
        odds = delta / (1.0 - delta) * math.exp(-self.epsilon)
        return max(0.0, self.epsilon + math.log1p(-delta) + math.log1p(-odds)) if odds < 1 else 0.0

    def excess(self, epsilon: float, losses: Sequence[LossDistribution]) -> tuple[str, str] | None:
        """Return the sum of the losses, if it exceeds the promise."""
        if epsilon <= self.epsilon * (1 + ROUNDING):
            return None
        return f"epsilon {epsilon:.6g}", f"{self.epsilon:.6g}"
