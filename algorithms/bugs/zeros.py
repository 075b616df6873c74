"""Known bugs of tables with empty cells: what is left out because nobody is there.

**Claim.** All of them promise pure DP with `epsilon` when one person is added or removed, and mean to add the
two-tailed geometric noise of `GDPC`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from algorithms.bugs.bug import Floats, Integers, TableBug
from algorithms.bugs.output_laws import NO_LOSS, Databases, loss_of_one_output, table_reach
from algorithms.flaxman import ADPC, GDPC
from algorithms.noise import Rng
from algorithms.noise.counts import ATOMS, DISJOINT
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["ABSENT", "EmptyAreaExit", "ObservedDomain", "SkippedZeros", "UnperturbedZeros"]

ABSENT = -(2**31)  # stands for a row that a table does not have


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

    **Bug.** How many rows there are tells how old the oldest person is. Rows beyond are `ABSENT`.
    **True loss.** Infinite: someone older adds a row.
    """

    def _edit(self, noisy: Integers, exact: Integers) -> Integers:
        noisy[:, _rows(exact) :] = ABSENT
        return noisy

    def _loss(self, x: Integers, y: Integers) -> LossDistribution | None:
        return GDPC(self.epsilon).exact_loss(Databases(x, y)) if _rows(x) == _rows(y) else DISJOINT


class SkippedZeros(TableBug):
    """The total of an area, added up from its noisy cells; cells without people have no row and are skipped.

    **Bug.** A ``GROUP BY`` returns no row for an empty cell, so the total holds the noise of the others only: its
    variance tells how many cells are inhabited.
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


def _rows(counts: Integers) -> int:
    """Rows of a table that ends with the last cell in which there is anyone."""
    return int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0
