"""Known bugs of the noise and of the budget: too little noise, or a budget that is divided wrongly or spent twice.

**Claim.** All of them promise pure DP with `epsilon` when one person is added or removed, unless they say otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bugs.bug import CountsBug, KnownBug
from algorithms.flaxman import GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from algorithms.noise import Rng
from algorithms.noise.counts import leaf_counts
from audit.claims import PureDP

__all__ = [
    "KNOWN",
    "ForgottenLevelRDPC",
    "HalfNoiseGDPC",
    "MovedPersonGDPC",
    "NotebookGDPC",
    "PublishedTwice",
    "SquareRootShares",
]

Integers = NDArray[np.int64]
KNOWN: dict[str, KnownBug] = {}  # by name


@dataclass(frozen=True)
class NotebookGDPC(CountsBug):
    """GDPC as published: `epsilon`, here below 1, itself taken as the success probability of the geometric draws.

    **Bug.** The probability that gives the law of the paper is ``1 - exp(-epsilon)``.
    **True loss.** ``-log(1 - epsilon)``: 0.1054 for 0.1, 0.693 for 0.5, 2.303 for 0.9. From 1 on there is no such law.
    **Source.** Replication notebook of Flaxman, "Empirical quantification of privacy loss with examples relevant to the
    2020 US Census", 2019, run of 9 September 2019; section 2.2 of the paper has the right law.

    Examples
    --------
    >>> round(NotebookGDPC(0.5).true_loss, 3)
    0.693
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon >= 1:
            raise ValueError(f"epsilon must be below 1 to be a success probability, got {self.epsilon}")

    @property
    def spent(self) -> float:
        """Budget in nats that each count really spends."""
        return -math.log1p(-self.epsilon)


KNOWN["notebook"] = KnownBug(
    NotebookGDPC(0.9),
    [50, 3],
    [51, 3],
    loss=-math.log(0.1),
    size=1_000,
    event="the first count is 50 or less",
    source="Flaxman 2019, replication notebook",
)


@dataclass(frozen=True)
class HalfNoiseGDPC(CountsBug):
    """GDPC with the noise for twice the budget: the factor 2 of a bounded neighbor relation on the wrong side.

    **Bug.** Half the noise.
    **True loss.** ``2 * epsilon``.
    **Source.** Ding, Wang, Wang, Zhang and Kifer, "Detecting Violations of Differential Privacy", 2018: scale errors
    are the commonest bugs of released mechanisms.
    """

    @property
    def spent(self) -> float:
        """Budget in nats that each count really spends."""
        return 2 * self.epsilon


KNOWN["half-noise"] = KnownBug(
    HalfNoiseGDPC(1.0),
    [50, 3],
    [51, 3],
    loss=2.0,
    size=2_000,
    event="the first count is 50 or less",
    source="Ding et al. 2018",
)


@dataclass(frozen=True)
class MovedPersonGDPC(CountsBug):
    """GDPC as it is, with a promise about people who move: the factor 2 of a bounded neighbor relation is missing.

    **Claim.** Pure DP with `epsilon` when one person is replaced, say by moving to another area.
    **Bug.** A move changes two counts by 1; the noise is that for one.
    **True loss.** ``2 * epsilon``. One count alone shows only `epsilon`: the event must be joint.
    **Source.** Flaxman, 2019, section 2.2 compares databases in which one person's location differs, and calls this
    algorithm epsilon-DP.

    Examples
    --------
    >>> bug = MovedPersonGDPC(0.5)
    >>> print(bug.claim, bug.true_loss)
    epsilon 0.5 (replace one) 1.0
    """

    @property
    def claim(self) -> PureDP:
        """What the algorithm promises."""
        return PureDP(self.epsilon, "replace_one")

    @property
    def true_loss(self) -> float:
        """Loss in nats when one person moves."""
        return 2 * self.epsilon


KNOWN["moved-person"] = KnownBug(
    MovedPersonGDPC(1.0),
    [50, 3],
    [49, 4],
    relation="replace_one",
    loss=2.0,
    size=4_000,
    event="the first count is 50 or more and the second 3 or less",
    source="Flaxman 2019, section 2.2",
)


@dataclass(frozen=True)
class PublishedTwice(CountsBug):
    """A table published as preliminary figures and again as final ones, each time with the whole budget.

    **Bug.** Either table keeps the promise; whoever has read both has seen the budget spent twice.
    **True loss.** ``2 * epsilon``.
    **Source.** Our own. The rule that it breaks: Dwork and Roth, "The Algorithmic Foundations of Differential Privacy",
    2014, theorem 3.16 (composition).

    Examples
    --------
    >>> PublishedTwice(0.5)([10, 0, 3], 4, np.random.default_rng(0)).shape
    (4, 2, 3)
    """

    @property
    def true_loss(self) -> float:
        """Loss in nats when one person is added or removed."""
        return 2 * self.epsilon

    def measured(self, counts: ArrayLike) -> Integers:
        """Return the counts to which noise is added, both tables side by side."""
        return np.tile(leaf_counts(counts), 2)

    def exact(self, counts: ArrayLike) -> Integers:
        """Return what a release would be without noise, shape (2, cells)."""
        return self.measured(counts).reshape(2, -1)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (cells,), `size` times over: shape (size, 2, cells)."""
        return np.stack([GDPC(self.epsilon)(counts, size, rng) for _ in range(2)], axis=1)


KNOWN["published-twice"] = KnownBug(
    PublishedTwice(1.0),
    [50, 3],
    [51, 3],
    loss=2.0,
    size=4_000,
    event="the first count is 50 or less in both tables",
    source="our own",
)


@dataclass(frozen=True)
class SquareRootShares(CountsBug):
    """Noisy counts of every area of every level, with a noise that grows as the square root of the number of levels.

    **Bug.** Gaussian noise of J + 1 levels grows with ``sqrt(J + 1)``, since rho adds up. Here an epsilon adds up:
    geometric noise must grow with ``J + 1``.
    **True loss.** ``sqrt(J + 1) * epsilon``, shown only by all levels together.
    **Source.** Our own. The two rules that it mixes up: Dwork and Roth, 2014, theorem 3.16; Bun and Steinke,
    "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds", 2016, lemma 1.7.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    tree : Hierarchy
        The areas, with at least one level below the root.

    Examples
    --------
    >>> bug = SquareRootShares(0.5, Hierarchy.regular(3, 3))
    >>> bug.true_loss, bug([1] * 27, 4, np.random.default_rng(0)).shape
    (1.0, (4, 40))
    """

    tree: Hierarchy

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.tree, Hierarchy):
            raise TypeError(f"tree must be a Hierarchy, got {type(self.tree).__name__}")
        if self.tree.depth < 1:
            raise ValueError("levels can only share a budget in a tree that has one below the root, got depth 0")

    @property
    def spent(self) -> float:
        """Budget in nats that each level really spends."""
        return self.epsilon / math.sqrt(self.tree.depth + 1)

    @property
    def true_loss(self) -> float:
        """Loss in nats of all areas together when one person is added or removed."""
        return self.epsilon * math.sqrt(self.tree.depth + 1)

    def measured(self, counts: ArrayLike) -> Integers:
        """Return the counts of all areas, from those of the leaves."""
        return self.tree.totals(self.tree.check_counts(counts)).astype(np.int64, copy=False)


KNOWN["square-root-shares"] = KnownBug(
    SquareRootShares(1.0, Hierarchy.regular(2, 3)),
    [6, 3, 2, 0, 5, 4, 1, 1],
    [7, 3, 2, 0, 5, 4, 1, 1],
    loss=2.0,
    size=20_000,
    event="the counts of all areas of the person are high, or all are low",
    source="our own",
)


@dataclass(frozen=True)
class ForgottenLevelRDPC(RDPC):
    """RDPC whose budget is split over J levels, although J + 1 are measured: the root is forgotten.

    **Bug.** Every level spends ``epsilon / J``.
    **True loss.** All J + 1 levels together lose ``(J + 1) / J`` times `epsilon`. One leaf alone shows only ``epsilon /
    J`` and looks innocent: the event must be joint.
    **Source.** Flaxman, 2019, section 2.2 speaks of counts "for all J' < J" beside a 1/(J+1) portion: reading J levels
    there is this bug.
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


KNOWN["forgotten-level"] = KnownBug(
    ForgottenLevelRDPC(1.0, Hierarchy.regular(2, 1), output="all"),
    [50, 30],
    [51, 30],
    loss=2.0,
    size=20_000,
    event="the total is high and so is the share of the first area",
    source="Flaxman 2019, section 2.2",
)
