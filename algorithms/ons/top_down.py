"""Method 2 of the pilot: noise at every level, each adjusted to the one above, down to whole numbers of people."""

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
from algorithms.noise import Rng, add_noise
from algorithms.ons.adjust import FLOOR, adjusted, maximum_remainder
from algorithms.ons.independent import NoisyTables, check_shares, divided_noise
from algorithms.ons.laws import CountNoise, Law
from algorithms.ons.tables import PILOT_LEVELS, PILOT_TABLES, Counts, Domain, Table
from algorithms.release.shares import Share
from algorithms.schema import Schema
from audit.claims import ApproxDP, PureDP
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["PILOT_SHARES", "LevelStage", "OnsTopDown", "PublishedStage"]

Floats = NDArray[np.float64]
Stage = Literal["adjusted", "rounded", "tables"]

PILOT_SHARES: tuple[Share, ...] = ("0.01", "0.05", "0.165", "0.775")
"""Of the total; of all demographic variables in the nation, by region, by clinical commissioning group."""


@dataclass(frozen=True, eq=False)
class OnsTopDown:
    """The pilot's top-down method: synthetic people whose tables add up.

    Every level is a table that divides the one before it further, by areas or by attributes. Each level gets noise, and
    values of 0 or below become 0.001. Each family is scaled to the count above it and rounded to whole numbers by the
    maximum remainder method, with ties drawn at random (the pilot states no rule); then the next level is adjusted. The
    last level is the histogram of the people. Memory holds the histogram given, two arrays of its size in 64 bits, the
    level above the last, and a few arrays of one family of areas.

    **Claim.** Pure DP with `epsilon` when one person is added or removed; approximate DP with `epsilon` and `delta` for
    Gaussian noise. With ``perturb_zeros=False`` none: empty cells stay empty, so a count above 0 proves that somebody
    is there.
    **Sensitivity.** One person changes one count of each level by 1.
    **Source.** Office for National Statistics, pilot on mortality data, section 4, method 2.

    Attributes
    ----------
    tree, schema, epsilon, shares, law, delta
        As in `IndependentNoise`, but for levels in place of tables. Default: the pilot's shares.
    levels : sequence of Table
        From the total to the detailed histogram of the finest areas. Default: the pilot's four.
    perturb_zeros : bool
        Whether counts of 0 get noise too, which every promise needs.
    """

    tree: Hierarchy
    schema: Schema
    epsilon: float
    levels: Sequence[Table] = PILOT_LEVELS
    shares: Sequence[Share] = PILOT_SHARES
    law: Law = "laplace"
    perturb_zeros: bool = True
    delta: float = 0.0

    threads: ClassVar[bool] = True  # no run writes into what another reads

    def __post_init__(self) -> None:
        _ = CountNoise(self.law, self.epsilon, self.delta)  # the whole budget is refused before its parts are
        levels = tuple(self.levels)
        if not levels or levels[0] != Table(0, "total"):
            raise ValueError(f"the first level must be the total of level 0, got {levels[0] if levels else 'none'}")
        if levels[-1].level != self.domain.tree.depth or self.domain.query(levels[-1]).size != self.schema.cells:
            raise ValueError(f"the last level must be the detailed query of level {self.tree.depth}, got {levels[-1]}")
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "shares", check_shares("levels", list(map(str, levels)), self.shares))
        _ = self.noises, self._members

    @cached_property
    def domain(self) -> Domain:
        """Areas and attributes."""
        return Domain(self.tree, self.schema)

    @cached_property
    def noises(self) -> tuple[CountNoise, ...]:
        """Noise on the counts of each level."""
        return divided_noise(self.law, self.epsilon, self.levels, self.shares, delta=self.delta, rounded=False)

    @cached_property
    def _members(self) -> tuple[Counts, ...]:
        """For each level below the first the groups in each group of the level above: shape (groups above, parts)."""
        members = []
        for above, level in pairwise(self.levels):
            coarse, fine = self.domain.query(above).groups, self.domain.query(level).groups
            inside = np.unique(np.stack([coarse, fine]), axis=1)  # a group that is in two would stand twice
            sizes = np.bincount(inside[0])
            if level.level < above.level or inside.shape[1] > self.domain.query(level).size or np.ptp(sizes):
                raise ValueError(f"each level must divide the one above it evenly, got {level} below {above}")
            members.append(inside[1].reshape(len(sizes), -1))
        return tuple(members)

    @property
    def claim(self) -> PureDP | ApproxDP:
        """What the algorithm promises."""
        return self.promised(1.0)

    def promised(self, part: float) -> PureDP | ApproxDP:
        """Return the promise of a part of the budget; its epsilon is infinite if zeros are not perturbed."""
        if not self.perturb_zeros:
            return PureDP(math.inf)
        return CountNoise(self.law, self.epsilon * part, self.delta * part).claim

    def exact_levels(self, histogram: ArrayLike) -> list[Counts]:
        """Return the exact counts of every level, each of shape (areas, groups)."""
        return self.domain.tabulate(self.domain.check(histogram), self.levels)

    def exact(self, histogram: ArrayLike) -> NDArray[np.integer]:
        """Return what a release would be without noise, shape (leaves, cells)."""
        return self.domain.check(histogram)

    def noisy(self, exact: Counts, place: int, size: int, rng: Rng) -> Floats:
        """Return exact counts, some or all of a level, plus the noise of the level: shape (size, *exact.shape)."""
        noisy = add_noise(exact, self.noises[place], size, rng, query=str(self.levels[place]), sensitivity=1)
        noisy = noisy.astype(np.float64, copy=False)
        return noisy if self.perturb_zeros else noisy * (exact > 0)

    def __call__(self, histogram: ArrayLike, size: int, rng: Rng) -> Counts:
        """Release a histogram, shape (leaves, cells), `size` times: shape (size, leaves, cells)."""
        people: Counts = self.run(histogram, size, rng)
        return people

    def run(self, histogram: ArrayLike, size: int, rng: Rng, *, rounded: bool = True) -> NDArray[Any]:
        """Release a histogram, or with ``rounded=False`` the last level before it is rounded (ties are drawn)."""
        exact = self.exact_levels(histogram)
        ties = np.random.default_rng() if isinstance(rng, str) else rng
        people: NDArray[Any] = np.rint(self._floored(exact[0], 0, size, rng)).astype(np.int64)
        for place in range(1, len(exact)):
            is_rounded = rounded or place < len(exact) - 1
            divided = np.empty((size, *exact[place].shape), np.int64 if is_rounded else np.float64)
            for parent, children in self._families(place):
                values = self._floored(exact[place][children], place, size, rng)
                divided[:, children] = self._divided(people[:, parent], values, place, ties if is_rounded else None)
            people = divided
        return self.domain.by_leaf(people)

    def _floored(self, exact: Counts, place: int, size: int, rng: Rng) -> Floats:
        """Return noisy counts with those of 0 and below raised to the floor; zeros that get no noise stay."""
        values = self.noisy(exact, place, size, rng)
        values[(values <= 0) & ((exact > 0) | self.perturb_zeros)] = FLOOR
        return values

    def _families(self, place: int) -> Iterator[tuple[int, slice]]:
        """Yield each area of the level above with the slice of areas of a level that lie in it."""
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
        """Divide counts of one area, shape (size, groups above), as values, shape (size, areas, groups), divide."""
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
    ) -> LevelStage | PublishedStage:
        """Return one stage as a mechanism by itself.

        ``"measurements"`` are the noisy counts of levels (`only`: of those at these places, from 0 on). The others are
        the last level before rounding, the last level after it, and the fourteen tables counted from it.
        """
        if name == "measurements":
            return LevelStage(self, tuple(range(len(self.levels)) if only is None else only))
        if only is not None:
            raise ValueError(f"only must be of the measurements, got it of {name!r}")
        return PublishedStage(self, name)


@dataclass(frozen=True, eq=False)
class LevelStage(NoisyTables):
    """The noisy counts of some levels, as a mechanism.

    **Claim.** The sum of the shares of the levels released; none if zeros are not perturbed.
    """

    top_down: OnsTopDown
    places: tuple[int, ...]

    __name__ = "OnsTopDown measurements"

    def __post_init__(self) -> None:
        levels = len(self.top_down.levels)
        if not self.places or not set(self.places) <= set(range(levels)):
            raise ValueError(f"levels must be some of 0 to {levels - 1}, got {list(self.places)}")

    @property
    def domain(self) -> Domain:
        """Areas and attributes."""
        return self.top_down.domain

    @property
    def tables(self) -> list[Table]:
        """Levels that are released: others may be much larger."""
        return [self.top_down.levels[place] for place in self.places]

    @property
    def noises(self) -> tuple[CountNoise, ...]:
        """Noise on the counts of each level."""
        return tuple(self.top_down.noises[place] for place in self.places)

    @property
    def claim(self) -> PureDP | ApproxDP:
        """What the stage promises."""
        return self.top_down.promised(float(sum(Fraction(self.top_down.shares[place]) for place in self.places)))

    def components(self) -> list[LevelStage]:
        """Return each level as a mechanism with one law of noise, for estimates to examine one by one."""
        return [replace(self, places=(place,)) for place in self.places]

    def __call__(self, histogram: ArrayLike, size: int, rng: Rng) -> Floats:
        """Measure `size` times: shape (size, counts of all levels released)."""
        levels = zip(self.exact_tables(histogram), self.places, strict=True)
        return np.hstack([self.top_down.noisy(level, at, size, rng).reshape(size, -1) for level, at in levels])

    def _losses(self, noise: CountNoise, before: Counts, after: Counts) -> list[LossDistribution] | None:
        """Return losses of a level: without noise on zeros, a count that is 0 on one database has a law of its own."""
        changed = before != after
        lonely = changed & ((before == 0) | (after == 0)) & (not self.top_down.perturb_zeros)
        zeros = [self._loss_of_zero(noise, *counts) for counts in zip(before[lonely], after[lonely], strict=True)]
        if not (others := changed & ~lonely).any():
            return zeros
        losses = super()._losses(noise, before[others], after[others])
        return None if losses is None else zeros + losses

    @staticmethod
    def _loss_of_zero(noise: CountNoise, before: int, after: int) -> LossDistribution:
        """Loss of a count that is 0, without noise, on one of the databases: the outputs are 0 and all others."""
        count = max(before, after)
        at_zero = float(np.exp(noise.log_law(np.array(-float(count))))) if noise.law == "geometric" else 0.0
        with np.errstate(divide="ignore"):
            empty, noisy = np.log([1.0, 0.0]), np.log([at_zero, 1 - at_zero])
        return loss_from_logs(empty, noisy) if before == 0 else loss_from_logs(noisy, empty)

    def _log_law(self, noise: CountNoise, noisy: Floats, exact: Counts) -> Floats:
        log_p = noise.log_law(noisy - exact)
        if not self.top_down.perturb_zeros:  # a 0 of continuous noise has no probability beside a sure one
            if noise.law != "geometric":
                log_p = np.where(noisy == 0, -np.inf, log_p)
            log_p = np.where(exact > 0, log_p, np.where(noisy == 0, 0.0, -np.inf))
        return log_p


@dataclass(frozen=True, eq=False)
class PublishedStage:
    """What the algorithm makes of its measurements, as a mechanism.

    **Claim.** The whole promise: it is computed from all levels.
    """

    top_down: OnsTopDown
    name: Stage

    threads: ClassVar[bool] = True  # no run writes into what another reads

    def __post_init__(self) -> None:
        if self.name not in get_args(Stage):
            raise ValueError(f"stage must be one of measurements, {', '.join(get_args(Stage))}, got {self.name!r}")

    @property
    def __name__(self) -> str:
        return f"OnsTopDown {self.name}"

    @property
    def claim(self) -> PureDP | ApproxDP:
        """What the stage promises."""
        return self.top_down.claim

    def exact(self, histogram: ArrayLike) -> NDArray[Any]:
        """Return what the stage would be without noise, shape (leaves, cells), or (counts of all tables,)."""
        tables: NDArray[Any] = self._shown(self.top_down.exact(histogram)[None])[0]
        return tables

    def __call__(self, histogram: ArrayLike, size: int, rng: Rng) -> NDArray[Any]:
        """Run the algorithm `size` times: shape (size, leaves, cells), or (size, counts of all tables)."""
        return self._shown(self.top_down.run(histogram, size, rng, rounded=self.name != "adjusted"))

    def _shown(self, people: NDArray[Any]) -> NDArray[Any]:
        """Return people, shape (size, leaves, cells), or the tables counted from them."""
        if self.name != "tables":
            return people
        tables = self.top_down.domain.tabulate(people, PILOT_TABLES)
        return np.concatenate([table.reshape(len(people), -1) for table in tables], axis=1)
