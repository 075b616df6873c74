"""Where a power that is simulated is reached: the least size or loss at which a quantity that rises becomes enough."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy  # loads its parts where they are used, some of which take long
from scipy import special

__all__ = ["CLOSE", "LEAST_EXCESS", "apart", "crossing"]

CLOSE = 0.004  # relative error of a size, or of an excess over the promise, where power is simulated
LEAST_EXCESS = 1e-9  # over the promise, as a share of it


def apart(found: float, wanted: float) -> float:
    """Return by how many standard errors one power exceeds another: nearly a line in the root of the runs."""
    return float(special.ndtri(np.clip(found, 1e-15, 1 - 1e-15)) - special.ndtri(wanted))


def crossing(excess: Callable[[float], float], start: float, bottom: float, top: float, close: float) -> float:
    """Return where a quantity that rises becomes 0 or more: `bottom` if it is so there, infinity if not at `top`."""
    low = high = start
    step = 0.25
    while excess(low) >= 0:
        if low <= bottom:
            return bottom
        low, high, step = max(bottom, low - step), low, 2 * step
    while excess(high) < 0:
        if high >= top:
            return math.inf
        low, high, step = high, min(top, high + step), 2 * step
    found = float(scipy.optimize.brentq(excess, low, high, xtol=close))
    while excess(found) < 0:
        found += close
    return found
