"""How often guesses are right by scores that are meant to be log-likelihood ratios, and whether runs contradict."""

from __future__ import annotations

import math

import numpy as np
import scipy  # loads its parts where they are used, some of which take long
from numpy.typing import NDArray
from scipy import special

from audit.events import Statistic

__all__ = ["factor", "is_log_ratio", "stated_accuracy"]

Floats = NDArray[np.float64]

STEEPEST = 30.0  # log-likelihood ratio from which no run is wrong


def factor(statistic: Statistic, x: Floats, y: Floats) -> float:
    """Return the log-likelihood ratio that a score of 1 stands for: most likely where only runs can tell, 0 if none."""
    if not statistic.proportional:
        return float(statistic.log_ratio)
    largest = float(max(np.abs(x).max(), np.abs(y).max()))

    def slope(by: float) -> float:
        """Return how the likelihood of which runs are on which database grows with the factor: ever less."""
        return float(np.sum(y * special.expit(-by * y)) - np.sum(x * special.expit(by * x)))

    steepest = STEEPEST / largest
    if slope(0.0) <= 0:
        return 0.0
    return steepest if slope(steepest) >= 0 else float(scipy.optimize.brentq(slope, 0.0, steepest, rtol=1e-6))


def is_log_ratio(x: Floats, y: Floats, pessimism: float) -> bool:
    """Tell whether guesses by the sign of what should be a log-likelihood ratio are right as often as it says."""
    stated = special.expit(np.abs(np.concatenate([x[x != 0], y[y != 0]])))
    right = np.sum(x < 0) + np.sum(y > 0)
    return bool(abs(right - stated.sum()) <= pessimism * math.sqrt(float(np.sum(stated * (1 - stated)))) + 1)


def stated_accuracy(x: Floats, y: Floats, low: Floats, high: Floats) -> Floats:
    """Return how often guesses beyond any two thresholds are right, if scores are log-likelihood ratios."""
    scores = np.sort(np.concatenate([x, y]))
    right_up = np.append(np.cumsum(special.expit(scores)[::-1])[::-1], 0.0)
    right_down = np.append(0.0, np.cumsum(special.expit(-scores)))
    below, from_above = np.searchsorted(scores, low, "right"), np.searchsorted(scores, high, "left")
    guesses = np.add.outer(below, scores.size - from_above)
    return np.asarray(np.add.outer(right_down[below], right_up[from_above]) / np.maximum(guesses, 1))
