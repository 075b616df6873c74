"""A lower bound on rho that holds for integer answers with discrete Gaussian noise only."""

from __future__ import annotations

import math

import numpy as np

from audit.bounds.limits import check_distance
from audit.bounds.rectangle import rectangle

__all__ = ["discrete_gaussian_lower"]

SMALLEST_RHO, LARGEST_RHO = 1e-7, 1e4  # below, the lattice is too fine to be summed; above, there is no noise


def discrete_gaussian_lower(
    events_y: int, runs_y: int, events_x: int, runs_x: int, *, confidence: float, distance: int = 1
) -> float:
    """Lower bound on rho within one family: integer answers with discrete Gaussian noise, from one event.

    It tells which discrete Gaussian the event could come from. Against any other mechanism it shows nothing.

    Parameters
    ----------
    events_y, runs_y, events_x, runs_x : int
        As in `two_sample_lower`.
    confidence : float
        One-sided coverage, in (0, 1), shared equally by the two probabilities.
    distance : int
        Difference of the two answers, at least 1.

    Returns
    -------
    float
        Rho of one step, 0 or more: already divided, unlike that of the bounds for every mechanism. A rho below 1e-7
        reads 0.

    Raises
    ------
    ValueError
        If events are not between 0 and runs, or `confidence` or `distance` is out of range.

    Notes
    -----
    Guarantee: P(bound > rho) <= 1 - confidence if the outputs are one answer plus discrete Gaussian noise of variance
    ``1 / (2 rho)``, or a function of them. No test of that noise against its shift reaches more than the Neyman-Pearson
    curve; the bound is the least rho whose curve reaches the rectangle's corner.
    Units: nats.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020, definition 1 and
       theorem 4.
    .. [2] Neyman and Pearson, "On the Problem of the Most Efficient Tests of Statistical Hypotheses", 1933.

    Examples
    --------
    >>> round(discrete_gaussian_lower(6995, 10_000, 3005, 10_000, confidence=0.95), 3)
    0.456
    """
    check_distance(distance)
    low, high = map(float, rectangle(events_y, runs_y, events_x, runs_x, confidence=confidence))
    if low <= high:
        return 0.0
    # Power does not always rise with rho: at the lattice's steps it may fall. So the least rho is found by excluding
    # whole ranges, from the left.
    bottom, top = math.log(SMALLEST_RHO), math.log(LARGEST_RHO)
    ranges = [(bottom, top)]
    while True:
        left, right = ranges.pop()
        if _power_limit(high, math.exp(left), math.exp(right), int(distance)) < low:
            continue
        if right - left < 1e-5:
            return 0.0 if left == bottom else math.exp(left)
        middle = (left + right) / 2
        ranges += [(middle, right), (left, middle)]


def _power_limit(level: float, least: float, greatest: float, shift: int) -> float:
    """Bound the power of tests of discrete Gaussian noise against its shift, for every rho in a range.

    The best events of probability `level` are upper tails, the last value of which may be named by a coin. Tails of
    positive values shrink as rho grows and the others grow, so that their extremes over a range lie at its ends.
    """
    reach = math.ceil(10 / math.sqrt(2 * least)) + shift + 1  # what lies beyond 10 deviations is below 1e-22
    squares = np.arange(-reach, reach + 1).astype(float) ** 2
    weights = np.exp(-np.outer([least, greatest], squares))
    tails = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)  # from the greatest value on
    lower, upper = tails.min(axis=0), tails.max(axis=0)
    return float(np.interp(level, np.append(0.0, lower[:-shift]), np.append(0.0, upper[shift:])))
