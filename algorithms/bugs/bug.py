"""What a known bug is: a mechanism with a promise that it does not keep, and a pair of databases that shows it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import Rng, TwoTailedGeometric, add_noise
from algorithms.noise.counts import ATOMS, Pair, PureBudget, changes, leaf_counts
from algorithms.noise.geometric import geometric_loss
from audit.arguments import whole_number
from audit.claims import Relation
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["Bug", "CountsBug", "KnownBug", "TableBug"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
OutputLaw = tuple[NDArray[Any], Floats]  # outputs and their log-probabilities, shape (m,) each
REACH = 50  # in units of 1 / epsilon: noise beyond it has probability below 2e-22
NO_LOSS = LossDistribution(np.zeros(1), np.zeros(1))


def int_field(default: int, *, least: int) -> int:
    """Declare a parameter of a bug that is a whole number, at least so large."""
    parameter: int = field(default=default, metadata={"least": least})
    return parameter


@dataclass(frozen=True)
class Bug(PureBudget):
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
    """A known bug that adds geometric noise for another budget, or to other counts, than its promise needs."""

    @property
    def sensitivity(self) -> int:
        """What one person is taken to change."""
        return 1

    @property
    def spent(self) -> float:
        """Budget in nats that each unit of the counts really spends."""
        return self.epsilon / self.sensitivity

    def exact(self, data: ArrayLike) -> Integers:
        """Return what a release would be without noise: counts, shape (cells,), or a total, shape ()."""
        return leaf_counts(data)

    def __call__(self, data: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release the counts of `data` `size` times over: shape (size, cells), or (size,) for a total."""
        law = TwoTailedGeometric(self.spent)
        return add_noise(self.exact(data), law, size, rng, query="counts", sensitivity=self.sensitivity)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        return loss_of_counts(self.spent, self.exact(pair.x), self.exact(pair.y))


class TableBug(Bug, ABC):
    """A known bug of a table of counts that the noise of `GDPC` should protect, cell by cell."""

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[Any]:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells), or (size,) for a total."""
        return self._release(leaf_counts(counts), size, rng)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, or None where it has no table of a reasonable size."""
        x, y = leaf_counts(pair.x), leaf_counts(pair.y)
        if x.shape != y.shape:
            raise ValueError(f"the two databases must have the same cells, got {x.size} and {y.size}")
        return self._loss(x, y)

    @abstractmethod
    def _release(self, exact: Integers, size: int, rng: Rng) -> NDArray[Any]: ...

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        return loss_of_cells(x, y, self._law_of_cell, self.epsilon)

    def _law_of_cell(self, count: int, near: Integers) -> OutputLaw:
        """Return what a cell of that count releases; `near` are the counts close to it, or to the other database's."""
        return near, self.noise.logpmf(near - count)


@dataclass(frozen=True, eq=False)
class KnownBug:
    """A known bug, ready for an audit. `exact_loss` takes it as a pair, since it has an `x` and a `y`.

    Attributes
    ----------
    mechanism : callable
        The mechanism, with the promise that it does not keep.
    x, y, relation : ndarray, ndarray, {"add_remove", "replace_one"}
        Two neighboring databases that show the bug, read-only, and how they differ.
    loss : float
        Pure-DP loss of this pair in nats, in the order that loses more.
    size : int
        Runs, selection included, with which an audit at confidence ``1 - 1e-6`` should find the bug, if it can.
    event, source : str
        What to look for, in words, and where the bug comes from.
    found : {"counts", "witness", "refused", "replay"}
        How it is found: by counting runs; by the exact law only, as no event of thresholds shows it; not by an audit,
        which refuses runs that are not independent; or by a replay, as bugs of whole pipelines are.
    replayed : str
        Kind of the violation that a replay shows; empty if none, as noise is drawn apart from what it is added to.
    """

    mechanism: Any
    x: Any
    y: Any
    _: KW_ONLY
    relation: Relation = "add_remove"
    loss: float = math.inf
    size: int
    event: str
    found: Literal["counts", "witness", "refused", "replay"] = "counts"
    replayed: str = ""
    source: str

    def __post_init__(self) -> None:
        for name in ("x", "y"):
            data = np.array(getattr(self, name))
            data.flags.writeable = False
            object.__setattr__(self, name, data)


def without_end(law: LossDistribution, wider_x: bool, wider_y: bool) -> LossDistribution:
    """Return a loss without limits in the tails, where the noise on `x` is wider, or that on `y`."""
    return replace(law, supremum=math.inf if wider_x else None, infimum=-math.inf if wider_y else None)


def table_reach(epsilon: float) -> int | None:
    """Return how far a table of noise of `epsilon` a step must reach; None where it would have too many entries."""
    reach = math.ceil(REACH / epsilon)
    return reach if 2 * reach < ATOMS else None


def loss_of_counts(epsilon: float, x: ArrayLike, y: ArrayLike) -> LossDistribution | None:
    """Return the loss of counts with two-tailed geometric noise, shape (cells,) or (); None if its table is too big."""
    return geometric_loss(epsilon, changes(np.asarray(x), np.asarray(y)))


def loss_of_outputs(x: OutputLaw, y: OutputLaw) -> LossDistribution:
    """Return the loss of a release from its law on either database, each a table of distinct outputs."""
    outputs = np.unique(np.concatenate([x[0], y[0]]))
    logs = np.full((2, outputs.size), -np.inf)
    for total, (own, log_p) in zip(logs, (x, y), strict=True):
        total[np.searchsorted(outputs, own)] = log_p
    return loss_from_logs(*logs)


def loss_of_one_output(log_p: float, log_q: float) -> LossDistribution:
    """Return the loss where only one output can be told from all others, of these log-probabilities on `x` and `y`."""
    with np.errstate(divide="ignore"):
        other = np.log(-np.expm1([log_p, log_q]))
    return loss_from_logs(np.array([log_p, other[0]]), np.array([log_q, other[1]]))


def loss_of_cells(
    x: Integers, y: Integers, law: Callable[[int, Integers], OutputLaw], epsilon: float
) -> LossDistribution | None:
    """Return the loss of two tables of independent cells, shape (cells,); None where a table of it would be too large.

    The tails of ``law(count, near)`` fall by at least `epsilon` a step, in nats.
    """
    reach = table_reach(epsilon)
    total: LossDistribution = NO_LOSS
    for pair in zip(x[x != y].tolist(), y[x != y].tolist(), strict=True):
        if reach is None or max(pair) - min(pair) + 2 * reach > ATOMS:
            return None
        near = np.arange(min(pair) - reach, max(pair) + reach + 1)
        cell = loss_of_outputs(*(law(count, near) for count in pair))
        if total.loss.size * cell.loss.size > ATOMS:
            return None
        total = total.compose(cell)
    return total
