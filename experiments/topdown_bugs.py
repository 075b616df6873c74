"""Four bugs in TopDown: two that show in its measurements, two only in its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.bugs.systems.topdown import MissingFactorTwo, PrunedByTruth, SilentTotals, WrongLevelShare
from algorithms.hierarchy import Hierarchy
from algorithms.schema import Schema
from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from audit.claims import ZCDP, PureDP
from audit.events import Event, ThresholdRule, weighted_sum
from audit.measure.loss import measure_loss
from audit.mechanism import Mechanism
from audit.neighbors import NeighborPair
from audit.results import plain_number
from audit.results.plots import BLACK, EXACT, PROMISE
from experiments.audits import all_or_none, bounds, down, event_class, kept, median, none_above, run_all, violations
from experiments.drawing import INFINITE, bar, bar_key, beside, column, extent, foot, line_key, page, promise
from experiments.experiment import CONFIDENCE, Check, MarkdownTable

QUESTION = "Are known bugs found in TopDown: in its noise, its shares, its estimation, its invariants?"
EXPECTATION = (
    "All four are found in 20 of 20 audits each: noise that forgets a factor of two and wrong level shares by counting "
    "noisy measurements, cells pruned by the true parent and undeclared exact totals by a witness and by counting "
    "tables. The tables hide the first two from as many runs. No audit of the correct algorithm reports a violation, "
    "and no lower bound exceeds a true loss."
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
    """Return all audits: what has a bug first."""
    two, share, pruned, silent = MissingFactorTwo, WrongLevelShare, PrunedByTruth, SilentTotals
    factor, shares = "noise without the factor 2", "shares of 1/2 for three levels"
    return [
        Case(f"{factor}, geometric", two, PURE, MEASUREMENTS, "moved", 20_000, COUNTS),
        Case(f"{factor}, Gaussian", two, CONCENTRATED, MEASUREMENTS, "moved", 50_000, COUNTS),
        Case(f"{shares}, geometric", share, PURE, MEASUREMENTS, "moved", 200_000, COUNTS),
        Case(f"{shares}, Gaussian", share, CONCENTRATED, MEASUREMENTS, "moved", 100_000, COUNTS),
        Case("cells pruned by the true parent", pruned, PURE, TABLES, "rare", 2_000, WITNESS),
        Case("undeclared exact totals of level 1", silent, PURE, TABLES, "total", 100, WITNESS),
        Case(f"{factor}, geometric", two, PURE, TABLES, "moved", 50_000, HIDDEN),
        Case(f"{shares}, geometric", share, PURE, TABLES, "moved", 50_000, HIDDEN),
        Case("TopDown, geometric", TopDown, PURE, MEASUREMENTS, "moved", 50_000, NEVER),
        Case("TopDown, Gaussian", TopDown, CONCENTRATED, MEASUREMENTS, "moved", 100_000, NEVER),
        Case("TopDown, a person of a rare kind", TopDown, PURE, TABLES, "rare", 50_000, NEVER),
        Case("TopDown, the total of an area", TopDown, PURE, TABLES, "total", 50_000, NEVER),
    ]


def neighbors(name: str) -> NeighborPair:
    """Return a person who is another's replacement: elsewhere and of another kind, or the only one of a kind."""
    counts = 10 + np.arange(TREE.n_leaves * SCHEMA.cells).reshape(TREE.n_leaves, SCHEMA.cells) % 7
    if name != "rare":
        words = "a person replaced by one elsewhere, in another cell"
        return NeighborPair.move_people(counts, FIRST, LAST, label=words)
    cell = LAST[1]
    counts[:, cell] = 0
    counts[FIRST[0], cell] = 1
    return NeighborPair.move_people(counts, (FIRST[0], cell), LAST, label="the only person of a kind moves")


def total_of_first(pair: NeighborPair) -> Event:
    """Return the event that the total of the first area of level 1 is that of `y`, or below; or that of `x`."""
    cells = [(leaf, cell) for leaf in range(FANOUT) for cell in range(SCHEMA.cells)]
    total = float(pair.x[:FANOUT].sum())  # y has one person less
    minus = weighted_sum(cells, [0.0] * len(cells), [-1.0] * len(cells))
    return Event(minus, ThresholdRule(low=-total, high=1 - total))


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Audit everything 20 times, with 100 to 200,000 runs (quick: once, what 20,000 runs show)."""
    found = cases()
    if quick:
        correct = [replace(case, size=case.size // 20) for case in found if case.expected == NEVER]
        found = [case for case in found if case.expected in (COUNTS, WITNESS) and case.size <= 20_000] + correct
    streams = np.random.SeedSequence(seed).spawn(len(found))
    tasks = [
        delayed(_audit)(case, stream)
        for case, own in zip(found, streams, strict=True)
        for stream in own.spawn(1 if quick else AUDITS)
    ]
    audits = iter(run_all(tasks, jobs, "bugs of TopDown"))
    each = len(tasks) // len(found)
    return {
        "rows": [{**_about(case), "audits": list(islice(audits, each))} for case in found],
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
    event = total_of_first(pair) if case.pair == "total" else None
    result = measure_loss(audited, pair, case.promise, event=event, size=case.size, confidence=CONFIDENCE, rng=stream)
    kind = event_class(result.event) if event is None else "a registered total"
    return {**kept(result), "event": result.event, "class": kind}


def caught(row: dict[str, Any]) -> int:
    """Return how many audits of a row find it in the way that is expected."""
    by_counts = [audit for audit in row["audits"] if float(audit["lower_bound"]) > row["promise"]]
    if row["expected"] == WITNESS:
        by_counts = [audit for audit in by_counts if audit["witness"] is not None]
    return violations(by_counts)


def check(numbers: dict[str, Any]) -> Iterator[Check]:
    """Hold every verdict against the known bug, and every bound against the true loss."""
    for row in numbers["rows"]:
        audits, what = row["audits"], f"{row['words']} ({row['stage']})"
        if row["expected"] in (COUNTS, WITNESS):
            times = caught(row)
            words = f"{what}: {times} of {len(audits)} audits find it, by {row['expected']}; expected all"
            yield Check(words, times == len(audits))
        else:
            yield all_or_none(f"{what}, {row['expected']}", audits, violated=False)
        yield none_above(what, audits, float(row["loss"]))


def finding(numbers: dict[str, Any]) -> str:
    """Return how often bugs are found, and how often the correct algorithm is called violated."""
    found = [row for row in numbers["rows"] if row["expected"] in (COUNTS, WITNESS)]
    correct = [audit for row in numbers["rows"] if row["sound"] for audit in row["audits"]]
    return (
        f"Yes: {sum(map(caught, found))} of {sum(len(row['audits']) for row in found)} audits find the known bug, in "
        f"noise, shares, estimation and invariants, and {violations(correct)} of {len(correct)} audits of the correct "
        "algorithm report a violation, at confidence 1 - 1e-6 and with one person replaced."
    )


def table(numbers: dict[str, Any]) -> MarkdownTable:
    """Return how each bug is found, with how many runs, and what tables hide."""
    rows = []
    for row in (row for row in numbers["rows"] if not row["sound"]):
        loss = float(row["loss"]) / row["promise"]
        by = f"{row['expected']} ({_classes(row)})" if row["expected"] in (COUNTS, WITNESS) else row["expected"]
        true = "infinite" if np.isinf(loss) else f"{loss:.1f}"
        rows.append((row["words"], f"{row['size']:,} runs, {row['stage']}", down(_share(row)), true, by))
    return MarkdownTable(("bug", "audited", "lower bound / promise", "true loss / promise", "found by"), rows)


def _share(row: dict[str, Any]) -> float:
    """Return the median lower bound over the promise."""
    return median(row["audits"]) / float(row["promise"])


def _classes(row: dict[str, Any]) -> str:
    """Return the most frequent kind of event."""
    kinds = Counter(str(audit["class"]) for audit in row["audits"])
    return max(sorted(kinds), key=kinds.__getitem__)


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw lower bounds and true losses in units of the promise: one row a case."""
    figure, (ax,) = page(5.6)
    place, ticks, before = -1.0, {}, ""
    for row in numbers["rows"]:
        hidden = row["expected"] == HIDDEN
        group = "correct algorithm, same pairs" if row["sound"] else "known bugs" + ", hidden by the tables" * hidden
        place += 1.9 if group != before else 1.0
        if group != before:
            beside(ax, place - 0.9, group, x=-0.02, size=9, ha="right", weight="bold")
        ticks[place] = f"{row['words']}: {row['stage']}"
        _draw_row(ax, row, place)
        before = group
    promise(ax)
    ax.set_yticks(list(ticks), list(ticks.values()), fontsize=8)
    ax.tick_params(axis="y", length=0)
    _columns(ax, 0.0, ("runs", "violated", "event"), "italic")
    ax.set_ylim(place + 0.7, -0.5)
    ax.set_xlim(0, LIMIT)
    ax.set_xlabel("privacy loss in units of the promise\n($\\varepsilon$ = 1 or $\\rho$ = 0.5, one person replaced)")
    handles: list[Any] = [
        bar_key("lower bound, violated", violated=True),
        bar_key("lower bound, not refuted"),
        line_key("lowest to highest (bar: median)", color=BLACK, linewidth=1.1),
        line_key("promise", **PROMISE),
        line_key("true loss", **EXACT),
        line_key("of the measurements: tables lose no more", **EXACT, markerfacecolor="white"),
        line_key("true loss infinite, the audits have a witness", **INFINITE),
    ]
    foot(figure, handles, ncols=3)
    return figure


def _draw_row(ax: Axes, row: dict[str, Any], at: float) -> None:
    values = np.array(bounds(row["audits"])) / row["promise"]
    bar(ax, at, float(np.median(values)), violated=2 * violations(row["audits"]) > len(values), end=LIMIT)
    extent(ax, np.minimum(values, LIMIT), at)
    loss = float(row["loss"]) / row["promise"]
    if np.isfinite(loss):
        ax.plot(loss, at, **EXACT, markerfacecolor="white" if row["stage"] == TABLES else BLACK, zorder=4)
    else:
        ax.plot(LIMIT, at, **INFINITE, clip_on=False, zorder=5)
    times = f"{violations(row['audits'])} of {len(row['audits'])}"
    _columns(ax, at, (f"{row['size']:,}", times, _classes(row)))


def _columns(ax: Axes, at: float, texts: tuple[str, str, str], style: str = "normal") -> None:
    """Write three texts to the right of the axis, at fixed distances."""
    for text, points, side in zip(texts, (42, 80, 88), ("right", "right", "left"), strict=True):
        column(ax, at, text, points, ha=side, style=style, fontsize=7.5)
