"""The constraints of a family as the rows of a linear program, and how one is solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linprog

from algorithms.topdown.estimation.family import Family, Groups, answer

__all__ = ["PARENT", "SLACK", "System", "below", "named", "solve", "system", "tally"]

Index = NDArray[np.int64]
Real = NDArray[np.float64]
PARENT, SLACK = "parent", "slack"


@dataclass(frozen=True)
class System:
    """Constraints as rows, ``lower <= matrix @ v <= upper``, of variables that are not negative.

    Attributes
    ----------
    matrix : csr_array, shape (rows, parts * cells + extra)
        Columns of the tables, flattened; then, where there is a slack, the excess of the parts over each cell of the
        parent.
    lower, upper : ndarray of float, shape (rows,)
        Bounds.
    origin : ndarray of int, shape (rows, 3)
        Where a row is from: which of `sources`, part (-1 for several), group (-1 for a query of one group).
    sources : tuple of str
        Names of constraints.
    groups : tuple of tuple of str
        For each source the names of its groups, if it has any.
    """

    matrix: Any
    lower: Real
    upper: Real
    origin: Index
    sources: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...] = ()


def named(
    name: str,
    relation: str,
    value: float,
    *,
    part: int = -1,
    group: int = -1,
    labels: Sequence[str] = (),
    groups: Sequence[str] = (),
) -> str:
    """Return the words by which one bound is called in messages.

    Examples
    --------
    >>> named("persons", ">=", 7.0, part=1, group=2)
    'persons in part 1, group 2 >= 7'
    """
    if name in (PARENT, SLACK):
        return name
    where = "" if part < 0 else f" in {labels[part] if labels else f'part {part}'}"
    which = "" if group < 0 else f", {groups[group] if groups else f'group {group}'}"
    return f"{name}{where}{which} {relation} {value:.12g}"


def tally(groups: Groups, parts: int) -> Any:
    """Return the query of every part as a matrix on flattened tables.

    Examples
    --------
    >>> tally(np.array([0, 0, 1]), 2) @ np.array([5, 7, 1, 0, 2, 2])
    array([12.,  1.,  2.,  2.])
    """
    size = int(groups.max()) + 1
    rows = (np.arange(parts)[:, None] * size + groups).ravel()
    return _selection(rows, parts * size)


def _selection(rows: Index, n_rows: int) -> Any:
    """Return the matrix that adds up each column into one row."""
    return sparse.csc_array((np.ones(rows.size), rows, np.arange(rows.size + 1)), shape=(n_rows, rows.size)).tocsr()


def system(family: Family) -> System:
    """Return all constraints of a family but non-negativity as rows.

    Examples
    --------
    >>> rules = system(Family(2, 1, (), parent=np.array([9])))
    >>> rules.matrix.toarray(), rules.lower, rules.upper
    (array([[1., 1.]]), array([9.]), array([9.]))
    """
    n, cells = family.parts * family.cells, np.tile(np.arange(family.cells), family.parts)
    blocks: list[tuple[str, Any, ArrayLike, ArrayLike, Index]] = []
    labels = {box.name: box.labels for box in family.boxes}
    if family.parent is not None:
        margin = np.arange(family.cells) if family.margin is None else family.margin
        sums = answer(margin, family.parent)
        blocks.append((PARENT, _selection(margin[cells], sums.size), sums, sums, np.full((sums.size, 2), -1)))
    for joint in family.joints:
        row = sparse.csr_array(np.repeat(joint.members, family.cells)[None].astype(np.float64))
        blocks.append((joint.name, row, [joint.total], [joint.total], np.full((1, 2), -1)))
    for box in family.boxes:
        bounded = (box.lower > 0) | (box.upper < np.inf)
        where = np.argwhere(bounded)
        if box.lower.shape[1] == 1:
            where[:, 1] = -1
        rows = tally(box.groups, family.parts)[np.flatnonzero(bounded)]
        blocks.append((box.name, rows, box.lower[bounded], box.upper[bounded], where))
    if family.parent is not None and family.slack is not None:
        each, one = sparse.eye_array(family.cells), np.ones((1, family.cells))
        over = sparse.block_array([[_selection(cells, family.cells), -each], [None, one]], format="csr")
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
    """Return rows below rows, without the overhead of the general function.

    Examples
    --------
    >>> below(sparse.csr_array([[1.0]]), sparse.csr_array([[2.0, 3.0]])).toarray()
    array([[1., 0.],
           [2., 3.]])
    """
    sizes = np.concatenate([np.diff(block.indptr) for block in blocks])
    data, indices = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("data", "indices"))
    shape = (sizes.size, max(block.shape[1] for block in blocks))
    return sparse.csr_array((data, indices, np.append(0, np.cumsum(sizes))), shape=shape)


def solve(cost: Real, matrix: Any, lower: Real, upper: Real, bounds: Real, *, whole: int = 0) -> Real | None:
    """Solve a linear program."""
    equal = lower == upper
    top, bottom = np.flatnonzero(~equal & (upper < np.inf)), np.flatnonzero(~equal & (lower > -np.inf))
    sides = matrix[np.append(top, bottom)]
    sides.data[sides.indptr[top.size] :] *= -1
    found = linprog(
        cost,
        A_ub=sides,
        b_ub=np.concatenate([upper[top], -lower[bottom]]),
        A_eq=matrix[np.flatnonzero(equal)],
        b_eq=lower[equal],
        bounds=bounds,
        **(
            {"method": "highs", "integrality": np.arange(cost.size) < whole, "options": {"mip_rel_gap": 0.0}}
            if whole
            else {"method": "highs-ds", "options": {"presolve": False}}  # small problems: it costs more than it saves
        ),
    )
    return np.asarray(found.x) if found.status == 0 else None
