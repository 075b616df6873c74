"""Known bugs of whole pipelines, small ones that read records and publish tables: each with a twin that lacks the bug.

They add noise by `algorithms.noise.add_noise`, so that one pair of runs with the same answers shows what is wrong:
`audit.replay`. `known_bugs` lists bugs that are found by sampling.

**Claim.** All of them promise pure DP with `epsilon` when one record is added or removed. With ``sound=True`` they keep
it; `true_loss` is that of the worst pair of neighbors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.bugs.bug import Bug
from algorithms.noise import Laplace, Rng, TwoTailedGeometric, add_noise

__all__ = ["KNOWN", "Pipeline", "PipelineBug"]

Records = NDArray[Any]
Table = NDArray[Any]
LEVELS, BOUND, FEWEST = 5, 100, 10  # of a field; of a value; people who may be published
DONORS = 10_000  # records that an imputation looks through
CODES = np.array([0, 0, 1, 3, 3, 3])


@dataclass(frozen=True)
class Pipeline(Bug):
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

    def part(self, parts: float) -> TwoTailedGeometric:
        """Noise for an equal part of the budget, or for values to which a record adds so many times more."""
        return TwoTailedGeometric(self.epsilon / parts)


@dataclass(frozen=True, eq=False)
class PipelineBug:
    """A pipeline with a bug, and a record that shows it once it is added.

    Attributes
    ----------
    pipeline : Pipeline
        With the bug.
    records : ndarray, shape (n, ...)
        One record a row, read-only.
    record : number or sequence
        What the neighbor has besides.
    kind : str
        Of the violation that a replay shows.
    words : str
        The bug, in a few words.
    """

    pipeline: Pipeline
    records: Any
    record: Any
    kind: str
    words: str

    def __post_init__(self) -> None:
        records = np.array(self.records)
        records.flags.writeable = False
        object.__setattr__(self, "records", records)


KNOWN: dict[str, PipelineBug] = {}  # by name


@dataclass(frozen=True)
class LevelsFromData(Pipeline):
    """A histogram of codes from 0 to 4.

    **Bug.** Its bins are the levels that occur. The twin has all five.
    **True loss.** Infinite: someone with a level of her own adds a bin.
    **Source.** Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing Search Queries and Clicks Privately", 2009.

    Examples
    --------
    >>> [LevelsFromData(1.0, sound)(np.array([0, 3, 3]), 1, np.random.default_rng(0)).size for sound in (False, True)]
    [2, 5]
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the histogram, shape (size, bins)."""
        levels = np.arange(LEVELS) if self.sound else np.unique(records)
        counts = (records[:, None] == levels).sum(axis=0)
        return add_noise(counts, self.noise, size, rng, query="histogram", sensitivity=1)


KNOWN["levels-from-data"] = PipelineBug(LevelsFromData(1.0), CODES, 4, "shape", "domain read from the data")


@dataclass(frozen=True)
class EmptyAreaSkipped(Pipeline):
    """Counts of people in areas 0 to 4, one area at a time.

    **Bug.** Of an area without people 0 is released, and nothing is drawn. The twin treats all areas alike.
    **True loss.** Infinite: the only person in an area makes other counts than 0 possible.
    **Source.** google/differential-privacy#5.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the counts, shape (size, areas)."""
        released = np.zeros((size, LEVELS), np.int64)
        for area, count in enumerate(np.bincount(records, minlength=LEVELS)):
            if count or self.sound:
                released[:, area] = add_noise(count, self.noise, size, rng, query=f"area {area}", sensitivity=1)
        return released


KNOWN["empty-area-skipped"] = PipelineBug(EmptyAreaSkipped(1.0), CODES, 2, "order", "early exit on an empty area")


@dataclass(frozen=True)
class CollapsingScale(Pipeline):
    """The sum of values from 0 to 100.

    **Bug.** Noise is scaled to the largest value there is, and so to almost nothing where all are 0. The twin scales it
    to the largest there can be.
    **True loss.** Infinite: a sum that has no noise is known.
    **Source.** Nissim, Raskhodnikova and Smith, "Smooth Sensitivity and Sampling in Private Data Analysis", 2007, on
    noise scaled to local sensitivity.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the sum, shape (size,)."""
        values = np.clip(records, 0, BOUND)
        largest = BOUND if self.sound else max(values.max(initial=0), 1e-6)
        return add_noise(values.sum(), self.part(largest), size, rng, query="sum", sensitivity=BOUND)


KNOWN["collapsing-scale"] = PipelineBug(
    CollapsingScale(1.0), np.zeros(6, np.int64), 7, "law", "scale that collapses at an edge"
)


@dataclass(frozen=True)
class KeyedNoise(Pipeline):
    """The number of records.

    **Bug.** The records are the key of the noise, so that a table asked for again looks the same. The twin takes the
    generator that it is given.
    **True loss.** Infinite: one output for each database.
    **Source.** Thompson, Broadfoot and Elazar, "Methodology for the Automatic Confidentialisation of Statistical
    Outputs from Remote Servers at the Australian Bureau of Statistics", 2013, for noise by keys.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the number, shape (size,)."""
        source = rng if self.sound else np.random.default_rng(np.sort(records))
        return add_noise(len(records), self.noise, size, source, query="people", sensitivity=1)


KNOWN["keyed-noise"] = PipelineBug(KeyedNoise(1.0), CODES, 4, "seed", "noise seeded by the data")


@dataclass(frozen=True)
class RawSum(Pipeline):
    """The sum of values that should be from 0 to 100.

    **Bug.** Noise is scaled for values that are clipped, and raw ones are added up. The twin adds up clipped ones.
    **True loss.** Infinite: a value of 100 times the bound costs 100 times the promise.
    **Source.** opendp/smartnoise-sdk#622, and the replays of arXiv 2602.17454.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the sum, shape (size,)."""
        clipped = np.clip(records, 0, BOUND)
        total = (clipped if self.sound else records).sum()
        return add_noise(total, self.part(BOUND), size, rng, query="sum", sensitivity=BOUND)


KNOWN["raw-sum"] = PipelineBug(RawSum(1.0), CODES, 1000, "sensitivity", "sensitivity of clipped data, raw data used")


@dataclass(frozen=True)
class NaNKept(Pipeline):
    """The sum of numbers that are clipped to 0 to 100.

    **Bug.** NaN survives clipping. The twin makes it 0.
    **True loss.** Infinite: a sum that is NaN has someone's NaN in it.
    **Source.** google/differential-privacy#405; opendp/opendp#2935.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the sum, shape (size,)."""
        values = np.clip(np.nan_to_num(records) if self.sound else records, 0.0, float(BOUND))
        return add_noise(values.sum(), Laplace(BOUND / self.epsilon), size, rng, query="sum", sensitivity=BOUND)


KNOWN["nan-kept"] = PipelineBug(NaNKept(1.0), [3.0, 41.0], math.nan, "nan", "NaN that survives clipping")


@dataclass(frozen=True)
class SpentTwice(Pipeline):
    """Two histograms, of either column of codes.

    **Bug.** Each has the whole budget. The twin halves it.
    **True loss.** Twice `epsilon`.
    **Source.** Our own; Dwork and Roth, 2014, theorem 3.14 (composition).
    """

    @property
    def true_loss(self) -> float:
        """Loss in nats of the worst pair of neighbors."""
        return self.epsilon * (1 if self.sound else 2)

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release both histograms side by side, shape (size, 2 levels)."""
        law = self.part(2 if self.sound else 1)
        tables = [np.bincount(column, minlength=LEVELS) for column in records.T]
        names = ("first column", "second column")
        noisy = [
            add_noise(table, law, size, rng, query=name, sensitivity=1)
            for name, table in zip(names, tables, strict=True)
        ]
        return np.concatenate(noisy, axis=1)


KNOWN["spent-twice"] = PipelineBug(
    SpentTwice(1.0), np.stack([CODES, CODES[::-1]], axis=1), (1, 4), "loss", "budget spent twice"
)


@dataclass(frozen=True)
class MeanOfKnownSize(Pipeline):
    """The mean of values from 0 to 100.

    **Bug.** A noisy sum is divided by the number of records, as if that were public. The twin divides by a noisy
    number, and each has half of the budget.
    **True loss.** Infinite: multiples of 1/9 are no multiples of 1/10.
    **Source.** Our own; see `algorithms.bugs.census.PublicSize` for shares of a true total.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the mean, shape (size,)."""
        total = np.clip(records, 0, BOUND).sum()
        parts = 2 if self.sound else 1
        noisy = add_noise(total, self.part(parts * BOUND), size, rng, query="sum", sensitivity=BOUND)
        people: Any = len(records)
        if self.sound:
            people = np.maximum(add_noise(people, self.part(parts), size, rng, query="size", sensitivity=1), 1)
        return np.asarray(noisy / people)


KNOWN["mean-of-known-size"] = PipelineBug(MeanOfKnownSize(1.0), CODES, 4, "output", "number of people taken as public")


@dataclass(frozen=True)
class ZerosRestored(Pipeline):
    """A histogram of codes from 0 to 4 that should look tidy.

    **Bug.** Bins that are truly empty are set back to 0. The twin raises to 0 what is negative.
    **True loss.** Infinite: the only person in a bin makes other counts than 0 possible.
    **Source.** Dwork and Roth, 2014, proposition 2.1 (post-processing) is the rule that it breaks.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the histogram, shape (size, levels)."""
        counts = np.bincount(records, minlength=LEVELS)
        noisy = add_noise(counts, self.noise, size, rng, query="histogram", sensitivity=1)
        return np.maximum(noisy, 0) if self.sound else np.where(counts == 0, 0, noisy)


KNOWN["zeros-restored"] = PipelineBug(ZerosRestored(1.0), CODES, 4, "output", "truth in post-processing")


@dataclass(frozen=True)
class CountInMessage(Pipeline):
    """The number of records, if there are enough.

    **Bug.** An exception says how many there are. The twin looks at the noisy number, and quotes that.
    **True loss.** Infinite: no other number of records gives that message.
    **Source.** MITRE, CWE-209: Generation of Error Message Containing Sensitive Information.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the number, shape (size,).

        Raises
        ------
        RuntimeError
            If they are too few, in one run at least.
        """
        noisy = add_noise(len(records), self.noise, size, rng, query="people", sensitivity=1)
        people = int(noisy.min(initial=FEWEST)) if self.sound else len(records)
        if people < FEWEST:
            raise RuntimeError(f"at least {FEWEST} people are needed for a release, got {people}")
        return noisy


KNOWN["count-in-message"] = PipelineBug(
    CountInMessage(1.0), CODES, 4, "exception", "message that contains the true count"
)


@dataclass(frozen=True)
class RaisesOnEmpty(Pipeline):
    """The number of records in every column, which is one number.

    **Bug.** How many columns there are is looked up in the first record, and without one raises an exception. The twin
    knows the shape of the table.
    **True loss.** Infinite: the only person makes a release possible.
    **Source.** Our own; the replays of arXiv 2602.17454 count exceptions as outputs.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the numbers, shape (size, columns)."""
        columns = records.shape[1] if self.sound else len(records[0])
        noisy = add_noise(len(records), self.noise, size, rng, query="people", sensitivity=1)
        return np.repeat(noisy[:, None], columns, axis=1)


KNOWN["raises-on-empty"] = PipelineBug(
    RaisesOnEmpty(1.0), np.zeros((0, 2), np.int64), (1, 4), "exception", "exception on one database only"
)


@dataclass(frozen=True)
class ImputesOnDemand(Pipeline):
    """A histogram of codes from 0 to 4; -1 is missing, and imputed by looking through many donors.

    **Bug.** Donors are looked through only if something is missing. The twin always does it.
    **True loss.** Infinite for whoever holds a watch. The tables keep the promise.
    **Source.** Haeberlen, Pierce and Narayan, "Differential Privacy Under Fire", 2011, on running time as a channel.
    """

    def __call__(self, records: Records, size: int, rng: Rng) -> Table:
        """Release the histogram, shape (size, levels)."""
        missing = records < 0
        if missing.any() or self.sound:
            votes = [0] * LEVELS
            for donor in range(DONORS):
                votes[donor * 7 % LEVELS] += 1
            records = np.where(missing, votes.index(max(votes)), records)
        return add_noise(
            np.bincount(records, minlength=LEVELS), self.noise, size, rng, query="histogram", sensitivity=1
        )


KNOWN["imputes-on-demand"] = PipelineBug(
    ImputesOnDemand(1.0), CODES, -1, "time", "running time that depends on the data"
)
