"""Evidence against promises from bets on runs, one after the other: it is valid whenever the runs end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from audit.bounds.limits import check_confidence

__all__ = ["Bet", "betting_evidence", "betting_lower"]

Floats = NDArray[np.float64]
Lines = tuple[Floats, Floats]  # epsilons and deltas of (epsilon, delta) promises, each of shape (lines,)

SHRUNK = (1.0, 0.5, 0.25)  # factors of the stake: a third of the money is bet at each
RATIO = 1.005  # of successive budgets that are tested
LEAST = 0.01  # smallest budget that is tested, as a share of the promise
LEAST_EXCESS = 1e-9  # least excess of a bound over the promise that it refutes, as a share of it
MOST, TOGETHER = 300.0, 64  # an epsilon at which no bet gains anything; budgets that are tested at once


class Bet(NamedTuple):
    """What was expected of some runs, fixed before they were made, and what came."""

    regions: int  # databases that the rule may name: 1 or 2
    right_share: float  # expected share of runs in which the rule names the right database
    wrong_share: float  # the same of the wrong one; in the rest it names none
    runs: int
    right: int  # runs in which it named the right database
    wrong: int


def betting_evidence(bets: ArrayLike, lines: Sequence[Lines]) -> Floats:
    """Log of the money after each bet against each promise, shape (promises, bets), from 1 at the start.

    A promise is given by lines (epsilon, delta) that all follow from it. A fair coin picks the database of every run.
    The rule, its expected shares and so the stake ``t`` and the line of a bet are fixed before the runs of the bet: the
    ones with the fastest expected growth (Kelly). In one run the stake pays ``1 + t (1 - d)`` for a right guess,
    ``1 - t (exp(epsilon) + d)`` for a wrong one and ``1 - t d`` for none; ``d`` is delta, or half of it if the rule
    names one database only. The money is the mean over three players, who stake all, a half and a quarter of ``t``.

    Notes
    -----
    Guarantee: under a promise that is kept, P(the money is ever 1 / a or more) <= a, for every mechanism, every way to
    choose rules and stakes from the past, and every rule to stop. As ``P(right) <= exp(epsilon) P(wrong) + d``, no
    factor is above 1 on average.

    References
    ----------
    .. [1] Ville, 1939 (the inequality); Kelly, "A New Interpretation of Information Rate", 1956 (the stake).
    .. [2] Waudby-Smith and Ramdas, "Estimating Means of Bounded Random Variables by Betting", 2024.
    .. [3] Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", 2015 (the inequality in d).

    Examples
    --------
    >>> certain = Bet(regions=2, right_share=0.99, wrong_share=0.01, runs=10, right=10, wrong=0)
    >>> promise = np.array([1.0]), np.array([0.0])  # epsilon 1, delta 0
    >>> round(float(np.exp(betting_evidence([certain], [promise])[0, -1])), 1)
    9.4
    """
    return total(growth(bets, lines).cumsum(axis=1)).T


def total(players: Floats) -> Floats:
    """Return the log of the mean money of the players, from that of each, shape (players, ...)."""
    return np.asarray(np.logaddexp.reduce(players) - math.log(len(SHRUNK)))


def growth(bets: ArrayLike, lines: Sequence[Lines]) -> Floats:
    """Return by how much each bet adds to the log of the money of each player, shape (players, bets, promises)."""
    *_, runs, right, wrong = _columns(bets)
    stakes, *payoffs, _ = staked(bets, lines)
    counts = right, wrong, runs - right - wrong
    return np.array([_grown(by * stakes, *payoffs, *counts)[..., 0] for by in SHRUNK])


def staked(bets: ArrayLike, lines: Sequence[Lines]) -> tuple[Floats, ...]:
    """Return stakes, what they win and lose, delta, and the expected growth, each of shape (bets, promises, 1)."""
    regions, right, wrong, *_ = _columns(bets)
    epsilons, deltas = (np.array([line[part] for line in lines])[None] for part in (0, 1))  # (bets, promises, lines)
    d = deltas * regions / 2
    gain, loss = 1 - d, np.exp(np.minimum(epsilons, MOST)) + d
    none = np.maximum(0.0, 1 - right - wrong)
    # The derivative of the expected growth is a falling ratio. Its numerator is a quadratic in the stake.
    start = right * gain - wrong * loss - none * d
    slope = right * gain * (loss + d) + wrong * loss * (gain - d) + none * d * (gain - loss)
    root = np.sqrt(np.maximum(slope**2 - 4 * gain * loss * d * start, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        stakes = np.where(start > 0, 2 * start / (slope + root), 0.0)
    stakes = np.minimum(stakes, (1 - 1e-12) / loss)
    expected = _grown(stakes, gain, loss, d, right, wrong, none)
    best = expected.argmax(axis=2, keepdims=True)
    return tuple(np.take_along_axis(part, best, axis=2) for part in (stakes, gain, loss, d, expected))


def _columns(bets: ArrayLike) -> Floats:
    return np.asarray(bets, float).reshape(-1, 6, 1, 1).swapaxes(0, 1)


def _grown(stakes: Floats, gain: Floats, loss: Floats, d: Floats, *shares: Floats) -> Floats:
    """Return the growth of the log of money, from shares or numbers of right, wrong and no guesses."""
    right, wrong, none = shares
    return np.asarray(right * np.log1p(stakes * gain) + wrong * np.log1p(-stakes * loss) + none * np.log1p(-stakes * d))


def score_growth(bets: Floats | Sequence[Sequence[ArrayLike]], rhos: ArrayLike) -> Floats:
    """Return by how much each bet on a score adds to the log of the money, shape (players, bets, promises).

    A bet has five rows of numbers, one column for each value of the score: the score, which should be the
    log-likelihood ratio of one database, the likely one, over the other; its expected probabilities on the other and on
    the likely one; and how many runs on the other and on the likely one had it. A shift of the score that suits the
    expected probabilities makes it ``g``. A run pays ``2 g - rho`` per stake on the likely database, and
    ``2 - 2 exp(g) - rho`` on the other: at most 0 on average over the coin, as rho is at least the Kullback-Leibler
    divergence, which is at least ``E_likely g + 1 - E_other exp(g)`` (Donsker and Varadhan, 1983).
    """
    parts = [bets] if isinstance(bets, np.ndarray) else [np.asarray(bet, float)[None] for bet in bets]
    rho, grown = np.asarray(rhos, float)[:, None], []
    for part in parts:
        score, of_other, of_likely, other, likely = part.swapaxes(0, 1)[:, :, None]  # each (bets, 1, values)
        ratio = score - special.logsumexp(score, b=of_other, axis=2, keepdims=True)
        pays = 2 * ratio - rho, 2 - 2 * np.exp(ratio) - rho  # (bets, promises, values)
        mean, square = (np.sum(of_likely * pays[0] ** k + of_other * pays[1] ** k, axis=2) / 2 for k in (1, 2))
        lost = -np.minimum(pays[0].min(axis=2), pays[1].min(axis=2))
        stakes = np.clip(mean / square, 0.0, 0.9 / lost)[..., None]
        logs = [likely * np.log1p(by * stakes * pays[0]) + other * np.log1p(by * stakes * pays[1]) for by in SHRUNK]
        grown.append(np.array(logs).sum(axis=3))
    return np.concatenate(grown, axis=1)


def rates(counts: Floats) -> Floats:
    """Return the expected probabilities of the values of a score, from past counts of each, in the last axis."""
    return np.asarray((counts + 1 / counts.shape[-1]) / (counts.sum(axis=-1, keepdims=True) + 1))


def betting_lower(
    evidence: Callable[[Floats], Floats],
    promise: float,
    *,
    confidence: float,
    most: float = math.inf,
    inflation: float = 1.0,
) -> float:
    """Lower bound on a budget from bets, valid whenever the runs end: the last of a grid of budgets that are refuted.

    `evidence` maps budgets, shape (m,), to the logs of the money after each bet against each promise, shape (m, bets).
    The grid lies around the budget of the `promise`, up to `most`. The evidence is divided by `inflation`.

    Notes
    -----
    Guarantee: P(bound > true budget) <= 1 - confidence. The bound is above the true budget only if the next budget of
    the grid above the true one is refuted, and this promise is kept.

    Examples
    --------
    >>> bets = [Bet(2, 0.8, 0.2, 1000, 800, 200)]
    >>> pure = lambda budgets: betting_evidence(bets, [(np.array([epsilon]), np.zeros(1)) for epsilon in budgets])
    >>> round(betting_lower(pure, 1.0, confidence=0.95), 3)
    1.173
    """
    check_confidence(confidence)
    needed = -math.log1p(-confidence) * max(1.0, inflation)
    bound, first = 0.0, math.ceil(math.log(LEAST) / math.log(RATIO))
    for start in range(first, 10**6, TOGETHER):
        budgets = (1 + LEAST_EXCESS) * promise * RATIO ** np.arange(start, start + TOGETHER)
        budgets = budgets[budgets <= most]
        if not budgets.size:
            break
        refuted = evidence(np.asarray(budgets, np.float64)).max(axis=1, initial=0.0) >= needed
        if not refuted.all():
            return float(budgets[refuted.argmin() - 1]) if refuted.argmin() else bound
        bound = float(budgets[-1])
    return bound
