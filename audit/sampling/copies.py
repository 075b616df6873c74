"""Tests of repeated outputs: single ones that repeat more often than by chance, and batches that repeat as a whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py

__all__ = ["CHANCE", "chance_of_repeat", "check_not_copied"]

COPIES = 16  # most repeats of an output that are tested
COPIED = 1e-11  # significance level of this test
CHANCE = 1e-12  # probability below which a repeat is not due to chance


def check_not_copied(outputs: NDArray[Any]) -> None:
    """Refuse outputs of one database that occur several times more often than chance explains.

    Under any law, if some independent outputs occur k times, others occur k - 1 or k + 1 times. For a Poisson number of
    runs, an output occurs k times with probability ``exp(-r) * r**k / k!``. Take a product of weights, one for each
    output, of ``1 - b`` for those that occur k - 1 times, ``1 - c`` for k + 1 times and
    ``1 + 2 * sqrt(b * c * k / (k + 1))`` for k times. Its mean is at most 1 at every r, by completing the square; for a
    fixed number of runs it is at most ``sqrt(2 * pi * runs) * exp(1 / 12)``. By Markov's inequality it is 1 / p times
    that with probability p at most; every k and every pair of weights has a share of that p.
    """
    often = np.bincount(_repeats(outputs), minlength=COPIES + 2)[: COPIES + 2]
    k = np.arange(2, COPIES + 1)[:, None]
    b, c = np.repeat(4.0 ** -np.arange(10), 2), np.tile([1.0, 0.5], 10)
    evidence = often[k] * np.log1p(2 * np.sqrt(b * c * k / (k + 1))) + xlog1py(often[k - 1], -b)
    evidence += xlog1py(often[k + 1], -c) - np.log(b.size * k * (k - 1))
    if evidence.max() > math.log(2 * math.pi * len(outputs)) / 2 + 1 / 12 - math.log(COPIED):
        times = 2 + int(evidence.max(axis=1).argmax())
        raise ValueError(
            f"runs must be independent: {often[times]} outputs occur {times} times each, more than chance explains"
        )


def chance_of_repeat(outputs: NDArray[Any]) -> float:
    """Estimate the probability that a second, independent batch equals this one, run by run."""
    counts = _repeats(outputs)
    return float(np.sum((counts / len(outputs)) ** 2) ** len(outputs))


def _repeats(outputs: NDArray[Any]) -> NDArray[np.intp]:
    flat = outputs.reshape(len(outputs), -1)
    return np.unique(flat, axis=None if flat.shape[1] == 1 else 0, return_counts=True)[1]  # whole rows sort slowly
