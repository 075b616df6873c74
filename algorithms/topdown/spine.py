"""The tree down which tables are split: each area's share of the budget, and a spine in two parts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.hierarchy import Hierarchy

__all__ = ["areas_at", "check_paths", "children_of", "node_shares", "split_spine"]


def node_shares(tree: Hierarchy, levels: Sequence[Fraction], *, bypass: bool = False) -> tuple[Fraction, ...]:
    """Return the share of the budget of every area.

    Parameters
    ----------
    tree : Hierarchy
        The areas.
    levels : sequence of Fraction
        Share of each level, the root's first; they add up to 1.
    bypass : bool
        Whether an area with a single part takes the part's share too: both have the same table, which is then measured
        once, better. (Production gives both shares to the part; the table and the variance are the same.)

    Returns
    -------
    tuple of Fraction
        In the order of the nodes. A leaf above the finest level takes the shares of the levels that it has not, so that
        every path from the root to a leaf spends the total.

    Raises
    ------
    ValueError
        If there is not one share a level, or a path does not spend 1.

    Examples
    --------
    >>> tree = Hierarchy.from_parents([-1, 0, 0, 1])
    >>> [str(share) for share in node_shares(tree, [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)])]
    ['1/2', '1/4', '1/2', '1/4']
    >>> [str(share) for share in node_shares(tree, [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)], bypass=True)]
    ['1/2', '1/2', '1/2', '0']
    """
    if len(levels) != tree.depth + 1:
        raise ValueError(
            f"levels must have one share for each of {tree.depth + 1} levels of the tree, got {len(levels)}"
        )
    shares = [levels[j] for j in range(tree.depth + 1) for _ in range(*tree.level(j).indices(tree.n_nodes))]
    leaf = np.zeros(tree.n_nodes, np.bool_)
    leaf[tree.leaves] = True
    for j in range(tree.depth):
        rest = sum(levels[j:], Fraction(0))
        for node in np.flatnonzero(leaf[tree.level(j)]) + tree.offsets[j]:
            shares[node] = rest
    if bypass:
        starts = children_of(tree)
        for node in range(tree.n_nodes - 1, -1, -1):
            if starts[node + 1] - starts[node] == 1:
                shares[node] += shares[starts[node]]
                shares[starts[node]] = Fraction(0)
    return tuple(check_paths(tree, shares))


def check_paths(tree: Hierarchy, shares: Sequence[Fraction]) -> Sequence[Fraction]:
    """Return the shares of all areas, or say which path does not spend the whole budget.

    Parameters
    ----------
    tree : Hierarchy
        The areas.
    shares : sequence of Fraction
        Share of every area, in the order of the nodes.

    Returns
    -------
    sequence of Fraction
        The same.

    Raises
    ------
    ValueError
        If there is not one share an area, or a path from the root to a leaf does not spend 1.
    """
    if len(shares) != tree.n_nodes:
        raise ValueError(f"there must be one share for each of {tree.n_nodes} areas, got {len(shares)}")
    spent = list(shares)
    for node in range(1, tree.n_nodes):
        spent[node] += spent[tree.parent[node]]
    for place in tree.leaves:
        if spent[place] != 1:
            raise ValueError(f"every path must spend the whole budget, and that to {tree.labels[place]} {spent[place]}")
    return shares


def children_of(tree: Hierarchy) -> NDArray[np.int64]:
    """Return where the children of each node start: siblings stand side by side.

    Parameters
    ----------
    tree : Hierarchy
        The areas.

    Returns
    -------
    ndarray of int, shape (n_nodes + 1,)
        Node ``i`` has the children ``starts[i]`` up to, not including, ``starts[i + 1]``.
    """
    fanout = np.bincount(tree.parent[1:], minlength=tree.n_nodes) if tree.n_nodes > 1 else np.zeros(1, np.int64)
    return np.concatenate([[1], 1 + np.cumsum(fanout)]).astype(np.int64)


def areas_at(tree: Hierarchy, level: int) -> NDArray[np.int64]:
    """Return the nodes that cut the tree at a level: those of the level, and leaves above it.

    Parameters
    ----------
    tree : Hierarchy
        The areas.
    level : int
        0 for the root, `depth` for the leaves.

    Returns
    -------
    ndarray of int
        Nodes in the order of the first leaf in each: at the finest level that of the leaves.

    Raises
    ------
    ValueError
        If the tree has no such level.
    """
    areas = tree.ancestors(level)
    return areas[np.sort(np.unique(areas, return_index=True)[1])]


def split_spine(tree: Hierarchy, level: int, inside: ArrayLike) -> tuple[Hierarchy, NDArray[np.int64]]:
    """Divide every area of a level in two: what lies inside a region, and the remainder.

    The Bureau divides states so into American Indian and Alaska Native (AIAN) areas and the rest. The total of a state
    is then that of two siblings together: `algorithms.topdown.constraints.GroupedTotal`.

    Parameters
    ----------
    tree : Hierarchy
        The areas.
    level : int
        Which level is divided, from 1.
    inside : array_like of bool, shape (n_leaves,)
        Which leaves lie in the region.

    Returns
    -------
    tree : Hierarchy
        With the same leaves in the same order; areas are divided as far down as they hold leaves of both kinds.
    groups : ndarray of int, shape (areas at the level,)
        For each area of the new tree at that level, as `areas_at` orders them, the number of the area it was part of.

    Raises
    ------
    ValueError
        If the level is the root or below the tree, there is not one mark for each leaf, or a leaf lies above the level.

    Examples
    --------
    >>> tree = Hierarchy.from_codes(["A", "A", "B"], ["1", "2", "1"])
    >>> split, groups = split_spine(tree, 1, [True, False, False])
    >>> split.labels[1:4], groups
    (('A, inside', 'A, remainder', 'B'), array([0, 0, 1]))
    """
    marks = np.asarray(inside, np.bool_)
    if not 1 <= level <= tree.depth:
        raise ValueError(f"level must be in 1..{tree.depth}, got {level}")
    if marks.shape != (tree.n_leaves,):
        raise ValueError(f"inside must have one mark for each of {tree.n_leaves} leaves, got shape {marks.shape}")
    if tree.leaves.min() < tree.offsets[level]:
        raise ValueError(f"every leaf must lie at level {level} or below, got {tree.label(int(tree.leaves.argmin()))}")
    known: dict[tuple[int, int], int] = {}
    kinds: dict[int, set[bool]] = {}
    for leaf, mark in enumerate(marks):
        for node in tree.path(leaf):
            kinds.setdefault(int(node), set()).add(bool(mark))
    parents, labels, origin = [-1], [tree.labels[0]], [0]
    for leaf, mark in enumerate(marks):
        above = 0
        for j, node in enumerate(map(int, tree.path(leaf)[1:]), start=1):
            key = (node, int(mark) if j >= level else 0)
            if key not in known:
                known[key] = len(parents)
                divided = j >= level and len(kinds[node]) == 2
                labels.append(tree.labels[node] + (", inside" if mark else ", remainder") * divided)
                parents.append(above)
                origin.append(node)
            above = known[key]
    # A node's number in the new tree: as `from_parents` orders them, level by level, siblings side by side. Leaves keep
    # their order only if their numbers ascend, which the numbering on first sight ensures.
    new = Hierarchy.from_parents(parents, [f"{place}\0{label}" for place, label in enumerate(labels)])
    places = np.array([int(label.split("\0")[0]) for label in new.labels])
    named = Hierarchy(new.parent, new.offsets, new.leaves, tuple(labels[place] for place in places))
    return named, np.unique(np.array(origin)[places[areas_at(named, level)]], return_inverse=True)[1]
