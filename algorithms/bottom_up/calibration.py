"""Published totals as invariants: areas whose total agrees with the data are raked to it, others are not reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.hierarchy import LARGEST_EXACT, Hierarchy
from audit.arguments import whole_number

__all__ = ["Agreement", "PublishedTotals", "agreement", "calibrate", "check_covered", "check_totals", "whole_cells"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PublishedTotals:
    """Totals of areas of one level that were published before, exactly.

    Attributes
    ----------
    level : int
        Level of the tree; 0 is the root.
    totals : array_like of float, shape (areas of the level,)
        People, whole numbers below 2**53 in the order of the level's nodes; NaN where none was published.
    tolerance : int
        Largest allowed difference, in people, of the data's total and a published one; above 0 for rounded weights.
    """

    level: int
    totals: Any
    tolerance: int = 0

    def __post_init__(self) -> None:
        for name, value in (("level", self.level), ("tolerance", self.tolerance)):
            whole_number(f"{name} of published totals", value, least=0)
        array = np.asarray(self.totals)
        if array.dtype.kind not in "iuf":
            raise TypeError(f"published totals must be numbers, got dtype {array.dtype}")
        if array.ndim != 1 or array.size == 0:
            raise ValueError(f"published totals must be one for each area of a level, got shape {array.shape}")
        totals = array.astype(np.float64)
        known = totals[~np.isnan(totals)]
        wrong = known[(known < 0) | (known >= LARGEST_EXACT) | (known != np.floor(known))]
        if wrong.size:
            raise ValueError(f"published totals must be whole numbers of people, 0 or more, got {wrong[0]:g}")
        totals.flags.writeable = False
        object.__setattr__(self, "totals", totals)

    def everywhere(self, tree: Hierarchy) -> bool:
        """Return whether every leaf is in an area with a published total; then every added person changes a total."""
        nodes = tree.level(self.level)
        area = tree.ancestors(self.level) - nodes.start
        return bool((area >= 0).all()) and not np.isnan(self.totals[area]).any()


@dataclass(frozen=True, eq=False)
class Agreement:
    """Areas whose total in the data agrees with the published total, and areas whose total differs (not reported).

    Areas without a published total are in neither. `area` is the area of each leaf, -1 if the leaf is above the level.
    """

    area: Integers
    consistent: NDArray[np.bool_]
    inconsistent: NDArray[np.bool_]

    @property
    def reported(self) -> NDArray[np.bool_]:
        """Whether each leaf is reported, shape (leaves,)."""
        return ~(self.inconsistent[self.area] & (self.area >= 0))


def check_covered(published: PublishedTotals | None, tree: Hierarchy | None, x: Integers, y: Integers) -> None:
    """Refuse databases that differ in a published total: the promise does not cover such a pair."""
    if published is None or tree is None:
        return
    on_x, on_y = (totals_of(published, tree, counts) for counts in (x, y))
    for place in np.flatnonzero((on_x != on_y) & ~np.isnan(published.totals)):
        area = tree.name(tree.level(published.level).start + int(place))
        totals = f"that of {area} is {on_x[place]} and {on_y[place]}"
        raise ValueError(
            f"neighbors must agree on published totals, and {totals}: a pair is not covered by the promise"
        )


def check_totals(published: PublishedTotals, tree: Hierarchy, counts: Integers) -> None:
    """Refuse to release if an area's total in the data is not the published one: the area would be missing."""
    wrong = np.flatnonzero(agreement(published, tree, counts).inconsistent)
    if wrong.size:
        area, on_data = int(wrong[0]), totals_of(published, tree, counts)
        more = f" ({wrong.size:,} totals are wrong)" if wrong.size > 1 else ""
        raise ValueError(
            f"published totals must be those of the data, with a tolerance of {published.tolerance}: that of "
            f"{tree.name(tree.level(published.level).start + area)} is {published.totals[area]:.0f}, and the data have "
            f"{on_data[area]}{more}; --tolerance allows more"
        )


def totals_of(published: PublishedTotals, tree: Hierarchy, counts: Integers) -> Integers:
    """Return the data's totals of the areas of the published level, shape (areas,)."""
    totals: Integers = tree.totals(counts.reshape(len(counts), -1).sum(axis=1))[tree.level(published.level)].astype(
        np.int64
    )
    return totals


def agreement(published: PublishedTotals, tree: Hierarchy, counts: Integers) -> Agreement:
    """Compare the published total of each area with the exact one; no promise covers the result."""
    nodes = tree.level(published.level)
    area = tree.ancestors(published.level) - nodes.start
    difference = np.abs(totals_of(published, tree, counts) - published.totals)  # NaN where none was published
    return Agreement(np.maximum(area, -1), difference <= published.tolerance, difference > published.tolerance)


def calibrate(noisy: Integers, published: PublishedTotals, agreed: Agreement) -> Floats:
    """Rake noisy cells, shape (size, leaves, cells), to the totals of consistent areas; others become NaN."""
    cells = noisy.shape[2]
    out = noisy.astype(np.float64)
    out[:, ~agreed.reported] = np.nan
    areas = np.flatnonzero(agreed.consistent)
    leaves = np.flatnonzero(np.isin(agreed.area, areas))
    if not areas.size:
        return out
    order = leaves[np.argsort(agreed.area[leaves], kind="stable")]  # siblings side by side
    families = np.bincount(np.searchsorted(areas, agreed.area[order]), minlength=areas.size) * cells
    parent = np.concatenate([[-1], np.zeros(areas.size, np.int64), np.repeat(np.arange(areas.size) + 1, families)])
    ends = np.array([0, 1, 1 + areas.size, parent.size])
    tree = Hierarchy(parent, ends, np.arange(ends[2], parent.size), ("",) * parent.size)
    totals = published.totals[areas].astype(np.int64)
    known = np.broadcast_to(np.concatenate([[totals.sum()], totals]), (len(noisy), 1 + areas.size))
    raked = tree.rake(np.concatenate([known, noisy[:, order].reshape(len(noisy), -1)], axis=1))
    out[:, order] = raked[:, ends[2] :].reshape(len(noisy), order.size, cells)
    return out


def whole_cells(cells: Floats, published: PublishedTotals, agreed: Agreement, rng: np.random.Generator) -> Integers:
    """Round calibrated cells, shape (leaves, cells), to whole people that still add up to the totals.

    Systematic sampling (Madow, 1949) in a random order of an area's cells rounds each up as often as its fraction says.
    """
    whole = np.floor(cells).astype(np.int64)
    for area in np.flatnonzero(agreed.consistent):
        inside = np.flatnonzero(agreed.area == area)
        rounded = whole[inside].reshape(-1)
        order = rng.permutation(rounded.size)
        places = np.cumsum((cells[inside] - whole[inside]).reshape(-1)[order])
        places[-1] = published.totals[area] - rounded.sum()  # differs from the sum only by rounding
        rounded[order] += np.diff(np.floor(places + rng.random()), prepend=0).astype(np.int64)
        whole[inside] = rounded.reshape(inside.size, -1)
    return whole
