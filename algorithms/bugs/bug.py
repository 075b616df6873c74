"""What a known bug is: a mechanism with a promise that it does not keep, and a pair of databases that shows it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.flaxman import GDPC
from algorithms.noise import Rng, TwoTailedGeometric
from algorithms.noise.counts import ATOMS, Databases, Pair, PureBudget, leaf_counts
from audit.arguments import whole_number
from audit.claims import Relation
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["Bug", "CountsBug", "KnownBug", "TableBug", "TotalBug", "Unbounded"]

Found = Literal["counts", "witness", "refused"]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
REACH = 50  # in units of 1 / epsilon: noise beyond it has probability below 2e-22
NO_LOSS = LossDistribution(np.zeros(1), np.zeros(1))


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
class Bug(Unbounded, PureBudget):
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


@dataclass(frozen=True, eq=False)
class KnownBug:
    """A known bug, ready for an audit. `exact_loss` takes it as a pair, since it has an `x` and a `y`.

    Attributes
    ----------
    mechanism : callable
        The mechanism, with the promise that it does not keep.
    x, y : ndarray
        Two neighboring databases that show the bug, read-only.
    relation : {"add_remove", "replace_one"}
        How they differ.
    loss : float
        Pure-DP loss of this pair in nats, in the order that loses more; by default infinite.
    size : int
        Runs, selection included, with which an audit at confidence ``1 - 1e-6`` should find the bug, if it can.
    event : str
        What to look for, in words.
    found : {"counts", "witness", "refused"}
        How an audit finds it: by counting runs; or only by the exact law, as no event of thresholds shows it; or not at
        all: it refuses the runs, as they are not independent.
    source : str
        Where the bug comes from.
    """

    mechanism: Any
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


def two_tables(pair: Pair) -> tuple[Integers, Integers]:
    """Return the counts of both databases, shape (cells,) each, or say what is wrong with them."""
    x, y = leaf_counts(pair.x), leaf_counts(pair.y)
    if x.shape != y.shape:
        raise ValueError(f"the two databases must have the same cells, got {x.size} and {y.size}")
    return x, y


def table_reach(epsilon: float) -> int | None:
    """Return how far a table of noise of `epsilon` a step must reach; None where it would have too many entries."""
    reach = math.ceil(REACH / epsilon)
    return reach if 2 * reach < ATOMS else None


def loss_of_shift(epsilon: float, shift: float) -> LossDistribution | None:
    """Return the loss of a whole number with two-tailed geometric noise, which differs by `shift`, of either sign."""
    return GDPC(epsilon).exact_loss(Databases(np.zeros(1), np.abs(np.atleast_1d(shift))))


def loss_of_one_output(log_p: float, log_q: float) -> LossDistribution:
    """Return the loss where only one output can be told from all others, of these log-probabilities on `x` and `y`."""
    with np.errstate(divide="ignore"):
        other = np.log(-np.expm1([log_p, log_q]))
    return loss_from_logs(np.array([log_p, other[0]]), np.array([log_q, other[1]]))


def loss_of_cells(
    x: Integers, y: Integers, law: Callable[[Integers, int], Floats], epsilon: float
) -> LossDistribution | None:
    """Return the loss of two tables of independent cells, shape (cells,); None where a table of it would be too large.

    ``law(outputs, count)`` is the log-probability of each output, shape (m,), of a cell of that count; its tails fall
    by at least `epsilon` a step, in nats.
    """
    reach = table_reach(epsilon)
    total: LossDistribution = NO_LOSS
    for first, second in zip(x[x != y].tolist(), y[x != y].tolist(), strict=True):
        if reach is None or abs(first - second) + 2 * reach > ATOMS:
            return None
        outputs = np.arange(min(first, second) - reach, max(first, second) + reach + 1)
        cell = loss_from_logs(law(outputs, first), law(outputs, second))
        if total.loss.size * cell.loss.size > ATOMS:
            return None
        total = total.compose(cell)
    return total
