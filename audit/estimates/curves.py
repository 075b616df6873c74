"""Curves over the error: log-ratios of the law of residuals at two places."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from audit.arguments import LARGEST, positive_number, real_number, real_numbers

__all__ = ["CURVES", "Curve", "log_ratio", "whole_people"]

Floats = NDArray[np.float64]

_LARGEST_WINDOW = 50_000  # people on each side
_SMALLEST_KERNEL = 0.01  # people: with a smaller one, each residual is a separate spike
_NOTHING = 40.0  # difference of exponents from the nearest residual's at which a kernel is negligible: 4e-18
HEAVY = 3.0  # a standard deviation above this times the scaled median absolute deviation has heavy tails
_STEPS = 3  # steps of Newton's method, whose start is accurate except for small counts


def _median(totals: Floats, losses: Floats) -> Floats:
    return np.asarray(np.nanmedian(np.abs(losses), axis=1))


@dataclass(frozen=True)
class Curve:
    """A log-ratio of totals over residuals, so that a resample costs only a matrix product."""

    at: Floats
    width: int  # totals
    features: Callable[[Floats], Floats]  # values (n,) -> contribution of each to the totals near (n, some of width)
    loss: Callable[[Floats], Floats]  # totals (k, width) -> losses (k, m)
    settings: dict[str, Any]
    assumption: str
    value: Callable[[Floats, Floats], Floats] = _median  # totals, losses -> one number each (k,)
    statistic: str = "median |loss|"
    near: Callable[[Floats], slice] = lambda values: slice(None)  # values (n,) -> totals that they contribute to


def _lag_tail(pooled: Floats, *, lag: float | None = None, at: ArrayLike | None = None) -> Curve:
    """Compare each tail with the tail of `lag` people further out."""
    integral = bool((pooled == np.rint(pooled)).all())
    scale = max(1.0, _spread(pooled))  # the shortest step is one person
    steps = np.arange(5) * (scale / 2)
    default = np.unique(np.ceil(steps) if integral else steps)
    starts: Floats = default.astype(float) if at is None else real_numbers("at", at, ndim=(1,))
    if starts.min() < 0:
        raise ValueError(f"at must be 0 or more, got {starts.min()}")
    people = (math.ceil(scale) if integral else scale) if lag is None else positive_number("lag", lag)
    if people < 1:
        raise ValueError(f"lag must be at least one person, got {people}")
    thresholds: Floats = np.concatenate([starts, starts + people])

    def features(values: Floats) -> Floats:
        column = values[:, None]  # 0 is in both tails that start at 0: exact for a two-tailed geometric law
        return (column >= thresholds).astype(float) + (column <= -thresholds)

    def loss(totals: Floats) -> Floats:
        return log_ratio(totals[:, : starts.size], totals[:, starts.size :]) / people

    return Curve(
        at=starts,
        width=thresholds.size,
        features=features,
        loss=loss,
        settings={"lag": float(people)},
        assumption=f"groups: {people:.4g} more people shift the error by {people:.4g}; all share the loss equally",
    )


def _histogram(pooled: Floats, *, percentile: float = 95.0, multiplier: float = 2.0) -> Curve:
    window = _window(pooled, percentile, multiplier)
    k = np.arange(-math.floor(window), math.floor(window) + 2, dtype=float)

    def features(values: Floats) -> Floats:
        return np.asarray(whole_people(values)[:, None] == k, dtype=float)

    def loss(totals: Floats) -> Floats:
        return log_ratio(totals[:, :-1], totals[:, 1:])

    return Curve(
        at=k[:-1],
        width=k.size,
        features=features,
        loss=loss,
        settings={"percentile": float(percentile), "multiplier": float(multiplier), "window": window},
        assumption="no smoothing: where counts are small, their scatter alone makes |loss| large",
    )


def _kernel(pooled: Floats, bandwidth: float | str, bandwidth_unit: str | None) -> tuple[float, dict[str, Any]]:
    """Return the standard deviation of the kernel in people, and the settings that gave it."""
    if bandwidth_unit not in (None, "sd", "people"):
        raise ValueError(f'bandwidth_unit must be "sd" or "people", got {bandwidth_unit!r}')
    spread, deviation = _spread(pooled), float(pooled.std(ddof=1))
    settings: dict[str, Any]
    if bandwidth == "robust":
        if bandwidth_unit is not None:
            raise ValueError(f"a robust bandwidth has no unit, got {bandwidth_unit!r}")
        kernel, settings = (spread or deviation) * (4 / (5 * pooled.size)) ** (1 / 7), {"bandwidth": "robust"}
    else:
        factor, unit = positive_number("bandwidth", bandwidth), bandwidth_unit or "sd"
        kernel = factor * deviation if unit == "sd" else factor
        settings = {"bandwidth": factor, "bandwidth_unit": unit}
        if unit == "sd" and deviation > HEAVY * spread:
            times = kernel / spread if spread else math.inf
            settings["note"] = (
                "the errors have heavy tails, and the kernel, a share of their standard deviation, is too wide for "
                f"most of them: {times:.3g} times their scaled median absolute deviation. The estimate is too small; "
                'bandwidth="robust" goes by that deviation'
            )
    widest = float(np.ptp(pooled))  # with a wider kernel, a density shows the kernel, not the errors
    if not _SMALLEST_KERNEL <= kernel <= widest:
        raise ValueError(
            f"bandwidth must give a kernel of {_SMALLEST_KERNEL} people at least, and at most as wide as the range of "
            f"errors, {widest:.4g}, got {kernel:.4g}"
        )
    return kernel, settings


def _kde(
    pooled: Floats,
    *,
    bandwidth: float | str = 0.15,
    bandwidth_unit: str | None = None,
    percentile: float = 95.0,
    multiplier: float = 2.0,
) -> Curve:
    kernel, settings = _kernel(pooled, bandwidth, bandwidth_unit)
    window = _window(pooled, percentile, multiplier)
    x = np.arange(math.floor(2 * window), dtype=float) + (0.5 - window)
    # A density far from every residual underflows: it is divided by the contribution of the nearest residual.
    right = np.searchsorted(pooled, x)
    gap = np.abs(x - pooled[np.clip([right - 1, right], 0, pooled.size - 1)]).min(axis=0)
    offset: Floats = (gap / kernel) ** 2 / 2

    def near(values: Floats) -> slice:
        beyond = np.maximum(np.maximum(values.min() - x, x - values.max()), 0.0)
        places = np.flatnonzero((beyond / kernel) ** 2 / 2 - offset < _NOTHING)
        return slice(places.min(initial=x.size), places.max(initial=-1) + 1)

    def features(values: Floats) -> Floats:
        part = near(values)
        distance: Floats = values[:, None] - x[part]
        distance /= kernel  # in place from here on: this array takes most of the time
        np.square(distance, out=distance)
        distance /= -2
        distance += offset[part]
        np.exp(distance, out=distance)
        return distance

    def loss(totals: Floats) -> Floats:
        return log_ratio(totals[:, :-1], totals[:, 1:]) + np.diff(offset)

    return Curve(
        at=x[:-1],
        width=x.size,
        features=features,
        near=near,
        loss=loss,
        settings=settings
        | {"kernel_sd": kernel, "percentile": float(percentile), "multiplier": float(multiplier), "window": window},
        assumption="smoothing: the curve depends on bandwidth and window, is flat near 0 and noisy at its edges; this "
        "bias is not in the interval",
    )


def _slope(pooled: Floats, *, change: float = 1.0) -> Curve:
    """Compare adjacent bins: for Gaussian noise, the log-ratio is linear in the error, and its slope gives rho."""
    people = positive_number("change", change)
    if people >= LARGEST:
        raise ValueError(f"change must be less than 2**53 people, got {people}")
    integral = bool((pooled == np.rint(pooled)).all())
    center, spread = float(np.median(pooled)), _spread(pooled) or float(pooled.std())
    # Bins of half a deviation cover three deviations on each side; no edge is at an integer if errors are integers.
    width, half = spread / 2, 6
    if integral:
        width = max(1.0, math.floor(width))
        half = max(2, math.ceil(3 * spread / width))
    bins = 2 * half + 1
    start = (
        float(np.rint(center)) - 0.5 - half * width - (width - 1) // 2 if integral else center - (half + 0.5) * width
    )
    edges = start + width * np.arange(1.0, bins)
    grouping = (width**2 - integral) / 12  # the variance that binning adds (Sheppard)

    def features(values: Floats) -> Floats:
        return np.asarray(np.floor((values[:, None] - start) / width) == np.arange(bins), dtype=float)

    def loss(totals: Floats) -> Floats:
        return log_ratio(totals[:, :-1], totals[:, 1:]) * (people / width)

    def rho(totals: Floats, losses: Floats) -> Floats:
        slope = _log_odds_slope(totals[:, :-1], totals[:, 1:], edges - center) / width
        if slope[0] <= 0:
            raise ValueError(f"residuals must thin out away from 0, as Gaussian noise does; got slope {slope[0]:.4g}")
        return people**2 / 2 * slope * (1 + grouping * slope)

    return Curve(
        at=edges,
        width=bins,
        features=features,
        loss=loss,
        settings={"change": people, "bin": width},
        assumption="Gaussian noise: the log-ratio is a line over the error, and rho is its slope",
        value=rho,
        statistic="rho",
    )


def _log_odds_slope(left: Floats, right: Floats, at: Floats) -> Floats:
    """Return the slope of the log-odds of the left one of two bins, by logistic regression; one for each row."""
    if ((left[0] > 0) & (right[0] > 0)).sum() < 2:
        raise ValueError("residuals must fill at least three bins next to each other for a slope, got fewer")
    both = left + right
    weight = left * right / np.maximum(both, 1e-300)
    target = np.log((left + 0.5) / (right + 0.5))
    for step in range(_STEPS + 1):
        total = weight.sum(axis=1, keepdims=True)
        middle = (weight * at).sum(axis=1, keepdims=True) / total
        slope = (weight * (at - middle) * target).sum(axis=1) / (weight * (at - middle) ** 2).sum(axis=1)
        if step == _STEPS:
            break
        fitted = slope[:, None] * (at - middle) + (weight * target).sum(axis=1, keepdims=True) / total
        share = expit(fitted)
        weight = both * share * (1 - share)
        target = fitted + (left - both * share) / np.maximum(weight, 1e-300)
    return np.asarray(slope)


def _spread(pooled: Floats) -> float:
    """Return the median absolute deviation, scaled to be the standard deviation of normal errors."""
    return 1.4826 * float(np.median(np.abs(pooled - np.median(pooled))))


def _window(pooled: Floats, percentile: float, multiplier: float) -> float:
    share = real_number("percentile", percentile)
    if not 50 < share <= 100:
        raise ValueError(f"percentile must be above 50 and at most 100, got {share}")
    factor = positive_number("multiplier", multiplier)
    window = factor * float(np.abs(np.percentile(pooled, [100 - share, share])).max())
    if not 1 <= window <= _LARGEST_WINDOW:
        raise ValueError(f"the window of errors must reach 1 to {_LARGEST_WINDOW} people, got {window:.4g}")
    return window


def whole_people(values: Floats) -> Floats:
    """Return the nearest whole numbers, halves up: rounding half to even would favor even numbers."""
    return np.floor(values + 0.5)


def log_ratio(above: NDArray[Any], below: NDArray[Any]) -> Floats:
    """Return ``log(above / below)`` in nats, NaN where either is 0."""
    positive = (above > 0) & (below > 0)
    logs = [np.log(total, out=np.full(positive.shape, np.nan), where=positive) for total in (above, below)]
    return np.asarray(logs[0] - logs[1])


CURVES: dict[str, Callable[..., Curve]] = {"lag_tail": _lag_tail, "histogram": _histogram, "kde": _kde, "slope": _slope}
