"""Known bugs of tables of counts: empty cells without noise, and noisy counts that are changed by use of true counts.

**Claim.** All promise pure DP with `epsilon` when one person is added or removed, by the two-tailed geometric noise of
`GDPC`. Post-processing is allowed if it does not use the data (Dwork and Roth, 2014, proposition 2.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from algorithms.bugs.bug import Floats, Integers, TableBug
from algorithms.flaxman import GDPC
from algorithms.noise import Rng, TwoTailedGeometric, add_noise
from audit.arguments import whole_number

__all__ = [
    *("ABSENT", "EditedToTruth", "EmptyAreaExit", "ObservedDomain", "PoissonScale", "PublicSize", "QualityGate"),
    *("RetriedNegatives", "SilentInvariant", "SkippedZeros", "TalkativeError", "UnperturbedZeros"),
]

ABSENT = -(2**31)  # marks a row that a table does not have


# Cells treated differently because they are empty


class UnperturbedZeros(TableBug):
    """Noise on every count except zeros, which are taken to be impossible cells.

    **Bug.** An empty cell is always released as 0. **True loss.** Infinite: one person makes the cell noisy.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        return GDPC(self.epsilon)(exact, size, rng) * (exact > 0)

    def _alone(self, here: Integers, other: Integers) -> float:
        return -math.expm1(sum(self._noise_of(count).logpmf(count) for count in here[(here > 0) & (other == 0)]))

    def _noise_of(self, count: int) -> TwoTailedGeometric:
        return self.noise


class PoissonScale(UnperturbedZeros):
    """Noise as large as the Poisson error of each count, so that published errors look alike.

    **Bug.** The scale depends on the true count, 0 included. **True loss.** Infinite: an empty cell has no noise. Other
    cells have no impossible outputs, but the loss is unbounded in the tails. **Source.** Nissim et al., 2007.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        released = np.zeros((size, exact.size), np.int64)
        for cell in np.flatnonzero(exact):
            law = self._noise_of(int(exact[cell]))
            released[:, cell] = add_noise(exact[cell], law, size, rng, query=f"cell {cell}", sensitivity=1)
        return released

    def _noise_of(self, count: int) -> TwoTailedGeometric:
        return TwoTailedGeometric(self.epsilon / math.sqrt(count))


class ObservedDomain(TableBug):
    """A table by age whose last row is the age of the oldest person: the domain is read from the data.

    **Bug.** An older person adds a row; missing rows are `ABSENT`. **True loss.** Infinite.
    **Source.** Korolova et al., 2009; opendp/smartnoise-sdk#309.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        noisy = GDPC(self.epsilon)(exact, size, rng)
        noisy[:, self._rows(exact) :] = ABSENT
        return noisy

    def _alone(self, here: Integers, other: Integers) -> float:
        return self._rows(here) != self._rows(other)

    def _rows(self, counts: Integers) -> int:
        return int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0


class SkippedZeros(TableBug):
    """The total of an area, added up from its noisy cells; cells without people have no row and are skipped.

    **Bug.** A ``GROUP BY`` returns no row for an empty cell, so the variance reveals the number of inhabited cells.
    **True loss.** Infinite: the loss is unbounded in the tails. If all cells are empty, the total is exact.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        released: Integers = self.noise.sample((size, int(np.count_nonzero(exact))), rng).sum(axis=1)
        released += exact.sum()
        return released


class EmptyAreaExit(TableBug):
    """Noise on every count, unless nobody lives in the area: then zeros are returned at once.

    **Bug.** The early exit depends on the true total. **True loss.** Infinite.
    **Source.** google/differential-privacy#5.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        return GDPC(self.epsilon)(exact, size, rng) if exact.any() else np.zeros((size, exact.size), np.int64)

    def _alone(self, here: Integers, other: Integers) -> float:
        return 0.0 if other.any() or not here.any() else -math.expm1(self.noise.logpmf(here).sum())


# Noise, or steps after it, that depend on true counts


class SilentInvariant(TableBug):
    """Noise on every count; then the last cell changes to keep the true total, which nobody had declared invariant.

    **Bug.** The total is exact. **True loss.** Infinite, at every output. Each cell alone keeps the promise.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        noisy = GDPC(self.epsilon)(exact, size, rng)
        noisy[:, -1] += exact.sum() - noisy.sum(axis=1)
        return noisy

    def _alone(self, here: Integers, other: Integers) -> float:
        return bool(here.sum() != other.sum())


@dataclass(frozen=True)
class EditedToTruth(TableBug):
    """Noise on every count; then an edit brings it back to within a few people of the truth.

    **Bug.** The edit uses true counts, not only released ones: a released count is off by at most `slack` people.
    **True loss.** Infinite, at one end of the range: probability ``exp(-slack * epsilon) / (1 + exp(-epsilon))``.
    """

    slack: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("slack", self.slack, least=1)

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        noisy: Integers = GDPC(self.epsilon)(exact, size, rng)
        return np.clip(noisy, exact - self.slack, exact + self.slack)

    def _alone(self, here: Integers, other: Integers) -> float:
        apart = np.abs(here - other)
        shared = np.where(apart > 2 * self.slack, 0.0, self.noise.cdf(self.slack - apart))
        return 1 - float(np.prod(shared[apart > 0]))


class QualityGate(TableBug):
    """Noise on every count, and a gate that stops the release where one is too far off the truth.

    **Bug.** Released counts are within `tolerance` of the truth; the exception of a stopped release is an output too.
    **True loss.** Infinite: some outputs that pass on one database would be stopped on the other.
    """

    tolerance: ClassVar[int] = 2

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        noisy = GDPC(self.epsilon)(exact, size, rng)
        if (np.abs(noisy - exact) > self.tolerance).any():
            raise RuntimeError("the release failed at the quality gate")
        return noisy

    def _alone(self, here: Integers, other: Integers) -> float:
        passes, passes_both = (self._within(apart) for apart in (np.zeros(here.size), np.abs(here - other)))
        return passes - passes_both

    def _within(self, apart: Floats) -> float:
        """Probability that every noisy count is within the tolerance of both true counts, which differ by `apart`."""
        inside = self.noise.cdf(self.tolerance) - self.noise.cdf(apart - self.tolerance - 1)
        return float(np.prod(np.maximum(inside, 0.0)))


class RetriedNegatives(TableBug):
    """Noise on every count, drawn again and again until the count is not negative.

    **Bug.** The probability of a failed draw depends on the true count. Replacing negative counts by 0 would be sound.
    **True loss.** ``epsilon + log(1 + q - q**2)`` with ``q = exp(-epsilon)``, between counts of 0 and 1.
    **Source.** Holohan et al., 2020.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        released = GDPC(self.epsilon)(exact, size, rng)
        while (bad := released < 0).any():
            released[bad] = np.broadcast_to(exact, bad.shape)[bad] + self.noise.sample(int(bad.sum()), rng)
        return released


class PublicSize(TableBug):
    """Shares of the population: noisy counts over the number of people, which is taken as public.

    **Bug.** Adding a person changes that number too. **True loss.** Infinite: most shares need one of the numbers.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Floats:
        return GDPC(self.epsilon)(exact, size, rng) / self._people(exact)

    def _alone(self, here: Integers, other: Integers) -> float:
        people, people_other = self._people(here), self._people(other)
        step = people // math.gcd(people, people_other)  # its multiples give shares possible on both
        q, up = math.exp(-self.epsilon), -here % step  # distance to the next multiple
        shared = math.tanh(self.epsilon / 2) * (q**up + q ** (step - up)) / (1 - q**step)
        return 0.0 if step == 1 else 1 - float(np.prod(shared))

    def _people(self, counts: Integers) -> int:
        if not counts.any():
            raise ValueError("shares need at least one person, got counts of 0 only")
        return int(counts.sum())


class TalkativeError(TableBug):
    """Counts released as text; a negative one is replaced by an error message that quotes the true count.

    **Bug.** The error message is an output. **True loss.** Infinite: the message reveals the true count.
    **Source.** Our own; CWE-209.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> NDArray[np.str_]:
        noisy = GDPC(self.epsilon)(exact, size, rng)
        messages = np.array([f"error: the count {count} became negative" for count in exact])
        return np.where(noisy < 0, messages, noisy.astype(np.str_))

    def _alone(self, here: Integers, other: Integers) -> float:
        return 1 - float(np.prod(self.noise.cdf(here[here != other])))
