"""The privacy loss of values with noise that differ between two databases, from the law of the noise.

A law has a method ``losses_of(shifts)``; it may have ``tabulated_exactly``, by default True. `audit.replay` finds this
module by entry point.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from algorithms.noise.counts import CELLS, DISJOINT
from algorithms.noise.drawing import Law, watched
from audit.exact import LossDistribution, compose_losses

__all__ = ["loss_of_changes", "losses_of_change", "tabulated_exactly", "watched"]


def losses_of_change(law: Law, change: ArrayLike) -> list[LossDistribution] | None:
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


def loss_of_changes(changes: Iterable[tuple[Law, ArrayLike]]) -> LossDistribution | None:
    """Return the joint loss of all values that differ, from each law and the changes under it: `losses_of_change`.

    None also where more than 1,000 tables would have to be composed.
    """
    parts: list[LossDistribution] = []
    for law, change in changes:
        if (losses := losses_of_change(law, change)) is None:
            return None
        parts += losses
    if len(parts) > CELLS:
        return None
    return parts[0] if len(parts) == 1 else compose_losses(parts)


def tabulated_exactly(law: Law) -> bool:
    """Tell whether the loss of a law is exact as a whole. Of Laplace noise only its maximum is."""
    return bool(getattr(law, "tabulated_exactly", True))
