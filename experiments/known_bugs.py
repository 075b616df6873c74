"""Audits must detect every known bug and faulty benchmark, and report no violation of a correct algorithm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.benchmarks import benchmarks
from algorithms.bugs import known_bugs
from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.flaxman.gaussian import GaussianCounts
from algorithms.hierarchy import Hierarchy
from algorithms.population import load
from audit import Attack, Event, NeighborPair, measure_loss
from audit.results import plain_number
from audit.results.plots import BLACK, EXACT, GRAY, PROMISE, RED
from experiments import drawing
from experiments.audits import bounds, group_pair, kept, lost, none_above, run_all
from experiments.experiment import CONFIDENCE, DATA, Check, Checks, Numbers, down
from experiments.phsafe.slack import spelled
from experiments.replayed import SAMPLES, check_replays, replays
from experiments.topdown import bugs as topdown_bugs

BUGS, FAULTY, TOPDOWN, CORRECT = "known bugs", "faulty benchmarks", "known bugs of TopDown", "correct algorithms"
CORRECT_SIZE, SMALL = 400_000, 100_000  # the quick version omits cases with more than SMALL runs
# Sizes and group sizes. For rare events, groups of ten give larger bounds than ten times the runs.
FAULTY_SIZES: dict[str, tuple[int, int]] = DATA["known_bugs"]["runs_and_people"]
COUNTS = np.arange(20, 29)
LAWS = Attack.without("precision")  # for published algorithms; their papers do not treat float noise
MISSED = (topdown_bugs.NEVER, topdown_bugs.HIDDEN)  # cases that no audit should detect


@dataclass(frozen=True)
class Case:
    """A mechanism to audit with its pair and number of runs, its true loss, and how it should be detected."""

    group: str
    name: str
    mechanism: Any
    pair: NeighborPair
    loss: float  # for one person, in the unit of the claim; NaN if unknown
    size: int
    found: str  # "counts", "witness", both, "refused", or one of `MISSED`
    attack: Attack = LAWS
    event: Event | None = None
    largest: int = SMALL  # most runs of a case in the quick version


def cases() -> list[Case]:
    result = []
    for name, bug in known_bugs().items():
        if bug.found != "replay":
            pair = NeighborPair.declared(bug.x, bug.y, bug.relation)
            result.append(Case(BUGS, name, bug.mechanism, pair, bug.loss, bug.size, bug.found, Attack()))
    known = benchmarks()
    for name, (size, people) in FAULTY_SIZES.items():
        faulty, how = known[name], "witness" if name == "ReportNoisyMax4" else "counts"
        result.append(Case(FAULTY, name, faulty.mechanism, group_pair(faulty, people), faulty.loss, size, how))
    tree, (communes, people_of) = Hierarchy.regular(3, 2), load("morocco")
    small, large = NeighborPair.add_people(COUNTS, 0), NeighborPair.add_people(people_of, 0)
    for name, mechanism, pair, loss, size in (
        ("GDPC", GDPC(1.0), small, 1.0, SMALL),
        ("RDPC, tree of 3 x 3", RDPC(1.0, tree, output="all"), small, 1.0, SMALL),
        ("RDPC, communes of Morocco", RDPC(1.0, communes, output="all"), large, 1.0, SMALL // 5),
        ("ADPC", ADPC(1.0), small, 1.0, SMALL),
        ("GaussianCounts", GaussianCounts(0.5), small, 0.5, SMALL),
    ):
        result.append(Case(CORRECT, name, mechanism, pair, loss, size, topdown_bugs.NEVER))
    result += [
        Case(CORRECT, name, sound.mechanism, group_pair(sound), sound.loss, CORRECT_SIZE, topdown_bugs.NEVER)
        for name, sound in known.items()
        if sound.sound
    ]
    return result + [_of_topdown(case) for case in topdown_bugs.cases()]


def _of_topdown(case: topdown_bugs.Case) -> Case:
    pair, whole = topdown_bugs.neighbors(case.pair), case.mechanism
    measured = whole.stage("measurements")
    # Tables post-process the measurements, unless the bug passes further data to later steps.
    loss = math.inf if case.expected == topdown_bugs.WITNESS else lost(measured, pair, case.promise.parameter)
    group = CORRECT if case.expected == topdown_bugs.NEVER else TOPDOWN
    event = topdown_bugs.total_of_first(pair) if case.pair == "total" else None
    audited_there: Any = measured if case.stage == topdown_bugs.MEASUREMENTS else whole
    name = f"{case.words}: {case.stage}"
    return Case(group, name, audited_there, pair, loss, case.size, case.expected, Attack(), event, largest=20_000)


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit bugs 5 times, TopDown and correct algorithms 20 times (quick: once, small cases only); run the replays."""
    every = cases()
    split = sum(case.largest == SMALL for case in every)
    streams = [s for number in (split, len(every) - split) for s in np.random.SeedSequence(seed).spawn(number)]
    tasks = []
    for case, stream in zip(every, streams, strict=True):
        if not quick or case.size <= case.largest:
            audits = 1 if quick else 5 if case.group in (BUGS, FAULTY) else 20
            tasks.append(delayed(audited)(case, stream.spawn(audits)))
    rows = run_all(tasks, jobs, "known bugs", unit="algorithms")
    return {"rows": rows, "confidence": CONFIDENCE, "replays": replays(quick=quick, seed=seed)}


def audited(case: Case, streams: list[np.random.SeedSequence]) -> dict[str, Any]:
    return {
        "group": case.group,
        "name": case.name,
        "claim": case.mechanism.claim.budget,
        "parameter": case.mechanism.claim.parameter,
        "loss": plain_number(case.loss),
        "expected": case.found,
        "size": case.size,
        "distance": case.pair.distance,
        "audits": [_audit(case, stream) for stream in streams],
    }


def _audit(case: Case, stream: np.random.SeedSequence) -> dict[str, Any]:
    options: dict[str, Any] = {"attack": case.attack} if case.event is None else {"event": case.event}
    options |= {"size": case.size, "confidence": CONFIDENCE, "rng": stream}
    try:
        result = measure_loss(case.mechanism, case.pair, case.mechanism.claim, **options)
    except ValueError as error:
        return {"verdict": "refused", "lower_bound": None, "witness": None, "event": str(error)}
    return {**kept(result), "event": result.event}


def caught(row: dict[str, Any], audit: dict[str, Any]) -> bool:
    """Return whether an audit detected a bug in the expected way."""
    expected = row["expected"]
    if audit["verdict"] == "refused":
        return expected == "refused" and ("rng" in audit["event"] or "independent" in audit["event"])
    if audit["verdict"] != "violated":
        return False
    # If the clock ticks during the audit, a seed from seconds may not show in counts; then only the witness shows it.
    counted = expected not in ("counts", topdown_bugs.WITNESS) or float(audit["lower_bound"]) > row["claim"]
    return bool(counted and (expected == "counts" or audit["witness"] is not None))


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        audits, what = row["audits"], f"{row['group']}, {row['name']}"
        if row["expected"] in MISSED:
            verdicts = sorted({audit["verdict"] for audit in audits})
            words = f"{what}: {len(audits)} audits say {', '.join(verdicts)}; expected not refuted"
            yield Check(words, verdicts == ["not refuted"])
        else:
            times = sum(caught(row, audit) for audit in audits)
            words = f"{what}: {times} of {len(audits)} audits find it ({row['expected']}), expected all"
            yield Check(words, times == len(audits))
        yield none_above(what, audits, float(row["loss"]))
    yield from check_replays(numbers["replays"])


def facts(numbers: Numbers) -> dict[str, Any]:
    bad = [row for row in numbers["rows"] if row["expected"] not in MISSED]
    good = [audit for row in numbers["rows"] if row["group"] == CORRECT for audit in row["audits"]]
    always = sum(all(caught(row, audit) for audit in row["audits"]) for row in bad)
    rows = []
    for words, how in (
        ("counting runs", ("counts", topdown_bugs.WITNESS)),
        ("a witness in the exact law alone", ("witness",)),
        ("a refusal: runs are not independent", ("refused",)),
    ):
        kind = [row for row in numbers["rows"] if row["expected"] in how]
        caught_audits = [caught(row, audit) for row in kind for audit in row["audits"]]
        rows.append((words, f"{len(kind)} bugs", f"{sum(caught_audits)} of {len(caught_audits)} audits"))
    audits = sum(len(row["audits"]) for row in bad)
    closest = min((row for row in bad if row["expected"] == "counts"), key=_narrowest)
    narrowest = down(_narrowest(closest))
    bugs, systems = numbers["replays"]["bugs"], numbers["replays"]["systems"]
    once = [bug for bug in bugs if bug["kinds"][:1] == [bug["expected"]] and bug["pairs"] == 1]
    times = [bug["milliseconds"] for bug in once]
    detected = sum(bug["kinds"][:1] == [bug["expected"]] for bug in bugs)
    rows.append(("one pair of runs with the same noisy answers", f"{len(bugs)} bugs", f"{len(once)} bugs"))
    rows.append(("ten pairs, or a clock, where one shows nothing", "the others", f"{detected - len(once)} bugs"))
    for system in systems:
        lost = f"{system['parameter']} {system['lost']:.4g} of {system['promised']:.4g}"
        pair = f"one pair, {spelled(system['name'])}: {system['pair'].partition(':')[0]}"
        rows.append((pair, f"{len(system['queries'])} queries", lost))
    beyond = sum(system["verdict"] == "violated" for system in systems)
    known = list(numbers["replays"]["known"].values())
    return locals() | {"shown_once": known.count(1), "samples": SAMPLES}


def _narrowest(row: dict[str, Any]) -> float:
    return float(min(bounds(row["audits"])) / row["claim"])


END, INFINITY = 150.0, 330.0  # positions on the axis, in units of the promise: end of finite losses; infinity


def draw(numbers: Numbers) -> Figure:
    figure, (ax,) = drawing.page(2.0 + 0.155 * (len(numbers["rows"]) + 9))
    place, ticks = -1.4, {}
    for letter, group in zip("abcd", (BUGS, FAULTY, TOPDOWN, CORRECT), strict=True):
        place += 1.4
        drawing.group_rows(ax, place, f"({letter}) {group}", size=9, weight="bold")
        for row in numbers["rows"]:
            if row["group"] == group:
                place += 1
                ticks[place] = row["name"] + (f", {row['distance']} at once" if row["distance"] > 1 else "")
                _draw_row(ax, row, place)
                if group == BUGS:
                    pairs = numbers["replays"]["known"].get(row["name"])
                    drawing.column(ax, place, "-" if pairs is None else f"{pairs}", 92)
    drawing.name_rows(ax, list(ticks.values()), at=list(ticks), top=-0.8)
    _draw_scale(ax)
    handles = [
        *drawing.keys(
            violated="lower bound above the promise: violated",
            bound="lower bound, confidence 1 - 1e-6",
            extent="lowest to highest of the audits (bar: median)",
            promise="promise",
            exact="true loss",
        ),
        drawing.line_key("an audit has a witness: violated", **EXACT | {"color": RED}),
        drawing.line_key("infinite, and no audit has a witness", **EXACT, markerfacecolor="white"),
    ]
    drawing.foot(figure, handles, ncols=2, words="pairs: of runs with the same noisy answers, that show the bug")
    return figure


def _draw_row(ax: Axes, row: dict[str, Any], at: float) -> None:
    values, loss = [value / row["claim"] for value in bounds(row["audits"])], float(row["loss"])
    if values:
        drawing.bar(ax, at, float(np.median(values)), violated=float(np.median(values)) > 1, end=END)
        drawing.extent(ax, values, at)
    else:
        drawing.beside(ax, at, "refused: the runs are not independent", x=0.01, bbox=drawing.BOX)
    witness = any(audit["witness"] is not None for audit in row["audits"])
    length = INFINITY if math.isinf(loss) else min(loss / row["claim"], END)
    color = RED if witness else BLACK
    face = color if witness or math.isfinite(loss) else "white"
    ax.plot(length, at, **EXACT | {"color": color}, markerfacecolor=face, zorder=4, clip_on=False)
    if length == END:
        ax.text(END / 1.25, at, f"{loss / row['claim']:,.0f}", ha="right", va="center", fontsize=8)
    drawing.column(ax, at, f"{row['size']:,}", 54)


def _draw_scale(ax: Axes) -> None:
    """Draw an axis that is linear up to the promise, logarithmic beyond it, and ends with infinity."""
    ax.axvline(1, **PROMISE, zorder=0)
    ax.axvline(INFINITY, color=GRAY, linewidth=0.8, linestyle=":", zorder=0)
    stretched = (
        lambda x: np.where(x <= 1, x, 1 + np.log(np.maximum(x, 1))),
        lambda x: np.where(x <= 1, x, np.exp(np.maximum(x, 1) - 1)),
    )
    ax.set_xscale("function", functions=stretched)
    ticks = (0, 0.5, 1, 2, 5, 10, 30, 100)
    ax.set_xticks([*ticks, INFINITY], [*map("{:g}".format, ticks), "$\\infty$"])
    ax.minorticks_off()
    drawing.bare_rows(ax)
    ax.set(xlim=(0, INFINITY * 1.02), xlabel="privacy loss in units of the promise (linear to 1, log scale beyond it)")
    for words, points in (("runs", 54), ("pairs", 92)):
        drawing.column(ax, 0, words, points, style="italic")
