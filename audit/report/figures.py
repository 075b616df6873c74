"""Coordinates of the figures of a report, with text alternatives. matplotlib would take minutes for many figures.

Positions are in percent of the width and height of the drawing; points of curves are in thousandths.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from audit.claims import Claim
from audit.results import AuditResult, LossEstimate
from audit.results.formatting import at_least, missing_power, nearest, row

__all__ = ["Bar", "Curves", "excess", "loss_bar", "loss_curve", "privacy_profiles"]

Floats = NDArray[np.float64]
Ticks = tuple[tuple[str, str], ...]

POINTS = 25  # of a profile
MOST = 400  # points of an estimate; a drawing shows no more
SMALLEST = 1e-3  # delta at which the drawing cuts a profile that never reaches 0
NARROWEST, WIDEST = 1e-12, 1e12  # nats, deltas or people: limits of the length of an axis
END = 2.5  # end of the axis of losses, in units of the promise


@dataclass(frozen=True)
class Bar:
    """One audit on the axis of losses, in percent of its length."""

    measured: str
    detectable: str  # empty if beyond the end
    needed: str  # text in its place, for an audit without power
    beyond: bool  # whether the bound is beyond the end
    words: str


@dataclass(frozen=True)
class Curves:
    """Curves over one pair of axes: ticks (position in percent, number), points of lines, and shaded areas."""

    across: Ticks
    down: Ticks
    lines: dict[str, tuple[str, ...]]
    areas: tuple[str, ...]
    words: str

    @property
    def grid(self) -> str:
        """SVG path of the grid lines and tick marks, in thousandths."""
        down = [f"M0 {10 * float(place):.4g}H1000" for place, _ in self.down]
        return "".join([*down, *(f"M{10 * float(place):.4g} 1000V980" for place, _ in self.across)])


def excess(result: AuditResult) -> float:
    """Return the lower bound in units of the promise; infinite if the exact loss is infinite."""
    return math.inf if result.support is not None else _ratio(result.measured.budget, result.claim.budget)


def loss_bar(result: AuditResult) -> Bar:
    """Return promise, lower bound and minimum detectable loss on one axis; the promise is at ``100 / END`` percent."""
    summary = result.summary()
    cells = row(summary)
    measured, detectable = (
        _ratio(loss, result.claim.budget) / END * 100 for loss in (result.measured.budget, result.detectable)
    )
    return Bar(
        measured=f"{min(measured, 100):.4g}",
        detectable=f"{detectable:.4g}" if detectable <= 100 and not result.far_below_claim else "",
        needed=missing_power(summary) if detectable > 100 else "",
        beyond=measured > 100,
        words=f"Promised {cells['promised']}; lower bound {cells['measured']}; minimum detectable loss "
        f"{cells['detectable']}; {cells['verdict']}.",
    )


def privacy_profiles(result: AuditResult) -> Curves:
    """Return the privacy profiles of the promise and of the lower bound; the area of violation is shaded."""
    claim, measured, cells = result.claim, result.measured, row(result.summary())
    end = _axis_length(1.15 * max(_end(claim), _end(measured)))
    at = np.union1d(np.linspace(0, end, POINTS), [min(_end(one), end) for one in (claim, measured)])
    promised, bound = (np.array([one.delta_at(float(x)) for x in at]) for one in (claim, measured))
    top = _axis_length(min(1.0, 1.1 * max(promised[0], bound[0])))
    scaled = {name: _points(at / end, 1 - y / top) for name, y in (("promised", promised), ("measured", bound))}
    shaded: tuple[str, ...] = ()
    if (bound > promised).any():
        edge = np.concatenate([np.maximum(promised, bound), promised[::-1]])
        shaded = (_points(np.concatenate([at, at[::-1]]) / end, 1 - edge / top),)
    return Curves(
        across=tuple((f"{100 * x / end:.4g}", f"{x:.4g}") for x in _round_numbers(end)),
        down=tuple((f"{100 - 100 * y / top:.4g}", f"{y:.4g}") for y in _round_numbers(top, 4)),
        lines={name: (points,) for name, points in scaled.items()},
        areas=shaded,
        words=f"Delta over epsilon from 0 to {end:.3g} nats. The promise, {cells['promised']}, is a dashed line from "
        f"{nearest(promised[0], 3)} at epsilon 0 {_fall(claim, end, nearest)}. The lower bound, {claim.parameter} "
        f"{cells['measured']}, is a solid line from {at_least(bound[0], 3)} {_fall(measured, end, at_least)}. "
        + ("The solid line is above the dashed one." if shaded else "The solid line is nowhere above the dashed one."),
    )


def loss_curve(estimate: LossEstimate) -> Curves:
    """Return the curve of an estimate with its interval shaded; unknown values split it into pieces."""
    sample = np.unique(np.linspace(0, estimate.at.size - 1, min(MOST, estimate.at.size)).astype(int))
    at, loss = estimate.at[sample].astype(float), estimate.loss[sample].astype(float)
    low, high = (np.where(np.isnan(y[sample]), loss, y[sample]) for y in (estimate.low, estimate.high))
    known = (np.abs(at) < WIDEST) & (np.abs(loss) < WIDEST)  # NaN is unknown
    if not known.any():
        return Curves((), (), {"estimate": ()}, (), "No point of the curve is known.")
    left, right = float(at[known].min()), float(at[known].max())
    right = right if right - left > NARROWEST else left + 1
    # The curve sets the scale, since intervals at the edges can be far wider.
    floor, top = min(0.0, 1.5 * float(loss[known].min())), max(1.5 * float(loss[known].max()), 1e-9)
    width, height = right - left, top - floor

    def points(x: Floats, y: Floats) -> str:
        return _points((x - left) / width, (top - np.clip(y, floor, top)) / height)

    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]])))
    pieces = [slice(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return Curves(
        across=tuple((f"{100 * (x - left) / width:.4g}", f"{x:.4g}") for x in _round_numbers(right, least=left)),
        down=tuple((f"{100 * (top - y) / height:.4g}", f"{y:.4g}") for y in _round_numbers(top, least=floor)),
        lines={"estimate": tuple(points(at[piece], loss[piece]) for piece in pieces)},
        areas=tuple(
            points(np.concatenate([at[piece], at[piece][::-1]]), np.concatenate([low[piece], high[piece][::-1]]))
            for piece in pieces
        ),
        words=f"Estimated loss for one person over the {estimate.axes[0]}, from {left:.4g} to {right:.4g}: "
        f"between {loss[known].min():.3g} and {loss[known].max():.3g} {estimate.axes[1]}, with its interval shaded.",
    )


def _ratio(loss: float, promised: float) -> float:
    if promised == math.inf:
        return 1.0 if loss == math.inf else 0.0
    return loss / promised if promised > 0 else math.inf if loss > 0 else 0.0


@lru_cache(maxsize=1024)
def _end(claim: Claim) -> float:
    """Return the largest epsilon to draw: the budget of the claim, or where its delta falls to 0.001."""
    if "epsilon" in claim.to_dict():
        return claim.budget if claim.budget < math.inf else 0.0
    end = claim.epsilon_at(SMALLEST)
    return end if end < math.inf else 0.0


def _axis_length(length: float) -> float:
    return min(length, WIDEST) if length > NARROWEST else 1.0


def _fall(claim: Claim, end: float, write: Callable[[float, int], str]) -> str:
    stop = min(_end(claim) or end, end)
    return f"to {write(claim.delta_at(stop), 3)} at epsilon {write(stop, 4)}"


def _points(across: Floats, down: Floats) -> str:
    places = np.rint(1000 * np.column_stack([across, down])).astype(int)
    levels, bends = places[:, 1], np.ones(len(places), bool)
    bends[1:-1] = (levels[:-2] != levels[1:-1]) | (levels[1:-1] != levels[2:])
    return " ".join(f"{x},{y}" for x, y in places[bends])


def _round_numbers(end: float, most: int = 6, least: float = 0.0) -> list[float]:
    rough = (end - least) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * (1 - 1e-9))
    first, last = math.ceil(least / step - 1e-9), math.floor(end / step + 1e-9)
    return [k * step for k in range(first, last + 1)]
