"""Four bugs in TopDown: two that show in its measurements, two only in its tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.bugs.systems.topdown import MissingFactorTwo, PrunedByTruth, SilentTotals, WrongLevelShare
from algorithms.hierarchy import Hierarchy
from algorithms.schema import Schema
from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from audit import ZCDP, Event, Mechanism, NeighborPair, PureDP, measure_loss
from audit.attacks.statistics import weighted_sum
from audit.events import ThresholdRule
from audit.results import plain_number
from audit.results.plots import BLACK, EXACT
from experiments.audits import all_or_none, bounds, event_class, exact_law, kept, median, none_above, repeat
from experiments.drawing import INFINITE, beside, column, foot, keys, line_key, losses, page, promise
from experiments.experiment import CONFIDENCE, Check, Checks, Numbers, down, violations

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


def total_of_first(pair: NeighborPair, leaves: int = FANOUT) -> Event:
    """Return the event that the total of the first districts, by default those of a state, is that of `y`, not `x`."""
    cells = [(leaf, cell) for leaf in range(leaves) for cell in range(SCHEMA.cells)]
    before, after = (float(data[:leaves].sum()) for data in (pair.x, pair.y))
    sign = after - before  # y has one person less, or one more
    return Event(
        weighted_sum(cells, [0.0] * len(cells), [sign] * len(cells)),
        ThresholdRule(low=sign * before, high=sign * after),
    )


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit everything 20 times, with 100 to 200,000 runs (quick: once, what 20,000 runs show)."""
    audited = cases()
    if quick:
        correct = [replace(case, size=case.size // 20) for case in audited if case.expected == NEVER]
        audited = [case for case in audited if case.expected in (COUNTS, WITNESS) and case.size <= 20_000] + correct
    settings, streams = [(case,) for case in audited], np.random.SeedSequence(seed).spawn(len(audited))
    audits = repeat(_audit, settings, streams, 1 if quick else AUDITS, jobs=jobs, words="bugs of TopDown")
    rows = [{**_about(case), "audits": own} for case, own in zip(audited, audits, strict=True)]
    return {"rows": rows, "confidence": CONFIDENCE}


def _about(case: Case) -> dict[str, Any]:
    pair, mechanism = neighbors(case.pair), case.mechanism
    law = exact_law(mechanism.stage("measurements"), pair)
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


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        audits, what = row["audits"], f"{row['words']} ({row['stage']})"
        if row["expected"] in (COUNTS, WITNESS):
            times = caught(row)
            words = f"{what}: {times} of {len(audits)} audits find it, by {row['expected']}; expected all"
            yield Check(words, times == len(audits))
        else:
            yield all_or_none(f"{what}, {row['expected']}", audits, violated=False)
        yield none_above(what, audits, float(row["loss"]))


def facts(numbers: Numbers) -> dict[str, Any]:
    detected = [row for row in numbers["rows"] if row["expected"] in (COUNTS, WITNESS)]
    correct = [audit for row in numbers["rows"] if row["sound"] for audit in row["audits"]]
    rows = []
    for row in (row for row in numbers["rows"] if not row["sound"]):
        bound, loss = (float(value) / row["promise"] for value in (median(row["audits"]), row["loss"]))
        by = row["expected"] + (f" ({_classes(row)})" if row in detected else "")
        true = "infinite" if np.isinf(loss) else f"{loss:.1f}"
        rows.append((row["words"], f"{row['size']:,} runs, {row['stage']}", down(bound), true, by))
    times, audits = sum(map(caught, detected)), sum(len(row["audits"]) for row in detected)
    return locals()


def _classes(row: dict[str, Any]) -> str:
    kinds = Counter(str(audit["class"]) for audit in row["audits"])
    return max(sorted(kinds), key=kinds.__getitem__)


def draw(numbers: Numbers) -> Figure:
    figure, (ax,) = page(5.6)
    place, ticks = -1.0, {}
    for group, rows in groupby(numbers["rows"], key=_group):
        place += 0.9
        beside(ax, place + 0.1, group, x=-0.02, size=9, ha="right", weight="bold")
        for row in rows:
            place += 1
            ticks[place] = f"{row['words']}: {row['stage']}"
            _draw_row(ax, row, place)
    promise(ax)
    ax.set_yticks(list(ticks), list(ticks.values()), fontsize=8)
    ax.tick_params(axis="y", length=0)
    _columns(ax, 0.0, ("runs", "violated", "event"), "italic")
    ax.set_ylim(place + 0.7, -0.5)
    ax.set_xlim(0, LIMIT)
    ax.set_xlabel("privacy loss in units of the promise\n($\\varepsilon$ = 1 or $\\rho$ = 0.5, one person replaced)")
    handles: list[Any] = [
        *keys(
            violated="lower bound, violated",
            bound="lower bound, not refuted",
            extent="lowest to highest (bar: median)",
            promise="promise",
            exact="true loss",
        ),
        line_key("of the measurements: tables lose no more", **EXACT, markerfacecolor="white"),
        line_key("true loss infinite, the audits have a witness", **INFINITE),
    ]
    foot(figure, handles, ncols=3)
    return figure


def _group(row: dict[str, Any]) -> str:
    if row["sound"]:
        return "correct algorithm, same pairs"
    return "known bugs, hidden by the tables" if row["expected"] == HIDDEN else "known bugs"


def _draw_row(ax: Axes, row: dict[str, Any], at: float) -> None:
    values, loss = np.array(bounds(row["audits"])) / row["promise"], float(row["loss"]) / row["promise"]
    times = violations(row["audits"])
    losses(ax, at, values, loss if np.isinf(loss) else None, end=LIMIT, violated=2 * times > len(values))
    if np.isfinite(loss):
        ax.plot(loss, at, **EXACT, markerfacecolor="white" if row["stage"] == TABLES else BLACK, zorder=4)
    _columns(ax, at, (f"{row['size']:,}", f"{times} of {len(values)}", _classes(row)))


def _columns(ax: Axes, at: float, texts: tuple[str, str, str], style: str = "normal") -> None:
    for text, points, side in zip(texts, (42, 80, 88), ("right", "right", "left"), strict=True):
        column(ax, at, text, points, ha=side, style=style)
