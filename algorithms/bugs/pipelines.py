"""Known bugs of whole pipelines, small ones that read records and publish tables: each with a twin that lacks the bug.

They add noise by `algorithms.noise.add_noise`, so that one pair of runs with the same answers shows what is wrong:
`audit.replay`. `known_bugs` lists bugs that are found by sampling.

**Claim.** All of them promise pure DP with `epsilon` when one record is added or removed. With ``sound=True`` they keep
it; `true_loss` is that of the worst pair of neighbors.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bugs.bug import Bug, whole
from algorithms.noise import Laplace, Rng, TwoTailedGeometric, add_noise

__all__ = ["KNOWN", "Pipeline", "PipelineBug"]

Records = NDArray[Any]
Table = NDArray[Any]
LEVELS, BOUND, FEWEST = 5, 100, 10  # of a field; of a value; people who may be published
DONORS = 10_000  # records that an imputation looks through
PAGE = 4  # records that are read at once


@dataclass(frozen=True)
class Pipeline(Bug, ABC):
    """What the pipelines share: `sound` makes the twin without the bug; called they return the shape (size, *table)."""

    sound: bool = False

    @property
    def true_loss(self) -> float:
        """Loss in nats of the worst pair of neighbors: the promise, or without an end."""
        return self.epsilon if self.sound else math.inf

    @property
    def twin(self) -> Pipeline:
        """The same without the bug."""
        return replace(self, sound=True)

    @abstractmethod
    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release what is made of records, one a row, `size` times over: shape (size, *table)."""

    def _noisy(
        self, exact: ArrayLike, size: int, rng: Rng, query: str, *, sensitivity: float = 1, parts: float = 1
    ) -> Table:
        """Add noise for an equal part of the budget, to values to which a record adds at most `sensitivity`."""
        law = TwoTailedGeometric(self.epsilon / (parts * sensitivity))
        return add_noise(exact, law, size, rng, query=query, sensitivity=sensitivity)


@dataclass(frozen=True, eq=False)
class PipelineBug:
    """A pipeline with a bug, and a record that shows it once it is added.

    `records`, shape (n, ...), are read-only, and the neighbor has `record` besides. `kind` is the kind of the violation
    that a replay shows, `words` say what the bug is, and `source` says where it comes from.
    """

    pipeline: Pipeline
    records: Any
    record: Any
    kind: str
    words: str
    source: str

    def __post_init__(self) -> None:
        records = np.array(self.records)
        records.flags.writeable = False
        object.__setattr__(self, "records", records)


class LevelsFromData(Pipeline):
    """A histogram of codes from 0 to 4.

    **Bug.** Its bins are the levels that occur. The twin has all five.
    **True loss.** Infinite: someone with a level of her own adds a bin.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        levels = np.arange(LEVELS) if self.sound else np.unique(records)
        return self._noisy((records[:, None] == levels).sum(axis=0), size, rng, "histogram")


class EmptyAreaSkipped(Pipeline):
    """Counts of people in areas 0 to 4, one area at a time.

    **Bug.** An area without people gets 0, and nothing is drawn for it. The twin treats all areas alike.
    **True loss.** Infinite: the only person in an area makes other counts than 0 possible.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        released = np.zeros((size, LEVELS), np.int64)
        for area, count in enumerate(np.bincount(records, minlength=LEVELS)):
            if count or self.sound:
                released[:, area] = self._noisy(count, size, rng, f"area {area}")
        return released


class CollapsingScale(Pipeline):
    """The sum of values from 0 to 100.

    **Bug.** Noise is scaled to the largest value there is, and so to almost nothing where all are 0. The twin scales it
    to the largest there can be.
    **True loss.** Infinite: a sum that has no noise is known.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        values = np.clip(records, 0, BOUND)
        largest = BOUND if self.sound else max(values.max(initial=0), 1e-6)
        law = TwoTailedGeometric(self.epsilon / largest)
        return add_noise(values.sum(), law, size, rng, query="sum", sensitivity=BOUND)


class KeyedNoise(Pipeline):
    """The number of records.

    **Bug.** The records are the key of the noise, so that a table asked for again looks the same. The twin takes the
    generator that it is given.
    **True loss.** Infinite: one output for each database.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        return self._noisy(len(records), size, rng if self.sound else np.random.default_rng(np.sort(records)), "people")


class RawSum(Pipeline):
    """The sum of values that should be from 0 to 100.

    **Bug.** Noise is scaled for values that are clipped, and raw ones are added up. The twin adds up clipped ones.
    **True loss.** Infinite: a value of 100 times the bound costs 100 times the promise.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        values = np.clip(records, 0, BOUND) if self.sound else records
        return self._noisy(values.sum(), size, rng, "sum", sensitivity=BOUND)


class NaNKept(Pipeline):
    """The sum of numbers that are clipped to 0 to 100.

    **Bug.** NaN survives clipping. The twin makes it 0.
    **True loss.** Infinite: a sum that is NaN proves that someone's value is NaN.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        values = np.clip(np.nan_to_num(records) if self.sound else records, 0.0, float(BOUND))
        return add_noise(values.sum(), Laplace(BOUND / self.epsilon), size, rng, query="sum", sensitivity=BOUND)


class SpentTwice(Pipeline):
    """Two histograms, of either column of codes.

    **Bug.** Each has the whole budget. The twin halves it.
    **True loss.** Twice `epsilon`.
    """

    @property
    def true_loss(self) -> float:
        """Loss in nats of the worst pair of neighbors."""
        return self.epsilon * (1 if self.sound else 2)

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        first, second = (np.bincount(column, minlength=LEVELS) for column in records.T)
        parts = 2 if self.sound else 1
        noisy = self._noisy(first, size, rng, "first column", parts=parts)
        return np.concatenate([noisy, self._noisy(second, size, rng, "second column", parts=parts)], axis=1)


class MeanOfKnownSize(Pipeline):
    """The mean of values from 0 to 100.

    **Bug.** A noisy sum is divided by the number of records, as if that were public. The twin divides by a noisy
    number, and each has half of the budget.
    **True loss.** Infinite: multiples of 1/9 are no multiples of 1/10.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        total, people, parts = np.clip(records, 0, BOUND).sum(), np.array(len(records)), 2 if self.sound else 1
        noisy = self._noisy(total, size, rng, "sum", sensitivity=BOUND, parts=parts)
        if self.sound:
            people = np.maximum(self._noisy(people, size, rng, "size", parts=parts), 1)
        return np.asarray(noisy / people)


class ZerosRestored(Pipeline):
    """A histogram of codes from 0 to 4 that should look tidy.

    **Bug.** Bins that are truly empty are set back to 0. The twin raises to 0 what is negative.
    **True loss.** Infinite: the only person in a bin makes other counts than 0 possible.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        counts = np.bincount(records, minlength=LEVELS)
        noisy = self._noisy(counts, size, rng, "histogram")
        return np.maximum(noisy, 0) if self.sound else np.where(counts == 0, 0, noisy)


class CountInMessage(Pipeline):
    """The number of records, if there are enough.

    **Bug.** An exception says how many there are. The twin looks at the noisy number, and quotes that.
    **True loss.** Infinite: no other number of records gives that message.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        noisy = self._noisy(len(records), size, rng, "people")
        people = int(noisy.min(initial=FEWEST)) if self.sound else len(records)
        if people < FEWEST:
            raise RuntimeError(f"at least {FEWEST} people are needed for a release, got {people}")
        return noisy


class RaisesOnEmpty(Pipeline):
    """The number of records in every column, which is one number.

    **Bug.** The first record says how many columns there are; without a record there is an exception. The twin knows
    the shape of the table.
    **True loss.** Infinite: the only person makes a release possible.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        columns = records.shape[1] if self.sound else len(records[0])
        return np.repeat(self._noisy(len(records), size, rng, "people")[:, None], columns, axis=1)


class ImputesOnDemand(Pipeline):
    """A histogram of codes from 0 to 4; -1 is missing, and imputed by looking through many donors.

    **Bug.** Donors are looked through only if something is missing. The twin always does it.
    **True loss.** Infinite for whoever measures the running time. The tables keep the promise.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        missing = records < 0
        if missing.any() or self.sound:
            votes = [0] * LEVELS
            for donor in range(DONORS):
                votes[donor * 7 % LEVELS] += 1
            records = np.where(missing, votes.index(max(votes)), records)
        return self._noisy(np.bincount(records, minlength=LEVELS), size, rng, "histogram")


class PageByPage(Pipeline):
    """The number of records, page by page.

    **Bug.** Each page has a count, and the number of pages is not noisy. The twin counts one page.
    **True loss.** Infinite: the record that begins a page adds a number to the release.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        pages = [records] if self.sound else [records[at : at + PAGE] for at in range(0, len(records), PAGE)]
        return np.stack([self._noisy(len(page), size, rng, "people") for page in pages], axis=1)


@dataclass(frozen=True)
class NoLimitNoNoise(Pipeline):
    """The sum of values that are clipped to a limit, and the number of records, each with half of the budget.

    **Bug.** A limit of 0 (`most`) means no limit. But the limit is the sensitivity, too, and a sensitivity of 0 gives
    no noise. The twin takes the largest value that there can be.
    **True loss.** Infinite: a sum that has no noise is known.
    """

    most: int = whole(0, least=0)

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        people = self._noisy(len(records), size, rng, "people", parts=2)
        limit = self.most or (BOUND if self.sound else 0)
        if not limit:
            return np.stack([np.full(size, records.sum()), people], axis=1)
        noisy = self._noisy(np.clip(records, 0, limit).sum(), size, rng, "sum", sensitivity=limit, parts=2)
        return np.stack([noisy, people], axis=1)


CODES = np.array([0, 0, 1, 3, 3, 3])
COLUMNS = np.stack([CODES, CODES[::-1]], axis=1)
REPLAYS = "the replays of arXiv 2602.17454"

# By name: a database, the record that shows the bug once it is added, the kind of violation, the bug in a few words.
_CASES: dict[str, tuple[type[Pipeline], Any, Any, str, str]] = {
    "levels-from-data": (LevelsFromData, CODES, 4, "shape", "domain read from the data"),
    "empty-area-skipped": (EmptyAreaSkipped, CODES, 2, "order", "early exit on an empty area"),
    "collapsing-scale": (CollapsingScale, [0] * 6, 7, "law", "scale that collapses at an edge"),
    "keyed-noise": (KeyedNoise, CODES, 4, "seed", "noise seeded by the data"),
    "raw-sum": (RawSum, CODES, 1000, "sensitivity", "sensitivity of clipped data, raw data used"),
    "nan-kept": (NaNKept, [3.0, 41.0], math.nan, "nan", "NaN that survives clipping"),
    "spent-twice": (SpentTwice, COLUMNS, (1, 4), "loss", "budget spent twice"),
    "mean-of-known-size": (MeanOfKnownSize, CODES, 4, "output", "number of people taken as public"),
    "zeros-restored": (ZerosRestored, CODES, 4, "output", "truth in post-processing"),
    "count-in-message": (CountInMessage, CODES, 4, "exception", "message that contains the true count"),
    "raises-on-empty": (
        RaisesOnEmpty,
        np.zeros((0, 2), np.int64),
        (1, 4),
        "exception",
        "exception on one database only",
    ),
    "imputes-on-demand": (ImputesOnDemand, CODES, -1, "time", "running time that depends on the data"),
    "page-by-page": (PageByPage, np.arange(2 * PAGE), 3, "number", "size of the data in the control flow"),
    "no-limit-no-noise": (NoLimitNoNoise, CODES, 4, "output", "sensitivity 0 by a setting"),
}
SOURCES = {  # of those that are not our own; the package has them in full
    "levels-from-data": "Korolova et al. 2009",
    "empty-area-skipped": "google/differential-privacy#5",
    "collapsing-scale": "Nissim et al. 2007",
    "keyed-noise": "Thompson et al. 2013",
    "raw-sum": f"opendp/smartnoise-sdk#622; {REPLAYS}",
    "nan-kept": "google/differential-privacy#405; opendp/opendp#2935",
    "spent-twice": "our own; Dwork and Roth 2014",
    "zeros-restored": "Dwork and Roth 2014",
    "count-in-message": "CWE-209",
    "raises-on-empty": f"our own; {REPLAYS}",
    "imputes-on-demand": "Haeberlen et al. 2011",
    "page-by-page": REPLAYS,
    "no-limit-no-noise": REPLAYS,
}
KNOWN = {
    name: PipelineBug(kind(1.0), records, record, violation, words, SOURCES.get(name, "our own"))
    for name, (kind, records, record, violation, words) in _CASES.items()
}
