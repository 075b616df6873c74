"""Solution of one family by itself: fit, round, check, and use the failsafe if that fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from algorithms.topdown.estimation import linear, quadratic, rounding
from algorithms.topdown.estimation.constraints import Bounds, Invariant
from algorithms.topdown.estimation.family import Box, Family, Groups, Solution, answer
from algorithms.topdown.plan import Plan

__all__ = ["BETWEEN_PASSES", "Options", "Split", "split"]

Real = NDArray[np.float64]
BETWEEN_PASSES = 0.1
"""People added to the smallest tolerance between two passes, as in the Bureau's code."""


class _NotConverged(Exception):
    """A solver stopped before it reached its tolerance."""


@dataclass(frozen=True)
class Split:
    """Result of one family."""

    tables: NDArray[np.int64]  # whole numbers that keep all constraints, shape (parts, cells)
    real: Real  # tables before rounding
    route: str  # see `rounding.Rounded`
    primal: float  # residuals of the solution
    dual: float
    failure: str = ""  # reason for the failsafe, if it was used


@dataclass(frozen=True)
class Options:
    """Options by which a family is solved."""

    passes: tuple[tuple[str, ...], ...]  # queries fitted in each pass
    rounding: tuple[tuple[Groups, ...], ...]  # nested queries whose rounding error is minimized, pass by pass
    margins: tuple[Groups, ...]  # queries on which the failsafe keeps the parent, tried in order; none: no failsafe

    @classmethod
    def at(cls, plan: Plan, level: int) -> Options:
        """Return the options of a plan for the families of a level."""
        passes = (plan.passes or {}).get(level) or [[query.name for query in plan.queries[level]]]
        rounded = tuple(tuple(plan.schema.query(name).groups for name in names) for names in plan.rounded(level))
        margins = () if plan.minimal is None else tuple(_kept(plan, level, name) for name in (plan.minimal, "total"))
        return cls(tuple(map(tuple, passes)), rounded, margins)


def _kept(plan: Plan, level: int, query: str) -> Groups:
    """Return the common refinement of a query and all constraints above a level; the failsafe keeps parents on it."""
    stated: list[Invariant | Bounds] = [*plan.invariants, *plan.bounds]
    names = [query, *(constraint.query for constraint in stated if constraint.level < level)]
    groups = np.array([plan.schema.query(name).groups for name in names])
    return np.unique(groups, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


def split(family: Family, options: Options, labels: Sequence[str], real: Real | None) -> Split:
    """Split the table of an area over its parts: fit (or use `real`), round, check; use the failsafe if that fails."""
    primal = dual = 0.0
    try:
        if real is None:
            real, primal, dual = _fit(family, options, labels)
        rounded = rounding.round_family(real, family, passes=options.rounding, labels=labels)
        if not (wrong := rounding.check(rounded.tables, family, labels=labels)):
            route = f"{rounded.route}, beyond floor and ceiling" if rounded.reach else rounded.route
            return Split(rounded.tables, real, route, primal, dual)
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
        solution = quadratic.solve(relaxed)
        if not solution.converged:
            raise RuntimeError(f"{failure}, and neither does the failsafe: {_residuals(solution)}")
        rounded = rounding.round_family(solution.tables, relaxed, labels=labels)
        return Split(rounded.tables, solution.tables, "failsafe", solution.primal, solution.dual, failure)
    raise ValueError(
        f"no tables keep the constraints of {', '.join(labels[:3])}, not in the failsafe either: {conflict}"
    )


def _fit(family: Family, options: Options, labels: Sequence[str]) -> tuple[Real, float, float]:
    bounded = family
    primal = dual = 0.0
    for number, names in enumerate(options.passes, start=1):
        fits = tuple(fit for fit in family.fits if fit.name in names)
        solution = quadratic.solve(replace(bounded, fits=fits))
        if not solution.converged:
            raise _NotConverged(f"the solver does not converge: {_residuals(solution)}")
        primal, dual = max(primal, solution.primal), max(dual, solution.dual)
        if number < len(options.passes):
            targets = [(fit.groups, answer(fit.groups, solution.tables)) for fit in fits]
            off = linear.smallest_tolerance(bounded, targets, labels=labels) + BETWEEN_PASSES
            bands = [
                Box(f"{fit.name} of an earlier pass", groups, np.maximum(values - off, 0), values + off)
                for fit, (groups, values) in zip(fits, targets, strict=True)
            ]
            bounded = replace(bounded, boxes=(*bounded.boxes, *bands))
    return solution.tables, primal, dual


def _residuals(solution: Solution) -> str:
    return f"residuals {solution.primal:.2g} (people) and {solution.dual:.2g} after {solution.iterations} iterations"
