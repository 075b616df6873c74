"""Probability of so many right guesses in one run with many secret bits, if a promise is kept."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from audit.arguments import fraction
from audit.bounds.binomial import binomial_pmf, binomial_sf
from audit.bounds.limits import checked_counts
from audit.exact.roots import brentq

__all__ = ["one_run_curve_p_value", "one_run_least_mass", "one_run_p_value"]

Floats = NDArray[np.float64]

TINY = 1e-290  # probabilities below it lose digits
# Shapes of weights under a curve of deltas: the power of the level, and the part of the error that no weight pays for.
# For few guesses the first is the best, for many the last.
SHAPES = ((0.5, 0.2), (0.35, 0.07), (0.2, 0.03))
PIECES = 40  # trapezoids of the sum over levels
LARGEST, WIDEST = 200.0, 4000  # epsilon from which sums overflow; numbers of guesses with a weight
SETTLED = 100  # repetitions after which the weights of the largest numbers no longer move
STEPS = 1.0, 4.0, 16.0, 64.0  # from the first guess of a logarithm, until its root is between two of them


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


def one_run_curve_p_value(
    correct: int, guesses: int, canaries: int, *, lines: tuple[Floats, Floats], error: float = 0.05
) -> float:
    """Upper bound on P(`correct` or more right guesses) in one run, under a promise with a delta at every epsilon.

    The number of guesses must have been fixed before the run. `lines` are epsilons and deltas that follow from the
    promise, in the order of the epsilons and from an epsilon of 0 on. The bound is tight if it is about `error`.

    Notes
    -----
    Guarantee: under any algorithm that keeps the promise, P(p-value <= a) <= a, whatever the `error`.

    Let W be the number of right guesses of n, and B a set of numbers. For each epsilon, the promise limits one bit's
    guess jointly with the number of other right guesses: P(this in B; it is right) <= exp(epsilon) P(this in B; it is
    wrong) + delta. Summed over the bits, E[W 1(W - 1 in B) - exp(epsilon) (n - W) 1(W in B)] <= canaries delta. Give
    weights to any sets, each with its epsilon. Let a(w) be the weight of the sets that hold w, and z(w) the same with
    each weight times its exp(epsilon). Then E[W a(W - 1) - (n - W) z(W)] <= canaries (sum of weights times deltas), and
    P(W >= c) is at most this plus the largest of 1(w >= c) - w a(w - 1) + (n - w) z(w) over all w. This is the dual of
    a linear program: it holds for all weights, and poor ones only make the bound large.

    Here the sets are {w: a(w) >= level} for every level, and exp(epsilon) is ``low + rise level**power``. The rise
    makes the last expression the same for all w near c. With one epsilon this is Stein's equation, as in
    `one_run_p_value`. `one_run_least_mass` uses the sets {w >= j} only, and mostly proves less.

    References
    ----------
    .. [1] Mahloujifar, Melis and Chaudhuri, "Auditing f-Differential Privacy in One Run", 2024: events of a guess and
       the number of others.

    Examples
    --------
    >>> from audit import GaussianDP
    >>> one_run_curve_p_value(430, 460, 10_000, lines=GaussianDP(0.73).lines()) < 0.05
    True
    """
    checked_counts(correct, guesses)
    bits = _checked_bits(guesses, canaries)
    fraction("error", error)
    # Tiny epsilons share one exponential, with the largest of their deltas.
    odds, place = np.unique(np.exp(lines[0][lines[0] <= LARGEST]), return_index=True)
    if odds.size < 2:
        return 1.0
    deltas = lines[1][place]
    touched = deltas - odds * np.gradient(deltas, odds)  # probability of the event at which a line is tight
    low = float(np.interp(-correct / bits, -touched, odds))
    if correct <= guesses * low / (1 + low):
        return 1.0
    tail, p_value = float(binomial_sf(correct - 1, guesses, low / (1 + low))), 1.0
    for power, part in SHAPES:
        rise, first, weights = _weights(int(correct), int(guesses), low, power, max(part * error, tail))
        if weights.size == 0:
            continue
        # The largest number has no weight of its own: it and all beyond have the last one.
        number, held = np.arange(first, first + weights.size + 1), np.append(weights, weights[-1])
        z = held * (low + rise * held**power / (1 + power))
        excess = (number >= correct) - number * np.append(0.0, weights) + (guesses - number) * z
        level = np.linspace(0, 1, PIECES + 1) ** 2 * weights.max()
        # Deltas are convex in exp(epsilon), and in the level: interpolation and trapezoids make them larger at most.
        delta = np.interp(low + rise * level**power, odds, deltas)
        paid = float(np.sum((delta[1:] + delta[:-1]) / 2 * np.diff(level)))
        p_value = min(p_value, max(float(excess.max()), 0.0) + bits * paid)
    return p_value


def _weights(correct: int, guesses: int, low: float, power: float, base: float) -> tuple[float, int, Floats]:
    """Return the rise, the first number with a weight, and the weights from it on; none if there are too many.

    1(w >= correct) - w a(w - 1) + (guesses - w) z(w) is `base` for all w. From this the weights below `correct` follow
    upwards, and the others downwards. At the right rise, both ways give `correct` - 1 the same weight.
    """
    mean, spread = guesses * low / (1 + low), math.sqrt(guesses * low) / (1 + low)
    first, last = max(0, min(correct - 1, int(mean - 4 * spread))), min(guesses, correct + int(6 * spread) + 20)
    if last - first > WIDEST:
        return 0.0, first, np.empty(0)

    def below(rise: float) -> list[float]:
        weights: list[float] = []
        weight = 0.0
        for number in range(first, correct):
            z = (number * weight + base) / (guesses - number)
            for _ in range(3 if weights else 12):  # Newton's method, from the weight before
                steep = rise * weight**power
                weight -= (weight * (low + steep / (1 + power)) - z) / (low + steep)
            weights.append(weight)
        return weights

    def above(rise: float) -> list[float]:
        weight, weights = (1 - base) / last, []
        for number in [last] * (SETTLED if last < guesses else 0) + list(range(last, correct - 1, -1)):
            z = weight * (low + rise * weight**power / (1 + power))
            weight = min(1.0, (1 - base + (guesses - number) * z) / number)
            weights.append(weight)
        return weights[correct - 1 - last :][::-1]

    def surplus(log_rise: float) -> float:
        rise = math.exp(log_rise)
        return below(rise)[-1] - above(rise)[0]

    # About what makes exp(epsilon) at the largest weight, 2 / guesses, as large as the odds of the guesses.
    near = math.log(max(correct / (guesses - correct + 0.5) - low, 0.1 * low)) - power * math.log(2 / guesses)
    less = next((near - step for step in STEPS if surplus(near - step) > 0), None)
    more = next((near + step for step in STEPS if surplus(near + step) <= 0), None)
    rise = 0.0 if less is None or more is None else math.exp(brentq(surplus, less, more, xtol=1e-4))
    lower, upper = below(rise), above(rise)
    return rise, first, np.array([*lower[:-1], max(lower[-1], upper[0]), *upper[1:]])


def _checked_bits(guesses: int, canaries: int) -> int:
    if canaries < guesses:
        raise ValueError(f"canaries must be at least the guesses, {guesses}, got {canaries}")
    return canaries
