"""NistDp3's cut: what noise makes of its histograms without it, and what it costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.nist import NistDp3, marginal_distance
from audit.results.plots import BLACK, GRAY
from experiments.audits import repeat
from experiments.drawing import foot, head, line_key, page, spread, styles
from experiments.experiment import Check, Checks, Numbers, between
from experiments.nist.synthesis import chosen, income

FACTORS = (0.0, 0.5, 1.0, 1.5, math.log(10), 3.0, 4.0)
EPSILONS = (8.0, 1.0, 0.3)
ROWS, MARGINALS, RELEASES = 200_000, 60, 5
BINS = (200, 500, 1000, 2000, 5000)  # ticks
STYLES = styles(("8", "1", "0.3"))


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Release 5 times with seven factors at three budgets (quick: once with two at one)."""
    factors, epsilons, times = (FACTORS[::4], EPSILONS[2:], 1) if quick else (FACTORS, EPSILONS, RELEASES)
    settings = [(epsilon, factor) for epsilon in epsilons for factor in factors]
    margins, *streams = np.random.SeedSequence(seed).spawn(1 + len(settings))
    tasks = [(*setting, margins) for setting in settings]
    releases = repeat(_released, tasks, streams, times, jobs=jobs, words="cuts of NistDp3")
    rows: dict[str, dict[str, Any]] = {f"{epsilon:g}": {} for epsilon in epsilons}
    for (epsilon, factor), own in zip(settings, releases, strict=True):
        middle = {key: float(np.median([release[key] for release in own])) for key in own[0]}
        rows[f"{epsilon:g}"][f"{factor:.4g}"] = middle
    schema, _, protected = income()
    nist = NistDp3(schema, chosen(), 1.0)
    filled = sum(int((nist.histogram(protected, group) > 0).sum()) for group in range(len(nist.groups)))
    return {"rows": rows, "records": len(protected), "filled": filled, "bins": sum(nist.bins), "releases": times}


def _released(
    epsilon: float, factor: float, margins: np.random.SeedSequence, stream: np.random.SeedSequence
) -> dict[str, float]:
    """Return how many bins are left and how many are noise alone, the total of the most bins, and how far rows are."""
    schema, _, protected = income()
    rng = np.random.default_rng(stream)
    nist = NistDp3(schema, chosen(), epsilon, factor=factor, rows=ROWS)
    fitted = nist.fit(protected, rng)
    noise = sum(int((nist.histogram(protected, group)[bins] == 0).sum()) for group, bins in enumerate(fitted.bins))
    rows, same = fitted.synthesize(rng=rng), np.random.default_rng(margins)  # the same margins every time
    return {
        "left": float(sum(map(len, fitted.bins))),
        "noise": float(noise),
        "widest": float(fitted.counts[nist.bins.index(max(nist.bins))].sum()),
        "distance": marginal_distance(rows, protected, schema, marginals=MARGINALS, rng=same),
    }


DEFAULT, NONE = f"{math.log(10):.4g}", "0"


def check(numbers: Numbers) -> Checks:
    none, cut = (numbers["rows"]["0.3"][factor] for factor in (NONE, DEFAULT))
    people = numbers["records"]
    words = f"epsilon 0.3, no cut: {none['left']:,.0f} bins, of which {none['noise']:,.0f} are noise alone"
    yield Check(f"{words}, expected most", none["noise"] > none["left"] / 2)
    yield between("epsilon 0.3, no cut: total of the most bins / records", none["widest"] / people, 1.3, 2)
    yield between("epsilon 0.3, the default: total of the most bins / records", cut["widest"] / people, 0.8, 1.05)
    words = f"epsilon 0.3, the default: {cut['noise']:.0f} bins of noise alone, expected at most 30"
    yield Check(words, cut["noise"] <= 30)
    words = f"epsilon 0.3: distance {none['distance']:.3f} without the cut, {cut['distance']:.3f} with it"
    yield Check(words, cut["distance"] < none["distance"])


def facts(numbers: Numbers) -> dict[str, Any]:
    none = numbers["rows"]["0.3"][NONE]
    nearest = ((epsilon, min(own, key=lambda f: own[f]["distance"])) for epsilon, own in numbers["rows"].items())
    factors = ", ".join(f"{factor} at epsilon {epsilon}" for epsilon, factor in nearest)
    rows = [
        (
            {NONE: "no cut"}.get(factor, factor),
            *(f"{row[what]:,.0f}" for what in ("left", "noise", "widest")),
            f"{row['distance']:.3f}",
        )
        for factor, row in numbers["rows"]["0.3"].items()
    ]
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, axes = page(5.8, 2, 2)
    left, right, below = spread(axes)
    people = numbers["records"]
    _draw_over(left, numbers, "left", 1.0)
    filled: dict[str, Any] = {"color": BLACK, "linewidth": 0.8}
    left.axhline(numbers["filled"], **filled)
    left.set_yscale("log")
    left.set_yticks(BINS, [f"{bins:,}" for bins in BINS])
    left.minorticks_off()
    left.set_ylabel("bins (log scale)")
    head(left, "(a) bins left", [line_key("bins with anybody in them", **filled)])
    _draw_over(right, numbers, "widest", people)
    right.axhline(1, **filled)
    right.set_ylabel("total / records")
    head(right, "(b) total of the histogram of most bins", [line_key("as many as there are records", **filled)])
    _draw_over(below, numbers, "distance", 1.0)
    below.set(ylabel="total variation", title="(c) distance of 3-way margins of the rows")
    default: dict[str, Any] = {"color": GRAY, "linewidth": 1.2, "linestyle": ":"}
    for ax in (left, right, below):
        ax.axvline(math.log(10), **default, zorder=0)
        ax.set_xlabel("factor of the cut")
    handles = [line_key(f"epsilon {epsilon}", **look) for epsilon, look in STYLES.items()]
    foot(figure, [*handles, line_key("default factor", **default)], words="one record added or removed")
    return figure


def _draw_over(ax: Axes, numbers: Numbers, what: str, unit: float) -> None:
    for epsilon, rows in numbers["rows"].items():
        ax.plot([float(factor) for factor in rows], [row[what] / unit for row in rows.values()], **STYLES[epsilon])
