"""Parts of figures: rows of bars, points, the line of the promise, axes of budgets, legends."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from textwrap import wrap
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpecBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogFormatter

from audit.results import plots

PHONE, LINE = 4.3, 0.17  # inches: width at which text of 8 points is 9 px high on 350 px; height of a line of text
CIRCLE: dict[str, Any] = {"marker": "o", "color": plots.BLUE, "linestyle": "none"}
TIGHT: dict[str, Any] = {"handletextpad": 0.5, "columnspacing": 1.2}  # of legends
INFINITE: dict[str, Any] = {"marker": ">", "color": plots.BLACK, "markersize": 7, "linestyle": "none"}  # an exact loss
WITNESS: dict[str, Any] = INFINITE | {"color": plots.RED}  # a violation, whatever its lower bound
BOX: dict[str, Any] = {"facecolor": "white", "linewidth": 0, "pad": 1.0}  # behind text


def promise(ax: Axes, at: float = 1.0, *, label: str | None = None) -> None:
    ax.axvline(at, **plots.PROMISE, zorder=0, label=label)


def width() -> float:
    """Return the width of figures in inches: that of a page, or of a phone if matplotlib's setting says so."""
    return PHONE if matplotlib.rcParams["figure.figsize"][0] == PHONE else plots.PAGE


def page(
    height: float, rows: int = 1, columns: int = 1, *, heights: Sequence[float] = (), stacked: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure as wide as what shows it, so that its text is not scaled; on a phone panels may be stacked."""
    if stacked and width() == PHONE:
        rows, columns, height = columns, 1, 0.7 * columns * height
    figure, axes = plots.new_figure(width(), height, rows, columns)
    if heights:
        _grid(axes[0]).set_height_ratios(heights)
    return figure, axes


def _grid(ax: Axes) -> GridSpecBase:
    grid = ax.get_gridspec()
    assert grid is not None
    return grid


def _grow(ax: Axes | Figure, lines: float) -> None:
    """Make a figure higher by lines of text, which a panel takes if it is given."""
    figure: Any = ax.get_figure()
    before = figure.get_figheight()
    figure.set_figheight(before + LINE * lines)
    if isinstance(ax, Axes) and (panel := ax.get_subplotspec()) is not None:
        ratios: Any = np.array(_grid(ax).get_height_ratios(), float)
        heights = before * ratios / ratios.sum()
        heights[panel.rowspan] += LINE * lines
        _grid(ax).set_height_ratios(heights)


def _lines(words: str, inches: float, points: float) -> str:
    """Break a text into as few lines as fit, all about as long."""
    wide = int(130 * inches / points)
    most = max(len(wrap(words, wide)), 1)
    return next(
        "\n".join(lines)
        for size in range(max(len(words) // most, 1), wide + 1)
        if len(lines := wrap(words, size)) <= most
    )


def _inches(ax: Axes) -> float:
    panel = ax.get_subplotspec()
    assert panel is not None
    return width() * len(panel.colspan) / panel.get_gridspec().ncols


def entitle(figure: Figure, words: str) -> None:
    """Write the title, and labels of axes without exponents, which would be small."""
    title = _lines(words, width(), 11.8)
    _grow(figure, 0.6 + len(title.splitlines()))
    figure.suptitle(title, x=0.01, ha="left", size=10.5, weight="bold")
    for ax in figure.axes:
        if width() == PHONE:
            ax.set_xlabel(_lines(ax.get_xlabel(), _inches(ax) - 0.35, 9), loc="left")
        for axis in (ax.xaxis, ax.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatter):
                axis.set_major_formatter(_plain)


def _plain(value: float, _: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value:,.0f}" if value >= 1 else np.format_float_positional(float(f"{value:.3g}"), trim="-")


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
    ax.barh(at, min(loss, end), height=height, **((plots.VIOLATED if violated else plots.BOUND) | style))
    if loss > end:
        plots.break_mark(ax, end, at)


def head(ax: Axes, title: str, handles: Sequence[Any] = (), *, ncols: int = 3, x: float = 0.0) -> None:
    x, title = (x, title) if width() == plots.PAGE else (0.0, _lines(title, 0.8 * _inches(ax), 10))
    if not handles:
        ax.set_title(title, x=x)
        return
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (x, 1.0), "alignment": "left", "borderpad": 0.0}
    ax.legend(title=title, title_fontsize=10, **place, **_entries(ax, handles, ncols, 0.8 * _inches(ax)))


def foot(figure: Figure, handles: Sequence[Any], *, ncols: int = 4, words: str | None = None) -> None:
    place: dict[str, Any] = {"loc": "outside lower center", "title_fontsize": 8}
    title = None if words is None else _lines(words, width(), 9)
    figure.legend(title=title, **place, **_entries(figure, handles, ncols, width()))


def _entries(ax: Axes | Figure, handles: Sequence[Any], ncols: int, inches: float) -> dict[str, Any]:
    """Return the entries of a legend, on a phone in as many of the columns as fit."""
    if width() == PHONE:
        for handle in handles:
            handle.set_label(_lines(handle.get_label(), inches - 0.3, 8))
        sizes = [28 + 4.6 * max(map(len, handle.get_label().split("\n"))) for handle in handles]
        while ncols > 1 and sum(max(column, default=0) for column in np.array_split(sizes, ncols)) > 72 * inches:
            ncols -= 1
        _grow(ax, math.ceil(len(handles) / ncols))
    return {"handles": handles, "fontsize": 8, "ncols": ncols, **TIGHT}


def losses(
    ax: Axes, at: float, bounds: Sequence[float], exact: float | None = None, *, end: float = math.inf, **style: Any
) -> None:
    """Draw a row: a bar for the median lower bound, a line from the smallest to the largest, and the exact loss."""
    # Bars and lines are cut at `end`. An infinite loss is an arrow there. Further arguments are those of `bar`.
    bar(ax, at, float(np.median(bounds)), end=end, **style)
    if len(bounds) > 1:
        extent(ax, np.minimum(bounds, end), at)
    if exact is not None:
        place = (exact, plots.EXACT) if math.isfinite(exact) else (end, INFINITE)
        ax.plot(place[0], at, **place[1], clip_on=False, zorder=5)


def extent(ax: Axes, values: Iterable[float], at: float, color: str = plots.BLACK) -> None:
    numbers = list(values)
    ax.plot([min(numbers), max(numbers)], [at, at], color=color, linewidth=1.1, zorder=3)


def name_rows(
    ax: Axes, names: Sequence[str], *, at: Sequence[float] = (), top: float = -0.6, half: float = 0.33
) -> None:
    """Name rows, by default at 0, 1, ..., left of them, or on a phone `half` a row above them."""
    at = at or range(len(names))
    bottom = at[-1] + 0.6
    if width() == plots.PAGE:
        ax.set_yticks(at, names, fontsize=8)
        ax.set_ylim(bottom, top)
        return
    places, words = [place - half for place in at], [name.replace("\n", " ") for name in names]
    ax.set_yticks(places, words, fontsize=8, ha="left", va="bottom", bbox=BOX | {"pad": 0.0})
    ax.tick_params(axis="y", length=0, pad=-3)
    ax.set(ylim=(bottom, min(top, at[0] - half - 0.42)), axisbelow=True, zorder=bool(names[0]))
    for label in ax.get_yticklabels():
        label.set_in_layout(False)
    _grow(ax, 1.45 * len([name for name in names if name]))


def rule(ax: Axes, at: float, **style: Any) -> None:
    """Draw a line above a row and its name."""
    ax.axhline(at - (0.5 if width() == plots.PAGE else 0.6), **style)


def group_rows(ax: Axes, at: float, words: str, **style: Any) -> None:
    """Write a heading above rows: left of the panel, or on a phone in it."""
    place: dict[str, Any] = {"x": -0.02, "ha": "right"} if width() == plots.PAGE else {"x": 0.0, "bbox": BOX}
    beside(ax, at, words, **place | style)


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
    looks = ({"color": color, "linestyle": dashes, "marker": marker} for color, dashes, marker in plots.SERIES)
    return {name: {**look, "markersize": 4, **more} for name, look in zip(names, looks, strict=False)}


def keys(**labels: str) -> list[Any]:
    looks: dict[str, Callable[[str], Any]] = {
        "bound": bar_key,
        "pale": partial(bar_key, color=plots.PALE),
        "violated": partial(bar_key, violated=True),
        "extent": partial(line_key, color=plots.BLACK, linewidth=1.1),
        "exact": partial(line_key, **plots.EXACT),
        "infinite": partial(line_key, **INFINITE),
        "promise": partial(line_key, **plots.PROMISE),
    }
    return [looks[kind](label) for kind, label in labels.items()]


def compact(svg: str) -> str:
    """Return a figure in about half the bytes: hundredths of a point, names by order, no spaces."""
    style, end, drawing = svg.partition("</style>")
    drawing = re.sub(r"<!--.*?-->|(?<=>)\s+(?=<)|(?<=<g) id=\"[^\"]*\"", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r'transform="translate\(([-.\d]+) 0\)"/>', r'x="\1"/>', drawing)
    drawing = re.sub(r"(?<!scale\()-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", drawing)
    short = {name: f"g{place}" for place, name in enumerate(re.findall(r' id="([^"]*)"', drawing))}
    drawing = re.sub(r'( id="|"#|url\(#)([^")]+)', lambda use: use[1] + short.get(use[2], use[2]), drawing)
    return style + end + re.sub(r' *\n *(?=[A-Zz"])|(?<=\d) (?=[MLQCz])|(?<=[MLQC]) ', "", drawing)


def own_keys(ax: Axes) -> list[Any]:
    return list(ax.get_legend_handles_labels()[0])


def line_key(label: str, **style: Any) -> Line2D:
    return Line2D([], [], label=label, **style)


def bar_key(label: str, color: str = "", *, violated: bool = False, alpha: float = 1.0) -> Patch:
    """Return a legend entry of a bar: in `color`, by default blue, or red and hatched for a violation."""
    look: dict[str, Any] = {"edgecolor": "white", "linewidth": 0, "label": label, "alpha": alpha}
    return Patch(facecolor=color or (plots.RED if violated else plots.BLUE), hatch="//" if violated else None, **look)
