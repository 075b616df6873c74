"""Counts with discrete Gaussian noise, which promise zero-concentrated DP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from algorithms.flaxman import EachCount
from algorithms.noise import DiscreteGaussian
from algorithms.noise.counts import Pair, changes, leaf_counts
from algorithms.noise.losses import loss_of_changes
from audit.claims import ZCDP
from audit.exact import LossDistribution

__all__ = ["GaussianCounts"]

LEAST, MOST = 1e-24, 1e23  # smallest and largest rho, from the limits of the noise


@dataclass(frozen=True)
class GaussianCounts(EachCount):
    """Discrete Gaussian counts: discrete Gaussian noise of ``sigma**2 = 1 / (2 rho)`` on the count of every leaf.

    **Claim.** Zero-concentrated DP with `rho` when one person is added or removed. Moving a person changes two counts
    and has twice this rho, half of the bound of `ZCDP.under` (Canonne, Kamath and Steinke, "The Discrete Gaussian for
    Differential Privacy", 2020, theorem 4).
    **Sensitivity.** One person changes one count by 1.
    """

    rho: float  # privacy budget in nats

    def __post_init__(self) -> None:
        if not LEAST <= ZCDP(self.rho).rho <= MOST:
            raise ValueError(f"rho must be from {LEAST} to {MOST}, got {self.rho}")

    @cached_property
    def noise(self) -> DiscreteGaussian:
        """The law of the error of every count."""
        return DiscreteGaussian(math.sqrt(0.5 / self.rho))

    @property
    def claim(self) -> ZCDP:
        """Promise of the algorithm."""
        return ZCDP(self.rho)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, which is unbounded; None if its table would be too large.

        The table of a changed count covers errors up to 40 sigma plus 32 times the change, so Renyi divergences up to
        order 32 are exact. If the product of several tables is too large, it is an upper bound on a fine grid (see
        `audit.exact.compose_losses`).
        """
        return loss_of_changes([(self.noise, changes(leaf_counts(pair.x), leaf_counts(pair.y)))])
