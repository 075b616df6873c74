"""Base classes of known bugs: mechanisms that break their promise, each with a pair of databases that shows it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.noise import Rng, TwoTailedGeometric, add_noise
from algorithms.noise.counts import Pair, changes, leaf_counts
from algorithms.noise.geometric import GeometricBudget, geometric_loss
from audit.claims import Relation
from audit.exact import LossDistribution

__all__ = ["CountsBug", "KnownBug", "TableBug", "check_levels"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KnownBug:
    """A known bug, ready for an audit.

    Attributes
    ----------
    x, y : ndarray
        Two neighboring databases that show the bug, read-only.
    event : str
        What to look for, in words.
    size : int
        Runs, selection included, with which an audit at confidence ``1 - 1e-6`` should find the bug, if it can.
    replayed : str
        Kind of the violation that a replay shows; empty if it shows none, because noise is drawn without `add_noise`.
    loss : float
        Pure-DP loss of this pair in nats: the larger one of the two orders.
    found : {"counts", "witness", "refused", "replay"}
        Method that finds the bug: counting runs; impossible outputs only, if no threshold event shows it; none, if an
        audit refuses runs that are not independent; or a replay, for bugs of whole pipelines.
    """

    mechanism: Any
    x: Any
    y: Any
    event: str
    size: int
    replayed: str = ""
    loss: float = math.inf
    _: KW_ONLY
    found: Literal["counts", "witness", "refused", "replay"] = "counts"

    def __post_init__(self) -> None:
        for name in ("x", "y"):
            data = np.array(getattr(self, name))
            data.flags.writeable = False
            object.__setattr__(self, name, data)

    @property
    def relation(self) -> Relation:
        """Neighbor relation of the databases: that of the promise."""
        relation: Relation = self.mechanism.claim.relation
        return relation


class CountsBug(GeometricBudget):
    """A known bug that adds geometric noise for another budget, or to other counts, than its promise needs."""

    sensitivity: ClassVar[int] = 1  # assumed change of the counts by one person
    excess: ClassVar[float] = 1.0  # budget spent, as a multiple of the promised budget

    @property
    def spent(self) -> float:
        """Budget in nats that each unit of the counts really spends."""
        return self.excess * self.epsilon / self.sensitivity

    def exact(self, data: ArrayLike) -> Integers:
        """Return the release without noise: counts, shape (cells,), or a total, shape ()."""
        return leaf_counts(data)

    def __call__(self, data: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release the counts of `data` `size` times over: shape (size, cells), or (size,) for a total."""
        law = TwoTailedGeometric(self.spent)
        return add_noise(self.exact(data), law, size, rng, query="counts", sensitivity=self.sensitivity)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        return geometric_loss(self.spent, changes(self.exact(pair.x), self.exact(pair.y)))


class TableBug(GeometricBudget, ABC):
    """A known bug of a table of counts that the noise of `GDPC` should protect, cell by cell."""

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[Any]:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells), or (size,) for a total."""
        return self._release(leaf_counts(counts), size, rng)

    def support_masses(self, pair: Pair) -> tuple[float, float]:
        """Return lower bounds on the probability of outputs that are possible only on `x`, and only on `y`."""
        x, y = leaf_counts(pair.x), leaf_counts(pair.y)
        if x.shape != y.shape:
            raise ValueError(f"the two databases must have the same cells, got {x.size} and {y.size}")
        return float(self._alone(x, y)), float(self._alone(y, x))

    @abstractmethod
    def _release(self, exact: Integers, size: int, rng: Rng) -> NDArray[Any]: ...

    def _alone(self, here: Integers, other: Integers) -> float:
        """Return a lower bound, 0 if unknown, on the probability of outputs that the other database cannot give."""
        return 0.0


def check_levels(tree: Hierarchy) -> None:
    """Refuse a tree without a level below the root: no budget would be shared."""
    if not isinstance(tree, Hierarchy):
        raise TypeError(f"tree must be a Hierarchy, got {type(tree).__name__}")
    if tree.depth < 1:
        raise ValueError("tree must have a level below the root, got depth 0")
