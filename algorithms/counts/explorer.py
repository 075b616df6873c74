"""The sheet `counts` of the explorer: the error of a count at an epsilon, under each law and in each system."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from algorithms.bottom_up.accuracy import expected_error
from algorithms.bottom_up.inverse_cdf import InverseCdf
from algorithms.noise import Gaussian, Laplace, TwoTailedGeometric
from algorithms.noise.budgets import exact_budget_for, margins_around
from algorithms.noise.margins import coverage, exact_margin_of_error
from algorithms.noise.quadrature import mean_magnitude
from algorithms.ons.laws import PILOT_DELTA, CountNoise, classical_scale, unchanged_probability
from audit.claims import GaussianDP, PureDP
from audit.explorer.sheet import Chart, Column, Group, Input, Result, Row, Sheet, Shown, State, Table, Total

__all__ = ["Rounded", "mean_error", "sheet"]

Floats = NDArray[np.float64]

LAWS = ("geometric", "laplace", "gaussian")
CELLS = (1, 10, 100, 1000, 10_000, 100_000)  # offered numbers of counts in a sum
STEPS = tuple(range(5, 51, 3))  # points of the sum's curve, in twentieths of the number of counts
POINTS = tuple(range(len(margins_around(0))))  # points of the margin's curve
CURVES: tuple[tuple[str, str, Shown, list[str]], ...] = (
    ("epsilon", "margin", "whole", [f"point {place:02}" for place in POINTS]),
    ("cells", "error", "number", [f"{step:02}" for step in STEPS]),
)
PUBLISHED = (0.1, 1.0, 2.0, 5.0, 10.0)  # epsilons of the pilot's Tables 1 to 3
ALL, ONS, BOTTOM_UP = "counts/all/all", "counts/ons/all", "counts/bottom_up/all"
# Columns and their number formats, for the noise on a count and for noise from few bits.
NOISE: dict[str, Shown] = {
    "sigma": "number",
    "unchanged": "share",
    "margin": "whole",
    "covers": "share",
    "error": "number",
}
BITS: dict[str, Shown] = {
    "unchanged": "share",
    "reach": "whole",
    "beyond": "number",
    "infinite": "number",
    "sum_error": "number",
}

SHOWN: tuple[Shown, Shown] = ("share", "number")  # formats of tables with a column for each law
WIDE = 3.5  # from this standard deviation on, copies of the normal characteristic function are below 1e-26


@dataclass(frozen=True)
class Rounded:
    """Noise rounded to the nearest whole number; `law` is before rounding."""

    law: Laplace | Gaussian

    def sf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise > x``."""
        return self.law.sf(np.floor(np.asarray(x, np.float64)) + 0.5)


def mean_error(law: TwoTailedGeometric | Rounded, cells: int) -> float:
    r"""Return the mean absolute (L1) error, in people, of a sum of independent noisy counts.

    `algorithms.noise.quadrature.mean_magnitude` has the integral. With :math:`q = e^{-\varepsilon}` and
    :math:`u = 1 - \cos\theta`, rounded Laplace noise has the characteristic function
    :math:`1 - \sqrt q (1+q) u / ((1-q)^2 + 2qu)`. That of rounded normal noise is the normal one times
    :math:`\sin(\theta/2) / (\theta/2)`, plus copies of it :math:`2\pi` apart. The copies are negligible from a standard
    deviation of 3.5 on; below it the sum over whole numbers has few terms.
    """
    if cells < 1:
        raise ValueError(f"cells must be at least 1, got {cells}")
    if isinstance(law, TwoTailedGeometric):
        return expected_error(law.epsilon, cells)
    scale, logs = law.law.scale, _laplace if isinstance(law.law, Laplace) else _gaussian
    return mean_magnitude(lambda tangent: cells * logs(scale, tangent), cells * law.law.variance)


def _laplace(scale: float, tangent: Floats) -> Floats:
    """Return the log of the characteristic function of rounded Laplace noise, at the tangents of half the angles."""
    q, turned = math.exp(-1 / scale), 2 / (1 + tangent**-2)
    return np.asarray(np.log1p(-math.sqrt(q) * (1 + q) * turned / (math.expm1(-1 / scale) ** 2 + 2 * q * turned)))


def _gaussian(scale: float, tangent: Floats) -> Floats:
    """Return the log of the characteristic function of rounded normal noise, at the tangents of half the angles."""
    half = np.arctan(tangent)
    if scale > WIDE:
        square = np.square(half)
        series = -square / 6 * (1 + square / 30 * (1 + square * 4 / 63 * (1 + square * 3 / 40)))
        with np.errstate(divide="ignore"):
            rounding = np.where(half < 0.05, series, np.log(np.sin(half) / half))
        return np.asarray(-2 * scale * scale * square + rounding)
    steps = np.arange(1.0, 42.0)  # more than 11 standard deviations
    ends = special.ndtr(-np.arange(0.5, 42.0) / scale)
    moved = 4 * np.square(np.sin(steps * half[:, None])) @ (ends[:-1] - ends[1:])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(-np.minimum(moved, 1.0)))


Noise = TwoTailedGeometric | Rounded


def compute(state: State) -> dict[str, Result]:
    """Return every number of the sheet by ``counts/SYSTEM/LAW/QUANTITY``; only ``sigma`` is before rounding."""
    inputs: dict[str, Any] = dict(state)
    epsilon, delta = float(inputs[f"{ALL}/epsilon"]), float(inputs[f"{ALL}/delta"])
    confidence, cells = float(inputs[f"{ALL}/confidence"]), int(inputs[f"{ALL}/cells"])
    noises = {law: _noise(law, epsilon, delta) for law in LAWS}
    results: dict[str, Result] = {}
    for law, noise in noises.items():
        unchanged = 1 - 2 * float(noise.sf(0))
        results |= _described(f"counts/{law}/all", noise, unchanged, confidence)
        for number in CELLS:
            results[f"counts/sum/cells_{number}/{law}"] = mean_error(noise, number)
        results[f"counts/sum/all/{law}"] = mean_error(noise, cells)

    share, pilot_delta = epsilon / int(inputs[f"{ONS}/tables"]), float(inputs[f"{ONS}/delta"])
    scale = classical_scale(share, pilot_delta)
    results |= {f"{ONS}/epsilon": share, f"{ONS}/kept_delta": GaussianDP(1 / scale).delta_at(share)}
    pilot: dict[str, Noise] = {
        "geometric": TwoTailedGeometric(share),
        "laplace": Rounded(Laplace(1 / share)),
        "gaussian": Rounded(Gaussian(scale)),
    }
    for law, noise in pilot.items():
        unchanged = unchanged_probability(law, share, delta=pilot_delta)  # type: ignore[arg-type]
        results |= _described(f"counts/ons/{law}", noise, unchanged, confidence)
        for place, published in enumerate(PUBLISHED):
            probability = unchanged_probability(law, published, delta=PILOT_DELTA)  # type: ignore[arg-type]
            results[f"counts/pilot/epsilon_{place}/{law}"] = probability

    inverse = InverseCdf(epsilon, int(inputs[f"{BOTTOM_UP}/bits"]))
    results |= {
        f"{BOTTOM_UP}/unchanged": math.exp(float(inverse.logpmf(0))),
        f"{BOTTOM_UP}/reach": inverse.reach,
        f"{BOTTOM_UP}/beyond": 2 * float(TwoTailedGeometric(epsilon).sf(inverse.reach)),
        f"{BOTTOM_UP}/infinite": inverse.exact_loss(1).infinite_mass,
        f"{BOTTOM_UP}/sum_error": mean_error(noises["geometric"], cells),
    }
    now: Any = results["counts/geometric/all/margin"]
    results |= {"counts/curve/now/epsilon": epsilon, "counts/curve/now/margin": now}
    for place, margin in enumerate(margins_around(now)):  # and the least epsilon that gives it
        results[f"counts/curve/point {place:02}/margin"] = margin
        least = exact_budget_for(margin, 1, confidence=confidence, privacy_definition="puredp")
        results[f"counts/curve/point {place:02}/epsilon"] = least
    results |= {"counts/curve/now/cells": cells, "counts/curve/now/error": results["counts/sum/all/geometric"]}
    for step in STEPS:
        point, some = f"counts/curve/{step:02}", max(1, cells * step // 20)
        results[f"{point}/cells"], results[f"{point}/error"] = some, mean_error(noises["geometric"], some)
    return results | {f"{ALL}/guessed": PureDP(epsilon).guessed_right}


@cache
def sheet() -> Sheet:
    """Return the sheet; its published state has an epsilon of 1, and the pilot's fourteen tables."""
    return Sheet(
        name="counts",
        title="counts.title",
        about=("counts.about.1", "counts.about.2"),
        inputs=(
            Input(key=f"{ALL}/epsilon", kind="number", value=1.0, least=0.01, most=20, label="counts.epsilon"),
            Input(key=f"{ALL}/delta", kind="number", value=1e-6, least=1e-15, most=0.5, label="counts.delta"),
            Input(key=f"{ALL}/confidence", kind="number", value=0.9, least=0.5, most=0.9999, label="counts.confidence"),
            Input(key=f"{ALL}/cells", kind="integer", value=100, least=1, most=1_000_000, label="counts.cells"),
            Input(key=f"{ONS}/tables", kind="integer", value=14, least=1, most=40, label="counts.ons.tables"),
            Input(
                key=f"{ONS}/delta", kind="number", value=PILOT_DELTA, least=1e-15, most=0.5, label="counts.ons.delta"
            ),
            Input(key=f"{BOTTOM_UP}/bits", kind="integer", value=53, least=2, most=53, label="counts.bits"),
        ),
        compute=compute,
        script=("algorithms.counts", "explorer.js"),
        settings=(f"{ALL}/epsilon", f"{ALL}/confidence", f"{ALL}/delta"),
        tables=_tables(),
        charts=tuple(
            Chart(
                kind="curve",
                label=f"counts.chart.{up}",
                points=tuple((f"counts/curve/{point}/{across}", f"counts/curve/{point}/{up}") for point in points),
                axes=((f"counts.{across}", "number" if across == "epsilon" else "whole"), (f"counts.{up}", shown)),
                current=(f"counts/curve/now/{across}", f"counts/curve/now/{up}"),
            )
            for across, up, shown, points in CURVES
        ),
        totals=(
            Total(key=f"{ALL}/guessed", label="counts.guessed", shown="guess", main=True),
            *(
                Total(key=f"counts/geometric/all/{name}", label=f"counts.total.{name}", shown=NOISE[name], main=True)
                for name in ("margin", "unchanged", "error")
            ),
        ),
        data={
            "cells": CELLS,
            "steps": {f"{step:02}": step for step in STEPS} | {"now": 20},
            "points": POINTS,
            "published": PUBLISHED,
            "pilot_delta": PILOT_DELTA,
        },
    )


def _tables() -> tuple[Table, ...]:
    whole = Group(label="counts.whole", rows=_rows("counts/{}/all"))
    pilot = Group(
        label="counts.ons",
        rows=_rows("counts/ons/{}"),
        inputs=(f"{ONS}/tables", f"{ONS}/delta"),
        results=tuple(Total(key=f"{ONS}/{name}", label=f"counts.ons.{name}") for name in ("epsilon", "kept_delta")),
    )
    printed = Group(label="counts.pilot.rows", rows=_numbered("counts/pilot/epsilon_{}", range(len(PUBLISHED))))
    chosen = Row(place="counts/sum/all", label="counts.sum.asked")
    numbers = (chosen, *_numbered("counts/sum/cells_{}", CELLS))
    sums = Group(label="counts.sum.rows", rows=numbers, inputs=(f"{ALL}/cells",))
    row = Row(place=BOTTOM_UP, label="counts.bottom_up.row")
    drawn = Group(label="counts.bottom_up.rows", rows=(row,), inputs=(f"{BOTTOM_UP}/bits",))
    shares, errors = (_columns("counts", dict.fromkeys(LAWS, shown)) for shown in SHOWN)
    return (
        Table(label="counts.one", rows="counts.law", columns=_columns("counts", NOISE), groups=(whole, pilot)),
        Table(label="counts.pilot", rows="counts.epsilon", columns=shares, groups=(printed,)),
        Table(label="counts.sum", rows="counts.cells", columns=errors, groups=(sums,)),
        Table(
            label="counts.bottom_up",
            rows="counts.bottom_up.of",
            columns=_columns("counts.bottom_up", BITS),
            groups=(drawn,),
        ),
    )


def _columns(prefix: str, shown: Mapping[str, Shown]) -> tuple[Column, ...]:
    return tuple(
        Column(quantity=name, label=f"{prefix}.{name}", shown=how, decides=name == "margin")
        for name, how in shown.items()
    )


def _rows(place: str) -> tuple[Row, ...]:
    return tuple(Row(place=place.format(law), label=f"counts.{law}") for law in LAWS)


def _numbered(place: str, numbers: Iterable[int]) -> tuple[Row, ...]:
    return tuple(Row(place=(at := place.format(number)), label=f"counts.{at.rpartition('/')[2]}") for number in numbers)


def _noise(law: str, epsilon: float, delta: float) -> Noise:
    noise = CountNoise(law, epsilon, delta if law == "gaussian" else 0.0).noise  # type: ignore[arg-type]
    return noise if isinstance(noise, TwoTailedGeometric) else Rounded(noise)


def _described(place: str, noise: Noise, unchanged: float, confidence: float) -> dict[str, Result]:
    """Return the sheet's results on the noise of one count."""
    margin = exact_margin_of_error(noise, confidence)
    before = noise.law if isinstance(noise, Rounded) else noise
    return {
        f"{place}/sigma": math.sqrt(before.variance),
        f"{place}/unchanged": unchanged,
        f"{place}/margin": margin,
        f"{place}/covers": coverage(noise, margin),
        f"{place}/error": mean_error(noise, 1),
    }
