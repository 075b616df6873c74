"""Known bugs of tables with empty cells: what is left out because nobody is there.

**Claim.** All of them promise pure DP with `epsilon` when one person is added or removed, and mean to add the
two-tailed geometric noise of `GDPC`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bugs.bug import KnownBug, UnboundedBug
from algorithms.bugs.output_laws import NO_LOSS, loss_of_cells, loss_of_one_output, table_reach, two_tables
from algorithms.flaxman import ADPC, GDPC
from algorithms.noise import Rng
from algorithms.noise.counts import ATOMS, DISJOINT, Pair, leaf_counts
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["ABSENT", "KNOWN", "EmptyAreaExit", "ObservedDomain", "SkippedZeros", "UnperturbedZeros"]

ABSENT = -(2**31)  # stands for a row that a table does not have

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
KNOWN: dict[str, KnownBug] = {}  # by name


@dataclass(frozen=True)
class UnperturbedZeros(UnboundedBug):
    """Noise on every count except zeros, which are taken to be impossible cells.

    **Bug.** A zero says for certain that nobody is there.
    **True loss.** Infinite: one person in the cell makes it noisy, and every other number possible.
    **Source.** Our own. Petti and Flaxman, "Differential privacy in the 2020 US census: what will it do? Quantifying
    the accuracy/privacy tradeoff", 2019, compare tables in which only the cells that occur are listed.

    Examples
    --------
    >>> bool((UnperturbedZeros(0.5)([10, 0, 3], 100, np.random.default_rng(0))[:, 1] == 0).all())
    True
    """

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        exact = leaf_counts(counts)
        return GDPC(self.epsilon)(exact, size, rng) * (exact > 0)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""

        def law(outputs: Integers, count: int) -> Floats:
            return self.noise.logpmf(outputs - count) if count else np.where(outputs == 0, 0.0, -np.inf)

        return loss_of_cells(pair, law, self.epsilon)


KNOWN["unperturbed-zeros"] = KnownBug(
    UnperturbedZeros(1.0), [5, 0], [5, 1], size=1_000, event="the second count is not 0", source="our own"
)


@dataclass(frozen=True)
class ObservedDomain(UnboundedBug):
    """A table by age whose last row is the age of the oldest person: the domain is read from the data.

    **Bug.** How many rows there are tells how old the oldest person is. Rows beyond are `ABSENT`.
    **True loss.** Infinite: someone older adds a row.
    **Source.** Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing Search Queries and Clicks Privately", 2009: that a
    row exists tells of a person. opendp/smartnoise-sdk#309 has the discussion for SQL.

    Examples
    --------
    >>> release = ObservedDomain(0.5)([10, 3, 0], 1, np.random.default_rng(0))
    >>> bool(release[0, 2] == ABSENT)
    True
    """

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts` by age, shape (ages,), `size` times over: shape (size, ages)."""
        exact = leaf_counts(counts)
        released = GDPC(self.epsilon)(exact, size, rng)
        released[:, _rows(exact) :] = ABSENT
        return released

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        x, y = two_tables(pair)
        return GDPC(self.epsilon).exact_loss(pair) if _rows(x) == _rows(y) else DISJOINT


KNOWN["observed-domain"] = KnownBug(
    ObservedDomain(1.0),
    [5, 0],
    [5, 1],
    size=500,
    event="the second row is there",
    source="Korolova et al. 2009; opendp/smartnoise-sdk#309",
)


@dataclass(frozen=True)
class SkippedZeros(UnboundedBug):
    """The total of an area, added up from its noisy cells; cells without people have no row and are skipped.

    **Bug.** A ``GROUP BY`` returns no row for an empty cell, so the total holds the noise of the others only: its
    variance tells how many cells are inhabited.
    **True loss.** Infinite, though every output is possible on either database: between one cell and two the log-ratio
    of the tails grows without end, as the logarithm of the distance. Without an inhabited cell the total is exact.
    **Source.** Our own. Cebere, Erb, Desfontaines, Bellet and Fitzsimons, "Privacy in Theory, Bugs in Practice:
    Grey-Box Auditing of Differential Privacy Libraries", 2026, find loops whose length depends on the data.

    Examples
    --------
    >>> SkippedZeros(0.5)([10, 0, 3], 4, np.random.default_rng(0)).shape
    (4,)
    """

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release the total of `counts`, shape (cells,), `size` times over: shape (size,)."""
        exact = leaf_counts(counts)
        released: Integers = self.noise.sample((size, int(np.count_nonzero(exact))), rng).sum(axis=1)
        released += exact.sum()
        return released

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, or None where its table would be too large."""
        (x, y), reach = two_tables(pair), table_reach(self.epsilon)
        shift, terms = int(y.sum() - x.sum()), (int(np.count_nonzero(x)), int(np.count_nonzero(y)))
        if reach is None or abs(shift) + 2 * reach * max(terms) ** 2 > ATOMS:
            return None
        end = reach * max(1, *terms) + abs(shift)
        outputs = np.arange(-end, end + 1)
        law = loss_from_logs(self._log_law(outputs, terms[0]), self._log_law(outputs - shift, terms[1]))
        if min(terms) == 0:
            return law
        bound = math.inf if terms[0] != terms[1] else abs(shift) * self.epsilon  # approached, never reached
        upper, lower = terms[0] >= terms[1], terms[0] <= terms[1]
        return replace(law, supremum=bound if upper else None, infimum=-bound if lower else None)

    def _log_law(self, error: Integers, terms: int) -> Floats:
        if terms == 0:
            return np.where(error == 0, 0.0, -np.inf)
        return ADPC(self.epsilon * terms, terms).logpmf_sum(error)


KNOWN["skipped-zeros"] = KnownBug(
    SkippedZeros(1.0), [5, 0], [5, 1], size=50_000, event="the total is far from 5", source="our own"
)


@dataclass(frozen=True)
class EmptyAreaExit(UnboundedBug):
    """Noise on every count, unless nobody lives in the area: then zeros are returned at once.

    **Bug.** The early exit is taken on the true total.
    **True loss.** Infinite: on an inhabited area a table of zeros is one output of many.
    **Source.** google/differential-privacy#5: a count over no rows ended otherwise than one over some.

    Examples
    --------
    >>> int(np.abs(EmptyAreaExit(0.5)([0, 0], 100, np.random.default_rng(0))).sum())
    0
    """

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        exact = leaf_counts(counts)
        if exact.sum() == 0:
            return np.zeros((size, exact.size), np.int64)
        return GDPC(self.epsilon)(exact, size, rng)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        x, y = two_tables(pair)
        if x.any() and y.any():
            return GDPC(self.epsilon).exact_loss(pair)
        if not (x.any() or y.any()):
            return NO_LOSS
        zeros = (float(self.noise.logpmf(cells).sum()) if cells.any() else 0.0 for cells in (x, y))
        return loss_of_one_output(*zeros)


KNOWN["empty-area-exit"] = KnownBug(
    EmptyAreaExit(1.0), [0, 0], [1, 0], size=1_000, event="a count is not 0", source="google/differential-privacy#5"
)


def _rows(counts: Integers) -> int:
    """Rows of a table that ends with the last cell in which there is anyone."""
    return int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0
