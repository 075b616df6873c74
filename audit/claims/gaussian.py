"""Gaussian differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audit.claims.claim import Relation
from audit.claims.families import register_claim
from audit.claims.profiles import CurveClaim

__all__ = ["GaussianDP"]

ROUNDED = 1e-15  # by which a difference of two probabilities may round


@register_claim
@dataclass(frozen=True)
class GaussianDP(CurveClaim):
    """Gaussian differential privacy: telling neighbors apart is no easier than telling N(0, 1) from N(mu, 1).

    A group of ``w`` people has ``w`` times the mu. The Gaussian mechanism attains the delta at every epsilon. (Dong,
    Roth and Su, "Gaussian Differential Privacy", 2022, definition 2.6 and theorem 2.14.)

    Attributes
    ----------
    mu : float
        In standard deviations, 0 or more.
    relation : {"add_remove", "replace_one"}
        Which databases are neighbors.

    Examples
    --------
    >>> round(GaussianDP(1.0).delta_at(1.0), 6), round(GaussianDP(1.0).epsilon_at(1e-5), 4)
    (0.126937, 4.3772)
    """

    kind = "gaussian"
    unit = "standard deviations"
    sources = ("dong", "balle")

    mu: float
    relation: Relation = "add_remove"

    @property
    def shift(self) -> float:
        """The mu."""
        return self.mu

    def at_shift(self, shift: float) -> GaussianDP:
        """Return the claim whose loss is that of two normal laws, `shift` standard deviations apart."""
        return self.at(shift)

    def rarest(self, probability: float) -> float:
        """Return the smallest probability on a neighbor of an event with this probability."""
        from scipy import special  # slow to import, and everything imports claims

        return float(special.ndtr(special.ndtri(probability) - self.mu))

    def lines(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return tangents of the trade-off curve, as epsilons and deltas: `log_delta` at many epsilons."""
        from scipy import special  # slow to import, and everything imports claims

        near = np.linspace(-self.mu / 2, 6.0, 60)
        epsilons = self.mu * (near + self.mu / 2)
        return epsilons, special.ndtr(-near) - np.exp(epsilons + special.log_ndtr(-near - self.mu)) + ROUNDED

    @classmethod
    def composed(cls, columns: dict[str, list[float]]) -> dict[str, float]:
        """Return the root of the sum of squares."""
        return {"mu": math.hypot(*columns["mu"])}

    def log_delta(self, epsilon: float) -> float:
        """Return the log of ``Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu)``, also in tails.

        It is the delta of two normal laws (Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy",
        2018, theorem 8; Dong, Roth and Su, 2022, corollary 2.13).
        """
        from scipy import special  # slow to import, and everything imports claims

        mu = self.mu
        near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        # exp(epsilon) times the density at `far` is the density at `near`: only the Mills ratios differ.
        if mu < 1e-5:  # a tiny difference: use their slope in the middle, with a relative error of mu**2 / 12
            middle = epsilon / mu
            ratios = mu * (math.sqrt(2 / math.pi) - middle * float(special.erfcx(middle / math.sqrt(2))))
        elif near >= 0:
            ratios = float(special.erfcx(near / math.sqrt(2)) - special.erfcx(far / math.sqrt(2)))
        else:
            log_p, log_q = special.log_ndtr(-near), math.log(special.erfcx(far / math.sqrt(2)) / 2) - near * near / 2
            return float(log_p + math.log(-math.expm1(log_q - log_p)))
        return math.log(ratios) - math.log(2) - near * near / 2 if ratios > 0 else -math.inf
