"""The pilot's two illustrations, Figures 1 and 2: what Laplace noise keeps, and how the top-down method goes down."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from algorithms.hierarchy import Hierarchy
from algorithms.noise import Laplace
from algorithms.ons.adjust import FLOOR, adjusted, maximum_remainder
from algorithms.ons.tables import Table
from algorithms.ons.top_down import OnsTopDown
from algorithms.schema import Schema
from audit.results.plots import GRAY, SERIES
from experiments.drawing import head, own_keys, page
from experiments.experiment import Check, Checks, Numbers, between, near

EPSILON, COUNT = 1.0, 10
TREE = Hierarchy.from_codes(["north", "south"])
SCHEMA = Schema({"sex": ("female", "male")})
LEVELS, SHARES = (Table(0, "total"), Table(0, "detailed"), Table(1, "detailed")), ("0.2", "0.3", "0.5")
WORDS = ("all deaths", "by sex", "by region and sex")
PEOPLE = np.array([[14, 9], [5, 0]])


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Return densities on two neighbors, and one release level by level (quick: the same)."""
    noise, at = Laplace(1 / EPSILON), np.linspace(COUNT - 5, COUNT + 6, 221)
    densities = [noise.logpdf(at - count).tolist() for count in (COUNT, COUNT + 1)]
    top_down = OnsTopDown(TREE, SCHEMA, 2 * EPSILON, LEVELS, SHARES)
    release = top_down(PEOPLE, 1, np.random.default_rng(seed))[0]
    return {
        "at": at.tolist(),
        "log_densities": densities,
        "epsilon": EPSILON,
        "levels": _by_hand(top_down, np.random.default_rng(seed)),
        "release": release.tolist(),
    }


def _by_hand(top_down: OnsTopDown, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return exact, noisy, adjusted and rounded counts of every area of every level."""
    above = np.zeros(0, np.int64)
    levels = []
    for place, exact in enumerate(top_down.exact_levels(PEOPLE)):
        noisy = top_down.noisy(exact, place, 1, rng)[0]
        raised = np.where(noisy <= 0, FLOOR, noisy)
        if place < 2:  # a family is all of the level
            scaled = adjusted([above.sum()], raised.reshape(1, -1)) if place else raised
            rounded = maximum_remainder([above.sum()], scaled, rng) if place else np.rint(scaled).astype(np.int64)
        else:  # a family is one sex in all areas
            scaled = adjusted(above, raised.T).T
            rounded = maximum_remainder(above, scaled.T, rng).T
        above = rounded.reshape(-1)
        steps = dict(zip(STEPS, (exact, noisy, scaled, rounded), strict=True))
        parts = {name: np.reshape(counts, exact.shape).tolist() for name, counts in steps.items()}
        areas = [dict(zip(STEPS, own, strict=True)) for own in zip(*parts.values(), strict=True)]
        levels.append({"level": WORDS[place], "areas": areas})
    return levels


STEPS = ("exact", "noisy", "adjusted", "rounded")


def check(numbers: Numbers) -> Checks:
    on_x, on_y = np.array(numbers["log_densities"])
    loss, at = np.abs(on_x - on_y), np.array(numbers["at"])
    yield between("largest log-ratio of densities / epsilon", float(loss.max()) / numbers["epsilon"], 0, 1 + 1e-9)
    outside = loss[(at < COUNT) | (at > COUNT + 1)]
    yield near("smallest outside of the two counts / epsilon", float(outside.min()) / numbers["epsilon"], 1, 1e-9)
    for above, level in pairwise(numbers["levels"]):
        total, own = (sum(map(sum, _whole(one, "rounded"))) for one in (above, level))
        yield Check(f"{level['level']}: adds up to {own}, {total} above", own == total)
    released = numbers["release"] == _whole(numbers["levels"][-1], "rounded")
    yield Check(f"by hand {_whole(numbers['levels'][-1], 'rounded')}, released {numbers['release']}", released)


def facts(numbers: Numbers) -> dict[str, Any]:
    rows = [
        (level["level"], *(", ".join(f"{count:.3g}" for count in area[step]) for step in STEPS))
        for level in numbers["levels"]
        for area in level["areas"]
    ]
    return {"more": COUNT + 1, "rows": rows}


def _whole(level: dict[str, Any], step: str) -> list[list[float]]:
    return [area[step] for area in level["areas"]]


def draw(numbers: Numbers) -> Figure:
    figure, (top, below) = page(6.6, 2, 1)
    at = numbers["at"]
    words = (f"count {COUNT}", f"count {COUNT + 1}: one person more")
    for log_density, name, (color, line, _) in zip(numbers["log_densities"], words, SERIES, strict=False):
        top.plot(at, np.exp(log_density), color=color, linestyle=line, label=name)
        times = np.exp(np.array(log_density) + numbers["epsilon"])
        top.plot(at, times, color=color, linestyle=":", linewidth=1.0, label=f"$e^\\epsilon$ times that of {name[:8]}")
    top.set(ylim=(0, 0.75), xlabel="noisy count", ylabel="probability density")
    head(top, f"(a) Laplace noise, $\\epsilon$ = {numbers['epsilon']:g}", own_keys(top), ncols=2)
    below.set_title("(b) the way down; in each box: exact and noisy, then adjusted and (bold) rounded", x=-0.0)
    _draw_levels(below, numbers["levels"])
    return figure


def _draw_levels(ax: Axes, levels: list[dict[str, Any]]) -> None:
    for row, level in enumerate(levels):
        ax.text(-0.02, -row, level["level"], ha="right", va="center", fontsize=8)
        counts = [
            (name, [steps[step][place] for step in STEPS])
            for area, steps in enumerate(level["areas"])
            for place, name in enumerate(_names(row, area))
        ]
        for place, (name, steps) in enumerate(counts):
            width = 1 / len(counts)
            box = FancyBboxPatch((place * width + 0.02, -row - 0.3), width - 0.04, 0.6, boxstyle="round,pad=0.01")
            box.set(facecolor="white", edgecolor=GRAY, linewidth=0.8)
            ax.add_patch(box)
            exact, noisy, scaled, rounded = steps
            words = f"{name}\n{exact:g}, {noisy:z.1f},\n{scaled:.1f}, $\\bf{{{rounded:g}}}$"
            ax.text((place + 0.5) * width, -row, words, ha="center", va="center", fontsize=8)
    ax.set(xlim=(-0.2, 1.02), ylim=(-len(levels) + 0.5, 0.5))
    ax.axis("off")


def _names(row: int, area: int) -> list[str]:
    sexes = list(SCHEMA.attributes["sex"])
    region = ("north", "south")[area]
    return (["all"], sexes, [f"{region}, {sex}" for sex in sexes])[row]
