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

    **Bug.** The person's own row is forgotten: one that leaves a household and one that enters it by truncation.
    **True loss.** In the paper's model none: there at most 2 tau rows change. Where units may change that the person
    does not live in, as the production code declares, ``((2 tau + 1)^2 + 1) / (2 tau)^2`` of the budget of a query:
    1.105 of it for tau 10, 1.181 for tau 6.
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

    **Bug.** No key is checked. (Counts of persons are as they should be, not 0, as of repeated units.)
    **True loss.** Four times that of `PHSafe` on the denominators, which spend up to half of their budgets in the
    paper's model: twice the promise.
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

    **Bug.** Two such levels differ without noise. **True loss.** Infinite where a person changes them differently.
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
        """Return the rho that a pair spends: infinite, unless the shared levels change alike."""
        change, spent = self._change(pair), 0.0
        for law, levels in self._shared(pair.x):
            longest = max((change[cells] for cells in levels), key=len)
            if any(np.any(change[cells] != longest[: cells.stop - cells.start]) for cells in levels):
                return math.inf
            spent += float(np.sum(longest.astype(np.float64) ** 2)) / (2 * law.scale**2)
        return spent

    def exact_loss(self, pair: NeighborPair) -> LossDistribution | None:
        """Return the law of the loss: infinite where shared levels change differently, and otherwise None."""
        return DISJOINT if math.isinf(self.spent(pair)) else None

    def log_likelihood(self, outputs: ArrayLike, data: Tabulation) -> NDArray[np.float64]:
        """Return log-probabilities of `outputs`, shape (runs, cells): -inf where shared noise does not agree."""
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
