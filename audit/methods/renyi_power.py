"""The power of an audit of zero-concentrated privacy: which likelihood ratios selection runs choose, simulated."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy  # loads its parts where they are used, some of which take long
from numpy.typing import ArrayLike, NDArray
from scipy import special

from audit.attacks.selection.weights import CLIPS, ORDERS, TINY, chosen_weights
from audit.bounds.renyi import mean_lower
from audit.methods.crossing import CLOSE, LEAST_EXCESS, apart, crossing
from audit.methods.method import POWER, Floats
from audit.methods.regions import SEED, counting_ratio, nearby

__all__ = ["LARGEST", "detectable_divergence", "divergence_power"]

WEIGHTS, FEWER = 1000, 400  # times that a choice is simulated for a plan, and for what an audit could detect
LEAST_RHO = 1e-12  # that is no rounding error of a bound
LARGEST = 30.0**2 / 2  # rho of a pair beyond which nothing is confused any more
TOGETHER = 100  # choices of weights at once: few enough for the cache of a processor
STEPS = (1.02, 1.1)  # of shifts and of selection runs that share a simulation
MANY = 100_000  # selection runs that leave no doubt of the likelihood ratio
TAIL, MIDDLE = 16, 64  # bins of a score in either tail and between


def divergence_power(
    rho: float, shift: float, choosing: int, runs: tuple[int, int], confidence: float, *, times: int = WEIGHTS
) -> float:
    """Return how often the likelihood ratio that runs have chosen shows on others that a divergence is more than rho.

    What `select_weights` does is done here so many `times` on made-up runs at once, in bins that they share; `runs`
    count on `x` and on `y`. How far the bound of an estimate strays on fresh runs is taken from its influence function,
    as if it were normal.
    """
    if min(runs) < 2:
        return 0.0
    if choosing:
        near, many = nearby(shift, choosing, STEPS)
        ratio = counting_ratio(2 * min(runs), choosing)
        edges, weights, order, toward_y = _weights(near, many, ratio, confidence, times)
    else:
        edges, center = _bins(shift, MANY)
        exact = np.stack([np.clip(center * shift, -clip, clip) for clip in CLIPS])
        weights, order = np.tile(exact, (len(ORDERS), 1)), np.repeat(ORDERS, len(CLIPS))[:, None]
        toward_y = np.ones(order.shape, bool)
    law_x, law_y = _laws(edges, shift)
    likely, other = np.where(toward_y, law_y, law_x), np.where(toward_y, law_x, law_y)
    runs_likely, runs_other = (np.where(toward_y[:, 0], *sides) for sides in (runs[::-1], runs))
    found = _weights_power(rho, weights, order, likely, other, runs_likely, runs_other, confidence)
    return float(found.mean() if choosing else found.max())


@lru_cache(maxsize=256)
def detectable_divergence(rho: float, choosing: int, runs_x: int, runs_y: int, confidence: float) -> float:
    """Return the least rho of two normal laws that is shown to be more than `rho` with power 0.8; infinite if none is.

    None of the runs `choosing` means that the best likelihood ratio was registered.
    """

    def excess(log_excess: float, choosing: int) -> float:
        shift = math.sqrt(2 * (rho + math.exp(log_excess)))
        return apart(divergence_power(rho, shift, choosing, (runs_x, runs_y), confidence, times=FEWER), POWER)

    least = max(LEAST_EXCESS * rho, LEAST_RHO)
    bottom, top = math.log(least), math.log(max(LARGEST - rho, least))
    found = crossing(lambda at: excess(at, 0), min(math.log(max(rho, least)), top), bottom, top, CLOSE)
    if choosing and found < math.inf:
        found = crossing(lambda at: excess(at, choosing), found, bottom, top, CLOSE)
    return rho + math.exp(found)


def _laws(edges: Floats, shift: float) -> tuple[Floats, Floats]:
    """Return the probabilities of bins on `x` and on `y`; scores are about the middle between the two laws."""
    on_x, on_y = (np.diff(special.ndtr(edges + side * shift / 2)) for side in (1, -1))
    return on_x, on_y


@lru_cache(maxsize=16)
def _weights(
    shift: float, choosing: int, ratio: float, confidence: float, times: int
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Return edges of bins and, for each simulated choice, weights of the bins, their order, and whether toward `y`."""
    edges, center = _bins(shift, choosing)
    laws = _laws(edges, shift)
    rng = np.random.default_rng(SEED)
    fit, held = ([rng.multinomial(max(1, choosing // 4), law, times) for law in laws] for _ in range(2))
    counting, parts = max(2, round(ratio * choosing / 2)), []
    for start in range(0, times, TOGETHER):
        (fit_x, fit_y), (held_x, held_y) = ([one[start : start + TOGETHER] for one in two] for two in (fit, held))
        parts.append(chosen_weights(center, (fit_x, fit_y), (held_x, held_y), counting, confidence)[:3])
    weights, order, toward_y = (np.concatenate(column) for column in zip(*parts, strict=True))
    return edges, weights, order, toward_y


def _bins(shift: float, runs: int) -> tuple[Floats, Floats]:
    """Return edges that cut the mixture of both laws, finer in both tails, and the mean score of each bin."""
    tail = np.geomspace(1 / runs, 1 / MIDDLE, TAIL)
    levels = np.unique(np.concatenate([tail, np.linspace(0, 1, MIDDLE + 1)[1:-1], 1 - tail]))
    reach = 8 + shift / 2
    scores = np.linspace(-reach, reach, 8001)
    mixture = (special.ndtr(scores - shift / 2) + special.ndtr(scores + shift / 2)) / 2
    inner = np.unique(np.interp(levels, mixture, scores).round(6))  # between laws far apart there is nothing to cut
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    mass, moment = np.zeros(inner.size + 1), np.zeros(inner.size + 1)
    for mean in (-shift / 2, shift / 2):
        share = np.diff(special.ndtr(edges - mean))
        mass += share
        moment += mean * share - np.diff(scipy.stats.norm.pdf(edges - mean))
    return edges, np.divide(moment, mass, out=np.zeros_like(mass), where=mass > 0)  # of a bin that is never met: any


def _weights_power(
    rho: float,
    weights: Floats,
    order: Floats,
    likely: Floats,
    other: Floats,
    runs_likely: ArrayLike,
    runs_other: ArrayLike,
    confidence: float,
) -> Floats:
    """Return how often each row of weights, at its order, shows more than `rho`.

    Laws of the bins have shape (bins,) or (sets, bins), runs on either database () or (sets,).
    """
    order = order.reshape(-1, 1)
    centered = weights - weights.max(axis=1, keepdims=True)

    def limit(values: Floats, law: Floats, least: Floats, counted: ArrayLike) -> tuple[Floats, Floats]:
        """Return the lower limit of a mean at its expected counts, and the variance of the limit."""
        runs, mean = np.asarray(counted), np.sum(law * values, axis=1)
        apart = values - mean[:, None]
        variance = np.maximum(np.sum(law * apart**2, axis=1), 1e-300)
        low = mean_lower(mean, variance, least, values.max(axis=1) - least, runs, (1 - confidence) / 2)
        pull = np.sqrt(2 * np.log(4 / (1 - confidence)) / runs)
        influence = apart - (pull / (2 * np.sqrt(variance)))[:, None] * (apart**2 - variance[:, None])
        return low, np.where(low > least, np.sum(law * influence**2, axis=1) / runs, 0.0)

    flat = order[:, 0]
    above, above_variance = limit(-np.expm1(order * centered), other, np.zeros(len(weights)), runs_other)
    moment = np.maximum(1 - above, TINY)
    bound, variance = -np.log(moment) / flat, above_variance / (moment * flat) ** 2
    first = flat == 1
    excess = np.where(first, 1.0, flat - 1)
    values = np.where(first[:, None], centered, np.expm1(excess[:, None] * centered))
    below, below_variance = limit(values, likely, values.min(axis=1), runs_likely)
    moment = np.where(first, 1.0, np.maximum(1 + below, TINY))
    bound = bound + np.where(first, below, np.log(moment) / excess)
    variance = variance + below_variance / (moment * excess) ** 2
    with np.errstate(over="ignore"):  # a promise that no bound comes near
        return np.asarray(special.ndtr((bound - rho) / np.sqrt(np.maximum(variance, 1e-300))))
