"""Known bugs of the noise and of the budget: too little noise, or a budget that is divided wrongly or spent twice.

**Claim.** All of them promise pure DP with `epsilon` when one person is added or removed, unless they say otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from algorithms.bugs.bug import CountsBug, Integers, check_levels
from algorithms.flaxman import RDPC
from algorithms.hierarchy import Hierarchy
from algorithms.noise import Rng
from algorithms.noise.counts import leaf_counts
from audit.claims import PureDP

__all__ = [
    *("ForgottenLevelRDPC", "HalfNoiseGDPC", "MovedPersonGDPC", "NotebookGDPC", "PublishedTwice", "SquareRootShares")
]


class NotebookGDPC(CountsBug):
    """GDPC as published: it takes `epsilon`, here below 1, as the success probability of the geometric draws.

    **Bug.** The notebook uses `epsilon`; the correct probability is ``1 - exp(-epsilon)`` (section 2.2 of the paper).
    **True loss.** ``-log(1 - epsilon)``: 0.1054 for 0.1, 0.693 for 0.5, 2.303 for 0.9. `epsilon` must be below 1.
    """

    below: ClassVar[float] = 1.0  # epsilon must be below this

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon >= self.below:
            raise ValueError(f"epsilon must be below 1 to be a success probability, got {self.epsilon}")

    @property
    def spent(self) -> float:
        """Budget in nats that each count really spends."""
        return -math.log1p(-self.epsilon)


class HalfNoiseGDPC(CountsBug):
    """GDPC with the noise for twice the budget: the factor 2 of a bounded neighbor relation on the wrong side.

    **Bug.** Half the noise. **True loss.** ``2 * epsilon``. **Source.** Ding et al., 2018.
    """

    excess: ClassVar[float] = 2.0


class MovedPersonGDPC(CountsBug):
    """GDPC as it is, with a promise about people who move: the factor 2 of a bounded neighbor relation is missing.

    **Claim.** Pure DP with `epsilon` when one person is replaced, as in the paper, by moving to another area.
    **Bug.** A move changes two counts. **True loss.** ``2 * epsilon``; one count alone shows half of it.
    """

    @property
    def claim(self) -> PureDP:
        """Promise of the algorithm."""
        return PureDP(self.epsilon, "replace_one")


class PublishedTwice(CountsBug):
    """A table published as preliminary figures and again as final ones, each time with the whole budget.

    **Bug.** Only each table by itself keeps the promise. **True loss.** ``2 * epsilon`` for a reader of both.
    """

    def exact(self, data: ArrayLike) -> Integers:
        """Return the release without noise, shape (2, cells)."""
        return np.stack([leaf_counts(data)] * 2)

    def __call__(self, data: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release the counts `size` times over, one table after the other: shape (size, 2, cells)."""
        once = CountsBug(self.epsilon)
        return np.stack([once(data, size, rng) for _ in range(2)], axis=1)


@dataclass(frozen=True)
class SquareRootShares(CountsBug):
    """Noisy counts of every area of every level, with a noise that grows as the square root of the number of levels.

    **Bug.** That is right for Gaussian noise (Bun and Steinke 2016, lemma 1.7); geometric noise must grow as ``J + 1``.
    **True loss.** ``sqrt(J + 1) * epsilon``, shown only by all levels together.
    """

    tree: Hierarchy

    def __post_init__(self) -> None:
        super().__post_init__()
        check_levels(self.tree)

    @property
    def spent(self) -> float:
        """Budget in nats that each level really spends."""
        return self.epsilon / math.sqrt(self.tree.depth + 1)

    def exact(self, data: ArrayLike) -> Integers:
        """Return the counts of all areas, from those of the leaves."""
        return self.tree.totals(self.tree.check_counts(data)).astype(np.int64, copy=False)


class ForgottenLevelRDPC(RDPC):
    """RDPC whose budget is split over J levels, although J + 1 are measured: the root is forgotten.

    **Bug.** Every level spends ``epsilon / J``: one can read the paper's counts "for all J' < J" in this way.
    **True loss.** ``(J + 1) / J`` times `epsilon`, all levels together. One leaf alone shows ``epsilon / J``.
    """

    def __post_init__(self) -> None:
        check_levels(self.tree)
        super().__post_init__()

    @property
    def shares(self) -> int:
        """Parts into which the budget is split: one too few."""
        return self.tree.depth
