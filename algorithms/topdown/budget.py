"""How the privacy budget is divided: over levels, areas and queries, in exact fractions."""

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
    """What is promised, and the exact part of it that every level and query spends; parts add up to 1.

    Pure privacy is kept by two-sided geometric noise, zero-concentrated privacy by discrete Gaussian noise. Of bounded
    neighbors (``replace_one``) a person changes two answers of a query by 1: the geometric noise of a share epsilon has
    ``epsilon / 2``, the discrete Gaussian noise of a share rho ``sigma^2 = 1 / rho``. Of unbounded ones the person
    changes one: ``epsilon``, and ``sigma^2 = 1 / (2 rho)``. [Abowd et al. 2022, sections 5 and 7.]
    """

    promise: Claim  # of the whole release, under its neighbor relation
    levels: Sequence[Share]  # the root's first
    queries: Sequence[Mapping[str, Share]]  # of each level

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
        """Return the noise of a query's answers in an area of this share; its scale is rounded towards more noise."""
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
        while Fraction(scale) ** 2 * exact < 1:  # a step of float64 at a time towards more noise
            scale = math.nextafter(scale, math.inf)
        return DiscreteGaussian(scale)

    def under(self, relation: Relation) -> Claim:
        """Return what the noise promises under either relation: adding a person costs half of replacing one."""
        check_relation(relation)
        factor = {"add_remove": 1, "replace_one": 2}
        budget = self.promise.budget * factor[relation] / factor[self.promise.relation]
        return type(self.promise)(budget, relation)
