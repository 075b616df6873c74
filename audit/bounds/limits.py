"""Exact confidence limits for the probability of an event, and checks of confidences and counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from audit.arguments import fraction

__all__ = ["check_confidence", "clopper_pearson_lower", "clopper_pearson_upper"]

Floats = NDArray[np.float64]

LEAST_CONFIDENCE = 2.0**-53


def check_confidence(confidence: float) -> None:
    """Refuse a confidence outside (0, 1), or so small that the error probability rounds to 1."""
    if isinstance(confidence, int | float) and 50 <= confidence < 100:
        raise ValueError(f"confidence must be in (0, 1), got {confidence}: {confidence:g}% is {confidence / 100:g}")
    if fraction("confidence", confidence) < LEAST_CONFIDENCE:
        raise ValueError(f"confidence must be at least {LEAST_CONFIDENCE:.2g}, got {confidence}")


def check_distance(distance: int) -> None:
    """Refuse a number of steps between two databases that is not a whole number of at least 1."""
    if not (distance >= 1 and distance == math.floor(distance)):
        raise ValueError(f"distance must be a whole number of at least 1, got {distance}")


def clopper_pearson_lower(successes: ArrayLike, runs: ArrayLike, *, confidence: float) -> Floats:
    """Lower bound on an event's probability, exact for any number of independent runs; 0 where none succeeded.

    Guarantee: P(bound > true probability) <= 1 - confidence, for every true probability.

    References
    ----------
    .. [1] Clopper and Pearson, "The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial",
       1934.

    Examples
    --------
    >>> round(float(clopper_pearson_lower(95, 100, confidence=0.95)), 3)
    0.898
    """
    hits, total = checked_counts(successes, runs)
    check_confidence(confidence)
    return np.where(hits == 0, 0.0, special.betaincinv(np.maximum(hits, 1), total - hits + 1, 1 - confidence))


def clopper_pearson_upper(successes: ArrayLike, runs: ArrayLike, *, confidence: float) -> Floats:
    """Upper bound on an event's probability, like `clopper_pearson_lower`; exactly 1 where every run succeeded.

    >>> round(float(clopper_pearson_upper(0, 100, confidence=0.95)), 3)
    0.03
    """
    hits, total = checked_counts(successes, runs)
    return 1.0 - clopper_pearson_lower(total - hits, total, confidence=confidence)


def checked_counts(successes: ArrayLike, runs: ArrayLike) -> tuple[Floats, Floats]:
    """Return events and runs as floats; refuse numbers that are not whole, and more events than runs."""
    hits, total = np.asarray(successes, float), np.asarray(runs, float)
    if not np.all((hits >= 0) & (hits <= total)):
        raise ValueError(f"events must be between 0 and the number of runs, got {successes!r} of {runs!r}")
    if not np.all((hits == np.floor(hits)) & (total == np.floor(total)) & np.isfinite(total)):
        raise ValueError(f"events and runs must be whole numbers, got {successes!r} of {runs!r}")
    return hits, total
