"""The bottom-up mechanism on a weighted sample: each record counts as many people as its weight says."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bottom_up.calibration import PublishedTotals
from algorithms.bottom_up.mechanism import BottomUp, Noise, NoisyCounts
from algorithms.hierarchy import Hierarchy
from algorithms.noise import TwoTailedGeometric
from algorithms.schema import Schema
from audit.arguments import real_number

__all__ = ["MOST", "UNITS", "WeightedBottomUp", "check_largest_weight", "round_units", "units_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

UNITS = 2**20
"""Units of weight per person: weights are added up in whole units."""

LEAST = 1e-12  # smallest epsilon of the noise, see `TwoTailedGeometric`
HEAVIEST = 2**31  # largest weight of one record, in people
MOST = 2**33
"""Largest total weight, in people, so that sums of units are below 2**53."""


@dataclass(frozen=True, eq=False)
class WeightedBottomUp(NoisyCounts):
    r"""Bottom-up noise on weighted counts, with the largest possible weight as global sensitivity.

    **Claim.** Pure DP with `epsilon` when one record is added or removed, whatever its weight; relative to the
    published totals. It does not cover whether data are valid: if that must stay secret, check weights at their source.
    **Sensitivity.** One record changes one rounded count by at most ``ceil(largest_weight)``.
    **Source.** Clark and Dajani, 2019 (see `BottomUp`), who do not say how fractions are treated.

    Attributes
    ----------
    largest_weight : float
        The largest weight W that the design of the sample allows, in people: public, and not read from the data.
    shape : tuple of int
        Shape of the histogram: (leaves,) or (leaves, cells).
    epsilon, tree, schema, noise, published
        See `BottomUp`.

    Notes
    -----
    Data are records, shape (n, 2): the index of a cell in the histogram, row by row, and a weight in (0, W]. Others are
    refused. Whole-number noise on sums of weights would reveal their fractional parts, so weighted counts are rounded
    before noise is added, halves up.

    **Proof of the sensitivity.** Each weight is rounded to a whole number of units of :math:`u = 2^{-20}` people by
    itself; then :math:`w \le \lceil W/u \rceil u`, and so :math:`\lceil w \rceil \le \lceil W \rceil`. Sums of units
    are exact. A cell goes from :math:`r(s)` to :math:`r(s+w)` with :math:`r(s) = \lfloor s + 1/2 \rfloor`, and
    :math:`r(s + w) \le r(s + \lceil w \rceil) = r(s) + \lceil w \rceil`. The bound is attained: for :math:`s = 1/2 - u`
    and :math:`w = u` the cell goes from 0 to 1. Floating-point sums, which depend on the order of records, would break
    the bound (Casacuberta, Shoemate, Vadhan and Wagaman, "Widespread Underestimation of Sensitivity in Differentially
    Private Libraries and How to Fix It", 2022).
    """

    epsilon: float
    largest_weight: float
    shape: tuple[int, ...]
    tree: Hierarchy | None = None
    schema: Schema | None = None
    _: KW_ONLY
    noise: Noise = "exact"
    published: PublishedTotals | None = None

    def __post_init__(self) -> None:
        check_largest_weight(self.largest_weight)
        sides = self.shape if isinstance(self.shape, tuple) else ()
        if len(sides) not in (1, 2) or not all(isinstance(side, int | np.integer) and side > 0 for side in sides):
            raise ValueError(f"shape must be (leaves,) or (leaves, cells), got {self.shape!r}")
        if TwoTailedGeometric(self.epsilon).epsilon / self._hidden < LEAST:
            raise ValueError(
                f"epsilon / ceil(largest weight) must be at least {LEAST:g}, got {self.epsilon:g} / {self._hidden}"
            )
        self.of_counts.counts(np.zeros(self.shape, np.int64))  # refuses a shape that does not fit

    @property
    def sensitivity(self) -> int:
        """Largest change of the histogram by one record, in people."""
        return math.ceil(self.largest_weight)

    @cached_property
    def of_counts(self) -> BottomUp:
        """The mechanism on the rounded counts."""
        return BottomUp(self.law.epsilon, self.tree, self.schema, noise=self.noise, published=self.published)

    def counts(self, data: ArrayLike) -> Integers:
        """Return the weighted counts of records, rounded to whole people: shape `shape`; see `units_of`."""
        return round_units(units_of(data, self.shape, self.largest_weight))

    def _log_likelihood(self, outputs: ArrayLike, records: ArrayLike) -> Floats:
        return super()._log_likelihood(outputs, self.counts(records))


def check_largest_weight(weight: object) -> None:
    """Refuse a largest weight that is not positive, or above 2**31."""
    if not 0 < real_number("largest weight", weight) <= HEAVIEST:
        raise ValueError(f"largest weight must be above 0 and at most 2**31, got {weight}")


def units_of(records: Any, shape: tuple[int, ...], largest: float) -> Integers:
    """Add up the weights of records, shape (n, 2), cell by cell in 2**-20 people, exactly: shape `shape`."""
    array = np.asarray(records)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"records must be numbers, got dtype {array.dtype}")
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"records must have two columns, cell and weight, got shape {array.shape}")
    cells, weights = array.astype(np.float64).T
    size = math.prod(shape)
    wrong = cells[~((cells >= 0) & (cells < size) & (cells == np.floor(cells)))]
    if wrong.size:
        raise ValueError(f"cells must be whole numbers from 0 to {size - 1}, got {wrong[0]:g}")
    wrong = weights[~((weights > 0) & (weights <= largest))]
    if wrong.size:
        raise ValueError(f"weights must be above 0 and at most the largest weight {largest:g}, got {wrong[0]:g}")
    if weights.sum() >= MOST:
        raise ValueError(f"weights must add up to less than 2**33, got {weights.sum():.0f}")
    units = np.zeros(size, np.int64)
    np.add.at(units, cells.astype(np.int64), np.floor(weights * UNITS + 0.5).astype(np.int64))
    return units.reshape(shape)


def round_units(units: Integers) -> Integers:
    """Round units of 2**-20 people to whole people, halves up."""
    return (units + UNITS // 2) // UNITS
