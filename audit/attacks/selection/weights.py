"""Binned likelihood ratios, rated by the Renyi divergence that they would show, for audits and for plans."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from audit.attacks.selection.tables import grid
from audit.bounds.renyi import usual_lower
from audit.events import Event, Side, Statistic, WeightRule

__all__ = ["CLIPS", "ORDERS", "chosen_weights", "select_weights"]

Floats = NDArray[np.float64]
Sides = tuple[NDArray[np.int64], NDArray[np.int64]]

ORDERS = (1.0, 1.25, 1.5, 2.0, 4.0)  # orders of the Renyi divergence that may be bounded
CLIPS = (1.0, 2.0, 3.0, 4.0, 6.0, 9.0)  # values at which log-likelihood ratios are clipped
BINS = (8, 32)  # numbers of groups of bins in which a likelihood ratio is estimated
LEVELS = 256  # bins of a score
DOUBT = np.where(np.array(ORDERS) == 1, 1 / 3, 0.6)  # share of held variance that counts: others hang on rare values
INFINITE = 1e100  # replaces infinity in a mean, so that its square is finite


def select_weights(
    statistics: Sequence[Statistic], scores_x: Floats, scores_y: Floats, *, counting: int, confidence: float
) -> Event:
    """Return the event with the largest expected divergence: half of the scores, (runs, k), fit it, half rate it."""
    best: tuple[float, Event] = (-math.inf, Event(statistics[0], WeightRule(np.array([]), np.zeros(1))))
    half_x, half_y = len(scores_x) // 2, len(scores_y) // 2
    for column, statistic in enumerate(statistics):
        x, y = scores_x[:, column], scores_y[:, column]
        first = np.concatenate([x[:half_x], y[:half_y]])
        values = grid(first, LEVELS)
        edges = values[:-1] / 2 + values[1:] / 2  # between single values where there are few, else between quantiles
        if edges.size == 0 or min(half_x, half_y) == 0:
            continue
        rule = WeightRule(edges, np.zeros(edges.size + 1))
        fit_x, fit_y, held_x, held_y = (
            np.bincount(rule.bins(part), minlength=edges.size + 1)[None]
            for part in (x[:half_x], y[:half_y], x[half_x:], y[half_y:])
        )
        bounded = np.clip(np.clip(first, *np.quantile(first, [0.0005, 0.9995], method="nearest")), -INFINITE, INFINITE)
        center = np.bincount(rule.bins(first), bounded, edges.size + 1) / np.maximum(fit_x + fit_y, 1)[0]
        weights, order, toward_y, shown = chosen_weights(
            center, (fit_x, fit_y), (held_x, held_y), max(2, counting // 2), confidence, itself=statistic.log_ratio
        )
        if shown[0] > best[0] + 1e-12:
            toward: Side = "y" if toward_y[0, 0] else "x"
            best = float(shown[0]), Event(statistic, WeightRule(edges, weights[0], float(order[0, 0]), toward))
    return best[1]


def chosen_weights(
    center: Floats, fit: Sides, held: Sides, runs: int, confidence: float, *, itself: bool = False
) -> tuple[Floats, Floats, NDArray[np.bool_], Floats]:
    """Return the best clipped weights for each set of runs, (sets, bins), their order, direction and expected bound."""
    # Counts on `x` and on `y` have shape (sets, bins), `center` is the mean score of each bin: it may be a
    # log-likelihood ratio `itself`. `runs` is the number of counting runs on each database. The expected bound is
    # returned last, shape (sets,): of somewhat fewer runs, as held runs are not what counting runs will be.
    number = np.minimum(*(counts.sum(axis=1) for counts in held))
    held_x, held_y = (counts / counts.sum(axis=1, keepdims=True) for counts in held)
    doubted = 1 / (1 / runs + DOUBT / number[:, None])
    sets = np.arange(len(held_x))
    best = np.full(sets.size, -1.0)
    weights, order, toward_y = np.zeros(held_x.shape), np.ones((sets.size, 1)), np.ones((sets.size, 1), bool)
    for estimate in _likelihood_ratios(center, *fit, itself=itself):
        largest = np.abs(estimate).max()
        for sign, likely, other in ((1.0, held_y, held_x), (-1.0, held_x, held_y)):
            for before, clip in zip((0.0, *CLIPS), CLIPS, strict=False):
                if largest < before:  # a larger clip changes nothing
                    break
                clipped = np.clip(sign * estimate, -clip, clip)
                values = _lower(clipped, likely, other, doubted, confidence)
                which = values.argmax(axis=1)
                better = values[sets, which] > best + 1e-12
                best[better] = values[sets, which][better]
                weights[better], toward_y[better] = clipped[better], sign > 0
                order[better, 0] = np.array(ORDERS)[which[better]]
    return weights, order, toward_y, best


def _likelihood_ratios(
    center: Floats, fit_x: NDArray[np.int64], fit_y: NDArray[np.int64], *, itself: bool
) -> list[Floats]:
    """Return estimates of the log-likelihood ratio, shape (sets, bins): under normal laws, and by groups of bins."""
    runs_x, runs_y = (counts.sum(axis=1, keepdims=True) for counts in (fit_x, fit_y))
    mean_x, mean_y = (fit_x @ center)[:, None] / runs_x, (fit_y @ center)[:, None] / runs_y
    variance = sum(
        np.sum(counts * (center - mean) ** 2, axis=1, keepdims=True) / runs
        for counts, mean, runs in ((fit_x, mean_x, runs_x), (fit_y, mean_y, runs_y))
    )
    estimates = [np.broadcast_to(center, fit_x.shape)] if itself else []
    if np.all(variance > 0):
        estimates.append((center - (mean_x + mean_y) / 2) * (mean_y - mean_x) / (variance / 2))
    total = fit_x + fit_y
    rank = np.cumsum(total, axis=1) - total / 2
    first = np.arange(len(total))[:, None]
    for bins in BINS:
        group = first * bins + np.minimum((rank * (bins / (runs_x + runs_y))).astype(np.intp), bins - 1)
        grouped_x, grouped_y = (
            np.bincount(group.ravel(), counts.ravel(), len(total) * bins) + 0.5 for counts in (fit_x, fit_y)
        )
        estimates.append(np.log(grouped_y / grouped_x)[group] - np.log(runs_y / runs_x))
    return estimates


def _lower(weights: Floats, likely: Floats, other: Floats, runs: Floats, confidence: float) -> Floats:
    """Return the usual bound of `renyi_variational_lower` at every order, shape (sets, orders), as `runs` has."""
    # Weights and shares of runs have shape (sets, bins). Orders are multiples of 1/4, so one exponential gives all.
    centered = weights - weights.max(axis=1, keepdims=True)
    powers: dict[int, Floats] = {1: np.exp(centered / 4)}

    def moments(shares: Floats, quarters: list[int]) -> tuple[Floats, Floats]:
        """Return means and variances of ``exp(quarters / 4 * centered)``, or of `centered`, (sets, orders)."""
        values = [[_raised(powers, times * n) if n else centered**times for n in quarters] for times in (1, 2)]
        mean, square = np.einsum("sb,tosb->tso", shares, np.array(values))
        return mean, square - mean**2

    least, order = centered.min(axis=1, keepdims=True), np.array(ORDERS)
    quarters = [round(4 * one) for one in ORDERS]
    (mean, variance), (moment, spread) = moments(likely, [one - 4 for one in quarters]), moments(other, quarters)
    floor = np.where(order == 1, least, np.exp((order - 1) * least))
    found, _ = usual_lower(order, (mean, variance), (moment, spread), floor, (runs, runs), 1 - confidence)
    return np.maximum(found, 0.0)


def _raised(powers: dict[int, Floats], exponent: int) -> Floats:
    """Return the power of `powers[1]` with an exponent, computed from smaller powers, which are cached."""
    if exponent not in powers:
        powers[exponent] = _raised(powers, exponent // 2) * _raised(powers, exponent - exponent // 2)
    return powers[exponent]
