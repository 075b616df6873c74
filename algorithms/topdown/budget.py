"""How the privacy budget is divided: over levels, areas and queries, in exact fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from algorithms.hierarchy import Hierarchy
from algorithms.noise import DiscreteGaussian, TwoTailedGeometric
from algorithms.tables.shares import Share, exact_share
from audit.claims import ZCDP, PureDP, Relation, check_relation

__all__ = ["Budget", "Claim", "Law", "check_paths", "node_shares"]

Law = TwoTailedGeometric | DiscreteGaussian
Claim = PureDP | ZCDP


@dataclass(frozen=True)
class Budget:
    """What is promised, and which part of it every level and query spends.

    Attributes
    ----------
    promise : PureDP or ZCDP
        The whole release, under its neighbor relation: pure privacy is kept by two-sided geometric noise,
        zero-concentrated privacy by discrete Gaussian noise.
    levels : sequence of Share
        Share of each level, the root's first; they add up to 1.
    queries : sequence of mapping of str to Share
        For each level the share of each query; they add up to 1.

    Raises
    ------
    TypeError
        If a share is not exact, or the promise of another kind.
    ValueError
        If the promise is not positive and finite, or shares do not add up to 1.

    Notes
    -----
    Of bounded neighbors (``replace_one``) a person changes two answers of a query by 1: the geometric noise of a share
    epsilon has ``epsilon / 2``, the discrete Gaussian noise of a share rho ``sigma^2 = 1 / rho``. Of unbounded ones the
    person changes one: ``epsilon``, and ``sigma^2 = 1 / (2 rho)``.

    References
    ----------
    .. [1] Abowd et al., "The 2020 Census Disclosure Avoidance System TopDown Algorithm", 2022, sections 5 and 7.

    Examples
    --------
    >>> budget = Budget(PureDP(1.0, "replace_one"), ["1/2", "1/2"], [{"total": 1}, {"total": "1/4", "sex": "3/4"}])
    >>> round(budget.law(Fraction(1, 2), "sex", 1).epsilon, 6)
    0.1875
    """

    promise: Claim
    levels: Sequence[Share]
    queries: Sequence[Mapping[str, Share]]

    def __post_init__(self) -> None:
        if not isinstance(self.promise, PureDP | ZCDP):
            raise TypeError(f"promise must be PureDP or ZCDP, got {type(self.promise).__name__}")
        if not 0 < self.promise.budget < math.inf:
            raise ValueError(f"{self.promise.parameter} must be positive and finite, got {self.promise.budget}")
        levels = tuple(exact_share(f"level {j}", share) for j, share in enumerate(self.levels))
        if sum(levels) != 1:
            raise ValueError(f"shares of the levels must add up to 1, got {sum(levels)}")
        if len(self.queries) != len(levels):
            raise ValueError(f"queries must be given for each of {len(levels)} levels, got {len(self.queries)}")
        for j, given in enumerate(self.queries):
            if not isinstance(given, Mapping):
                raise TypeError(f"queries of level {j} must be a mapping of names to shares, got {given!r}")
        queries = tuple(
            {name: exact_share(f"{name} at level {j}", share) for name, share in given.items()}
            for j, given in enumerate(self.queries)
        )
        for j, given in enumerate(queries):
            if sum(given.values()) != 1:
                raise ValueError(f"shares of the queries at level {j} must add up to 1, got {sum(given.values())}")
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "queries", queries)

    def measured(self, level: int) -> Iterator[tuple[str, Fraction]]:
        """Yield the queries of a level that have a share, and their shares."""
        for name, share in self.queries[level].items():
            part = exact_share(name, share)
            if part:
                yield name, part

    def law(self, node_share: Fraction, query: str, level: int) -> Law:
        """Return the noise of every answer of a query in an area that has this share.

        Its scale is rounded towards more noise, so that rounding never spends more than the share.
        """
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
        """Return what the noise promises under either relation.

        The noise is known, so the way from bounded to unbounded neighbors exists here: one person added or removed
        changes one answer of each query, which costs half of what changing two does. It says nothing of invariants,
        which most additions break.
        """
        check_relation(relation)
        factor = {"add_remove": 1, "replace_one": 2}
        budget = self.promise.budget * factor[relation] / factor[self.promise.relation]
        return type(self.promise)(budget, relation)


def node_shares(tree: Hierarchy, levels: Sequence[Fraction], *, bypass: bool = False) -> tuple[Fraction, ...]:
    """Return the share of the budget of every area, in the order of the nodes.

    A leaf above the finest level takes the shares of the levels that it has not, so that every path from the root to a
    leaf spends the total. With `bypass`, an area with a single part takes the part's share too: both have the same
    table, which is then measured once, better. (Production gives both shares to the part; the table and the variance
    are the same.)

    Examples
    --------
    >>> tree = Hierarchy.from_parents([-1, 0, 0, 1])
    >>> [str(share) for share in node_shares(tree, [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)])]
    ['1/2', '1/4', '1/2', '1/4']
    >>> [str(share) for share in node_shares(tree, [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)], bypass=True)]
    ['1/2', '1/2', '1/2', '0']
    """
    if len(levels) != tree.depth + 1:
        raise ValueError(
            f"levels must have one share for each of {tree.depth + 1} levels of the tree, got {len(levels)}"
        )
    shares = [levels[j] for j in range(tree.depth + 1) for _ in range(*tree.level(j).indices(tree.n_nodes))]
    leaf = np.zeros(tree.n_nodes, np.bool_)
    leaf[tree.leaves] = True
    for j in range(tree.depth):
        rest = sum(levels[j:], Fraction(0))
        for node in np.flatnonzero(leaf[tree.level(j)]) + tree.offsets[j]:
            shares[node] = rest
    if bypass:
        starts = tree.starts
        for node in range(tree.n_nodes - 1, -1, -1):
            if starts[node + 1] - starts[node] == 1:
                shares[node] += shares[starts[node]]
                shares[starts[node]] = Fraction(0)
    return tuple(check_paths(tree, shares))


def check_paths(tree: Hierarchy, shares: Sequence[Fraction]) -> Sequence[Fraction]:
    """Return the shares of all areas, or say which path does not spend the whole budget."""
    if len(shares) != tree.n_nodes:
        raise ValueError(f"there must be one share for each of {tree.n_nodes} areas, got {len(shares)}")
    spent = list(shares)
    for node in range(1, tree.n_nodes):
        spent[node] += spent[tree.parent[node]]
    for place in tree.leaves:
        if spent[place] != 1:
            raise ValueError(f"every path must spend the whole budget, and that to {tree.labels[place]} {spent[place]}")
    return shares
