"""The privacy loss of values with noise that differ between two databases, from the law of the noise.

A law has a method ``losses_of(shifts)``; it may have ``tabulated_exactly``, by default True. `audit.replay` finds this
module by entry point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.noise.counts import DISJOINT
from algorithms.noise.drawing import Law, watched
from audit.exact import LossDistribution

__all__ = ["losses_of_change", "tabulated_exactly", "watched"]


def losses_of_change(law: Law, change: NDArray[Any]) -> list[LossDistribution] | None:
    """Return the losses of values that differ, each with noise of its own: independent, to be composed.

    None where the loss of the law is not known, or its table would be too large. `LossDistribution.maximum` is exact,
    and so is all else where `tabulated_exactly` says so, except for noise on the real line: there it is an upper bound
    on a fine grid. That noise is taken for what the law says, its floating-point numbers for real ones. Values that
    differ by a fraction have no output in common after whole-number noise.
    """
    shifts = np.abs(np.asarray(change, np.float64).ravel())
    shifts = shifts[shifts != 0]
    if not shifts.size:
        return []
    if not np.isfinite(shifts).all():
        return [DISJOINT]
    losses: list[LossDistribution] | None = law.losses_of(shifts) if hasattr(law, "losses_of") else None
    return losses


def tabulated_exactly(law: Law) -> bool:
    """Tell whether the loss of a law is exact as a whole, and not in its maximum alone, as that of Laplace noise."""
    return bool(getattr(law, "tabulated_exactly", True))
