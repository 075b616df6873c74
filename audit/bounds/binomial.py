"""Probabilities and quantiles of binomial laws; scipy.stats has the same, but takes half a second to import."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

__all__ = ["binomial_pmf", "binomial_quantile", "binomial_sf"]

Floats = NDArray[np.float64]

EXACT = 16  # numbers from which Stirling's series is exact


def binomial_sf(hits: ArrayLike, runs: ArrayLike, rate: ArrayLike) -> Floats:
    """Return the probability of more than `hits` of `runs` events."""
    hits, runs = np.asarray(hits, float), np.asarray(runs, float)
    inside = (hits >= 0) & (hits < runs)
    tail = special.betainc(np.where(inside, hits, 0.0) + 1, np.where(inside, runs - hits, 1.0), rate)
    return np.where(inside, tail, np.where(hits < 0, 1.0, 0.0))


def binomial_quantile(error: ArrayLike, runs: ArrayLike, rate: ArrayLike) -> Floats:
    """Return the smallest number of events that is exceeded with probability `error` at most."""
    error, runs, rate = np.broadcast_arrays(error, np.asarray(runs, float), rate)
    low, high = np.full(runs.shape, -1.0), runs
    spread, deviations = np.sqrt(runs * rate * (1 - rate)), -special.ndtri(np.clip(error, 1e-300, 1 - 1e-16))
    middle = np.floor(runs * rate + deviations * spread + (1 - 2 * rate) * (deviations**2 - 1) / 6)
    step = 1.0
    while np.any(high - low > 1):
        middle = np.clip(middle, low + (high - low > 1), np.maximum(high - 1, low))
        enough = binomial_sf(middle, runs, rate) <= error
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        # The normal law is nearly right: steps from there are short at first. Later ones halve what is left.
        middle = np.where(enough, high - step, low + step) if step < EXACT else np.floor((low + high) / 2)
        step *= 4
    return high


def binomial_pmf(hits: ArrayLike, runs: ArrayLike, rate: ArrayLike) -> Floats:
    """Return the probability of `hits` of `runs` events."""
    # Loader, "Fast and Accurate Computation of Binomial Probabilities", 2000: no digits cancel in large numbers.
    hits, runs, rate = np.broadcast_arrays(hits, np.asarray(runs, float), rate)
    sure = np.exp(special.xlogy(hits, rate) + special.xlog1py(runs - hits, -rate))
    inside = (hits > 0) & (hits < runs) & (rate > 0) & (rate < 1)
    hits, runs, rate = (np.where(inside, part, other) for part, other in ((hits, 1.0), (runs, 2.0), (rate, 0.5)))
    others, logs = runs - hits, _beyond_stirling(runs)
    for number, mean in ((hits, runs * rate), (others, runs * (1 - rate))):
        apart = (number - mean) / mean
        logs = logs - _beyond_stirling(number) - mean * (special.xlog1py(1 + apart, apart) - apart)
    return np.asarray(np.where(inside, np.exp(logs) * np.sqrt(runs / (2 * math.pi * hits * others)), sure))


def _beyond_stirling(number: Floats) -> Floats:
    """Return the log of a factorial, less Stirling's formula."""
    square = number**2
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / square) / square) / square) / number
    exact = special.gammaln(number + 1) - (number + 0.5) * np.log(number) + number - math.log(2 * math.pi) / 2
    return np.where(number < EXACT, exact, series)
