"""One record for every person of the released tables, and the way back."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.topdown.plan import Plan

__all__ = ["records_of", "tabulate"]


def records_of(plan: Plan, leaves: ArrayLike) -> NDArray[np.int64]:
    """Return one row for each person of the tables of the leaves.

    Parameters
    ----------
    plan : Plan
        Areas and cells.
    leaves : array_like of int, shape (n_leaves, cells)
        Released tables.

    Returns
    -------
    ndarray of int, shape (people, 1 + attributes)
        Number of the leaf, then the place of the person's level in each attribute; sorted, so that the order of the
        rows says nothing that the tables do not.

    Raises
    ------
    ValueError
        If the tables do not fit the plan.
    """
    tables = plan.check_histogram(leaves)
    leaf, cell = np.divmod(np.repeat(np.arange(tables.size), tables.reshape(-1)), plan.schema.cells)
    return np.column_stack([leaf, *np.unravel_index(cell, plan.schema.shape)])


def tabulate(plan: Plan, records: ArrayLike) -> NDArray[np.int64]:
    """Count records by leaf and cell: the inverse of `records_of`, and the door for a person file.

    Parameters
    ----------
    plan : Plan
        Areas and cells.
    records : array_like of int, shape (people, 1 + attributes)
        Number of the leaf, then the place of the person's level in each attribute.

    Returns
    -------
    ndarray of int, shape (n_leaves, cells)
        Tables of the leaves.

    Raises
    ------
    ValueError
        If a record has another number of columns, or a leaf or level that does not exist.
    """
    rows = np.asarray(records)
    limits = (plan.tree.n_leaves, *plan.schema.shape)
    if rows.ndim != 2 or rows.shape[1] != len(limits):
        raise ValueError(
            f"records must have {len(limits)} columns, the leaf and each attribute, got shape {rows.shape}"
        )
    if rows.size and ((rows < 0) | (rows >= limits)).any():
        row = int(np.argwhere(((rows < 0) | (rows >= limits)).any(axis=1))[0, 0])
        raise ValueError(f"records must name leaves and levels that exist, got {rows[row].tolist()} in row {row}")
    counts = np.bincount(np.ravel_multi_index(tuple(rows.T), limits), minlength=int(np.prod(limits)))
    return counts.reshape(plan.tree.n_leaves, plan.schema.cells).astype(np.int64)
