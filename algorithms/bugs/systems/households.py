"""Known bugs of household tables, versions of PHSafe: each keeps the promise on most neighbors and breaks it on some.

**Claim.** The sum of the budgets, when one person is added or removed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import DiscreteGaussian, Rng, TwoTailedGeometric
from algorithms.noise.counts import DISJOINT
from algorithms.phsafe.measurement import PHSafe
from algorithms.phsafe.tables import QUERIES
from algorithms.phsafe.tabulation.tabulate import Tabulation
from audit.exact import LossDistribution
from audit.neighbors import NeighborPair

__all__ = ["SharedNoise", "TwoTauStability", "UnitCountedTwice"]

Law = DiscreteGaussian | TwoTailedGeometric


class TwoTauStability(PHSafe):
    """PHSafe with noise for 2 tau changed rows of a query about persons, where the promise needs 2 tau + 2.

    **Bug.** Two rows are forgotten: the person's row that leaves a household, and a row that enters by truncation.
    **True loss.** In the paper's model at most 2 tau rows change, and the promise holds. In the model of the production
    code, units in which the person does not live may change too: a query spends ``((2 tau + 1)^2 + 1) / (2 tau)^2``
    times its budget, 1.105 times for tau 10 and 1.181 times for tau 6.
    """

    @cached_property
    def laws(self) -> Mapping[tuple[str, str], Law]:
        """The law of the noise of every query and level."""
        laws = dict(super().laws)
        for table, level in self.queries:
            if QUERIES[table].truncated:
                share = 2 * self.config.tau[table] / self.config.stability(table)
                law = laws[table, level]
                if isinstance(law, DiscreteGaussian):
                    laws[table, level] = DiscreteGaussian(law.scale * share)
                else:
                    laws[table, level] = TwoTailedGeometric(law.epsilon / share)
        return laws


class UnitCountedTwice(PHSafe):
    """PHSafe on places that list every unit twice: the join counts each household two times in the denominators.

    **Bug.** The code does not check that keys are unique. (Counts of persons are correct here, although `PHSafe` gives
    0 for repeated units.) **True loss.** Four times that of `PHSafe` on the denominators. In the paper's model these
    spend up to half of their budgets: the loss is twice the promise.
    """

    def exact(self, data: Tabulation) -> NDArray[np.int64]:
        """Return the counts before noise, in the order of the output, shape (cells,)."""
        counts = super().exact(data)
        for (table, _), cells in self._cells(data):
            if not QUERIES[table].truncated:
                counts[cells] *= 2
        return counts


class SharedNoise(PHSafe):
    """PHSafe that draws one vector of noise for all levels of a table whose noise has the same scale.

    **Bug.** The difference of two such levels has no noise. **True loss.** Infinite if a person changes the difference.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.config.privacy_definition != "zcdp":
            raise ValueError(f"shared noise is discrete Gaussian noise only, got {self.config.privacy_definition}")

    def __call__(self, data: Tabulation, size: int, rng: Rng) -> NDArray[np.int64]:
        """Release the counts `size` times over: shape (size, cells)."""
        exact = self.exact(data)
        released = np.empty((size, exact.size), np.int64)
        for law, levels in self._shared(data):
            noise = law.sample((size, max(cells.stop - cells.start for cells in levels)), rng)
            for cells in levels:
                released[:, cells] = noise[:, : cells.stop - cells.start]
        released += exact
        return released

    def spent(self, pair: NeighborPair) -> float:
        """Return the rho that a pair spends: infinite unless levels with shared noise change equally."""
        change, spent = self._change(pair), 0.0
        for law, levels in self._shared(pair.x):
            longest = max((change[cells] for cells in levels), key=len)
            if any(np.any(change[cells] != longest[: cells.stop - cells.start]) for cells in levels):
                return math.inf
            spent += float(np.sum(longest.astype(np.float64) ** 2)) / (2 * law.scale**2)
        return spent

    def exact_loss(self, pair: NeighborPair) -> LossDistribution | None:
        """Return the law of the loss: infinite if levels with shared noise change differently, otherwise None."""
        return DISJOINT if math.isinf(self.spent(pair)) else None

    def log_likelihood(self, outputs: ArrayLike, data: Tabulation) -> NDArray[np.float64]:
        """Return log-probabilities of `outputs`, shape (runs, cells): -inf if errors of shared noise differ."""
        errors = np.asarray(outputs) - self.exact(data)
        total = np.zeros(len(errors))
        for law, levels in self._shared(data):
            longest = max((errors[:, cells] for cells in levels), key=lambda part: part.shape[1])
            total += law.logpmf(longest).sum(axis=1)
            for cells in levels:
                agree = np.all(errors[:, cells] == longest[:, : cells.stop - cells.start], axis=1)
                total[~agree] = -math.inf
        return total

    def _shared(self, data: Tabulation) -> Iterator[tuple[DiscreteGaussian, list[slice]]]:
        groups: dict[tuple[str, float], list[slice]] = {}
        for query, cells in self._cells(data):
            scale = math.sqrt(self.config.stability(query[0]) ** 2 / (2 * self.config.budget(*query)))
            groups.setdefault((query[0], scale), []).append(cells)
        for (_, scale), levels in groups.items():
            yield DiscreteGaussian(scale), levels
