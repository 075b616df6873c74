"""How close a bottom-up release comes to the truth, over replicates and budgets: the curve to choose epsilon by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bottom_up.mechanism import BottomUp
from algorithms.bottom_up.weighted import WeightedBottomUp
from algorithms.noise import Rng, TwoTailedGeometric
from algorithms.noise.quadrature import mean_magnitude
from audit.arguments import whole_number

__all__ = ["Accuracy", "Norm", "accuracy", "curve", "expected_error", "smallest_epsilon"]

Floats = NDArray[np.float64]

CHUNK = 1 << 22  # cells drawn at a time


@dataclass(frozen=True, eq=False)
class Norm:
    """Errors of one kind, absolute or squared, and the accuracy that they leave.

    Attributes
    ----------
    errors : ndarray of float, shape (replicates,)
        Average over cells of each replicate, in people or squared people.
    scale : float
        Average of the true counts, or of their squares: the error of publishing zeros.
    expected : float or None
        Expectation of `errors` under the geometric law; None where counts are calibrated. Under that of
        ``noise="inverse_cdf"`` the absolute error of a cell differs by less than ``1e-13 / epsilon``, its square by
        less than ``1e-12 / epsilon**2``.
    confidence : float
        Share of replicates that `interval` holds.
    """

    errors: Floats
    scale: float
    expected: float | None
    confidence: float

    @property
    def error(self) -> float:
        """Average over replicates too: the authors' norm."""
        return float(self.errors.mean())

    @property
    def accuracy(self) -> float:
        """One minus `error` over `scale`: one without noise, 0 as good as zeros, negative where noise is worse."""
        return 1 - self.error / self.scale

    @property
    def expected_accuracy(self) -> float | None:
        """Expectation of `accuracy`, where it is known."""
        return None if self.expected is None else 1 - self.expected / self.scale

    @property
    def interval(self) -> tuple[float, float]:
        """Accuracies between which the middle replicates lie: where that of a single release may fall."""
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(1 - self.errors / self.scale, [tail, 1 - tail])
        return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Accuracy of the counts of one level at one epsilon.

    Attributes
    ----------
    epsilon : float
        Of the release, in nats.
    cells : int
        Counts that are compared: those of reported areas.
    l1, l2 : Norm
        Average absolute and average squared difference of published and true counts.
    """

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
    """Replicate a release and compare it with the true counts, as the authors do to choose epsilon.

    Parameters
    ----------
    mechanism : BottomUp or WeightedBottomUp
        With its budget.
    data : array_like
        As the mechanism takes it. The result depends on the true counts and is no private output: it is for public or
        older data, or for those who may see the data.
    rng : numpy Generator or "secure"
        Source of noise.
    replicates : int
        Releases, at least 2.
    level : int, optional
        Compare the cells of areas of this level of the tree. Default: the finest cells.
    confidence : float
        Share of replicates in the intervals, between 0 and 1.

    Returns
    -------
    Accuracy
        Norms and accuracies. Weighted counts are compared after they are rounded.

    Raises
    ------
    ValueError
        If there are fewer than 2 replicates, the confidence is not between 0 and 1, there is no such level, no area is
        reported, or all true counts are 0.
    TypeError
        If `replicates` is no integer.

    Notes
    -----
    With n the true counts and m the published ones, the two accuracies are ``1 - sum|m - n| / sum n`` and
    ``1 - sum (m - n)**2 / sum n**2``: one minus the error in units of that of publishing zeros. Without calibration the
    first falls short of one by ``1 / (sinh(epsilon) mean(n))``, about ``1 / (epsilon mean(n))``, and the second by
    about ``2 / (epsilon**2 mean(n**2))``: the square of the first, twice over, times ``mean(n)**2 / mean(n**2)``. Where
    populations are high, L2 reaches one first.

    Examples
    --------
    >>> found = accuracy(BottomUp(1.0), [400, 100, 0], np.random.default_rng(0))
    >>> round(found.l1.expected, 4), round(found.l1.expected_accuracy, 4), round(found.l2.expected_accuracy, 6)
    (0.8509, 0.9949, 0.999968)
    """
    whole_number("replicates", replicates, least=2)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    counted = mechanism.of_counts
    exact = mechanism.counts(data)
    table = exact.reshape(len(exact), -1)
    truth = _of_level(counted, table, level)
    errors: list[tuple[float, float]] = []
    shown = np.zeros(truth.shape, np.bool_)
    while len(errors) < replicates:
        size = min(replicates - len(errors), max(1, CHUNK // exact.size))
        noisy = _of_level(counted, counted(exact, size, rng).reshape(size, *table.shape), level)
        shown = ~np.isnan(noisy[0])  # the same areas in every replicate
        if not shown.any():
            raise ValueError("at least one area must be reported, got none that agrees with its published total")
        for one in noisy:
            apart = (one - truth)[shown]
            errors.append((float(np.abs(apart).mean()), float(np.square(apart).mean())))
    scales = float(truth[shown].mean()), float(np.square(truth[shown]).mean())
    if not scales[0]:
        raise ValueError("accuracy needs a true count above 0, got zeros only")
    expected = _expected(counted, table, level) if counted.published is None else (None, None)
    norms = [
        Norm(np.array(found), scale, mean, confidence)
        for found, scale, mean in zip(zip(*errors, strict=True), scales, expected, strict=True)
    ]
    return Accuracy(TwoTailedGeometric(mechanism.epsilon).epsilon, int(shown.sum()), *norms)


def curve(
    mechanism: BottomUp | WeightedBottomUp, data: ArrayLike, rng: Rng, *, epsilons: Sequence[float], **options: Any
) -> list[Accuracy]:
    """Return the accuracies at several budgets, in increasing order.

    Parameters
    ----------
    mechanism : BottomUp or WeightedBottomUp
        Whose budget is replaced.
    data, rng, **options
        As `accuracy` takes them.
    epsilons : sequence of float
        Budgets in nats.

    Returns
    -------
    list of Accuracy
        One for each.

    Raises
    ------
    ValueError
        If there is no epsilon, one is out of range, and as `accuracy`.
    TypeError
        As `accuracy`.
    """
    if not len(epsilons):
        raise ValueError("epsilons must be at least one, got none")
    return [accuracy(replace(mechanism, epsilon=epsilon), data, rng, **options) for epsilon in sorted(epsilons)]


def smallest_epsilon(found: Sequence[Accuracy], target: float, *, norm: Literal["l1", "l2"] = "l1") -> float:
    """Return the smallest epsilon tried from which on the lower end of the interval reaches a target.

    Parameters
    ----------
    found : sequence of Accuracy
        Of several epsilons, such as `curve` returns.
    target : float
        Accuracy wanted of nearly every release, below 1.
    norm : {"l1", "l2"}
        Which accuracy.

    Returns
    -------
    float
        In nats.

    Raises
    ------
    ValueError
        If the target is 1 or more, there is no such norm, or no epsilon tried reaches the target.

    Examples
    --------
    >>> found = curve(BottomUp(1.0), [400, 100, 30], np.random.default_rng(0), epsilons=[0.01, 0.1, 1.0])
    >>> smallest_epsilon(found, 0.8), smallest_epsilon(found, 0.8, norm="l2")
    (0.1, 0.1)
    """
    if not target < 1:
        raise ValueError(f"target must be below 1, got {target}")
    if norm not in ("l1", "l2"):
        raise ValueError(f"norm must be l1 or l2, got {norm!r}")
    best = None
    for one in sorted(found, key=lambda one: one.epsilon, reverse=True):
        if (one.l1 if norm == "l1" else one.l2).interval[0] < target:
            break
        best = one.epsilon
    if best is None:
        raise ValueError(f"no epsilon tried reaches an accuracy of {target}: try larger ones")
    return best


def expected_error(epsilon: float, cells: int) -> float:
    r"""Return the expected absolute error of a sum of noisy cells.

    Parameters
    ----------
    epsilon : float
        Of the noise of each cell, in nats.
    cells : int
        How many are added up, at least 1.

    Returns
    -------
    float
        In people; of one cell ``1 / sinh(epsilon)``.

    Raises
    ------
    ValueError
        If `epsilon` is out of range, or there is no cell.

    Notes
    -----
    The integral of `algorithms.noise.quadrature.mean_magnitude`; the characteristic function of one cell is the inverse
    of :math:`1 + 2q(1 - \cos\theta)/(1-q)^2`.

    Examples
    --------
    >>> round(expected_error(1.0, 1) * math.sinh(1.0), 12), round(expected_error(0.1, 10_000), 4)
    (1.0, 1127.895)
    """
    if cells < 1:
        raise ValueError(f"cells must be at least 1, got {cells}")
    q = math.exp(-TwoTailedGeometric(epsilon).epsilon)
    ratio = 2 * q / math.expm1(-epsilon) ** 2

    def log_characteristic(tangent: Floats) -> Floats:
        square = np.square(tangent)
        return np.asarray(-cells * np.log1p(ratio * 2 * square / (1 + square)))

    return mean_magnitude(log_characteristic, cells * ratio)


def _of_level(counted: BottomUp, table: NDArray[Any], level: int | None) -> Floats:
    """Return cells, shape (..., leaves, cells), as those of the areas of a level."""
    if level is None:
        return table.astype(np.float64)
    if counted.tree is None:
        raise ValueError(f"level {level} needs a tree of areas, got none")
    return counted.tables(table)[..., counted.tree.level(level), :].astype(np.float64)


def _expected(counted: BottomUp, table: NDArray[np.int64], level: int | None) -> tuple[float, float]:
    """Return the expected averages of absolute and squared errors: each count has the noise of all its leaves."""
    law = TwoTailedGeometric(counted.epsilon)
    leaves = _of_level(counted, np.ones((len(table), 1)), level).astype(np.int64)
    numbers, areas = np.unique(leaves, return_counts=True)
    absolute = [expected_error(law.epsilon, int(number)) for number in numbers]
    return float(np.average(absolute, weights=areas)), float(leaves.mean() * law.variance)
