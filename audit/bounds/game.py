"""Lower bounds on epsilon from a game: guesses at which of two databases each run used."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from audit.arguments import fraction
from audit.bounds.limits import check_confidence, check_distance, checked_counts, clopper_pearson_lower
from audit.exact.roots import brentq

__all__ = ["approx_game_lower", "guessing_game_lower", "variation_game_lower"]

Floats = NDArray[np.float64]


def guessing_game_lower(correct: ArrayLike, guesses: ArrayLike, *, confidence: float) -> Floats:
    """Lower bound on a pure-DP loss from guesses at which of two databases each run used.

    A fair coin picks the database of every run, a rule fixed beforehand looks at the output and names a database or
    abstains. Whatever the rule, a loss of at most epsilon keeps each guess right with probability at most
    ``1 / (1 + exp(-epsilon))``, given the guesses before it. `guesses` are those made; abstentions do not count.

    Notes
    -----
    Guarantee: P(bound > true loss) <= 1 - confidence for every mechanism and every rule that does not see the coins.
    It is the uniformly most powerful test for the geometric mechanism.

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
    """Lower bound on epsilon of (epsilon, delta)-DP from guesses; already divided by `distance`.

    The game is that of `guessing_game_lower`, but every run may fail with probability delta, and it may do so exactly
    when the rule guesses: ``P(correct) <= exp(epsilon) P(wrong) + delta`` per run. Among guesses the share of
    right ones is then at most ``s + delta (1 - s) / rho``, with ``s = 1 / (1 + exp(-epsilon))`` and ``rho`` the
    probability of a guess, which all `runs`, abstentions included, bound from below. `delta` is that of neighbors: a
    group pair is tested against the promise for groups, as a bound divided by the distance would not be valid.

    Notes
    -----
    Guarantee: P(bound > true epsilon) <= 1 - confidence for every mechanism and every rule that does not see the coins
    or these runs. A tenth of the error is spent on `rho`, which depends on the number of guesses only; given that
    number the right ones are binomial, so the two errors add up.

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
    fraction("delta", delta, zero=True)
    check_distance(distance)
    checked_counts(guesses, runs)
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
    top = float(special.logit(rate)) / distance  # the bound with a delta of 0
    if excess(top) >= 0:  # a delta below rounding
        return top
    return brentq(excess, 0.0, top, xtol=1e-13, rtol=1e-13)


def variation_game_lower(
    correct: ArrayLike, guesses: ArrayLike, runs: ArrayLike, *, named: int, confidence: float
) -> Floats:
    """Lower bound on the total variation, the delta at epsilon 0, from guesses at which of two databases each run used.

    The game is that of `guessing_game_lower`. If a rule may name both databases, ``P(right) - P(wrong)`` is at most the
    total variation; if it names only one, at most half of it, as the coin picks each database in half of the runs.
    ``P(right)`` is bounded from below with nine tenths of the error probability, ``P(wrong)`` from above with the rest;
    their sum is at most 1. `named` is the number of databases that the rule may name; `runs` include abstentions.

    Notes
    -----
    Guarantee: P(bound > true total variation) <= 1 - confidence for every mechanism and every rule that does not see
    the coins.

    References
    ----------
    .. [1] Barthe and Olmedo, 2013 (total variation is the hockey-stick divergence at epsilon 0).
    .. [2] Clopper and Pearson, 1934, and a union bound over two probabilities.

    Examples
    --------
    >>> round(float(variation_game_lower(700, 1000, 1000, named=2, confidence=0.95)), 3)
    0.349
    """
    if named not in (1, 2):
        raise ValueError(f"named must be 1 or 2, got {named!r}")
    right, guessed = checked_counts(correct, guesses)
    check_confidence(confidence)
    return excess_lower(right, guessed - right, np.asarray(runs, float), named=named, confidence=confidence)


def excess_lower(right: Floats, wrong: Floats, runs: Floats, *, named: int, confidence: float) -> Floats:
    """Return `variation_game_lower` from right and wrong guesses, which may be expected numbers."""
    error = 1 - confidence
    rightly = np.where(right > 0, special.betaincinv(np.maximum(right, 1e-12), runs - right + 1, 0.9 * error), 0.0)
    wrongly = np.where(
        wrong < runs, special.betaincinv(wrong + 1, np.maximum(runs - wrong, 1e-12), 1 - 0.1 * error), 1.0
    )
    return np.asarray(np.clip(2 / named * np.maximum(rightly - wrongly, 2 * rightly - 1), 0.0, 1.0))
