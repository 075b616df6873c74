"""PHSafe as a mechanism, which releases the noisy counts of many runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms import noise
from algorithms.noise import DiscreteGaussian, Rng, TwoTailedGeometric
from algorithms.noise.losses import loss_of_changes
from algorithms.phsafe.budget import CLAIMS, Config, noise_law
from algorithms.phsafe.neighbors.pairs import HouseholdPair
from algorithms.phsafe.tables import QUERIES
from algorithms.phsafe.tabulation.tabulate import Tabulation, tabulation
from audit.claims import ZCDP, PureDP
from audit.exact import LossDistribution
from audit.neighbors import NeighborPair

__all__ = ["PHSafe", "joined_to", "tabulated"]


@dataclass(frozen=True)
class PHSafe:
    """PHSafe as a mechanism on tabulated households: noise on every basis cell of the queries and levels of `only`.

    **Claim.** The sum of the budgets, when one person is added to or removed from the households (theorems 1 and 2).
    **Sensitivity.** 2 tau + 2 for counts of persons, 2 for counts of households.
    """

    config: Config
    only: Sequence[tuple[str, str]] | None = None

    threads: ClassVar[bool] = True  # runs may use threads: no run writes data that another reads
    calls_per_side: ClassVar[int] = 32  # preparing a call takes as long as many runs

    def __post_init__(self) -> None:
        if self.only is not None and not self.only:
            raise ValueError("only must name at least one query and level, got none")
        if unfunded := [query for query in self.only or () if query not in self.queries]:
            raise ValueError(f"every query and level must have a budget, and {' '.join(unfunded[0])} has none")

    @cached_property
    def queries(self) -> tuple[tuple[str, str], ...]:
        """Queries and levels, in the order of the output."""
        funded = [(table, level) for table, level, _ in self.config.budgets()]
        return tuple(query for query in funded if self.only is None or query in self.only)

    @cached_property
    def laws(self) -> Mapping[tuple[str, str], DiscreteGaussian | TwoTailedGeometric]:
        """The law of the noise of every query and level."""
        return {query: noise_law(self.config, *query) for query in self.queries}

    @property
    def claim(self) -> ZCDP | PureDP:
        """Promise of the algorithm."""
        total = math.fsum(self.config.budget(*query) for query in self.queries)
        return CLAIMS[self.config.privacy_definition](total)

    def exact(self, data: Tabulation) -> NDArray[np.int64]:
        """Return the release without noise, in the order of the output, shape (cells,)."""
        if missing := [query for query in self.queries if query not in data.counts]:
            raise ValueError(f"every query and level must be tabulated, and {' '.join(missing[0])} is not")
        return np.concatenate([data.counts[query].ravel() for query in self.queries])

    def components(self) -> list[PHSafe]:
        """Return a mechanism with one law of noise for each query and level; estimates examine them one by one."""
        return [replace(self, only=[query]) for query in self.queries]

    def measured(self, data: Tabulation, rng: Rng) -> Tabulation:
        """Measure every query once: independent noise on every count."""
        self.exact(data)  # refuses missing counts before noise is drawn
        return Tabulation(data.states, {at: self._noisy(data.counts[at], at, None, rng) for at in self.queries})

    def _noisy(self, exact: NDArray[np.int64], query: tuple[str, str], size: int | None, rng: Rng) -> NDArray[np.int64]:
        """Return exact counts of a query and level plus noise, shape (size, *exact.shape), or one run if None."""
        return noise.add_noise(
            exact, self.laws[query], size, rng, query=" ".join(query), sensitivity=self.config.stability(query[0])
        )

    def __call__(self, data: Tabulation, size: int, rng: Rng) -> NDArray[np.int64]:
        """Release the counts `size` times over: shape (size, cells)."""
        exact = self.exact(data)
        released = np.empty((size, exact.size), np.int64)
        for query, cells in self._cells(data):
            released[:, cells] = self._noisy(exact[cells], query, size, rng)
        return released

    def spent(self, pair: NeighborPair) -> float:
        """Return the rho that a pair really spends on Gaussian noise: half the squared change in units of sigma."""
        change, parts = self._change(pair), []
        for query, cells in self._cells(pair.x):
            law = self.laws[query]
            if not isinstance(law, DiscreteGaussian):
                raise ValueError(f"rho is spent by Gaussian noise only, got {self.config.privacy_definition}")
            parts.append(float(np.sum(change[cells].astype(np.float64) ** 2)) / (2 * law.scale**2))
        return math.fsum(parts)

    def exact_loss(self, pair: NeighborPair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`; None where its tables are too large."""
        change = self._change(pair)
        return loss_of_changes((self.laws[query], change[cells]) for query, cells in self._cells(pair.x))

    def log_likelihood(self, outputs: ArrayLike, data: Tabulation) -> NDArray[np.float64]:
        """Return the log-probability, shape (runs,), of outputs (runs, cells); minus infinity if impossible."""
        rows, exact = np.asarray(outputs), self.exact(data)
        if rows.ndim != 2 or rows.shape[1] != exact.size:
            raise ValueError(f"outputs must have one column for each of {exact.size} cells, got shape {rows.shape}")
        return sum(
            (self.laws[query].logpmf(rows[:, cells] - exact[cells]).sum(axis=1) for query, cells in self._cells(data)),
            start=np.zeros(len(rows)),
        )

    def _cells(self, data: Tabulation) -> Iterator[tuple[tuple[str, str], slice]]:
        start = 0
        for query in self.queries:
            stop = start + data.counts[query].size
            yield query, slice(start, stop)
            start = stop

    def _change(self, pair: NeighborPair) -> NDArray[np.int64]:
        if pair.x.states != pair.y.states:
            raise ValueError(f"the two databases must have the same states, got {pair.x.states} and {pair.y.states}")
        return self.exact(pair.y) - self.exact(pair.x)


def tabulated(pair: HouseholdPair, config: Config, only: Sequence[tuple[str, str]] | None = None) -> NeighborPair:
    """Count both databases of a pair at the queries and levels of `only`, so that it can be audited."""
    queries = QUERIES if only is None else {table: QUERIES[table] for table, _ in only}
    x, y = (tabulation(*data, queries, config=config, validation="none") for data in (pair.x, pair.y))
    return NeighborPair.declared(x, y, pair.relation, label=f"{pair.model}: {pair.label}")


def joined_to(own: Tabulation, pair: NeighborPair) -> NeighborPair:
    """Return the pair of `tabulated` with the same households, `own`, added to both databases.

    Every count is a sum over households, so their counts can be added without a new tabulation. If a ``MAFID`` is in
    both the pair and `own`, the pair's stands for an unused one under which truncation keeps the same persons.
    """
    x, y = (_sum(own, side) for side in (pair.x, pair.y))
    return NeighborPair.declared(x, y, pair.relation, label=f"{pair.label}, in households added to the data")


def _sum(own: Tabulation, more: Tabulation) -> Tabulation:
    counts = {query: array.copy() for query, array in own.counts.items()}
    places = [own.states.index(state) for state in more.states]
    for query, array in more.counts.items():
        counts[query][places if query[1].startswith("state") else [0]] += array
    return Tabulation(own.states, counts)
