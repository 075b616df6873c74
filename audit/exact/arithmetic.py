"""Sums and products of many small probabilities without loss of relative precision."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["convolve", "either", "log_sum", "merge", "spread"]

Floats = NDArray[np.float64]
SAME_LOSS = 12  # decimals to which composed losses count as equal: far below any loss that matters
PIECE = 2**12  # terms of a product that are added up at a time


def convolve(first: Floats, second: Floats) -> Floats:
    """Return the convolution by direct sums, in pieces so short that BLAS uses no other threads, which would wait."""
    long, short = (first, second) if first.size >= second.size else (second, first)
    out = np.zeros(long.size + short.size - 1)
    for start in range(0, short.size, PIECE):
        piece = short[start : start + PIECE]
        out[start : start + long.size + piece.size - 1] += np.convolve(long, piece)
    return out


def log_sum(logs: Floats) -> float:
    """Log of the sum of exponentials, to full precision; minus infinity if there are none."""
    top = float(logs.max(initial=-math.inf))
    if top == -math.inf:
        return top
    with np.errstate(over="ignore"):
        return top + math.log(math.fsum(np.exp(logs - top)))


def either(first: float, second: float) -> float:
    """Probability of at least one of two independent events, also of masses far below the spacing of floats at 1."""
    return first + second - first * second


def merge(loss: Floats, log_p: Floats) -> tuple[Floats, Floats]:
    """Sort by loss and add up the probabilities of equal losses."""
    order = np.argsort(loss, kind="stable")
    loss, log_p = loss[order], log_p[order]
    with np.errstate(over="ignore", invalid="ignore"):  # beyond 1e296, where losses need not be distinguished
        rises = np.diff(np.round(loss, SAME_LOSS)) > 0
    starts = np.flatnonzero(np.append(True, rises)) if loss.size else np.array([], int)
    return loss[starts], np.logaddexp.reduceat(log_p, starts) if loss.size else log_p


def spread(loss: Floats, log_p: Floats, grid: float) -> tuple[Floats, Floats]:
    """Split the mass of each loss between the two points around it of a grid from the lowest on; return `p` and `q`."""
    steps = np.rint((loss - loss[0]) / grid)
    steps -= loss[0] + steps * grid > loss
    over = np.maximum(loss - (loss[0] + steps * grid), 0.0)
    # The part a of p and the part b of q go up, such that a p / (b q) is the ratio at the upper point; also below.
    up_p = np.minimum(np.expm1(-over) / math.expm1(-grid), 1.0)
    up_q = 1 - np.minimum(np.expm1(np.minimum(over - grid, 0.0)) / math.expm1(-grid), 1.0)
    place = steps.astype(np.int64)
    p, q = np.zeros((2, int(place[-1]) + 2))
    for out, mass, up in ((p, np.exp(log_p), up_p), (q, np.exp(log_p - loss), up_q)):
        np.add.at(out, place, mass * (1 - up))
        np.add.at(out, place + 1, mass * up)
    return p, q
