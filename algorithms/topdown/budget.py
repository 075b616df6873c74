"""The division of the privacy budget over levels, areas and queries, in exact fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from algorithms.noise import DiscreteGaussian, TwoTailedGeometric
from algorithms.release.ledger import Share, exact_share, exact_shares
from audit.claims import ZCDP, PureDP, Relation, check_relation

__all__ = ["Budget", "Claim", "Law"]

Law = TwoTailedGeometric | DiscreteGaussian
Claim = PureDP | ZCDP


@dataclass(frozen=True)
class Budget:
    """The promise, and its exact shares of every level and query, which add up to 1.

    Pure DP uses two-sided geometric noise, zero-concentrated DP discrete Gaussian noise. Under ``replace_one`` (bounded
    neighbors) a person changes two answers of a query by 1: a share epsilon has geometric noise of ``epsilon / 2``, a
    share rho has discrete Gaussian noise with ``sigma^2 = 1 / rho``. Under ``add_remove`` a person changes one answer:
    geometric noise of ``epsilon``, and ``sigma^2 = 1 / (2 rho)``. [Abowd et al. 2022, sections 5 and 7.]
    """

    promise: Claim  # promise of the whole release, with its neighbor relation
    levels: Sequence[Share]  # share of each level, the root first
    queries: Sequence[Mapping[str, Share]]  # for each level, shares of its queries

    def __post_init__(self) -> None:
        if not isinstance(self.promise, PureDP | ZCDP):
            raise TypeError(f"promise must be PureDP or ZCDP, got {type(self.promise).__name__}")
        if not 0 < self.promise.budget < math.inf:
            raise ValueError(f"{self.promise.parameter} must be positive and finite, got {self.promise.budget}")
        levels = exact_shares("the levels", {f"level {j}": share for j, share in enumerate(self.levels)})
        if len(self.queries) != len(levels):
            raise ValueError(f"queries must be given for each of {len(levels)} levels, got {len(self.queries)}")
        for j, given in enumerate(self.queries):
            if not isinstance(given, Mapping):
                raise TypeError(f"queries of level {j} must be a mapping of names to shares, got {given!r}")
        queries = tuple(exact_shares("the queries", given, f" at level {j}") for j, given in enumerate(self.queries))
        object.__setattr__(self, "levels", tuple(levels.values()))
        object.__setattr__(self, "queries", queries)

    def measured(self, level: int) -> Iterator[tuple[str, Fraction]]:
        """Yield the queries of a level that have a share, and their shares."""
        for name, share in self.queries[level].items():
            part = exact_share(name, share)
            if part:
                yield name, part

    def law(self, node_share: Fraction, query: str, level: int) -> Law:
        """Return the noise of a query's answers in an area with share `node_share`; scales are rounded up."""
        share = node_share * dict(self.measured(level))[query]
        exact = Fraction(self.promise.budget) * share
        try:
            return self._law(exact)
        except (ArithmeticError, ValueError):
            raise ValueError(
                f"{self.promise.parameter} {self.promise.budget} leaves {query} at level {level} {float(exact):.3g}, "
                "and there is no noise for that: its scale must be from 1e-12 to 1e12"
            ) from None

    def _law(self, exact: Fraction) -> Law:
        bounded = self.promise.relation == "replace_one"
        if isinstance(self.promise, PureDP):
            return TwoTailedGeometric(math.nextafter(float(exact / (2 if bounded else 1)), 0))
        exact *= 1 if bounded else 2
        scale = math.sqrt(1 / float(exact))
        while Fraction(scale) ** 2 * exact < 1:  # one float64 step at a time to more noise
            scale = math.nextafter(scale, math.inf)
        return DiscreteGaussian(scale)

    def under(self, relation: Relation) -> Claim:
        """Return the promise of the noise under a neighbor relation: half the budget for adding as for replacing."""
        check_relation(relation)
        factor = {"add_remove": 1, "replace_one": 2}
        budget = self.promise.budget * factor[relation] / factor[self.promise.relation]
        return type(self.promise)(budget, relation)
