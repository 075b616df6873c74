"""Lower bounds on rho of zero-concentrated differential privacy, from counts.

A pair loses rho if its Renyi divergence of some order ``a >= 1`` is ``a * rho``, in either direction. The bounds are of
the pair: divide by the square of the distance of a group pair. They hold for every mechanism.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from audit.bounds.betting import rates
from audit.bounds.limits import check_confidence
from audit.bounds.rectangle import rectangle
from audit.exact.roots import brentq

__all__ = ["renyi_event_lower", "renyi_variational_lower"]

Floats = NDArray[np.float64]
Runs = NDArray[np.int64]
ORDERS = np.geomspace(1.0, 1e4, 400)  # any order is valid; with up to 1e9 runs others add less than 0.1%
BLOCKS = 16  # of runs: the first one only teaches, and stakes on each other one follow from those before it
MANY = 10_000  # runs, up to which blocks have equal sizes, as those of more runs nearly have by chance
MOST_LOST = 0.9  # largest part of the money that one run may take
MOST_RUNS = 2.0**53  # with one score: a float tells no more apart
SLACK, WIDER = 0.4, 1.05  # standard errors by which bounds are usually below exact ones, and how much more they vary
RARE = 0.7  # weight of values that were not seen, by simulation
CLOSE = 1e-10  # error of a bound, as a share of the range of the score
TINY = 1e-16  # least moment whose logarithm is taken


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
    values: ArrayLike, counts_y: ArrayLike, counts_x: ArrayLike, *, order: float, confidence: float, lots: int = 0
) -> float:
    """Lower bound on rho of a pair from a bounded score, with fixed numbers of runs on either database.

    The nearer the score is to the log-likelihood ratio of the second database over the first, the tighter the bound.
    `values` are the scores, shape (m,). They include the least and the greatest possible score, even if never seen: the
    range has to be fixed before counting, for example by clipping, as a range taken from the same runs voids the bound.
    `counts_y` are runs with each score on the database where scores are higher, `counts_x` on the other. The
    `order` of the divergence, 1 (Kullback-Leibler) or more, is chosen beforehand. `lots` is a seed that does not depend
    on the counts: draw it at random, as every audit does.

    Notes
    -----
    Guarantee: P(bound > true rho) <= 1 - confidence, over runs and lots, for every mechanism and every score ``g`` that
    does not depend on these runs. If a pair loses `rho` at most, the means of ``y`` on the likely database and of ``x``
    on the other one add up to 0 at most, for every ``c``: ``y = (exp((a - 1) (g - c - rho)) - 1) / (a - 1)``, which is
    ``g - c - rho`` at order 1, and ``x = (1 - exp(a (g - c))) / a``. A gambler bets against that, from money 1: each
    run multiplies it by ``1 + s y`` or ``1 + t x``. Runs times stake are equal on both databases. So the
    money does not grow on average, by ``1 + z <= exp(z)``. It ever reaches ``1 / (1 - confidence)`` with probability
    ``1 - confidence`` at most, and the bound is the largest rho at which it does: the money falls as rho grows. Both
    databases share one error, which is not split.

    A lot, seeded by `lots` and the counts, puts each run in one of 16 blocks, or of fewer if there are few runs. ``c``
    and the stakes of a block follow from the blocks before. They aim at the money that is still needed, with the runs
    that are left.

    References
    ----------
    .. [1] Birrell, Dupuis, Katsoulakis, Rey-Bellet and Wang, "Variational Representations and Neural Network Estimation
       of Renyi Divergences", 2021 (the Renyi-Donsker-Varadhan formula); at order 1 Donsker and Varadhan, 1983.
    .. [2] Waudby-Smith and Ramdas, "Estimating Means of Bounded Random Variables by Betting", 2024, section 4
       (capital and predictable bets), after Ville, 1939.
    .. [3] Kim, Varshney and Alabi, 2026, arXiv 2605.21938 (audits by this representation).

    Examples
    --------
    >>> score = [-1.0, 0.0, 1.0]
    >>> round(renyi_variational_lower(score, [200, 300, 500], [500, 300, 200], order=1.0, confidence=0.95), 3)
    0.164
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
        wrong = ~((counts >= 0) & (counts <= MOST_RUNS) & (counts == np.floor(counts)))
        if wrong.any():
            raise ValueError(f"counts must be whole numbers, 0 or more, got {counts[wrong][0]}; 2**53 is the most")
    if not 1 <= order < math.inf:
        raise ValueError(f"order must be 1 or more and finite, got {order}")
    check_confidence(confidence)
    kinds, place = np.unique(score - score.max(), return_inverse=True)  # a constant does not matter
    needed = -math.log1p(-confidence)
    sides = [np.bincount(place, side).astype(np.int64) for side in (on_y, on_x)]
    likely, other = _blocks(lots, *sides)
    bets, largest = _bets(kinds, likely, other, order, needed), float(-kinds[0])
    near = CLOSE * largest

    def surplus(rho: float) -> float:
        return max(_money(bets, kinds, order, rho), 0.0) - needed

    if not bets.runs.size or surplus(near) < 0:
        return 0.0
    return largest if surplus(largest) >= 0 else brentq(surplus, near, largest, xtol=near) - near


def _bernoulli_rho(p: float, q: float) -> float:
    """Return the greatest divergence over its order between two coins, both probabilities strictly inside (0, 1)."""
    log_p, log_q = np.log([p, 1 - p]), np.log([q, 1 - q])
    kl = float(np.exp(log_p) @ (log_p - log_q))
    order = ORDERS[1:]
    moment = special.logsumexp(log_q + order[:, None] * (log_p - log_q), axis=1)
    return max(kl, float((moment / (order * (order - 1))).max()))


class _Bet(NamedTuple):
    """A bet on the runs of one block, by what the blocks before it have taught, and what came; or several, stacked."""

    shift: Any  # of the score: ``c``
    stake: Any  # on each run of the likely database
    gain: Any  # log of the factor by which runs on the other database multiplied the money, at any rho
    runs: Runs  # on the likely database, with each score


def _blocks(seed: int, *counts: Runs) -> list[Runs]:
    """Return how many runs with each score are in each block, shape (blocks, scores), for each database."""
    entropy = [seed, *(number for side in counts for number in side.tolist() if number)]
    lots, sizes, parts = np.random.default_rng(entropy), [int(side.sum()) for side in counts], list[Runs]()
    blocks = max(1, min(BLOCKS, *sizes))  # each has runs on both databases
    for side, runs in zip(counts, sizes, strict=True):
        if runs > MANY:
            parts.append(lots.multinomial(side, np.full(blocks, 1 / blocks)).T)
            continue
        line = lots.permutation(np.repeat(np.arange(side.size), side))
        place = np.arange(runs) * blocks // max(1, runs) * side.size + line
        parts.append(np.bincount(place, minlength=blocks * side.size).reshape(blocks, side.size))
    return parts


def _bets(score: Floats, on_likely: Runs, on_other: Runs, order: float, needed: float) -> _Bet:
    """Return the bets on the blocks after the first, for scores of 0 at most."""
    past = [rates(side.cumsum(axis=0)[:-1]) for side in (on_likely, on_other)]
    powers = score if order == 1 else np.exp((order - 1) * score), np.exp(order * score)
    (mean, spread), (moment, other_spread) = (moments(*side) for side in zip(past, powers, strict=True))
    divergence, slope, other_slope = _divergence(order, mean, moment)
    variances = spread * slope**2, other_spread * other_slope**2
    runs = [side.sum(axis=1) for side in (on_likely, on_other)]
    rest = [side[::-1].cumsum()[::-1] for side in runs]
    bets: list[_Bet] = []
    money = fall = reference = 0.0  # log of the money at a reference rho, and how fast it falls with rho
    for k in range(1, len(on_likely)):
        number, other_number = int(runs[0][k]), int(runs[1][k])
        estimate, parts = float(divergence[k - 1]), [float(variances[i][k - 1] / rest[i][k]) for i in range(2)]
        variance = sum(parts)
        if variance < TINY**2:  # scores are equal, but for rounding
            continue
        if not bets:
            reference = max(0.0, estimate - math.sqrt(2 * needed * variance))
        # Aim at the rho, so much below the estimate, at which the growth that the rest of the runs promises is enough.
        lack = needed - money + fall * (estimate - reference)
        below = variance * (math.sqrt(max(0.0, fall**2 + 2 * lack / variance)) - fall)
        if below <= 0:
            continue
        shift = math.log(moment[k - 1]) / order + below * parts[1] / variance
        pays = (1 - np.exp(order * (score - shift))) / order
        worst = _paid(score[:1], order, shift, max(reference, estimate - below))[0]
        total = below / variance * min(number / rest[0][k], other_number / rest[1][k])
        for each, pay in ((number, worst), (other_number, pays[-1])):
            total = min(total, MOST_LOST * each / max(-pay, TINY))
        gain = float(on_other[k] @ np.log1p(total / other_number * pays))
        bets.append(_Bet(shift, total / number, gain, on_likely[k]))
        money, fall = money + float(_grown(bets[-1], score, order, reference)[0]), fall + total
    numbers = np.array([bet[:3] for bet in bets]).reshape(-1, 3).T[..., None]
    return _Bet(numbers[0], numbers[1], numbers[2], np.array([bet.runs for bet in bets]))


def _paid(score: Floats, order: float, shift: float | Floats, rho: float) -> Floats:
    """Return ``y``: what a run of the likely database pays per stake at `rho`, for each score."""
    excess = score - shift - rho
    return excess if order == 1 else np.expm1((order - 1) * excess) / (order - 1)


def _grown(bet: _Bet, score: Floats, order: float, rho: float) -> Floats:
    """Return by how much each bet adds to the log of the money at `rho`: minus infinity if it could take all of it."""
    paid = bet.stake * _paid(score, order, bet.shift, rho)
    broke = paid[..., :1] <= -1  # by the lowest score, even if no run had it
    grown = np.sum(bet.runs * np.log1p(np.where(broke, 0.0, paid)), axis=-1, keepdims=True)
    return np.where(broke, -np.inf, grown + bet.gain)


def _money(bets: _Bet, score: Floats, order: float, rho: float) -> float:
    """Return the log of the most money that there ever was at `rho`."""
    return float(_grown(bets, score, order, rho).cumsum().max())


def moments(law: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the variance of values under laws, along the last axis."""
    mean = np.sum(law * values, axis=-1)
    return mean, np.sum(law * (values - mean[..., None]) ** 2, axis=-1)


def _divergence(order: float | Floats, mean: Floats, moment: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the divergence over its order by two means, and its slopes in both."""
    # `mean`: of exp((order - 1) score), or the score, on the likely database; `moment`: of exp(order score) on another.
    first, moment = np.equal(order, 1), np.maximum(moment, TINY)
    tilted, excess = np.where(first, 1.0, np.maximum(mean, TINY)), np.where(first, 1.0, np.subtract(order, 1))
    divergence = np.where(first, mean, np.log(tilted) / excess) - np.log(moment) / order
    return divergence, 1 / (tilted * excess), 1 / (moment * order)


def usual_lower(
    order: float | Floats,
    on_likely: tuple[Floats, Floats],
    on_other: tuple[Floats, Floats],
    least: Floats,
    runs: tuple[Floats, Floats],
    error: float,
) -> tuple[Floats, Floats]:
    """Return about the middle of bounds by scores of 0 at most, and their standard deviation.

    Given are the means, as for `_divergence`, and variances on each database, and the `least` value on the likely one.
    If the means are normal, bets come within `SLACK` standard errors of an exact test. Values that are possible and
    rare cost some more.
    """
    (mean, variance), (moment, spread) = on_likely, on_other
    divergence, slope, other_slope = _divergence(order, mean, moment)
    n, other_n = (side * (1 - 1 / BLOCKS) for side in runs)  # the first block wins nothing
    squares = variance * slope**2 / n + spread * other_slope**2 / other_n
    deviation = np.sqrt(np.maximum(squares, 0.0))  # a rounded variance may be below 0
    needed = -RARE * math.log(error)
    rare = needed * (mean - least) * slope / n + np.log1p(needed * (1 / moment - 1) / other_n) / order
    return divergence - (SLACK - special.ndtri(error)) * deviation - rare, WIDER * deviation
