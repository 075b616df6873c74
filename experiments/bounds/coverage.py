"""Coverage of every bound: its rate of misses in 1,000 audits of laws whose loss equals the promise."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from audit.results.plots import BLACK, GRAY, PURPLE
from experiments.bounds.worst_laws import CASES, MISTAKES, OTHERS, WHOLE
from experiments.drawing import CIRCLE, bare_rows, foot, group_rows, head, line_key, name_rows, page
from experiments.experiment import Check, Checks, Numbers, most_misses

LEVELS = (0.95, 0.8)
STRICT = 0.99  # a further confidence in the table, for audits of other kinds
NEAR = (1.0, 0.95)  # true loss / promise
GONE = (7, 8, 23)  # streams of removed cases are skipped, so that the numbers of the others stay the same


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Make 1,000 audits of each case, 200 or 300 if they are slow (quick: 4 or 20, and 300 of mistakes)."""
    tasks = []
    spawned = np.random.SeedSequence(seed).spawn(len(CASES) + len(GONE))
    kept = [stream for place, stream in enumerate(spawned) if place not in GONE]
    for place, (case, stream) in enumerate(zip(CASES, kept, strict=True)):
        complete = case.group in (WHOLE, OTHERS)
        audits = case.audits if not quick else 300 if case.group == MISTAKES else 4 if complete else 20
        shares = NEAR[:1] if complete or case.group == MISTAKES else NEAR
        streams = stream.spawn(len(shares))
        tasks += [delayed(_rows)(place, share, audits, s) for share, s in zip(shares, streams, strict=True)]
    return {"rows": [row for rows in Parallel(n_jobs=jobs)(tasks) for row in rows]}


def _rows(place: int, share: float, audits: int, stream: np.random.SeedSequence) -> list[dict[str, Any]]:
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
    wrong = [row["misses"] / row["audits"] for row in at_95 if row["group"] == MISTAKES]
    valid = [row for row in at_95 if row["group"] != MISTAKES]
    over = [row for row in valid if row["misses"] > allowed(row)]
    cases, above = (len({(row["group"], row["case"]) for row in rows}) for rows in (valid, over))  # rows share cases
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
    mistakes = {row["case"]: None for row in numbers["rows"] if row["group"] == MISTAKES}
    groups = [group for group in dict.fromkeys(row["group"] for row in numbers["rows"]) if group != MISTAKES]
    names = [*groups, *mistakes]
    figure, axes = page(1.7 + 0.26 * len(names), 1, 2)
    for ax, confidence in zip(axes, LEVELS, strict=True):
        rows = [row for row in numbers["rows"] if row["confidence"] == confidence]
        for at, name in enumerate(names):
            _draw_row(ax, [row for row in rows if name in (row["group"], row["case"])], at + (name in mistakes))
        ax.axvspan(0, 1, color=GRAY, alpha=0.2, linewidth=0, zorder=0)
        ax.axvline(1, color=BLACK, linewidth=1.2, zorder=1)
        ax.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))  # spreads small ratios
        ax.set_xticks(ticks := (0, 1, 4, 9), [f"{tick:g}" for tick in ticks])
        ax.set_xlim(0, 14)
        head(ax, f"({'ab'[ax is axes[1]]}) confidence {confidence:.0%}")
        ax.set_xlabel("audits that are wrong /\nmost that chance allows\n(square-root scale)")
        bare_rows(ax)
    labels = [re.sub(r"\b(epsilon|delta|mu|rho)\b", r"$\\\1$", name) for name in names]
    for ax, words in zip(axes, (labels, [""] * len(names)), strict=True):
        name_rows(ax, words, at=[at + (name in mistakes) for at, name in enumerate(names)])
    group_rows(axes[0], len(groups), "mistakes, on purpose", size=9, weight="bold")
    handles = [
        line_key("a bound or audit, on a law that loses all that is promised", **CIRCLE, alpha=0.6),
        line_key("the same, on a law that loses 95% of it", **CIRCLE, markerfacecolor="white"),
        line_key("a mistake, on a law that loses what is promised", **CIRCLE | {"marker": "X", "color": PURPLE}),
        line_key("most that chance allows (false alarm 1e-4)", color=BLACK, linewidth=1.2),
    ]
    foot(figure, handles, ncols=2)
    return figure


def _draw_row(ax: Axes, rows: list[dict[str, Any]], at: int) -> None:
    for share in sorted({row["share"] for row in rows}):
        own, boundary = [row for row in rows if row["share"] == share], share == 1
        style = CIRCLE | {"markersize": 4.5, "clip_on": False, "alpha": 0.6, "zorder": 3 + boundary}
        style |= {"marker": "X", "color": PURPLE, "alpha": 1} if own[0]["group"] == MISTAKES else {}
        style |= {} if boundary else {"markerfacecolor": "white", "alpha": 1}
        shifts = np.linspace(-0.2, 0.2, len(own)) if len(own) > 1 else 0
        ax.plot([row["misses"] / allowed(row) for row in own], at + shifts, **style)
