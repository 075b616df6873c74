"""Estimation of tables from noisy measurements: level by level, each area's table is split over its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.release.spilled import Spilled
from algorithms.topdown.estimation import batched
from algorithms.topdown.estimation.constraints import Constraint, broken
from algorithms.topdown.estimation.family import Box, Family, Fit, LevelSolution, answer
from algorithms.topdown.estimation.splitting import BETWEEN_PASSES, Options, Split, split
from algorithms.topdown.measure import Key, Measured, Measurements
from algorithms.topdown.plan import Known, Plan
from audit.io.workers import Workers

__all__ = [
    "Estimate",
    "Failure",
    "Outcome",
    "Part",
    "apply_failsafe_gaps",
    "check_kept",
    "estimate",
    "estimated",
    "stored_tables",
]

Counts = NDArray[np.int64]
Real = NDArray[np.float64]
Above = Callable[[slice], Counts]  # tables of some areas of the level above, shape (runs, areas, cells)
EXACT = 1e-6  # smallest variance in weights: smaller ones would give weights too far apart for a solver
PARTS = {"piqp": 2**21, "batched": 2**18}
"""Counts estimated at a time: 16 MiB family by family; 2 MiB in batches, which need ten times their size."""
TABLES = "tables"  # stored tables have this name with their level


@dataclass(frozen=True)
class Failure:
    """A family for which solver or rounding failed, so that the failsafe was used."""

    run: int
    area: str  # path of the parent below the root
    reason: str  # description of the failure, with residuals


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Statistics of an estimation."""

    routes: Mapping[str, int]  # number of families by rounding method: see `rounding.Rounded`
    failures: tuple[Failure, ...] = ()
    primal: float = 0.0  # largest residuals of all solutions: see `family.Solution`
    dual: float = 0.0

    def and_of(self, other: Outcome) -> Outcome:
        """Return the joint outcome of both."""
        routes = {
            name: self.routes.get(name, 0) + other.routes.get(name, 0) for name in {**self.routes, **other.routes}
        }
        primal, dual = max(self.primal, other.primal), max(self.dual, other.dual)
        return Outcome(routes=routes, failures=self.failures + other.failures, primal=primal, dual=dual)


@dataclass(frozen=True, kw_only=True)
class Estimate(Outcome):
    """Tables of all areas, shape (..., n_nodes, cells), runs first: nonnegative; each area is the sum of its parts."""

    tables: Counts
    real: Real  # tables before rounding, given the rounded parents

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.tables, dtype=dtype, copy=copy)


@dataclass(frozen=True, kw_only=True)
class Part(Outcome):
    """Estimated families of one level, shape (runs, areas, cells). A gap is the sum of the parts minus the parent."""

    level: int
    nodes: slice  # areas of the level
    tables: Counts
    real: Real  # as in `Estimate`
    gaps: tuple[tuple[int, int, Counts], ...]


@dataclass(frozen=True)
class _Families:
    """Consecutive families of one level, for all runs."""

    plan: Plan
    level: int
    first: int  # node of the first area
    parents: Counts  # nodes, shape (families,); -1 above the root
    starts: Counts  # first child of each family, counted from the first area, shape (families + 1,)
    above: Counts | None  # tables of the parents, shape (runs, families, cells)
    fits: tuple[Fit, ...]  # measurements of all runs
    heaviest: Mapping[str, float]  # largest weight of each query in the whole level
    boxes: tuple[Box, ...]

    def family(self, run: int, number: int) -> Family:
        parts = slice(int(self.starts[number]), int(self.starts[number + 1]))
        return Family(
            parts.stop - parts.start,
            self.plan.schema.cells,
            tuple(replace(fit, answers=fit.answers[run, parts], weights=fit.weights[parts]) for fit in self.fits),
            tuple(box.of(parts) for box in self.boxes),
            None if self.above is None else self.above[run, number],
        )


def estimate(plan: Plan, measurements: Measurements) -> Estimate:
    """Estimate tables that keep every constraint from noisy measurements of one run or more [Abowd et al. 2022, 6].

    This is post-processing: it reads only noisy answers, invariants and public structure. A `ValueError` names
    constraints that conflict at the root, or in a family even with the failsafe.
    """
    leading = measurements.runs(plan)
    runs = 1 if leading is None else leading
    tables = np.empty((runs, plan.tree.n_nodes, plan.schema.cells), np.int64)
    real, outcome = np.empty(tables.shape), Outcome(routes={})
    for part in estimated(plan, measurements.known, [measurements.noisy] * (plan.tree.depth + 1), runs=runs):
        tables[:, part.nodes], real[:, part.nodes] = part.tables, part.real
        apply_failsafe_gaps(plan.tree, tables, part)
        outcome = outcome.and_of(part)
    check_kept(plan, plan.constraints(measurements.known), tables, slice(0, plan.tree.n_nodes))
    first = 0 if leading is None else slice(None)
    return Estimate(tables=tables[first], real=real[first], **vars(outcome))


def estimated(
    plan: Plan, known: Known, levels: Iterable[Mapping[Key, Measured]], *, runs: int = 1, spilled: Spilled | None = None
) -> Iterator[Part]:
    """Estimate level by level, from the root down, some families at a time.

    `levels` yields the measurements of each level, drawn when they are needed. Only the tables of the previous level
    are in memory. With `spilled`, for one run, the tables of all levels are written there instead.
    """
    tight = plan.tightened(known)
    above: Above | None = None
    for level, noisy in enumerate(levels):
        tables = []
        for families in _families(plan, tight, level, noisy, above, runs):
            part = _estimated(families, runs)
            if spilled is not None:
                spilled.append((TABLES, level), part.tables)
            elif level < plan.tree.depth:
                tables.append(part.tables)
            yield part
        if spilled is not None:
            above = partial(stored_tables, plan, spilled, level)
        elif tables:
            above = partial(_of_areas, np.concatenate(tables, axis=1))


def stored_tables(plan: Plan, spilled: Spilled, level: int, areas: slice) -> Counts:
    """Return the tables of some areas of a level before failsafe gaps are added, shape (1, areas, cells)."""
    cells = plan.schema.cells
    return spilled.read((TABLES, level), areas.start * cells, areas.stop * cells).reshape(1, -1, cells)


def _of_areas(tables: Counts, areas: slice) -> Counts:
    return tables[:, areas]


def apply_failsafe_gaps(tree: Hierarchy, tables: Counts | MutableMapping[tuple[int, int], Counts], part: Part) -> None:
    """Add each failsafe's surplus to all areas above it, in tables by run and node, in place."""
    for run, parent, gap in part.gaps:
        node = parent
        while node >= 0:
            tables[run, node] += gap
            node = int(tree.parent[node])


def check_kept(plan: Plan, constraints: Sequence[Constraint], tables: Counts, nodes: slice) -> None:
    """Raise an error if tables of some areas, shape (runs, areas, cells), break a constraint: a bug of estimation."""
    for constraint in constraints:
        if words := broken(constraint, answer(constraint.query.groups, tables), plan.tree, nodes):
            raise RuntimeError(f"the tables must keep every constraint, and break {words}")


def _families(
    plan: Plan, constraints: Sequence[Constraint], j: int, noisy: Mapping[Key, Measured], above: Above | None, runs: int
) -> Iterator[_Families]:
    """Divide a level into groups of consecutive families, as large as `PARTS` allows, at least one family each."""
    nodes = plan.tree.level(j)
    parents, starts = np.array([-1]), np.array([0, 1])
    if above is not None:
        parents = np.unique(plan.tree.parent[nodes])
        starts = np.append(plan.tree.starts[parents], nodes.stop) - nodes.start
        places = parents - plan.tree.level(j - 1).start
    measurements = [(query, noisy[j, query.name]) for query in plan.queries[j]]
    weights = {query.name: 1 / np.maximum(measured.variance, EXACT) for query, measured in measurements}
    heaviest = {name: float(weight.max()) for name, weight in weights.items()}
    boxes = [box for constraint in constraints if (box := constraint.box(nodes)) is not None]
    cuts = 1 + np.flatnonzero(np.diff(starts[:-1] * runs * plan.schema.cells // PARTS[plan.solver]))
    for first, stop in pairwise([0, *cuts.tolist(), parents.size]):
        areas, of_parents = slice(int(starts[first]), int(starts[stop])), None
        if above is not None:  # parents, without areas that have no parts
            span = slice(int(places[first]), int(places[stop - 1]) + 1)
            of_parents = above(span)[:, places[first:stop] - span.start]
        yield _Families(
            plan,
            j,
            nodes.start + areas.start,
            parents[first:stop],
            (starts[first : stop + 1] - areas.start).astype(np.int64),
            of_parents,
            tuple(
                Fit(
                    query.name,
                    query.groups,
                    measured.of(areas).reshape(runs, -1, query.size).astype(np.float64),
                    weights[query.name][areas],
                )
                for query, measured in measurements
            ),
            heaviest,
            tuple(box.of(areas) for box in boxes),
        )


def _estimated(families: _Families, runs: int) -> Part:
    """Estimate some families: with solver "batched" all together, then one by one those that are not done."""
    plan, starts = families.plan, families.starts
    shape = (runs, int(starts[-1]), plan.schema.cells)
    done = np.zeros((runs, families.parents.size), np.bool_)
    tables, real = np.empty(shape, np.int64), np.empty(shape)
    solved = None
    outcome, gaps = Outcome(routes={}), []
    if plan.solver == "batched":
        solved = _solve_together(families)
        done, tables = _round_together(families, solved)
        real, met = solved.tables, solved.converged
        worst = (float(each[met].max(initial=0)) for each in (solved.primal, solved.dual))
        outcome = Outcome(routes={"remainder": int(done.sum())}, primal=next(worst), dual=next(worst))
    rest = np.argwhere(~done)
    for (run, number), result in zip(rest, _solve_apart(families, rest, solved), strict=True):
        parts, parent = slice(int(starts[number]), int(starts[number + 1])), int(families.parents[number])
        tables[run, parts], real[run, parts] = result.tables, result.real
        own = Outcome(routes={result.route: 1}, primal=result.primal, dual=result.dual)
        if result.failure and families.above is not None:
            own = replace(own, failures=(Failure(int(run), plan.tree.name(parent), result.failure),))
            gaps.append((int(run), parent, result.tables.sum(axis=0) - families.above[run, number]))
        outcome = outcome.and_of(own)
    nodes = slice(families.first, families.first + shape[1])
    return Part(level=families.level, nodes=nodes, tables=tables, real=real, gaps=tuple(gaps), **vars(outcome))


def _solve_together(families: _Families) -> LevelSolution:
    """Solve families in all runs at once; earlier passes can be kept exactly, so the smallest tolerance is 0."""
    plan = families.plan
    boxes, met = list(families.boxes), np.ones((), np.bool_)
    passes = Options.at(plan, families.level).passes
    for number, names in enumerate(passes, start=1):
        fits = [fit for fit in families.fits if fit.name in names]
        heaviest = max((families.heaviest[name] for name in names), default=0.0)
        solved = batched.solve_level(families.above, families.starts, fits, boxes, heaviest=heaviest)
        met = met & solved.converged  # every pass must converge
        for fit in fits if number < len(passes) else []:
            values = answer(fit.groups, solved.tables)
            lower = np.maximum(values - BETWEEN_PASSES, 0)
            boxes.append(Box(fit.name, fit.groups, lower, values + BETWEEN_PASSES))
    return solved._replace(converged=met)


def _round_together(families: _Families, solved: LevelSolution) -> tuple[NDArray[np.bool_], Counts]:
    """Round families by largest remainders; return also for which families the result needs no further rounding."""
    rounded = batched.largest_remainder(solved.tables, families.above, families.starts)
    if families.plan.rounded(families.level):
        return np.zeros_like(solved.converged), rounded
    within = np.ones(rounded.shape[:2], np.bool_)
    for box in families.boxes:
        answers = answer(box.groups, rounded)
        within &= ((answers >= box.lower) & (answers <= box.upper)).all(axis=-1)
    return solved.converged & np.logical_and.reduceat(within, families.starts[:-1], axis=1), rounded


def _solve_apart(families: _Families, which: Counts, solved: LevelSolution | None) -> Iterator[Split]:
    plan, options = families.plan, Options.at(families.plan, families.level)
    tasks = []
    for run, number in which:
        parts = slice(int(families.starts[number]), int(families.starts[number + 1]))
        family = families.family(int(run), int(number))
        real = solved.tables[run, parts] if solved is not None and solved.converged[run, number] else None
        labels = [plan.tree.name(families.first + area) for area in range(parts.start, parts.stop)]
        tasks.append((family, options, labels, real))
    splits = dict(Workers(_split_apart, plan.n_jobs).finished(tasks))
    yield from (splits[number] for number in range(len(tasks)))


def _split_apart(task: tuple[Family, Options, Sequence[str], Real | None]) -> Split:
    return split(*task)
