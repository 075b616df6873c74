"""Counts with discrete Gaussian noise: what zero-concentrated privacy is promised with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import DiscreteGaussian, Rng, add_noise
from algorithms.noise.counts import Pair, changes, leaf_counts, log_likelihood_of_cells
from algorithms.noise.discrete_gaussian import losses_of_shifts
from audit.claims import ZCDP
from audit.exact import LossDistribution, compose_losses

__all__ = ["GaussianCounts"]

LEAST, MOST = 1e-24, 1e23  # of rho: the noise has its limits


@dataclass(frozen=True)
class GaussianCounts:
    """Discrete Gaussian counts: discrete Gaussian noise of ``sigma**2 = 1 / (2 rho)`` on the count of every leaf.

    **Claim.** Zero-concentrated DP with `rho` when one person is added or removed; moving a person changes two counts
    and costs twice that, half of what `ZCDP.under` allows for.
    **Sensitivity.** One person changes one count by 1.

    Attributes
    ----------
    rho : float
        Privacy budget in nats, from 1e-24 to 1e23.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020, theorem 4.

    Examples
    --------
    >>> release = GaussianCounts(0.5)([10, 0, 3], 2, np.random.default_rng(7))
    >>> release.shape, release.dtype.name
    ((2, 3), 'int64')
    """

    entrywise: ClassVar[bool] = True
    threads: ClassVar[bool] = True  # no run writes into what another reads

    rho: float

    def __post_init__(self) -> None:
        if not LEAST <= ZCDP(self.rho).rho <= MOST:
            raise ValueError(f"rho must be from {LEAST} to {MOST}, got {self.rho}")

    @cached_property
    def noise(self) -> DiscreteGaussian:
        """The law of the error of every count."""
        return DiscreteGaussian(math.sqrt(0.5 / self.rho))

    @property
    def claim(self) -> ZCDP:
        """What the algorithm promises."""
        return ZCDP(self.rho)

    def exact(self, counts: ArrayLike) -> NDArray[np.int64]:
        """Return what a release would be without noise, shape (leaves,)."""
        return leaf_counts(counts)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[np.int64]:
        """Release `counts`, shape (leaves,), `size` times over: shape (size, leaves)."""
        return add_noise(self.exact(counts), self.noise, size, rng, query="counts", sensitivity=1)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, which has no upper bound; None where it would be too large.

        The table of a changed count reaches 40 sigma and 32 times the change beyond: Renyi divergences up to order 32
        are exact. Where the product of several tables is too large, it is an upper bound on a fine grid, as
        `audit.exact.compose_losses` says.
        """
        parts = losses_of_shifts(self.noise, changes(leaf_counts(pair.x), leaf_counts(pair.y)))
        return None if parts is None else compose_losses(parts)

    def log_likelihood(self, outputs: ArrayLike, counts: ArrayLike) -> NDArray[np.float64]:
        """Return the log-probability of each of `outputs`, shape (runs, leaves), under `counts`: shape (runs,).

        Minus infinity where an output is impossible.
        """
        return log_likelihood_of_cells(outputs, counts, lambda given, exact: self.noise.logpmf(given - exact))
