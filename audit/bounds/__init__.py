"""From counts to lower bounds on privacy loss: every function here states the theorem that makes it valid."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats

__all__ = [
    "approx_game_lower",
    "check_confidence",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "delta_lower",
    "gaussian_lower",
    "guessing_game_lower",
    "one_run_p_value",
    "rectangle",
    "score_lower",
    "two_sample_lower",
]

Floats = NDArray[np.float64]


def check_confidence(confidence: float) -> None:
    """Refuse a confidence outside (0, 1).

    Raises
    ------
    ValueError
        If it is not strictly between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), got {confidence}")


def clopper_pearson_lower(successes: ArrayLike, runs: ArrayLike, *, confidence: float) -> Floats:
    """Lower bound on an event's probability, exact for any number of runs.

    Parameters
    ----------
    successes : int or array_like of int, shape (m,)
        Runs in which the event happened, ``0 <= successes <= runs``.
    runs : int or array_like of int, shape (m,)
        Independent runs.
    confidence : float
        One-sided coverage, in (0, 1).

    Returns
    -------
    ndarray of float, shape (m,)
        Probabilities; exactly 0 where no run succeeded.

    Raises
    ------
    ValueError
        If `successes` are not between 0 and `runs` or `confidence` is outside (0, 1).

    Notes
    -----
    Guarantee: P(bound > true probability) <= 1 - confidence, for every true probability.
    Units: none.

    References
    ----------
    .. [1] Clopper and Pearson, "The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial",
       1934.

    Examples
    --------
    >>> round(float(clopper_pearson_lower(95, 100, confidence=0.95)), 3)
    0.898
    """
    hits, total = _checked_counts(successes, runs)
    check_confidence(confidence)
    return np.where(hits == 0, 0.0, special.betaincinv(np.maximum(hits, 1), total - hits + 1, 1 - confidence))


def clopper_pearson_upper(successes: ArrayLike, runs: ArrayLike, *, confidence: float) -> Floats:
    """Upper bound on an event's probability, exact for any number of runs.

    Parameters
    ----------
    successes : int or array_like of int, shape (m,)
        Runs in which the event happened, ``0 <= successes <= runs``.
    runs : int or array_like of int, shape (m,)
        Independent runs.
    confidence : float
        One-sided coverage, in (0, 1).

    Returns
    -------
    ndarray of float, shape (m,)
        Probabilities; exactly 1 where every run succeeded.

    Raises
    ------
    ValueError
        If `successes` are not between 0 and `runs` or `confidence` is outside (0, 1).

    Notes
    -----
    Guarantee: P(bound < true probability) <= 1 - confidence, for every true probability.
    Units: none.

    References
    ----------
    .. [1] Clopper and Pearson, 1934.

    Examples
    --------
    >>> round(float(clopper_pearson_upper(0, 100, confidence=0.95)), 3)
    0.03
    """
    hits, total = _checked_counts(successes, runs)
    return 1.0 - clopper_pearson_lower(total - hits, total, confidence=confidence)


def guessing_game_lower(correct: ArrayLike, guesses: ArrayLike, *, confidence: float) -> Floats:
    """Lower bound on a pure-DP loss from guesses at which of two databases each run used.

    A fair coin picks the database of every run, a rule fixed beforehand looks at the output and names a database or
    abstains. Whatever the rule, a loss of at most epsilon keeps each guess right with probability at most
    ``1 / (1 + exp(-epsilon))``, given the guesses before it.

    Parameters
    ----------
    correct : int or array_like of int, shape (m,)
        Right guesses.
    guesses : int or array_like of int, shape (m,)
        Guesses made; abstentions do not count.
    confidence : float
        One-sided coverage, in (0, 1).

    Returns
    -------
    ndarray of float, shape (m,)
        Losses of the pair in nats, 0 or more; divide by the distance of a group pair.

    Raises
    ------
    ValueError
        If `correct` is not between 0 and `guesses` or `confidence` is outside (0, 1).

    Notes
    -----
    Guarantee: P(bound > true loss) <= 1 - confidence for every mechanism and every rule that does not see the coins.
    It is the uniformly most powerful test for the geometric mechanism.
    Units: nats.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", 2023, theorem 5.2 with delta 0.
    .. [2] Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", 2015 (randomized response is
       the worst case).

    Examples
    --------
    >>> round(float(guessing_game_lower(800, 1000, confidence=0.95)), 6)
    1.25433
    """
    rate = clopper_pearson_lower(correct, guesses, confidence=confidence)
    return np.asarray(special.logit(np.maximum(rate, 0.5)))


def approx_game_lower(
    correct: int, guesses: int, runs: int, *, delta: float, confidence: float, distance: int = 1
) -> float:
    """Lower bound on epsilon of (epsilon, delta)-DP from guesses at which of two databases each run used.

    The game is that of `guessing_game_lower`, but every run may fail with probability delta, and it may do so exactly
    where the rule dares to guess: ``P(correct) <= exp(epsilon) P(wrong) + delta`` per run. Among guesses the share of
    right ones is then at most ``s + delta (1 - s) / rho``, with ``s = 1 / (1 + exp(-epsilon))`` and ``rho`` the
    probability of a guess, which the runs bound from below.

    Parameters
    ----------
    correct : int
        Right guesses.
    guesses : int
        Guesses made, ``correct <= guesses <= runs``.
    runs : int
        Counting runs, those in which the rule abstained included.
    delta : float
        Probability forgiven for one step, in [0, 1); 0 gives ``guessing_game_lower(...) / distance``.
    confidence : float
        One-sided coverage, in (0, 1).
    distance : int
        Steps between the two databases, at least 1.

    Returns
    -------
    float
        Loss of one step in nats, 0 or more. A group pair is tested against what group privacy makes of the promise,
        ``distance * epsilon`` and ``delta (1 + exp(epsilon) + ... + exp((distance - 1) epsilon))``: a quotient would
        not hold.

    Raises
    ------
    ValueError
        If counts are not in order, or `delta`, `confidence` or `distance` is out of range.

    Notes
    -----
    Guarantee: P(bound > true epsilon) <= 1 - confidence for every mechanism and every rule that does not see the coins
    or these runs. A tenth of the error is spent on `rho`, which depends on the number of guesses only; given that
    number the right ones are binomial, so the two errors add up.
    Units: nats.

    References
    ----------
    .. [1] Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", 2015, section 3 (the
       law of four outcomes that attains every inequality).
    .. [2] Clopper and Pearson, 1934, twice.

    Examples
    --------
    >>> round(approx_game_lower(800, 1000, 2000, delta=0.01, confidence=0.95), 3)
    1.223
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), got {delta}")
    if not (distance >= 1 and distance == math.floor(distance)):
        raise ValueError(f"distance must be a whole number of at least 1, got {distance}")
    _checked_counts(guesses, runs)
    if delta == 0:
        return float(guessing_game_lower(correct, guesses, confidence=confidence)) / distance
    check_confidence(confidence)
    alpha = 1 - confidence
    rate = float(clopper_pearson_lower(correct, guesses, confidence=1 - 0.9 * alpha))
    guessed = float(clopper_pearson_lower(guesses, runs, confidence=1 - 0.1 * alpha))

    def excess(epsilon: float) -> float:
        """Positive where the promise is rejected; it falls as epsilon grows, until the promise is empty."""
        right = float(special.expit(epsilon * distance))
        forgiven = delta * float(np.exp(epsilon * np.arange(distance)).sum())
        return rate - right - forgiven * (1 - right) / guessed

    if rate <= 0.5 or excess(0.0) <= 0:
        return 0.0
    top = float(special.logit(rate)) / distance  # what delta 0 would show
    if excess(top) >= 0:  # a delta below rounding
        return top
    return float(optimize.brentq(excess, 0.0, top, xtol=1e-13, rtol=1e-13))


def one_run_p_value(
    correct: int, guesses: int, epsilon: float, *, delta: float = 0.0, canaries: int | None = None
) -> float:
    """Probability of as many right guesses in one run with many secret bits, at most, under (epsilon, delta)-DP.

    It is for one run whose bits were all guessed from the same output. Repeated runs each carry their own delta, and
    this formula would all but ignore it.

    Parameters
    ----------
    correct, guesses : int
        Right guesses, and guesses made; with a delta, as many as were fixed before the run.
    epsilon : float
        Promised loss in nats, 0 or more.
    delta : float
        Promised delta, in [0, 1).
    canaries : int, optional
        Secret bits, those abstained from included; at least `guesses`, which is the default.

    Returns
    -------
    float
        A p-value, at most 1.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Notes
    -----
    Guarantee: under any (epsilon, delta)-DP algorithm, P(p-value <= a) <= a.
    Units: epsilon in nats.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", 2023, theorem 5.2.

    Examples
    --------
    >>> one_run_p_value(800, 1000, 1.0, delta=1e-5) > one_run_p_value(800, 1000, 1.0)
    True
    """
    _checked_counts(correct, guesses)
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be 0 or more, got {epsilon}")
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), got {delta}")
    bits = guesses if canaries is None else canaries
    if bits < guesses:
        raise ValueError(f"canaries must be at least the guesses, {guesses}, got {bits}")
    rate = float(special.expit(epsilon))
    tail = float(stats.binom.sf(correct - 1, guesses, rate))
    if delta == 0 or correct == 0:
        return tail
    i = np.arange(1, correct + 1)
    extra = (stats.binom.sf(correct - 1 - i, guesses, rate) - tail) / i
    return min(1.0, tail + 2 * bits * delta * float(extra.max()))


def two_sample_lower(
    events_y: ArrayLike,
    runs_y: ArrayLike,
    events_x: ArrayLike,
    runs_x: ArrayLike,
    *,
    confidence: float,
    delta: float = 0.0,
) -> Floats:
    """Lower bound on the loss of one event from fixed numbers of runs on either database.

    The event and the order of the databases must have been chosen without looking at these runs.

    Parameters
    ----------
    events_y, runs_y : int or array_like of int, shape (m,)
        Runs with the event, and runs, on the database under which it is likelier.
    events_x, runs_x : int or array_like of int, shape (m,)
        The same on the other.
    confidence : float
        One-sided coverage, in (0, 1), shared equally by the two probabilities.
    delta : float
        Probability that is forgiven, in [0, 1).

    Returns
    -------
    ndarray of float, shape (m,)
        ``log((low_y - delta) / high_x)`` in nats, and 0 where that is below 0; divide by the distance of a group pair
        only where `delta` is 0.

    Raises
    ------
    ValueError
        If events are not between 0 and runs, or `confidence` or `delta` is out of range.

    Notes
    -----
    Guarantee: P(bound > true loss) <= 1 - confidence for every mechanism; needs about 2.8 times the runs of the game.
    Units: nats.

    References
    ----------
    .. [1] Clopper and Pearson, 1934, and a union bound over two probabilities.
    .. [2] Ding, Wang, Wang, Zhang and Kifer, "Detecting Violations of Differential Privacy", 2018 (the event's ratio).

    Examples
    --------
    >>> round(float(two_sample_lower(600, 1000, 400, 1000, confidence=0.95)), 6)
    0.277277
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), got {delta}")
    low, high = rectangle(events_y, runs_y, events_x, runs_x, confidence=confidence)
    ratio = np.maximum(low - delta, 0.0) / high  # the upper bound of a probability is never 0
    return np.asarray(np.log(np.maximum(ratio, 1.0)))


def delta_lower(
    epsilon: ArrayLike, events_y: int, runs_y: int, events_x: int, runs_x: int, *, confidence: float
) -> Floats:
    """Lower bounds on delta at every `epsilon` at once, from one event and fixed numbers of runs.

    Parameters
    ----------
    epsilon : float or array_like of float, shape (m,)
        Losses of the pair in nats, 0 or more.
    events_y, runs_y, events_x, runs_x : int
        As in `two_sample_lower`.
    confidence : float
        One-sided coverage, in (0, 1), of the whole curve.

    Returns
    -------
    ndarray of float, shape (m,)
        ``low_y - exp(epsilon) high_x``, and 0 where that is below 0.

    Raises
    ------
    ValueError
        If events are not between 0 and runs, or `confidence` or `epsilon` is out of range.

    Notes
    -----
    Guarantee: P(any bound of the curve > true delta) <= 1 - confidence: one rectangle serves every epsilon.
    Units: epsilon in nats.

    References
    ----------
    .. [1] Barthe and Olmedo, 2013 (hockey-stick divergence), and Clopper and Pearson, 1934.
    """
    levels = np.asarray(epsilon, float)
    if not np.all(levels >= 0):
        raise ValueError(f"epsilon must be 0 or more, got {levels[~(levels >= 0)].flat[0]}")
    low, high = rectangle(events_y, runs_y, events_x, runs_x, confidence=confidence)
    with np.errstate(over="ignore"):  # to infinity, where the bound is 0
        return np.asarray(np.maximum(0.0, low - np.exp(levels) * high))


def rectangle(
    events_y: ArrayLike, runs_y: ArrayLike, events_x: ArrayLike, runs_x: ArrayLike, *, confidence: float
) -> tuple[Floats, Floats]:
    """Bound one probability from below and another from above, so that both bounds hold together.

    Parameters
    ----------
    events_y, runs_y, events_x, runs_x : int or array_like of int, shape (m,)
        As in `two_sample_lower`.
    confidence : float
        Of the two bounds together, in (0, 1), shared equally.

    Returns
    -------
    low_y, high_x : ndarray of float, shape (m,)
        ``0 <= low_y < 1`` and ``0 < high_x <= 1``.

    Raises
    ------
    ValueError
        If events are not between 0 and runs or `confidence` is out of range.

    Notes
    -----
    Guarantee: P(either bound fails) <= 1 - confidence. Whatever grows with the one probability and falls with the other
    is bounded by its value at this corner: several such measures cost no more confidence than one.
    Units: none.

    References
    ----------
    .. [1] Clopper and Pearson, 1934, and a union bound over two probabilities.

    Examples
    --------
    >>> low, high = rectangle(600, 1000, 400, 1000, confidence=0.95)
    >>> round(float(low), 3), round(float(high), 3)
    (0.569, 0.431)
    """
    check_confidence(confidence)
    each = 1 - (1 - confidence) / 2
    return (
        clopper_pearson_lower(events_y, runs_y, confidence=each),
        clopper_pearson_upper(events_x, runs_x, confidence=each),
    )


def gaussian_lower(
    events_y: ArrayLike, runs_y: ArrayLike, events_x: ArrayLike, runs_x: ArrayLike, *, confidence: float
) -> Floats:
    """Lower bound on mu of Gaussian DP from one event and fixed numbers of runs on either database.

    It refutes mu-GDP and nothing else. Its square over 2 is no bound on rho: the discrete Gaussian keeps its zCDP
    promise and is more telling than the continuous one of the same rho.

    Parameters
    ----------
    events_y, runs_y, events_x, runs_x : int or array_like of int, shape (m,)
        As in `two_sample_lower`.
    confidence : float
        One-sided coverage, in (0, 1), shared equally by the two probabilities.

    Returns
    -------
    ndarray of float, shape (m,)
        ``quantile(low_y) - quantile(high_x)`` of the normal law, and 0 where that is below 0; divide by the distance
        of a group pair.

    Raises
    ------
    ValueError
        If events are not between 0 and runs or `confidence` is out of range.

    Notes
    -----
    Guarantee: P(bound > true mu) <= 1 - confidence for every mechanism, mu being the smallest for which it is mu-GDP.
    Units: standard deviations of a unit Gaussian.

    References
    ----------
    .. [1] Dong, Roth and Su, "Gaussian Differential Privacy", 2022, definition 2.6 and theorem 2.14 (groups).
    .. [2] Nasr, Hayes, Steinke, Balle, Tramer, Jagielski, Carlini and Terzis, "Tight Auditing of Differentially Private
       Machine Learning", 2023.

    Examples
    --------
    >>> round(float(gaussian_lower(692, 1000, 309, 1000, confidence=0.95)), 6)
    0.834981
    """
    low, high = rectangle(events_y, runs_y, events_x, runs_x, confidence=confidence)
    return np.asarray(np.maximum(0.0, special.ndtri(low) - special.ndtri(high)))


def score_lower(events_y: int, runs_y: int, events_x: int, runs_x: int, *, confidence: float) -> float:
    """Asymptotic lower bound on the loss of one event: the score test of the ratio of two probabilities.

    Parameters
    ----------
    events_y, runs_y, events_x, runs_x : int
        As in `two_sample_lower`; at least one run each.
    confidence : float
        One-sided coverage, in (0, 1), reached as runs grow.

    Returns
    -------
    float
        In nats, 0 or more.

    Raises
    ------
    ValueError
        If events are not between 0 and runs, there are no runs, or `confidence` is out of range.

    Notes
    -----
    Guarantee: asymptotic only. It is here to compare sizes, and never becomes a verdict.
    Units: nats.

    References
    ----------
    .. [1] Koopman, "Confidence Intervals for the Ratio of Two Binomial Proportions", 1984.
    .. [2] Farrington and Manning, "Test statistics and sample size formulae for comparative binomial trials", 1990.

    Examples
    --------
    >>> round(score_lower(600, 1000, 400, 1000, confidence=0.95), 6)
    0.329403
    """
    _checked_counts(events_y, runs_y), _checked_counts(events_x, runs_x)
    check_confidence(confidence)
    if min(runs_y, runs_x) < 1:
        raise ValueError(f"runs must be at least 1 on each database, got {runs_y} and {runs_x}")
    rate_y, rate_x = events_y / runs_y, events_x / runs_x
    quantile = stats.norm.ppf(confidence)

    def excess(loss: float) -> float:
        ratio = math.exp(loss)
        # Maximum likelihood under rate_y = ratio * rate_x solves a quadratic in rate_x.
        a = (runs_x + runs_y) * ratio
        b = -(ratio * (runs_y + events_x) + runs_x + events_y)
        fitted_x = (-b - math.sqrt(max(0.0, b * b - 4 * a * (events_x + events_y)))) / (2 * a)
        fitted_y = min(1.0, ratio * fitted_x)
        variance = fitted_y * (1 - fitted_y) / runs_y + ratio**2 * fitted_x * (1 - fitted_x) / runs_x
        difference = rate_y - ratio * rate_x
        return float(difference - quantile * math.sqrt(variance))

    if rate_y <= rate_x or excess(0.0) <= 0:
        return 0.0
    top = 1.0
    while excess(top) > 0:
        top *= 2
        if top > 64:
            return math.inf
    return float(optimize.brentq(excess, 0.0, top, xtol=1e-13, rtol=1e-13))


def _checked_counts(successes: ArrayLike, runs: ArrayLike) -> tuple[Floats, Floats]:
    hits, total = np.asarray(successes, float), np.asarray(runs, float)
    if not np.all((hits >= 0) & (hits <= total)):
        raise ValueError(f"events must be between 0 and the number of runs, got {successes!r} of {runs!r}")
    if not np.all((hits == np.floor(hits)) & (total == np.floor(total)) & np.isfinite(total)):
        raise ValueError(f"events and runs must be whole numbers, got {successes!r} of {runs!r}")
    return hits, total
