"""What a known bug is: a mechanism with a promise that it does not keep, and a pair of databases that shows it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bugs.output_laws import Databases, loss_of_cells, loss_of_shift, two_tables
from algorithms.flaxman import GDPC
from algorithms.noise import Rng, TwoTailedGeometric
from algorithms.noise.counts import Pair, leaf_counts
from audit.arguments import whole_number
from audit.claims import PureDP, Relation
from audit.exact import LossDistribution

__all__ = ["Bug", "CountsBug", "KnownBug", "TableBug", "TotalBug", "Unbounded", "noisy_total", "whole"]

Found = Literal["counts", "witness", "refused"]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def whole(default: int, *, least: int) -> int:
    """Declare a parameter of a bug that is a whole number, at least so large."""
    parameter: int = field(default=default, metadata={"least": least})
    return parameter


class Unbounded:
    """What keeps no promise at all."""

    @property
    def true_loss(self) -> float:
        """Loss in nats of the worst pair of neighbors: infinite, unless a bug says otherwise."""
        return math.inf


@dataclass(frozen=True)
class Bug(Unbounded):
    """What the known bugs share: `epsilon`, the budget in nats as promised, the noise that it should buy, a promise."""

    epsilon: float

    def __post_init__(self) -> None:
        _ = self.noise  # refuses a bad epsilon
        for parameter in fields(self):
            if "least" in parameter.metadata:
                whole_number(parameter.name, getattr(self, parameter.name), least=parameter.metadata["least"])

    @cached_property
    def noise(self) -> TwoTailedGeometric:
        """The law of the error that the promise asks for, per unit of sensitivity."""
        return TwoTailedGeometric(self.epsilon)

    @property
    def claim(self) -> PureDP:
        """What the algorithm promises."""
        return PureDP(self.epsilon)


class CountsBug(Bug):
    """A known bug that is `GDPC` with another budget, or on other counts, than its promise needs."""

    @property
    def spent(self) -> float:
        """Budget in nats that each count really spends."""
        return self.epsilon

    @property
    def true_loss(self) -> float:
        """Loss in nats of the worst pair of neighbors."""
        return self.spent

    def measured(self, counts: ArrayLike) -> Integers:
        """Return the counts to which noise is added, shape (cells,)."""
        return leaf_counts(counts)

    def exact(self, counts: ArrayLike) -> Integers:
        """Return what a release would be without noise, shape (cells,)."""
        return self.measured(counts)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        return GDPC(self.spent)(self.measured(counts), size, rng)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        return GDPC(self.spent).exact_loss(Databases(self.measured(pair.x), self.measured(pair.y)))


class TableBug(Bug):
    """A known bug of a table of counts with the noise of `GDPC`: sound, but for the methods that a bug overrides."""

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[Any]:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells), or (size,) for a total."""
        return self._release(leaf_counts(counts), size, rng)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, or None where it has no table of a reasonable size."""
        return self._loss(*two_tables(pair))

    def _release(self, exact: Integers, size: int, rng: Rng) -> NDArray[Any]:
        return self._edit(GDPC(self.epsilon)(exact, size, rng), exact)

    def _edit(self, noisy: Integers, exact: Integers) -> NDArray[Any]:
        """Publish noisy counts, shape (size, cells), with the true ones at hand."""
        return noisy

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        return loss_of_cells(x, y, self._log_law, self.epsilon)

    def _log_law(self, outputs: Integers, count: int) -> Floats:
        """Log-probability of outputs, shape (m,), of a cell with that count."""
        return self.noise.logpmf(outputs - count)


class TotalBug(Bug, ABC):
    """A known bug of one noisy total: what is added up is not what its noise is made for."""

    @property
    def spent(self) -> float:
        """Budget in nats that each unit of the total really spends."""
        return self.epsilon

    @abstractmethod
    def total(self, data: ArrayLike) -> int:
        """Return the total to which noise is added."""

    def __call__(self, data: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release the total of `data`, `size` times over: shape (size,)."""
        return noisy_total(self.total(data), self.spent, size, rng)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        return loss_of_shift(self.spent, self.total(pair.y) - self.total(pair.x))


class _Mechanism(Protocol):
    @property
    def claim(self) -> PureDP: ...
    def __call__(self, data: Any, size: int, rng: np.random.Generator, /) -> NDArray[Any]: ...
    def exact_loss(self, pair: Pair, /) -> LossDistribution | None: ...


@dataclass(frozen=True, eq=False)
class KnownBug:
    """A known bug, ready for an audit. It has an `x` and a `y`, and so is a pair that `exact_loss` understands.

    Attributes
    ----------
    mechanism : Mechanism
        With the promise that it does not keep.
    x, y : ndarray
        Two neighboring databases that show the bug, read-only.
    relation : {"add_remove", "replace_one"}
        How they differ.
    loss : float
        Pure-DP loss of this pair in nats, in the worse order; infinite unless it is given.
    size : int
        Runs, selection included, with which an audit at confidence ``1 - 1e-6`` should find it, where it can.
    event : str
        What to look for, in words.
    found : {"counts", "witness", "refused"}
        By counting runs; only by the exact law, as no event of thresholds shows it; or refused, as its runs are not
        independent.
    source : str
        Where it comes from.
    """

    mechanism: _Mechanism
    x: Any
    y: Any
    _: KW_ONLY
    relation: Relation = "add_remove"
    loss: float = math.inf
    size: int
    event: str
    found: Found = "counts"
    source: str

    def __post_init__(self) -> None:
        for name in ("x", "y"):
            data = np.array(getattr(self, name))
            data.flags.writeable = False
            object.__setattr__(self, name, data)


def noisy_total(exact: int, epsilon: float, size: int, rng: Rng) -> Integers:
    """Add two-tailed geometric noise of `epsilon` a step to a whole number, `size` times: shape (size,)."""
    released = TwoTailedGeometric(epsilon).sample(size, rng)
    released += exact
    return released
