"""Where a function of one number is zero; scipy.optimize has the same, but takes a third of a second to import."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["brentq"]

XTOL, RTOL, STEPS = 2e-12, 8.881784197001252e-16, 1000  # the tolerances of scipy; steps, which are a dozen mostly


def brentq(
    function: Callable[[float], float], low: float, high: float, *, xtol: float = XTOL, rtol: float = RTOL
) -> float:
    """Return a zero between two points of unlike signs, to the bit as `scipy.optimize.brentq` (Brent, 1973)."""

    def value(at: float) -> float:
        if math.isnan(number := float(function(at))):
            raise ValueError(f"the function has no value at {at}")
        return number

    # The zero is between `x` and `opposite`, of which `x` has the smaller value; `before` is the last `x`.
    before, x = float(low), float(high)
    f_before, f = value(before), value(x)
    if 0.0 in (f_before, f):
        return before if f_before == 0 else x
    if (f_before > 0) == (f > 0):
        raise ValueError(f"the signs at {low} and {high} must be unlike, got {f_before} and {f}")
    opposite, f_opposite, step, last_step = before, f_before, x - before, x - before
    for _ in range(STEPS):
        if (f_before > 0) != (f > 0):
            opposite, f_opposite, step, last_step = before, f_before, x - before, x - before
        if abs(f_opposite) < abs(f):
            before, x, opposite, f_before, f, f_opposite = x, opposite, x, f, f_opposite, f
        near, half = (xtol + rtol * abs(x)) / 2, (opposite - x) / 2
        if f == 0 or abs(half) < near:
            return x
        attempt = math.inf
        if abs(last_step) > near and abs(f) < abs(f_before):
            if before == opposite:
                attempt = -f * (x - before) / (f - f_before)
            else:
                slope, other = (f_before - f) / (before - x), (f_opposite - f) / (opposite - x)
                if divisor := other * slope * (f_opposite - f_before):
                    attempt = -f * (f_opposite * other - f_before * slope) / divisor
        short = 2 * abs(attempt) < min(abs(last_step), 3 * abs(half) - near)
        last_step, step = (step, attempt) if short else (half, half)
        before, f_before = x, f
        x += step if abs(step) > near else math.copysign(near, half)
        f = value(x)
    raise RuntimeError(f"no zero was found in {STEPS} steps: the last point is {x}")
