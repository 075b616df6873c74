"""The three counting algorithms of Flaxman (2019): geometric noise, raked geometric noise, averaged geometric noise.

The paper calls each of them epsilon-DP and compares databases that differ in one person's *location*. That is true
when a person is *added or removed*, which changes one count by one; moving a person changes two counts, and costs up
to twice as much. The claims below therefore say ``add_remove``; ``claim.under("replace_one")`` is what holds for a
move.

References
----------
.. [1] Flaxman, "Empirical quantification of privacy loss with examples relevant to the 2020 US Census", 2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from algorithms.hierarchy import Hierarchy, check_counts
from algorithms.noise import Rng, TwoTailedGeometric
from audit.claims import PureDP
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["ADPC", "GDPC", "RDPC"]

CHUNK = 2**17  # cells worked on at a time: what fits the processor's cache
ATOMS = 2**22  # largest support on which an exact law is tabulated
LARGEST = 2**61  # sums of noisy counts stay in int64


class Pair(Protocol):
    """Two databases of counts: what an exact loss needs to know of a pair of neighbors."""

    @property
    def x(self) -> NDArray[np.int64]: ...
    @property
    def y(self) -> NDArray[np.int64]: ...


@dataclass(frozen=True)
class GDPC:
    """Geometric DP counts: two-tailed geometric noise on the count of every leaf.

    **Claim.** Pure DP with `epsilon` when one person is added or removed.
    **Sensitivity.** One person changes one count by 1.

    Attributes
    ----------
    epsilon : float
        Privacy budget in nats, positive and finite.

    References
    ----------
    .. [1] Flaxman, 2019, section 2.2.
    .. [2] Ghosh, Roughgarden and Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", 2009.

    Examples
    --------
    >>> release = GDPC(1.0)([10, 0, 3], 2, np.random.default_rng(7))
    >>> release.shape, release.dtype.name
    ((2, 3), 'int64')
    """

    epsilon: float

    def __post_init__(self) -> None:
        _ = self.noise  # refuses a bad epsilon

    @cached_property
    def noise(self) -> TwoTailedGeometric:
        """The law of the error of every count."""
        return TwoTailedGeometric(self.epsilon)

    @property
    def claim(self) -> PureDP:
        """What the algorithm promises."""
        return PureDP(self.epsilon)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[np.int64]:
        """Release `counts`, shape (leaves,), `size` times over: shape (size, leaves)."""
        exact = _leaf_counts(counts)
        released = self.noise.sample((size, exact.size), rng)
        released += exact
        return released

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, exactly: the outputs of one loss are one outcome.

        Returns
        -------
        LossDistribution or None
            None when a table of it would have more than 2**22 entries, or losses that float64 cannot hold.

        Raises
        ------
        ValueError
            If the two databases do not have the same leaves.
        """
        law = _NO_LOSS
        shifts = _shifts(pair)
        if math.prod(shift + 1 for shift in shifts) > ATOMS or not math.isfinite(self.epsilon * 2 * sum(shifts)):
            return None
        for shift in shifts:
            k = np.arange(shift, -1.0, -1.0)  # an error of 0 or less is one outcome, of `shift` or more another
            log_p = self.noise.logpmf(k)
            log_p[0] -= math.log(-math.expm1(-self.epsilon))
            log_p[-1] = -math.log1p(math.exp(-self.epsilon))
            law = law.compose(LossDistribution(self.epsilon * (shift - 2.0 * k), log_p))
        return law


@dataclass(frozen=True)
class RDPC:
    """Raked geometric DP counts: every area measured with a share of the budget, then raked from the top down.

    The paper says both that budgets split into J+1 parts and that counts for all J' < J are released. Here J+1 levels
    are measured, the root (J' = 0) and the J levels below it, each with ``epsilon / (J + 1)``; released are the
    leaves, as in the paper's experiments, or every level. Leaves at different depths share the split of the deepest.

    **Claim.** Pure DP with `epsilon` when one person is added or removed; moving a person leaves the root unchanged and
    costs ``2 J / (J + 1)`` times `epsilon`.
    **Sensitivity.** One person changes one count by 1 at each level.

    Attributes
    ----------
    epsilon : float
        Privacy budget in nats of the whole release, positive and finite.
    tree : Hierarchy
        The areas, of any fan-out and depth.
    output : {"leaves", "all"}
        Release the leaves, or all areas in the order of `Hierarchy.totals`.

    References
    ----------
    .. [1] Flaxman, 2019, section 2.2; `Hierarchy.rake` has the rule for families that add up to zero or less.

    Examples
    --------
    >>> tree = Hierarchy.regular(2, 2)
    >>> release = RDPC(1.0, tree, output="all")([10, 0, 3, 8], 5, np.random.default_rng(7))
    >>> release.shape, bool(np.allclose(release[:, 3:].sum(axis=1), release[:, 0]))
    ((5, 7), True)
    """

    epsilon: float
    tree: Hierarchy
    output: Literal["leaves", "all"] = "leaves"

    def __post_init__(self) -> None:
        if not isinstance(self.tree, Hierarchy):
            raise TypeError(f"tree must be a Hierarchy, got {type(self.tree).__name__}")
        _ = self.noise  # refuses a bad epsilon
        if self.output not in ("leaves", "all"):
            raise ValueError(f'output must be "leaves" or "all", got {self.output!r}')

    @property
    def shares(self) -> int:
        """Parts of equal size into which the budget is split: one a level, the root included."""
        return self.tree.depth + 1

    @cached_property
    def noise(self) -> TwoTailedGeometric:
        """The law of the error of every measured count, before raking."""
        return _split(self.epsilon, self.shares)

    @property
    def claim(self) -> PureDP:
        """What the algorithm promises."""
        return PureDP(self.epsilon)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[np.float64]:
        """Release `counts`, shape (leaves,), `size` times over: shape (size, leaves), or (size, areas) for all."""
        exact = self.tree.totals(self.tree.check_counts(_leaf_counts(counts)))
        kept = slice(None) if self.output == "all" else self.tree.leaves
        released = np.empty((size, exact.size if self.output == "all" else self.tree.n_leaves))
        for rows in _chunks(size, exact.size):
            noisy = self.noise.sample((rows.stop - rows.start, exact.size), rng)
            released[rows] = self.tree.rake(noisy + exact)[:, kept]
        return released


@dataclass(frozen=True)
class ADPC:
    """Averaged geometric DP counts: the mean of several geometric releases, each with a part of the budget.

    **Claim.** Pure DP with `epsilon` when one person is added or removed.
    **Sensitivity.** One person changes one count by 1 in each part.

    Attributes
    ----------
    epsilon : float
        Privacy budget in nats of the whole release, positive and finite.
    parts : int
        Releases averaged, at least 1; the paper has 4.

    References
    ----------
    .. [1] Flaxman, 2019, section 2.2.

    Examples
    --------
    >>> ADPC(1.0)([10, 0, 3], 2, np.random.default_rng(7)).shape
    (2, 3)
    """

    epsilon: float
    parts: int = 4

    def __post_init__(self) -> None:
        if isinstance(self.parts, bool) or not isinstance(self.parts, int | np.integer):
            raise TypeError(f"parts must be an integer, got {self.parts!r}")
        if self.parts < 1:
            raise ValueError(f"parts must be at least 1, got {self.parts}")
        _ = self.noise  # refuses a bad epsilon

    @cached_property
    def noise(self) -> TwoTailedGeometric:
        """The law of the error of one part."""
        return _split(self.epsilon, self.parts)

    @property
    def claim(self) -> PureDP:
        """What the algorithm promises."""
        return PureDP(self.epsilon)

    @property
    def variance(self) -> float:
        """Variance of the error of every count, in people squared."""
        return self.noise.variance / self.parts

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[np.float64]:
        """Release `counts`, shape (leaves,), `size` times over: shape (size, leaves), multiples of ``1 / parts``."""
        exact = _leaf_counts(counts)
        if exact.max() > LARGEST // self.parts:
            raise ValueError(
                f"counts must be at most {LARGEST // self.parts} for {self.parts} parts, got {exact.max()}"
            )
        exact = exact * self.parts
        released = np.empty((size, exact.size))
        for rows in _chunks(size, exact.size):
            shape = (rows.stop - rows.start, exact.size)
            total = self.noise.sample(shape, rng)
            for _ in range(self.parts - 1):
                total += self.noise.sample(shape, rng)
            total += exact
            # The mean of noisy counts, divided once: to add the exact count to a mean of noise would round by it, and
            # so leave its mark on the last bits wherever 1 / parts is no binary fraction.
            np.divide(total, self.parts, out=released[rows])
        return released

    def logpmf_sum(self, total: ArrayLike) -> NDArray[np.float64]:
        """Return the log-probability that the errors of all parts of a count add up to `total`.

        The generating function of two negative binomials gives ``C q^s`` times a polynomial in ``s = |total|`` whose
        terms are all positive, so nothing cancels in the tails.

        Parameters
        ----------
        total : array_like of int, shape (m,)
            Sum of the errors of the parts.

        Returns
        -------
        ndarray of float, shape (m,)
            In nats.
        """
        s = np.abs(np.asarray(total, np.float64))
        top = self.parts - 1
        step = self.noise.epsilon
        log_z, log_rest = -2 * step, math.log(-math.expm1(-2 * step))
        terms = []
        for i in range(top + 1):
            k = np.arange(top - i + 1)
            inner = (
                2 * (gammaln(top - i + 1) - gammaln(top - i - k + 1))
                + gammaln(i + 1)
                - gammaln(i + k + 1)
                - gammaln(k + 1)
            )
            constant = _log_binomial(top, i) + (i - 2 * top - 1) * log_rest + logsumexp(inner + k * log_z)
            with np.errstate(divide="ignore"):
                terms.append(np.where(s >= i, _log_binomial(np.maximum(s, i), i), -np.inf) + constant)
        leading: NDArray[np.float64] = 2 * self.parts * math.log(-math.expm1(-step)) - step * s
        return np.asarray(leading + logsumexp(np.array(terms), axis=0))

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, where its support can be tabulated.

        The loss grows towards `epsilon` in the tails without reaching it, so the supremum is given by theory; the table
        stops where probabilities leave the range of float64.

        Returns
        -------
        LossDistribution or None
            None when the databases differ in more than one count or the noise spreads over more than 2**22 values.

        Raises
        ------
        ValueError
            If the two databases do not have the same leaves.
        """
        shifts = _shifts(pair)
        if not shifts:
            return _NO_LOSS
        reach = math.ceil(740 / self.noise.epsilon)
        moved = shifts[0] * self.parts
        if len(shifts) > 1 or 2 * reach + moved > ATOMS:
            return None
        s = np.arange(-reach, reach + moved + 1)
        log_law = self.logpmf_sum(np.arange(-reach - moved, reach + moved + 1))
        # On y every error is `moved` higher, so the same output is an error of s - moved there.
        bound = shifts[0] * self.epsilon
        return loss_from_logs(log_law[moved:], log_law[: s.size], supremum=bound, infimum=-bound)


_NO_LOSS = LossDistribution(np.zeros(1), np.zeros(1))


def _split(epsilon: float, parts: int) -> TwoTailedGeometric:
    """Noise for one of `parts` equal parts of the budget, the whole budget checked under its own name."""
    return TwoTailedGeometric(TwoTailedGeometric(epsilon).epsilon / parts)


def _leaf_counts(counts: ArrayLike) -> NDArray[np.int64]:
    """Return the counts of one database as int64, shape (leaves,): the areas of a tree that has no levels between."""
    given = np.atleast_1d(np.asarray(counts))
    if given.ndim != 1 or given.size == 0:
        raise ValueError(f"counts must be one entry for each leaf, got shape {given.shape}")
    return check_counts(given)


def _shifts(pair: Pair) -> list[int]:
    """How many people each changed count differs by."""
    x, y = _leaf_counts(pair.x), _leaf_counts(pair.y)
    if x.shape != y.shape:
        raise ValueError(f"the two databases must have the same leaves, got {x.size} and {y.size}")
    return [int(d) for d in np.abs(y - x) if d]


def _chunks(size: int, cells: int) -> Iterator[slice]:
    """Cut `size` runs of `cells` counts into pieces that stay in the processor's cache."""
    rows = max(1, CHUNK // cells)
    for start in range(0, size, rows):
        yield slice(start, min(start + rows, size))


def _log_binomial(n: NDArray[np.float64] | float, k: int) -> NDArray[np.float64]:
    """Log of the binomial coefficient, factor by factor: the log-gammas of a large `n` would cancel."""
    above = np.asarray(n, np.float64)
    return np.asarray(sum((np.log(above - j) for j in range(k)), np.zeros_like(above)) - gammaln(k + 1))
