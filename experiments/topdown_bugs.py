"""Four bugs planted in TopDown: two that show in its measurements, two only in its tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from algorithms.bugs.systems.topdown import MissingFactorTwo, PrunedByTruth, SilentTotals, WrongLevelShare
from algorithms.hierarchy import Hierarchy
from algorithms.schema import Schema
from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from audit.claims import ZCDP, PureDP
from audit.events import Event, ThresholdRule, weighted_sum
from audit.loss import measure_loss
from audit.mechanism import Mechanism
from audit.neighbors import NeighborPair
from audit.results import plain_number
from audit.results.plots import BLACK, BLUE, GREEN, ORANGE, new_figure
from audit.sampling.progress import progress_bar
from experiments.experiment import CONFIDENCE, Check

QUESTION = "Are bugs caught that are planted in TopDown: in its noise, its shares, its estimation, its invariants?"
EXPECTATION = (
    "All four, in 20 of 20 audits each: the noise that forgets a factor of two and the wrong level shares by counting "
    "noisy measurements, the cells pruned by the true parent and the totals kept in silence by a witness and by "
    "counting tables. The tables hide the first two from as many runs. The sound algorithm is never accused, and no "
    "bound exceeds a true loss."
)

FANOUT, DEPTH = 3, 2
TREE = Hierarchy.regular(FANOUT, DEPTH)
FIRST, LAST = (0, 0), (TREE.n_leaves - 1, 3)  # leaf and cell
SCHEMA = Schema({"sex": ("female", "male"), "age": ("17 and under", "18 and over")})
PURE, CONCENTRATED = PureDP(1.0, "replace_one"), ZCDP(0.5, "replace_one")
AUDITS = 20
LIMIT = 2.2  # of the axis, in promises

MEASUREMENTS, TABLES = "measurements", "tables"
COUNTS, WITNESS, HIDDEN, NEVER = "counts", "witness and counts", "hidden by post-processing", "nothing to find"


@dataclass(frozen=True)
class Case:
    """What is audited, where in the algorithm, on whom, with how many runs, and how it should be found."""

    words: str
    kind: type[TopDown]
    promise: PureDP | ZCDP
    stage: str
    pair: str
    size: int
    expected: str

    @property
    def mechanism(self) -> TopDown:
        """The algorithm: three levels with equal shares, all cells measured in each."""
        shares = [f"1/{DEPTH + 1}"] * (DEPTH + 1)
        budget = Budget(self.promise, shares, [{"detailed": 1}] * len(shares))
        return self.kind(SCHEMA, TREE, budget, solver="batched")


def cases() -> list[Case]:
    """Return all audits: what is broken first."""
    two, share, pruned, silent = MissingFactorTwo, WrongLevelShare, PrunedByTruth, SilentTotals
    return [
        Case("noise without the factor 2, geometric", two, PURE, MEASUREMENTS, "moved", 20_000, COUNTS),
        Case("noise without the factor 2, Gaussian", two, CONCENTRATED, MEASUREMENTS, "moved", 50_000, COUNTS),
        Case("shares of 1/2 for three levels, geometric", share, PURE, MEASUREMENTS, "moved", 200_000, COUNTS),
        Case("shares of 1/2 for three levels, Gaussian", share, CONCENTRATED, MEASUREMENTS, "moved", 100_000, COUNTS),
        Case("cells pruned by the true parent", pruned, PURE, TABLES, "rare", 2_000, WITNESS),
        Case("totals of level 1 kept in silence", silent, PURE, TABLES, "total", 100, WITNESS),
        Case("noise without the factor 2, geometric", two, PURE, TABLES, "moved", 50_000, HIDDEN),
        Case("shares of 1/2 for three levels, geometric", share, PURE, TABLES, "moved", 50_000, HIDDEN),
        Case("TopDown, geometric", TopDown, PURE, MEASUREMENTS, "moved", 50_000, NEVER),
        Case("TopDown, Gaussian", TopDown, CONCENTRATED, MEASUREMENTS, "moved", 100_000, NEVER),
        Case("TopDown, a person of a rare kind", TopDown, PURE, TABLES, "rare", 50_000, NEVER),
        Case("TopDown, the total of an area", TopDown, PURE, TABLES, "total", 50_000, NEVER),
    ]


def neighbors(name: str) -> NeighborPair:
    """Return a person who is another's replacement: elsewhere and of another kind, or the only one of a kind."""
    counts = 10 + np.arange(TREE.n_leaves * SCHEMA.cells).reshape(TREE.n_leaves, SCHEMA.cells) % 7
    if name != "rare":
        return NeighborPair.move_people(
            counts, FIRST, LAST, label="a person replaced by one elsewhere, in another cell"
        )
    cell = LAST[1]
    counts[:, cell] = 0
    counts[FIRST[0], cell] = 1
    return NeighborPair.move_people(counts, (FIRST[0], cell), LAST, label="the only person of a kind moves")


def total_of_first(pair: NeighborPair) -> Event:
    """Return the event that the total of the first area of level 1 is that of `y`, or below; or that of `x`."""
    cells = [(leaf, cell) for leaf in range(FANOUT) for cell in range(SCHEMA.cells)]
    total = float(pair.x[:FANOUT].sum())  # y has one person less
    return Event(
        weighted_sum(cells, [0.0] * len(cells), [-1.0] * len(cells)), ThresholdRule(low=-total, high=1 - total)
    )


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Audit everything 20 times, with 100 to 200,000 runs (quick: once, what 20,000 runs show)."""
    found = cases()
    if quick:
        sound = [replace(case, size=case.size // 20) for case in found if case.expected == NEVER]
        found = [case for case in found if case.expected in (COUNTS, WITNESS) and case.size <= 20_000] + sound
    streams = np.random.SeedSequence(seed).spawn(len(found))
    tasks = [
        delayed(_audit)(case, stream)
        for case, own in zip(found, streams, strict=True)
        for stream in own.spawn(1 if quick else AUDITS)
    ]
    audits = []
    with progress_bar("bugs of TopDown", len(tasks), unit="audits") as advance:
        for audit in Parallel(n_jobs=jobs, return_as="generator")(tasks):
            audits.append(audit)
            advance(1)
    each = len(audits) // len(found)
    return {
        "rows": [
            {**_about(case), "audits": audits[number * each : (number + 1) * each]} for number, case in enumerate(found)
        ],
        "confidence": CONFIDENCE,
    }


def _about(case: Case) -> dict[str, Any]:
    """Return what is known of a case before any run."""
    pair, mechanism = neighbors(case.pair), case.mechanism
    law = mechanism.stage("measurements").exact_loss(pair)
    assert law is not None  # a handful of answers change
    measured = law.epsilon_at(0) if isinstance(case.promise, PureDP) else law.renyi(2) / 2
    return {
        "words": case.words,
        "sound": case.kind is TopDown,
        "stage": case.stage,
        "relation": pair.relation,
        "pair": pair.label,
        "parameter": case.promise.parameter,
        "promise": case.promise.budget,
        "expected": case.expected,
        "size": case.size,
        # Tables are post-processing of measurements, unless the bug lets more than these out of the measurement step.
        "loss": plain_number(np.inf if case.expected == WITNESS else measured),
    }


def _audit(case: Case, stream: np.random.SeedSequence) -> dict[str, Any]:
    pair, mechanism = neighbors(case.pair), case.mechanism
    audited: Mechanism = mechanism.stage("measurements") if case.stage == MEASUREMENTS else mechanism
    result = measure_loss(
        audited,
        pair,
        case.promise,
        event=total_of_first(pair) if case.pair == "total" else None,
        size=case.size,
        confidence=CONFIDENCE,
        rng=stream,
    )
    return {
        "verdict": result.verdict,
        "forced": plain_number(result.measured.budget),
        "witness": None if result.support is None else result.support["probability"],
        "event": result.event,
        "class": "a registered total" if case.pair == "total" else event_class(result.event),
    }


def event_class(event: str) -> str:
    """Return the kind of an event from its words: what of an output it looks at."""
    looked_at = event.rsplit(" by ", 1)[-1]
    kinds = {
        "likelihood ratio": ("log-likelihood ratio of y over x",),
        "trained classifier": ("regression on", "boosting on"),
        "several entries": ("joint shift", "weighted sum", "sum of output", "agreement"),
    }
    return next((kind for kind, words in kinds.items() if any(word in looked_at for word in words)), "one entry")


def caught(row: dict[str, Any]) -> int:
    """Return how many audits of a row catch it in the way that is expected."""
    by_counts = [audit for audit in row["audits"] if float(audit["forced"]) > row["promise"]]
    if row["expected"] == WITNESS:
        by_counts = [audit for audit in by_counts if audit["witness"] is not None]
    return sum(audit["verdict"] == "violated" for audit in by_counts)


def check(numbers: dict[str, Any]) -> list[Check]:
    """Hold every verdict against what is planted, and every bound against the true loss."""
    found = []
    for row in numbers["rows"]:
        audits, what = row["audits"], f"{row['words']} ({row['stage']})"
        if row["expected"] in (COUNTS, WITNESS):
            times = caught(row)
            words = f"{what}: {times} of {len(audits)} audits catch it, by {row['expected']}; expected all"
            found.append(Check(words, times == len(audits)))
        else:
            times = sum(audit["verdict"] == "violated" for audit in audits)
            words = f"{what}: {times} of {len(audits)} audits accuse, expected none ({row['expected']})"
            found.append(Check(words, times == 0))
        largest = max(float(audit["forced"]) for audit in audits)
        words = f"{what}: at most {largest:.4g} forced, expected no more than the true loss of {float(row['loss']):.4g}"
        found.append(Check(words, largest <= float(row["loss"])))
    return found


def finding(numbers: dict[str, Any]) -> str:
    """Return how each bug is caught, with how many runs, and what hides two of them."""
    found = [row for row in numbers["rows"] if row["expected"] in (COUNTS, WITNESS)]
    parts = []
    for row in found:
        loss = float(row["loss"]) / row["promise"]
        true = "infinity" if np.isinf(loss) else f"{loss:.1f}"
        parts.append(
            f"{row['words']}: {_share(row):.2f} of {true}, {row['size']:,} runs of the {row['stage']}, by "
            f"{row['expected']} ({_classes(row)})"
        )
    hidden = [row for row in numbers["rows"] if row["expected"] == HIDDEN]
    sound = [audit for row in numbers["rows"] if row["sound"] for audit in row["audits"]]
    text = (
        f"{sum(map(caught, found))} of {sum(len(row['audits']) for row in found)} audits catch what is planted, at "
        f"confidence 1 - 1e-6 and with one person replaced. Forced (median) and true, in units of the promise: "
        f"{'; '.join(parts)}. "
    )
    if hidden:
        words = " and ".join(f"{_share(row):.2f}" for row in hidden)
        text += f"In the published tables {hidden[0]['size']:,} runs force {words} promises of the first two bugs. "
    accused = sum(audit["verdict"] == "violated" for audit in sound)
    return text + f"Of {len(sound)} audits of the sound algorithm {accused} accuse."


def _share(row: dict[str, Any]) -> float:
    return float(np.median([float(audit["forced"]) for audit in row["audits"]]) / row["promise"])


def _classes(row: dict[str, Any]) -> str:
    """Return the most frequent kind of event."""
    kinds = Counter(str(audit["class"]) for audit in row["audits"])
    return max(sorted(kinds), key=kinds.__getitem__)


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw what is forced and what is true in units of the promise: one row a case."""
    figure, (ax,) = new_figure(10.8, 4.9)
    place, ticks, before = -1.0, {}, ""
    for row in numbers["rows"]:
        group = (
            "sound algorithm, same pairs" if row["sound"] else "tables" if row["expected"] == HIDDEN else "planted bugs"
        )
        place += 1.9 if group != before else 1.0
        if group != before:
            words = {"tables": "planted bugs whose traces the tables hide"}.get(group, group)
            ax.text(-0.02, place - 0.8, words, ha="right", va="center", style="italic", transform=_by_row(ax))
        ticks[place] = f"{row['words']}: {row['stage']}"
        _draw_row(ax, row, place)
        before = group
    ax.axvline(1, color=BLACK, linewidth=1.2, linestyle="--", zorder=0)
    ax.set_yticks(list(ticks), list(ticks.values()), fontsize=8)
    ax.tick_params(axis="y", length=0)
    _columns(ax, 0.1, ("runs", "caught", "event"), "italic")
    ax.set_ylim(place + 0.7, -0.3)
    ax.set_xlim(0, LIMIT)
    ax.set_xlabel("privacy loss in units of the promise ($\\varepsilon$ = 1 or $\\rho$ = 0.5, one person replaced)")
    figure.legend(handles=_legend(), loc="outside lower center", ncols=5, fontsize=8, columnspacing=1.2)
    return figure


def _by_row(ax: Axes) -> Any:
    return ax.get_yaxis_transform()


def _draw_row(ax: Axes, row: dict[str, Any], at: float) -> None:
    values = [float(audit["forced"]) / row["promise"] for audit in row["audits"]]
    broken = row["expected"] in (COUNTS, WITNESS)
    style: dict[str, Any] = {"height": 0.62, "edgecolor": "white", "linewidth": 0, "hatch": "//" if broken else ""}
    ax.barh(at, min(float(np.median(values)), LIMIT), color=ORANGE if broken else BLUE, **style)
    ax.plot(np.minimum([min(values), max(values)], LIMIT), [at, at], color=BLACK, linewidth=1.1)
    loss = float(row["loss"]) / row["promise"]
    if np.isfinite(loss):
        face = "white" if row["stage"] == TABLES else GREEN
        ax.plot(loss, at, marker="D", color=GREEN, markerfacecolor=face, markersize=4.5, linestyle="none", zorder=4)
    if np.isinf(loss):
        text = f"{float(np.median(values)):.1f} of $\\infty$, a witness of {row['audits'][0]['witness']:.2f}"
        box = {"facecolor": "white", "linewidth": 0, "pad": 1.0}
        ax.text(0.06, at, text, va="center", fontsize=7.5, bbox=box)
    times = sum(audit["verdict"] == "violated" for audit in row["audits"])
    _columns(ax, at, (f"{row['size']:,}", f"{times} of {len(row['audits'])}", _classes(row)))


def _columns(ax: Axes, at: float, texts: tuple[str, str, str], style: str = "normal") -> None:
    """Write three texts to the right of the axis, at fixed distances."""
    for text, points, side in zip(texts, (38, 62, 84), ("right", "center", "left"), strict=True):
        ax.annotate(
            text,
            (1, at),
            (points, 0),
            xycoords=_by_row(ax),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=7.5,
            style=style,
            annotation_clip=False,
        )


def _legend() -> list[Any]:
    return [
        Patch(facecolor=ORANGE, hatch="//", edgecolor="white", linewidth=0, label="forced of the broken"),
        Patch(facecolor=BLUE, label="forced of the sound or hidden"),
        Line2D([], [], color=BLACK, linewidth=1.1, label="lowest to highest (bar: median)"),
        Line2D([], [], marker="D", color=GREEN, markersize=4.5, linestyle="none", label="true loss"),
        Line2D(
            [],
            [],
            marker="D",
            color=GREEN,
            markerfacecolor="white",
            markersize=4.5,
            linestyle="none",
            label="of the measurements: tables lose no more",
        ),
    ]
