"""Audits that may stop early: runs until the promise is refuted, and how few they could be if the law were known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy import special, stats

from audit import ZCDP, NeighborPair, measure_loss
from audit.bounds.betting import score_growth, staked
from audit.claims import Claim, parse_claim
from audit.mechanism import Mechanism
from audit.results.plots import BLACK, BLUE, GRAY
from experiments.bounds.laws import coin, normal
from experiments.drawing import CIRCLE, INFINITE, column, group_rows, head, line_key, name_rows
from experiments.experiment import DATA, Checks, MarkdownTable, Numbers, between, most_misses

CONFIDENCE_HERE = 0.95
EARLY: dict[str, str] = DATA["runs"]["promises"]  # of laws that are audited with early stopping
FACTORS = (1.0, 1.1, 1.2, 1.5, 2.0, 4.0, math.inf)  # true loss / promise
BUDGETS = (10, 40, 100, 1_000, 10_000)  # most runs, in the table of what can be found
AT_MOST: dict[str, dict[str, float]] = DATA["runs"]["stopped_early"]  # medians of runs, by law and factor
LIMIT: dict[str, Any] = {"marker": "|", "color": BLACK, "markersize": 8, "linestyle": "none"}
MEDIAN = {False: INFINITE | {"color": BLUE}, True: CIRCLE | {"markersize": 5}}  # whether half of the audits refute
DRAWN = 1.1  # violations above it are drawn
GAP = 1.7  # rows between laws and cases of others
OTHER: dict[str, Any] = {"color": GRAY, "markersize": 5, "linestyle": "none"}
PRINTED = {  # tests of others, by their names in `published.json`
    "MMD (2025), printed": OTHER | {"marker": "s"},
    "APT (2026), asymptotic": OTHER | {"marker": "D", "markerfacecolor": "white"},
}


def stopped_early(
    factors: tuple[float, ...], audits: int, root: np.random.SeedSequence, parallel: Parallel
) -> list[dict[str, Any]]:
    rows = []
    for law, promise in EARLY.items():
        claim = parse_claim(promise)
        for factor, stream in zip(factors, root.spawn(len(factors)), strict=True):
            truth = claim.at(factor * claim.budget)
            results = parallel(delayed(_stopped)(law, claim, truth, rng) for rng in stream.spawn(audits))
            runs, violated = zip(*results, strict=True)
            limit = _known_law(law, claim, truth) if factor > 1 else None
            saved = factor if math.isfinite(factor) else "inf"
            rows.append({"law": law, "factor": saved, "runs": runs, "violated": violated, "limit": limit})
    return rows


def _stopped(law: str, claim: Claim, truth: Claim, rng: np.random.SeedSequence) -> tuple[int, bool]:
    def answer(which: float, runs: int, rng: np.random.Generator, /) -> NDArray[np.float64]:
        if law == "Laplace noise":
            return np.round(which + rng.laplace(scale=1 / truth.budget, size=runs), 6)
        return coin(truth, 1.0, which, runs, rng) if "response" in law else np.round(normal(truth, which, runs, rng), 6)

    return refuted_after(answer, NeighborPair.declared(0.0, 1.0, "add_remove"), claim, rng)


def refuted_after(answer: Mechanism, pair: NeighborPair, claim: Claim, rng: np.random.SeedSequence) -> tuple[int, bool]:
    """Return the runs of an audit that may stop early, and whether it refutes the promise."""
    options: dict[str, Any] = {"size": BUDGETS[-1], "confidence": CONFIDENCE_HERE, "rng": rng, "stop": "early"}
    result = measure_loss(answer, pair, claim, **options)
    return result.size, result.verdict == "violated"


def _known_law(law: str, claim: Claim, truth: Claim) -> float:
    """Return the fewest expected runs of one bet that is repeated until it refutes the promise, if the law is known.

    Money grows on average by the same factor in each run (Wald, "On Cumulative Sums of Random Variables", 1944). The
    bet is the best one of guesses beyond a threshold and, for rho, of clipped likelihood ratios.
    """
    thresholds, budget = np.linspace(0, 4, 401), min(truth.budget, 200.0)  # beyond it guesses are never wrong
    if "response" in law:
        wrong = (1 - getattr(truth, "delta", 0.0)) * np.array([special.expit(-budget)])
        right = 1 - wrong
    else:
        laplace = law == "Laplace noise"
        noise = stats.laplace(scale=1 / budget) if laplace else stats.norm(scale=1 / truth.at(budget).shift)
        right, wrong = noise.sf(thresholds - 0.5), noise.sf(thresholds + 0.5)
    bets = np.stack([np.full(right.shape, 2.0), right, wrong, *np.zeros((3, right.size))], axis=-1)
    growth = float(staked(bets, [claim.lines()])[-1].max())
    if isinstance(claim, ZCDP):
        shift = truth.at(budget).shift
        edges = np.linspace(-shift / 2 - 5, shift / 2 + 5, 400)
        laws = [np.diff(special.ndtr(edges + side * shift / 2), prepend=0, append=1) for side in (1, -1)]
        ratio = shift * np.append(edges, edges[-1])
        clipped = (np.clip(ratio, -low, high) for low in np.arange(0, 8, 0.5) for high in np.arange(0.5, 4, 0.25))
        scores = np.array([[score, *laws, laws[0] / 2, laws[1] / 2] for score in clipped])
        growth = max(growth, float(score_growth(scores, [claim.budget]).max()))
    return expected_runs(growth)


def expected_runs(growth: float) -> float:
    """Return after how many runs money that grows so much in each, in nats, refutes the promise."""
    return -math.log1p(-CONFIDENCE_HERE) / growth


def needed_runs(row: dict[str, Any], share: float) -> float:
    """Return the runs within which a share of the audits that may stop early refute the promise; or infinity."""
    runs = [made if violated else math.inf for made, violated in zip(row["runs"], row["violated"], strict=True)]
    return float(np.quantile(runs, share, method="inverted_cdf"))


def cost_of_asking(numbers: Numbers) -> MarkdownTable:
    """Return the smallest loss, in units of the promise, that 80% of the audits refute within some runs."""
    rows = []
    for most in BUDGETS:
        refuted = [row for row in numbers["early"] if row["factor"] != 1 and needed_runs(row, 0.8) <= most]
        least = [min((float(row["factor"]) for row in refuted if row["law"] == law), default=0.0) for law in EARLY]
        rows.append((f"{most:,}", *(_times(factor) if factor else "nothing" for factor in least)))
    return MarkdownTable(["runs in all", *(f"{law}, {promise}" for law, promise in EARLY.items())], rows)


def _times(factor: float | str) -> str:
    return "infinite" if math.isinf(float(factor)) else f"{factor:g} times"


def check_early(numbers: Numbers) -> Checks:
    sound = [violated for row in numbers["early"] if row["factor"] == 1 for violated in row["violated"]]
    misses = most_misses(len(sound), CONFIDENCE_HERE)
    yield between(f"stopped early, the promise is kept: violations of {len(sound)}", sum(sound), 0, misses)
    for row in numbers["early"]:
        factor, median = float(row["factor"]), needed_runs(row, 0.5)
        most = AT_MOST[row["law"]].get(f"{factor:g}", math.inf)
        if math.isfinite(most) and not numbers["quick"]:
            yield between(f"stopped early, {row['law']}, {factor:g} times the promise: median of runs", median, 0, most)


def draw_early(ax: Axes, rows: list[dict[str, Any]], published: list[dict[str, Any]]) -> None:
    """Draw runs until promises are refuted; below a gap by ours, and tests of others, on cases of theirs."""
    columns = {"limit": 30, "median": 66, "80%": 100}
    at = [*range(len(rows)), *(len(rows) + GAP + place for place in range(len(published)))]
    for place, row in zip(at, [*rows, *published], strict=True):
        median, most = (needed_runs(row, share) for share in (0.5, 0.8))
        end = min(most, BUDGETS[-1])
        ax.plot(row["limit"], place, **LIMIT)
        ax.plot([min(median, end), end], [place, place], color=BLUE, linewidth=1.1)
        ax.plot(*((median, place) if math.isfinite(median) else (end, place)), **MEDIAN[math.isfinite(median)])
        for source, runs in row.get("printed", {}).items():
            ax.plot(runs, place, **PRINTED[source])
        for value, points in zip((row["limit"], median, most), columns.values(), strict=True):
            column(ax, place, f"{value:,.0f}" if math.isfinite(value) else f"> {BUDGETS[-1] / 1000:g}k", points)
    for name, points in columns.items():
        column(ax, -1.2, name, points, style="italic")
    names = [f"{row['law']}: {_times(row['factor'])}" for row in rows] + [row["law"] for row in published]
    group_rows(ax, -1.2, "law: true loss / promise", style="italic")
    group_rows(ax, len(rows) + GAP - 1.0, "noise of a mean, cases of others", style="italic")
    name_rows(ax, names, at=at, top=-1.8)
    handles = [line_key("best bet if the law is known", **LIMIT), line_key("median", **MEDIAN[True])]
    handles.append(line_key("to 80% of audits", color=BLUE, linewidth=1.1))
    handles += [line_key(source, **look) for source, look in PRINTED.items()]
    head(ax, "(b) runs until an audit that may stop early refutes the promise", handles, ncols=2, x=-0.4)
    ax.set(xscale="log", xlim=(5, BUDGETS[-1] * 1.3), xlabel="runs in all (log scale)")
