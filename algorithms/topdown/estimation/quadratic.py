"""Least squares of one family by an interior-point method, for any constraints; tests of the batched solver use it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from algorithms.extras import needing
from algorithms.topdown.estimation.family import Family, Groups, Solution, answer, refines

__all__ = ["solve"]

Index = NDArray[np.int64]
Real = NDArray[np.float64]

_NOTHING = 1e-7  # people: smaller counts are errors of the solver, and set to 0
_TOLERANCE = 1e-9  # relative tolerance of the solver
_MISSED = 1e-6  # largest violation of constraints and optimality of a converged solution


@dataclass(frozen=True)
class _Query:
    """Measurements and bounds of one query: one entry for each group of each part."""

    groups: Groups
    weights: Real
    targets: Real  # weighted means of measurements, 0 without measurements
    lower: Real
    upper: Real


@dataclass(frozen=True)
class _Program:
    """Minimize ``weights @ v**2 / 2`` under ``equal @ v = right``, ``rows @ v <= most`` and bounds."""

    weights: Real
    equal: Any
    right: Real
    rows: Any
    most: Real
    lower: Real
    upper: Real


class _Rows:
    """A sparse matrix and its right-hand side, assembled block by block (much faster than stacking)."""

    def __init__(self) -> None:
        self.entries: list[tuple[Index, Index, Real]] = []
        self.right: list[Real] = []
        self.count = 0

    def add(self, right: Real, *entries: tuple[Index, Index, float]) -> None:
        """Add rows, given by entries (row within the block, column, value); columns below 0 are left out."""
        for row, column, value in entries:
            free = column >= 0
            self.entries.append((row[free] + self.count, column[free], np.full(np.count_nonzero(free), value)))
        self.right.append(right)
        self.count += right.size

    def matrix(self, width: int) -> Any:
        if not self.entries:
            return sparse.csc_matrix((0, width))
        row, column, value = map(np.concatenate, zip(*self.entries, strict=True))
        return sparse.csc_matrix((value, (row, column)), shape=(self.count, width))


def solve(family: Family) -> Solution:
    """Fit the tables of a family to its measurements, under all its constraints.

    The variables are residuals of the cells, and of every measured or bounded group of a query. So the Hessian is
    diagonal, all matrices are sparse, and numbers are as small as the noise for any number of people. [Schwan, Jiang,
    Kuhn, Jones, "PIQP: A Proximal Interior-Point Quadratic Programming Solver", 2023.]
    """
    shape, parent = (family.parts, family.cells), family.parent
    bound = parent is not None and family.margin is None  # the parent binds in every cell
    free, center, dual, steps = np.ones(shape, np.bool_), np.zeros(shape), 0.0, 0
    tables, dropped = np.zeros(shape), 0.0
    if parent is not None and bound:
        free[:] = parent > 0
        tables[:] = parent
    if free.any() and not (bound and family.parts == 1):
        detailed, *others = _queries(family)
        center = np.where(free, detailed.targets, 0.0)
        if parent is not None:  # the center of a part without measured cells is an equal share of the parent
            unmeasured = ~(detailed.weights > 0).any(axis=1)
            center[unmeasured] = np.where(free[unmeasured], parent / family.parts, 0.0)
        program = _residual_program(family, detailed, others, free, center)
        values, dual, steps = _interior_point(program)
        tables = center
        tables[free] += values[: np.count_nonzero(free)]
        small = ~(tables >= _NOTHING)  # NaN counts as small
        dropped = float(np.minimum(np.abs(np.nan_to_num(tables[small])), _NOTHING).sum())
        tables[small] = 0.0
    primal = _missed(family, tables)
    allowed = _MISSED * max(1.0, np.sqrt(tables.max(initial=0.0)))
    return Solution(tables, bool(primal <= allowed + dropped and dual <= allowed), primal, dual, steps)


def _queries(family: Family) -> Iterator[_Query]:
    """Merge the measurements and bounds of each query; yield the detailed query first."""
    identity = np.arange(family.cells)
    known: dict[bytes, Groups] = {identity.tobytes(): identity}
    for groups in [fit.groups for fit in family.fits] + [box.groups for box in family.boxes]:
        known.setdefault(groups.tobytes(), groups)
    heaviest = max((float(fit.weights.max()) for fit in family.fits), default=0.0) or 1.0
    for key, groups in known.items():
        shape = (family.parts, int(groups.max()) + 1)
        weights, products, lower, upper = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.full(shape, np.inf)
        for fit in family.fits:
            if fit.groups.tobytes() == key:
                weight = fit.weights[:, None] / heaviest
                weights += weight
                products += weight * np.where(weight > 0, fit.answers, 0.0)
        for box in family.boxes:
            if box.groups.tobytes() == key:
                lower, upper = np.maximum(lower, box.lower), np.minimum(upper, box.upper)
        targets = np.divide(products, weights, out=np.zeros(shape), where=weights > 0)
        yield _Query(groups, weights, targets, lower, upper)


def _residual_program(
    family: Family, detailed: _Query, others: list[_Query], free: NDArray[np.bool_], center: Real
) -> _Program:
    """Return the problem in residuals: of free cells from their center, then of groups from their measurement."""
    parts, cells, width = family.parts, family.cells, int(np.count_nonzero(free))
    column = np.where(free, np.cumsum(free.ravel()).reshape(free.shape) - 1, -1).ravel()
    weights, lower, upper = (
        [detailed.weights[free]],
        [(detailed.lower - center)[free]],
        [(detailed.upper - center)[free]],
    )
    equal, rows = _Rows(), _Rows()
    layers = [(detailed.groups, column, center)]  # complete queries: groups, columns, base of residuals
    for query in sorted(others, key=lambda query: -int(query.groups.max())):
        used = (query.weights > 0) | (query.lower > 0) | (query.upper < np.inf)
        finer, columns, base = next(layer for layer in reversed(layers) if refines(layer[0], query.groups))
        image = np.zeros(base.shape[1], np.int64)  # sum over the coarsest query that refines this one
        image[finer] = query.groups
        exact = answer(image, base)
        target = np.where(query.weights > 0, query.targets, exact)
        size, number = int(np.count_nonzero(used)), np.where(used, np.cumsum(used).reshape(used.shape) - 1, -1)
        own = np.arange(width, width + size)
        member = number[:, image].ravel()
        equal.add((target - exact)[used], (member, np.where(member < 0, -1, columns), 1.0), (number[used], own, -1.0))
        for chunks, values in ((weights, query.weights), (lower, query.lower - target), (upper, query.upper - target)):
            chunks.append(values[used])
        if used.all():
            layers.append((query.groups, own, target))
        width += size
    if family.parent is not None:
        excess = center.sum(axis=0) - family.parent
        margin = np.cumsum(free.any(axis=0)) - 1 if family.margin is None else family.margin
        short = np.zeros(int(margin.max()) + 1)
        np.subtract.at(short, margin, np.where(free.any(axis=0), excess, 0))
        equal.add(short, (np.tile(margin, parts), column, 1.0))
        if family.slack is not None and np.isfinite(family.slack):  # excesses and deficits add up to 0
            over = np.arange(width, width + cells)
            rows.add(-excess, (np.tile(np.arange(cells), parts), column, 1.0), (np.arange(cells), over, -1.0))
            rows.add(np.array([family.slack / 2]), (np.zeros(cells, np.int64), over, 1.0))
            for chunks, value in ((weights, 0.0), (lower, 0.0), (upper, np.inf)):
                chunks.append(np.full(cells, value))
            width += cells
    least, most = np.concatenate(lower), np.concatenate(upper)
    fixed = np.flatnonzero(least == most)
    equal.add(least[fixed], (np.arange(fixed.size), fixed, 1.0))
    least[fixed], most[fixed] = -np.inf, np.inf
    right, limits = np.concatenate(equal.right), np.concatenate([*rows.right, np.zeros(0)])
    return _Program(np.concatenate(weights), equal.matrix(width), right, rows.matrix(width), limits, least, most)


def _interior_point(program: _Program) -> tuple[Real, float, int]:
    """Return the solution, the largest violation of optimality, and the number of steps."""
    with needing("census", "TopDown"):
        import piqp  # imported here: not every release needs it

    size = program.weights.size
    solver = piqp.SparseSolver()
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = _TOLERANCE
    settings.eps_primal_inf = 1e-14  # with the default 1e-4, feasible families are reported infeasible
    solver.setup(
        sparse.csc_matrix((program.weights, np.arange(size), np.arange(size + 1)), shape=(size, size)),
        np.zeros(size),
        program.equal,
        program.right,
        program.rows,
        np.full(program.most.size, -np.inf),
        program.most,
        program.lower,
        program.upper,
    )
    solver.solve()
    result = solver.result
    values = np.array(result.x)
    slope = program.weights * values + program.equal.T @ result.y + program.rows.T @ (result.z_u - result.z_l)
    slope += result.z_bu - result.z_bl
    gap = 0.0  # duality gap: sum of price times slack, also right at degenerate vertices
    for price, distance in (
        (result.z_u, program.most - program.rows @ values),
        (result.z_bl, values - program.lower),
        (result.z_bu, program.upper - values),
    ):
        bounded = np.isfinite(distance)
        gap += float(np.abs(price[bounded] * distance[bounded]).sum())
    objective = float(program.weights @ values**2) / 2
    return values, float(max(np.abs(slope).max(initial=0.0), gap / (1 + objective))), int(result.info.iter)


def _missed(family: Family, tables: Real) -> float:
    gaps = [np.zeros(1)]
    for box in family.boxes:
        answers = answer(box.groups, tables)
        gaps += [box.lower - answers, answers - box.upper]
    if family.parent is not None:
        gap = tables.sum(axis=0) - family.parent
        gaps.append(np.abs(gap if family.margin is None else answer(family.margin, gap)))
        if family.slack is not None:
            gaps.append(np.array([np.abs(gap).sum() - family.slack]))
    return float(max(gap.max(initial=0.0) for gap in gaps))
