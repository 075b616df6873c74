"""Posterior laws of averages whose numerators and denominators are known with normal noise.

Numerators and a denominator ``D`` are independent normal variables around their noisy values, restricted to ``D >= 1``
and to averages between two bounds. In the coordinates ``(D, averages)`` the density is a power of ``D`` times a normal
density in ``D``, so the integral over ``D`` has a closed form. The remaining density of one average, or of two that
share the denominator, is integrated by Gauss quadrature, on panels placed around its mode even if the noisy values are
far outside the region. Everything is computed as logarithms, from sums of squares that do not cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray
from scipy.special import erfcx

__all__ = ["ratio_law", "shared_ratio_laws"]

Floats = NDArray[np.float64]
NoisyValue = tuple[Floats, Floats] | Floats  # values and their variances
Part = tuple[Floats, Floats, Floats]  # ratio to the denominator, noisy numerator, its variance
Limits = Callable[[Floats], tuple[Floats, Floats]]

NATS = 20.0  # a density is cut off this many nats below its mode
BLOCK = 256  # rows at a time: 400,000 points
BISECTIONS, SECTIONS, HALVINGS = 50, 75, 60  # steps that reach the precision of float64
POINTS, WEIGHTS = legendre.leggauss(8)
# Maps the values of a density at the points of a panel to the Legendre series of its integral.
PRIMITIVE = legendre.legint(np.linalg.inv(legendre.legvander(POINTS, POINTS.size - 1)), lbnd=-1)
GRID = (np.arange(1, 13) / 12) ** 3  # from the mode outwards
PANELS, INNER_PANELS = 8, 3
FINEST = 8  # largest factor by which the number of panels is increased
TOLERANCE = 5e-4  # averages are published to 0.01


def ratio_law(denominator: NoisyValue, numerator: NoisyValue, bounds: tuple[float, float], tail: float) -> Floats:
    """Return mean and quantiles, shape (3, rows), of averages with separate numerators and denominators.

    The absolute error is below 1e-6, as tests by other integrals of the same density (Hinkley, 1969) show.
    """
    d, vd, y, v = (column[:, None] for column in (*denominator, *numerator))

    def penalty(r: Floats) -> Floats:
        return _penalty(d, vd, (r, y, v))[0]

    return _summary(penalty, lambda r: _log_density(d, vd, (r, y, v)), bounds, None, tail, d.size, PANELS)


def shared_ratio_laws(
    denominator: NoisyValue, parts: tuple[NoisyValue, NoisyValue], bounds: tuple[float, float], tail: float
) -> Floats:
    """Return mean and quantiles, shape (3, 3, rows), of averages with one denominator: a total and its two parts.

    If the means of the parts do not add up to that of the total within 5e-4, all are computed again with more panels.
    """
    laws = np.empty((3, 3, denominator[0].size))
    todo, fineness = np.arange(denominator[0].size), 1
    while todo.size:
        block = max(1, BLOCK // fineness**2)
        for start in range(0, todo.size, block):
            rows = todo[start : start + block]
            bottom, *tops = ((value[rows, None], variance[rows, None]) for value, variance in (denominator, *parts))
            laws[:, :, rows] = _three_laws(bottom, tops[0], tops[1], bounds, tail, fineness)
        apart = np.abs(laws[0, 0] - laws[1, 0] - laws[2, 0])
        todo = todo[apart[todo] > TOLERANCE]
        if todo.size and fineness == FINEST:
            variances = ", ".join(f"{variance[todo[0]]:.3g}" for _, variance in (denominator, *parts))
            raise ValueError(f"variances must be nearer each other for averages to {TOLERANCE:g}, got {variances}")
        fineness *= 2
    return laws


def _three_laws(
    denominator: NoisyValue,
    first: NoisyValue,
    second: NoisyValue,
    bounds: tuple[float, float],
    tail: float,
    fineness: int,
) -> Floats:
    (y, v), (z, w), (least, cap) = first, second, bounds
    share = v / (v + w)  # regression of the first part on the sum; the residual is independent of the sum
    rest = y - share * (y + z), v * w / (v + w)

    def of_total(r: Floats) -> tuple[Floats, Floats]:
        return -share * r, (1 - share) * r

    def of_part(r: Floats) -> tuple[Floats, Floats]:
        return np.maximum(least - r, 0), cap - r

    law = partial(_outer_law, denominator, tail=tail, fineness=fineness)
    total = law((y + z, v + w), rest, of_total, bounds, None)
    parts = (law(outer, inner, of_part, (0.0, cap), least) for outer, inner in ((first, second), (second, first)))
    return np.array([total, *parts])


def _outer_law(
    denominator: NoisyValue,
    outer: NoisyValue,
    inner: NoisyValue,
    limits: Limits,
    bounds: tuple[float, float],
    kink: float | None,
    tail: float,
    fineness: int,
) -> Floats:
    """Return mean and quantiles of the outer ratio; the inner ratio, whose limits depend on it, is integrated out."""

    def penalty(r: Floats) -> Floats:
        return _nearest(denominator, (r, *outer), inner, *limits(r))[0]

    def log_density(r: Floats) -> Floats:
        low, high, d, vd, y, v, z, w = (
            np.broadcast_to(values, r.shape).reshape(-1, 1) for values in (*limits(r), *denominator, *outer, *inner)
        )
        part = r.reshape(-1, 1), y, v
        least, mode = _nearest((d, vd), part, (z, w), low, high)
        edges = _panels(lambda t: _penalty(d, vd, part, (t, z, w))[0] - least, mode, low, high, INNER_PANELS * fineness)
        half = np.diff(edges)[:, :, None] / 2
        t = (edges[:, :-1, None] + half * (1 + POINTS)).reshape(len(edges), -1)
        logs = _log_density(d, vd, part, (t, z, w))
        top = logs.max(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):  # an empty range has mass 0
            mass = np.log(np.sum((half * WEIGHTS).reshape(t.shape) * np.exp(logs - top), axis=1, keepdims=True)) + top
        return np.reshape(mass, r.shape)

    return _summary(penalty, log_density, bounds, kink, tail, denominator[0].size, PANELS * fineness)


def _nearest(
    denominator: NoisyValue, part: Part, inner: NoisyValue, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Return the smallest penalty over the inner ratio, and the ratio at which it occurs."""
    (d, vd), (r, y, v) = denominator, part
    bottom = np.maximum((d / vd + r * y / v) / (1 / vd + r * r / v), 1)
    places = [low + 0 * r, high + 0 * r, np.clip(inner[0], low, high) + 0 * r, np.clip(inner[0] / bottom, low, high)]
    penalties = np.array([_penalty(d, vd, part, (place, *inner))[0] for place in places])
    best = penalties.argmin(axis=0)[None]
    return np.take_along_axis(penalties, best, 0)[0], np.take_along_axis(np.array(places), best, 0)[0]


def _penalty(d: Floats, vd: Floats, *parts: Part) -> tuple[Floats, Floats, Floats]:
    """Return the least squared distance over denominators, in standard deviations, and their mean and precision."""
    precision, mean = 1 / vd, d / vd
    for ratio, y, v in parts:
        precision = precision + ratio * ratio / v
        mean = mean + ratio * y / v
    mean = mean / precision
    nearest = np.maximum(mean, 1)
    squares = (nearest - d) ** 2 / vd
    for ratio, y, v in parts:
        squares = squares + (ratio * nearest - y) ** 2 / v
    return squares, mean, precision


def _log_density(d: Floats, vd: Floats, *parts: Part) -> Floats:
    """Return the log density of one or two ratios, up to a constant; the denominator, from 1 on, is integrated out.

    That integral is a moment of a normal law above 1; with Mills's ratio it is precise in both tails.
    """
    squares, mean, precision = _penalty(d, vd, *parts)
    spread = 1 / np.sqrt(precision)
    z = (1 - mean) / spread
    cut = np.maximum(z, -36)  # smaller values give the same result, and erfcx would overflow
    mills = erfcx(cut / math.sqrt(2))
    far = np.maximum(z, 1000)
    excess = np.where(z < far, math.sqrt(2 / math.pi) / mills - z, 1 / far - 2 / far**3)
    moment = 1 + spread * excess
    if len(parts) == 2:
        moment = moment + spread * (excess + spread * (1 - z * excess))
    logs: Floats = np.log(spread * mills * moment) - (squares + np.minimum(cut, 0) ** 2) / 2
    return logs


def _summary(
    penalty: Callable[[Floats], Floats],
    log_density: Callable[[Floats], Floats],
    bounds: tuple[float, float],
    kink: float | None,
    tail: float,
    rows: int,
    panels: int,
) -> Floats:
    """Return mean, lower and upper quantile, shape (3, rows), of densities; `penalty` is used to find their modes.

    The region and the penalty are convex, so the least penalty, as a function of the ratio, falls and then rises.
    """
    low, high = (np.full((rows, 1), end) for end in bounds)
    mode = _minimum(penalty, low, high)
    least = penalty(mode)
    edges = _panels(lambda r: penalty(r) - least, mode, low, high, panels)
    if kink is not None:
        edges = np.sort(np.hstack([edges, np.clip(kink, edges[:, :1], edges[:, -1:])]), axis=1)
    half = np.diff(edges)[:, :, None] / 2
    points = edges[:, :-1, None] + half * (1 + POINTS)
    logs = log_density(points.reshape(rows, -1)).reshape(points.shape)
    density = half * np.exp(logs - logs.max(axis=(1, 2), keepdims=True))
    masses = density @ WEIGHTS
    total = masses.sum(axis=1)
    mean = np.sum((density * points) @ WEIGHTS, axis=1) / total
    law = [mean, *(_quantile(edges, density, masses, share * total) for share in (tail, 1 - tail))]
    return np.asarray(np.clip(law, *bounds))


def _quantile(edges: Floats, density: Floats, masses: Floats, mass: Floats) -> Floats:
    """Return the ratios at which the integrals of the densities reach `mass`, shape (rows,)."""
    below = np.cumsum(masses, axis=1)
    rows = np.arange(len(edges))
    panel = np.minimum(np.sum(below < mass[:, None], axis=1), masses.shape[1] - 1)
    series = density[rows, panel] @ PRIMITIVE.T
    target = mass - below[rows, panel] + masses[rows, panel]
    low, high = -np.ones(rows.size), np.ones(rows.size)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        above = np.sum(legendre.legvander(middle, series.shape[1] - 1) * series, axis=1) > target
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    left, right = edges[rows, panel], edges[rows, panel + 1]
    quantiles: Floats = left + (right - left) * (1 + low) / 2
    return quantiles


def _minimum(function: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """Return the minima of functions that fall and then rise, by golden-section search."""
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(SECTIONS):
        falling = at_left > at_right
        low, high = np.where(falling, left, low), np.where(falling, high, right)
        best, value = np.where(falling, right, left), np.where(falling, at_right, at_left)
        new = np.where(falling, low + golden * (high - low), high - golden * (high - low))
        at_new = function(new)
        left, right = np.where(falling, best, new), np.where(falling, new, best)
        at_left, at_right = np.where(falling, value, at_new), np.where(falling, at_new, value)
    return np.where(at_left < at_right, left, right)


def _panels(deficit: Callable[[Floats], Floats], mode: Floats, low: Floats, high: Floats, number: int) -> Floats:
    """Return the edges, shape (rows, number + 1), of panels on which densities can be integrated.

    A density near a border can fall on several scales, or be flat and then fall suddenly. So panels have equal shares
    of a sum: distance, change of the root of the log density, and points of a grid that is dense at the mode.
    """
    below, above = (mode + _reach(deficit, mode, end) * GRID for end in (low, high))
    grid = np.hstack([below[:, ::-1], mode, above])
    ways = np.diff(grid), np.abs(np.diff(np.sqrt(np.maximum(deficit(grid), 0))))
    track = sum((way / np.maximum(way.sum(axis=1, keepdims=True), 1e-300) for way in ways), 1 / grid.shape[1])
    reached = np.hstack([np.zeros_like(mode), np.cumsum(track, axis=1)])
    targets = reached[:, -1:] * (np.arange(1, number) / number)
    index = np.sum(reached[:, None, 1:-1] <= targets[:, :, None], axis=2)
    start, way, size, known = (np.take_along_axis(a, index, 1) for a in (grid, ways[0], track, reached))
    return np.hstack([grid[:, :1], start + way * (targets - known) / size, grid[:, -1:]])


def _reach(deficit: Callable[[Floats], Floats], mode: Floats, end: Floats) -> Floats:
    """Return the distance from the mode, towards `end`, beyond which a density is negligible: at most 1/5 too large."""
    reach = end - mode
    for shrink in (0.5, 0.85):
        for _ in range(HALVINGS):
            outside = deficit(mode + shrink * reach) > 2 * NATS
            if not outside.any():
                break
            reach = np.where(outside, shrink * reach, reach)
    return reach
