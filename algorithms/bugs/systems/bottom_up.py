"""Known bugs of the bottom-up mechanism: two of weighted samples, and invariants that the promise does not mention.

**Claim.** Pure DP with `epsilon` when one record, or one person, is added or removed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bottom_up.calibration import agreement
from algorithms.bottom_up.mechanism import BottomUp
from algorithms.bottom_up.weighted import UNITS, WeightedBottomUp, units_of
from algorithms.bugs.census import ABSENT
from algorithms.noise import Rng
from algorithms.noise.counts import DISJOINT, Databases, Pair
from audit.exact import LossDistribution

__all__ = ["FractionalCounts", "UndeclaredTotals", "WeightsIgnored"]


class WeightsIgnored(WeightedBottomUp):
    """Weighted counts with the noise of unweighted ones.

    **Bug.** A record changes a count by its weight, not by 1. **True loss.** `epsilon` * ``ceil(largest_weight)``.
    """

    @property
    def _hidden(self) -> int:
        return 1


class FractionalCounts(WeightedBottomUp):
    """Whole-number noise, large enough, on weighted counts that are not whole.

    **Bug.** Every output reveals the fractional parts. **True loss.** Infinite for a record of fractional weight.
    """

    def _parts(self, data: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Whole and fractional parts of the weighted counts, shape `shape` each."""
        whole, rest = np.divmod(units_of(data, self.shape, self.largest_weight), UNITS)
        return whole, rest / UNITS

    def counts(self, data: ArrayLike) -> NDArray[np.float64]:  # type: ignore[override]
        """Return the weighted counts of records without rounding: shape `shape`."""
        whole, rest = self._parts(data)
        return whole + rest

    def __call__(self, data: ArrayLike, size: int, rng: Rng) -> NDArray[np.float64]:
        """Release the weighted counts of records, shape (n, 2), `size` times: shape (size, *shape)."""
        whole, rest = self._parts(data)
        return self.of_counts(whole, size, rng) + rest

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss: infinite at every output if fractional parts differ, else as promised."""
        (x, rest_x), (y, rest_y) = self._parts(pair.x), self._parts(pair.y)
        return self.of_counts.exact_loss(Databases(x, y)) if np.array_equal(rest_x, rest_y) else DISJOINT

    def _log_likelihood(self, outputs: ArrayLike, records: ArrayLike) -> NDArray[np.float64]:
        whole, rest = self._parts(records)
        return self.of_counts._log_likelihood(np.asarray(outputs) - rest, whole)


class UndeclaredTotals(BottomUp):
    """Noisy counts calibrated to published totals, under a promise that does not mention them.

    **Bug.** An area is `ABSENT` unless its exact total is the published one. **True loss.** Infinite.
    """

    def __call__(self, data: ArrayLike, size: int, rng: Rng) -> NDArray[np.float64]:
        """Release counts, shape (leaves,) or (leaves, cells), `size` times."""
        return np.nan_to_num(super().__call__(data, size, rng), nan=ABSENT)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the loss: infinite if the reported areas differ, else that of counts before calibration."""
        x, y = self.counts(pair.x), self.counts(pair.y)
        if self.published is not None and self.tree is not None:
            on_x, on_y = (agreement(self.published, self.tree, one).reported for one in (x, y))
            if (on_x != on_y).any():
                return DISJOINT
        return self._loss(x, y)
