"""A ragged tree of areas: the parent of each area, and functions that add up counts and rake them from the top down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.arguments import whole_number

__all__ = ["Hierarchy", "check_counts"]

Index = NDArray[np.int64]
LARGEST_EXACT = 2**53  # above this, float64 cannot represent every whole number


def check_counts(counts: ArrayLike) -> Index:
    """Return counts of people, shape (..., n), as int64; refuse negative or broken numbers and totals from 2**53 on."""
    array = np.asarray(counts)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"counts must be whole numbers of people, got dtype {array.dtype}")
    if array.dtype.kind == "f" and array.size:
        odd = array[~(np.isfinite(array) & (array == np.floor(array)))]
        if odd.size:
            raise ValueError(f"counts must be whole numbers of people, got {odd[0]}")
    if array.size and array.min() < 0:
        raise ValueError(f"counts must not be negative, got {array.min()}")
    if array.size and float(array.max()) * array.shape[-1] >= LARGEST_EXACT:  # otherwise no total can reach the limit
        total = array.sum(axis=-1, dtype=np.float64).max()
        if total >= LARGEST_EXACT:
            raise ValueError(f"counts must add up to less than 2**53, got {total:.0f}")
    return array.astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy:
    """Tree of nested areas, from the root down to the leaves, for which counts are given.

    Nodes are numbered level by level from the root, node 0, with siblings side by side, so that each level and each
    family of siblings is a slice. Fan-out may differ from area to area, and leaves may be at different depths.

    Attributes
    ----------
    parent : ndarray of int, shape (n_nodes,)
        Parent of every node; -1 for the root.
    offsets : ndarray of int, shape (depth + 2,)
        Level ``j`` holds the nodes ``offsets[j]`` up to, not including, ``offsets[j + 1]``.
    leaves : ndarray of int, shape (n_leaves,)
        Node of each leaf, in the order in which counts are given.
    labels : tuple of str
        Name of every node.
    """

    parent: Index
    offsets: Index
    leaves: Index
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        for array in (self.parent, self.offsets, self.leaves):
            array.flags.writeable = False

    @classmethod
    def from_parents(cls, parents: ArrayLike, labels: Sequence[str] | None = None) -> Hierarchy:
        """Build the tree in which node ``i`` lies in node ``parents[i]``, in any order; the one root has parent -1.

        Leaves are the nodes without children, in increasing index. `labels` are the names of the nodes.
        """
        numbers = np.asarray(parents)
        if numbers.ndim != 1 or numbers.size == 0:
            raise ValueError(f"parents must be a list of at least one node, got shape {numbers.shape}")
        if numbers.dtype.kind not in "iu":
            raise TypeError(f"parents must be integers, got dtype {numbers.dtype}")
        above = numbers.astype(np.int64)
        n = above.size
        names = tuple(str(i) for i in range(n)) if labels is None else tuple(str(label) for label in labels)
        if len(names) != n:
            raise ValueError(f"labels must name every node: got {len(names)} labels for {n} nodes")
        if (orphans := np.flatnonzero((above < -1) | (above >= n))).size:
            node = orphans[0]
            raise ValueError(f"node {node} is an orphan: its parent {above[node]} is not a node of 0..{n - 1}")
        roots = np.flatnonzero(above == -1)
        if roots.size != 1:
            raise ValueError(f"a tree has exactly one root (parent -1), got {roots.size}")

        by_parent = np.argsort(above, kind="stable")  # the root first, then family after family
        start = np.searchsorted(above[by_parent], np.arange(n + 1))
        order, offsets = [roots], [0, 1]
        while (level := order[-1]).size:
            order.append(np.concatenate([by_parent[start[node] : start[node + 1]] for node in level]))
            offsets.append(offsets[-1] + order[-1].size)
        nodes = np.concatenate(order)
        if nodes.size < n:
            lost = np.setdiff1d(np.arange(n), nodes)
            raise ValueError(f"node {lost[0]} lies on or under a cycle: its ancestors never reach the root")

        place = np.empty(n, np.int64)
        place[nodes] = np.arange(n)
        parent = np.where(above[nodes] < 0, -1, place[above[nodes]])
        childless = np.flatnonzero(np.bincount(above[above >= 0], minlength=n) == 0)
        return cls(parent, np.array(offsets[:-1]), place[childless], tuple(names[node] for node in nodes))

    @classmethod
    def from_codes(cls, *columns: Sequence[str] | NDArray[np.str_]) -> Hierarchy:
        """Build the tree that columns of codes describe, one row a leaf, one column a level, the outermost first.

        A code needs to be unique only within its parent. The root is labeled ``"total"``.

        Examples
        --------
        >>> tree = Hierarchy.from_codes(["north", "north", "south"], ["1", "2", "1"])
        >>> tree.totals([10, 20, 5])
        array([35, 30,  5, 10, 20,  5])
        """
        if not columns or len(columns[0]) == 0:
            raise ValueError("codes need at least one column and one row, got none")
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            raise ValueError(f"columns of codes must have one length, got {sorted(lengths)}")
        parents, labels, offsets = [np.array([-1])], ["total"], [0, 1]
        nodes = first = np.zeros(lengths.pop(), np.int64)  # the node of each row, and the first row of each node
        for column in columns:
            known: dict[str, int] = {}
            codes = np.fromiter((known.setdefault(str(code), len(known)) for code in column), np.int64, nodes.size)
            _, first, which = np.unique(nodes * len(known) + codes, return_index=True, return_inverse=True)
            order = np.lexsort([first, nodes[first]])  # siblings side by side, in order of first appearance
            words, first = list(known), first[order]
            labels += [words[code] for code in codes[first].tolist()]
            parents.append(nodes[first])
            nodes = np.argsort(order)[which] + offsets[-1]
            offsets.append(offsets[-1] + order.size)
        if first.size < nodes.size:
            row = int(np.setdiff1d(np.arange(nodes.size), first)[0])
            raise ValueError(f"row {row} repeats the leaf {' / '.join(str(column[row]) for column in columns)}")
        return cls(np.concatenate(parents), np.array(offsets), nodes, tuple(labels))

    @classmethod
    def regular(cls, fanout: int, depth: int) -> Hierarchy:
        """Build the tree in which every area above the leaves has `fanout` children."""
        fanout, depth = whole_number("fanout", fanout, least=1), whole_number("depth", depth, least=1)
        offsets = np.cumsum([0] + [fanout**j for j in range(depth + 1)])
        n = int(offsets[-1])
        parent = np.concatenate([[-1], np.repeat(np.arange(offsets[-2]), fanout)])
        return cls(parent, offsets, np.arange(offsets[-2], n), tuple(map(str, range(n))))

    @property
    def n_nodes(self) -> int:
        """Number of areas, the root included."""
        return self.parent.size

    @property
    def n_leaves(self) -> int:
        """Number of areas without parts: the length of a vector of counts."""
        return self.leaves.size

    @property
    def depth(self) -> int:
        """Levels below the root: the J of a hierarchy with J nested codes."""
        return self.offsets.size - 2

    def __repr__(self) -> str:
        levels = " > ".join(str(size) for size in np.diff(self.offsets))
        return f"Hierarchy({levels} areas, {self.n_leaves} leaves)"

    def level(self, j: int) -> slice:
        """Return the slice of nodes at level `j`: 0 is the root, `depth` the finest."""
        if not 0 <= j <= self.depth:
            raise ValueError(f"level must be in 0..{self.depth}, got {j}")
        return slice(int(self.offsets[j]), int(self.offsets[j + 1]))

    def path(self, leaf: int) -> Index:
        """Return the nodes from the root down to a leaf, both included, shape (levels of the leaf + 1,)."""
        if not 0 <= leaf < self.n_leaves:
            raise ValueError(f"leaf must be in 0..{self.n_leaves - 1}, got {leaf}")
        node, nodes = int(self.leaves[leaf]), []
        while node >= 0:
            nodes.append(node)
            node = int(self.parent[node])
        return np.array(nodes[::-1])

    def ancestors(self, j: int) -> Index:
        """Return the area at level `j` that contains each leaf, shape (n_leaves,); a leaf above `j` is its own area."""
        stop = self.level(j).stop
        nodes = self.leaves.copy()
        while (deeper := nodes >= stop).any():
            nodes[deeper] = self.parent[nodes[deeper]]
        return nodes

    def cut(self, j: int) -> Index:
        """Return the areas of level `j`, and leaves above it, ordered by the first leaf in each."""
        areas = self.ancestors(j)
        return areas[np.sort(np.unique(areas, return_index=True)[1])]

    @cached_property
    def starts(self) -> Index:
        """First child of each node, shape (n_nodes + 1,); node ``i`` has ``starts[i]`` to ``starts[i + 1] - 1``."""
        fanout = np.bincount(self.parent[1:], minlength=self.n_nodes)
        return np.concatenate([[1], 1 + np.cumsum(fanout)]).astype(np.int64)

    def label(self, leaf: int) -> str:
        """Return the names along the path to a leaf, without the root's."""
        return self.name(int(self.path(leaf)[-1]))

    def name(self, node: int) -> str:
        """Return the names along the path to an area, without the root's; for the root, return its own name."""
        return " / ".join(self.codes(node)) or self.labels[0]

    def codes(self, node: int) -> list[str]:
        """Return the labels on the path to an area, the outermost first and without the root's."""
        if not 0 <= node < self.n_nodes:
            raise ValueError(f"node must be in 0..{self.n_nodes - 1}, got {node}")
        labels = []
        while node > 0:
            labels.append(self.labels[node])
            node = int(self.parent[node])
        return labels[::-1]

    def check_counts(self, counts: ArrayLike) -> Index:
        """Return counts of people as int64, shape (..., n_leaves); refuse other shapes and bad counts."""
        array = np.asarray(counts)
        if array.ndim == 0 or array.shape[-1] != self.n_leaves:
            raise ValueError(f"counts must have one entry for each of {self.n_leaves} leaves, got shape {array.shape}")
        return check_counts(array)

    def totals(self, values: ArrayLike) -> NDArray[np.int64] | NDArray[np.float64]:
        """Add up the values of the leaves, shape (..., n_leaves), to those of all areas, root first: (..., n_nodes)."""
        array = np.asarray(values)
        if array.ndim == 0 or array.shape[-1] != self.n_leaves:
            raise ValueError(f"values must have one entry for each of {self.n_leaves} leaves, got shape {array.shape}")
        # Totals may not fit the narrow type in which counts are stored.
        out = np.zeros((*array.shape[:-1], self.n_nodes), np.float64 if array.dtype.kind == "f" else np.int64)
        out[..., self.leaves] = array
        for j in range(self.depth, 0, -1):
            parents, starts, _ = self._families[j - 1]
            out[..., parents] = np.add.reduceat(out[..., self.level(j)], starts, axis=-1)
        return out

    def rake(self, noisy: ArrayLike) -> NDArray[np.float64]:
        """Scale the children of every area, shape (..., n_nodes), from the top down to add up to their raked parent.

        If the noisy children of an area add up to zero or less, they share their parent's value equally: a ratio would
        be undefined or change signs. Whole numbers give neither NaN nor infinity: every other sum is at least 1, so
        values below 2**53 stay finite for at least 18 levels. Source: Flaxman, 2019, section 2.2 (RDPC); the paper has
        no rule for sums of zero and below; this one is our own.
        """
        array = np.asarray(noisy)
        if array.ndim == 0 or array.shape[-1] != self.n_nodes:
            raise ValueError(f"noisy must have one entry for each of {self.n_nodes} areas, got shape {array.shape}")
        out = array.astype(np.float64)
        if array.dtype.kind == "f" and not (np.isfinite(out) & (out == np.rint(out))).all():
            raise ValueError("noisy must hold whole numbers: their sums are 1 or more, or hold no proportion")
        for j in range(1, self.depth + 1):
            parents, starts, sizes = self._families[j - 1]
            children = out[..., self.level(j)]
            sums = np.add.reduceat(array[..., self.level(j)], starts, axis=-1)
            above = out[..., parents]
            lost = sums <= 0
            ratio = above / np.where(lost, 1, sums)
            if lost.any():
                ratio[lost] = 0.0  # adds nothing to the equal shares below
            children *= np.repeat(ratio, sizes, axis=-1)
            if lost.any():
                children += np.repeat(np.where(lost, above / sizes, 0.0), sizes, axis=-1)
        return out

    @cached_property
    def _families(self) -> list[tuple[Index, Index, Index]]:
        """For each level below the root: the parent, the start within the level, and the size of each family."""
        levels = (self.parent[self.level(j)] for j in range(1, self.depth + 1))
        return [np.unique(parents, return_index=True, return_counts=True) for parents in levels]
