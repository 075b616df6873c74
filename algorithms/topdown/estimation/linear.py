"""Linear programs on a family's constraints: what conflicts, the smallest tolerance, how far a parent gives.

Everything here is a linear program. None of the questions tells two cells apart that fall into the same groups of all
queries involved, so such cells are merged first: a class of cells can be divided again in proportion to the parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from algorithms.topdown.estimation.family import Family, Groups, answer
from algorithms.topdown.estimation.program import System, below, named, solve, system, tally

__all__ = ["Infeasible", "conflict", "failsafe", "smallest_tolerance"]

Index = NDArray[np.int64]
Real = NDArray[np.float64]
TOLERANCE = 1e-6  # of the solver, in people
SHOWN = 10  # names in a message


class Infeasible(ValueError):
    """No tables keep all constraints.

    Parameters
    ----------
    names : tuple of str
        Constraints that conflict; empty if they do so in whole numbers only.

    Examples
    --------
    >>> print(Infeasible(("total in Rabat >= 7", "parent")))
    no tables keep all of: total in Rabat >= 7; parent
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.names = names

    def __str__(self) -> str:
        if not self.names:
            return "no whole numbers near the solution keep all constraints, although real numbers do"
        more = f"; and {len(self.names) - SHOWN} more" if len(self.names) > SHOWN else ""
        return f"no tables keep all of: {'; '.join(self.names[:SHOWN])}{more}"


def _merged(family: Family, *queries: Groups) -> tuple[Family, list[Groups]]:
    """Return the family, and queries, on classes of cells that no constraint and no query tells apart."""
    margin = () if family.margin is None else (family.margin,)
    classes = np.zeros(family.cells, np.int64)
    for groups in (*(box.groups for box in family.boxes), *margin, *queries):
        classes = np.unique(classes * (int(groups.max()) + 1) + groups, return_inverse=True)[1].reshape(-1)
    one = np.unique(classes, return_index=True)[1]
    small = replace(
        family,
        cells=one.size,
        fits=(),
        boxes=tuple(replace(box, groups=box.groups[one]) for box in family.boxes),
        parent=None if family.parent is None else answer(classes, family.parent).astype(np.int64),
        margin=None if family.margin is None else family.margin[one],
    )
    return small, [groups[one] for groups in queries]


def smallest_tolerance(family: Family, targets: Sequence[tuple[Groups, Real]], *, labels: Sequence[str] = ()) -> float:
    """Return how far answers must stay from their targets at most, if all constraints are kept, in people.

    Targets are queries with the answers wanted of every part, shape (parts, groups); the fits do not matter. It is the
    smallest t for which tables exist with ``|answer - target| <= t``, up to the tolerance of the solver.

    Examples
    --------
    >>> pair = Family(2, 1, (), parent=np.array([10]))
    >>> smallest_tolerance(pair, [(np.array([0]), np.array([[4.0], [7.0]]))])
    0.5
    """
    small, queries = _merged(family, *(groups for groups, _ in targets))
    rules = system(small)
    rows, n = rules.matrix.shape
    answers = [tally(groups, small.parts) for groups in queries]
    wanted = np.concatenate([np.zeros(0), *(values.ravel() for _, values in targets)])
    free = np.full(wanted.size, np.inf)
    distance = np.repeat([0.0, -1.0, 1.0], [rows, wanted.size, wanted.size])[:, None]
    found = solve(
        np.append(np.zeros(n), 1.0),
        sparse.hstack([below(rules.matrix, *answers, *answers), sparse.csr_array(distance)], format="csr"),
        np.concatenate([rules.lower, -free, wanted]),
        np.concatenate([rules.upper, wanted, free]),
        np.tile([0.0, np.inf], (n + 1, 1)),
    )
    if found is None:
        raise Infeasible(conflict(family, labels=labels) or ())
    return max(float(found[-1]), 0.0)


def _clash(matrix: Any, most: Real) -> Index | None:
    """Return rows of ``matrix @ v <= most``, v >= 0, that have no solution; None if all have one.

    With as little violation as possible, the rows that have a price are a certificate: in the sum that the prices
    weigh, nothing is left of the variables but what is not negative, and the bounds add up to less.
    """
    rows, n = matrix.shape
    found = linprog(
        np.repeat([0.0, 1.0], [n, rows]),
        A_ub=sparse.hstack([matrix, -sparse.eye_array(rows)], format="csr"),
        b_ub=most,
        bounds=(0, None),
        method="highs-ds",
    )
    return None if found.fun <= TOLERANCE else np.flatnonzero(found.ineqlin.marginals < -TOLERANCE)


def conflict(family: Family, *, labels: Sequence[str] = ()) -> tuple[str, ...] | None:
    """Return constraints that no tables keep together.

    Examples
    --------
    >>> from algorithms.topdown.estimation.family import Box
    >>> least = Box("persons", np.array([0]), np.array([[6.0], [5.0]]), np.full((2, 1), np.inf))
    >>> conflict(Family(2, 1, (), (least,), parent=np.array([10])), labels=("Rabat", "Fes"))
    ('parent', 'persons in Rabat >= 6', 'persons in Fes >= 5')
    """
    rules = system(_merged(family)[0])
    top, bottom = np.flatnonzero(rules.upper < np.inf), np.flatnonzero(rules.lower > -np.inf)
    matrix = sparse.vstack([rules.matrix[top], -rules.matrix[bottom]], format="csr")
    most = np.concatenate([rules.upper[top], -rules.lower[bottom]])
    if not most.size or (rows := _clash(matrix, most)) is None:
        return None
    names = {row: _name(rules, row, top, bottom, labels) for row in rows}
    for name in dict.fromkeys(names.values()):
        others = np.array([row for row in rows if names[row] != name], np.int64)
        if others.size and (found := _clash(matrix[others], most[others])) is not None:
            rows = others[found]
    by_source = sorted(rows, key=lambda row: np.concatenate([top, bottom])[row])
    return tuple(dict.fromkeys(names[row] for row in by_source))


def _name(rules: System, row: int, top: Index, bottom: Index, labels: Sequence[str]) -> str:
    own, relation = (top[row], "<=") if row < top.size else (bottom[row - top.size], ">=")
    lower, upper = rules.lower[own], rules.upper[own]
    source, part, group = rules.origin[own]
    return named(
        rules.sources[source],
        "=" if lower == upper else relation,
        upper if relation == "<=" else lower,
        part=int(part),
        group=int(group),
        labels=labels,
        groups=rules.groups[source],
    )


def failsafe(family: Family, minimal: Groups, *, labels: Sequence[str] = ()) -> Family:
    """Return a family whose parent gives way cell by cell, as little as it must.

    Units: the slack is in people, the sum over cells of ``|parent - sum of the parts|``. One person in another cell
    counts twice, so the smallest slack is even where all bounds are whole and queries are nested.

    References
    ----------
    .. [1] US Census Bureau, 2020 Disclosure Avoidance System, 2018 end-to-end test: backup feasibility optimization.

    Examples
    --------
    >>> from algorithms.topdown.estimation.family import Box
    >>> least = Box("persons", np.array([0, 1]), np.array([[4.0, 0.0]]), np.full((1, 2), np.inf))
    >>> failsafe(Family(1, 2, (), (least,), parent=np.array([3, 2])), np.array([0, 0])).slack
    3.0
    """
    loose = replace(family, margin=minimal, slack=np.inf)
    small, _ = _merged(loose)
    rules = system(small)
    n = rules.matrix.shape[1]
    excess = np.repeat([0.0, 1.0], [n - small.cells, small.cells])
    found = solve(excess, rules.matrix, rules.lower, rules.upper, np.tile([0.0, np.inf], (n, 1)))
    if found is None:
        raise Infeasible(conflict(loose, labels=labels) or ())
    least = 2 * float(excess @ found)
    return replace(loose, slack=(round(least) if abs(least - round(least)) <= TOLERANCE else least) + 1.0)
