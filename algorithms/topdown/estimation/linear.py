"""Linear programs for conflicting constraints, the smallest tolerance, and the least change of the parent.

Cells that are in the same groups of all queries involved are interchangeable in these problems, so they are merged
first: a class of cells can be divided again in proportion to the parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from algorithms.topdown.estimation.family import Family, Groups, answer

__all__ = [
    "PARENT",
    "SLACK",
    "Infeasible",
    "System",
    "below",
    "conflict",
    "failsafe",
    "named",
    "smallest_tolerance",
    "solve",
    "system",
    "tally",
]

Index = NDArray[np.int64]
Real = NDArray[np.float64]
PARENT, SLACK = "parent", "slack"
TOLERANCE = 1e-6  # tolerance of the solver, in people
SHOWN = 10  # most names in a message


@dataclass(frozen=True)
class System:
    """Constraints as rows, ``lower <= matrix @ v <= upper``, of variables v >= 0: flattened tables, then any slack."""

    matrix: Any  # csr_array, shape (rows, parts * cells + extra)
    lower: Real
    upper: Real
    origin: Index  # shape (rows, 3): index in `sources`, part (-1: several), group (-1: the only one)
    sources: tuple[str, ...]  # names of constraints
    groups: tuple[tuple[str, ...], ...] = ()  # for each source, the names of its groups, if any


def named(
    name: str, relation: str, value: float, part: int, group: int, labels: Sequence[str], groups: Sequence[str]
) -> str:
    """Return the name of a bound in messages; `part` and `group` are -1 if the bound is not on a single one."""
    if name in (PARENT, SLACK):
        return name
    where = "" if part < 0 else f" in {labels[part] if labels else f'part {part}'}"
    which = "" if group < 0 else f", {groups[group] if groups else f'group {group}'}"
    return f"{name}{where}{which} {relation} {value:.12g}"


def tally(groups: Groups, parts: int) -> Any:
    """Return the query of every part as a matrix on flattened tables."""
    size = int(groups.max()) + 1
    rows = (np.arange(parts)[:, None] * size + groups).ravel()
    return _selection(rows, parts * size)


def _selection(rows: Index, n_rows: int) -> Any:
    return sparse.csc_array((np.ones(rows.size), rows, np.arange(rows.size + 1)), shape=(n_rows, rows.size)).tocsr()


def system(family: Family) -> System:
    """Return all constraints of a family, except nonnegativity, as rows."""
    n, cells = family.parts * family.cells, np.tile(np.arange(family.cells), family.parts)
    blocks: list[tuple[str, Any, ArrayLike, ArrayLike, Index]] = []
    labels = {box.name: box.labels for box in family.boxes}
    if family.parent is not None:
        margin = np.arange(family.cells) if family.margin is None else family.margin
        sums = answer(margin, family.parent)
        blocks.append((PARENT, _selection(margin[cells], sums.size), sums, sums, np.full((sums.size, 2), -1)))
    for box in family.boxes:
        bounded = (box.lower > 0) | (box.upper < np.inf)
        where = np.argwhere(bounded)
        if box.lower.shape[1] == 1:
            where[:, 1] = -1
        rows = tally(box.groups, family.parts)[np.flatnonzero(bounded)]
        blocks.append((box.name, rows, box.lower[bounded], box.upper[bounded], where))
    if family.parent is not None and family.slack is not None:
        each, total = sparse.eye_array(family.cells), np.ones((1, family.cells))
        over = sparse.block_array([[_selection(cells, family.cells), -each], [None, total]], format="csr")
        most = np.append(family.parent, family.slack / 2)
        blocks.append((SLACK, over, np.full(most.size, -np.inf), most, np.full((most.size, 2), -1)))
    if not blocks:
        nothing = np.zeros(0)
        return System(sparse.csr_array((0, n)), nothing, nothing, np.zeros((0, 3), np.int64), ())
    sources, matrices, lower, upper, wheres = zip(*blocks, strict=True)
    numbers = np.repeat(np.arange(len(blocks)), [len(where) for where in wheres])
    return System(
        below(*matrices),
        np.concatenate(lower).astype(np.float64),
        np.concatenate(upper).astype(np.float64),
        np.column_stack([numbers, np.concatenate(wheres)]),
        sources,
        tuple(labels.get(source, ()) for source in sources),
    )


def below(*blocks: Any) -> Any:
    """Stack sparse matrices vertically, without the overhead of scipy's general function."""
    sizes = np.concatenate([np.diff(block.indptr) for block in blocks])
    data, indices = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("data", "indices"))
    shape = (sizes.size, max(block.shape[1] for block in blocks))
    return sparse.csr_array((data, indices, np.append(0, np.cumsum(sizes))), shape=shape)


def solve(cost: Real, matrix: Any, lower: Real, upper: Real, bounds: Real, *, integers: int = 0) -> Real | None:
    """Solve a linear program, with the first `integers` variables whole; return None if there is no solution."""
    equal = lower == upper
    top, bottom = np.flatnonzero(~equal & (upper < np.inf)), np.flatnonzero(~equal & (lower > -np.inf))
    sides = matrix[np.append(top, bottom)]
    sides.data[sides.indptr[top.size] :] *= -1
    from scipy.optimize import linprog  # slow to import

    result = linprog(
        cost,
        A_ub=sides,
        b_ub=np.concatenate([upper[top], -lower[bottom]]),
        A_eq=matrix[np.flatnonzero(equal)],
        b_eq=lower[equal],
        bounds=bounds,
        **(
            {"method": "highs", "integrality": np.arange(cost.size) < integers, "options": {"mip_rel_gap": 0.0}}
            if integers
            else {"method": "highs-ds", "options": {"presolve": False}}  # slower for small problems
        ),
    )
    return np.asarray(result.x) if result.status == 0 else None


class Infeasible(ValueError):
    """No tables keep all constraints; `names` are those that conflict, or none if only whole numbers are impossible."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.names = names

    def __str__(self) -> str:
        if not self.names:
            return "no whole numbers near the solution keep all constraints, although real numbers do"
        more = f"; and {len(self.names) - SHOWN} more" if len(self.names) > SHOWN else ""
        return f"no tables keep all of: {'; '.join(self.names[:SHOWN])}{more}"


def _merged(family: Family, *queries: Groups) -> tuple[Family, list[Groups]]:
    """Return the family and queries on classes of cells that are in the same groups of all constraints and queries."""
    margin = () if family.margin is None else (family.margin,)
    classes = np.zeros(family.cells, np.int64)
    for groups in (*(box.groups for box in family.boxes), *margin, *queries):
        classes = np.unique(classes * (int(groups.max()) + 1) + groups, return_inverse=True)[1].reshape(-1)
    first = np.unique(classes, return_index=True)[1]
    small = replace(
        family,
        cells=first.size,
        fits=(),
        boxes=tuple(replace(box, groups=box.groups[first]) for box in family.boxes),
        parent=None if family.parent is None else answer(classes, family.parent).astype(np.int64),
        margin=None if family.margin is None else family.margin[first],
    )
    return small, [groups[first] for groups in queries]


def smallest_tolerance(family: Family, targets: Sequence[tuple[Groups, Real]], *, labels: Sequence[str] = ()) -> float:
    """Return the smallest t, in people, such that some tables keep all constraints and ``|answer - target| <= t``."""
    small, queries = _merged(family, *(groups for groups, _ in targets))
    rules = system(small)
    rows, n = rules.matrix.shape
    answers = [tally(groups, small.parts) for groups in queries]
    goals = np.concatenate([np.zeros(0), *(values.ravel() for _, values in targets)])
    free = np.full(goals.size, np.inf)
    distance = np.repeat([0.0, -1.0, 1.0], [rows, goals.size, goals.size])[:, None]
    solution = solve(
        np.append(np.zeros(n), 1.0),
        sparse.hstack([below(rules.matrix, *answers, *answers), sparse.csr_array(distance)], format="csr"),
        np.concatenate([rules.lower, -free, goals]),
        np.concatenate([rules.upper, goals, free]),
        np.tile([0.0, np.inf], (n + 1, 1)),
    )
    if solution is None:
        raise Infeasible(conflict(family, labels=labels) or ())
    return max(float(solution[-1]), 0.0)


def _clash(matrix: Any, most: Real) -> Index | None:
    """Return rows of ``matrix @ v <= most``, v >= 0, that have no common solution; None if there is a solution.

    The rows with a nonzero dual price at the least total violation are a Farkas certificate: in their sum weighted by
    prices, the coefficients of the variables are nonnegative, and the bound is negative.
    """
    rows, n = matrix.shape
    from scipy.optimize import linprog  # slow to import

    result = linprog(
        np.repeat([0.0, 1.0], [n, rows]),
        A_ub=sparse.hstack([matrix, -sparse.eye_array(rows)], format="csr"),
        b_ub=most,
        bounds=(0, None),
        method="highs-ds",
    )
    return None if result.fun <= TOLERANCE else np.flatnonzero(result.ineqlin.marginals < -TOLERANCE)


def conflict(family: Family, *, labels: Sequence[str] = ()) -> tuple[str, ...] | None:
    """Return the names of constraints that no tables can keep together; None if there is no conflict."""
    rules = system(_merged(family)[0])
    top, bottom = np.flatnonzero(rules.upper < np.inf), np.flatnonzero(rules.lower > -np.inf)
    matrix = sparse.vstack([rules.matrix[top], -rules.matrix[bottom]], format="csr")
    most = np.concatenate([rules.upper[top], -rules.lower[bottom]])
    if not most.size or (rows := _clash(matrix, most)) is None:
        return None
    names = {row: _name(rules, row, top, bottom, labels) for row in rows}
    for name in dict.fromkeys(names.values()):
        others = np.array([row for row in rows if names[row] != name], np.int64)
        if others.size and (clash := _clash(matrix[others], most[others])) is not None:
            rows = others[clash]
    by_source = sorted(rows, key=lambda row: np.concatenate([top, bottom])[row])
    return tuple(dict.fromkeys(names[row] for row in by_source))


def _name(rules: System, row: int, top: Index, bottom: Index, labels: Sequence[str]) -> str:
    own, relation = (top[row], "<=") if row < top.size else (bottom[row - top.size], ">=")
    lower, upper = rules.lower[own], rules.upper[own]
    source, part, group = rules.origin[own].tolist()
    value = upper if relation == "<=" else lower
    relation = "=" if lower == upper else relation
    return named(rules.sources[source], relation, value, part, group, labels, rules.groups[source])


def failsafe(family: Family, minimal: Groups, *, labels: Sequence[str] = ()) -> Family:
    """Return a family whose parts may differ from the parent in cells, as little as needed, but not in `minimal`.

    The slack is in people, the sum over cells of ``|parent - sum of the parts|``. One person in another cell counts
    twice, so the smallest slack is even if all bounds are whole and queries are nested. [US Census Bureau, 2020
    Disclosure Avoidance System, 2018 end-to-end test: backup feasibility optimization.]
    """
    loose = replace(family, margin=minimal, slack=np.inf)
    small, _ = _merged(loose)
    rules = system(small)
    n = rules.matrix.shape[1]
    excess = np.repeat([0.0, 1.0], [n - small.cells, small.cells])
    solution = solve(excess, rules.matrix, rules.lower, rules.upper, np.tile([0.0, np.inf], (n, 1)))
    if solution is None:
        raise Infeasible(conflict(loose, labels=labels) or ())
    least = 2 * float(excess @ solution)
    return replace(loose, slack=(round(least) if abs(least - round(least)) <= TOLERANCE else least) + 1.0)
