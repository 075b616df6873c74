"""Approximate differential privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from audit.arguments import fraction
from audit.claims.claim import Claim, Relation
from audit.claims.families import register_claim
from audit.claims.profiles import ROUNDING
from audit.claims.pure import PureDP
from audit.exact import LossDistribution, compose_losses
from audit.exact.making import EXACT_LISTED, STEPS

__all__ = ["ApproxDP"]


@register_claim
@dataclass(frozen=True)
class ApproxDP(Claim):
    """Approximate differential privacy: epsilon, except with a probability of `delta`, with which anything may happen.

    A group of ``w`` people has ``w * epsilon`` and ``delta (exp(w epsilon) - 1) / (exp(epsilon) - 1)``, at most 1. With
    epsilon 0 it bounds the total variation: the probability of any event differs by at most delta. An audit then
    measures delta; otherwise it measures epsilon, at the delta of the promise. (Dwork and Roth, 2014, definition 2.4;
    Vadhan, "The Complexity of Differential Privacy", 2017, lemma 2.2 for groups.)

    Attributes
    ----------
    epsilon : float
        Privacy loss in nats, 0 or more.
    delta : float
        Probability, in [0, 1]; a delta of 1 promises nothing.
    relation : {"add_remove", "replace_one"}
        Which databases are neighbors.

    Examples
    --------
    >>> print(ApproxDP(1.0, 1e-6).group(2))
    epsilon 2, delta 3.718e-06 (add/remove)
    """

    kind = "approx"
    sources = ("dwork", "vadhan", "kairouz")
    _budget = "epsilon"

    epsilon: float
    delta: float
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta > 1:
            raise ValueError(f"delta must be in [0, 1], got {self.delta}")
        object.__setattr__(self, "_budget", "delta" if self.epsilon == 0 < self.delta else "epsilon")

    @property
    def parameter(self) -> str:
        """Name of the budget: delta if epsilon is 0, else epsilon."""
        return self._budget

    @property
    def scale(self) -> str:
        """Name and unit of the budget, in words."""
        return super().scale if self._budget == "epsilon" else "delta at epsilon 0"

    def with_parameters(self, changes: dict[str, Any]) -> Self:
        """Return the claim with other numbers, or under another relation; a measured epsilon may be 0."""
        other = super().with_parameters(changes)
        if other.epsilon == 0:
            object.__setattr__(other, "_budget", self._budget)
        return other

    @property
    def forgiven(self) -> float:
        """The delta."""
        return self.delta

    @property
    def epsilon_delta(self) -> tuple[float, float]:
        """Both numbers."""
        return self.epsilon, self.delta

    @property
    def guessed_right(self) -> float:
        """Largest probability of a right guess between two neighbors; without failures if epsilon is the budget."""
        return PureDP(self.epsilon).guessed_right if self._budget == "epsilon" else (1 + self.delta) / 2

    def delta_at(self, epsilon: float) -> float:
        """Return the promised delta; below the promised epsilon, ``1 - delta`` times the delta of `PureDP` is added.

        The worst pair of laws reveals the database with probability delta, and is randomized response otherwise
        (Kairouz, Oh and Viswanath, 2015, section 3).
        """
        return self.delta + (1.0 - self.delta) * PureDP(self.epsilon).delta_at(epsilon)

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon that the promise guarantees at a delta; infinite below the promised delta."""
        fraction("delta", delta, zero=True)
        if delta < self.delta:
            return math.inf
        rest = (delta - self.delta) / (1.0 - self.delta)
        return PureDP(self.epsilon).epsilon_at(min(rest, math.nextafter(1.0, 0.0)))  # where it is rounded up to 1

    def of_group(self, people: int) -> dict[str, float]:
        """Return epsilon and delta for a group."""
        return {
            "epsilon": people * self.epsilon,
            "delta": self.delta and min(1.0, self.delta * _chain(people, self.epsilon)),
        }

    @classmethod
    def composed(cls, columns: dict[str, list[float]]) -> dict[str, float]:
        """Return the sums, delta at most 1."""
        sums = super().composed(columns)
        return {**sums, "delta": min(1.0, sums["delta"])}

    def excess(self, epsilon: float, losses: Sequence[LossDistribution]) -> tuple[str, str] | None:
        """Return the delta at the promised epsilon, if it exceeds the promise."""
        law, slack = _composed_from_below(losses)
        delta = law.delta_at(self.epsilon + slack)
        if delta <= self.delta * (1 + ROUNDING) + 1e-15:
            return None
        return f"delta {delta:.4g} at epsilon {self.epsilon:.6g}", f"{self.delta:.4g}"


def _chain(people: int, epsilon: float) -> float:
    """Sum of ``exp(i * epsilon)`` over the steps ``i`` from one database to the other."""
    if people == 1 or epsilon == 0:
        return float(people)
    log_sum = (people - 1) * epsilon + math.log(math.expm1(-people * epsilon) / math.expm1(-epsilon))
    return math.exp(log_sum) if log_sum < 709 else math.inf


def _composed_from_below(parts: Sequence[LossDistribution]) -> tuple[LossDistribution, float]:
    """Return the loss of all parts together, and an upper bound on its error: 0 if all outcomes can be listed."""
    law = LossDistribution(np.zeros(1), np.zeros(1))
    for part in parts:
        if law.loss.size * part.loss.size > EXACT_LISTED:
            break
        law = law.compose(part)
    else:
        return law, 0.0
    # `compose_losses` then uses a grid of at most this step, and moves a loss by less than one step for each part.
    step = sum(float(np.ptp(part.loss)) for part in parts if part.loss.size) / STEPS
    step += min(float(np.diff(part.loss).min()) for part in parts if part.loss.size > 1)
    try:
        return compose_losses(parts), len(parts) * step
    except ValueError:  # losses beyond the range of floats; some of the parts lose at most as much as all
        return law, 0.0
