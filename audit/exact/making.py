"""Construction of laws of the privacy loss: from two laws of outputs, or from the losses of several outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.exact.arithmetic import merge
from audit.exact.law import LossDistribution

__all__ = ["EXACT_LISTED", "STEPS", "compose_losses", "loss_distribution", "loss_from_logs"]

Floats = NDArray[np.float64]
SMALLEST = 1e-290  # smaller floats lose digits, and possible outputs soon have probability 0
EXACT_LISTED = 2**20  # most outcomes of two laws that are listed one by one where a grid may take over
STEPS = 2**15  # steps of the grid that takes over, from the least to the greatest loss


def loss_distribution(p: ArrayLike, q: ArrayLike) -> LossDistribution:
    """Return the law of the privacy loss of an output drawn from `p` rather than `q`.

    Parameters
    ----------
    p, q : array_like of float, shape (m,)
        Probabilities of the same `m` outputs on the first and the second database; each adds up to 1 within 1e-9. An
        output with probability 0 is impossible on that database. Outputs with both below 1e-290 are left out.

    Returns
    -------
    LossDistribution
        In nats, in the order `p` over `q`.

    Raises
    ------
    ValueError
        If `p` and `q` are not two laws over the same outputs.

    Examples
    --------
    >>> law = loss_distribution([0.75, 0.25], [0.25, 0.75])  # randomized response
    >>> round(law.maximum, 6), round(law.delta_at(0.0), 6)
    (1.098612, 0.5)
    """
    first, second = np.asarray(p, float), np.asarray(q, float)
    if first.ndim != 1 or first.shape != second.shape or first.size == 0:
        raise ValueError(
            f"p and q must be two lists over the same outputs, got shapes {first.shape} and {second.shape}"
        )
    for name, law in (("p", first), ("q", second)):
        if not np.all(law >= 0):
            raise ValueError(f"{name} must hold probabilities of 0 or more, got {law[~(law >= 0)][0]}")
        if abs((total := math.fsum(law)) - 1) > 1e-9:
            raise ValueError(f"{name} must add up to 1, got {total}")
    likely = np.maximum(first, second) >= SMALLEST
    with np.errstate(divide="ignore"):
        return loss_from_logs(np.log(first[likely]), np.log(second[likely]))


def compose_losses(laws: Iterable[LossDistribution]) -> LossDistribution:
    """Return the loss of several independent outputs seen together, however large their tables are.

    Exact as long as a product of two tables has at most 2**20 outputs; beyond that, an upper bound on a grid of up to
    2**15 steps (see `LossDistribution.compose`), exact if the grid holds all losses.

    >>> law = loss_distribution([0.75, 0.25], [0.25, 0.75])
    >>> compose_losses([law, law, law])
    LossDistribution(4 losses, maximum 3.29584)
    """
    parts = list(laws)
    coarse = sum(float(np.ptp(law.loss)) for law in parts if law.loss.size) / STEPS
    finest = min((float(np.diff(law.loss).min()) for law in parts if law.loss.size > 1), default=1.0)
    grid = finest * math.ceil(max(coarse / finest, 1.0))
    total, listed = LossDistribution(np.zeros(1), np.zeros(1)), True
    for law in parts:
        listed = listed and total.loss.size * law.loss.size <= EXACT_LISTED
        total = total.compose(law, grid=None if listed else grid)
    return total


def loss_from_logs(
    log_p: Floats, log_q: Floats, supremum: float | None = None, infimum: float | None = None
) -> LossDistribution:
    """Return the law of the privacy loss from log-probabilities, shape (m,), -inf if impossible: far tails are kept."""
    both = np.isfinite(log_p) & np.isfinite(log_q)
    infinite = math.fsum(np.exp(log_p[np.isneginf(log_q)]))
    missing = math.fsum(np.exp(log_q[np.isneginf(log_p)]))
    return LossDistribution(*merge(log_p[both] - log_q[both], log_p[both]), infinite, missing, supremum, infimum)
