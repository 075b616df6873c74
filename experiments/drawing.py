"""What the figures share: rows of bars, points, the line of the promise, axes of budgets, legends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from audit.results.plots import BLACK, BLUE, BOUND, PROMISE, VIOLATED

CIRCLE: dict[str, Any] = {"marker": "o", "color": BLUE, "linestyle": "none"}
BOX: dict[str, Any] = {"facecolor": "white", "linewidth": 0, "pad": 1.0}  # behind words


def promise(ax: Axes, at: float = 1.0, *, label: str | None = None) -> None:
    """Draw a dashed line at the promise, behind everything else."""
    ax.axvline(at, **PROMISE, zorder=0, label=label)


def bar(ax: Axes, at: float, loss: float, *, violated: bool = False, height: float = 0.6, **style: Any) -> None:
    """Draw a lower bound as a bar, as all figures do."""
    ax.barh(at, loss, height=height, **((VIOLATED if violated else BOUND) | style))


def extent(ax: Axes, values: Iterable[float], at: float, color: str = BLACK) -> None:
    """Draw a line from the smallest to the largest of some values."""
    given = list(values)
    ax.plot([min(given), max(given)], [at, at], color=color, linewidth=1.1, zorder=3)


def name_rows(ax: Axes, names: Sequence[str], *, top: float = -0.6, below: float = 0.6, size: float = 9) -> None:
    """Name the rows of a panel, the first on top."""
    ax.set_yticks(range(len(names)), names, fontsize=size)
    ax.set_ylim(len(names) - 1 + below, top)


def bare_rows(ax: Axes) -> None:
    """Leave out the vertical axis of a panel of named rows."""
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def beside(ax: Axes, at: float, words: str, x: float = 1.03, size: float = 7.5, **style: Any) -> None:
    """Write into a row, `x` in widths of the panel: beyond it if `x` is more than 1."""
    place: dict[str, Any] = {"va": "center", "fontsize": size, "transform": ax.get_yaxis_transform()}
    ax.text(x, at, words, **place | style)


def budget_axis(ax: Axes, epsilons: Iterable[float], words: str) -> None:
    """Make the horizontal axis one of budgets, logarithmic, with a tick at each."""
    ticks = list(epsilons)
    ax.set_xscale("log")
    ax.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
    ax.minorticks_off()
    ax.set_xlabel(words)


def strip(ax: Axes, values: Sequence[float], at: float, width: float, **style: Any) -> float:
    """Draw a row of points, one a value, with a bar at their median; return the median."""
    middle = float(np.median(values))
    ax.plot(values, at + np.linspace(-width, width, len(values)), **(CIRCLE | {"markersize": 2.5} | style))
    ax.plot([middle] * 2, [at - width - 0.08, at + width + 0.08], color=BLACK, linewidth=1.8)
    return middle


def line_key(label: str, **style: Any) -> Line2D:
    """Return an entry of a legend: a line, or a marker."""
    return Line2D([], [], label=label, **style)


def bar_key(label: str, color: str, *, hatched: bool = False) -> Patch:
    """Return an entry of a legend: a bar."""
    return Patch(facecolor=color, hatch="//" if hatched else "", edgecolor="white", linewidth=0, label=label)
