"""A test of a promise by one event and fixed numbers of runs: its counts on both databases are tested together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from audit.bounds.limits import check_confidence

__all__ = ["Surprises", "fewest_hits", "surprises"]

Floats = NDArray[np.float64]
FINENESS = 60  # rates for each root of the runs: neighboring ones are about a twentieth of a standard error apart
LARGEST = 700.0  # epsilon beyond which its exponential is no float


@dataclass(frozen=True)
class Surprises:
    """How surprising the counts of an event are at any probabilities of it, in standard errors."""

    rates: Floats  # shape (k,), probabilities from 0 to 1
    many: Floats  # shape (..., k): so many hits on the database where the event is likely
    few: Floats  # shape (..., k): so few on the other
    runs: tuple[int, int]

    def refute(self, epsilon: ArrayLike, delta: ArrayLike, *, confidence: float) -> NDArray[np.bool_]:
        """Return whether the counts refute ``p <= exp(epsilon) q + delta`` for the probabilities of the event.

        Promises of shape (n,) have answers of shape (..., n).

        The counts refute a promise if they do for every `q`. Given `q`, two independent p-values are joined by a
        weighted sum of normal quantiles: that so many runs meet the event on one database, if `p` is as large as
        allowed, and so few on the other. The weights depend on `q` alone, and are best for normal laws. The rates form
        cells, in which each p-value is replaced by its largest value: so the test holds between the rates, too.

        Guarantee: a promise that is kept is refuted with probability at most 1 - confidence, if the event was chosen
        without these runs (Liptak, 1958, for weighted sums; Berger and Boos, 1994, for all values of a nuisance
        parameter). Several promises may be tested in a fixed order, up to the first that is not refuted.

        >>> surprises([40, 50], 100, 20, 100).refute(0.4, 0.0, confidence=0.95).tolist()
        [False, True]
        """
        check_confidence(confidence)
        many, few = self.weighted(epsilon, delta)
        return np.asarray((many + few).min(axis=-1) >= special.ndtri(confidence))

    def weighted(self, epsilon: ArrayLike, delta: ArrayLike) -> tuple[Floats, Floats]:
        """Return both surprises at each rate of the other database, times their weights; their sum is a test."""
        factor = np.exp(np.minimum(epsilon, LARGEST))[..., None]
        allowed = np.minimum(factor * self.rates[1:] + np.asarray(delta)[..., None], 1.0)
        place = np.searchsorted(self.rates, allowed)
        errors = [
            np.sqrt(rates * (1 - rates) / runs)
            for rates, runs in zip((self.rates[place], self.rates[1:]), self.runs, strict=True)
        ]
        weights = np.array([errors[0], factor * errors[1]])
        weights[0, ..., 0], weights[1, ..., 0] = 1.0, 0.0  # at `q` = 0 only the many tell
        weights[:, place == len(self.rates) - 1] = [[0.0], [1.0]]  # and where `p` may be 1 only the few
        weights /= np.hypot(*weights)
        few = np.expand_dims(self.few[..., :-1], tuple(range(-place.ndim, -1)))
        with np.errstate(invalid="ignore"):  # 0 times infinity
            many, few = (
                np.where(weight > 0, weight * part, 0.0)
                for weight, part in zip(weights, (self.many[..., place], few), strict=True)
            )
        return many, few


def surprises(hits: ArrayLike, runs: int, hits_other: ArrayLike, runs_other: int) -> Surprises:
    """Return how surprising hits are, of `runs` on the database where the event is likely and on the other."""
    cells = math.ceil(FINENESS * math.sqrt(max(runs, runs_other)))
    rates = np.sin(np.linspace(0.0, math.pi / 2, cells + 1)) ** 2
    many = _few(runs - np.asarray(hits), runs, rates[::-1])  # 1 - rates, to the last digit
    return Surprises(rates, many, _few(np.asarray(hits_other), runs_other, rates), (runs, runs_other))


@lru_cache(maxsize=64)  # audits of files of one size ask the same
def fewest_hits(runs: int, runs_other: int, epsilon: float, delta: float, *, confidence: float) -> NDArray[np.int64]:
    """Return for each number of hits on the other database the fewest that refute a promise; one more if none do."""
    known, needed, fewest = surprises(np.arange(runs + 1), runs, 0, runs_other), [], 0
    many, _ = known.weighted(epsilon, delta)
    for hits_other in range(runs_other + 1):
        rarely = _few(np.array(hits_other), runs_other, known.rates)
        _, few = Surprises(known.rates, known.many[0], rarely, known.runs).weighted(epsilon, delta)
        while fewest <= runs and not (many[fewest] + few).min() >= special.ndtri(confidence):  # NaN refutes nothing
            fewest += 1
        if fewest > runs:
            break
        needed.append(fewest)
    fewest_by_others = np.array(needed + [runs + 1] * (runs_other + 1 - len(needed)))
    fewest_by_others.flags.writeable = False
    return fewest_by_others


def _few(hits: NDArray[np.int64], runs: int, rates: Floats) -> Floats:
    """Return the normal quantile of the probability of more hits, at each rate."""
    hits, rates = np.broadcast_arrays(hits[..., None], rates)
    quantiles, below = np.empty(hits.shape), hits < runs * rates
    # The smaller tail has all digits. Where it underflows, a bound of it refutes less: Chernoff's, or the first term.
    some, rate = hits[below], rates[below]
    fewer, share = special.bdtr(some, runs, rate), some / runs
    least = -runs * (special.rel_entr(share, rate) + special.rel_entr(1 - share, 1 - rate))
    quantiles[below] = -np.where(fewer > 0, special.ndtri(fewer), special.ndtri_exp(least))
    some, rate = hits[~below], rates[~below]
    more, first = special.bdtrc(some, runs, rate), np.minimum(some + 1.0, runs)
    ways = special.gammaln(runs + 1) - special.gammaln(first + 1) - special.gammaln(runs - first + 1)
    least = ways + special.xlogy(first, rate) + special.xlog1py(runs - first, -rate)
    quantiles[~below] = np.where((more > 0) | (some == runs), special.ndtri(more), special.ndtri_exp(least))
    return quantiles
