"""Rounds the tables of a family to whole numbers of people that keep every constraint.

Why a linear program is enough
------------------------------
Every count may only go to the whole number below or above, ``floor(x) + b`` with b of 0 or 1. Regard each person yet to
be placed as a unit of flow. It starts at the family, goes down a tree to a part, to a group of its coarsest query, to a
group of the next query, and so on to one cell of one part. From there it goes to the same cell of the parent, up a
second tree to groups of the margin, and out. The parts and nested queries are the first tree; the parent is the second.
Then the answer to each query is the flow through one arc. Bounds on answers are capacities, and a convex cost of an
answer is a set of parallel arcs, cheapest first. So the matrix is a network matrix, which is totally unimodular: every
square submatrix has determinant 0, 1 or -1, and with integral capacities all vertices are integral. The simplex method
ends at a vertex, which is the best rounding, without branch and bound.

Queries that are not nested break the first tree, and the vertex may be fractional. The code checks this, and only then
solves the integer program (route ``"integer"``). The slack of the failsafe is a row outside the network. At its
smallest value, which is even, it cuts off a face with integral vertices; half of a slack larger by 1 rounds down to it.

Effect of solver errors
-----------------------
Rows of the program have integral bounds, so if it had no solution, some rows with factors 1 and -1 would add up to a
contradiction of at least 1. The fractions of x are almost a solution. Hence there is a solution if the violations of
all constraints by x add up to less than 1; x need not be more accurate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from algorithms.topdown.estimation.family import Family, Groups, answer
from algorithms.topdown.estimation.linear import PARENT, SLACK, Infeasible, below, conflict, named, solve, system, tally

__all__ = ["Rounded", "check", "round_family"]

Counts = NDArray[np.int64]
Real = NDArray[np.float64]
TOLERANCE = 1e-6  # values this close to a whole number are treated as whole
NEGATIVE = 1e-3  # a solution may be below 0 by this much


@dataclass(frozen=True)
class Rounded:
    """Tables in whole numbers, shape (parts, cells), that keep all constraints."""

    tables: Counts
    route: str  # "copy" (nothing to round), "remainder" (largest), "linear" or "integer" (a vertex was fractional)
    reach: int = 0  # 0: floor or ceiling; 1: one beyond, if needed; 2: any distance, in the failsafe only


def round_family(
    tables: Real, family: Family, *, passes: Sequence[Sequence[Groups]] = (), labels: Sequence[str] = ()
) -> Rounded:
    """Round tables to the nearest whole numbers that keep all constraints exactly (Abowd et al. 2022, section 6).

    Guarantee: if all queries in constraints and passes together are nested, the distance is the smallest of all
    roundings to the number below or above. The notes of the module have the proof (two nested families: Edmonds,
    "Submodular functions, matroids, and certain polyhedra", 1970).

    If the target answer is between two whole numbers, its cost is replaced by the chord over that interval. The cost at
    whole numbers is the same, and the linear program has no reason to choose a fractional answer. The Census Bureau
    rounds the target first, which also works, but loses which of both numbers is nearer.
    """
    real = np.asarray(tables, np.float64)
    odd = real[~((real >= -NEGATIVE) & (real < np.inf))]
    if odd.size:
        raise ValueError(f"tables must be finite and not negative, got {odd[0]:.6g}")
    near = np.rint(real)
    x = np.maximum(np.where(np.abs(real - near) <= TOLERANCE, near, real), 0.0)
    integral = _in_whole_numbers(family)
    for candidate, route in _without_solver(x, integral, bool(passes)):
        if not check(candidate, integral):
            return Rounded(candidate, route)
    route = "linear"
    for reach in range(2 if family.slack is None else 3):
        rounded, branched = _by_program(x, integral, passes, reach)
        if branched:
            route = "integer"
        if rounded is not None:
            return Rounded(rounded, route, reach)
    raise Infeasible(conflict(integral, labels=labels) or ())


def _in_whole_numbers(family: Family) -> Family:
    """Return the family with bounds moved inwards to whole numbers."""
    boxes = (
        replace(box, lower=np.ceil(box.lower - TOLERANCE), upper=np.floor(box.upper + TOLERANCE))
        for box in family.boxes
    )
    slack = None if family.slack is None else 2 * np.floor(family.slack / 2 + TOLERANCE)
    return replace(family, boxes=tuple(boxes), slack=slack)


def _without_solver(x: Real, family: Family, in_passes: bool) -> Iterator[tuple[Counts, str]]:
    """Yield candidate tables that are optimal if they keep all constraints."""
    floor = np.floor(x).astype(np.int64)
    part = x - floor
    free = family.margin is not None
    if family.parent is not None and family.parts == 1 and not free:
        yield family.parent[None].astype(np.int64), "copy"
    elif not part.any():
        yield floor, "copy"
    elif not in_passes and not free:
        if family.parent is not None:
            ups, axis = family.parent - floor.sum(axis=0), 0
        else:
            totals = [box for box in family.boxes if box.lower.shape[1] == 1]
            low = np.max([box.lower[:, 0] for box in totals], axis=0, initial=0.0)
            high = np.min([box.upper[:, 0] for box in totals], axis=0, initial=np.inf)
            fixed, axis = floor.sum(axis=1), 1
            ups = np.clip(np.sum(part > 0.5, axis=1), low - fixed, high - fixed).astype(np.int64)
        if ((ups >= 0) & (ups <= np.sum(part > 0, axis=axis))).all():
            yield floor + _largest(part, ups, axis), "remainder"


def _largest(part: Real, ups: Counts, axis: int) -> NDArray[np.bool_]:
    order = np.argsort(-part, axis=axis, kind="stable")
    up = np.zeros(part.shape, np.bool_)
    ranks = np.expand_dims(np.arange(part.shape[axis]), 1 - axis)
    np.put_along_axis(up, order, ranks < np.expand_dims(ups, axis), axis=axis)
    return up


def _by_program(x: Real, family: Family, passes: Sequence[Sequence[Groups]], reach: int) -> tuple[Counts | None, bool]:
    """Return the best tables within `reach` (see `Rounded`), or None, and whether a vertex was fractional."""
    n, floor = x.size, np.floor(x).ravel()
    part = x.ravel() - floor
    low, high = (
        (np.zeros(n), (part > 0).astype(np.float64)),
        (-np.minimum(floor, 1.0), np.full(n, 2.0)),
        (-floor, np.full(n, np.inf)),
    )[reach]
    open_cells = np.flatnonzero(high > low)
    m = open_cells.size
    if not m:
        return None, False
    rules = system(family)
    extra = rules.matrix.shape[1] - n
    base = rules.matrix @ np.append(floor, np.zeros(extra))
    columns = np.append(open_cells, n + np.arange(extra))
    rows, lower, upper = rules.matrix[:, columns], rules.lower - base, rules.upper - base
    box = np.vstack([np.column_stack([low, high])[open_cells], np.tile([0.0, np.inf], (extra, 1))])
    branched, b = False, np.zeros(m)
    for queries in passes or ((np.arange(family.cells),),):
        query = below(*(tally(groups, family.parts) for groups in queries))
        answers = query[:, open_cells]
        program = _with_distances(rows, lower, upper, box, answers, query @ part)
        solution = solve(*program)
        if solution is not None and np.abs(solution[:m] - np.rint(solution[:m])).max() > TOLERANCE:
            branched, solution = True, solve(*program, integers=m)
        if solution is None:
            return None, branched
        b = np.rint(solution[:m])
        values = answers @ b
        rows, lower, upper = below(rows, answers), np.append(lower, values), np.append(upper, values)
    floor[open_cells] += b
    return floor.astype(np.int64).reshape(x.shape), branched


def _with_distances(
    rows: Any, lower: Real, upper: Real, box: Real, answers: Any, target: Real
) -> tuple[Real, Any, Real, Real, Real]:
    """Return the arguments of `solve` for the program that keeps the rows and minimizes answers' distance to a target.

    An answer is ``floor(target) + step + above - below``; the step, at most 1, has the chord's cost. A variable with
    bounds 0 and 1 is its own step.
    """
    chord = 1 - 2 * (target - np.floor(target))
    size = np.diff(answers.indptr)
    single = size == 1
    single[single] = np.all(box[answers.indices[answers.indptr[:-1][single]]] == (0, 1), axis=1)
    cost = np.bincount(answers.indices[answers.indptr[:-1][single]], chord[single], len(box))
    some = np.flatnonzero(~single & (size > 0))
    floor, ones = np.floor(target[some]), np.ones(some.size)
    most = np.concatenate([ones, np.full(2 * some.size, np.inf)])
    pieces = sparse.csr_array(
        (np.concatenate([-ones, -ones, ones]), np.tile(len(lower) + np.arange(some.size), 3), np.arange(most.size + 1)),
        shape=(most.size, len(lower) + some.size),
    )
    return (
        np.concatenate([cost, chord[some], ones, ones]),
        below(below(rows, answers[some]).T.tocsr(), pieces).T.tocsr(),
        np.append(lower, floor),
        np.append(upper, floor),
        np.vstack([box, np.column_stack([np.zeros(most.size), most])]),
    )


def check(tables: Counts, family: Family, *, labels: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the constraints that tables break."""
    broken = ["negative"] if (tables < 0).any() else []
    if family.parent is not None:
        gap = tables.sum(axis=0) - family.parent
        if (gap if family.margin is None else answer(family.margin, gap)).any():
            broken.append(PARENT)
        if family.slack is not None and np.abs(gap).sum() > family.slack + TOLERANCE:
            broken.append(SLACK)
    for box in family.boxes:
        sums = answer(box.groups, tables)
        single = sums.shape[1] == 1
        for part, group in np.argwhere((sums < box.lower - TOLERANCE) | (sums > box.upper + TOLERANCE)).tolist():
            lower, upper = box.lower[part, group], box.upper[part, group]
            under = sums[part, group] < lower
            relation = "=" if lower == upper else ">=" if under else "<="
            bound, at = lower if under else upper, -1 if single else group
            broken.append(named(box.name, relation, bound, part, at, labels, box.labels))
    return tuple(broken)
