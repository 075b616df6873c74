"""Known bugs of tables of counts: empty cells left out, and what is done to the noise with the truth at hand.

**Claim.** All of them promise pure DP with `epsilon` when one person is added or removed, and mean to add the
two-tailed geometric noise of `GDPC`. What may be done afterwards: Dwork and Roth, 2014, proposition 2.1
(post-processing).
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
    TableBug,
    loss_of_cells,
    loss_of_one_output,
    table_reach,
    whole,
)
from algorithms.flaxman import ADPC, GDPC
from algorithms.noise import Rng, TwoTailedGeometric
from algorithms.noise.counts import ATOMS, DISJOINT, Databases
from audit.exact import LossDistribution, loss_from_logs

__all__ = [
    *("ABSENT", "EditedToTruth", "EmptyAreaExit", "ObservedDomain", "PoissonScale", "PublicSize", "QualityGate"),
    *("RetriedNegatives", "SilentInvariant", "SkippedZeros", "TalkativeError", "UnperturbedZeros"),
]

ABSENT = -(2**31)  # stands for a row that a table does not have


# What is left out because nobody is there


class UnperturbedZeros(TableBug):
    """Noise on every count except zeros, which are taken to be impossible cells.

    **Bug.** A zero says for certain that nobody is there.
    **True loss.** Infinite: one person in the cell makes it noisy, and every other number possible.
    """

    def _edit(self, noisy: Integers, exact: Integers) -> Integers:
        return noisy * (exact > 0)

    def _log_law(self, outputs: Integers, count: int) -> Floats:
        return self.noise.logpmf(outputs - count) if count else np.where(outputs == 0, 0.0, -np.inf)


class ObservedDomain(TableBug):
    """A table by age whose last row is the age of the oldest person: the domain is read from the data.

    **Bug.** The number of rows reveals how old the oldest person is. Rows beyond are `ABSENT`.
    **True loss.** Infinite: someone older adds a row.
    """

    def _edit(self, noisy: Integers, exact: Integers) -> Integers:
        noisy[:, _rows(exact) :] = ABSENT
        return noisy

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        return GDPC(self.epsilon).exact_loss(Databases(x, y)) if _rows(x) == _rows(y) else DISJOINT


class SkippedZeros(TableBug):
    """The total of an area, added up from its noisy cells; cells without people have no row and are skipped.

    **Bug.** A ``GROUP BY`` returns no row for an empty cell, so the total has the noise of the other cells only: its
    variance reveals how many cells are inhabited.
    **True loss.** Infinite, though every output is possible on either database: between one cell and two the log-ratio
    of the tails grows without end, as the logarithm of the distance. Without an inhabited cell the total is exact.
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
        bound = math.inf if terms[0] != terms[1] else abs(shift) * self.epsilon  # approached, never reached
        upper, lower = terms[0] >= terms[1], terms[0] <= terms[1]
        return replace(law, supremum=bound if upper else None, infimum=-bound if lower else None)

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
        if x.any() and y.any():
            return GDPC(self.epsilon).exact_loss(Databases(x, y))
        if not (x.any() or y.any()):
            return NO_LOSS
        zeros = (float(self.noise.logpmf(cells).sum()) if cells.any() else 0.0 for cells in (x, y))
        return loss_of_one_output(*zeros)


# What is done to the noise, or after it


class SilentInvariant(TableBug):
    """Noise on every count; then the last cell changes to keep the true total, which nobody had declared invariant.

    **Bug.** The total is released exactly.
    **True loss.** Infinite, at every single output. Each cell alone keeps the promise: the event must be joint.
    """

    def _edit(self, noisy: Integers, exact: Integers) -> Integers:
        noisy[:, -1] += exact.sum() - noisy.sum(axis=1)
        return noisy

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        if x.sum() != y.sum():
            return DISJOINT
        return NO_LOSS if x.size == 1 else GDPC(self.epsilon).exact_loss(Databases(x[:-1], y[:-1]))


@dataclass(frozen=True)
class EditedToTruth(TableBug):
    """Noise on every count; then an edit brings it back to within a few people of the truth.

    **Bug.** Post-processing may use what was released, not what is true: a count is off by at most `slack` people.
    **True loss.** Infinite: the end of the range on one database is out of reach on the other. That end has probability
    ``exp(-slack * epsilon) / (1 + exp(-epsilon))``.
    """

    slack: int = whole(5, least=1)

    def _edit(self, noisy: Integers, exact: Integers) -> Integers:
        return np.clip(noisy, exact - self.slack, exact + self.slack)

    def _log_law(self, outputs: Integers, count: int) -> Floats:
        error = np.abs(outputs - count)
        inside = np.where(error < self.slack, self.noise.logpmf(error), -np.inf)
        return np.where(error == self.slack, float(np.log(self.noise.cdf(-self.slack))), inside)


class RetriedNegatives(TableBug):
    """Noise on every count, drawn again and again until the count is not negative.

    **Bug.** How often the draw fails depends on the true count. Cutting off at 0 would be sound.
    **True loss.** ``epsilon + log(1 + q - q**2)`` with ``q = exp(-epsilon)``, between counts of 0 and 1.
    """

    @property
    def true_loss(self) -> float:
        """Loss in nats of the worst pair of neighbors: an empty cell and one person."""
        q = math.exp(-self.epsilon)
        return self.epsilon + math.log1p(q - q * q)

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        released = GDPC(self.epsilon)(exact, size, rng)
        while (bad := released < 0).any():
            released[bad] = np.broadcast_to(exact, bad.shape)[bad] + self.noise.sample(int(bad.sum()), rng)
        return released

    def _log_law(self, outputs: Integers, count: int) -> Floats:
        passed = math.log(self.noise.sf(-count - 1))
        return np.where(outputs >= 0, self.noise.logpmf(outputs - count) - passed, -np.inf)


class PublicSize(TableBug):
    """Shares of the population: noisy counts over the number of people, which is taken as public.

    **Bug.** Adding a person changes the number of people too, and every share is a multiple of one over it.
    **True loss.** Infinite: hardly any fraction is possible with both denominators.
    """

    def _edit(self, noisy: Integers, exact: Integers) -> Floats:
        return noisy / _people(exact)

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        n, m, reach = _people(x), _people(y), table_reach(self.epsilon)
        if n == m:
            return GDPC(self.epsilon).exact_loss(Databases(x, y))
        a, b = n // math.gcd(n, m), m // math.gcd(n, m)
        law: LossDistribution = NO_LOSS
        for first, second in zip(x.tolist(), y.tolist(), strict=True):
            if reach is None or law.loss.size * 4 * reach > ATOMS:
                return None
            law = law.compose(self._share_loss(first, a, second, b, reach))
        return law

    def _share_loss(self, x: int, a: int, y: int, b: int, reach: int) -> LossDistribution:
        """Loss of one cell, of counts `x` and `y`: the `a`-fold of a noisy count there is the `b`-fold of one here."""
        near_x, near_y = (np.arange(count - reach, count + reach + 1) for count in (x, y))
        common = np.union1d(near_x[near_x % a == 0] // a, near_y[near_y % b == 0] // b)
        only_x, only_y = near_x[near_x % a != 0], near_y[near_y % b != 0]
        none_x, none_y = np.full(only_x.size, -np.inf), np.full(only_y.size, -np.inf)
        log_p = np.concatenate([self.noise.logpmf(common * a - x), self.noise.logpmf(only_x - x), none_y])
        log_q = np.concatenate([self.noise.logpmf(common * b - y), none_x, self.noise.logpmf(only_y - y)])
        law = loss_from_logs(log_p, log_q)
        # In the tails of the common outputs the noise of one count must reach farther than that of the other.
        return replace(law, supremum=math.inf if a < b else None, infimum=-math.inf if a > b else None)


class PoissonScale(TableBug):
    """Noise as large as the Poisson error of each count, so that published errors look alike.

    **Bug.** The noise of a count of 1 is what the promise asks for, and larger counts get more; but the scale follows
    the true count, and at the edge, a count of 0, it collapses.
    **True loss.** Infinite: an empty cell is released as it is. Away from the edge too, without a witness: the tails of
    two scales drift apart without end.
    """

    def _release(self, exact: Integers, size: int, rng: Rng) -> Integers:
        released = np.tile(exact, (size, 1))
        for cell in np.flatnonzero(exact):
            released[:, cell] += self._noise_of(int(exact[cell])).sample(size, rng)
        return released

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        table = loss_of_cells(x, y, self._log_law, self.epsilon / math.sqrt(max(1, x.max(), y.max())))
        if table is None:
            return None
        wider_x, wider_y = np.any((x > y) & (y > 0)), np.any((y > x) & (x > 0))
        return replace(table, supremum=math.inf if wider_x else None, infimum=-math.inf if wider_y else None)

    def _log_law(self, outputs: Integers, count: int) -> Floats:
        return self._noise_of(count).logpmf(outputs - count) if count else np.where(outputs == 0, 0.0, -np.inf)

    def _noise_of(self, count: int) -> TwoTailedGeometric:
        return TwoTailedGeometric(self.epsilon / math.sqrt(count))


class TalkativeError(TableBug):
    """Counts released as text; a negative one is replaced by an error message that quotes the true count.

    **Bug.** The message of an error is an output.
    **True loss.** Infinite: a message that names a count is impossible for any other.
    """

    def _edit(self, noisy: Integers, exact: Integers) -> NDArray[np.str_]:
        messages = np.array([f"error: the count {count} became negative" for count in exact])
        return np.where(noisy < 0, messages, noisy.astype(np.str_))

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        law, reach = NO_LOSS, table_reach(self.epsilon)
        for first, second in zip(x[x != y].tolist(), y[x != y].tolist(), strict=True):
            if reach is None or law.loss.size * (max(first, second) + reach) > ATOMS:
                return None
            numbers = np.arange(max(first, second) + reach + 1)
            message_x, message_y = (
                -self.epsilon * (count + 1) - math.log1p(math.exp(-self.epsilon)) for count in (first, second)
            )
            log_p = np.append(self.noise.logpmf(numbers - first), [message_x, -np.inf])
            log_q = np.append(self.noise.logpmf(numbers - second), [-np.inf, message_y])
            law = law.compose(loss_from_logs(log_p, log_q))
        return law


@dataclass(frozen=True)
class QualityGate(TableBug):
    """Noise on every count, and a gate that stops the release where one is too far off the truth.

    **Bug.** Whatever passes the gate is within `tolerance` of the truth. A run that the gate stops raises an error,
    which is an output as any other: ask for one run at a time to have the others.
    **True loss.** Infinite: the far end of what passes on one database would be stopped on the other.
    """

    tolerance: int = whole(5, least=1)

    def _edit(self, noisy: Integers, exact: Integers) -> Integers:
        if (np.abs(noisy - exact) > self.tolerance).any():
            raise RuntimeError("the release failed at the quality gate")
        return noisy

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        changed = np.flatnonzero(x != y)
        if changed.size != 1:
            return None if changed.size else NO_LOSS
        within = math.log1p(-2 * float(self.noise.sf(self.tolerance)))  # one cell passes
        first, second = int(x[changed[0]]), int(y[changed[0]])
        outputs = np.concatenate([count + np.arange(-self.tolerance, self.tolerance + 1) for count in (first, second)])
        errors = (np.unique(outputs) - count for count in (first, second))
        log_p, log_q = (
            np.append(
                np.where(np.abs(error) <= self.tolerance, self.noise.logpmf(error) + (x.size - 1) * within, -np.inf),
                math.log(-math.expm1(x.size * within)),
            )
            for error in errors
        )
        return loss_from_logs(log_p, log_q)


def _people(counts: Integers) -> int:
    if not counts.any():
        raise ValueError("shares need at least one person, got counts of 0 only")
    return int(counts.sum())


def _rows(counts: Integers) -> int:
    """Rows of a table that ends with the last cell in which there is anyone."""
    return int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0
