"""Probability of so many right guesses in one run with many secret bits, if a promise is kept."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import special

from audit.arguments import fraction
from audit.bounds.binomial import binomial_pmf, binomial_sf
from audit.bounds.limits import checked_counts

__all__ = ["one_run_least_mass", "one_run_p_value"]

TINY = 1e-290  # probabilities below it lose digits


def one_run_p_value(
    correct: int, guesses: int, epsilon: float, *, delta: float = 0.0, canaries: int | None = None
) -> float:
    """Upper bound on P(`correct` or more right guesses) in one run with many secret bits, under (epsilon, delta)-DP.

    It is for one run whose bits were all guessed from the same output. Repeated runs have a delta each, which this
    formula would almost ignore. With a delta, the number of guesses must have been fixed before the run. `canaries` is
    the number of secret bits, including those not guessed; by default that of `guesses`.

    Notes
    -----
    Guarantee: under any (epsilon, delta)-DP algorithm, P(p-value <= a) <= a.

    Without a delta it is the binomial tail of theorem 5.2 in [1]_. A delta adds less than that theorem says. Let f be a
    function of the number of other right guesses, with values in [0, M]. The promise limits it jointly with one bit's
    guess: E[f; it is right] <= exp(epsilon) E[f; it is wrong] + M delta. Summed over the bits, with W right
    guesses of n, E[W f(W - 1) - exp(epsilon) (n - W) f(W)] <= canaries M delta. Stein's equation of the binomial law
    with odds exp(epsilon), for the event W >= c, has the f of which the left side is P(W >= c) less the binomial tail
    P; the largest of its values is M = P (1 - P) / (c p), at W = c - 1, where p is the binomial probability of c.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", 2023, theorem 5.2.
    .. [2] Ehm, "Binomial Approximation to the Poisson Binomial Distribution", 1991, for Stein's equation.

    Examples
    --------
    >>> one_run_p_value(800, 1000, 1.0, delta=1e-5) > one_run_p_value(800, 1000, 1.0)
    True
    """
    checked_counts(correct, guesses)
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be 0 or more, got {epsilon}")
    fraction("delta", delta, zero=True)
    bits = _checked_bits(guesses, guesses if canaries is None else canaries)
    rate = float(special.expit(epsilon))
    tail, point = (float(binomial_sf(correct - 1, guesses, rate)), float(binomial_pmf(correct, guesses, rate)))
    if delta == 0 or tail == 1:
        return tail
    # In this tail, each probability is at most this factor times the one before.
    falls = math.exp(epsilon) * (guesses - correct) / (correct + 1)
    terms = tail / point if point > TINY else 1 / (1 - falls)
    return min(1.0, tail + bits * delta * (1 - tail) * terms / correct)


def one_run_least_mass(
    correct: int, guesses: int, canaries: int, *, error: float, rarest: Callable[[float], float]
) -> float:
    """Lower bound on the total probability of one run's outcomes, if P(`correct` or more right guesses) is `error`.

    If it is above 1, no such run exists: under the promise, so many right guesses have a smaller probability. The
    number of guesses must have been fixed before the run. `rarest` states the promise: it maps the probability of an
    event to the smallest probability that the event may have on a neighbor, and must not decrease.

    Notes
    -----
    Guarantee: under any algorithm that keeps the promise, P(the mass is above 1) <= error. The sum stops above 1.

    For every number j, let R be the mean probability over bits that the guess at the bit is right and j or more others
    are right, and H that it is wrong and j or more others are right: then rarest(R) <= H. Among the laws of the number
    of right guesses with this property, the one that never exceeds `correct` has the least total probability: from
    there down, each number has just the probability that H requires.

    References
    ----------
    .. [1] Mahloujifar, Melis and Chaudhuri, "Auditing f-Differential Privacy in One Run", 2024: the theorem on
       guessing with abstention and its algorithm, for bits.

    Examples
    --------
    If no event is more than 3 times as likely on a neighbor, 90 of 100 guesses are right less often than that:

    >>> one_run_least_mass(90, 100, 100, error=0.05, rarest=lambda right: right / 3) > 1
    True
    """
    checked_counts(correct, guesses)
    _checked_bits(guesses, canaries)
    fraction("error", error)
    mass, right, wrong = error, error * correct / canaries, error * (guesses - correct) / canaries
    for fewer in range(int(correct) - 1, -1, -1):
        more = rarest(right) - wrong
        if more <= 0:
            break
        added = more * canaries / (guesses - fewer)
        mass, wrong, right = mass + added, wrong + more, right + added * fewer / canaries
        if mass > 1:
            break
    return mass


def _checked_bits(guesses: int, canaries: int) -> int:
    if canaries < guesses:
        raise ValueError(f"canaries must be at least the guesses, {guesses}, got {canaries}")
    return canaries
