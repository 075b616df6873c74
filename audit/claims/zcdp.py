"""Zero-concentrated differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.claims.claim import Relation
from audit.claims.families import register_claim
from audit.claims.profiles import CurveClaim
from audit.exact.roots import brentq

__all__ = ["ZCDP"]


@register_claim
@dataclass(frozen=True)
class ZCDP(CurveClaim):
    """Zero-concentrated differential privacy: the Renyi divergence of every order ``a`` is at most ``a * rho``.

    A group of ``w`` people has ``w**2`` times the rho. The delta at an epsilon holds for every mechanism that keeps the
    promise, but is not quite the smallest. Gaussian noise has the delta of ``GaussianDP(sqrt(2 * rho))``. (Bun and
    Steinke, "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds", 2016, definition 1.1
    and proposition 1.9.)

    Attributes
    ----------
    rho : float
        Nats, 0 or more.
    relation : {"add_remove", "replace_one"}
        Which databases are neighbors.

    Examples
    --------
    >>> round(ZCDP(2.5562).epsilon_at(1e-10), 2)  # persons of the 2020 redistricting data: published as 17.14
    17.14
    """

    kind = "zcdp"
    growth = 2
    sources = ("bun", "canonne")

    rho: float
    relation: Relation = "add_remove"

    @property
    def guessed_right(self) -> float:
        """The bound by the best Renyi order, or by Pinsker's inequality if it is smaller."""
        return min(super().guessed_right, (1 + math.sqrt(self.rho / 2)) / 2)

    @property
    def shift(self) -> float:
        """Standard deviations between two normal laws that have this rho."""
        return math.sqrt(2 * self.rho)

    def at_shift(self, shift: float) -> ZCDP:
        """Return the claim whose loss is that of two normal laws, `shift` standard deviations apart."""
        return self.at(shift**2 / 2)

    def rarest(self, probability: float) -> float:
        """Return the smallest probability on a neighbor of an event with this probability, by the divergences.

        With order ``a``, ``P**a Q**(1 - a) <= exp(a (a - 1) rho)``; the best order is ``1 + sqrt(log(1 / P) / rho)``.
        The lines of the privacy profile, ``(P - delta) exp(-epsilon)``, have the same envelope.
        """
        return math.exp(-((math.sqrt(-math.log(probability)) + math.sqrt(self.rho)) ** 2)) if probability > 0 else 0.0

    def lines(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return tangents of `rarest`, as epsilons of 0 or more and deltas."""
        root = math.sqrt(self.rho)

        def epsilons(far: Any) -> Any:
            """Return the epsilons of tangents at probabilities ``exp(-far**2)``."""
            return 2 * far * root + self.rho - np.log1p(root / far)

        low = 1e-12
        least = low if epsilons(low) >= 0 else brentq(epsilons, low, 10.0, xtol=1e-12)
        far = least + np.linspace(0.0, 1.0, 60) ** 2 * 6
        return np.maximum(epsilons(far), 0.0), np.exp(-(far**2)) * root / (root + far)

    def log_delta(self, epsilon: float) -> float:
        """Return the log of the smallest delta that follows from the Renyi divergences; minus infinity below -10000.

        It is the minimum over orders ``a > 1`` of ``(a - 1) (a rho - epsilon) + (a - 1) log(a - 1) - a log(a)``, which
        is convex in the order (Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020,
        corollary 13).
        """
        rho = self.rho

        def slope(log_above: float) -> float:
            """Return the derivative at the order ``1 + exp(log_above)``: it rises with the order."""
            return rho * (2 * math.exp(log_above) + 1) - epsilon - float(np.logaddexp(0.0, -log_above))

        if epsilon - rho > 200 * math.sqrt(rho):  # delta is at most exp(-(epsilon - rho)**2 / (4 rho))
            return -math.inf
        # The slope is positive at `high`, and negative at ``-(3 rho + 1)`` unless the order there is 1 to all digits.
        low, high = max(-(3 * rho + 1), -745.0), math.log(epsilon / rho + 2 / math.sqrt(rho))
        if slope(low) >= 0:
            return 0.0
        best = brentq(slope, low, high, xtol=1e-13, rtol=1e-13)
        above = math.exp(best)
        return float(above * ((above + 1) * rho - epsilon - np.logaddexp(0.0, -best)) - math.log1p(above))
