"""Flaxman's residual estimate over ranges of its settings: populations, trees, budgets, parts, kernels and windows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.population import uniform_population
from audit.estimates.residuals import residual_loss
from audit.results.plots import BLACK, GRAY, PROMISE
from experiments.audits import repeat
from experiments.drawing import foot, line_key, page, styles
from experiments.experiment import Check, Checks, Numbers, between

REPETITIONS, FEW = 11, 2
UNSTEADY = (("epsilon", 0.025), ("a_leaf", 30))  # where the noise of a family is like its count
ENOUGH = 0.25  # budget from which on frequencies need no smoothing
METHODS = ("kde", "histogram")
STYLES = styles(("GDPC", "RDPC", "ADPC"), linestyle="-", linewidth=1.2)


@dataclass(frozen=True)
class Setting:
    """One way to ask: the paper's, unless a number is another. The multiplier is that of its notebook."""

    people: int = 1_000_000
    levels: int = 3
    a_leaf: float = 100
    epsilon: float = 0.1
    parts: int = 4
    bandwidth: float = 0.15
    percentile: float = 95.0
    multiplier: float = 2.0


QUICK = (1, 2, 3, 0.025, 0.1, 1.0)
RANGES: dict[str, tuple[str, tuple[float, ...]]] = {
    "people": ("people N", (100_000, 300_000, 1_000_000, 3_000_000)),
    "levels": ("levels J", (1, 2, 3, 4, 5)),
    "a_leaf": ("people a leaf $\\mu$", (30, 100, 300, 1000)),
    "epsilon": ("budget $\\epsilon$", (0.025, 0.05, 0.1, 0.25, 0.5, 1.0)),
    "parts": ("parts P of ADPC", (1, 2, 4, 8, 16)),
    "bandwidth": ("kernel width (sd)", (0.05, 0.1, 0.15, 0.3, 0.6)),
    "percentile": ("percentile of the window", (80, 90, 95, 99)),
    "multiplier": ("multiplier of the window", (1.0, 1.5, 2.0, 3.0)),
}


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Estimate 11 times at each of 37 settings, one number other than the paper's (quick: twice at 10)."""
    settings = [(name, value) for name, (_, values) in RANGES.items() for value in values]
    if quick:
        settings = [(name, value) for name, value in settings if name in ("levels", "epsilon") and value in QUICK]
    times = FEW if quick else REPETITIONS
    streams = np.random.SeedSequence(seed).spawn(len(settings))
    tasks = [(replace(Setting(), **{name: value}),) for name, value in settings]  # type: ignore[arg-type]
    estimates = repeat(_estimated, tasks, streams, times, jobs=jobs, words="residual estimates", unit="estimates")
    rows = []
    for (name, value), own in zip(settings, estimates, strict=True):
        middle = {key: np.median([estimate[key] for estimate in own], axis=0).tolist() for key in own[0]}
        rows.append({"range": name, "value": value, "estimates": middle})
    return {"rows": rows, "repetitions": times, "paper": vars(Setting())}


def _estimated(setting: Setting, stream: np.random.SeedSequence) -> dict[str, list[float]]:
    rng = np.random.default_rng(stream)
    tree, counts = uniform_population(setting.people, setting.levels, setting.a_leaf, rng)
    epsilon = setting.epsilon
    mechanisms: dict[str, Any] = {
        "GDPC": GDPC(epsilon),
        "RDPC": RDPC(epsilon, tree),
        "ADPC": ADPC(epsilon, setting.parts),
    }
    estimates = {}
    for name, mechanism in mechanisms.items():
        residuals = mechanism(counts, 1, rng)[0] - counts
        for method in METHODS:
            options: dict[str, Any] = {"bandwidth": setting.bandwidth} if method == "kde" else {}
            window = {"percentile": setting.percentile, "multiplier": setting.multiplier, "resamples": 20}
            curve = residual_loss(residuals, method=method, rng=rng, **window, **options)  # type: ignore[arg-type]
            largest = float(np.nanmax(np.abs(curve.loss)))
            estimates[f"{name}, {method}"] = [curve.value / epsilon, largest / epsilon]
    return estimates


def check(numbers: Numbers) -> Checks:
    few = numbers["repetitions"] == FEW
    for row in numbers["rows"]:
        where = f"{row['range']} {row['value']:g}"
        for name in ("GDPC", "RDPC"):
            median, largest = row["estimates"][f"{name}, kde"]
            levels = row["value"] if row["range"] == "levels" else Setting().levels
            off, part = (0.1, 1.0) if name == "GDPC" else (0.15, 1 / (levels + 1))  # as the paper says
            if name == "GDPC" or (row["range"], row["value"]) not in UNSTEADY:
                yield between(f"{where}: {name}, median / its part of epsilon", median / part, 1 - off, 1 + off)
            else:
                yield Check(f"{where}: {name}, median {median:.2f}, expected below {part:.2f}", median < 0.9 * part)
            yield Check(f"{where}: {name}, largest {largest:.2f} above the median {median:.2f}", largest > median)
        if row["range"] == "parts":
            share = row["estimates"]["ADPC, kde"][0] * math.sqrt(row["value"])
            yield between(f"{where}: ADPC, median x sqrt(P)", share, 0.9, 1.2)
        if row["range"] == "epsilon":
            median, rough = row["estimates"]["GDPC, histogram"][0], row["value"] < ENOUGH
            words = f"{where}: GDPC, histogram: {median:.2f}, expected {'above 1.3' if rough else '0.9 to 1.1'}"
            yield Check(words, median > 1.3 if rough else 0.9 <= median <= 1.1)
    narrow = [row["estimates"]["GDPC, kde"][1] for row in numbers["rows"] if row["range"] == "bandwidth"]
    yield Check("the largest falls as the kernel grows", few or narrow == sorted(narrow, reverse=True) != [])


def facts(numbers: Numbers) -> dict[str, Any]:
    every = [row["estimates"]["GDPC, kde"][0] for row in numbers["rows"]]

    def line(words: str, estimate: str, name: str, place: int = 0) -> tuple[str, str, str]:
        rows = [row for row in numbers["rows"] if row["range"] == name]
        settings = ", ".join(f"{row['value']:g}" for row in rows)
        return words, settings, ", ".join(f"{row['estimates'][estimate][place]:.2f}" for row in rows)

    rows = [
        line("RDPC, by levels", "RDPC, kde", "levels"),
        line("RDPC, by epsilon", "RDPC, kde", "epsilon"),
        line("ADPC, by parts", "ADPC, kde", "parts"),
        line("ADPC, by multiplier of the window", "ADPC, kde", "multiplier"),
        line("GDPC, largest of the curve, by epsilon", "GDPC, kde", "epsilon", 1),
        line("GDPC, histogram without smoothing, by epsilon", "GDPC, histogram", "epsilon"),
    ]
    return {"every": every, "rows": [row for row in rows if row[1]]}


SHOWN = {
    "epsilon": "(a) GDPC: all of epsilon",
    "levels": "(b) RDPC: a level's share",
    "parts": "(c) ADPC: less by more parts",
}


def draw(numbers: Numbers) -> Figure:
    ranges = [name for name in SHOWN if any(row["range"] == name for row in numbers["rows"])]
    figure, axes = page(3.9, 1, len(ranges))
    for ax, name in zip(axes, ranges, strict=True):
        _draw_range(ax, [row for row in numbers["rows"] if row["range"] == name], numbers["paper"][name])
        words = RANGES[name][0]
        ax.set(xlabel=words if ax.get_xscale() == "linear" else f"{words} (log scale)", title=SHOWN[name])
    axes[0].set_ylabel("estimate / $\\epsilon$ (log scale)")
    handles = [line_key(name, **look) for name, look in STYLES.items()]
    handles += [
        line_key("$\\epsilon$, the promise", **PROMISE),
        line_key("kernel, median of the curve", color=BLACK),
        line_key("kernel, largest", color=BLACK, linestyle=":"),
        line_key("histogram, median", color=BLACK, linestyle="none", marker="x"),
        line_key("the paper's setting", color=GRAY, linewidth=3, alpha=0.4),
    ]
    foot(figure, handles)
    return figure


def _draw_range(ax: Axes, rows: list[dict[str, Any]], usual: float) -> None:
    at = [row["value"] for row in rows]
    for name, look in STYLES.items():
        medians, largest = np.array([row["estimates"][f"{name}, kde"] for row in rows]).T
        ax.plot(at, medians, **look)
        ax.plot(at, largest, color=look["color"], linestyle=":", linewidth=1.2)
        histograms = [row["estimates"][f"{name}, histogram"][0] for row in rows]
        ax.plot(at, histograms, "x", color=look["color"], markersize=5)
    ax.axhline(1, **PROMISE, zorder=0)
    ax.axvline(usual, color=GRAY, linewidth=3, alpha=0.4, zorder=0)
    if rows[0]["range"] == "levels":
        ax.set_xticks(at)
    else:
        ax.set_xscale("log")
        ax.set_xticks(at, [f"{value:g}" for value in at])
        ax.minorticks_off()
    ax.set(yscale="log", ylim=(0.12, 12))
    ax.set_yticks([0.25, 0.5, 1, 2, 4, 8], ["1/4", "1/2", "1", "2", "4", "8"])
    ax.minorticks_off()
