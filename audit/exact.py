"""Exact privacy loss: what the two output laws say, without a single run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["LossDistribution", "loss_distribution"]

Floats = NDArray[np.float64]
SMALLEST = 1e-290  # below, floats lose their digits, and what is possible soon reads 0
SAME_LOSS = 12  # decimals to which composed losses count as equal: far below any loss that matters


@dataclass(frozen=True, eq=False, repr=False)
class LossDistribution:
    """The law of the privacy loss ``log(p / q)`` of an output drawn from `p`.

    It belongs to one ordered pair of databases: `p` is the output law on the first, `q` on the second. `reverse` gives
    the other order; a promise has to hold for both.

    Attributes
    ----------
    loss : ndarray of float, shape (m,)
        Distinct finite losses in nats, in increasing order.
    log_p : ndarray of float, shape (m,)
        Log-probability of each under `p`; under `q` it is ``log_p - loss``.
    infinite_mass : float
        Probability under `p` of outputs that `q` cannot produce: there the loss is infinite.
    missing_mass : float
        Probability under `q` of outputs that `p` cannot produce.
    supremum, infimum : float or None
        Least upper and greatest lower bound of the finite losses, where theory knows them and the listed support only
        approaches them.
    """

    loss: Floats
    log_p: Floats
    infinite_mass: float = 0.0
    missing_mass: float = 0.0
    supremum: float | None = None
    infimum: float | None = None

    @property
    def probability(self) -> Floats:
        """Probability of each loss under `p`, shape (m,)."""
        return np.exp(self.log_p)

    @property
    def maximum(self) -> float:
        """The pure-DP loss in this order: least upper bound of the loss over all outputs, infinite mass included."""
        if self.infinite_mass > 0:
            return math.inf
        if self.supremum is not None:
            return self.supremum
        return float(self.loss[-1]) if self.loss.size else -math.inf

    def delta_at(self, epsilon: float) -> float:
        """Return the smallest delta for which this pair is (epsilon, delta)-indistinguishable in this order.

        Parameters
        ----------
        epsilon : float
            Privacy loss in nats, 0 or more.

        Returns
        -------
        float
            ``sum(max(p - exp(epsilon) q, 0))``, the hockey-stick divergence.

        Raises
        ------
        ValueError
            If `epsilon` is negative or NaN.

        References
        ----------
        .. [1] Barthe and Olmedo, "Beyond Differential Privacy: Composition Theorems and Relational Logic for
           f-divergences between Probabilistic Programs", 2013, theorem 1.
        """
        if not epsilon >= 0:
            raise ValueError(f"epsilon must be 0 or more, got {epsilon}")
        above = self.loss > epsilon
        return self.infinite_mass + math.fsum(np.exp(self.log_p[above]) * -np.expm1(epsilon - self.loss[above]))

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon, 0 or more, for which `delta_at` is at most `delta`.

        Parameters
        ----------
        delta : float
            Probability, in [0, 1).

        Returns
        -------
        float
            In nats; infinite when `delta` is below the infinite mass.

        Raises
        ------
        ValueError
            If `delta` is outside [0, 1).
        """
        if not 0 <= delta < 1:
            raise ValueError(f"delta must be in [0, 1), got {delta}")
        if delta < self.infinite_mass:
            return math.inf
        if delta == 0:
            return max(0.0, self.maximum)
        # Between two neighboring losses delta is P - exp(epsilon) Q, with P and Q the masses above: solve each piece.
        above_p = self.infinite_mass + np.cumsum(np.exp(self.log_p[::-1]))
        log_above_q = np.logaddexp.accumulate((self.log_p - self.loss)[::-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            solved = np.log(above_p - delta) - log_above_q
        lower = np.append(self.loss[::-1][1:], -np.inf)
        holds = (above_p > delta) & (solved >= lower)
        return max(0.0, float(solved[holds][0])) if holds.any() else 0.0

    def reverse(self) -> LossDistribution:
        """Return the loss in the other order: of an output drawn from `q`."""
        return LossDistribution(
            -self.loss[::-1],
            (self.log_p - self.loss)[::-1],
            self.missing_mass,
            self.infinite_mass,
            None if self.infimum is None else -self.infimum,
            None if self.supremum is None else -self.supremum,
        )

    def compose(self, other: LossDistribution) -> LossDistribution:
        """Return the loss of two independent outputs seen together.

        Parameters
        ----------
        other : LossDistribution
            Of an output that is independent of this one on either database.

        Returns
        -------
        LossDistribution
            Losses add, probabilities multiply.

        Raises
        ------
        ValueError
            If the product of the two supports exceeds 10 million outputs.
        """
        if self.loss.size * other.loss.size > 10_000_000:
            raise ValueError(f"composing {self.loss.size} by {other.loss.size} losses exceeds 10 million")
        return _collect(
            np.add.outer(self.loss, other.loss).ravel(),
            np.add.outer(self.log_p, other.log_p).ravel(),
            _either(self.infinite_mass, other.infinite_mass),
            _either(self.missing_mass, other.missing_mass),
            _sum_of_ends(self.supremum, other.supremum, self.loss[-1:], other.loss[-1:]),
            _sum_of_ends(self.infimum, other.infimum, self.loss[:1], other.loss[:1]),
        )

    def __repr__(self) -> str:
        return f"LossDistribution({self.loss.size} losses, maximum {self.maximum:.6g})"


def loss_distribution(p: ArrayLike, q: ArrayLike) -> LossDistribution:
    """Return the law of the privacy loss of an output drawn from `p` rather than `q`.

    Parameters
    ----------
    p, q : array_like of float, shape (m,)
        Probabilities of the same `m` outputs on the first and the second database; each adds up to 1. An output with
        one of them 0 is impossible there. Outputs with both below 1e-290 are left out.

    Returns
    -------
    LossDistribution
        In nats, in the order `p` over `q`.

    Raises
    ------
    ValueError
        If shapes differ, a probability is negative or NaN, or either does not add up to 1 within 1e-9.

    Examples
    --------
    Randomized response that tells the truth three times in four:

    >>> law = loss_distribution([0.75, 0.25], [0.25, 0.75])
    >>> round(law.maximum, 6), round(law.delta_at(0.0), 6)
    (1.098612, 0.5)
    """
    first, second = np.asarray(p, float), np.asarray(q, float)
    if first.ndim != 1 or first.shape != second.shape or first.size == 0:
        raise ValueError(
            f"p and q must be two lists over the same outputs, got shapes {first.shape} and {second.shape}"
        )
    for name, law in (("p", first), ("q", second)):
        if not np.all(law >= 0):
            raise ValueError(f"{name} must hold probabilities of 0 or more, got {law[~(law >= 0)][0]}")
        if abs((total := math.fsum(law)) - 1) > 1e-9:
            raise ValueError(f"{name} must add up to 1, got {total}")
    kept = np.maximum(first, second) >= SMALLEST
    with np.errstate(divide="ignore"):
        return loss_from_logs(np.log(first[kept]), np.log(second[kept]))


def loss_from_logs(
    log_p: Floats, log_q: Floats, supremum: float | None = None, infimum: float | None = None
) -> LossDistribution:
    """Return the same from log-probabilities, which keep the far tails, shape (m,) each; -inf is impossible."""
    both = np.isfinite(log_p) & np.isfinite(log_q)
    infinite = math.fsum(np.exp(log_p[np.isneginf(log_q)]))
    missing = math.fsum(np.exp(log_q[np.isneginf(log_p)]))
    return _collect(log_p[both] - log_q[both], log_p[both], infinite, missing, supremum, infimum)


def _either(first: float, second: float) -> float:
    """Probability of one of two independent events or both, which keeps masses far below the spacing of floats at 1."""
    return first + second - first * second


def _sum_of_ends(
    first: float | None, second: float | None, listed_first: Floats, listed_second: Floats
) -> float | None:
    """Add the ends of two ranges of losses, as theory knows them or else as listed; None where it knows neither."""
    if (first is None and second is None) or not (listed_first.size and listed_second.size):
        return None
    return float(listed_first[0] if first is None else first) + float(listed_second[0] if second is None else second)


def _collect(
    loss: Floats, log_p: Floats, infinite: float, missing: float, supremum: float | None, infimum: float | None
) -> LossDistribution:
    """Sort by loss and add up the probabilities of equal losses."""
    order = np.argsort(loss, kind="stable")
    loss, log_p = loss[order], log_p[order]
    with np.errstate(over="ignore", invalid="ignore"):  # beyond 1e296, where no two losses need telling apart
        rises = np.diff(np.round(loss, SAME_LOSS)) > 0
    starts = np.flatnonzero(np.append(True, rises)) if loss.size else np.array([], int)
    merged = np.logaddexp.reduceat(log_p, starts) if loss.size else log_p
    return LossDistribution(loss[starts], merged, infinite, missing, supremum, infimum)
