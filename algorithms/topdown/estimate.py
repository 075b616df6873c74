"""From noisy measurements to tables: level by level, each area's table is split over its parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.topdown.estimation import batched, linear, quadratic, rounding
from algorithms.topdown.estimation.constraints import Constraint, GroupedTotal, broken
from algorithms.topdown.estimation.family import Box, Family, Fit, Groups, Solution, answer
from algorithms.topdown.measure import Measurements
from algorithms.topdown.plan import Plan
from audit.io.workers import Workers

__all__ = ["Estimate", "Failure", "estimate"]

Real = NDArray[np.float64]
EXACT = 1e-6  # variances below are as good as none, and weights as far apart as theirs would stall a solver


@dataclass(frozen=True)
class Failure:
    """A family that the solver or the rounder could not solve, and that went through the failsafe.

    Attributes
    ----------
    run : int
        Which run.
    area : str
        The parent, with the areas it lies in below the root.
    reason : str
        What failed, with residuals.
    """

    run: int
    area: str
    reason: str


@dataclass(frozen=True)
class Estimate:
    """Tables of all areas, consistent, and how they came about.

    Attributes
    ----------
    tables : ndarray of int, shape (..., n_nodes, cells)
        Not negative; every area is the sum of its parts. Leading axis: runs.
    real : ndarray of float, shape (..., n_nodes, cells)
        The estimates before rounding, given the rounded parents.
    routes : dict of str to int
        How many families were rounded in which way; see `algorithms.topdown.estimation.rounding`.
    failures : tuple of Failure
        Families that went through the failsafe.
    primal, dual : float
        Largest residuals of all solutions: see `algorithms.topdown.estimation.family.Solution`.
    """

    tables: NDArray[np.int64]
    real: Real
    routes: dict[str, int]
    failures: tuple[Failure, ...]
    primal: float
    dual: float

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.tables, dtype=dtype, copy=copy)


class _NotConverged(Exception):
    """A solver that stopped before its tolerance."""


@dataclass(frozen=True)
class _Split:
    """What became of one family."""

    tables: NDArray[np.int64]
    real: Real
    route: str
    primal: float
    dual: float
    failure: str = ""


@dataclass(frozen=True)
class _Options:
    """How one family is solved."""

    passes: tuple[tuple[str, ...], ...]
    rounding: tuple[tuple[Groups, ...], ...]
    margins: tuple[Groups, ...]  # queries on which the parent binds in the failsafe, tried in this order
    tolerance: float | None
    slack: float


@dataclass(frozen=True)
class _Level:
    """All families of one level, side by side, for all runs."""

    parents: NDArray[np.int64]  # nodes, shape (families,); -1 above the root
    starts: NDArray[np.int64]  # first child of each family, counted within the level, shape (families + 1,)
    above: NDArray[np.int64] | None  # tables of the parents, shape (runs, families, cells)
    fits: tuple[tuple[str, Groups, Real, Real], ...]  # name, groups, answers (runs, areas, groups), weights (areas,)
    boxes: tuple[Box, ...]
    plan: Plan
    measurements: Measurements

    def family(self, run: int, number: int) -> Family:
        """Cut out the problem of one family in one run."""
        parts = slice(int(self.starts[number]), int(self.starts[number + 1]))
        return Family(
            parts.stop - parts.start,
            self.plan.schema.cells,
            tuple(
                Fit(name, groups, answers[run, parts], weights[parts]) for name, groups, answers, weights in self.fits
            ),
            tuple(replace(box, lower=box.lower[parts], upper=box.upper[parts]) for box in self.boxes),
            () if self.above is None else self.plan.joints(self.measurements.known, int(self.parents[number])),
            None if self.above is None else self.above[run, number],
        )


def estimate(plan: Plan, measurements: Measurements) -> Estimate:
    """Turn noisy measurements, of one run or several, into tables that keep every constraint.

    It sees noisy answers, invariants and public structure, so whatever it does is post-processing. Constraints that
    conflict, at the root or in a family even in the failsafe, are named in a `ValueError`; a solver that does not
    converge without a failsafe is a `RuntimeError`.

    References
    ----------
    .. [1] Abowd et al., "The 2020 Census Disclosure Avoidance System TopDown Algorithm", 2022, section 6.
    """
    leading = _runs(plan, measurements)
    single, runs = leading is None, 1 if leading is None else leading
    constraints, tight = plan.constraints(measurements.known), plan.tightened(measurements.known)
    tables = np.zeros((runs, plan.tree.n_nodes, plan.schema.cells), np.int64)
    real = np.zeros(tables.shape)
    routes: dict[str, int] = {}
    failures: list[Failure] = []
    primal = dual = 0.0
    for j in range(plan.tree.depth + 1):
        level = _level(plan, measurements, tight, j, tables)
        nodes = plan.tree.level(j)
        done = np.zeros((runs, level.parents.size), np.bool_)
        solved = _solve_together(plan, level, j) if plan.solver == "batched" else None
        if solved is not None:
            done, tables[:, nodes] = _round_together(plan, level, solved)
            real[:, nodes] = solved.tables
            routes["remainder"] = routes.get("remainder", 0) + int(done.sum())
            met = solved.converged
            primal, dual = max(primal, solved.primal[met].max(initial=0)), max(dual, solved.dual[met].max(initial=0))
        rest = np.argwhere(~done)
        for (run, number), split in zip(rest, _solve_apart(plan, level, j, rest, solved), strict=True):
            parts = slice(int(nodes.start + level.starts[number]), int(nodes.start + level.starts[number + 1]))
            tables[run, parts], real[run, parts] = split.tables, split.real
            routes[split.route] = routes.get(split.route, 0) + 1
            primal, dual = max(primal, split.primal), max(dual, split.dual)
            if split.failure:
                failures.append(Failure(int(run), plan.tree.name(int(level.parents[number])), split.failure))
    tables = plan.tables(tables[:, plan.tree.leaves])  # above a failsafe an area is what its parts became
    for constraint in constraints:
        if words := broken(constraint, tables, plan.tree):
            raise RuntimeError(f"the tables must keep every constraint, and break {words}")
    first = 0 if single else slice(None)
    return Estimate(tables[first], real[first], routes, tuple(failures), primal, dual)


def _runs(plan: Plan, measurements: Measurements) -> int | None:
    """Return the number of runs, None for one without a leading axis; refuse measurements of another plan."""
    leading = set()
    for j, queries in enumerate(plan.queries):
        areas = plan.tree.offsets[j + 1] - plan.tree.offsets[j]
        for query in queries:
            found = measurements.noisy.get((j, query.name))
            shape = None if found is None else np.shape(found.answers)
            if shape is None or len(shape) not in (2, 3) or shape[-2:] != (areas, query.size):
                wanted = f"{areas} areas by {query.size} answers of {query.name} at level {j}"
                raise ValueError(f"measurements must have {wanted}, got {shape}")
            leading.add(shape[:-2])
    if len(leading) > 1:
        raise ValueError(f"measurements must all have the same runs, got {sorted(leading)}")
    names = {str(invariant) for invariant in plan.invariants}
    if missing := sorted(names - set(measurements.known)):
        raise ValueError(f"measurements must have the answers of every invariant, and not of {missing[0]}")
    (runs,) = leading
    return runs[0] if runs else None


def _level(
    plan: Plan, measurements: Measurements, constraints: Sequence[Constraint], j: int, tables: NDArray[np.int64]
) -> _Level:
    nodes = plan.tree.level(j)
    if j == 0:
        parents, starts, above = np.array([-1]), np.array([0, 1]), None
    else:
        parents = np.unique(plan.tree.parent[nodes])
        starts = np.append(plan.tree.starts[parents], nodes.stop) - nodes.start
        above = tables[:, parents]
    fits = []
    for query in plan.queries[j]:
        noisy = measurements.noisy[j, query.name]
        answers = noisy.answers if noisy.answers.ndim == 3 else noisy.answers[np.newaxis]
        fits.append((query.name, query.groups, answers.astype(np.float64), 1 / np.maximum(noisy.variance, EXACT)))
    boxes = tuple(box for constraint in constraints if (box := constraint.box(nodes)) is not None)
    return _Level(parents, starts.astype(np.int64), above, tuple(fits), boxes, plan, measurements)


def _options(plan: Plan, j: int) -> _Options:
    passes = (plan.passes or {}).get(j) or [[query.name for query in plan.queries[j]]]
    return _Options(
        tuple(map(tuple, passes)),
        tuple(tuple(plan.schema.query(name).groups for name in names) for names in plan.rounding),
        () if plan.minimal is None else (_kept(plan, j, plan.minimal), _kept(plan, j, "total")),
        plan.tolerance,
        plan.slack,
    )


def _kept(plan: Plan, j: int, query: str) -> Groups:
    """Return what a query and all constraints stated above a level tell apart: on that the failsafe keeps the parent.

    Constraints stated at the level or below it bind the parts themselves, and so their sum.
    """
    stated = [one.query if not isinstance(one, GroupedTotal) else "total" for one in plan.invariants if one.level < j]
    stated += [bounds.query for bounds in plan.bounds if bounds.level < j]
    groups = np.array([plan.schema.query(name).groups for name in [query, *stated]])
    return np.unique(groups, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _solve_together(plan: Plan, level: _Level, j: int) -> batched.LevelSolution:
    """Solve all families of all runs at once.

    Between two passes no linear program is needed: the tables of the first pass keep every constraint, so the smallest
    tolerance around their answers is zero.
    """
    boxes = [batched.LevelBox(box.groups, box.lower, box.upper) for box in level.boxes]
    passes = _options(plan, j).passes
    met = np.ones((), np.bool_)
    for number, names in enumerate(passes, start=1):
        fits = [
            batched.LevelFit(groups, answers, weights) for name, groups, answers, weights in level.fits if name in names
        ]
        solved = batched.solve_level(level.above, level.starts, fits, boxes, **_tolerance(plan.tolerance))
        met = met & solved.converged  # what an earlier pass missed, a later one must not hide
        for fit in fits if number < len(passes) else []:
            values = answer(fit.groups, solved.tables)
            boxes.append(batched.LevelBox(fit.groups, np.maximum(values - plan.slack, 0), values + plan.slack))
    return replace(solved, converged=met)


def _round_together(
    plan: Plan, level: _Level, solved: batched.LevelSolution
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Round all families by largest remainders, and say for which that is all there is to do."""
    rounded = batched.largest_remainder(solved.tables, level.above, level.starts)
    if plan.rounding:
        return np.zeros_like(solved.converged), rounded
    kept = np.ones(rounded.shape[:2], np.bool_)
    for box in level.boxes:
        answers = answer(box.groups, rounded)
        kept &= ((answers >= box.lower) & (answers <= box.upper)).all(axis=-1)
    done = solved.converged & np.logical_and.reduceat(kept, level.starts[:-1], axis=1)
    if level.above is not None:
        free = [not plan.joints(level.measurements.known, int(parent)) for parent in level.parents]
        done &= np.array(free)
    return done, rounded


def _solve_apart(
    plan: Plan, level: _Level, j: int, which: NDArray[np.int64], solved: batched.LevelSolution | None
) -> Iterator[_Split]:
    """Solve families one by one, several at a time."""
    options, nodes = _options(plan, j), plan.tree.level(j)
    tasks = []
    for run, number in which:
        parts = slice(int(level.starts[number]), int(level.starts[number + 1]))
        family = level.family(int(run), int(number))
        usable = solved is not None and solved.converged[run, number] and not family.joints
        real = solved.tables[run, parts] if solved is not None and usable else None
        labels = [plan.tree.name(node) for node in range(nodes.start + parts.start, nodes.start + parts.stop)]
        tasks.append((family, options, labels, real))
    splits = dict(Workers(_split_apart, plan.n_jobs).finished(tasks))
    yield from (splits[number] for number in range(len(tasks)))


def _split_apart(task: tuple[Family, _Options, Sequence[str], Real | None]) -> _Split:
    return _split(*task)


def _split(family: Family, options: _Options, labels: Sequence[str], real: Real | None) -> _Split:
    """Solve one family: fit, round, check; and the failsafe where that does not work."""
    primal = dual = 0.0
    try:
        if real is None:
            real, primal, dual = _fit(family, options, labels)
        rounded = rounding.round_family(real, family, passes=options.rounding, labels=labels)
        if not (wrong := rounding.check(rounded.tables, family, labels=labels)):
            route = f"{rounded.route}, beyond floor and ceiling" if rounded.reach else rounded.route
            return _Split(rounded.tables, real, route, primal, dual)
        failure = f"rounding breaks {wrong[0]}"
    except linear.Infeasible as error:
        failure = str(error)
    except _NotConverged as error:
        names = linear.conflict(family, labels=labels)
        failure = f"{'; '.join(names)} conflict" if names else str(error)
    if family.parent is None or not options.margins:
        if names := linear.conflict(family, labels=labels):
            raise ValueError(f"no tables keep all constraints of {', '.join(labels[:3])}: {'; '.join(names)} conflict")
        raise RuntimeError(f"{failure}, and there is no failsafe for {', '.join(labels[:3])}")
    for margin in options.margins:
        try:
            relaxed = linear.failsafe(family, margin, labels=labels)
        except linear.Infeasible as error:
            conflict = str(error)
            continue
        solution = quadratic.solve(relaxed, **_tolerance(options.tolerance))
        if not solution.converged:
            raise RuntimeError(f"{failure}, and neither does the failsafe: {_residuals(solution)}")
        rounded = rounding.round_family(solution.tables, relaxed, labels=labels)
        return _Split(rounded.tables, solution.tables, "failsafe", solution.primal, solution.dual, failure)
    raise ValueError(
        f"no tables keep the constraints of {', '.join(labels[:3])}, not in the failsafe either: {conflict}"
    )


def _fit(family: Family, options: _Options, labels: Sequence[str]) -> tuple[Real, float, float]:
    """Fit the measurements, in one pass or several."""
    held = family
    primal = dual = 0.0
    for number, names in enumerate(options.passes, start=1):
        fits = tuple(fit for fit in family.fits if fit.name in names)
        solution = quadratic.solve(replace(held, fits=fits), **_tolerance(options.tolerance))
        if not solution.converged:
            raise _NotConverged(f"the solver does not converge: {_residuals(solution)}")
        primal, dual = max(primal, solution.primal), max(dual, solution.dual)
        if number < len(options.passes):
            targets = [(fit.groups, answer(fit.groups, solution.tables)) for fit in fits]
            off = linear.smallest_tolerance(held, targets, labels=labels) + options.slack
            bands = [
                Box(f"{fit.name} of an earlier pass", groups, np.maximum(values - off, 0), values + off)
                for fit, (groups, values) in zip(fits, targets, strict=True)
            ]
            held = replace(held, boxes=(*held.boxes, *bands))
    return solution.tables, primal, dual


def _residuals(solution: Solution) -> str:
    return f"residuals {solution.primal:.2g} (people) and {solution.dual:.2g} after {solution.iterations} iterations"


def _tolerance(value: float | None) -> dict[str, Any]:
    return {} if value is None else {"tolerance": value}
