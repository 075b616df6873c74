"""The histograms of NistDp3 as mechanisms by themselves, with the law of what they lose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.nist.records import check_records
from algorithms.noise import Rng, TwoTailedGeometric
from algorithms.noise.geometric import geometric_loss
from algorithms.noise.laplace import laplace_loss
from audit.claims import PureDP
from audit.exact import LossDistribution

if TYPE_CHECKING:
    from algorithms.nist.mechanism import NistDp3

__all__ = ["HistogramStage", "MeasurementStage", "chunks"]

CHUNK = 2**20  # bins or rows of runs that are worked on together


class Pair(Protocol):
    """Two databases of records."""

    @property
    def x(self) -> Any: ...
    @property
    def y(self) -> Any: ...


@dataclass(frozen=True, eq=False)
class HistogramStage:
    """The histograms of NistDp3 after noise and cut, as a mechanism: `NistDp3.stage` makes it.

    **Claim.** The sum of the shares of the groups released.

    Attributes
    ----------
    nist : NistDp3
        The whole.
    only : tuple of int
        Groups that are released, in the order of the output.
    """

    nist: NistDp3
    only: tuple[int, ...]

    @property
    def claim(self) -> PureDP:
        """What the stage promises."""
        return PureDP(self.nist.epsilon * len(self.only) / len(self.nist.groups))

    @property
    def bins(self) -> int:
        """Number of bins that are released."""
        return sum(self.nist.bins[group] for group in self.only)

    def __call__(self, records: ArrayLike, size: int, rng: Rng) -> NDArray[Any]:
        """Measure records, shape (n, fields), `size` times: shape (size, bins), group after group."""
        exact = check_records(records, self.nist.schema)
        return np.concatenate([self._one(exact, group, size, rng) for group in self.only], axis=1)

    def _one(self, records: NDArray[Any], group: int, size: int, rng: Rng) -> NDArray[Any]:
        return self.nist.cut(self.nist.measure(records, group, size, rng), group)


@dataclass(frozen=True, eq=False)
class MeasurementStage(HistogramStage):
    """The noisy histograms of NistDp3 as a mechanism: `NistDp3.stage` makes it.

    **Claim.** The sum of the shares of the groups released.

    Attributes
    ----------
    nist : NistDp3
        The whole.
    only : tuple of int
        Groups that are released, in the order of the output.
    """

    def _one(self, records: NDArray[Any], group: int, size: int, rng: Rng) -> NDArray[Any]:
        return self.nist.measure(records, group, size, rng)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of a pair of databases of records, all groups released together.

        Returns
        -------
        LossDistribution or None
            Exact for geometric noise. For Laplace noise the maximum is exact and all else an upper bound, see
            `algorithms.noise.laplace.laplace_loss`. None where the table would be too large.

        Raises
        ------
        ValueError
            If records do not fit the schema.
        """
        nist = self.nist
        x, y = (check_records(data, nist.schema) for data in (pair.x, pair.y))
        shifts: list[int] = []
        for group in self.only:
            change = nist.histogram(y, group) - nist.histogram(x, group)
            shifts += np.abs(change[change != 0]).tolist()
        return (geometric_loss if nist.law == "geometric" else laplace_loss)(nist.share, shifts)

    def log_likelihood(self, outputs: ArrayLike, records: ArrayLike) -> NDArray[np.float64]:
        """Return the log-probability, or log density, of counts, shape (runs, bins), given records: shape (runs,).

        Raises
        ------
        ValueError
            If outputs do not have one column for each bin, or records do not fit the schema.
        """
        nist, given = self.nist, np.asarray(outputs)
        if given.ndim != 2 or given.shape[1] != self.bins:
            raise ValueError(f"outputs must have one column for each of {self.bins} bins, got shape {given.shape}")
        exact = check_records(records, nist.schema)
        means = np.concatenate([nist.histogram(exact, group) for group in self.only])
        law = nist.noise
        log_law = law.logpmf if isinstance(law, TwoTailedGeometric) else law.logpdf
        total = np.empty(len(given))
        for part in chunks(len(given), self.bins):
            total[part] = log_law(given[part] - means).sum(axis=1)
        return total


def chunks(size: int, width: int) -> Iterator[slice]:
    """Cut runs into pieces whose arrays stay small.

    Parameters
    ----------
    size : int
        Runs.
    width : int
        Entries of an array for each.

    Yields
    ------
    slice
        Of runs.
    """
    runs = max(1, CHUNK // width)
    for start in range(0, size, runs):
        yield slice(start, min(start + runs, size))
