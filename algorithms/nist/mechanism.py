"""NistDp3 as a mechanism: noisy histograms of groups of fields, a cut, synthetic rows; each stage is one too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.nist.groups import Groups
from algorithms.nist.records import LARGEST_GROUP, bins_of, check_records, code_type, product
from algorithms.nist.synthesis import Fitted, check_rows, draw_bins
from algorithms.noise import Laplace, Rng, TwoTailedGeometric, add_noise
from algorithms.noise.counts import Pair, PureBudget, chunks, log_likelihood_of_cells
from algorithms.noise.losses import loss_of_changes
from algorithms.schema import CROSS, Schema
from audit.arguments import real_number
from audit.claims import PureDP
from audit.exact import LossDistribution

__all__ = ["HistogramStage", "MeasurementStage", "NistDp3"]

Law = Literal["laplace", "geometric"]
Stage = Literal["measurements", "thresholded", "counted"]
Chosen = Sequence[str | Sequence[str]] | None
AT_ONCE = 2**20  # bins or rows, over all runs, that are processed together
LEAST_SHARE = 1e-12  # smallest epsilon of a histogram, see `TwoTailedGeometric`


@dataclass(frozen=True, eq=False)
class NistDp3(PureBudget):
    r"""NistDp3: Laplace noise on a histogram of each group of fields, small counts cut, rows drawn group by group.

    **Claim.** Pure DP with `epsilon` when one record is added or removed.
    **Sensitivity.** A record is in exactly one bin of every group, so each group spends an equal share of the budget.
    **Source.** Gardner, "NistDp3: Differential Privacy 3, Write-up and Privacy Proof", third match of the 2018
    Differential Privacy Synthetic Data Challenge of NIST.

    Attributes
    ----------
    schema, groups : Schema, Groups
        From public specifications and data alone; each histogram has at most 2**22 bins.
    epsilon : float
        Total budget in nats, positive and finite.
    factor : float
        Factor of the cut, 0 or more: a noisy count below ``factor * scale * log10(bins)`` becomes 0.
    rows : int
        Number of synthetic rows, from 1 to 50 million; rows times fields are a billion at most.
    law : {"laplace", "geometric"}
        Noise of every bin: Laplace of scale ``len(groups) / epsilon``, as in the author's code, or two-tailed geometric
        of the same rate, which secure releases need.

    Notes
    -----
    The author states that the cut is proportional to ``scale * log10(bins)``, but not its factor. The default is
    :math:`\ln 10`: Laplace noise exceeds :math:`b\ln B` with probability :math:`1/(2B)`, so an empty histogram keeps
    half a spurious bin on average, whatever its size. With geometric noise and :math:`q = e^{-1/b}` it keeps
    :math:`q/(1+q)` to :math:`1/(1+q)` bins. Memory holds one whole histogram, and only the bins kept of the others.
    """

    schema: Schema
    groups: Groups
    epsilon: float
    _: KW_ONLY
    factor: float = math.log(10)
    rows: int = 800_000
    law: Law = "laplace"

    threads: ClassVar[bool] = True  # runs may use threads: no run writes data that another reads

    def __post_init__(self) -> None:
        if not isinstance(self.schema, Schema):
            raise TypeError(f"schema must be a Schema, got {type(self.schema).__name__}")
        if not isinstance(self.groups, Groups):
            raise TypeError(f"groups must be Groups, got {type(self.groups).__name__}")
        self.groups.check(self.schema)
        for name, bins in zip(self.groups.names, self.bins, strict=True):
            if bins > LARGEST_GROUP:
                raise ValueError(f"a group must have at most {LARGEST_GROUP:,} bins, got {bins:,} of {name}")
        if self.law not in get_args(Law):
            raise ValueError(f'law must be "laplace" or "geometric", got {self.law!r}')
        object.__setattr__(self, "epsilon", TwoTailedGeometric(self.epsilon).epsilon)
        if self.share < LEAST_SHARE:
            raise ValueError(
                f"epsilon / groups must be at least {LEAST_SHARE:g}, got {self.epsilon:g} / {len(self.groups)}"
            )
        _ = self.noise  # refuses a scale out of range
        if not 0 <= real_number("factor", self.factor) < math.inf:
            raise ValueError(f"factor must be 0 or more and finite, got {self.factor}")
        check_rows(self.rows, len(self.schema.attributes))

    @property
    def share(self) -> float:
        """Budget in nats of each group."""
        return self.epsilon / len(self.groups)

    @property
    def scale(self) -> float:
        """Scale of the noise on every bin, in records: number of groups over epsilon."""
        return len(self.groups) / self.epsilon

    @cached_property
    def noise(self) -> Laplace | TwoTailedGeometric:
        """Law of the error of every bin."""
        geometric = TwoTailedGeometric(self.share)
        return geometric if self.law == "geometric" else Laplace(self.scale)

    @cached_property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        """Columns of the fields of each group."""
        place = {name: column for column, name in enumerate(self.schema.attributes)}
        return tuple(tuple(place[name] for name in group) for group in self.groups.fields)

    @cached_property
    def bins(self) -> tuple[int, ...]:
        """Number of bins of each group."""
        return tuple(product(self.schema.shape, columns) for columns in self.columns)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """For each group, the noisy count below which a bin is set to 0."""
        return tuple(self.factor * self.scale * math.log10(bins) for bins in self.bins)

    @property
    def spurious(self) -> tuple[float, ...]:
        """For each group, the expected number of bins of an empty histogram that the cut keeps, by noise alone."""
        law = self.noise
        geometric = isinstance(law, TwoTailedGeometric)
        # A bin is kept if its count is not below the cut and does not round to 0.
        cuts = (max(1, math.ceil(cut)) if geometric else max(0.5, cut) for cut in self.thresholds)
        return tuple(bins * float(law.cdf(-cut)) for bins, cut in zip(self.bins, cuts, strict=True))

    def histogram(self, records: NDArray[Any], group: int) -> NDArray[np.int64]:
        """Count records by the bins of a group, exactly, shape (bins,)."""
        places = bins_of(records, self.columns[group], self.schema.shape)
        return np.bincount(places, minlength=self.bins[group]).astype(np.int64, copy=False)

    def measure(self, records: NDArray[Any], group: int, size: int, rng: Rng) -> NDArray[Any]:
        """Count records by the bins of a group with noise, `size` times: shape (size, bins)."""
        exact = self.histogram(records, group)
        return add_noise(exact, self.noise, size, rng, query=self.groups.names[group], sensitivity=1)

    def cut(self, noisy: NDArray[Any], group: int) -> NDArray[np.int64]:
        """Set noisy counts of a group below its threshold to 0, and round the others, shape (..., bins)."""
        return np.where(noisy < self.thresholds[group], 0, np.rint(noisy)).astype(np.int64)

    def __call__(self, records: ArrayLike, size: int, rng: Rng) -> NDArray[Any]:
        """Synthesize rows from records, shape (n, fields), `size` times over: shape (size, rows, fields)."""
        exact = check_records(records, self.schema)
        rows = np.empty((size, self.rows, len(self.schema.attributes)), code_type(self.schema))
        chance = np.random.default_rng() if isinstance(rng, str) else rng
        for group, columns in enumerate(self.columns):
            levels = [self.schema.shape[column] for column in columns]
            for part in chunks(size, max(self.bins[group], self.rows), AT_ONCE):
                counts = self.cut(self.measure(exact, group, part.stop - part.start, rng), group)
                bins = draw_bins(counts, self.rows, chance)
                for column, codes in zip(columns, np.unravel_index(bins, levels), strict=True):
                    rows[part, :, column] = codes
        return rows

    def fit(self, records: ArrayLike, rng: Rng) -> Fitted:
        """Measure every group of records, shape (n, fields), once, and cut; synthetic rows are made from the result."""
        exact = check_records(records, self.schema)
        filled, counts = [], []
        for group in range(len(self.groups)):
            histogram = self.cut(self.measure(exact, group, 1, rng)[0], group)
            filled.append(np.flatnonzero(histogram))
            counts.append(histogram[filled[-1]])
        return Fitted(self.schema, self.groups, tuple(filled), tuple(counts), self.rows)

    def stage(self, name: Stage, *, only: Chosen = None) -> HistogramStage:
        """Return a stage as a mechanism: histograms before or after the cut, or of rows, of all groups or of `only`."""
        if name not in get_args(Stage):
            raise ValueError(f"stage must be one of {', '.join(get_args(Stage))}, got {name!r}")
        names = self.groups.names
        selected = names if only is None else [one if isinstance(one, str) else CROSS.join(one) for one in only]
        if unknown := [one for one in selected if one not in names]:
            raise ValueError(f"only must name groups, got {unknown[0]!r}")
        if not selected:
            raise ValueError("only must name one group at least, got none")
        kind = MeasurementStage if name == "measurements" else HistogramStage
        return kind(self, tuple(place for place, one in enumerate(names) if one in selected), name)


@dataclass(frozen=True, eq=False)
class HistogramStage:
    """Histograms of some groups of NistDp3 after noise and cut, or counted from its rows, as a mechanism.

    **Claim.** The sum of the shares of the groups released, as of all stages.
    """

    nist: NistDp3
    only: tuple[int, ...]
    name: Stage

    threads: ClassVar[bool] = True  # runs may use threads: no run writes data that another reads

    @property
    def __name__(self) -> str:
        return f"NistDp3 {self.name}"

    @property
    def claim(self) -> PureDP:
        """Promise of the stage."""
        return PureDP(self.nist.epsilon * len(self.only) / len(self.nist.groups))

    @property
    def bins(self) -> int:
        """Number of bins that are released."""
        return sum(self.nist.bins[group] for group in self.only)

    def exact(self, records: ArrayLike) -> NDArray[Any]:
        """Return the histograms without noise and cut, group after group; for stage "counted" scaled to `rows` rows."""
        exact = check_records(records, self.nist.schema)
        counts = np.concatenate([self.nist.histogram(exact, group) for group in self.only])
        return counts * (self.nist.rows / max(1, len(exact))) if self.name == "counted" else counts

    def __call__(self, records: ArrayLike, size: int, rng: Rng) -> NDArray[Any]:
        """Measure records, shape (n, fields), `size` times: shape (size, bins), group after group."""
        exact = check_records(records, self.nist.schema)
        return np.concatenate([self._one(exact, group, size, rng) for group in self.only], axis=1)

    def _one(self, records: NDArray[Any], group: int, size: int, rng: Rng) -> NDArray[Any]:
        if self.name != "counted":
            noisy = self.nist.measure(records, group, size, rng)
            return noisy if self.name == "measurements" else self.nist.cut(noisy, group)
        bins, chance = self.nist.bins[group], np.random.default_rng() if isinstance(rng, str) else rng
        histograms = np.empty((size, bins), np.int64)
        for part in chunks(size, max(bins, self.nist.rows), AT_ONCE):
            counts = self.nist.cut(self.nist.measure(records, group, part.stop - part.start, rng), group)
            rows = draw_bins(counts, self.nist.rows, chance)
            rows += bins * np.arange(len(rows))[:, np.newaxis]
            histograms[part] = np.bincount(rows.reshape(-1), minlength=len(rows) * bins).reshape(-1, bins)
        return histograms


class MeasurementStage(HistogramStage):
    """The noisy histograms of some groups of NistDp3, whose law is known."""

    def components(self) -> list[MeasurementStage]:
        """Return a mechanism with one law of noise for each group; estimates examine them one by one."""
        return [replace(self, only=(group,)) for group in self.only]

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the loss of a pair of databases over all groups together; see `algorithms.noise.losses`."""
        return loss_of_changes([(self.nist.noise, self.exact(pair.y) - self.exact(pair.x))])

    def log_likelihood(self, outputs: ArrayLike, records: ArrayLike) -> NDArray[np.float64]:
        """Return the log-probability, or log density, of counts, shape (runs, bins), given records: shape (runs,)."""
        law = self.nist.noise
        log_law = law.logpmf if isinstance(law, TwoTailedGeometric) else law.logpdf
        exact = self.exact(records)
        return log_likelihood_of_cells(outputs, exact, lambda noisy, true: log_law(noisy - true), "bins")
