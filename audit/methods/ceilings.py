"""The most that runs could show, whatever came out: every guess right, every run told apart."""

from __future__ import annotations

import math

import numpy as np

from audit.bounds.game import approx_game_lower
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.limits import check_confidence
from audit.bounds.rectangle import two_sample_lower
from audit.bounds.renyi import renyi_variational_lower

__all__ = ["CLIPS", "check_plan", "divergence_ceiling", "game_ceiling", "rectangle_ceiling", "region_ceiling"]

CLIPS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0)  # largest log-likelihood ratio that is told apart


def game_ceiling(runs: int, *, confidence: float, distance: int = 1, delta: float = 0.0) -> float:
    """Return the largest loss that a guessing game could ever show: every run guessed, every guess right.

    Parameters
    ----------
    runs : int
        Counting runs.
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases.
    delta : float
        Probability that one step forgives, in [0, 1).

    Returns
    -------
    float
        Loss for one step in nats.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> round(game_ceiling(100, confidence=0.95), 4)
    3.493
    """
    check_plan(confidence, distance, runs)
    if runs < 1:
        return 0.0
    if delta > 0:
        return approx_game_lower(runs, runs, runs, delta=delta, confidence=confidence, distance=distance)
    log_rate = math.log1p(-confidence) / runs  # all right has probability rate**runs
    return max(0.0, log_rate - math.log(-math.expm1(log_rate))) / distance


def rectangle_ceiling(runs_x: int, runs_y: int, *, confidence: float, distance: int = 1) -> float:
    """Return the largest loss that two Clopper-Pearson limits could ever show: the event always here, never there.

    Parameters
    ----------
    runs_x, runs_y : int
        Runs on either database.
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases.

    Returns
    -------
    float
        Loss for one step in nats.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> round(rectangle_ceiling(40, 40, confidence=0.95), 2)
    2.34
    """
    check_plan(confidence, distance, runs_x, runs_y)
    if min(runs_x, runs_y) < 1:
        return 0.0
    orders = ((runs_y, runs_x), (runs_x, runs_y))
    return (
        max(float(two_sample_lower(likely, likely, 0, other, confidence=confidence)) for likely, other in orders)
        / distance
    )


def region_ceiling(runs_x: int, runs_y: int, *, confidence: float, distance: int = 1) -> float:
    """Return the largest shift of normal laws that one region could ever show: certain here, never seen there.

    Parameters
    ----------
    runs_x, runs_y : int
        Runs on either database.
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases.

    Returns
    -------
    float
        The mu of one step.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> round(region_ceiling(1000, 1000, confidence=0.95), 2)
    5.36
    """
    check_plan(confidence, distance, runs_x, runs_y)
    if min(runs_x, runs_y) < 1:
        return 0.0
    return float(gaussian_lower(runs_y, runs_y, 0, runs_x, confidence=confidence)) / distance


def divergence_ceiling(runs_x: int, runs_y: int, *, confidence: float, distance: int = 1) -> float:
    """Return the largest rho that a likelihood ratio could ever show: of databases that no output confuses.

    Parameters
    ----------
    runs_x, runs_y : int
        Runs on either database.
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases.

    Returns
    -------
    float
        The rho of one step.

    Raises
    ------
    ValueError
        If a number is out of its range.
    """
    check_plan(confidence, distance, runs_x, runs_y)
    if min(runs_x, runs_y) < 2:
        return 0.0
    return (
        max(
            renyi_variational_lower(
                np.array([-clip, clip]),
                np.array([0, runs_y]),
                np.array([runs_x, 0]),
                order=1.0,
                confidence=confidence,
            )
            for clip in CLIPS
        )
        / distance**2
    )


def check_plan(confidence: float, distance: int, *runs: int, power: float = 0.5, **promised: float) -> None:
    """Refuse numbers of a plan that are out of range.

    Parameters
    ----------
    confidence : float
        One-sided, in (0, 1).
    distance : int
        Steps between the two databases, at least 1.
    *runs : int
        Numbers of runs, 0 or more each.
    power : float
        Probability of a verdict, in (0, 1).
    **promised : float
        Budgets by their names, 0 or more each.

    Raises
    ------
    ValueError
        If one is.
    """
    check_confidence(confidence)
    if not distance >= 1:
        raise ValueError(f"distance must be at least 1, got {distance}")
    if not min(runs) >= 0:
        raise ValueError(f"runs must be 0 or more, got {min(runs)}")
    for name, budget in promised.items():
        if not budget >= 0:
            raise ValueError(f"{name} must be 0 or more, got {budget}")
    if not 0 < power < 1:
        raise ValueError(f"power must be in (0, 1), got {power}")
