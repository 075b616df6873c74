"""Margins of error: half widths of intervals that contain whole-number noise with a given probability."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.arguments import real_number

__all__ = ["Tail", "beyond", "checked_margin", "coverage", "exact_margin_of_error", "inside", "least_margin"]


class Tail(Protocol):
    """A law on the whole numbers that is symmetric about 0."""

    def sf(self, x: ArrayLike, /) -> NDArray[np.float64]:
        """Return the probability of ``noise > x``."""
        ...


def coverage(law: Tail, margin: float) -> float:
    """Return the exact probability that the magnitude of the noise is at most a margin, in persons or households."""
    return 1.0 - beyond(law, checked_margin(margin))


def exact_margin_of_error(law: Tail, confidence: float = 0.9) -> int:
    """Return the least k, in persons or households, with ``P(|noise| <= k) >= confidence``."""
    return least_margin(law, 1 - inside(confidence))


def least_margin(law: Tail, missed: float) -> int:
    """Return the least k with ``P(|noise| > k) <= missed``, exactly, by bisection."""
    short, enough = -1, 1
    while beyond(law, enough) > missed:
        short, enough = enough, 2 * enough
    while enough - short > 1:
        middle = (short + enough) // 2
        short, enough = (middle, enough) if beyond(law, middle) > missed else (short, middle)
    return enough


def beyond(law: Tail, margin: float) -> float:
    """Return the probability that the magnitude of the noise is larger than a margin."""
    return 2 * float(law.sf(margin))  # the laws are symmetric


def inside(confidence: float) -> float:
    """Return a confidence; refuse one that is not between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    return confidence


def checked_margin(margin: float, *, least: int = 0) -> float:
    """Return a margin of error; refuse numbers that are not finite or below `least`."""
    number = real_number("margin", margin)
    if not least <= number < math.inf:
        raise ValueError(f"margin must be finite and at least {least}, got {number}")
    return number
