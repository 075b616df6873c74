"""The bottom-up mechanism on counts of people: noise on every cell of the full histogram; tables add up noisy cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import chain, combinations
from typing import ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bottom_up.calibration import PublishedTotals, agreement, calibrate, check_covered
from algorithms.bottom_up.inverse_cdf import InverseCdf
from algorithms.hierarchy import Hierarchy, check_counts
from algorithms.noise import Rng, TwoTailedGeometric, add_noise
from algorithms.noise.counts import Pair, PureBudget, changes, log_likelihood_of_cells
from algorithms.noise.losses import loss_of_changes
from algorithms.schema import CROSS, DETAILED, TOTAL, Schema
from audit.exact import LossDistribution

__all__ = ["BottomUp", "LogLikelihood", "Noise", "NoisyCounts"]

Noise = Literal["exact", "inverse_cdf"]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
LogLikelihood = Callable[[ArrayLike, ArrayLike], Floats]

MOST_ATTRIBUTES = 12  # a release has all margins: 4,096 tables for 12 attributes


class NoisyCounts(PureBudget, ABC):
    """Whole-number noise on counts of people; noisy counts are calibrated to published totals, if there are any."""

    tree: Hierarchy | None
    noise: Noise
    published: PublishedTotals | None

    threads: ClassVar[bool] = True  # runs may use threads: no run writes data that another reads

    @property
    def sensitivity(self) -> int:
        """Largest change of the histogram by one record, in people."""
        return 1

    @abstractmethod
    def counts(self, data: ArrayLike) -> Integers:
        """Return the counts of people to protect, shape (leaves,) or (leaves, cells)."""

    @property
    def _hidden(self) -> int:
        return self.sensitivity

    @cached_property
    def law(self) -> TwoTailedGeometric | InverseCdf:
        """The law of the error of every cell, before calibration."""
        per_person = TwoTailedGeometric(self.epsilon).epsilon / self._hidden
        return TwoTailedGeometric(per_person) if self.noise == "exact" else InverseCdf(per_person)

    def exact(self, data: ArrayLike) -> Integers:
        """Return the release without noise, in the same shape, including areas that are not reported."""
        return self.counts(data)

    def __call__(self, data: ArrayLike, size: int, rng: Rng) -> Integers | Floats:
        """Release counts, shape (leaves,) or (leaves, cells), `size` times; NaN in areas that are not reported."""
        exact = self.counts(data)
        noisy = add_noise(exact, self.law, size, rng, query="histogram", sensitivity=self.sensitivity)
        if self.published is None:
            return noisy
        agreed = agreement(self.published, self._areas(len(exact)), exact)
        return calibrate(noisy.reshape(size, len(exact), -1), self.published, agreed).reshape(noisy.shape)

    def stage(self, name: Literal["measurements"]) -> Self:
        """Return the noisy counts before they are calibrated, as a mechanism by itself."""
        if name != "measurements":
            raise ValueError(f"stage must be measurements, got {name!r}")
        return replace(self, published=None)  # type: ignore[type-var]

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the loss before calibration, which is post-processing; None if its table is too large."""
        x, y = self.counts(pair.x), self.counts(pair.y)
        check_covered(self.published, self.tree, x, y)
        return self._loss(x, y)

    @property
    def log_likelihood(self) -> LogLikelihood | None:
        """Function from outputs, shape (runs, ...), and data to log-probabilities, shape (runs,); None if unknown."""
        known = isinstance(self.law, TwoTailedGeometric) or self.law.tabulated
        return self._log_likelihood if known and self.published is None else None

    def _log_likelihood(self, outputs: ArrayLike, counts: ArrayLike) -> Floats:  # or some entries, if `entrywise`
        array, exact = np.asarray(outputs), np.asarray(counts).reshape(-1)
        columns = array.reshape(len(array), -1) if array.ndim else array
        return log_likelihood_of_cells(columns, exact, lambda noisy, true: self.law.logpmf(noisy - true))

    def _areas(self, leaves: int) -> Hierarchy:
        return self.tree or Hierarchy.regular(leaves, 1)

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        if self.published is not None and self.tree is not None:
            reported = agreement(self.published, self.tree, x).reported
            x, y = x[reported], y[reported]
        return loss_of_changes([(self.law, changes(x.reshape(-1), y.reshape(-1)))])


@dataclass(frozen=True, eq=False)
class BottomUp(NoisyCounts):
    """Two-tailed geometric noise on every cell of the histogram; margins, areas and totals add up noisy cells.

    **Claim.** Pure DP with `epsilon` when one person is added or removed, relative to the published totals: neighbors
    agree on these. If every area has a published total, the promise covers no added or removed person; moving a person
    within an area then has a loss up to twice `epsilon`. With ``noise="inverse_cdf"`` the authors promise this, but
    floating point breaks the promise.
    **Sensitivity.** One person changes one cell by 1.
    **Source.** Clark and Dajani, "Achieving Differential Privacy Using a Two-Tailed Geometric Bottom-Up Mechanism",
    2019; Ghosh, Roughgarden and Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", 2009.

    Attributes
    ----------
    epsilon : float
        Privacy budget in nats, positive and finite.
    tree : Hierarchy, optional
        The areas. Default: the areas of the data side by side, under a root.
    noise : {"exact", "inverse_cdf"}
        An exact sampler, or the inverse of the distribution function at uniforms of 53 bits, as the authors draw.
    published : PublishedTotals, optional
        Totals to which noisy counts are calibrated. The promise covers neither the totals nor the list of those that
        agree with the data.
    """

    epsilon: float
    tree: Hierarchy | None = None
    schema: Schema | None = None
    _: KW_ONLY
    noise: Noise = "exact"
    published: PublishedTotals | None = None

    def __post_init__(self) -> None:
        if self.tree is not None and not isinstance(self.tree, Hierarchy):
            raise TypeError(f"tree must be a Hierarchy, got {type(self.tree).__name__}")
        if self.noise not in get_args(Noise):
            raise ValueError(f"noise must be one of {', '.join(get_args(Noise))}, got {self.noise!r}")
        _ = self.law  # refuses a bad epsilon
        if self.published is not None:
            if self.tree is None:
                raise ValueError("published totals need a tree of areas, got none")
            nodes, areas = self.tree.level(self.published.level), self.published.totals.size
            if areas != (number := nodes.stop - nodes.start):
                where = f"one for each of {number} areas of level {self.published.level}"
                raise ValueError(f"published totals must be {where}, got {areas}")

    @property
    def entrywise(self) -> bool:
        """Whether every entry of an output is an independent function of one count: true without calibration."""
        return self.published is None

    @property
    def of_counts(self) -> BottomUp:
        """The mechanism on counts: this one."""
        return self

    def counts(self, data: ArrayLike) -> Integers:
        """Return the checked counts of people to protect, shape (leaves,) or (leaves, cells)."""
        array = np.asarray(data)
        if array.ndim not in (1, 2) or array.size == 0:
            raise ValueError(f"counts must have shape (leaves,) or (leaves, cells), got {array.shape}")
        if self.tree is not None and len(array) != self.tree.n_leaves:
            raise ValueError(f"counts must have a row for each of {self.tree.n_leaves} leaves, got {len(array)}")
        if self.schema is not None and array.shape[1:] != (self.schema.cells,):
            raise ValueError(f"counts must have {self.schema.cells} cells in each area, got shape {array.shape}")
        return check_counts(array.reshape(-1)).reshape(array.shape)

    def tables(self, noisy: ArrayLike) -> Integers | Floats:
        """Add up noisy cells, shape (..., leaves, cells), to all areas, shape (..., areas, cells); NaN propagates."""
        cells = np.asarray(noisy)
        if cells.ndim < 2:
            raise ValueError(f"noisy must have shape (..., leaves, cells), got {cells.shape}")
        totals = self._areas(cells.shape[-2]).totals(np.moveaxis(cells, -2, -1))
        return np.moveaxis(totals, -1, -2)

    def margins(self, noisy: ArrayLike) -> Mapping[str, Integers | Floats]:
        """Add up noisy cells, shape (..., leaves, cells), to every margin of the attributes in every area, by query.

        Queries are ``"total"``, each attribute, each combination joined by ``*``, and ``"detailed"``.
        """
        if self.schema is None or len(self.schema.shape) > MOST_ATTRIBUTES:
            number = "none" if self.schema is None else len(self.schema.shape)
            raise ValueError(f"margins need a schema of 1 to {MOST_ATTRIBUTES} attributes, got {number}")
        tables = self.tables(noisy)
        if tables.shape[-1] != self.schema.cells:
            raise ValueError(f"noisy must have {self.schema.cells} cells in each area, got {tables.shape[-1]}")
        sides, names = self.schema.shape, list(self.schema.attributes)
        cube, margins = tables.reshape(*tables.shape[:-1], *sides), {}
        for axes in chain.from_iterable(combinations(range(len(sides)), number) for number in range(len(sides) + 1)):
            name = DETAILED if len(axes) == len(sides) else CROSS.join(names[axis] for axis in axes) or TOTAL
            added = cube.sum(axis=tuple(axis - len(sides) for axis in range(len(sides)) if axis not in axes))
            margins[name] = added.reshape(*tables.shape[:-1], -1)
        return margins
