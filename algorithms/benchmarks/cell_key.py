"""Cell key perturbation, by which statistical offices protect tables of counts: bounded noise without an epsilon.

Every record has a permanent random key. The key of a cell is the sum of its records' keys, modulo their range, so that
the same records get the same noise in every table. A public table gives the noise for each count and key. Of all laws
with a given largest change, mean 0, a given variance and no count below 0, it has the largest entropy. [Fraser and
Wooton, "A Proposed Method for Confidentialising Tabular Output to Protect Against Differencing", 2005 (Australian
Bureau of Statistics). Marley and Leaver, "A Method for Confidentialising User-Defined Tables: Statistical Properties
and a Risk-Utility Analysis", 2011, and Giessing, "Computational Issues in the Design of Transition Probabilities and
Disclosure Risk Estimation for Additive Noise", 2016: the largest entropy.]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax

from algorithms.benchmarks.benchmark import Floats, QueryMechanism, check_pair
from algorithms.noise.counts import Pair, leaf_counts
from audit.arguments import real_number, whole_number
from audit.claims import PureDP
from audit.exact import LossDistribution, compose_losses, loss_from_logs

__all__ = ["CellKey"]

LARGEST = 15  # largest allowed change, in people: up to this limit the solver finds every table


@dataclass(frozen=True)
class CellKey(QueryMechanism):
    """Cell key perturbation of a table of counts: noise of at most a few people, none on empty cells.

    **Claim.** Offices promise no epsilon. The claim here, for comparison, is that of geometric noise of the same
    variance. **Bug.** The noise is at most `most`, and an empty cell stays empty. So some outputs are possible on only
    one of two neighboring databases: the loss is infinite. **Source.** Fraser and Wooton, 2005; the table is that of
    the R package ptable with ``mono=FALSE`` and ``js=0``. Each run draws new keys; an office draws them once.
    """

    entrywise: ClassVar[bool] = True
    blocks: ClassVar[bool] = False

    most: int = 2  # largest change of a count, in people, from 1 to 15; D in ptable
    variance: float = 1.0  # variance of noise on counts above 0, in squared people, up to 0.95 `most`; V in ptable

    def __post_init__(self) -> None:
        if whole_number("most", self.most, least=1) > LARGEST:
            raise ValueError(f"most must be at most {LARGEST}, got {self.most}")
        limit = 0.95 * self.most  # a count of 1 loses 1 at most: with mean 0 its variance stays below `most`
        if not 0.001 <= real_number("variance", self.variance) <= limit:
            raise ValueError(f"variance must be from 0.001 to 0.95 of most, {limit:g}, got {self.variance}")

    @property
    def claim(self) -> PureDP:
        """Promise of two-tailed geometric noise of the same variance."""
        return PureDP(math.acosh(1 + 1 / self.variance))

    @cached_property
    def table(self) -> Floats:
        """Log probability of each change, -most to most (columns), for counts 0 to most (rows); the last also above."""
        from scipy import optimize  # slow to import

        table = np.full((self.most + 1, 2 * self.most + 1), -np.inf)
        table[0, self.most] = 0
        for count in range(1, self.most + 1):
            change = np.arange(-count, self.most + 1.0)
            moments = np.stack([change, change**2 - self.variance])  # the solver gives both mean 0

            def means(tilts: Floats, moments: Floats = moments) -> tuple[Floats, Floats]:
                p = np.exp(log_softmax(tilts @ moments))
                mean = moments @ p
                return mean, moments * p @ moments.T - np.outer(mean, mean)

            tilts = optimize.root(means, np.zeros(2), jac=True, tol=1e-14).x
            table[count, self.most - count :] = log_softmax(tilts @ moments)
        return table

    def _answers(self, queries: ArrayLike) -> NDArray[np.int64]:
        return leaf_counts(queries)

    def _run(self, answers: NDArray[np.int64], runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        # A sum of independent uniform keys, modulo their range, is uniform for any number of records.
        keys = rng.random((runs, answers.size))
        released = np.empty(keys.shape, np.int64)
        for cell, row in enumerate(np.minimum(answers, self.most)):
            shares = np.exp(self.table[row]).cumsum()
            released[:, cell] = answers[cell] - self.most + shares[:-1].searchsorted(keys[:, cell], side="right")
        return released

    def _log_law(self, outputs: NDArray[Any], answers: NDArray[np.int64]) -> Floats:
        return np.asarray(self._log_cells(outputs, answers).sum(axis=1))

    def exact_loss(self, pair: Pair) -> LossDistribution:
        """Return the law of the privacy loss of `pair`, exact up to rounding."""
        x, y = (leaf_counts(counts) for counts in check_pair(pair))
        parts = []
        for counts in zip(x[x != y], y[x != y], strict=True):
            possible = np.union1d(*(count + np.arange(-self.most, self.most + 1) for count in counts))
            on_x, on_y = (self._log_cells(possible[:, None], np.array([count]))[:, 0] for count in counts)
            parts.append(loss_from_logs(on_x, on_y))
        return compose_losses(parts)

    def _log_cells(self, outputs: NDArray[Any], counts: NDArray[np.int64]) -> Floats:
        change = outputs - counts
        possible = (np.abs(change) <= self.most) & (change == np.rint(change))
        column = np.where(possible, change, 0).astype(np.int64) + self.most
        return np.where(possible, self.table[np.minimum(counts, self.most), column], -np.inf)
