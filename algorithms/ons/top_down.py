"""Method 2 of the pilot: noise at every level; each level is adjusted to the one above and rounded to whole people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.noise import Rng
from algorithms.ons.independent import IndependentNoise
from algorithms.ons.laws import CountNoise, Law
from algorithms.ons.tables import PILOT_LEVELS, PILOT_TABLES, Counts, Domain, Table
from algorithms.release.ledger import Share
from algorithms.schema import Schema
from audit.claims import ApproxDP, PureDP

__all__ = ["FLOOR", "PILOT_SHARES", "OnsTopDown", "adjusted", "default_levels", "maximum_remainder"]

Floats = NDArray[np.float64]
Stage = Literal["adjusted", "rounded", "tables"]

FLOOR = 0.001
"""Replacement for noisy values of 0 and below."""
TIE = 1e-9  # remainders closer than this count as equal: rounding changes the last bits of equal values

PILOT_SHARES: tuple[Share, ...] = ("0.01", "0.05", "0.165", "0.775")
"""Shares of the total, and of all demographic variables in the nation, by region, by clinical commissioning group."""


def default_levels(domain: Domain) -> tuple[tuple[Table, ...], tuple[Share, ...]]:
    """Return levels for areas of any depth, and shares of the budget by the pilot's rule (its section 5)."""
    levels = (Table(0, "total"), *(Table(level, "detailed") for level in range(domain.tree.depth + 1)))
    if domain.tree.depth == 2:
        return levels, PILOT_SHARES
    roots = [Fraction(round(1000 * math.sqrt(math.prod(domain.shape(level))))) for level in levels[1:]]
    rest = [Fraction(99, 100) * root / sum(roots) for root in roots]
    return levels, (Fraction(1, 100), *rest)


@dataclass(frozen=True, eq=False)
class OnsTopDown:
    """The pilot's top-down method: synthetic people whose tables add up.

    Every level is a table that divides the previous level further, by areas or by attributes. Each level gets noise,
    and values of 0 or below become 0.001. Each family is scaled to the count above it and rounded to whole numbers by
    the maximum remainder method, with ties broken at random (the pilot states no rule); then the next level is
    adjusted. The last level is the histogram of the people.

    **Claim, sensitivity.** Those of `IndependentNoise` with the levels as tables, which makes the measurements.
    **Source.** Office for National Statistics, pilot on mortality data, section 4, method 2.

    Attributes
    ----------
    tree, schema, epsilon, shares, law, delta, perturb_zeros
        As in `IndependentNoise`, with levels in place of tables. Default: the pilot's shares.
    levels : sequence of Table
        From the total to the detailed histogram of the finest areas. Default: the pilot's four.
    released : {"rounded", "adjusted", "tables"}
        The output: the people, the last level before rounding, or the fourteen tables counted from the people.
    """

    tree: Hierarchy
    schema: Schema
    epsilon: float
    levels: Sequence[Table] = PILOT_LEVELS
    shares: Sequence[Share] = PILOT_SHARES
    law: Law = "laplace"
    perturb_zeros: bool = True
    delta: float = 0.0
    released: Stage = "rounded"

    threads: ClassVar[bool] = True  # runs may use threads: no run writes data that another reads

    def __post_init__(self) -> None:
        levels = tuple(self.levels)
        if not levels or levels[0] != Table(0, "total"):
            raise ValueError(f"the first level must be the total of level 0, got {levels[0] if levels else 'none'}")
        if self.released not in get_args(Stage):
            raise ValueError(f"stage must be one of measurements, {', '.join(get_args(Stage))}, got {self.released!r}")
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "shares", self.measurements.shares)
        if levels[-1].level != self.tree.depth or self.domain.query(levels[-1]).size != self.schema.cells:
            raise ValueError(f"the last level must be the detailed query of level {self.tree.depth}, got {levels[-1]}")
        _ = self._members

    @property
    def __name__(self) -> str:
        return "OnsTopDown" + f" {self.released}" * (self.released != "rounded")

    @cached_property
    def measurements(self) -> IndependentNoise:
        """The noisy counts of all levels, as a mechanism."""
        options: dict[str, Any] = {"rounded": False, "perturb_zeros": self.perturb_zeros}
        return IndependentNoise(
            self.tree, self.schema, self.epsilon, self.levels, self.shares, self.law, self.delta, **options
        )

    @property
    def domain(self) -> Domain:
        """Areas and attributes."""
        return self.measurements.domain

    @property
    def noises(self) -> tuple[CountNoise, ...]:
        """Noise on the counts of each level."""
        return self.measurements.noises

    @cached_property
    def _members(self) -> tuple[Counts, ...]:
        """For each level but the first, the groups in each group of the level above, shape (groups above, parts)."""
        members = []
        for above, level in pairwise(self.levels):
            coarse, fine = self.domain.query(above).groups, self.domain.query(level).groups
            inside = np.unique(np.stack([coarse, fine]), axis=1)  # a group inside two groups would appear twice
            sizes = np.bincount(inside[0])
            if level.level < above.level or inside.shape[1] > self.domain.query(level).size or np.ptp(sizes):
                raise ValueError(f"each level must divide the one above it evenly, got {level} below {above}")
            members.append(inside[1].reshape(len(sizes), -1))
        return tuple(members)

    @property
    def claim(self) -> PureDP | ApproxDP:
        """Promise of the algorithm."""
        return self.measurements.claim

    def exact(self, histogram: ArrayLike) -> NDArray[Any]:
        """Return the release without noise, shape (leaves, cells), or (counts of all tables,)."""
        people: NDArray[Any] = self._shown(self.domain.check(histogram)[None])[0]
        return people

    def __call__(self, histogram: ArrayLike, size: int, rng: Rng) -> NDArray[Any]:
        """Release a histogram, shape (leaves, cells), `size` times: shape (size, leaves, cells), or (size, counts)."""
        exact = self.measurements.exact_tables(histogram)
        ties = np.random.default_rng() if isinstance(rng, str) else rng
        people: NDArray[Any] = np.rint(self._floored(exact[0], 0, size, rng)).astype(np.int64)
        for place in range(1, len(exact)):
            is_rounded = self.released != "adjusted" or place < len(exact) - 1
            divided = np.empty((size, *exact[place].shape), np.int64 if is_rounded else np.float64)
            for parent, children in self._families(place):
                values = self._floored(exact[place][children], place, size, rng)
                divided[:, children] = self._divided(people[:, parent], values, place, ties if is_rounded else None)
            people = divided
        return self._shown(self.domain.by_leaf(people))

    def _shown(self, people: NDArray[Any]) -> NDArray[Any]:
        if self.released != "tables":
            return people
        tables = self.domain.tabulate(people, PILOT_TABLES)
        return np.concatenate([table.reshape(len(people), -1) for table in tables], axis=1)

    def _floored(self, exact: Counts, place: int, size: int, rng: Rng) -> Floats:
        """Return noisy counts, with values of 0 and below raised to the floor; zeros that get no noise stay 0."""
        values = self.measurements.noisy(exact, place, size, rng).astype(np.float64, copy=False)
        values[(values <= 0) & ((exact > 0) | self.perturb_zeros)] = FLOOR
        return values

    def _families(self, place: int) -> Iterator[tuple[int, slice]]:
        """Yield each area of the level above, and the slice of its areas in this level."""
        above, level = self.levels[place - 1].level, self.levels[place].level
        first, areas = self.tree.level(above).start, np.arange(*self.tree.level(level).indices(self.tree.n_nodes))
        for _ in range(level - above):
            areas = self.tree.parent[areas]
        parents, starts = np.unique(areas, return_index=True)
        for parent, start, stop in zip(parents, starts, [*starts[1:], areas.size], strict=True):
            yield int(parent) - first, slice(int(start), int(stop))

    def _divided(
        self, totals: NDArray[Any], values: Floats, place: int, ties: np.random.Generator | None
    ) -> NDArray[Any]:
        """Divide an area's counts, shape (size, groups above), in proportion to values, shape (size, areas, groups)."""
        members = self._members[place - 1]
        families = values[:, :, members].transpose(0, 2, 1, 3)  # (size, groups above, areas, parts)
        flat = families.reshape(totals.size, -1)
        parts: NDArray[Any] = adjusted(totals.reshape(-1), flat)
        if ties is not None:
            parts = maximum_remainder(totals.reshape(-1), parts, ties)
        divided = np.empty(values.shape, parts.dtype)
        divided[:, :, members] = parts.reshape(families.shape).transpose(0, 2, 1, 3)
        return divided

    def stage(
        self, name: Literal["measurements"] | Stage, *, only: Sequence[int] | None = None
    ) -> IndependentNoise | OnsTopDown:
        """Return a stage as a mechanism: a value of `released`, or the noisy levels, `only` those at some indices."""
        if name == "measurements":
            return self.measurements if only is None else self.measurements.only(only)
        if only is not None:
            raise ValueError(f"only must be of the measurements, got it of {name!r}")
        return replace(self, released=name)


def adjusted(parents: ArrayLike, values: ArrayLike) -> Floats:
    """Scale the parts of each parent, shape (families, parts), to add up to the parent, except for rounding errors."""
    above, parts = np.asarray(parents, np.float64), np.asarray(values, np.float64)
    sums = parts.sum(axis=1)
    if (above[sums == 0] > 0).any():
        raise ValueError(f"parts of {above[(sums == 0) & (above > 0)][0]:g} must not all be 0")
    ratio: Floats = np.divide(above, sums, out=np.zeros_like(sums), where=sums > 0)
    return parts * ratio[:, np.newaxis]


def maximum_remainder(
    parents: ArrayLike, values: ArrayLike, rng: np.random.Generator | None = None
) -> NDArray[np.int64]:
    """Round the parts of each parent, shape (families, parts), down, then the largest remainders up to match its total.

    Ties are broken at random, so that no part is favored; without a generator the first part wins.
    """
    totals, parts = np.asarray(parents, np.int64), np.asarray(values, np.float64)
    sums, out = parts.sum(axis=1), np.floor(parts).astype(np.int64)
    missing = totals - out.sum(axis=1)  # for large totals, the tolerance below may be whole persons
    right = (np.abs(sums - totals) <= 1e-6 * np.maximum(totals, 1)) & (missing >= 0) & (missing <= parts.shape[1])
    if not right.all():
        raise ValueError(f"parts of {totals[~right][0]} must add up to it, got {sums[~right][0]:.15g}")
    some = np.flatnonzero(missing > 0)
    remainders = np.rint((parts[some] - out[some]) / TIE)
    if rng is not None:
        remainders += rng.random(remainders.shape)
    order = np.argsort(-remainders, axis=1, kind="stable")
    up = np.arange(parts.shape[1]) < missing[some, np.newaxis]
    raised = np.zeros(order.shape, np.int64)
    np.put_along_axis(raised, order, up.astype(np.int64), axis=1)
    out[some] += raised
    return out
