"""Draw figures in the house style from numbers; nothing is measured here."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from audit.io.files import Kind, write_atomically
from audit.io.text import printable
from audit.results.formatting import missing_power, percent, texts

__all__ = [
    "BLACK",
    "BLUE",
    "BOUND",
    "ESTIMATE",
    "EXACT",
    "FIGURES",
    "GRAY",
    "GREEN",
    "NO_POWER",
    "ORANGE",
    "PAGE",
    "PALE",
    "PROMISE",
    "RED",
    "SERIES",
    "SHADES",
    "VIOLATED",
    "break_mark",
    "house_style",
    "label_of",
    "new_figure",
    "plot_audits",
    "plot_estimate",
    "plot_plan",
    "save_figure",
]

PAGE = 7.3  # inches of a text column; wider figures would be scaled down, with smaller text

# Okabe and Ito (2008): distinct for color-blind readers. Shapes and positions also carry the meaning.
BLACK, ORANGE, BLUE, RED, GRAY = "#000000", "#E69F00", "#0072B2", "#D55E00", "#8C8C8C"
GREEN, PURPLE, BROWN, CYAN = "#009E73", "#8F4A9E", "#8A5A24", "#4DB8D0"
# Color, dashes and marker of series that have no fixed meaning below; the legend explains them.
SERIES = ((GREEN, "-", "o"), (PURPLE, "--", "s"), (BROWN, "-.", "^"), (CYAN, ":", "D"))
# In all figures a lower bound is a blue bar (shades of blue for several kinds), a promise a dashed line, an exact loss
# a diamond, an estimate orange, a violation red and hatched, and a bound without power gray and dotted. Gray is also
# for cited numbers and guides of the eye.
PALE = "#8DBFE0"
SHADES = ("#00395C", BLUE, PALE)
BOUND: dict[str, Any] = {"color": BLUE}
VIOLATED: dict[str, Any] = {"color": RED, "hatch": "//", "edgecolor": "white", "linewidth": 0}
NO_POWER: dict[str, Any] = {"color": GRAY, "hatch": "..", "edgecolor": "white", "linewidth": 0}
PROMISE: dict[str, Any] = {"color": BLACK, "linewidth": 1.2, "linestyle": "--"}
EXACT: dict[str, Any] = {"marker": "D", "color": BLACK, "markersize": 4.5, "linestyle": "none"}
ESTIMATE: dict[str, Any] = {"color": ORANGE}
# Color -> color on a dark screen. An embedded SVG follows the color scheme of its page.
DARK = {
    **{"#FFFFFF": "#14181E", BLACK: "#E4E7EA", GRAY: "#A3ABB4", RED: "#F07B3F", ORANGE: ORANGE, CYAN: CYAN},
    **{SHADES[0]: "#A9D6F5", BLUE: "#4A9FDC", PALE: "#2B6590", GREEN: "#1FB58A", PURPLE: "#C084D0", BROWN: "#BC8A63"},
}
BARS = {"violated": VIOLATED, "not refuted": BOUND, "no power": NO_POWER}

METADATA: dict[str, dict[str, str | None]] = {
    ".svg": {"Date": None},
    ".png": {"Software": "plaudit"},
    ".pdf": {"CreationDate": None, "Creator": "plaudit"},
}
FOR_DARK = "@media screen and (prefers-color-scheme: dark){svg{fill:" + DARK[BLACK]
FIGURES = {  # by suffix
    ".svg": Kind("a figure of plaudit", b"<?xml", FOR_DARK.encode()),
    ".png": Kind("a figure of plaudit", b"\x89PNG", b"Software\0plaudit"),
    ".pdf": Kind("a figure of plaudit", b"%PDF", b"/Creator (plaudit)"),
}

STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "svg.hashsalt": "plaudit",  # the same numbers give the same bytes
    "svg.fonttype": "path",
    "text.usetex": False,  # LaTeX would interpret names and labels
}


@contextmanager
def house_style() -> Iterator[None]:
    """Use the house style inside the context, and restore the user's settings afterwards."""
    with matplotlib.rc_context(STYLE):
        yield


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure (size in inches) and its axes, row by row, without touching matplotlib's global state."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.flat)


def save_figure(figure: Figure, path: Path, *, private: bool = False) -> None:
    """Write a figure reproducibly: without dates and with fixed ids, so the same numbers give the same bytes."""
    ending, drawn = path.suffix.lower(), io.BytesIO()
    with house_style():
        figure.savefig(drawn, format=ending[1:], metadata=METADATA.get(ending), dpi=150)
    data = drawn.getvalue()
    data = data.replace(b"</style>", _dark_rules() + b"</style>", 1) if ending == ".svg" else data
    write_atomically(path, data, FIGURES.get(ending), private=private)


def _dark_rules() -> bytes:
    """Return CSS rules for dark screens; text is drawn as paths, which inherit their color."""
    rules = []
    for color, dark in ((color.lower(), dark.lower()) for color, dark in DARK.items()):
        rules.append(f'[style*="fill: {color}"],[fill="{color}"]{{fill:{dark}!important}}')
        rules.append(f'[style*="stroke: {color}"]{{stroke:{dark}!important}}')
    return f"\n{FOR_DARK}}}{''.join(rules)}}}\n".encode()


def label_of(words: str) -> str:
    """Escape possibly hostile text so that matplotlib draws it literally, without math mode."""
    return printable(words).replace("$", r"\$")


def break_mark(ax: Axes, end: float, at: float) -> None:
    """Draw a break mark on a horizontal bar that is longer than the axis."""
    slanted = ((-0.5, -1.0), (0.0, -1.0), (0.5, 1.0), (0.0, 1.0), (-0.5, -1.0))
    ax.plot(0.96 * end, at, marker=slanted, markersize=16, color="white", markeredgecolor=BLACK, zorder=4)


def plot_audits(audits: Sequence[Mapping[str, Any]], ax: Axes | None = None, *, scale: str = "") -> Axes:
    """Draw promise and lower bound of each audit, from its summary, on one axis; the first audit is on top."""
    if not audits:
        raise ValueError("audits must be one or more, got none")
    ax = ax if ax is not None else new_figure(7.0, 1.4 + 0.45 * len(audits))[1][0]
    mixed = len({audit["parameter"] for audit in audits}) > 1
    units = [audit["promised"] if mixed and 0 < audit["promised"] < math.inf else 1.0 for audit in audits]
    losses = [audit[key] / unit for audit, unit in zip(audits, units, strict=True) for key in ("promised", "measured")]
    longest = max((loss for loss in losses if 0 < loss < math.inf), default=1.0)
    end = 1.12 * longest
    for row, (audit, unit) in enumerate(zip(audits, units, strict=True)):
        bound, least = audit["measured"] / unit, audit["detectable"] / unit
        ax.barh(row, min(bound, end), height=0.5, **BARS[audit["verdict"]])
        if bound > end:  # also an infinite one, which fills the axis
            break_mark(ax, end, row)
        number = texts(audit)["measured"]
        words = f"{audit['parameter']} {number}" if mixed else number
        words += f": {audit['verdict']}" + (" (unbounded)" if audit["witness"] else "")
        ax.text(1.02, row, words, va="center", transform=ax.get_yaxis_transform())
        ax.plot([audit["promised"] / unit] * 2, [row - 0.4, row + 0.4], **PROMISE, zorder=3)
        mark: dict[str, Any] = {"color": GRAY, "markersize": 5, "linestyle": "none", "zorder": 4}
        if least < 1.1 * longest and not audit.get("far"):
            ax.plot(least, row + 0.33, marker="v", **mark)
        elif needed := missing_power(audit):
            ax.plot(end, row + 0.38, marker=">", **mark, clip_on=False)
            ax.text(0.98 * end, row + 0.38, needed, ha="right", va="center", fontsize=8)
    ax.plot([], [], **PROMISE, label="promised")
    ax.plot([], [], marker="v", color=GRAY, linestyle="none", label="minimum detectable loss")
    ax.set_yticks(range(len(audits)), [label_of(audit["name"]) for audit in audits])
    ax.set_ylim(len(audits) - 0.4, -0.6)
    ax.set_xlim(0, end)
    confidence = ", ".join(sorted({percent(audit["confidence"]) for audit in audits}))
    unit_words = "in units of each promise" if mixed else scale
    ax.set_xlabel(f"privacy loss for one step between neighbors, {unit_words} (bars: lower bounds at {confidence})")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
    return ax


def plot_estimate(estimate: Any, ax: Axes | None = None, *, color: str = ORANGE, label: str = "") -> Axes:
    """Draw the curve of an estimate over the error of a count, with its pointwise interval."""
    ax = ax if ax is not None else new_figure(5.0, 3.2)[1][0]
    ax.fill_between(estimate.at, estimate.low, estimate.high, color=color, alpha=0.2, linewidth=0)
    name, marker = label_of(label or estimate.method), "o" if estimate.at.size <= 40 else ""
    ax.plot(estimate.at, estimate.loss, color=color, label=name, marker=marker, markersize=3)
    over, unit = estimate.axes
    ax.set_xlabel(over)
    ax.set_ylabel(f"estimated loss for one person, in {unit}")
    return ax


def plot_plan(
    curves: Sequence[tuple[str, Sequence[float], Sequence[float]]], ax: Axes | None = None, *, what: str = "runs"
) -> Axes:
    """Draw the number of runs needed over the violation; a curve is (name, losses relative to the promise, runs)."""
    if not curves:
        raise ValueError("curves must hold at least one, got none")
    ax = ax if ax is not None else new_figure(5.0, 3.4)[1][0]
    excesses: set[float] = set()
    for number, (name, violations, sizes) in enumerate(curves):
        color, dashes, marker = SERIES[number % len(SERIES)]
        excess = [violation - 1 for violation in violations]
        if min(excess, default=1.0) <= 0:
            raise ValueError(f"a violation must be more than 1, got {min(violations)}")
        excesses.update(excess)
        points = [(more, size) for more, size in zip(excess, sizes, strict=True) if math.isfinite(size)]
        more, size = zip(*points, strict=True) if points else ((), ())
        ax.plot(more, size, color=color, linestyle=dashes, marker=marker, markersize=4, label=label_of(name))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.grid(True, which="major", color=GRAY, alpha=0.25, linewidth=0.6)
    ticks = sorted(excesses)
    apart = [tick for tick, before in zip(ticks, [0.0, *ticks], strict=False) if tick > 1.3 * before]
    ax.set_xticks(apart, [f"{100 * tick:.4g}%" for tick in apart])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("true loss beyond the promise")
    ax.set_ylabel(f"{what} needed")
    ax.legend(loc="upper right", fontsize=8)
    return ax
