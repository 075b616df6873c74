"""What is known besides the measurements: answers that are published exactly, and public bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.schema import Query, Schema
from algorithms.topdown.estimation.family import Box, answer, refines

__all__ = ["Bounds", "Constraint", "Invariant", "broken", "facility_bounds", "structural_zeros", "tightened"]

MOST_FACILITIES = 2**40
MOST_PERSONS = 99_999  # in a facility


@dataclass(frozen=True)
class Invariant:
    """A query whose exact answers are published, and no part of the promise; those of areas above follow."""

    query: str
    level: int

    def __str__(self) -> str:
        return f"{self.query} of level {self.level} (invariant)"


@dataclass(frozen=True)
class Bounds:
    """Public bounds on the answers of a query that hold for every possible database; areas above have the sums."""

    name: str  # for messages
    query: str
    level: int
    lower: ArrayLike | None = (
        None  # shape (areas at the level, groups), areas as in `Hierarchy.cut`, or (groups,); none: 0
    )
    upper: ArrayLike | None = None  # likewise; none: endless

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Constraint:
    """Bounds on answers in all areas of a tree, shape (n_nodes, groups): 0 and infinity where nothing is known."""

    name: str
    query: Query
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @classmethod
    def spread(
        cls, name: str, query: Query, tree: Hierarchy, areas: NDArray[np.int64], lower: ArrayLike, upper: ArrayLike
    ) -> Constraint:
        """Spread bounds on some areas upwards: an area has at least what its parts have, and at most likewise."""
        low, high = np.zeros((tree.n_nodes, query.size)), np.full((tree.n_nodes, query.size), np.inf)
        for words, given, into in (("lower", lower, low), ("upper", upper, high)):
            values = np.asarray(given, np.float64)
            if values.shape not in ((query.size,), (areas.size, query.size)):
                raise ValueError(
                    f"{words} bounds of {name} must have shape ({areas.size}, {query.size}), got {values.shape}"
                )
            odd = values[~((values >= 0) & ((values == np.floor(values)) | (values == np.inf)))]
            if odd.size or (words == "lower" and np.isinf(values).any()):
                value = odd[0] if odd.size else np.inf
                raise ValueError(f"{words} bounds of {name} must be whole numbers, 0 or more, got {value}")
            into[areas] = values
        if (wrong := np.argwhere(low > high)).size:
            node, group = wrong[0]
            raise ValueError(
                f"lower bounds of {name} must not be above the upper, got {low[node, group]:.0f} above "
                f"{high[node, group]:.0f} for {query.labels[group]} in {tree.labels[node]}"
            )
        _spread_up(tree, low, high)
        return cls(name, query, low, high)

    def box(self, nodes: slice | NDArray[np.int64]) -> Box | None:
        """Return the bounds of some areas, or None where they say nothing."""
        lower, upper = self.lower[nodes], self.upper[nodes]
        if not lower.any() and np.isinf(upper).all():
            return None
        return Box(self.name, self.query.groups, lower, upper, self.query.labels)


def facility_bounds(query: str, level: int, facilities: ArrayLike, unit: tuple[int, int] = (0, 99)) -> Bounds:
    """Return what counts of housing units and facilities, by type, units first, say about the people who live in them.

    From 1 to 99,999 persons are in every facility, and as many as `unit` says in every housing unit, from 0 if it may
    be vacant; nobody is where there is none. [US Census Bureau, 2020 redistricting production code, 2021:
    `querybase_constraints.py`; the end-to-end test of 2018: `constraints1940.py`.]
    """
    table = np.asarray(facilities)
    if table.dtype.kind not in "iuf" or table.ndim == 0:
        raise TypeError(f"facilities must be a table of counts by type, got {facilities!r}")
    odd = table[~((table >= 0) & (table < MOST_FACILITIES) & (table == np.floor(table)))]
    if odd.size:
        raise ValueError(f"facilities must be whole numbers from 0 to less than 2**40, got {odd[0]}")
    counts = table.astype(np.int64)
    lower, upper = counts.copy(), counts * MOST_PERSONS
    lower[..., 0], upper[..., 0] = (counts[..., 0] * persons for persons in unit)
    return Bounds("persons by facilities", query, level, lower, upper)


def structural_zeros(schema: Schema, level: int, zeros: Sequence[Mapping[str, str | Sequence[str]]]) -> Bounds:
    """Return bounds that keep cells empty whose levels exclude each other, as `Schema.where` takes them."""
    upper = np.full(schema.cells, np.inf)
    for levels in zeros:
        upper[schema.where(**levels)] = 0
    return Bounds("structural zeros", "detailed", level, None, upper)


def _spread_up(tree: Hierarchy, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
    """Give every area at least what its parts have at least, and at most what they have at most, in place."""
    starts = tree.starts
    for node in range(tree.n_nodes - 1, -1, -1):
        parts = slice(int(starts[node]), int(starts[node + 1]))
        if parts.stop > parts.start:
            low[node] = np.maximum(low[node], low[parts].sum(axis=0))
            high[node] = np.minimum(high[node], high[parts].sum(axis=0))


def tightened(constraints: Sequence[Constraint], tree: Hierarchy, total: Query) -> tuple[Constraint, ...]:
    """Tighten the bounds on several queries by each other, wherever one is a sum of another's groups.

    A group has at most what the sum that it belongs to leaves over what the others in it have at least, and at least
    what they cannot have. Bounds of an area are then those of its parts added up, so that fewer tables of an area leave
    its parts none. [Abowd et al. 2022, section 6: upper bounds of group quarters are what a total leaves.]
    """
    if len({constraint.query.name for constraint in constraints}) < 2:
        return tuple(constraints)
    names = " and ".join(dict.fromkeys(constraint.name for constraint in constraints))
    rest = Constraint(
        f"totals that {names} leave", total, np.zeros((tree.n_nodes, 1)), np.full((tree.n_nodes, 1), np.inf)
    )
    others = [replace(bounds, lower=bounds.lower.copy(), upper=bounds.upper.copy()) for bounds in constraints]
    pairs = [
        (coarse, fine)
        for coarse in (rest, *others)
        for fine in (rest, *others)
        if fine is not coarse and refines(fine.query.groups, coarse.query.groups)
    ]
    for _ in range(2):
        for coarse, fine in pairs:
            _tighten(coarse, fine)
            for bounds in (coarse, fine):
                _spread_up(tree, bounds.lower, bounds.upper)
                if (wrong := np.argwhere(bounds.lower > bounds.upper)).size:
                    node, group = wrong[-1]  # of the finest area: what is above follows from it
                    raise ValueError(
                        f"{names} conflict: {bounds.query.labels[group]} in {tree.labels[node]} would be "
                        f"{bounds.lower[node, group]:.0f} or more and {bounds.upper[node, group]:.0f} or less"
                    )
    implied = np.max([bounds.lower.sum(axis=1) for bounds in others], axis=0)[:, np.newaxis]
    enough = np.min([bounds.upper.sum(axis=1) for bounds in others], axis=0)[:, np.newaxis]
    low, high = np.where(rest.lower > implied, rest.lower, 0), np.where(rest.upper < enough, rest.upper, np.inf)
    return (*others, replace(rest, lower=low, upper=high))


def _tighten(coarse: Constraint, fine: Constraint) -> None:
    """Tighten the bounds of two queries by each other, in place: every group of the one is a sum of the other's."""
    inside = np.zeros(fine.query.size, np.int64)
    inside[fine.query.groups] = coarse.query.groups
    endless = np.isinf(fine.upper)
    finite, endings = np.where(endless, 0, fine.upper), answer(inside, endless.astype(np.int64))
    np.maximum(coarse.lower, answer(inside, fine.lower), out=coarse.lower)
    np.minimum(coarse.upper, np.where(endings > 0, np.inf, answer(inside, finite)), out=coarse.upper)
    low = answer(inside, fine.lower)[:, inside] - fine.lower  # what the others of the same sum have at least
    high = answer(inside, finite)[:, inside] - finite
    high[endings[:, inside] > endless] = np.inf
    np.minimum(fine.upper, coarse.upper[:, inside] - low, out=fine.upper)
    np.maximum(fine.lower, coarse.lower[:, inside] - high, out=fine.lower)


def broken(
    constraint: Constraint, answers: NDArray[np.int64], tree: Hierarchy, nodes: slice | None = None
) -> str | None:
    """Return in words the first bound that answers of `nodes`, shape (..., areas, groups), break, or None."""
    of = slice(0, tree.n_nodes) if nodes is None else nodes
    wrong = np.argwhere((answers < constraint.lower[of]) | (answers > constraint.upper[of]))
    if not wrong.size:
        return None
    *_, area, group = wrong[0]
    node = of.start + int(area)
    low, high = constraint.lower[node, group], constraint.upper[node, group]
    bounds = (
        f"{low:.0f}" if low == high else f"{low:.0f} or more" if np.isinf(high) else f"from {low:.0f} to {high:.0f}"
    )
    where = f"{constraint.query.labels[group]} in {tree.labels[node] or 'the root'}"
    return f"{constraint.name}: {where} must be {bounds}, got {answers[tuple(wrong[0])]}"
