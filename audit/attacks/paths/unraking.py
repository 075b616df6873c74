"""Un-raking: recover the whole numbers that a table held before raking scaled it."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Tree", "unrake"]

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

ROUNDING = 8 * float(np.finfo(np.float64).eps)  # relative error of a raked value, or of a sum of thousands of them
STEPS = 40  # denominators more than double at each step, and float64 resolves none beyond 2**27
SURE = 1e-3  # largest denominator**2 * error: the probability that chance finds a fraction
WHOLE = 0.25  # values further than this from a whole number are not whole


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree of areas, and the nodes that an output holds: all leaves in any order, and some nodes above them."""

    # Nodes come after their parent; the root is node 0, with parent -1. `released` is the node of each entry.

    parent: Index
    released: Index

    def __post_init__(self) -> None:
        parent, released = (_whole_numbers(name, getattr(self, name)) for name in ("parent", "released"))
        if parent[0] != -1:
            raise ValueError(f"parent must be -1 for the root, node 0, got {parent[0]}")
        astray = np.flatnonzero((parent < 0) | (parent >= np.arange(parent.size)))[1:]
        if astray.size:
            raise ValueError(f"parents must come before their children, got {parent[astray[0]]} for node {astray[0]}")
        beyond = released[(released < 0) | (released >= parent.size)]
        if beyond.size:
            raise ValueError(f"released must be nodes of 0..{parent.size - 1}, got {beyond[0]}")
        times = np.bincount(released, minlength=parent.size)
        if times.max() > 1:
            raise ValueError(f"released must hold a node once, got node {times.argmax()} {times.max()} times")
        object.__setattr__(self, "parent", parent)
        object.__setattr__(self, "released", released)
        missing = self.leaves[times[self.leaves] == 0]
        if missing.size:
            raise ValueError(f"released must hold every leaf, got no entry for node {missing[0]}")

    @property
    def n_nodes(self) -> int:
        """Number of areas, the root included."""
        return self.parent.size

    @functools.cached_property
    def children(self) -> tuple[Index, ...]:
        """Nodes right below each node."""
        order = np.argsort(self.parent, kind="stable")
        cuts = np.searchsorted(self.parent[order], np.arange(self.n_nodes + 1))
        return tuple(order[start:stop] for start, stop in itertools.pairwise(cuts))

    @functools.cached_property
    def leaves(self) -> Index:
        """Nodes without children."""
        return np.setdiff1d(np.arange(self.n_nodes), self.parent)

    @functools.cached_property
    def level(self) -> Index:
        """Steps from the root down to each node, shape (n_nodes,)."""
        level = np.zeros(self.n_nodes, np.int64)
        for node in range(1, self.n_nodes):
            level[node] = level[self.parent[node]] + 1
        return level

    @functools.cached_property
    def entries(self) -> tuple[Index, ...]:
        """Entries of an output that add up to each node: its own, or those of its children."""
        own = np.full(self.n_nodes, -1)
        own[self.released] = np.arange(self.released.size)
        entries: list[Index] = [np.empty(0, np.int64)] * self.n_nodes
        for node in range(self.n_nodes - 1, -1, -1):
            entries[node] = (
                own[[node]] if own[node] >= 0 else np.concatenate([entries[child] for child in self.children[node]])
            )
        return tuple(entries)

    def totals(self, outputs: NDArray[Any], nodes: Index | None = None) -> Floats:
        """Return the value of nodes, shape (runs, m): as released, or else the sum of released nodes below."""
        flat, columns = self.flat(outputs), np.arange(self.n_nodes) if nodes is None else nodes
        with np.errstate(invalid="ignore"):  # opposite infinities
            return np.column_stack([np.sum(self.part(flat, node), axis=1, dtype=np.float64) for node in columns])

    def flat(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """Return outputs with one axis of entries, or raise an error if they do not fit the tree."""
        array = np.asarray(outputs)
        if array.dtype.kind not in "iuf":
            raise TypeError(f"outputs must be real numbers, got dtype {array.dtype}")
        if array.ndim < 2 or math.prod(array.shape[1:]) != self.released.size:
            raise ValueError(
                f"outputs must have one entry for each of {self.released.size} released nodes, got shape {array.shape}"
            )
        return np.ascontiguousarray(array.reshape(len(array), self.released.size))

    def part(self, flat: NDArray[Any], node: int) -> NDArray[Any]:
        """Return the entries that add up to a node, shape (runs, k), contiguous in each run: so sums round least."""
        entries = self.entries[node]
        if entries[-1] - entries[0] == entries.size - 1 and (np.diff(entries) == 1).all():
            return flat[:, entries[0] : entries[-1] + 1]
        return np.take(flat, entries, axis=1)


@np.errstate(all="ignore")  # a family with a sum of 0 divides by zero, and becomes NaN
def unrake(tree: Tree, outputs: NDArray[Any], nodes: Index, around: Floats) -> Floats:
    """Recover the noisy whole numbers that a table held before it was raked from the top down; NaN where they are lost.

    Raking multiplies all children of an area by one factor. So their shares of the parent, read as fractions in lowest
    terms (Hardy and Wright, "An Introduction to the Theory of Numbers", theorem 184), give the noisy children up to a
    common divisor, and the multiple nearest to the expected counts, `around`, is taken.

    A family fails if float64 cannot resolve its shares as fractions (from 3e11 for the smallest child times the sum,
    which is then searched near the expected one), if its parent is 0, or if all its children are equal. It is wrong if
    a common divisor makes another multiple nearer: often with two children, seldom with many.
    """
    flat = tree.flat(outputs)
    recovered = np.full((len(flat), nodes.size), np.nan)

    @functools.cache
    def family(node: int) -> tuple[Floats, Floats]:
        return _sums(tree, flat, tree.children[node])

    def itself(node: int) -> tuple[Floats, Floats]:
        if tree.entries[node].size == 1:
            return _sums(tree, flat, [node])
        values, spreads = family(node)
        return values.sum(axis=1, keepdims=True), spreads.sum(axis=1, keepdims=True)

    above = tree.parent[nodes]
    for parent in np.unique(above):
        columns = np.flatnonzero(above == parent)
        if parent < 0:
            value, spread = itself(0)
            rounded = np.rint(value)
            recovered[:, columns] = np.where(
                np.abs(value - rounded) <= np.minimum(ROUNDING * spread, WHOLE), rounded, np.nan
            )
            continue
        (values, spreads), (total, spread) = family(parent), itself(parent)
        shares = values / total
        errors = ROUNDING * (spreads + np.abs(shares) * spread) / np.abs(total)
        children = tree.children[parent]
        counts = _counts(shares, errors, around[children])
        recovered[:, columns] = counts[:, np.searchsorted(children, nodes[columns])]
    return recovered


def _sums(tree: Tree, flat: NDArray[Any], nodes: Sequence[int] | Index) -> tuple[Floats, Floats]:
    """Return the values of nodes and the sums of the absolute values of their terms, which bound rounding errors."""
    parts = [tree.part(flat, node) for node in nodes]
    values = np.column_stack([np.sum(part, axis=1, dtype=np.float64) for part in parts])
    return values, np.column_stack([np.sum(np.abs(part), axis=1, dtype=np.float64) for part in parts])


def _counts(shares: Floats, errors: Floats, expected: Floats) -> Floats:
    """Return whole numbers with a family's shares, nearest to the expected ones, shape (runs, children); else NaN."""
    runs = np.arange(len(shares))
    first = np.where(shares == 0, np.inf, np.abs(shares)).argmin(axis=1)
    total = _denominator(shares[runs, first], errors[runs, first])
    large = np.flatnonzero(np.isnan(total))
    for share, error in zip(shares.T, errors.T, strict=True):
        total *= _denominator(share * total, error * total)
    first = first[large]
    near = np.full(large.size, expected.sum())
    total[large] = _sum_near(shares[large, first], errors[large, first], near)

    counts = shares * total[:, None]
    rounded = np.rint(counts)
    lost = (rounded == rounded[:, :1]).all(axis=1)
    lost |= ~(np.abs(counts - rounded) <= np.minimum(errors * total[:, None], WHOLE)).all(axis=1)
    # Least squares for noise of equal variance on all children.
    factor = np.maximum(np.rint((rounded * expected).sum(axis=1) / np.square(rounded).sum(axis=1)), 1.0)
    return np.where(lost[:, None], np.nan, rounded * factor[:, None])


def _convergents(numbers: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield denominators of each number's continued fraction, and how far its product with each is from a whole."""
    before, distance_before = np.zeros_like(numbers), np.full_like(numbers, -1.0)
    denominator, distance = np.ones_like(numbers), numbers - np.rint(numbers)
    for _ in range(STEPS):
        yield denominator, distance
        quotient = np.rint(-distance_before / distance)
        distance, distance_before = distance_before + quotient * distance, distance
        denominator, before = before + quotient * denominator, denominator


def _denominator(numbers: Floats, errors: Floats) -> Floats:
    """Return the denominator of the first convergent of each number within its error, shape (runs,); NaN if none is."""
    result = np.full(numbers.size, np.nan)
    pending = np.isfinite(numbers)
    for denominator, distance in _convergents(numbers):
        size = np.abs(denominator)
        pending &= size * size * errors <= SURE
        done = pending & (np.abs(distance) <= size * errors)
        result[done] = size[done]
        pending &= ~done
        if not pending.any():
            break
    return result


def _sum_near(shares: Floats, errors: Floats, expected: Floats) -> Floats:
    """Return the whole number nearest to the expected one whose share is whole too, shape (runs,)."""
    # A step from the expected sum changes the distance of the share from a whole number. Two neighboring convergents
    # are a basis of all pairs of step and change: their nearest whole combination closes the distance.
    start = np.rint(expected)
    miss = shares * start - np.rint(shares * start)
    most = 1 / (4 * np.abs(start) * errors)
    one = other = np.array([np.zeros_like(start), np.full_like(start, -1.0)])
    for step in _convergents(shares):
        grows = np.abs(step[0]) <= most
        if not grows.any():
            break
        other, one = np.where(grows, one, other), np.where(grows, step, one)
    span = one[0] * other[1] - other[0] * one[1]
    steps = np.rint(other[0] * miss / span) * one[0] - np.rint(one[0] * miss / span) * other[0]
    return np.where(start + steps >= 1, start + steps, np.nan)


def _whole_numbers(name: str, values: ArrayLike) -> Index:
    """Return a read-only array of integers that is not empty."""
    numbers = np.asarray(values)
    if numbers.ndim != 1 or numbers.size == 0:
        raise ValueError(f"{name} must be a filled row of nodes, got shape {numbers.shape}")
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got dtype {numbers.dtype}")
    row = numbers.astype(np.int64)
    row.flags.writeable = False
    return row
