"""What runs can and cannot show, before anyone looks at them."""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, special, stats

from audit.bounds import check_confidence, two_sample_lower

__all__ = ["game_ceiling", "game_detectable", "rectangle_ceiling", "rectangle_detectable"]


def game_ceiling(runs: int, *, confidence: float, distance: int = 1) -> float:
    """Return the largest loss that a guessing game could ever show: every run guessed, every guess right.

    Parameters
    ----------
    runs : int
        Counting runs.
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases.

    Returns
    -------
    float
        Loss for one step in nats.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> round(game_ceiling(100, confidence=0.95), 4)
    3.493
    """
    _check(confidence, distance, runs)
    if runs < 1:
        return 0.0
    log_rate = math.log1p(-confidence) / runs  # all right has probability rate**runs
    return max(0.0, log_rate - math.log(-math.expm1(log_rate))) / distance


def game_detectable(epsilon: float, guesses: int, *, confidence: float, distance: int = 1, power: float = 0.8) -> float:
    """Return the smallest true loss that a guessing game would call a violation with the stated power.

    Parameters
    ----------
    epsilon : float
        Promised loss for one step in nats.
    guesses : int
        Runs in which the rule names a database.
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases.
    power : float
        Probability of the verdict, in (0, 1).

    Returns
    -------
    float
        Loss for one step in nats that the event itself carries; infinite if no loss would be seen.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> round(game_detectable(1.0, 100_000, confidence=0.95), 3)
    1.018
    """
    _check(confidence, distance, guesses, epsilon=epsilon, power=power)
    promised = float(special.expit(epsilon * distance))
    # The fewest right guesses that are too many for the promise: P[Binomial >= needed] <= 1 - confidence.
    needed = int(stats.binom.isf(1 - confidence, guesses, promised)) + 1 if guesses > 0 else 1
    if needed > guesses:
        return math.inf
    rate = float(special.betaincinv(needed, guesses - needed + 1, power))
    return max(0.0, float(special.logit(rate))) / distance


def rectangle_ceiling(runs_x: int, runs_y: int, *, confidence: float, distance: int = 1) -> float:
    """Return the largest loss that two Clopper-Pearson limits could ever show: the event always here, never there.

    Parameters
    ----------
    runs_x, runs_y : int
        Runs on either database.
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases.

    Returns
    -------
    float
        Loss for one step in nats.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> round(rectangle_ceiling(40, 40, confidence=0.95), 2)
    2.34
    """
    _check(confidence, distance, runs_x, runs_y)
    if min(runs_x, runs_y) < 1:
        return 0.0
    orders = ((runs_y, runs_x), (runs_x, runs_y))
    return (
        max(float(two_sample_lower(likely, likely, 0, other, confidence=confidence)) for likely, other in orders)
        / distance
    )


def rectangle_detectable(
    epsilon: float,
    runs_x: int,
    runs_y: int,
    *,
    confidence: float,
    distance: int = 1,
    power: float = 0.8,
    share: float = 1.0,
) -> float:
    """Return the smallest true loss that two Clopper-Pearson limits would call a violation with the stated power.

    Parameters
    ----------
    epsilon : float
        Promised loss for one step in nats.
    runs_x, runs_y : int
        Runs on either database; every pair of counts is enumerated, so a few hundred at most.
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases.
    power : float
        Probability of the verdict, in (0, 1).
    share : float
        How often the event is seen: the sum of its probabilities on the two databases, 0 to 2. That of randomized
        response is 1.

    Returns
    -------
    float
        Loss for one step in nats that the event itself carries; infinite if none would be seen.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> 1.0 < rectangle_detectable(1.0, 40, 40, confidence=0.95) < 2.6
    True
    """
    _check(confidence, distance, runs_x, runs_y, epsilon=epsilon, power=power)
    x, y = np.arange(runs_x + 1), np.arange(runs_y + 1)
    if not 0 <= share <= 2:
        raise ValueError(f"share must be in [0, 2], got {share}")
    seen = two_sample_lower(y[:, None], runs_y, x[None, :], runs_x, confidence=confidence) > epsilon * distance

    def missing(loss: float) -> float:
        likely = min(1.0, share * float(special.expit(loss)))
        chance = np.outer(stats.binom.pmf(y, runs_y, likely), stats.binom.pmf(x, runs_x, likely * math.exp(-loss)))
        return power - float(chance[seen].sum())

    top = 40.0
    if missing(top) > 0:
        return math.inf
    if missing(0.0) <= 0:
        return 0.0
    return float(optimize.brentq(missing, 0.0, top)) / distance


def _check(confidence: float, distance: int, *runs: int, epsilon: float = 0.0, power: float = 0.5) -> None:
    check_confidence(confidence)
    if not distance >= 1:
        raise ValueError(f"distance must be at least 1, got {distance}")
    if not min(runs) >= 0:
        raise ValueError(f"runs must be 0 or more, got {min(runs)}")
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be 0 or more, got {epsilon}")
    if not 0 < power < 1:
        raise ValueError(f"power must be in (0, 1), got {power}")
