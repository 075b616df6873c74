"""Known bugs of tables of counts: what is done to the noise, or after it, with the truth at hand.

**Claim.** All of them promise pure DP with `epsilon` when one person is added or removed, and mean to add the
two-tailed geometric noise of `GDPC`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bugs.bug import Bug, KnownBug, UnboundedBug, whole
from algorithms.bugs.output_laws import NO_LOSS, Databases, loss_of_cells, table_reach, two_tables
from algorithms.flaxman import GDPC
from algorithms.noise import Rng, TwoTailedGeometric
from algorithms.noise.counts import ATOMS, DISJOINT, Pair, leaf_counts
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["KNOWN", "EditedToTruth", "PoissonScale", "PublicSize", "RetriedNegatives", "SilentInvariant"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
KNOWN: dict[str, KnownBug] = {}  # by name


@dataclass(frozen=True)
class SilentInvariant(UnboundedBug):
    """Noise on every count; then the last cell takes up what keeps the true total, which nobody had declared.

    **Bug.** The total is released exactly.
    **True loss.** Infinite, at every single output. Each cell alone keeps the promise: the event must be joint.
    **Source.** Our own. Abowd et al., "The 2020 Census Disclosure Avoidance System TopDown Algorithm", 2022, declare
    what they keep exact, and leave it out of the promise.

    Examples
    --------
    >>> SilentInvariant(0.5)([10, 0, 3], 3, np.random.default_rng(0)).sum(axis=1)
    array([13, 13, 13])
    """

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        exact = leaf_counts(counts)
        released = GDPC(self.epsilon)(exact, size, rng)
        released[:, -1] += exact.sum() - released.sum(axis=1)
        return released

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        x, y = two_tables(pair)
        if x.sum() != y.sum():
            return DISJOINT
        return NO_LOSS if x.size == 1 else GDPC(self.epsilon).exact_loss(Databases(x[:-1], y[:-1]))


KNOWN["silent-invariant"] = KnownBug(
    SilentInvariant(1.0), [50, 3], [51, 3], size=10_000, event="the sum of both counts is 53", source="our own"
)


@dataclass(frozen=True)
class EditedToTruth(UnboundedBug):
    """Noise on every count; then an edit brings it back to within a few people of the truth.

    **Bug.** Post-processing may use what was released, not what is true.
    **True loss.** Infinite: the end of the range on one database is out of reach on the other. That end has probability
    ``exp(-slack * epsilon) / (1 + exp(-epsilon))``.
    **Source.** Our own. The rule that it breaks: Dwork and Roth, 2014, proposition 2.1 (post-processing).

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    slack : int
        People by which a count may be off, at least 1.

    Examples
    --------
    >>> release = EditedToTruth(0.5, slack=2)([10, 0, 3], 100, np.random.default_rng(0))
    >>> bool((abs(release - [10, 0, 3]) <= 2).all())
    True
    """

    slack: int = whole(5, least=1)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        exact = leaf_counts(counts)
        return np.clip(GDPC(self.epsilon)(exact, size, rng), exact - self.slack, exact + self.slack)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        end = float(np.log(self.noise.cdf(-self.slack)))

        def law(outputs: Integers, count: int) -> Floats:
            error = np.abs(outputs - count)
            inside = np.where(error < self.slack, self.noise.logpmf(error), -np.inf)
            return np.where(error == self.slack, end, inside)

        return loss_of_cells(pair, law, self.epsilon)


KNOWN["edited-to-truth"] = KnownBug(
    EditedToTruth(1.0, slack=2),
    [50, 3],
    [51, 3],
    size=4_000,
    event="the first count is 48, or it is 53",
    source="our own",
)


@dataclass(frozen=True)
class RetriedNegatives(Bug):
    """Noise on every count, drawn again and again until the count is not negative.

    **Bug.** How often the draw fails depends on the true count. Cutting off at 0 would be sound.
    **True loss.** ``epsilon + log(1 + q - q**2)`` with ``q = exp(-epsilon)``, between counts of 0 and 1.
    **Source.** Holohan, Antonatos, Braghin and Mac Aonghusa, "The Bounded Laplace Mechanism in Differential Privacy",
    2020: noise drawn again until it fits needs a larger scale.

    Examples
    --------
    >>> round(RetriedNegatives(0.5).true_loss, 3)
    0.714
    """

    @property
    def true_loss(self) -> float:
        """Loss in nats of the worst pair of neighbors: an empty cell and one person."""
        q = math.exp(-self.epsilon)
        return self.epsilon + math.log1p(q - q * q)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        exact = leaf_counts(counts)
        released = GDPC(self.epsilon)(exact, size, rng)
        while (bad := released < 0).any():
            released[bad] = np.broadcast_to(exact, bad.shape)[bad] + self.noise.sample(int(bad.sum()), rng)
        return released

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""

        def law(outputs: Integers, count: int) -> Floats:
            kept = math.log(self.noise.sf(-count - 1))
            return np.where(outputs >= 0, self.noise.logpmf(outputs - count) - kept, -np.inf)

        return loss_of_cells(pair, law, self.epsilon)


KNOWN["retried-negatives"] = KnownBug(
    RetriedNegatives(0.5),
    [0, 3],
    [1, 3],
    loss=0.5 + math.log(1 + math.exp(-0.5) - math.exp(-1.0)),
    size=100_000,
    event="the first count is 0",
    source="Holohan et al. 2020",
)


@dataclass(frozen=True)
class PublicSize(UnboundedBug):
    """Shares of the population: noisy counts over the number of people, which is taken for public.

    **Bug.** Adding a person changes the number of people too, and every share is a multiple of one over it.
    **True loss.** Infinite: hardly a fraction can be had with both denominators.
    **Source.** Our own. Casacuberta, Shoemate, Vadhan and Wagaman, "Widespread Underestimation of Sensitivity in
    Differentially Private Libraries and How to Fix It", 2022, keep known and unknown size apart.

    Examples
    --------
    >>> shares = PublicSize(0.5)([10, 0, 3], 4, np.random.default_rng(0)) * 13
    >>> bool(np.allclose(shares, np.round(shares)))
    True
    """

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Floats:
        """Release the shares of `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        exact = leaf_counts(counts)
        return GDPC(self.epsilon)(exact, size, rng) / _people(exact)

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        x, y = two_tables(pair)
        n, m, reach = _people(x), _people(y), table_reach(self.epsilon)
        if n == m:
            return GDPC(self.epsilon).exact_loss(pair)
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


KNOWN["public-size"] = KnownBug(
    PublicSize(1.0), [3, 4], [3, 5], size=500, event="a share is not a multiple of 1/8", source="our own"
)


@dataclass(frozen=True)
class PoissonScale(UnboundedBug):
    """Noise as large as the Poisson error of each count, so that published errors look alike.

    **Bug.** The noise of a count of 1 is what the promise asks for, and larger counts get more; but the scale follows
    the true count, and at the edge, a count of 0, it collapses.
    **True loss.** Infinite: an empty cell is released as it is. Away from the edge too, without a witness: the tails of
    two scales drift apart without end.
    **Source.** Nissim, Raskhodnikova and Smith, "Smooth Sensitivity and Sampling in Private Data Analysis", 2007: the
    magnitude of noise that follows the data tells of the data.

    Examples
    --------
    >>> errors = PoissonScale(0.5)([100, 0, 1], 1000, np.random.default_rng(0)) - [100, 0, 1]
    >>> errors.std(axis=0).round(-1)
    array([30.,  0.,  0.])
    """

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> Integers:
        """Release `counts`, shape (cells,), `size` times over: shape (size, cells)."""
        exact = leaf_counts(counts)
        released = np.tile(exact, (size, 1))
        for cell in np.flatnonzero(exact):
            released[:, cell] += self._noise_of(int(exact[cell])).sample(size, rng)
        return released

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""

        def law(outputs: Integers, count: int) -> Floats:
            return self._noise_of(count).logpmf(outputs - count) if count else np.where(outputs == 0, 0.0, -np.inf)

        x, y = two_tables(pair)
        table = loss_of_cells(pair, law, self.epsilon / math.sqrt(max(1, x.max(), y.max())))
        if table is None:
            return None
        wider_x, wider_y = np.any((x > y) & (y > 0)), np.any((y > x) & (x > 0))
        return replace(table, supremum=math.inf if wider_x else None, infimum=-math.inf if wider_y else None)

    def _noise_of(self, count: int) -> TwoTailedGeometric:
        return TwoTailedGeometric(self.epsilon / math.sqrt(count))


KNOWN["poisson-scale"] = KnownBug(
    PoissonScale(1.0), [5, 0], [5, 1], size=1_000, event="the second count is not 0", source="Nissim et al. 2007"
)


def _people(counts: Integers) -> int:
    if not counts.any():
        raise ValueError("shares need at least one person, got counts of 0 only")
    return int(counts.sum())
