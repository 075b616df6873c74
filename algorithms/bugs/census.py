"""Known bugs of tables of counts: empty cells left out, and what is done to the noise with the truth at hand.

**Claim.** All promise pure DP with `epsilon` when one person is added or removed, by the two-tailed geometric noise of
`GDPC`. What may be done afterwards: Dwork and Roth, 2014, proposition 2.1 (post-processing).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from algorithms.bugs.bug import (
    NO_LOSS,
    Floats,
    Integers,
    OutputLaw,
    TableBug,
    int_field,
    loss_of_cells,
    loss_of_counts,
    loss_of_one_output,
    loss_of_outputs,
    table_reach,
    without_end,
)
from algorithms.flaxman import ADPC, GDPC
from algorithms.noise import Rng, TwoTailedGeometric, add_noise
from algorithms.noise.counts import ATOMS, DISJOINT
from audit.exact import LossDistribution, loss_from_logs

__all__ = [
    *("ABSENT", "EditedToTruth", "EmptyAreaExit", "ObservedDomain", "PoissonScale", "PublicSize", "QualityGate"),
    *("RetriedNegatives", "SilentInvariant", "SkippedZeros", "TalkativeError", "UnperturbedZeros"),
]

ABSENT = -(2**31)  # stands for a row that a table does not have
ALWAYS_ZERO: OutputLaw = (np.zeros(1, np.int64), np.zeros(1))


# What is left out because nobody is there


class UnperturbedZeros(TableBug):
    """Noise on every count except zeros, which are taken to be impossible cells.

    **Bug.** A zero says for certain that nobody is there. **True loss.** Infinite: a person makes the cell noisy.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        return GDPC(self.epsilon)(exact, size, rng) * (exact > 0)

    def _law_of_cell(self, count: int, near: Integers) -> OutputLaw:
        return super()._law_of_cell(count, near) if count else ALWAYS_ZERO


class ObservedDomain(TableBug):
    """A table by age whose last row is the age of the oldest person: the domain is read from the data.

    **Bug.** The number of rows reveals that age; rows beyond are `ABSENT`. **True loss.** Infinite: someone older adds
    a row.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        noisy = GDPC(self.epsilon)(exact, size, rng)
        noisy[:, self._rows(exact) :] = ABSENT
        return noisy

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        return loss_of_counts(self.epsilon, x, y) if self._rows(x) == self._rows(y) else DISJOINT

    def _rows(self, counts: Integers) -> int:
        return int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0


class SkippedZeros(TableBug):
    """The total of an area, added up from its noisy cells; cells without people have no row and are skipped.

    **Bug.** A ``GROUP BY`` returns no row for an empty cell, so the variance reveals how many cells are inhabited.
    **True loss.** Infinite, though every output is possible on either database: between one cell and two the log-ratio
    of the tails grows without end. Without an inhabited cell the total is exact.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        released: Integers = self.noise.sample((size, int(np.count_nonzero(exact))), rng).sum(axis=1)
        released += exact.sum()
        return released

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        reach = table_reach(self.epsilon)
        shift, terms = int(y.sum() - x.sum()), (int(np.count_nonzero(x)), int(np.count_nonzero(y)))
        if reach is None or abs(shift) + 2 * reach * max(terms) ** 2 > ATOMS:
            return None
        end = reach * max(1, *terms) + abs(shift)
        outputs = np.arange(-end, end + 1)
        law = loss_from_logs(self._log_sum(outputs, terms[0]), self._log_sum(outputs - shift, terms[1]))
        if min(terms) == 0:
            return law
        if terms[0] != terms[1]:
            return without_end(law, terms[0] > terms[1], terms[0] < terms[1])
        bound = abs(shift) * self.epsilon  # approached, never reached
        return replace(law, supremum=bound, infimum=-bound)

    def _log_sum(self, error: Integers, terms: int) -> Floats:
        """Log-probability that the noises of so many cells add up to `error`."""
        if terms == 0:
            return np.where(error == 0, 0.0, -np.inf)
        return ADPC(self.epsilon * terms, terms).logpmf_sum(error)


class EmptyAreaExit(TableBug):
    """Noise on every count, unless nobody lives in the area: then zeros are returned at once.

    **Bug.** The early exit is taken on the true total.
    **True loss.** Infinite: on an inhabited area a table of zeros is one output of many.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        return GDPC(self.epsilon)(exact, size, rng) if exact.any() else np.zeros((size, exact.size), np.int64)

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        if x.any() == y.any():
            return loss_of_counts(self.epsilon, x, y)
        zeros = (float(self.noise.logpmf(cells).sum()) if cells.any() else 0.0 for cells in (x, y))
        return loss_of_one_output(*zeros)


# What is done to the noise, or after it


class SilentInvariant(TableBug):
    """Noise on every count; then the last cell changes to keep the true total, which nobody had declared invariant.

    **Bug.** The total is released exactly. **True loss.** Infinite, at every single output. Each cell alone keeps the
    promise: the event must be joint.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        noisy = GDPC(self.epsilon)(exact, size, rng)
        noisy[:, -1] += exact.sum() - noisy.sum(axis=1)
        return noisy

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        return DISJOINT if x.sum() != y.sum() else loss_of_counts(self.epsilon, x[:-1], y[:-1])


@dataclass(frozen=True)
class EditedToTruth(TableBug):
    """Noise on every count; then an edit brings it back to within a few people of the truth.

    **Bug.** Post-processing may use what was released, not what is true: a count is off by at most `slack` people.
    **True loss.** Infinite: the end of the range on one database is out of reach on the other. It has probability
    ``exp(-slack * epsilon) / (1 + exp(-epsilon))``.
    """

    slack: int = int_field(5, least=1)

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        noisy: Integers = GDPC(self.epsilon)(exact, size, rng)
        return np.clip(noisy, exact - self.slack, exact + self.slack)

    def _law_of_cell(self, count: int, near: Integers) -> OutputLaw:
        error = np.arange(-self.slack, self.slack + 1)
        log_p = self.noise.logpmf(error)
        log_p[[0, -1]] = np.log(self.noise.cdf(-self.slack))
        return count + error, log_p


class RetriedNegatives(TableBug):
    """Noise on every count, drawn again and again until the count is not negative.

    **Bug.** How often the draw fails depends on the true count. Cutting off at 0 would be sound.
    **True loss.** ``epsilon + log(1 + q - q**2)`` with ``q = exp(-epsilon)``, between counts of 0 and 1.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        released = GDPC(self.epsilon)(exact, size, rng)
        while (bad := released < 0).any():
            released[bad] = np.broadcast_to(exact, bad.shape)[bad] + self.noise.sample(int(bad.sum()), rng)
        return released

    def _law_of_cell(self, count: int, near: Integers) -> OutputLaw:
        passed = near[near >= 0]
        return passed, self.noise.logpmf(passed - count) - math.log(self.noise.sf(-count - 1))


class PublicSize(TableBug):
    """Shares of the population: noisy counts over the number of people, which is taken as public.

    **Bug.** Adding a person changes that number too. **True loss.** Infinite: few fractions have both denominators.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Floats:
        return GDPC(self.epsilon)(exact, size, rng) / self._people(exact)

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        people, reach = (self._people(x), self._people(y)), table_reach(self.epsilon)
        if people[0] == people[1]:
            return loss_of_counts(self.epsilon, x, y)
        law: LossDistribution = NO_LOSS
        for counts in zip(x.tolist(), y.tolist(), strict=True):
            if reach is None or law.loss.size * 4 * reach > ATOMS:
                return None
            low, high = (
                end((count + side * reach) / total for count, total in zip(counts, people, strict=True))
                for end, side in ((min, -1), (max, 1))
            )
            shares = (self._law_of_share(*one, low, high) for one in zip(counts, people, strict=True))
            law = law.compose(without_end(loss_of_outputs(*shares), people[0] < people[1], people[0] > people[1]))
        return law

    def _law_of_share(self, count: int, people: int, low: float, high: float) -> OutputLaw:
        noisy = np.arange(math.ceil(low * people), math.floor(high * people) + 1)
        return noisy / people, self.noise.logpmf(noisy - count)

    def _people(self, counts: Integers) -> int:
        if not counts.any():
            raise ValueError("shares need at least one person, got counts of 0 only")
        return int(counts.sum())


class PoissonScale(TableBug):
    """Noise as large as the Poisson error of each count, so that published errors look alike.

    **Bug.** The scale follows the true count, and is 0 at a count of 0. **True loss.** Infinite: an empty cell is
    released as it is. Other cells have no witness, but the tails of two scales drift apart without end.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        released = np.zeros((size, exact.size), np.int64)
        for cell in np.flatnonzero(exact):
            law = self._noise_of(int(exact[cell]))
            released[:, cell] = add_noise(exact[cell], law, size, rng, query=f"cell {cell}", sensitivity=1)
        return released

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        table = loss_of_cells(x, y, self._law_of_cell, self.epsilon / math.sqrt(max(1, x.max(), y.max())))
        wider_x, wider_y = (bool(np.any((one > other) & (other > 0))) for one, other in ((x, y), (y, x)))
        return None if table is None else without_end(table, wider_x, wider_y)

    def _law_of_cell(self, count: int, near: Integers) -> OutputLaw:
        return (near, self._noise_of(count).logpmf(near - count)) if count else ALWAYS_ZERO

    def _noise_of(self, count: int) -> TwoTailedGeometric:
        return TwoTailedGeometric(self.epsilon / math.sqrt(count))


class TalkativeError(TableBug):
    """Counts released as text; a negative one is replaced by an error message that quotes the true count.

    **Bug.** The message of an error is an output. **True loss.** Infinite: a message that names a count proves it.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> NDArray[np.str_]:
        noisy = GDPC(self.epsilon)(exact, size, rng)
        messages = np.array([f"error: the count {count} became negative" for count in exact])
        return np.where(noisy < 0, messages, noisy.astype(np.str_))

    def _law_of_cell(self, count: int, near: Integers) -> OutputLaw:
        numbers, message = np.arange(near[-1] + 1), -1 - count
        log_negative = -self.epsilon * (count + 1) - math.log1p(math.exp(-self.epsilon))
        return np.append(numbers, message), np.append(self.noise.logpmf(numbers - count), log_negative)


@dataclass(frozen=True)
class QualityGate(TableBug):
    """Noise on every count, and a gate that stops the release where one is too far off the truth.

    **Bug.** Whatever passes is within `tolerance` of the truth; what is stopped raises an error, an output too.
    **True loss.** Infinite: the far end of what passes on one database would be stopped on the other.
    """

    tolerance: int = int_field(5, least=1)

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        noisy = GDPC(self.epsilon)(exact, size, rng)
        if (np.abs(noisy - exact) > self.tolerance).any():
            raise RuntimeError("the release failed at the quality gate")
        return noisy

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        changed = np.flatnonzero(x != y)
        if changed.size != 1:
            return None if changed.size else NO_LOSS
        passes = math.log1p(-2 * float(self.noise.sf(self.tolerance)))  # one cell
        error = np.arange(-self.tolerance, self.tolerance + 1)
        passed = self.noise.logpmf(error) + (x.size - 1) * passes
        log_p = np.append(passed, math.log(-math.expm1(x.size * passes)))  # infinity stands for the error
        on_x, on_y = ((np.append(counts[changed] + error, np.inf), log_p) for counts in (x, y))
        return loss_of_outputs(on_x, on_y)
