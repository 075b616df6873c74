"""Accuracy of bottom-up releases over replicates and budgets: the curve by which an office chooses epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bottom_up.mechanism import BottomUp
from algorithms.bottom_up.weighted import WeightedBottomUp
from algorithms.noise import Rng, TwoTailedGeometric
from algorithms.noise.margins import inside
from algorithms.noise.quadrature import mean_magnitude
from audit.arguments import whole_number

__all__ = ["Accuracy", "Norm", "accuracy", "expected_error"]

Floats = NDArray[np.float64]

CHUNK = 1 << 22  # cells drawn at a time


@dataclass(frozen=True, eq=False)
class Norm:
    """Mean absolute or squared error over the cells of each replicate, and the accuracy computed from it.

    `scale` is the error of publishing zeros. `expected` is the error under the exact geometric law (None where counts
    are calibrated). `interval` contains the share `confidence` of the replicates.
    """

    errors: Floats
    scale: float
    expected: float | None
    confidence: float

    @property
    def error(self) -> float:
        """Mean of the errors over replicates: the norm of Clark and Dajani."""
        return float(self.errors.mean())

    @property
    def accuracy(self) -> float:
        """1 - `error` / `scale`: 1 without noise, 0 if no better than publishing zeros, negative if worse."""
        return 1 - self.error / self.scale

    @property
    def expected_accuracy(self) -> float | None:
        """Expectation of `accuracy`, or None if it is unknown."""
        return None if self.expected is None else 1 - self.expected / self.scale

    @property
    def interval(self) -> tuple[float, float]:
        """Quantiles of the replicates' accuracies: a prediction interval for the accuracy of a single release."""
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(1 - self.errors / self.scale, [tail, 1 - tail])
        return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Accuracy at one epsilon, in nats, of the counts of one level: cells of reported areas, and both norms."""

    epsilon: float
    cells: int
    l1: Norm
    l2: Norm


def accuracy(
    mechanism: BottomUp | WeightedBottomUp,
    data: ArrayLike,
    rng: Rng,
    *,
    replicates: int = 100,
    level: int | None = None,
    confidence: float = 0.95,
) -> Accuracy:
    """Replicate a release and compare it with the true counts of cells, or of areas of `level`; this is not private.

    With n the true counts and m the published ones, accuracies are ``1 - sum|m - n| / sum n`` and
    ``1 - sum (m - n)**2 / sum n**2``. Without calibration they are below 1 by ``1 / (sinh(epsilon) mean(n))`` and
    about ``2 / (epsilon**2 mean(n**2))``.
    """
    whole_number("replicates", replicates, least=2)
    inside(confidence)
    counted = mechanism.of_counts
    exact = mechanism.counts(data)
    table = exact.reshape(len(exact), -1)
    truth = _of_level(counted, table, level)
    errors: list[tuple[float, float]] = []
    reported = np.zeros(truth.shape, np.bool_)
    while len(errors) < replicates:
        size = min(replicates - len(errors), max(1, CHUNK // exact.size))
        noisy = _of_level(counted, counted(exact, size, rng).reshape(size, *table.shape), level)
        reported = ~np.isnan(noisy[0])  # the same areas in every replicate
        if not reported.any():
            raise ValueError("at least one area must be reported, got none that agrees with its published total")
        for one in noisy:
            difference = (one - truth)[reported]
            errors.append((float(np.abs(difference).mean()), float(np.square(difference).mean())))
    scales = float(truth[reported].mean()), float(np.square(truth[reported]).mean())
    if not scales[0]:
        raise ValueError("accuracy needs a true count above 0, got zeros only")
    expected = _expected(counted, table, level) if counted.published is None else (None, None)
    norms = [
        Norm(np.array(errors_of_law), scale, mean, confidence)
        for errors_of_law, scale, mean in zip(zip(*errors, strict=True), scales, expected, strict=True)
    ]
    return Accuracy(TwoTailedGeometric(mechanism.epsilon).epsilon, int(reported.sum()), *norms)


def expected_error(epsilon: float, cells: int) -> float:
    """Return the expected absolute error, in people, of a sum of noisy cells; for one cell it is ``1 / sinh(epsilon)``.

    The characteristic function of one cell's noise at t is the reciprocal of ``1 + 2q (1 - cos t) / (1 - q)**2``.
    """
    q = math.exp(-TwoTailedGeometric(epsilon).epsilon)
    ratio = 2 * q / math.expm1(-epsilon) ** 2

    def log_characteristic(tangent: Floats) -> Floats:
        square = np.square(tangent)
        return np.asarray(-cells * np.log1p(ratio * 2 * square / (1 + square)))

    return mean_magnitude(log_characteristic, cells * ratio)


def _of_level(counted: BottomUp, table: NDArray[Any], level: int | None) -> Floats:
    if level is None:
        return table.astype(np.float64)
    if counted.tree is None:
        raise ValueError(f"level {level} needs a tree of areas, got none")
    return counted.tables(table)[..., counted.tree.level(level), :].astype(np.float64)


def _expected(counted: BottomUp, table: NDArray[np.int64], level: int | None) -> tuple[float, float]:
    """Return the expected mean absolute and mean squared errors: the noise of a count is the sum over its leaves."""
    law = TwoTailedGeometric(counted.epsilon)
    leaves = _of_level(counted, np.ones((len(table), 1)), level).astype(np.int64)
    numbers, areas = np.unique(leaves, return_counts=True)
    absolute = [expected_error(law.epsilon, int(number)) for number in numbers]
    return float(np.average(absolute, weights=areas)), float(leaves.mean() * law.variance)
