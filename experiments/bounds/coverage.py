"""Every bound, a thousand times over, on laws that lose exactly what is promised: how often it is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.flaxman import GDPC
from algorithms.flaxman.gaussian import GaussianCounts
from audit.bounds.discrete_gaussian import discrete_gaussian_lower
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.rectangle import score_lower, two_sample_lower
from audit.bounds.renyi import renyi_event_lower
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.results.plots import BLACK, BLUE, GRAY, PURPLE
from experiments.bounds.worst_laws import (
    Draw,
    audited_counts,
    best_threshold,
    canaries_audited,
    coin,
    coin_of,
    curve,
    discrete_gaussian,
    divided_delta,
    event,
    forgotten_delta,
    game,
    given,
    laplace_counts,
    leaky_counts,
    looks,
    normal,
    normal_counts,
    of_three,
    one_run,
    one_run_together,
    paired_runs,
    rho_of_mu,
    searched,
    variational,
    whole,
    with_delta,
)
from experiments.drawing import CIRCLE, beside, column, foot, line_key, page
from experiments.experiment import Check, MarkdownTable, most_misses

LEVELS = (0.95, 0.8)
STRICT = 0.99  # besides, of audits of every other kind, in the table
NEAR = (1.0, 0.95)  # losses of the law / promised
MISTAKES, WHOLE, OTHERS = "Mistakes, on purpose", "Whole audits, selection included", "Whole audits of other kinds"


@dataclass(frozen=True)
class Case:
    """A bound, and a law that is as hard on it as the promise allows."""

    group: str
    words: str
    draw: Draw
    audits: int = 1000


PURE, APPROX, GAUSSIAN, RENYI = "Pure privacy", "Approximate privacy", "Gaussian privacy", "Zero-concentrated privacy"
LOOKING, ONE_RUN = "At 50 looks, the largest bound counts", "One run"
SILENT = (1 + math.exp(-1)) / 2  # share of runs in which Laplace noise does not fall between the two true counts
DISCRETE = "zero-concentrated: discrete Gaussian, rho 0.5"
OF_TWENTY: dict[str, Any] = {"delta": 1e-3, "guessed": 0.5, "distance": 20}

GIVEN = ((8, 8, 0.5), (20, 30, 0.3), (49, 51, 0.3), (60, 2000, 0.3), (300, 300, 0.3), (20_000, 300, 0.3))

CASES = (
    Case(PURE, "guessing game, geometric, epsilon 0.1", game(0.1, 10_000)),
    Case(PURE, "guessing game, geometric, epsilon 1", game(1.0, 1000)),
    Case(PURE, "guessing game, geometric, epsilon 4", game(4.0, 1000)),
    Case(PURE, "guessing game, Laplace, epsilon 1, silent between", game(1.0, 1000, guessed=SILENT)),
    Case(PURE, "guessing game, 20 people, epsilon 0.1", game(0.1, 1000, distance=20)),
    Case(PURE, "two Clopper-Pearson limits, epsilon 0.1", event(two_sample_lower, coin, 10_000, 0.1)),
    Case(PURE, "two Clopper-Pearson limits, epsilon 1", event(two_sample_lower, coin, 500, 1.0)),
    Case(PURE, "score test (asymptotic), epsilon 0.1", event(score_lower, coin, 10_000, 0.1)),
    Case(PURE, "score test (asymptotic), epsilon 1", event(score_lower, coin, 500, 1.0)),
    Case(PURE, "25 points of the curve of delta, epsilon 1", event(partial(curve, epsilon=1.0), coin, 500, 1.0)),
    Case(APPROX, "guessing game, delta 1e-5, all guessed", game(1.0, 2000, delta=1e-5)),
    Case(APPROX, "guessing game, delta 1e-5, 1% guessed", game(1.0, 20_000, delta=1e-5, guessed=0.01)),
    Case(APPROX, "guessing game, delta 0.01, all guessed", game(1.0, 2000, delta=0.01)),
    Case(APPROX, "guessing game, delta 0.01, 5% guessed", game(1.0, 20_000, delta=0.01, guessed=0.05)),
    Case(APPROX, "guessing game, 20 people, delta 1e-3, half guessed", game(0.1, 2000, **OF_TWENTY)),
    Case(APPROX, "two limits, delta 0.01", event(partial(two_sample_lower, delta=0.01), with_delta, 20_000, 1.0)),
    Case(GAUSSIAN, "region from the middle, mu 1", event(gaussian_lower, normal(0.5), 500, 1.0)),
    Case(GAUSSIAN, "region of 2.3%, mu 1", event(gaussian_lower, normal(2.0), 2000, 1.0)),
    Case(GAUSSIAN, "region of 93%, mu 1", event(gaussian_lower, normal(-1.5), 2000, 1.0)),
    Case(GAUSSIAN, "3 people, mu 0.5", event(of_three, lambda mu: normal(0.75)(3 * mu), 500, 0.5)),
    Case(RENYI, "Renyi divergence of one event, a coin", event(renyi_event_lower, partial(coin_of, order=1), 500, 0.5)),
    Case(RENYI, "variational, order 1, a coin", variational(0.5, 1.0, 500)),
    Case(RENYI, "variational, order 2, a coin", variational(0.3, 2.0, 500)),
    Case(RENYI, "within the discrete Gaussian family", event(discrete_gaussian_lower, discrete_gaussian, 500, 0.5)),
    Case(LOOKING, "anytime guessing game, epsilon 1", looks(1.0, "anytime")),
    Case(LOOKING, "anytime guessing game, epsilon 1, delta 0.01", looks(1.0, "anytime", delta=0.01)),
    Case(LOOKING, "shared confidence, guessing game, epsilon 1", looks(1.0, "shared")),
    Case(ONE_RUN, "1,000 canaries, epsilon 1", one_run(1.0, 1000)),
    Case(ONE_RUN, "1,000 canaries, delta 1e-3: 40 revealed at once", one_run(1.0, 1000, delta=1e-3, leaked=40)),
    Case(ONE_RUN, "10,000 canaries, mu 1: 500 told together", one_run_together(1.0, 10_000, 500, 0.06)),
    Case(WHOLE, "pure: geometric count, epsilon 1", audited_counts(GDPC(1.0), PureDP(1.0), 4000)),
    Case(WHOLE, "pure: Laplace count, epsilon 1", audited_counts(laplace_counts, PureDP(1.0), 4000), 300),
    Case(WHOLE, "pure: 20 people, epsilon 0.1", audited_counts(GDPC(0.1), PureDP(0.1), 4000, people=20), 300),
    Case(WHOLE, "pure: stopped early", audited_counts(GDPC(1.0), PureDP(1.0), 4000, stop="early"), 200),
    Case(WHOLE, "pure: 2,000 + 2,000 given outputs", given(2000, 2000, GDPC(1.0), PureDP(1.0))),
    Case(WHOLE, "pure: 40 + 40 given outputs", given(40, 40, GDPC(1.0), PureDP(1.0)), 300),
    Case(WHOLE, "pure: one run, 1,000 areas", whole(canaries_audited), 300),
    Case(WHOLE, "approximate: true count told, delta 0.01", audited_counts(leaky_counts, ApproxDP(1.0, 0.01), 10_000)),
    Case(WHOLE, "Gaussian: normal count, mu 1", audited_counts(normal_counts(1.0), GaussianDP(1.0), 4000)),
    Case(
        WHOLE, "Gaussian: stopped early", audited_counts(normal_counts(1.0), GaussianDP(1.0), 4000, stop="early"), 300
    ),
    Case(WHOLE, DISCRETE, audited_counts(GaussianCounts(0.5), ZCDP(0.5), 4000), 300),
    Case(MISTAKES, "threshold chosen on the counted runs", best_threshold),
    Case(MISTAKES, "delta ignored", forgotten_delta),
    Case(MISTAKES, "bound of 20 people divided by 20 in spite of delta", divided_delta),
    Case(MISTAKES, "50 looks with a bound for one", looks(1.0, "one look")),
    Case(MISTAKES, "half the square of mu taken for rho", event(rho_of_mu, discrete_gaussian, 100_000, 0.5)),
    Case(MISTAKES, "game with fixed numbers of runs", paired_runs),
    Case(OTHERS, "pure: 20 pairs searched, 3 measured", searched(20, 3, 6000)),
    Case(OTHERS, "pure: 20 pairs searched, all measured", searched(20, 20, 6000)),
    Case(OTHERS, "pure: stopped early, stages to 20,000", audited_counts(GDPC(1.0), PureDP(1.0), 20_000, stop="early")),
    Case(
        OTHERS,
        "approximate: stopped early, stages to 20,000",
        audited_counts(leaky_counts, ApproxDP(1.0, 0.01), 20_000, stop="early"),
    ),
    *(
        Case(OTHERS, f"pure: {x:,} + {y:,} given outputs", given(x, y, GDPC(1.0), PureDP(1.0), selection=selection))
        for x, y, selection in GIVEN
    ),
    *(
        Case(
            OTHERS,
            f"approximate: {x:,} + {y:,} given outputs",
            given(x, y, leaky_counts, ApproxDP(1.0, 0.01), selection=selection),
        )
        for x, y, selection in GIVEN[2:]
    ),
)


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Make 1,000 audits of each case, 200 or 300 where each takes long (quick: 20, of mistakes 300)."""
    tasks = []
    for place, (case, stream) in enumerate(zip(CASES, np.random.SeedSequence(seed).spawn(len(CASES)), strict=True)):
        complete = case.group in (WHOLE, OTHERS)
        audits = case.audits if not quick else 300 if case.group == MISTAKES else 4 if complete else 20
        shares = NEAR[:1] if complete or case.group == MISTAKES else NEAR
        streams = stream.spawn(len(shares))
        tasks += [delayed(_rows)(place, share, audits, s) for share, s in zip(shares, streams, strict=True)]
    return {"rows": [row for rows in Parallel(n_jobs=jobs)(tasks) for row in rows]}


def _rows(place: int, share: float, audits: int, stream: np.random.SeedSequence) -> list[dict[str, Any]]:
    """Count how many of the bounds of one case are above the promise, at each level."""
    case, rows = CASES[place], []
    bounds = case.draw(share, audits, np.random.default_rng(stream))
    for confidence in (*LEVELS, *((STRICT,) if case.group == OTHERS else ())):
        found = bounds(confidence)
        median = None if np.isnan(found).any() else float(np.median(found))
        row = {"group": case.group, "case": case.words, "share": share, "confidence": confidence, "audits": audits}
        rows.append({**row, "misses": int((found > 1).sum()), "median": median})
    return rows


def allowed(row: dict[str, Any]) -> int:
    """Return how many bounds of a row may be above the promise."""
    return most_misses(row["audits"], row["confidence"])


def check(numbers: dict[str, Any]) -> Iterator[Check]:
    for row in numbers["rows"]:
        what = f"{row['group']}, {row['case']}, loss {row['share']:g} of the promise, {row['confidence']:.0%}"
        limit, misses, wrong = allowed(row), row["misses"], row["group"] == MISTAKES
        words = f"{what}: {misses} of {row['audits']} above the promise, {'more than' if wrong else 'at most'} {limit}"
        yield Check(words, misses > limit if wrong else misses <= limit)


def finding(numbers: dict[str, Any]) -> str:
    rows = [row for row in numbers["rows"] if row["confidence"] == LEVELS[0]]
    valid = [row for row in rows if row["group"] != MISTAKES]
    wrong = [row["misses"] / row["audits"] for row in rows if row["group"] == MISTAKES]
    above = sum(row["misses"] > allowed(row) for row in valid)
    nearest = max(valid, key=lambda row: row["misses"] / allowed(row))
    return (
        f"No more often than its confidence allows: {above} of {len(valid)} rows at 95% are above their limit. The "
        f"nearest, {nearest['case']}, is wrong in {nearest['misses']} of {nearest['audits']:,} audits (at most "
        f"{allowed(nearest)}). {len(wrong)} classical mistakes report {min(wrong):.0%} to {max(wrong):.0%} of correct "
        "mechanisms as violated."
    )


def table(numbers: dict[str, Any]) -> MarkdownTable:
    levels = (LEVELS[1], LEVELS[0], STRICT)
    rows = []
    for group in dict.fromkeys(case.group for case in CASES if case.group != MISTAKES):
        cells = []
        for level in levels:
            own = [row for row in numbers["rows"] if (row["group"], row["confidence"]) == (group, level)]
            worst = max(own, key=lambda row: row["misses"] / allowed(row), default=None)
            cells.append(f"{worst['misses']} of {worst['audits']:,} ({allowed(worst)})" if worst else "")
        rows.append((group, str(sum(case.group == group for case in CASES)), *cells))
    mistakes = ", ".join(case.words for case in CASES if case.group == MISTAKES)
    return MarkdownTable(
        ("misses (at most), of the case nearest to its limit", "cases", *(f"{level:.0%}" for level in levels)),
        rows,
        f"The mistakes are: {mistakes}.",
    )


def draw(numbers: dict[str, Any]) -> Figure:
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
        ax.set_xlim(0, 1)
        ax.set_ylim(place + 0.8, 0.3)
        ax.set_yticks(list(places.values()), [""] * len(places), fontsize=8)
        ax.tick_params(axis="y", length=0, pad=7)
        ax.spines["left"].set_visible(False)
        ax.set_title(f"confidence {confidence:.0%}")
        ax.set_xlabel("audits that report a violation\n(square-root scale)")
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
