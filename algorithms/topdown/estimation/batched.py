"""Solver for many families at once: the least squares of every parent of a level, over all runs of an audit.

It uses the alternating directions method of multipliers (ADMM), in compiled loops. Each family of each run is solved by
itself, in one thread, so results do not depend on the other runs or on threads.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.extras import needing
from algorithms.topdown.estimation.family import Box, Fit, Groups, LevelSolution, refines

__all__ = ["largest_remainder", "solve_level"]

Integers = NDArray[np.int64]
Real = NDArray[np.float64]

_TOLERANCE = 1e-7  # see `solve_level`
_NEAR = 1e-6  # people: a count this close to a whole number is treated as whole
_GAP = 1e-3  # people: largest difference between the sum of tables and their parent
_PENALTY = 1.5  # initial penalty, times the detailed weight or else the least curvature; found by trial


@cache
def _kernels() -> Any:
    """Load the compiled loops; imported here, because that takes a second, and numba is an extra."""
    with needing("census", "TopDown"):
        from algorithms.topdown.estimation import kernels
    kernel = kernels.solve_families.kernel
    folder = kernel.stats.cache_path if hasattr(kernel, "stats") else ""
    if folder is None or (folder and not any(Path(folder).glob("*.solve_families-*"))):
        print("compiling TopDown's solver: a minute or so, once for this installation", file=sys.stderr, flush=True)
    return kernels


def solve_level(
    parents: Integers | None,
    starts: Integers,
    fits: Sequence[Fit],
    boxes: Sequence[Box],
    *,
    iterations: int = 2000,
    heaviest: float | None = None,
) -> LevelSolution:
    """Fit all families of a level, in all runs, to their measurements.

    The parents have the shape (runs, parents, cells), or are None at the root; parent i has the areas ``starts[i]`` to
    ``starts[i + 1]`` of the level. The tolerance is in people, or in standard deviations of the smallest noise if that
    is above 1: the noise of these families, or of weight `heaviest`.

    One half of the method minimizes the squares under the parent's equality; the other projects every cell on a
    simplex, or the part of it within its bounds, and bounded answers on their intervals. If only the detailed query is
    measured, one projection is the solution. Memory is proportional to runs times areas times cells, and to the square
    of the number of groups. [Boyd et al., "Distributed Optimization and Statistical Learning via the Alternating
    Direction Method of Multipliers", 2011, sections 3.3, 3.4 and 5.2.]
    """
    kernels = _kernels()
    shape = fits[0].answers.shape[:2] + fits[0].groups.shape if parents is None else parents.shape
    runs, areas, cells = int(shape[0]), int(starts[-1]), int(shape[2])
    if heaviest is None:
        heaviest = max((float(fit.weights.max()) for fit in fits), default=0.0)
    heaviest = heaviest or 1.0
    of_cells = [box for box in boxes if box.groups.max() + 1 == cells]
    sums = [box for box in boxes if box.groups.max() + 1 < cells]
    coarse = [fit for fit in fits if fit.groups.max() + 1 < cells and fit.weights.any()]
    basis = _Basis.of([*(fit.groups for fit in coarse), *(box.groups for box in sums)], cells)
    families = (runs, starts.size - 1)
    solution = LevelSolution(
        np.zeros((runs, areas, cells)),
        np.zeros(families, np.bool_),
        np.zeros(families),
        np.zeros(families),
        np.zeros(families, np.int64),
    )
    kernels.solve_families(
        _array(np.zeros((0, 0, 0)) if parents is None else parents, np.int64),
        parents is None,
        _array(starts, np.int64),
        kernels.Squares(*_squares(fits, coarse, basis, (runs, areas, cells), heaviest)),
        kernels.Limits(
            basis.groups, *map(_array, _bounds(sums, basis, areas)), *map(_array, _bounds_of_cells(of_cells, cells))
        ),
        _TOLERANCE * max(1.0, heaviest**-0.5),
        iterations,
        solution,
    )
    return solution


def largest_remainder(tables: Real, parents: Integers | None, starts: Integers) -> Integers:
    """Round tables to whole numbers that add up to their parents, cell by cell, with the least absolute error."""
    if parents is None:
        return np.floor(tables + 0.5).astype(np.int64)
    gap = np.abs(np.add.reduceat(tables, starts[:-1], axis=1) - parents).max(initial=0.0)
    if not gap < _GAP:
        raise ValueError(f"tables must add up to their parents, got a difference of {gap:.3g}")
    out = np.empty(tables.shape, np.int64)
    _kernels().round_families(_array(tables), _array(parents, np.int64), _array(starts, np.int64), _NEAR, out)
    return out


def _array(values: NDArray[Any], kind: Any = None) -> NDArray[Any]:
    """Return values in the only kind of array for which the loops are compiled: C-ordered and writable."""
    return np.require(values, kind, ["C", "W"])


@dataclass(frozen=True)
class _Basis:
    """Finest queries: all other queries are sums of their groups."""

    groups: Integers  # shape (queries, cells), with different numbers in different queries
    size: int

    @classmethod
    def of(cls, queries: Sequence[Groups], cells: int) -> _Basis:
        """Choose the queries that no other query refines."""
        chosen: list[Groups] = []
        for query in sorted(queries, key=lambda query: -int(query.max())):
            if not any(refines(finer, query) for finer in chosen):
                chosen.append(query)
        ends = np.cumsum([0, *(int(query.max()) + 1 for query in chosen)])
        groups = [query + end for query, end in zip(chosen, ends, strict=False)]
        return cls(np.array(groups, np.int64).reshape(len(chosen), cells), int(ends[-1]))

    def coarsen(self, query: Groups) -> tuple[Integers, Integers]:
        """Return groups of the basis that partition a query, and the group of the query that contains each."""
        finer = next(groups for groups in self.groups if refines(groups, query))
        inside, first = np.unique(finer, return_index=True)
        return inside, query[first]


def _squares(
    fits: Sequence[Fit], coarse: Sequence[Fit], basis: _Basis, shape: tuple[int, int, int], heaviest: float
) -> tuple[Real, Real, Real, Real, Integers, Real]:
    """Return the fields of `kernels.Squares` for the measurements."""
    areas, cells = shape[1:]
    linear, curve = np.zeros(shape), np.zeros(areas)
    weights = np.array([fit.weights for fit in coarse]).reshape(len(coarse), areas).T / heaviest
    for fit in fits:
        if fit.groups.max() + 1 == cells:
            weight = fit.weights / heaviest
            linear += _products(weight, fit.answers)[..., fit.groups]
            curve += weight
    distinct, kinds = np.unique(np.column_stack([weights, curve]), axis=0, return_inverse=True)
    normal, terms = np.zeros((len(distinct), basis.size, basis.size)), np.zeros((*shape[:2], basis.size))
    least = np.full(areas, np.inf)
    for j, fit in enumerate(coarse):
        inside, group = basis.coarsen(fit.groups)
        normal[:, inside[:, None], inside] += distinct[:, j, None, None] * (group[:, None] == group)
        terms[..., inside] += _products(weights[:, j], fit.answers)[..., group]
        alone = weights[:, j] * cells / (fit.groups.max() + 1)  # mean curvature by this query alone
        least = np.where(alone > 0, np.minimum(least, alone), least)
    least = np.minimum(least, curve[curve > 0].min(initial=np.inf))
    least[np.isinf(least)] = least.min() if np.isfinite(least.min()) else 1.0
    penalty = np.where(curve > 0, curve, least)
    return linear, curve, terms, normal, kinds.reshape(-1).astype(np.int64), _PENALTY * penalty


def _products(weights: Real, answers: Real) -> Real:
    """Return weighted answers, 0 for unmeasured areas."""
    products: Real = np.where(weights[:, None] > 0, answers, 0.0) * weights[:, None]
    return products


def _bounds(boxes: Sequence[Box], basis: _Basis, areas: int) -> tuple[Integers, Real, Real]:
    """Return the number of each basis group's bound, for each box, and the bounds; bound 0 never binds."""
    runs = max((box.lower.shape[0] for box in boxes if box.lower.ndim == 3), default=1)
    rows = np.zeros((len(boxes), basis.size), np.int64)
    lower, upper = [np.zeros((runs, areas, 1))], [np.full((runs, areas, 1), np.inf)]
    count = 1
    for row, box in zip(rows, boxes, strict=True):
        inside, group = basis.coarsen(box.groups)
        row[inside] = group + count
        count += box.lower.shape[-1]
        lower.append(np.broadcast_to(box.lower, (runs, *box.lower.shape[-2:])))
        upper.append(np.broadcast_to(box.upper, (runs, *box.upper.shape[-2:])))
    return rows, np.concatenate(lower, axis=-1), np.concatenate(upper, axis=-1)


def _bounds_of_cells(boxes: Sequence[Box], cells: int) -> tuple[Real, Real]:
    """Return the intersection of all boxes on single cells; shape (1, 0, cells) if there is none."""
    least, most = np.zeros((1, 0, cells)), np.zeros((1, 0, cells))
    for number, box in enumerate(boxes):
        lower, upper = (bound.reshape(-1, *bound.shape[-2:])[..., box.groups] for bound in (box.lower, box.upper))
        least, most = (np.maximum(least, lower), np.minimum(most, upper)) if number else (lower, upper)
    return least.astype(np.float64), most.astype(np.float64)
