"""The three counting algorithms of Flaxman (2019): geometric noise, raked geometric noise, averaged geometric noise.

The paper calls each of them epsilon-DP and compares databases that differ in one person's *location*. This holds when a
person is *added or removed*, which changes one count by one. Moving a person changes two counts: the loss may be twice
as large. So the claims below say ``add_remove``; ``claim.under("replace_one")`` is the promise for a move.

References
----------
.. [1] Flaxman, "Empirical quantification of privacy loss with examples relevant to the 2020 US Census", 2019.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from algorithms.hierarchy import Hierarchy
from algorithms.noise import DiscreteGaussian, Rng, TwoTailedGeometric, add_noise
from algorithms.noise.counts import (
    ATOMS,
    CELLS,
    Pair,
    PureBudget,
    changes,
    chunks,
    leaf_counts,
    log_likelihood_of_cells,
)
from algorithms.noise.geometric import GeometricBudget
from algorithms.noise.losses import loss_of_changes
from audit.arguments import whole_number
from audit.exact import LossDistribution, compose_losses, loss_from_logs

__all__ = ["ADPC", "GDPC", "RDPC"]

RARE = math.log(1e-40)  # a loss table of several counts omits outputs less likely than this
LARGEST = 2**61  # largest sum of noisy counts, which then fits int64


class EachCount(ABC):
    """Integer noise of one law on the count of every leaf."""

    entrywise: ClassVar[bool] = True
    threads: ClassVar[bool] = True  # runs may use threads: no run writes data that another reads

    @property
    @abstractmethod
    def noise(self) -> TwoTailedGeometric | DiscreteGaussian:
        """The law of the error of every count, or of one of its parts."""

    def exact(self, counts: ArrayLike) -> NDArray[np.int64]:
        """Return the release without noise, shape (leaves,)."""
        return leaf_counts(counts)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[Any]:
        """Release `counts`, shape (leaves,), `size` times over: shape (size, leaves)."""
        return add_noise(self.exact(counts), self.noise, size, rng, query="counts", sensitivity=1)

    def log_likelihood(self, outputs: ArrayLike, counts: ArrayLike) -> NDArray[np.float64]:
        """Return the log-probability of each of `outputs`, shape (runs, leaves), under `counts`: shape (runs,)."""
        return log_likelihood_of_cells(outputs, counts, lambda cells, exact: self.noise.logpmf(cells - exact))


@dataclass(frozen=True)
class GDPC(GeometricBudget, EachCount):
    """Geometric DP counts: two-tailed geometric noise on the count of every leaf.

    **Claim.** Pure DP with `epsilon` (nats, positive and finite) when one person is added or removed.
    **Sensitivity.** One person changes one count by 1.
    **Source.** Flaxman, 2019, section 2.2; Ghosh, Roughgarden and Sundararajan, "Universally Utility-Maximizing Privacy
    Mechanisms", 2009.
    """

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, exactly; None where its table would be too large."""
        return loss_of_changes([(self.noise, changes(leaf_counts(pair.x), leaf_counts(pair.y)))])


@dataclass(frozen=True)
class RDPC(PureBudget):
    """Raked geometric DP counts: every area measured with a share of the budget, then raked from the top down.

    The paper says both that budgets split into J+1 parts and that counts for all J' < J are released. Here J+1 levels
    are measured, the root and the J levels below it, each with ``epsilon / (J + 1)``; the deepest leaf defines J.

    **Claim.** Pure DP with `epsilon` when one person is added or removed; moving a person does not change the root, so
    its loss is ``2 J / (J + 1)`` times `epsilon`.
    **Sensitivity.** One person changes one count by 1 at each level.
    **Source.** Flaxman, 2019, section 2.2; `Hierarchy.rake` has the rule for families that add up to zero or less.

    `epsilon` is in nats, positive and finite. The output has the leaves, as in the paper's experiments, or with
    ``output="all"`` all areas, in the order of `Hierarchy.totals`.
    """

    epsilon: float
    tree: Hierarchy
    output: Literal["leaves", "all"] = "leaves"

    threads: ClassVar[bool] = True  # runs may use threads: no run writes data that another reads

    def __post_init__(self) -> None:
        if not isinstance(self.tree, Hierarchy):
            raise TypeError(f"tree must be a Hierarchy, got {type(self.tree).__name__}")
        _ = self.noise  # refuses a bad epsilon
        if self.output not in ("leaves", "all"):
            raise ValueError(f'output must be "leaves" or "all", got {self.output!r}')

    @property
    def shares(self) -> int:
        """Number of equal parts into which the budget is split: one for each level, the root included."""
        return self.tree.depth + 1

    @cached_property
    def noise(self) -> TwoTailedGeometric:
        """The law of the error of every measured count, before raking."""
        return _split(self.epsilon, self.shares)

    @property
    def areas(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The tree as arrays: parent of every area (-1: root), area of each entry of an output, area of each count."""
        released = np.arange(self.tree.n_nodes) if self.output == "all" else self.tree.leaves
        return self.tree.parent, released, self.tree.leaves

    def exact(self, counts: ArrayLike) -> NDArray[np.int64]:
        """Return the release without noise, shape (leaves,), or (areas,) for all."""
        return self._totals(counts)[self.areas[1]]

    def _totals(self, counts: ArrayLike) -> NDArray[np.int64]:
        return np.asarray(self.tree.totals(self.tree.check_counts(leaf_counts(counts))), np.int64)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[np.float64]:
        """Release `counts`, shape (leaves,), `size` times over: shape (size, leaves), or (size, areas) for all."""
        exact = self._totals(counts)
        areas, depth = self.areas[1], self.tree.depth + 1
        released = np.empty((size, areas.size))
        for rows in chunks(size, exact.size):
            # A person is in one area of each level down to the level of the person's leaf.
            noisy = add_noise(
                exact, self.noise, rows.stop - rows.start, rng, query="all areas", sensitivity=(depth, math.sqrt(depth))
            )
            np.take(self.tree.rake(noisy), areas, axis=1, out=released[rows], mode="clip")
        return released

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the loss before raking, which is post-processing; None where it would be too large."""
        x, y = (self._totals(data) for data in (pair.x, pair.y))
        return loss_of_changes([(self.noise, changes(x, y))])


@dataclass(frozen=True)
class ADPC(PureBudget, EachCount):
    """Averaged geometric DP counts: the mean of several geometric releases, each with a part of the budget.

    **Claim.** Pure DP with `epsilon` when one person is added or removed.
    **Sensitivity.** One person changes one count by 1 in each part.
    **Source.** Flaxman, 2019, section 2.2.

    `epsilon` is in nats, positive and finite; `parts` releases are averaged, at least 1: the paper has 4.
    """

    epsilon: float
    parts: int = 4

    def __post_init__(self) -> None:
        whole_number("parts", self.parts, least=1)
        _ = self.noise  # refuses a bad epsilon

    @cached_property
    def noise(self) -> TwoTailedGeometric:
        """The law of the error of one part."""
        return _split(self.epsilon, self.parts)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[Any]:
        """Release `counts`, shape (leaves,), `size` times over: shape (size, leaves), multiples of ``1 / parts``."""
        exact = self.exact(counts)
        if exact.max() > LARGEST // self.parts:
            raise ValueError(
                f"counts must be at most {LARGEST // self.parts} for {self.parts} parts, got {exact.max()}"
            )
        released = np.empty((size, exact.size))
        for rows in chunks(size, exact.size):
            runs = rows.stop - rows.start
            total: Any = 0
            for part in range(1, self.parts + 1):
                total += add_noise(exact, self.noise, runs, rng, query=f"part {part}", sensitivity=1)
            # Divide the sum of noisy counts once. Adding the exact count to a mean of noise would round depending on
            # the count, so the last bits would reveal it wherever 1 / parts is not a binary fraction.
            np.divide(total, self.parts, out=released[rows])
        return released

    def logpmf_sum(self, total: ArrayLike) -> NDArray[np.float64]:
        """Return the log-probability that the errors of all parts of a count add up to each of `total`, shape (m,).

        The generating function of two negative binomials gives ``C q^s`` times a polynomial in ``s = |total|`` whose
        terms are all positive, so nothing cancels in the tails.
        """
        s = np.abs(np.asarray(total, np.float64))
        top = self.parts - 1
        step = self.noise.epsilon
        log_z, log_rest = -2 * step, math.log(-math.expm1(-2 * step))
        terms = []
        for i in range(top + 1):
            k = np.arange(top - i + 1)
            inner = (
                2 * (gammaln(top - i + 1) - gammaln(top - i - k + 1))
                + gammaln(i + 1)
                - gammaln(i + k + 1)
                - gammaln(k + 1)
            )
            constant = _log_binomial(top, i) + (i - 2 * top - 1) * log_rest + logsumexp(inner + k * log_z)
            with np.errstate(divide="ignore"):
                terms.append(np.where(s >= i, _log_binomial(np.maximum(s, i), i), -np.inf) + constant)
        leading: NDArray[np.float64] = 2 * self.parts * math.log(-math.expm1(-step)) - step * s
        return np.asarray(leading + logsumexp(np.array(terms), axis=0))

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, or None if its support is too large for a table.

        In the tails the loss approaches `epsilon` per person without reaching it, so the supremum is set from theory.
        If several counts change, the table omits outputs less likely than 1e-40 on both databases; if the product of
        tables is too large, it is an upper bound on a fine grid (see `audit.exact.compose_losses`).
        """
        shifts = changes(leaf_counts(pair.x), leaf_counts(pair.y))
        reach = math.ceil(740 / self.noise.epsilon)
        if shifts and (len(shifts) > CELLS or 2 * reach + max(shifts) * self.parts > ATOMS):
            return None
        tables = {
            shift: self._loss_of_count(shift, reach, RARE if len(shifts) > 1 else -np.inf) for shift in set(shifts)
        }
        return compose_losses(tables[shift] for shift in shifts)

    def _loss_of_count(self, shift: int, reach: int, rare: float) -> LossDistribution:
        """Loss of one count that differs by `shift`, over errors up to `reach` with log-probability `rare` or more."""
        moved = shift * self.parts
        log_law = self.logpmf_sum(np.arange(reach + moved + 1))
        s = np.arange(-reach, reach + moved + 1)
        log_p, log_q = log_law[np.abs(s)], log_law[np.abs(s - moved)]  # on y every error is `moved` higher
        likely = np.maximum(log_p, log_q) >= rare
        bound = shift * self.epsilon
        return loss_from_logs(log_p[likely], log_q[likely], supremum=bound, infimum=-bound)

    def log_likelihood(self, outputs: ArrayLike, counts: ArrayLike) -> NDArray[np.float64]:
        """Return log-probabilities of `outputs`, shape (runs, leaves): -inf if not whole numbers divided by `parts`."""
        return log_likelihood_of_cells(outputs, counts, self._log_law_of_cells)

    def _log_law_of_cells(self, cells: NDArray[np.float64], exact: NDArray[np.int64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.rint(cells * self.parts)
            possible = np.isfinite(total) & (total / self.parts == cells)
        s = np.abs(np.where(possible, total, 0) - exact * self.parts)
        # Errors repeat, so a table of their law is shorter than their list, unless noise is very large.
        most = s.max(initial=0)
        log_law = self.logpmf_sum(np.arange(most + 1))[s.astype(np.int64)] if most < s.size else self.logpmf_sum(s)
        return np.where(possible, log_law, np.where(np.isnan(cells), np.nan, -np.inf))


def _split(epsilon: float, parts: int) -> TwoTailedGeometric:
    """Noise for one of `parts` equal parts of the budget; the whole budget is checked first, so errors name it."""
    return TwoTailedGeometric(TwoTailedGeometric(epsilon).epsilon / parts)


def _log_binomial(n: NDArray[np.float64] | float, k: int) -> NDArray[np.float64]:
    """Log of the binomial coefficient, factor by factor: a difference of log-gammas of a large `n` would cancel."""
    above = np.asarray(n, np.float64)
    return np.asarray(sum((np.log(above - j) for j in range(k)), np.zeros_like(above)) - gammaln(k + 1))
