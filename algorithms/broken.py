"""Known bugs, each with its source and the loss that it really has: what an auditor must find."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.flaxman import GDPC, RDPC, Pair
from algorithms.hierarchy import Hierarchy
from algorithms.noise import Rng, TwoTailedGeometric
from audit.claims import PureDP
from audit.exact import LossDistribution

__all__ = ["ForgottenLevelRDPC", "HalfNoiseGDPC", "NotebookGDPC"]


@dataclass(frozen=True)
class NotebookGDPC:
    """GDPC as published: `epsilon`, here below 1, itself taken as the success probability of the geometric draws.

    **Claim.** Pure DP with `epsilon` when one person is added or removed.
    **Bug.** The probability that gives the law of the paper is ``1 - exp(-epsilon)``. With ``epsilon`` in its place the
    loss is ``-log(1 - epsilon)``: 0.1054 for 0.1, 0.693 for 0.5, 2.303 for 0.9. From 1 on there is no such law.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, between 0 and 1.

    References
    ----------
    .. [1] Replication notebook of Flaxman, "Empirical quantification of privacy loss with examples relevant to the 2020
       US Census", 2019, run of 9 September 2019; section 2.2 of the paper has the right law.

    Examples
    --------
    >>> round(NotebookGDPC(0.5).true_loss, 3)
    0.693
    """

    epsilon: float

    def __post_init__(self) -> None:
        if not 0 < TwoTailedGeometric(self.epsilon).epsilon < 1:
            raise ValueError(f"epsilon must be below 1 to be a success probability, got {self.epsilon}")

    @property
    def claim(self) -> PureDP:
        """What the algorithm promises."""
        return PureDP(self.epsilon)

    @property
    def true_loss(self) -> float:
        """Loss in nats when one person is added or removed."""
        return -math.log1p(-self.epsilon)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[np.int64]:
        """Release `counts`, shape (leaves,), `size` times over: shape (size, leaves)."""
        return GDPC(self.true_loss)(counts, size, rng)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        return GDPC(self.true_loss).exact_loss(pair)


@dataclass(frozen=True)
class HalfNoiseGDPC:
    """GDPC with the noise for twice the budget: the factor 2 of a bounded neighbor relation on the wrong side.

    **Claim.** Pure DP with `epsilon` when one person is added or removed.
    **Bug.** Half the noise: the loss is ``2 * epsilon``.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.

    References
    ----------
    .. [1] Ding, Wang, Wang, Zhang and Kifer, "Detecting Violations of Differential Privacy", 2018: scale errors are the
       commonest bugs of released mechanisms.
    """

    epsilon: float

    def __post_init__(self) -> None:
        TwoTailedGeometric(self.epsilon)  # refuses a bad epsilon

    @property
    def claim(self) -> PureDP:
        """What the algorithm promises."""
        return PureDP(self.epsilon)

    @property
    def true_loss(self) -> float:
        """Loss in nats when one person is added or removed."""
        return 2 * self.epsilon

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[np.int64]:
        """Release `counts`, shape (leaves,), `size` times over: shape (size, leaves)."""
        return GDPC(self.true_loss)(counts, size, rng)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        return GDPC(self.true_loss).exact_loss(pair)


@dataclass(frozen=True)
class ForgottenLevelRDPC(RDPC):
    """RDPC whose budget is split over J levels, although J + 1 are measured: the root is forgotten.

    **Claim.** Pure DP with `epsilon` when one person is added or removed.
    **Bug.** Every level spends ``epsilon / J``, so all J + 1 together lose ``(J + 1) / J`` times `epsilon`. One leaf
    alone shows only ``epsilon / J`` and looks innocent: the event must be joint.

    References
    ----------
    .. [1] Flaxman, 2019, section 2.2 speaks of counts "for all J' < J" beside a 1/(J+1) portion: reading J levels there
       is this bug.
    """

    def __post_init__(self) -> None:
        if isinstance(self.tree, Hierarchy) and self.tree.depth < 1:
            raise ValueError("a level can only be forgotten in a tree that has one below the root, got depth 0")
        super().__post_init__()

    @property
    def shares(self) -> int:
        """Parts into which the budget is split: one too few."""
        return self.tree.depth

    @property
    def true_loss(self) -> float:
        """Loss in nats of all areas together when one person is added or removed."""
        return self.epsilon * (self.tree.depth + 1) / self.tree.depth
