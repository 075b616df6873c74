"""Compiled loops of the batched solver: the alternating directions method for one family, and largest remainders.

All functions are in one long module, because the compiler's cache does not notice changes in functions of another
module.

A family's tables are arrays (children, cells) here, of the cells in which the parent has people. Measurements and
bounds are expressed in a *basis* of queries, of which all the other queries are sums. With B the 0/1 matrix from cells
to the groups of the basis, the Hessian of a child is ``curve I + B' normal B``, so linear systems have the size of the
basis (Woodbury), and so have those of the parent's equality. Families share nothing and no library is called, so
results depend neither on other families nor on threads.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache, wraps
from pickle import UnpicklingError  # noqa: TID251  to catch it
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from algorithms.topdown.estimation.family import LevelSolution

__all__ = ["Limits", "Squares", "round_families", "solve_families"]

Flags = NDArray[np.bool_]
Index = NDArray[np.int64]
Real = NDArray[np.float64]

_RELAXATION = 1.7  # over-relaxation of ADMM; 1.5 to 1.8 is usual
_FORBIDDEN = -1e300  # used as minus infinity for cells that must be 0
_PRECISION = 1e-13  # relative precision of sums
_STIFFER = 4.0  # penalty of a bound, as a multiple of the squares' stiffness along it; found by trial
_LEAST, _MOST = 1e-4, 1e6  # limits of the penalty, as multiples of its initial value
_HALVINGS = 100  # most halvings of an interval, enough for less than one unit in the last place
_FIRST_CHECK = 5  # step after which penalties are adjusted; then after 10, 20, 40, ...


class Squares(NamedTuple):
    """Weighted squares of the families of a level, or of one family in one run, with 1 as the largest weight."""

    linear: Real  # detailed query: weighted answers, shape (runs, children, cells)
    curve: Real  # detailed query: weights, shape (children,)
    terms: Real  # other queries: for each group of the basis, the sum of weighted answers that contain it
    normal: Real  # other queries: weights as matrices on the basis, shape (kinds, basis, basis)
    kinds: Index  # index of each child's matrix, shape (children,); children of a kind have the same curve and penalty
    penalty: Real  # initial penalty, shape (children,)


class Limits(NamedTuple):
    """The basis, and bounds on sums of its groups and on cells, of a level or of one family in one run."""

    basis: Index  # basis group of each cell, shape (queries, cells)
    rows: Index  # number of the bound of each basis group, shape (boxes, basis)
    lower: Real  # shape (1 or runs, children, bounds)
    upper: Real
    least: Real  # lower bounds of cells, shape (1 or runs, children, cells), or (1, 0, cells)
    most: Real


class System(NamedTuple):
    """Factors of the linear systems of a family at one penalty; `_factor` defines the matrices M and W."""

    groups: Index  # basis groups of each cell
    overlap: Real  # number of cells that two groups share
    diagonal: Real  # curve plus penalty of each child
    inverses: Real  # M of each label
    corrections: Real  # W of each label, transposed
    labels: Index  # label of each child: children with the same matrix have the same label


def _compiled(function: Any, *, is_called: bool = False) -> Any:
    """Compile a function: products may be fused with sums, but operations are not reordered."""
    # Wrappers for C and for Python take time to compile.
    wrappers: Any = {"no_cfunc_wrapper": True, "no_cpython_wrapper": not is_called}
    return numba.njit(nogil=True, error_model="numpy", fastmath={"contract", "nsz"}, **wrappers)(function)


def _kept(function: Any) -> Any:
    """Compile a function that numba caches next to this module, or in the folder NUMBA_CACHE_DIR."""
    kernel, unkept = _compiled(function, is_called=True), cache(lambda: _compiled(function, is_called=True))
    with suppress(AttributeError, RuntimeError):  # numba is off, or no cache can be written
        kernel.enable_caching()

    @wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return kernel(*arguments)
        except (OSError, EOFError, UnpicklingError):  # a truncated cache file, or a full disk: nothing ran
            return unkept()(*arguments)

    call.kernel = kernel  # type: ignore[attr-defined]
    return call


@_compiled
def _copy(values: Real, out: Real) -> None:
    """Copy all values (assignment to a slice compiles many times slower)."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = values[i, j]


@_compiled
def _clear(out: Real) -> None:
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0


@_compiled
def _solve(left: Real, right: Real) -> None:
    """Replace `right` by the solution x of ``left x = right`` (Gauss-Jordan, partial pivoting); overwrite `left`."""
    size = len(left)
    for k in range(size):
        pivot = k
        for i in range(k + 1, size):
            if abs(left[i, k]) > abs(left[pivot, k]):
                pivot = i
        for j in range(size):
            left[k, j], left[pivot, j] = left[pivot, j], left[k, j]
            right[k, j], right[pivot, j] = right[pivot, j], right[k, j]
        inverse = 1 / left[k, k]
        for j in range(size):
            left[k, j] *= inverse
            right[k, j] *= inverse
        for i in range(size):
            factor = left[i, k]
            if i != k and factor != 0:
                for j in range(k, size):
                    left[i, j] -= factor * left[k, j]
                for j in range(size):
                    right[i, j] -= factor * right[k, j]


@_compiled
def _multiply(vectors: Real, matrices: Real, which: Index, sign: float, out: Real) -> None:
    """Add each vector times its matrix, with a sign, to `out`."""
    for c in range(len(vectors)):
        matrix = matrices[which[c]]
        for g in range(vectors.shape[1]):
            factor = sign * vectors[c, g]
            for h in range(out.shape[1]):
                out[c, h] += factor * matrix[g, h]


@_compiled
def _gather(groups: Index, tables: Real, out: Real) -> None:
    _clear(out)
    for c in range(len(tables)):
        for b in range(len(groups)):
            for i in range(groups.shape[1]):
                out[c, groups[b, i]] += tables[c, i]


@_compiled
def _scatter(groups: Index, values: Real, out: Real) -> None:
    """Add to each cell of `out` the values of its groups."""
    for c in range(len(out)):
        for b in range(len(groups)):
            for i in range(groups.shape[1]):
                out[c, i] += values[c, groups[b, i]]


@_compiled
def _project(points: Real, penalty: Real, parent: Real, root: bool, theta: Real, out: Real) -> None:
    """Set `out` to the nearest nonnegative tables that add up to the parent, cell by cell.

    Each child's squared distance has the weight `penalty`. In each cell the solution is ``max(point - theta / penalty,
    0)``, with theta such that the children add up to the parent. The sum is convex, decreasing and piecewise linear in
    theta, so Newton's method is exact after finitely many steps. `theta` is the start, and is set to the solution.
    """
    children, cells = points.shape
    if root:
        for i in range(cells):
            out[0, i] = max(points[0, i], 0.0)
        return
    buffer = np.empty((2, cells))
    sums, slopes = buffer[0], buffer[1]
    moved = True
    rounds = 0
    while moved and rounds < children + 10:
        rounds += 1
        _clear(buffer)
        for c in range(children):
            weight, inverse = penalty[c], 1 / penalty[c]
            for i in range(cells):
                above = points[c, i] * weight > theta[i]
                sums[i] += points[c, i] if above else 0.0
                slopes[i] += inverse if above else 0.0
        moved = False
        for i in range(cells):
            if slopes[i] > 0:
                new = (sums[i] - parent[i]) / slopes[i]
            else:  # all are 0: restart where one child has at least the parent's count
                new = (points[0, i] - parent[i]) * penalty[0]
                for c in range(1, children):
                    new = max(new, (points[c, i] - parent[i]) * penalty[c])
            moved |= new != theta[i]
            theta[i] = new
    _clear(buffer)
    for c in range(children):
        inverse = 1 / penalty[c]
        for i in range(cells):
            out[c, i] = max(points[c, i] - theta[i] * inverse, 0.0)
            sums[i] += out[c, i]
    for c in range(children):
        for i in range(cells):
            out[c, i] *= parent[i] / sums[i] if sums[i] > 0 else 1.0  # corrects rounding errors


@_compiled
def _project_within(
    points: Real, penalty: Real, parent: Real, root: bool, least: Real, most: Real, theta: Real, out: Real
) -> None:
    """Set `out` to the nearest tables between `least` and `most` that add up to the parent, if bounds allow that.

    The sum over the children is then decreasing but not convex in theta, so a Newton step that leaves the bracket of
    theta is replaced by a bisection step.
    """
    children, cells = points.shape
    for i in range(cells):
        if root:
            out[0, i] = min(max(points[0, i], least[0, i]), most[0, i])
            continue
        small, large = np.inf, -np.inf
        for c in range(children):
            reach = min(most[c, i], parent[i])  # no child can exceed the parent
            small = min(small, (points[c, i] - reach) * penalty[c])
            large = max(large, (points[c, i] - least[c, i]) * penalty[c])
        at = min(max(theta[i], small), large)
        for _ in range(_HALVINGS):
            excess, above, below = -parent[i], 0.0, 0.0
            for c in range(children):
                value = points[c, i] - at / penalty[c]
                if value > least[c, i] and value <= most[c, i]:
                    above += 1 / penalty[c]
                if value >= least[c, i] and value < most[c, i]:
                    below += 1 / penalty[c]
                excess += min(max(value, least[c, i]), most[c, i])
            if abs(excess) <= _PRECISION * max(parent[i], abs(at) / penalty[0]):
                break
            if excess > 0:
                small, slope = at, above
            else:
                large, slope = at, below
            new = at + excess / slope if slope > 0 else np.inf
            if not (new > small and new < large):
                new = (small + large) / 2
            if new == at:
                break
            at = new
        theta[i] = at
        excess, free = -parent[i], 0
        for c in range(children):
            out[c, i] = min(max(points[c, i] - at / penalty[c], least[c, i]), most[c, i])
            excess += out[c, i]
            room = min(out[c, i] - least[c, i], most[c, i] - out[c, i])
            if room > min(out[free, i] - least[free, i], most[free, i] - out[free, i]):
                free = c
        out[free, i] = max(out[free, i] - excess, least[free, i])  # rounding error, in the child with most room


@_compiled
def _alike(kinds: Index, strength: Real, labels: Index) -> int:
    """Label children so that those with the same matrix have the same label; return the number of labels."""
    distinct = 0
    for c in range(len(kinds)):
        labels[c] = distinct
        for other in range(c):
            same = kinds[other] == kinds[c]
            for r in range(strength.shape[1]):
                same &= strength[other, r] == strength[c, r]
            if same:
                labels[c] = labels[other]
                break
        distinct = max(distinct, labels[c] + 1)
    return distinct


@_compiled
def _factor(
    normal: Real, kinds: Index, diagonal: Real, groups: Index, overlap: Real, rows: Index, strength: Real
) -> System:
    """Return the factored linear systems for one penalty.

    M is defined by ``(diagonal I + B' N B)^-1 = (I - B' M B) / diagonal``, where N is `normal` plus the strengths of
    bounds. Let S be the sum of these inverses over children, and s the sum of ``1 / diagonal``. W is defined by
    ``(I - B' M B) S^-1 = (I + B' W B) / s``; it applies the parent's equality.
    """
    size, done, scale, labels = len(overlap), 0, 0.0, np.empty(len(kinds), np.int64)
    distinct = _alike(kinds, strength, labels)
    inverses, corrections = np.empty((distinct, size, size)), np.empty((distinct, size, size))
    total, matrix, single = np.zeros((1, size, size)), np.empty((size, size)), np.zeros(size, np.int64)
    overlaps = overlap.reshape(1, size, size)
    for c in range(len(labels)):
        inverse = inverses[labels[c]]
        if labels[c] == done:
            done += 1
            _copy(normal[kinds[c]], inverse)
            for b in range(len(rows)):
                for g in range(size):
                    for h in range(size):
                        if rows[b, g] == rows[b, h]:
                            inverse[g, h] += strength[c, rows[b, g]]
            _clear(matrix)
            _multiply(inverse, overlaps, single, 1.0, matrix)
            for g in range(size):
                matrix[g, g] += diagonal[c]
            _solve(matrix, inverse)
        share = 1 / diagonal[c]
        scale += share
        for g in range(size):
            for h in range(size):
                total[0, g, h] += share * inverse[g, h]
    if distinct > 1:
        _clear(matrix)
        _multiply(total[0], overlaps, single, -1.0, matrix)
        for g in range(size):
            matrix[g, g] += scale
        _solve(matrix, total[0])
        for label in range(distinct):
            _clear(matrix)
            _multiply(overlap, inverses[label].reshape(1, size, size), single, -1.0, matrix)
            for g in range(size):
                for h in range(size):
                    corrections[label, g, h] = total[0, g, h] - inverses[label, g, h]
            _multiply(total[0], matrix.reshape(1, size, size), single, 1.0, corrections[label])
    return System(groups, overlap, diagonal, inverses, corrections, labels)


@_compiled
def _minimize(system: System, root: bool, bounded: bool, push: Real, sums: Real, shares: Real, x: Real) -> None:
    """Replace `x` by the solution of the systems for ``x + B' push``; below the root, children then add up to 0."""
    groups, overlap, diagonal, inverses, corrections, labels = system
    (children, cells), size, scale = x.shape, len(overlap), 0.0
    _gather(groups, x, sums)
    if bounded:
        _multiply(push, overlap.reshape(1, size, size), np.zeros(children, np.int64), 1.0, sums)
    _copy(push, shares)
    _multiply(sums, inverses, labels, -1.0, shares)
    _scatter(groups, shares, x)
    excess = np.zeros((1, cells))
    for c in range(children):
        inverse = 1 / diagonal[c]
        scale += inverse
        for i in range(cells):
            x[c, i] *= inverse
            excess[0, i] += x[c, i]
    if root:
        return
    _clear(shares)
    if len(inverses) > 1:
        _gather(groups, excess, sums[:1])
        for c in range(1, children):
            for g in range(size):
                sums[c, g] = sums[0, g]
        _multiply(sums, corrections, labels, 1.0, shares)
    part = np.empty((1, cells))
    for c in range(children):
        _copy(excess, part)
        if len(inverses) > 1:
            _scatter(groups, shares[c : c + 1], part)
        inverse = 1 / (diagonal[c] * scale)
        for i in range(cells):
            x[c, i] -= part[0, i] * inverse


@_compiled
def _descend(groups: Index, squares: Squares, tables: Real, sums: Real, out: Real) -> None:
    """Set `out` to minus half the gradient of the weighted squares at `tables`, and `sums` to their basis sums."""
    _gather(groups, tables, sums)
    pulls = squares.terms.copy()
    _multiply(sums, squares.normal, squares.kinds, -1.0, pulls)
    for c in range(len(tables)):
        for i in range(tables.shape[1]):
            out[c, i] = squares.linear[c, i] - squares.curve[c] * tables[c, i]
    _scatter(groups, pulls, out)


@_compiled
def _bind(
    groups: Index, rows: Index, parent: Real, root: bool, low: Real, high: Real, most: Real, usable: Flags, start: Real
) -> None:
    """Remove bounds that never bind, mark cells that an upper bound of 0 empties, start with equal parts elsewhere."""
    (children, cells), (size, bounds) = usable.shape, (rows.shape[1], low.shape[1])
    everything, largest = np.empty((1, size)), np.empty((1, bounds))
    shut, emptied, empty = np.zeros((children, bounds)), np.zeros((children, size)), np.zeros((children, cells))
    _gather(groups, parent.reshape(1, cells), everything)
    _gather(rows, everything, largest)
    for c in range(children):
        for r in range(bounds):
            if low[c, r] <= 0 and high[c, r] <= 0:
                shut[c, r] = 1.0
            if low[c, r] <= 0:
                low[c, r] = -np.inf
            if shut[c, r] > 0 or (high[c, r] >= largest[0, r] and not root):
                high[c, r] = np.inf
    _scatter(rows, shut, emptied)
    _scatter(groups, emptied, empty)
    for c in range(len(most)):
        for i in range(cells):
            empty[c, i] += most[c, i] <= 0
    for i in range(cells):
        free = 0
        for c in range(children):
            free += empty[c, i] == 0
        for c in range(children):
            usable[c, i] = empty[c, i] == 0 or (free == 0 and not root)
            start[c, i] = parent[i] / max(free, 1) if usable[c, i] else 0.0


@_compiled
def _leave_room(parent: Real, root: bool, usable: Flags, least: Real, most: Real) -> bool:
    """Remove infeasible bounds of cells; return whether any other bound can bind, apart from those of empty cells."""
    binds = False
    for i in range(len(parent) if len(most) else 0):
        lowest, highest, sound = 0.0, 0.0, True
        for c in range(len(most)):
            most[c, i] = most[c, i] if usable[c, i] else 0.0
            sound &= least[c, i] <= most[c, i]
            lowest += least[c, i]
            highest += most[c, i]
        sound &= root or (lowest <= parent[i] and highest >= parent[i])
        for c in range(len(most)):
            if not sound:
                least[c, i], most[c, i] = 0.0, np.inf if usable[c, i] else 0.0
            binds |= usable[c, i] and (least[c, i] > 0 or most[c, i] < (np.inf if root else parent[i]))
    return binds


@_compiled
def _stiffness(system: System, rows: Index, low: Real, high: Real, out: Real) -> None:
    """Set `out` to the penalty of each bound, from the squares' stiffness along its sum; 0 if there is no bound."""
    _, overlap, diagonal, inverses, _, labels = system
    size = len(overlap)
    which, along, bend = np.zeros(1, np.int64), np.empty((1, size)), np.empty((1, size))
    for c in range(len(out)):
        which[0] = labels[c]
        for r in range(out.shape[1]):
            if low[c, r] == -np.inf and high[c, r] == np.inf:
                continue
            give = 0.0
            _clear(along)
            _clear(bend)
            for b in range(len(rows)):
                for g in range(size):
                    if rows[b, g] == r:
                        give += overlap[g, g]
                        for h in range(size):
                            along[0, h] += overlap[g, h]
            _multiply(along, inverses, which, 1.0, bend)
            for g in range(size):
                give -= bend[0, g] * along[0, g]
            if give > 0:
                out[c, r] = diagonal[c] / give * (10 * _STIFFER if low[c, r] == high[c, r] else _STIFFER)


@_compiled
def _move_cells(
    x: Real,
    center: Real,
    penalty: Real,
    first: Real,
    parent: Real,
    root: bool,
    usable: Flags,
    within: bool,
    limits: Limits,
    theta: Real,
    new: Real,
    u: Real,
    z: Real,
) -> tuple[float, float, float]:
    """Project the cells; return the largest difference to `x`, the largest move, and that move times penalties."""
    for c in range(z.shape[0]):
        for i in range(z.shape[1]):
            u[c, i] += _RELAXATION * (x[c, i] + center[c, i]) + (1 - _RELAXATION) * z[c, i]
            new[c, i] = u[c, i] if within or usable[c, i] else _FORBIDDEN
    if within:
        _project_within(new, penalty, parent, root, limits.least, limits.most, theta, new)
    else:
        _project(new, penalty, parent, root, theta, new)
    apart, moved, dual = 0.0, 0.0, 0.0
    for c in range(z.shape[0]):
        shift = 0.0
        for i in range(z.shape[1]):
            u[c, i] -= new[c, i]
            apart = max(apart, abs(x[c, i] + center[c, i] - new[c, i]))
            shift = max(shift, abs(new[c, i] - z[c, i]))
            z[c, i] = new[c, i]
        moved = max(moved, shift * max(penalty[c] / first[c], 1.0))
        dual = max(dual, shift * penalty[c])
    return apart, moved, dual


@_compiled
def _move_answers(
    answers: Real, offset: Real, strength: Real, low: Real, high: Real, w: Real, y: Real
) -> tuple[float, float, float]:
    """Project the bounded answers; return their largest difference, move, and move times penalties."""
    apart, moved, dual = 0.0, 0.0, 0.0
    for c in range(y.shape[0]):
        for r in range(y.shape[1]):
            w[c, r] += _RELAXATION * (answers[c, r] + offset[c, r]) + (1 - _RELAXATION) * y[c, r]
            value = min(max(w[c, r], low[c, r]), high[c, r])
            w[c, r] -= value
            if strength[c, r] > 0:
                apart = max(apart, abs(answers[c, r] + offset[c, r] - value))
                moved = max(moved, abs(value - y[c, r]))
                dual = max(dual, abs(value - y[c, r]) * strength[c, r])
            y[c, r] = value
    return apart, moved, dual


@_compiled
def _penalty_factor(step: int, x: Real, center: Real, z: Real, apart: float, moved: float) -> float:
    """Return the factor by which penalties should change, 1 if the change would be small."""
    if step == 1:  # found by trial: if noise is larger than counts, a larger penalty is better
        far, near = 0.0, 0.0
        for c in range(z.shape[0]):
            for i in range(z.shape[1]):
                far += abs(x[c, i] + center[c, i] - z[c, i])
                near += z[c, i]
        factor = 1.5 * np.sqrt(far / max(near, 1.0))
        return factor if factor > 2 else 1.0
    factor = min(max(np.sqrt(apart / max(moved, 1e-300)), 0.1), 10.0) if apart > 0 or moved > 0 else 1.0
    return 1.0 if 1 / 3 < factor < 3 else factor


@_compiled
def _solve_family(
    squares: Squares, limits: Limits, system: System, parent: Real, root: bool, tolerance: float, steps: int, z: Real
) -> tuple[bool, float, int]:
    """Solve one family by the alternating directions method of multipliers.

    One half, x, minimizes the squares under the parent's equality. The other half, z, is the nearest tables that add up
    to the parent within the bounds of cells, and y the nearest answers within their bounds. Multipliers u and w, in
    people, make the halves agree. Numbers are relative to a center that is moved to the iterate, so that they are as
    small as the steps. Set `z`; return whether the halves agree, the dual residual, and the number of steps.
    """
    groups, rows, lower, upper, least, most = limits
    first, penalty, shape, size = squares.penalty, squares.penalty, z.shape, len(system.overlap)
    bounded, low, high, strength = len(rows) > 0, lower.copy(), upper.copy(), np.zeros(lower.shape)
    usable, theta = np.ones(shape, np.bool_), np.zeros(shape[1])
    _bind(groups, rows, parent, root, low, high, most, usable, z)
    within = _leave_room(parent, root, usable, least, most)
    if within:
        _project_within(z, penalty, parent, root, least, most, theta, z)
    if bounded:
        _stiffness(system, rows, low, high, strength)
        system = _factor(squares.normal, squares.kinds, system.diagonal, groups, system.overlap, rows, strength)
    x, u, new, pull = np.empty(shape), np.zeros(shape), np.empty(shape), np.empty(shape)
    sums, shares, push = np.empty((len(z), size)), np.empty((len(z), size)), np.zeros((len(z), size))
    w, offset, answers = np.zeros(lower.shape), np.zeros(lower.shape), np.zeros(lower.shape)
    center, check, dual = z.copy(), 1, np.inf
    _descend(groups, squares, center, sums, pull)
    _gather(rows, sums, offset)
    y = np.minimum(np.maximum(offset, low), high)
    for step in range(1, steps + 1):
        for c in range(shape[0]):
            for i in range(shape[1]):
                x[c, i] = pull[c, i] + penalty[c] * (z[c, i] - center[c, i] - u[c, i])
        if bounded:
            answers = strength * (y - w - offset)
            _clear(push)
            _scatter(rows, answers, push)
        _minimize(system, root, bounded, push, sums, shares, x)
        apart, moved, dual = _move_cells(
            x, center, penalty, first, parent, root, usable, within, limits, theta, new, u, z
        )
        if bounded:
            _gather(groups, x, sums)
            _gather(rows, sums, answers)
            of_answers = _move_answers(answers, offset, strength, low, high, w, y)
            apart, moved, dual = max(apart, of_answers[0]), max(moved, of_answers[1]), max(dual, of_answers[2])
        if max(apart, moved) <= tolerance and _missed(groups, rows, z, lower, upper) <= tolerance:
            return True, dual, step
        if step == check:
            by = _penalty_factor(step, x, center, z, apart, moved)
            by = min(max(by, _LEAST * first[0] / penalty[0]), _MOST * first[0] / penalty[0])
            check = 2 * check if step > 1 else _FIRST_CHECK
            _copy(z, center)
            _descend(groups, squares, center, sums, pull)
            _gather(rows, sums, offset)
            if by != 1:
                penalty, strength = penalty * by, strength * by
                u, w, theta = u / by, w / by, theta * by
                diagonal = squares.curve + penalty
                system = _factor(squares.normal, squares.kinds, diagonal, groups, system.overlap, rows, strength)
    return False, dual, steps


@_compiled
def _missed(groups: Index, rows: Index, tables: Real, lower: Real, upper: Real) -> float:
    sums, answers, missed = np.empty((len(tables), rows.shape[1])), np.empty(lower.shape), 0.0
    if len(rows):
        _gather(groups, tables, sums)
        _gather(rows, sums, answers)
        for c in range(lower.shape[0]):
            for r in range(lower.shape[1]):
                missed = max(missed, lower[c, r] - answers[c, r], answers[c, r] - upper[c, r])
    return missed


@_compiled
def _restrict(basis: Index, rows: Index, normal: Real, active: Index) -> tuple[Index, Index, Index, Real, Real]:
    """Restrict the basis to some cells: return nonempty groups, groups of cells, rows, overlap and normal matrix."""
    number, cells = np.zeros(normal.shape[1], np.int64), len(active)
    for b in range(len(basis)):
        for i in active:
            number[basis[b, i]] = 1
    filled = np.flatnonzero(number)
    for g in range(len(filled)):
        number[filled[g]] = g
    groups, overlap = np.empty((len(basis), cells), np.int64), np.zeros((len(filled), len(filled)))
    for i in range(cells):
        for b in range(len(basis)):
            groups[b, i] = number[basis[b, active[i]]]
        for b in range(len(basis)):
            for other in range(len(basis)):
                overlap[groups[b, i], groups[other, i]] += 1
    return filled, groups, rows[:, filled], overlap, normal[:, filled][:, :, filled]


@_compiled
def _project_measured(near: Real, curve: Real, parent: Real, root: bool, least: Real, most: Real, z: Real) -> None:
    """Set `z` to the solution if only the detailed query is measured: a single projection."""
    for c in range(z.shape[0]):
        for i in range(z.shape[1]):
            near[c, i] /= curve[c]
    if _leave_room(parent, root, np.ones(z.shape, np.bool_), least, most):
        _project_within(near, curve, parent, root, least, most, np.zeros(len(parent)), z)
    else:
        _project(near, curve, parent, root, np.zeros(len(parent)), z)


@_compiled
def _take_over(z: Real, cells: Index, parent: Real, out: Real) -> bool:
    """Set tables in some cells to `z`, or to equal parts of the parent if unusable; return whether all are usable."""
    solved = True
    for c in range(len(z)):
        for i in range(len(cells)):
            usable = z[c, i] >= 0  # False for NaN
            solved &= usable
            out[c, cells[i]] = z[c, i] if usable else parent[i] / len(z)
    return solved


@_kept
def solve_families(
    parents: Index,
    root: bool,
    starts: Index,
    squares: Squares,
    limits: Limits,
    tolerance: float,
    iterations: int,
    results: LevelSolution,
) -> None:
    """Solve every family in every run to a tolerance in people; parents have shape (runs, families, cells) or none."""
    tables, converged, primal, dual, steps = results
    basis, rows, lower, upper, least, most = limits
    for family in range(len(starts) - 1):
        part, children = slice(starts[family], starts[family + 1]), starts[family + 1] - starts[family]
        kinds, curve, penalty = squares.kinds[part], squares.curve[part], squares.penalty[part]
        cells, single = np.arange(tables.shape[2]), len(basis) == 0 and np.all(curve > 0)
        for run in range(len(tables)):
            low, high, out = lower[run % len(lower), part], upper[run % len(upper), part], tables[run, part]
            filled = cells if root else np.flatnonzero(parents[run, family])
            if run == 0 or not np.array_equal(filled, cells):  # runs with the same cells share a system
                cells = filled
                kept, groups, places, overlap, normal = _restrict(basis, rows, squares.normal, cells)
                bare = np.zeros((children, 0))
                system = _factor(normal, kinds, curve + penalty, groups, overlap, places[:0], bare)
            parent, allowed = np.zeros(cells.size), tolerance
            for i in range(0 if root else cells.size):
                parent[i] = parents[run, family, cells[i]]
                allowed = max(allowed, _PRECISION * parent[i])
            floor, ceiling = least[run % len(least), part], most[run % len(most), part]
            floors, ceilings, near = floor[:, cells], ceiling[:, cells], squares.linear[run, part][:, cells]
            solved, z = True, np.empty((children, cells.size))
            if cells.size and children == 1 and not root:
                _copy(parent.reshape(1, cells.size), z)
            elif cells.size and single:
                _project_measured(near, curve, parent, root, floors, ceilings, z)
            elif cells.size:
                ours = Squares(near, curve, squares.terms[run, part][:, kept], normal, kinds, penalty)
                bounds = Limits(groups, places, low, high, floors, ceilings)
                solved, dual[run, family], steps[run, family] = _solve_family(
                    ours, bounds, system, parent, root, allowed, iterations, z
                )
            solved &= _take_over(z, cells, parent, out)
            missed = _missed(basis, rows, out, low, high)
            for c in range(len(floor)):
                for i in range(out.shape[1]):
                    missed = max(missed, floor[c, i] - out[c, i], out[c, i] - ceiling[c, i])
            primal[run, family] = missed
            converged[run, family] = solved and missed <= allowed


@_kept
def round_families(tables: Real, parents: Index, starts: Index, near: float, out: Index) -> None:
    """Set `out` to whole tables, shape (runs, children, cells), by largest remainders; those up to `near` are 0."""
    runs, _, cells = tables.shape
    rest = np.empty(tables.shape[1])
    for run in range(runs):
        for family in range(len(starts) - 1):
            first, children = starts[family], starts[family + 1] - starts[family]
            for i in range(cells):
                missing = parents[run, family, i]
                for c in range(children):
                    value = tables[run, first + c, i]
                    floor = np.floor(value + near)
                    rest[c] = value - floor if value - floor > near else 0.0
                    out[run, first + c, i] = np.int64(floor)
                    missing -= np.int64(floor)
                while missing > 0:
                    best = 0
                    for c in range(1, children):
                        best = c if rest[c] > rest[best] else best
                    out[run, first + best, i] += 1
                    rest[best] -= 1
                    missing -= 1
