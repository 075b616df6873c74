"""Bounds that hold at all looks together, with one confidence, whenever the counting stops."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from audit.arguments import fraction
from audit.bounds.limits import check_confidence, check_distance

__all__ = ["anytime_game_lower", "look_confidence"]

Floats = NDArray[np.float64]
STAKES = np.geomspace(1e-7, 1.0, 240, endpoint=False)  # 7% apart; smaller ones help after 1e10 runs or above 16 nats
SHARE_EXPECTED = 0.5  # share of the wealth on stakes that suit the expected accuracy


def anytime_game_lower(
    correct: int,
    wrong: int,
    runs: int,
    *,
    confidence: float,
    delta: float = 0.0,
    distance: int = 1,
    expected: tuple[float, float] | None = None,
) -> float:
    """Lower bound on epsilon from the guessing game, valid at all looks together; already divided by `distance`.

    A gambler bets on right guesses at odds that are fair or worse if the promise holds. The promise is rejected once
    the wealth, a fixed mixture of stakes, has grown ``1 / (1 - confidence)`` times. `runs` include those in which the
    rule abstained. `expected` are the guesses expected by the last look and the share of them expected to be right,
    fixed before counting and the same at every look: half of the wealth is staked to suit them.

    Notes
    -----
    Guarantee: P(any bound of any look > true epsilon) <= 1 - confidence, for every mechanism, every rule that does not
    see the coins, and every stopping rule. In one run the stake ``t`` pays ``1 + t (1 - delta)`` for
    a right guess, ``1 - t (exp(epsilon) + delta)`` for a wrong one and ``1 - t delta`` for none, which is at most 1 on
    average because ``P(correct) <= exp(epsilon) P(wrong) + delta``. No factor grows with epsilon, so that all promises
    below one number are rejected. A stake that could lose more than its share of the wealth counts as lost.

    References
    ----------
    .. [1] Ville, 1939 (the inequality); Robbins, "Statistical Methods Related to the Law of the Iterated Logarithm",
       1970 (mixtures); Waudby-Smith and Ramdas, "Estimating Means of Bounded Random Variables by Betting", 2024.
    .. [2] Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, Nonparametric, Nonasymptotic Confidence Sequences",
       2021.

    Examples
    --------
    >>> round(anytime_game_lower(800, 200, 1000, confidence=0.95), 3)
    1.12
    """
    if not (min(correct, wrong) >= 0 and correct + wrong <= runs < math.inf):
        raise ValueError(
            f"correct and wrong guesses must be 0 or more and no more than runs, got {correct} and {wrong} of {runs}"
        )
    check_confidence(confidence)
    check_distance(distance)
    fraction("delta", delta, zero=True)

    def rejected(epsilon: float) -> bool:
        return rejects(
            epsilon, correct, wrong, runs, confidence=confidence, delta=delta, distance=distance, expected=expected
        )

    if not rejected(0.0):
        return 0.0
    # If exp(epsilon) is at least the observed odds, no stake gains; if at least 1 / the least stake, none is allowed.
    most = min(math.log(correct / wrong) if wrong else math.inf, -math.log(STAKES[0]))
    low, high = 0.0, most / distance
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


def rejects(
    epsilon: float,
    correct: int,
    wrong: int,
    runs: int,
    *,
    confidence: float,
    delta: float,
    distance: int,
    expected: tuple[float, float] | None,
) -> bool:
    """Return whether a promise of this epsilon is rejected: the bound of `anytime_game_lower` is more than it."""
    stakes, log_shares = _mixture(expected)
    if epsilon * distance >= -math.log(stakes[0]):  # every stake could lose more than its share
        return False
    forgiven = delta * float(np.exp(epsilon * np.arange(distance)).sum())  # of the pair, by group privacy
    loss = stakes * (math.exp(epsilon * distance) + forgiven)
    able, abstained = loss < 1, runs - correct - wrong
    t = stakes[able]
    wealth = log_shares[able] + correct * np.log1p(t * (1 - forgiven)) + abstained * np.log1p(-t * forgiven)
    wealth += wrong * np.log1p(-loss[able])
    return float(np.logaddexp.reduce(wealth)) >= -math.log1p(-confidence)


def look_confidence(look: int, confidence: float, looks: int | None = None) -> float:
    """Return the confidence to be used at one look (1, 2, ...), so that all looks together have the confidence wanted.

    If the number of `looks` was fixed before the first, they share the error probability equally (Bonferroni).
    Otherwise look ``i`` has ``1 / (i (i + 1))`` of it, which adds up to 1.

    >>> round(look_confidence(1, 0.95), 4), round(look_confidence(2, 0.95), 4)
    (0.975, 0.9917)
    """
    check_confidence(confidence)
    if not look >= 1:
        raise ValueError(f"look must be at least 1, got {look}")
    if looks is not None and look > looks:
        raise ValueError(f"look must be at most {looks}, got {look}")
    return 1 - (1 - confidence) / (looks or look * (look + 1))


@lru_cache(maxsize=256)
def _mixture(expected: tuple[float, float] | None) -> tuple[Floats, Floats]:
    """Return stakes and the logs of their shares of the wealth: uniform in the log of the stake, plus a bump."""
    shares = np.full(STAKES.size, 1 / STAKES.size)
    if expected is not None:
        guesses, accuracy = expected
        if not (1 <= guesses < math.inf and 0.5 <= accuracy < 1):
            raise ValueError(
                f"expected must be at least 1 guess and an accuracy in [0.5, 1), got {guesses} and {accuracy}"
            )
        # If the accuracy is 3 standard errors above the promised one, just enough to reject, this stake grows fastest.
        best = 3 * math.sqrt((1 - accuracy) / (accuracy * guesses))
        bump = np.exp(-(np.log(STAKES / min(best, STAKES[-1])) ** 2))
        shares = (1 - SHARE_EXPECTED) * shares + SHARE_EXPECTED * bump / bump.sum()
    return STAKES, np.log(shares)
