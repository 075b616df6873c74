"""The figure of the page of reliability: how often bounds miss, and how much every row tried."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from audit.results.plots import BLACK, BLUE, GREEN, ORANGE, new_figure
from experiments.drawing import bar, beside, line_key, name_rows
from experiments.experiment import most_misses
from tests.reliability.numbers import often
from tests.reliability.rows import ROWS


def draw(rows: dict[str, dict[str, Any]]) -> Figure:
    """Draw misses beside how many there may be, by confidence, and the tries of every row."""
    covered = rows["1"]["told"] if "1" in rows else []
    figure, (*misses, tries) = new_figure(10.4 if covered else 6.4, 4.8, 1, 2 if covered else 1)
    for ax in misses:
        _draw_misses(ax, covered)
    shown = [row for row in ROWS if str(row.number) in rows]
    for at, row in enumerate(shown):
        found = rows[str(row.number)]
        bar(tries, at, found["tried"], violated=bool(found["failed"]))
        beside(tries, at, f"{often(found)}; {len(found['failed'])} failed")
    tries.set_xscale("log")
    tries.set_xlim(left=0.7)
    name_rows(tries, [f"{row.number}  {row.name}" for row in shown], size=8)
    tries.set_xlabel("tries")
    return figure


def _draw_misses(ax: Axes, told: list[dict[str, Any]]) -> None:
    """Draw every bound as a point at each confidence; cheap ones have more audits, and so a lower limit."""
    levels = sorted({one["confidence"] for one in told})
    sizes = sorted({one["tried"] for one in told}, reverse=True)
    shifts = np.linspace(-0.2, 0.2, len(sizes)) if len(sizes) > 1 else [0.0]
    colors = dict(zip(sizes, (BLUE, GREEN, ORANGE), strict=False))
    for place, level in enumerate(levels):
        for audits, shift in zip(sizes, shifts, strict=True):
            found = [one["misses"] for one in told if (one["confidence"], one["tried"]) == (level, audits)]
            scale = audits * (1 - level)
            spread = place + shift + np.linspace(-0.1, 0.1, len(found))
            ax.plot(spread, np.array(found) / scale, ".", color=colors[audits], markersize=4)
            limit = most_misses(audits, level) / scale
            ax.plot([place + shift - 0.13, place + shift + 0.13], [limit] * 2, color=BLACK, linewidth=1.4)
    ax.axhline(1, color=BLACK, linewidth=0.8, linestyle=":")
    ax.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
    ax.set_ylim(bottom=0)
    ax.set_xlabel("confidence")
    ax.set_ylabel("misses / (1 - confidence), of laws that lose all that is promised")
    handles = [
        line_key(f"{audits:,} audits of a bound", color=colors[audits], marker=".", linestyle="none")
        for audits in sizes
    ]
    handles.append(line_key("limit (false alarm 1e-4)", color=BLACK, linewidth=1.4))
    ax.legend(handles=handles, fontsize=8)
