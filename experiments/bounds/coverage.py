"""Every bound, a thousand times over, on laws that lose exactly what is promised: how often it is wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from audit.results.plots import BLACK, BLUE, GRAY, PURPLE
from experiments.bounds.worst_laws import CASES, MISTAKES, OTHERS, WHOLE
from experiments.drawing import CIRCLE, beside, column, foot, line_key, page
from experiments.experiment import Check, Checks, Numbers, most_misses

LEVELS = (0.95, 0.8)
STRICT = 0.99  # besides, of audits of every other kind, in the table
NEAR = (1.0, 0.95)  # losses of the law / promised


def run(*, quick: bool, seed: int, jobs: int, times: int = 1, losses: Sequence[float] = NEAR) -> Numbers:
    """Make 1,000 audits of each case, 200 or 300 where each takes long (quick: 20, of mistakes 300)."""
    tasks = []
    for place, (case, stream) in enumerate(zip(CASES, np.random.SeedSequence(seed).spawn(len(CASES)), strict=True)):
        complete = case.group in (WHOLE, OTHERS)
        audits = times * case.audits if not quick else 300 if case.group == MISTAKES else 4 if complete else 20
        shares = losses[:1] if complete or case.group == MISTAKES else losses
        streams = stream.spawn(len(shares))
        tasks += [delayed(_rows)(place, share, audits, s) for share, s in zip(shares, streams, strict=True)]
    return {"rows": [row for rows in Parallel(n_jobs=jobs)(tasks) for row in rows]}


def _rows(place: int, share: float, audits: int, stream: np.random.SeedSequence) -> list[dict[str, Any]]:
    """Count how many of the bounds of one case are above the promise, at each level."""
    case, rows = CASES[place], []
    bounds = case.draw(share, audits, np.random.default_rng(stream))
    for confidence in (*LEVELS, *((STRICT,) if case.group == OTHERS else ())):
        limits = bounds(confidence)
        median = None if np.isnan(limits).any() else float(np.median(limits))
        row = {"group": case.group, "case": case.words, "share": share, "confidence": confidence, "audits": audits}
        rows.append({**row, "misses": int((limits > 1).sum()), "median": median})
    return rows


def allowed(row: dict[str, Any]) -> int:
    return most_misses(row["audits"], row["confidence"])


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        what = f"{row['group']}, {row['case']}, loss {row['share']:g} of the promise, {row['confidence']:.0%}"
        limit, misses, wrong = allowed(row), row["misses"], row["group"] == MISTAKES
        words = f"{what}: {misses} of {row['audits']} above the promise, {'more than' if wrong else 'at most'} {limit}"
        yield Check(words, misses > limit if wrong else misses <= limit)


def facts(numbers: Numbers) -> dict[str, Any]:
    at_95 = [row for row in numbers["rows"] if row["confidence"] == LEVELS[0]]
    valid = [row for row in at_95 if row["group"] != MISTAKES]
    wrong = [row["misses"] / row["audits"] for row in at_95 if row["group"] == MISTAKES]
    above = sum(row["misses"] > allowed(row) for row in valid)
    levels, rows = (LEVELS[1], LEVELS[0], STRICT), []
    for group in dict.fromkeys(case.group for case in CASES if case.group != MISTAKES):
        own, cells = [row for row in numbers["rows"] if row["group"] == group], []
        for level in levels:
            at_level = (row for row in own if row["confidence"] == level)
            worst = max(at_level, key=lambda row: row["misses"] / allowed(row), default=None)
            rates = [misses / worst["audits"] for misses in (worst["misses"], allowed(worst))] if worst else []
            cells.append("{:.1%} ({:.1%})".format(*rates) if rates else "")
        rows.append((group, str(len({row["case"] for row in own})), *cells))
    mistakes = ", ".join(case.words for case in CASES if case.group == MISTAKES)
    return locals()


def draw(numbers: Numbers) -> Figure:
    places: dict[tuple[str, str], float] = {}
    headings: dict[str, float] = {}
    place = -0.6
    for row in numbers["rows"]:
        if row["group"] not in headings:
            headings[row["group"]] = place = place + 1.6
        if (row["group"], row["case"]) not in places:
            places[row["group"], row["case"]] = place = place + 1
    figure, axes = page(1.9 + 0.17 * place, 1, 2)
    for ax, confidence in zip(axes, LEVELS, strict=True):
        for row in numbers["rows"]:
            if row["confidence"] == confidence:
                _draw_row(ax, row, places[row["group"], row["case"]])
        ax.axvline(1 - confidence, color=GRAY, linewidth=0.9, linestyle=":", zorder=0)
        ax.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))  # room for what is rare
        ticks = (0, 0.05, 0.2, 0.5, 1)
        ax.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks], fontsize=8)
        ax.set(xlim=(0, 1), ylim=(place + 0.8, 0.3))
        ax.set_yticks(list(places.values()), [""] * len(places), fontsize=8)
        ax.tick_params(axis="y", length=0, pad=7)
        ax.spines["left"].set_visible(False)
        ax.set(title=f"confidence {confidence:.0%}", xlabel="audits that report a violation\n(square-root scale)")
        column(ax, 0.6, "median\nbound", 32)
    axes[0].set_yticks(list(places.values()), [_in_symbols(words) for _, words in places])
    for heading, at in headings.items():
        beside(axes[0], at, heading, x=-0.04, size=9, ha="right", weight="bold")
    limit: dict[str, Any] = {"color": BLACK, "marker": "|", "markersize": 11, "linestyle": "none"}
    handles = [
        line_key("the law loses all that is promised", **CIRCLE),
        line_key("the law loses 95% of it", **CIRCLE, markerfacecolor="white"),
        line_key("a mistake, on a law that loses what is promised", **CIRCLE | {"marker": "X", "color": PURPLE}),
        line_key("most that chance allows (false alarm $10^{-4}$)", **limit),
        line_key("1 - confidence", color=GRAY, linestyle=":"),
    ]
    foot(figure, handles, ncols=3)
    return figure


def _draw_row(ax: Axes, row: dict[str, Any], at: float) -> None:
    wrong, boundary, limit = row["group"] == MISTAKES, row["share"] == 1, allowed(row) / row["audits"]
    color, marker, size = (PURPLE, "X", 5.5) if wrong else (BLUE, "o", 4.5)
    if boundary:
        ax.fill_betweenx([at - 0.5, at + 0.5], 0, limit, color=GRAY, alpha=0.15, linewidth=0)
        ax.plot([limit] * 2, [at - 0.5, at + 0.5], color=BLACK, linewidth=1.4, solid_capstyle="butt")
        column(ax, at, "" if row["median"] is None else f"{row['median']:.2f}", 32)
    style: dict[str, Any] = {"color": color, "marker": marker, "markersize": size, "linestyle": "none"}
    style |= {"markerfacecolor": color if boundary else "white", "clip_on": False, "zorder": 4 if boundary else 3}
    ax.plot(row["misses"] / row["audits"], at, **style)


def _in_symbols(words: str) -> str:
    symbols = re.sub(r"\b(epsilon|delta|mu|rho)\b", r"$\\\1$", words)
    return re.sub(r"1e-(\d)", r"$10^{-\1}$", symbols)
