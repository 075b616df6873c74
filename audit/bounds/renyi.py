"""Lower bounds on rho of zero-concentrated differential privacy, from counts.

A pair loses rho if its Renyi divergence of some order ``a >= 1`` is ``a * rho``, in either direction. The bounds are of
the pair: divide by the square of the distance of a group pair. They hold for every mechanism.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from audit.bounds.limits import check_confidence
from audit.bounds.rectangle import rectangle

__all__ = ["renyi_event_lower", "renyi_variational_lower"]

Floats = NDArray[np.float64]
ORDERS = np.geomspace(1.0, 1e4, 400)  # any order is valid; with up to 1e9 runs others add less than 0.1%


def renyi_event_lower(events_y: int, runs_y: int, events_x: int, runs_x: int, *, confidence: float) -> float:
    """Lower bound on rho of a pair from one event and fixed numbers of runs, counted as for `two_sample_lower`.

    One event carries a part of the divergence: for a threshold on Gaussian noise about two thirds.

    Notes
    -----
    Guarantee: P(bound > true rho) <= 1 - confidence for every mechanism. The divergence of an event is at most that of
    the outputs. It grows with the higher probability and falls with the lower one, so that one rectangle serves every
    order, 1 (Kullback-Leibler) included, and both directions.

    References
    ----------
    .. [1] Bun and Steinke, "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds", 2016,
       definition 1.1 and lemma 2.2 (data processing).
    .. [2] Clopper and Pearson, 1934.

    Examples
    --------
    >>> round(renyi_event_lower(692, 1000, 309, 1000, confidence=0.95), 3)
    0.217
    """
    low, high = map(float, rectangle(events_y, runs_y, events_x, runs_x, confidence=confidence))
    if low <= high:
        return 0.0
    return max(_bernoulli_rho(low, high), _bernoulli_rho(high, low))


def renyi_variational_lower(
    values: ArrayLike, counts_y: ArrayLike, counts_x: ArrayLike, *, order: float, confidence: float
) -> float:
    """Lower bound on rho of a pair from a bounded score, with fixed numbers of runs on either database.

    The nearer the score is to the log-likelihood ratio of the second database over the first, the tighter the bound.
    `values` are the scores, shape (m,). They include the least and the greatest possible score, even if never seen: the
    range has to be fixed before counting, for example by clipping, as a range taken from the same runs voids the bound.
    `counts_y` are runs with each score on the database where scores are higher, `counts_x` on the other. The
    `order` of the divergence, 1 (Kullback-Leibler) or more, is chosen beforehand.

    Notes
    -----
    Guarantee: P(bound > true rho) <= 1 - confidence for every mechanism and every score that does not depend on these
    runs. The divergence over its order is at least ``log(E_y exp((a - 1) g)) / (a - 1) - log(E_x exp(a g)) / a``, and
    at order 1 ``E_y g - log(E_x exp(g))``; both expectations are replaced by empirical Bernstein limits, which share
    the error equally.

    References
    ----------
    .. [1] Birrell, Dupuis, Katsoulakis, Rey-Bellet and Wang, "Variational Representations and Neural Network Estimation
       of Renyi Divergences", 2021 (the Renyi-Donsker-Varadhan formula); at order 1 Donsker and Varadhan, 1983.
    .. [2] Maurer and Pontil, "Empirical Bernstein Bounds and Sample-Variance Penalization", 2009, theorem 4.
    .. [3] Kim, Varshney and Alabi, 2026, arXiv 2605.21938 (audits by this representation).

    Examples
    --------
    >>> score = [-1.0, 0.0, 1.0]
    >>> round(renyi_variational_lower(score, [200, 300, 500], [500, 300, 200], order=1.0, confidence=0.95), 3)
    0.08
    """
    score = np.asarray(values, float)
    on_y, on_x = np.asarray(counts_y, float), np.asarray(counts_x, float)
    if score.ndim != 1 or score.size == 0 or not score.shape == on_y.shape == on_x.shape:
        raise ValueError(
            "values, counts_y and counts_x must share one shape (m,), m at least 1, "
            f"got {score.shape}, {on_y.shape} and {on_x.shape}"
        )
    if not np.isfinite(score).all():
        raise ValueError(f"values must be finite, got {score[~np.isfinite(score)][0]}")
    for counts in (on_y, on_x):
        wrong = ~(np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts)))
        if wrong.any():
            raise ValueError(f"counts must be whole numbers, 0 or more, got {counts[wrong][0]}")
    if not 1 <= order < math.inf:
        raise ValueError(f"order must be 1 or more and finite, got {order}")
    check_confidence(confidence)
    error = (1 - confidence) / 2
    centered = score - score.max()  # a constant does not matter: so no exponential exceeds 1
    above = math.log1p(-_counted_mean_lower(-np.expm1(order * centered), on_x, error)) / order
    if order == 1:
        return max(0.0, _counted_mean_lower(centered, on_y, error) - above)
    moment = _counted_mean_lower(np.expm1((order - 1) * centered), on_y, error)
    return max(0.0, math.log1p(moment) / (order - 1) - above) if moment > -1 else 0.0


def _bernoulli_rho(p: float, q: float) -> float:
    """Return the greatest divergence over its order between two coins, both probabilities strictly inside (0, 1)."""
    log_p, log_q = np.log([p, 1 - p]), np.log([q, 1 - q])
    kl = float(np.exp(log_p) @ (log_p - log_q))
    order = ORDERS[1:]
    moment = special.logsumexp(log_q + order[:, None] * (log_p - log_q), axis=1)
    return max(kl, float((moment / (order * (order - 1))).max()))


def mean_lower(
    mean: ArrayLike, variance: ArrayLike, least: ArrayLike, spread: ArrayLike, runs: ArrayLike, error: float
) -> Floats:
    """Return lower bounds on expectations, as arrays, by the empirical Bernstein inequality, from 2 or more `runs`."""
    # `variance` is divided by the number of runs, not by one less; values are in [least, least + spread].
    log_term = math.log(2 / error) / (np.asarray(runs) - 1)
    slack = np.sqrt(2 * np.maximum(variance, 0.0) * log_term) + np.multiply(spread, 7 * log_term / 3)
    return np.maximum(least, mean - slack)


def _counted_mean_lower(values: Floats, counts: Floats, error: float) -> float:
    """Return a lower bound on an expectation from the counts of its values; of fewer than two runs, the least value."""
    least, runs = float(values.min()), float(counts.sum())
    if runs < 2:
        return least
    mean = float(counts @ values) / runs
    variance = float(counts @ (values - mean) ** 2) / runs
    return float(mean_lower(mean, variance, least, float(values.max()) - least, int(runs), error))
