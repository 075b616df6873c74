"""Parts of figures: rows of bars, points, the line of the promise, axes of budgets, legends."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpecBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from audit.results.plots import (
    BLACK,
    BLUE,
    BOUND,
    EXACT,
    PAGE,
    PALE,
    PROMISE,
    RED,
    SERIES,
    VIOLATED,
    break_mark,
    new_figure,
)

CIRCLE: dict[str, Any] = {"marker": "o", "color": BLUE, "linestyle": "none"}
TIGHT: dict[str, Any] = {"handletextpad": 0.5, "columnspacing": 1.2}  # of legends
INFINITE: dict[str, Any] = {"marker": ">", "color": BLACK, "markersize": 7, "linestyle": "none"}  # an exact loss
WITNESS: dict[str, Any] = INFINITE | {"color": RED}  # a violation, whatever its lower bound
BOX: dict[str, Any] = {"facecolor": "white", "linewidth": 0, "pad": 1.0}  # behind text


def promise(ax: Axes, at: float = 1.0, *, label: str | None = None) -> None:
    ax.axvline(at, **PROMISE, zorder=0, label=label)


def page(height: float, rows: int = 1, columns: int = 1, *, heights: Sequence[float] = ()) -> tuple[Figure, list[Axes]]:
    """Return a figure as wide as a page, so that its text is not scaled."""
    figure, axes = new_figure(PAGE, height, rows, columns)
    if heights:
        _grid(axes[0]).set_height_ratios(heights)
    return figure, axes


def _grid(ax: Axes) -> GridSpecBase:
    grid = ax.get_gridspec()
    assert grid is not None
    return grid


def entitle(figure: Figure, words: str) -> None:
    most = len(wrap(words, 80))
    lines = next(lines for width in range(len(words) // most, 81) if len(lines := wrap(words, width)) == most)
    figure.set_figheight(figure.get_figheight() + 0.1 + 0.17 * len(lines))
    figure.suptitle("\n".join(lines), x=0.01, ha="left", size=10.5, weight="bold")


def spread(axes: Sequence[Axes]) -> list[Axes]:
    """Merge the last two panels of a figure with two columns, and return all panels."""
    *before, last, gone = axes
    gone.remove()
    last.set_subplotspec(_grid(last)[-1, :])
    return [*before, last]


def bar(
    ax: Axes,
    at: float,
    loss: float,
    *,
    violated: bool = False,
    height: float = 0.6,
    end: float = math.inf,
    **style: Any,
) -> None:
    """Draw a lower bound as a bar, with a break mark if it is longer than the axis."""
    ax.barh(at, min(loss, end), height=height, **((VIOLATED if violated else BOUND) | style))
    if loss > end:
        break_mark(ax, end, at)


def head(ax: Axes, title: str, handles: Sequence[Any] = (), *, ncols: int = 3, x: float = 0.0) -> None:
    if not handles:
        ax.set_title(title, x=x)
        return
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (x, 1.0), "alignment": "left", "borderpad": 0.0}
    ax.legend(handles=handles, title=title, title_fontsize=10, fontsize=8, ncols=ncols, **place, **TIGHT)


def foot(figure: Figure, handles: Sequence[Any], *, ncols: int = 4, words: str | None = None) -> None:
    place: dict[str, Any] = {"loc": "outside lower center", "title": words, "title_fontsize": 8}
    figure.legend(handles=handles, fontsize=8, ncols=ncols, **place, **TIGHT)


def losses(
    ax: Axes, at: float, bounds: Sequence[float], exact: float | None = None, *, end: float = math.inf, **style: Any
) -> None:
    """Draw a row: a bar for the median lower bound, a line from the smallest to the largest, and the exact loss."""
    # Bars and lines are cut at `end`. An infinite loss is an arrow there. Further arguments are those of `bar`.
    bar(ax, at, float(np.median(bounds)), end=end, **style)
    if len(bounds) > 1:
        extent(ax, np.minimum(bounds, end), at)
    if exact is not None:
        place = (exact, EXACT) if math.isfinite(exact) else (end, INFINITE)
        ax.plot(place[0], at, **place[1], clip_on=False, zorder=5)


def extent(ax: Axes, values: Iterable[float], at: float, color: str = BLACK) -> None:
    numbers = list(values)
    ax.plot([min(numbers), max(numbers)], [at, at], color=color, linewidth=1.1, zorder=3)


def name_rows(ax: Axes, names: Sequence[str], *, top: float = -0.6, size: float = 9) -> None:
    ax.set_yticks(range(len(names)), names, fontsize=size)
    ax.set_ylim(len(names) - 0.4, top)


def bare_rows(ax: Axes) -> None:
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def beside(ax: Axes, at: float, words: str, x: float = 1.03, size: float = 8, **style: Any) -> None:
    """Write text in a row at `x`, in widths of the panel; if `x` exceeds 1, right of the panel."""
    place: dict[str, Any] = {"va": "center", "fontsize": size, "transform": ax.get_yaxis_transform()}
    ax.text(x, at, words, **place | style)


def column(ax: Axes, at: float, words: str, points: float, **style: Any) -> None:
    """Write right-aligned text in a row that ends `points` points right of the panel."""
    place: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
    place |= {"annotation_clip": False, "ha": "right", "va": "center", "fontsize": 8}
    ax.annotate(words, (1, at), (points, 0), **place | style)


def budget_axis(ax: Axes, epsilons: Iterable[float], words: str) -> None:
    """Make the horizontal axis a logarithmic axis of budgets, with a tick at each."""
    ticks = list(epsilons)
    ax.set_xscale("log")
    ax.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
    ax.minorticks_off()
    ax.set_xlabel(f"{words} (log scale)")


def styles(names: Iterable[Any], **more: Any) -> dict[Any, dict[str, Any]]:
    """Return line styles by name, each with another color, dash pattern and marker."""
    looks = ({"color": color, "linestyle": dashes, "marker": marker} for color, dashes, marker in SERIES)
    return {name: {**look, "markersize": 4, **more} for name, look in zip(names, looks, strict=False)}


def keys(**labels: str) -> list[Any]:
    looks: dict[str, Callable[[str], Any]] = {
        "bound": bar_key,
        "pale": partial(bar_key, color=PALE),
        "violated": partial(bar_key, violated=True),
        "extent": partial(line_key, color=BLACK, linewidth=1.1),
        "exact": partial(line_key, **EXACT),
        "infinite": partial(line_key, **INFINITE),
        "promise": partial(line_key, **PROMISE),
    }
    return [looks[kind](label) for kind, label in labels.items()]


def own_keys(ax: Axes) -> list[Any]:
    return list(ax.get_legend_handles_labels()[0])


def line_key(label: str, **style: Any) -> Line2D:
    return Line2D([], [], label=label, **style)


def bar_key(label: str, color: str = "", *, violated: bool = False, alpha: float = 1.0) -> Patch:
    """Return a legend entry of a bar: in `color`, by default blue, or red and hatched for a violation."""
    look: dict[str, Any] = {"edgecolor": "white", "linewidth": 0, "label": label, "alpha": alpha}
    return Patch(facecolor=color or (RED if violated else BLUE), hatch="//" if violated else None, **look)
