"""Constraints of the estimation: exactly published answers (invariants) and public bounds."""

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
MOST_PERSONS = 99_999  # most persons in a facility


@dataclass(frozen=True)
class Invariant:
    """A query whose exact answers are published, outside the promise; answers of higher areas follow from them."""

    query: str
    level: int

    def __str__(self) -> str:
        return f"{self.query} of level {self.level} (invariant)"


@dataclass(frozen=True)
class Bounds:
    """Public bounds on the answers of a query that hold for every possible database; higher areas get the sums."""

    name: str  # for messages
    query: str
    level: int
    lower: ArrayLike | None = (
        None  # shape (areas at the level, groups), areas as in `Hierarchy.cut`, or (groups,); none: 0
    )
    upper: ArrayLike | None = None  # same shapes; none: infinity

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Constraint:
    """Bounds on answers in all areas of a tree, shape (n_nodes, groups): 0 and infinity if there is no bound."""

    name: str
    query: Query
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @classmethod
    def spread(
        cls, name: str, query: Query, tree: Hierarchy, areas: NDArray[np.int64], lower: ArrayLike, upper: ArrayLike
    ) -> Constraint:
        """Make a constraint from bounds on some areas; higher areas get the sums of their parts' bounds."""
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
        """Return the bounds of some areas, or None if all are trivial."""
        lower, upper = self.lower[nodes], self.upper[nodes]
        if not lower.any() and np.isinf(upper).all():
            return None
        return Box(self.name, self.query.groups, lower, upper, self.query.labels)


def facility_bounds(query: str, level: int, facilities: ArrayLike, unit: tuple[int, int] = (0, 99)) -> Bounds:
    """Return bounds on residents from counts of housing units and facilities by type (housing units first).

    A facility has from 1 to 99,999 persons. A housing unit has from ``unit[0]`` (0 if units may be vacant) to
    ``unit[1]`` persons. A type without units has nobody. [US Census Bureau, 2020 redistricting production code, 2021:
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
    """Return bounds that keep impossible cells empty; each of `zeros` selects cells by keywords of `Schema.where`."""
    upper = np.full(schema.cells, np.inf)
    for levels in zeros:
        upper[schema.where(**levels)] = 0
    return Bounds("structural zeros", "detailed", level, None, upper)


def _spread_up(tree: Hierarchy, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
    """Tighten the bounds of every area by the sums of its parts' bounds, in place."""
    starts = tree.starts
    for node in range(tree.n_nodes - 1, -1, -1):
        parts = slice(int(starts[node]), int(starts[node + 1]))
        if parts.stop > parts.start:
            low[node] = np.maximum(low[node], low[parts].sum(axis=0))
            high[node] = np.minimum(high[node], high[parts].sum(axis=0))


def tightened(constraints: Sequence[Constraint], tree: Hierarchy, total: Query) -> tuple[Constraint, ...]:
    """Tighten the bounds on several queries by each other, if the groups of one are sums of the other's groups.

    The upper bound of a group is at most that of its sum minus the lower bounds of the sum's other groups; lower bounds
    likewise. Then bounds of parts are added up to bounds of their area, so that fewer tables of the area are infeasible
    for its parts. [Abowd et al. 2022, section 6: totals limit group quarters in this way.]
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
                    node, group = wrong[-1]  # the finest area: it causes the conflicts above
                    raise ValueError(
                        f"{names} conflict: {bounds.query.labels[group]} in {tree.labels[node]} would be "
                        f"{bounds.lower[node, group]:.0f} or more and {bounds.upper[node, group]:.0f} or less"
                    )
    implied = np.max([bounds.lower.sum(axis=1) for bounds in others], axis=0)[:, np.newaxis]
    enough = np.min([bounds.upper.sum(axis=1) for bounds in others], axis=0)[:, np.newaxis]
    low, high = np.where(rest.lower > implied, rest.lower, 0), np.where(rest.upper < enough, rest.upper, np.inf)
    return (*others, replace(rest, lower=low, upper=high))


def _tighten(coarse: Constraint, fine: Constraint) -> None:
    """Tighten the bounds of two queries by each other, in place; every group of `coarse` is a sum of `fine`'s."""
    inside = np.zeros(fine.query.size, np.int64)
    inside[fine.query.groups] = coarse.query.groups
    endless = np.isinf(fine.upper)
    finite, endings = np.where(endless, 0, fine.upper), answer(inside, endless.astype(np.int64))
    np.maximum(coarse.lower, answer(inside, fine.lower), out=coarse.lower)
    np.minimum(coarse.upper, np.where(endings > 0, np.inf, answer(inside, finite)), out=coarse.upper)
    low = answer(inside, fine.lower)[:, inside] - fine.lower  # sum of the other groups' lower bounds
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
