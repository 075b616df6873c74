"""The public settings of a TopDown release: queries by level, shares of the budget, constraints and methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.release.ledger import exact_share
from algorithms.release.reading import LARGEST
from algorithms.schema import Query, Schema
from algorithms.topdown.budget import Budget, Law
from algorithms.topdown.estimation.constraints import Bounds, Constraint, Invariant, tightened

__all__ = ["Passes", "Plan"]

Passes = Sequence[Sequence[str]]
Known = Mapping[str, NDArray[np.int64]]
"""Exact answers of invariants, by their names."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The settings of a release, without data: see `algorithms.topdown.TopDown`."""

    schema: Schema
    tree: Hierarchy
    budget: Budget
    _: KW_ONLY
    invariants: Sequence[Invariant] = ()
    bounds: Sequence[Bounds] = ()
    passes: Mapping[int, Passes] | None = None
    rounding: Passes | Mapping[int, Passes] = ()
    minimal: str | None = None
    solver: Literal["piqp", "batched"] = "piqp"
    n_jobs: int = 1

    def __post_init__(self) -> None:
        for name, each in (("invariants", Invariant), ("bounds", Bounds)):
            if wrong := [given for given in getattr(self, name) if not isinstance(given, each)]:
                raise TypeError(f"{name} must each be {each.__name__}, got {wrong[0]!r}")
        if self.passes is not None and not isinstance(self.passes, Mapping):
            raise TypeError(f"passes must be a mapping of levels, got {self.passes!r}")
        if self.minimal is not None and not isinstance(self.minimal, str):
            raise TypeError(f"minimal must be the name of a query, got {self.minimal!r}")
        for name, kind in (("schema", Schema), ("tree", Hierarchy), ("budget", Budget)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} must be a {kind.__name__}, got {type(getattr(self, name)).__name__}")
        if self.solver not in ("piqp", "batched"):
            raise ValueError(f'solver must be "piqp" or "batched", got {self.solver!r}')
        if isinstance(self.n_jobs, bool) or not isinstance(self.n_jobs, int) or self.n_jobs == 0:
            raise ValueError(f"n_jobs must be a whole number other than 0, got {self.n_jobs!r}")
        if len(self.budget.levels) != self.tree.depth + 1:
            raise ValueError(
                f"the budget must have one share for each of {self.tree.depth + 1} levels of the tree, "
                f"got {len(self.budget.levels)}"
            )
        _ = self.shares, self.queries, self.public  # refuse settings that do not fit
        titles = [str(invariant) for invariant in self.invariants]
        if len(set(titles)) < len(titles):
            raise ValueError(f"invariants must be distinct, got {', '.join(titles)}")
        for invariant in self.invariants:
            self.tree.cut(invariant.level)
            self.schema.query(invariant.query)
        if not self.shares[0]:
            raise ValueError("the root must be measured, or nothing says how many people there are: its share is 0")
        for key in self.keys:
            self.laws(*key)  # refuses a budget too small or too large for noise
        for level, passes in (self.passes or {}).items():
            measured = {name for name, _ in self.budget.measured(level)} if 0 <= level <= self.tree.depth else set()
            if sorted(name for names in passes for name in names) != sorted(measured):
                names = ", ".join(sorted(measured)) or "none"
                raise ValueError(f"passes of level {level} must name its queries once, {names}, got {passes}")
        for level in self.rounding if isinstance(self.rounding, Mapping) else ():
            self.tree.level(level)
        rounded = {name for level in range(self.tree.depth + 1) for names in self.rounded(level) for name in names}
        for name in [*sorted(rounded), self.minimal or "total"]:
            self.schema.query(name)

    @cached_property
    def shares(self) -> NDArray[np.object_]:
        """Share of every area, shape (n_nodes,); a leaf also has the shares of all levels below it."""
        levels = [exact_share(f"level {j}", share) for j, share in enumerate(self.budget.levels)]
        shares = np.repeat(np.array(levels, dtype=object), np.diff(self.tree.offsets))
        for j in range(self.tree.depth):
            leaves = self.tree.leaves[self.tree.leaves < self.tree.offsets[j + 1]]
            shares[leaves[leaves >= self.tree.offsets[j]]] = sum(levels[j:], Fraction())
        return shares

    @cached_property
    def queries(self) -> tuple[tuple[Query, ...], ...]:
        """The queries that are measured at each level."""
        return tuple(
            tuple(self.schema.query(name) for name, _ in self.budget.measured(j)) for j in range(self.tree.depth + 1)
        )

    @property
    def keys(self) -> list[tuple[int, str]]:
        """Levels and names of the queries that are measured."""
        return [(j, query.name) for j, queries in enumerate(self.queries) for query in queries]

    @cached_property
    def public(self) -> tuple[Constraint, ...]:
        """The public bounds, as constraints on all areas."""
        constraints = []
        for bounds in self.bounds:
            query, areas = self.schema.query(bounds.query), self.tree.cut(bounds.level)
            lower = np.zeros(query.size) if bounds.lower is None else bounds.lower
            upper = np.full(query.size, np.inf) if bounds.upper is None else bounds.upper
            constraints.append(Constraint.spread(bounds.name, query, self.tree, areas, lower, upper))
        tightened(constraints, self.tree, self.schema.query("total"))  # refuses bounds that contradict each other
        return tuple(constraints)

    def rounded(self, level: int) -> Passes:
        """Return the queries whose rounding error is minimized at a level, pass by pass."""
        return self.rounding.get(level, ()) if isinstance(self.rounding, Mapping) else self.rounding

    def laws(self, level: int, query: str) -> list[tuple[NDArray[np.int64], Law]]:
        """Return the noise of a query, share by share: areas (counted from the first of the level), and their law."""
        return [(areas, self.budget.law(share, query, level)) for share, areas in self._areas_by_share[level]]

    @cached_property
    def _areas_by_share(self) -> list[list[tuple[Fraction, NDArray[np.int64]]]]:
        """For each level, the distinct nonzero shares of its areas, and the areas that have each."""
        levels = [self.shares[self.tree.level(j)] for j in range(self.tree.depth + 1)]
        return [
            [(share, np.flatnonzero(shares == share)) for share in sorted(set(shares)) if share] for shares in levels
        ]

    def variances(self, level: int, query: str) -> NDArray[np.float64]:
        """Return the variance of the noise in every area of a level, infinite for unmeasured areas."""
        variances = np.full(self.shares[self.tree.level(level)].size, np.inf)
        for areas, law in self.laws(level, query):
            variances[areas] = law.variance
        return variances

    def check_histogram(self, histogram: ArrayLike) -> NDArray[np.int64]:
        """Return counts of people by leaf and cell as int64; refuse other shapes, bad counts and 2**40 people."""
        values = np.asarray(histogram)
        shape = (self.tree.n_leaves, self.schema.cells)
        if values.shape != shape:
            raise ValueError(
                f"histogram must have shape {shape}: leaves of the tree, cells of the schema; got {values.shape}"
            )
        counts = self.tree.check_counts(values.T).T
        if counts.sum(dtype=np.float64) >= LARGEST:
            raise ValueError(f"histogram must count less than 2**40 people, got {counts.sum(dtype=np.float64):.0f}")
        return np.ascontiguousarray(counts)

    def tables(self, leaves: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the tables of all areas, shape (..., n_nodes, cells), from those of the leaves."""
        return np.ascontiguousarray(np.swapaxes(self.tree.totals(np.swapaxes(leaves, -1, -2)), -1, -2)).astype(np.int64)

    def level_tables(self, leaves: NDArray[np.int64], level: int) -> NDArray[np.int64]:
        """Return the tables of the areas of a level from those of the leaves, without a copy if they are the level."""
        nodes, areas = self.tree.level(level), self.tree.ancestors(level)
        order = np.flatnonzero(areas >= nodes.start)
        order = order[np.argsort(areas[order], kind="stable")]
        rows = leaves if np.array_equal(order, np.arange(len(leaves))) else leaves[order]
        if order.size == nodes.stop - nodes.start:
            return rows
        return np.add.reduceat(rows, np.searchsorted(areas[order], np.arange(nodes.start, nodes.stop)), axis=0)

    def constraints(self, known: Known) -> tuple[Constraint, ...]:
        """Return all constraints on single areas: the bounds, and the invariants with their answers."""
        constraints = []
        for invariant in self.invariants:
            areas = self.tree.cut(invariant.level)
            values, query, name = known[str(invariant)], self.schema.query(invariant.query), str(invariant)
            constraints.append(Constraint.spread(name, query, self.tree, areas, values, values))
        return (*self.public, *constraints)

    def tightened(self, known: Known) -> tuple[Constraint, ...]:
        """Return the constraints tightened by each other, as estimation needs them."""
        return tightened(self.constraints(known), self.tree, self.schema.query("total"))
