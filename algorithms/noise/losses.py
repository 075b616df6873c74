"""The privacy loss of noisy values that differ between two databases, computed from the law of the noise.

A law has a method ``losses_of(shifts)``; it may have ``tabulated_exactly``, by default True. `audit.replay` loads this
module by its entry point.
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
    """Return the losses of values that differ, with independent noise each; the caller composes them.

    None if the loss of the law is unknown or its table would be too large. `LossDistribution.maximum` is exact. The
    rest is exact too if `tabulated_exactly` is True, except for noise on the real line: there it is an upper bound on a
    fine grid, which ignores floating-point effects. Values that differ by a fraction have no output in common after
    whole-number noise.
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
    """Return the joint loss of all values that differ, given each law and the changes of its values.

    None as in `losses_of_change`, and if more than 1,000 tables would have to be composed.
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
    """Return whether the whole loss table of a law is exact; for Laplace noise only the maximum is."""
    return bool(getattr(law, "tabulated_exactly", True))
