"""How many runs a plan asks for, and whether audits of that size detect the violation as often as planned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy import special

from audit import (
    ZCDP,
    ApproxDP,
    Canaries,
    Event,
    GaussianDP,
    NeighborPair,
    measure_loss,
    measure_loss_from_outputs,
    measure_loss_one_run,
    plan_power,
    plan_size,
    plan_violation,
)
from audit.claims import Claim, parse_claim
from audit.planning import Design
from audit.results.plots import BLACK, GRAY, plot_plan
from experiments.drawing import bar_key, beside, column, head, line_key, name_rows, own_keys, page, styles
from experiments.experiment import Check, Checks, Numbers, between, load_data, most_misses

Rng = np.random.Generator

WITHIN = 0.03  # of the planned power
CONFIDENCE_HERE = 0.95
VIOLATIONS = (1.05, 1.1, 1.2, 1.5, 2.0)
CURVES = ("pure:1", "approx:0.3,1e-6", "gaussian:1", "zcdp:0.5")
LAW = 0.5  # excess up to which its square is the law, or nearly
COUNT, NOISE = 120, 10.0  # of the people in the count with normal noise, and of its deviation
BATCH = 25  # audits that a worker makes in one go
STYLES = styles(("pure", "approx", "gaussian", "zcdp"), linestyle="none")
DESIGNS = {"coins": "", "outputs": ", given outputs", "one_run": ", one run"}


@dataclass(frozen=True)
class Case:
    """A promise, how much more is lost, and how the audit is made."""

    promise: str  # as `parse_claim` reads it
    violation: float  # 1 keeps the promise, with the runs for 1.2
    power: float
    audits: int = 2000  # how many are simulated in full
    distance: int = 1  # this and the next as `plan_size` takes them
    share: float = 1.0
    design: Design = "coins"

    @property
    def claim(self) -> Claim:
        """The promise."""
        return parse_claim(self.promise)

    @property
    def options(self) -> dict[str, Any]:
        """What a plan of it is asked with."""
        selection = 0.3 if self.share == 1 else 0.0
        audit = {"confidence": CONFIDENCE_HERE, "distance": self.distance, "selection": selection}
        return {**audit, "share": self.share, "design": self.design}

    @property
    def words(self) -> str:
        """The case in a line."""
        claim = self.claim
        numbers = f"{claim.parameter} {claim.budget:g}"
        numbers += f", delta {claim.delta:g}" if isinstance(claim, ApproxDP) else ""
        more = f", {self.distance} people" if self.distance > 1 else ""
        more += f", in {self.share:.0%} of outputs" if self.share < 1 else ""
        return f"{numbers}{more}{DESIGNS[self.design]}: {self.violation:g} x"


CASES = {name: tuple(Case(**row) for row in rows) for name, rows in load_data("bounds/planning.toml").items()}


# Both answer for each of some databases, which are 0 or 1: an array of shape (size, databases).


def coin(truth: Claim, share: float, which: ArrayLike, size: int, rng: Rng) -> NDArray[np.float64]:
    """Answer whether the database is `y`, +1 or -1, or with 0 not at all: right as often as a loss allows."""
    delta = truth.delta if isinstance(truth, ApproxDP) else 0.0
    wrong = (share - delta) * float(special.expit(-truth.budget))
    chance = rng.random((size, np.size(which)))
    return np.where(chance >= share, 0, np.where(chance < wrong, -1, 1)) * (2.0 * np.asarray(which) - 1)


def normal(truth: Claim, which: ArrayLike, size: int, rng: Rng) -> NDArray[np.float64]:
    """Answer with one more if the database is `y`, and normal noise that makes it lose just so much."""
    shift = truth.budget if isinstance(truth, GaussianDP) else math.sqrt(2 * truth.budget)
    return np.asarray(which) + rng.standard_normal((size, np.size(which))) / shift


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Plan, and audit as often as each case says; the quick form has fewer cases and tens of audits."""
    cases = CASES["quick"] if quick else CASES["full"] + CASES["kept"]
    streams = np.random.SeedSequence(seed).spawn(len(cases))
    parallel = Parallel(n_jobs=jobs)
    rows = []
    for case, stream in zip(cases, streams, strict=True):
        sound = case.violation == 1
        size = plan_size(case.claim, violation=1.2 if sound else case.violation, power=case.power, **case.options)
        detected = parallel(
            delayed(_detected)(case, size, min(BATCH, case.audits - BATCH * number), batch)
            for number, batch in enumerate(stream.spawn(-(-case.audits // BATCH)))
        )
        row = {"case": case.words, "kind": case.claim.kind, "violation": case.violation, "power": case.power}
        row |= {"size": size, "audits": case.audits, "seen": sum(detected)}
        if not sound:
            row["planned"] = plan_power(case.claim, size, violation=case.violation, **case.options)
            row["smallest"] = plan_violation(case.claim, size, power=case.power, **case.options)
        rows.append(row)
    violations, curves = [1.2, 1.5] if quick else list(VIOLATIONS), []
    for promise in CURVES[:3] if quick else CURVES:
        sizes = [plan_size(parse_claim(promise), violation=violation) for violation in violations]
        curves.append({"promise": promise, "violations": violations, "sizes": sizes})
    return {"rows": rows, "curves": curves, "quick": quick}


def _detected(case: Case, size: int, audits: int, root: np.random.SeedSequence) -> int:
    return sum(_audit(case, size, stream) for stream in root.spawn(audits))


def _audit(case: Case, size: int, root: np.random.SeedSequence) -> bool:
    claim = case.claim
    truth = claim.at(case.violation * claim.budget).group(case.distance)
    gaussian = isinstance(claim, GaussianDP | ZCDP)
    answer = partial(normal, truth) if gaussian else partial(coin, truth, case.share)
    common: dict[str, Any] = {"confidence": CONFIDENCE_HERE, "rng": root}
    if case.design == "one_run":

        def release(counts: ArrayLike, runs: int, rng: Rng, /) -> NDArray[np.float64]:
            answers = answer((np.asarray(counts) - COUNT) / case.distance, runs, rng)
            return COUNT + case.distance * (answers if gaussian else (answers + 1) / 2)

        canaries = Canaries(np.full(size, COUNT), people=case.distance)
        return measure_loss_one_run(release, canaries, claim, **common).verdict == "violated"

    def count(which: ArrayLike, runs: int, rng: Rng, /) -> NDArray[np.float64]:
        answers = answer(which, runs, rng)
        return COUNT + NOISE * answers if gaussian else answers

    if case.design == "outputs":
        x, y = (count(which, size // 2, np.random.default_rng(part)) for which, part in enumerate(root.spawn(2)))
        result = measure_loss_from_outputs(x, y, claim, relation="add_remove", distance=case.distance, **common)
        return result.verdict == "violated"
    pair = NeighborPair.declared(0, 1, "add_remove", distance=case.distance)
    event = Event.at_least(0, 1, low=-1) if case.share < 1 else None
    return measure_loss(count, pair, claim, size=size, event=event, **common).verdict == "violated"


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        share = row["seen"] / row["audits"]
        if row["violation"] == 1:
            most = most_misses(row["audits"], CONFIDENCE_HERE)
            yield between(f"{row['case']}: violations reported, of {row['audits']}", row["seen"], 0, most)
            continue
        planned, words = row["planned"], f"{row['case']}, power {row['power']:g}"
        # Of few audits chance alone makes more: 4 standard errors, exceeded once in 10,000.
        chance = 4 * math.sqrt(planned * (1 - planned) / row["audits"]) if numbers["quick"] else 0.0
        limit = WITHIN + chance
        text = f"{words}: detected in {share:.1%} of {row['audits']:,} audits, planned {planned:.1%} +- "
        yield Check(f"{text}{100 * limit:.2g}", abs(share - planned) <= limit)
        excess = (row["smallest"] - 1) / (row["violation"] - 1)
        # In one run, tests at tiny deltas refute nothing below a number of canaries, and nearly all from there on.
        steps = (1.0, 0.5) if "one run" in row["case"] else (row["power"] + 0.08, 0.93)
        yield between(f"{words}: planned power", planned, row["power"], steps[0])
        yield between(f"{words}: smallest detectable violation, excess / asked", excess, steps[1], 1.02)
        if not numbers["quick"]:
            yield between(f"{words}: audits", row["audits"], 2000, math.inf)
    for curve in numbers["curves"]:
        sizes, excess = np.array(curve["sizes"]), np.array(curve["violations"]) - 1
        small = excess <= LAW
        slope = -np.diff(np.log(sizes[small])) / np.diff(np.log(excess[small]))
        falls = f"{curve['promise']}: exponent of the excess, each step"
        yield between(f"{falls}, smallest", float(slope.min()), 1.4, 2.6)
        yield between(f"{falls}, largest", float(slope.max()), 1.4, 2.6)


def facts(numbers: Numbers) -> dict[str, Any]:
    cases = [row for row in numbers["rows"] if row["violation"] > 1]
    apart = [100 * (row["seen"] / row["audits"] - row["planned"]) for row in cases]
    mean_apart, most_apart = np.mean(np.abs(apart)), max(apart, key=abs)
    curves, first = numbers["curves"], numbers["curves"][0]
    promises, fewest = " | ".join(curve["promise"] for curve in curves), first["sizes"][-1]
    excess = [f"{100 * (violation - 1):.3g}%" for violation in first["violations"]]
    largest = excess[-1]
    sizes = zip(*(curve["sizes"] for curve in curves), strict=True)
    rows = [(words, *(f"{size:,}" for size in row)) for words, row in zip(excess, sizes, strict=True)]
    alarms = " and ".join(
        f"{row['seen'] / row['audits']:.1%} ({row['case'].partition(':')[0]})"
        for row in numbers["rows"]
        if row["violation"] == 1
    )
    note = "Runs of selection are included."
    if alarms:  # the quick form has none
        note += f" Audits of mechanisms that lose just what they promise report a violation in {alarms} of cases."
    return locals()


def draw(numbers: Numbers) -> Figure:
    rows = [row for row in numbers["rows"] if row["violation"] > 1]
    figure, (top, below) = page(4.4 + 0.17 * len(rows), 2, 1, heights=[2.5, 0.17 * len(rows) + 0.4])
    plot_plan([(curve["promise"], curve["violations"], curve["sizes"]) for curve in numbers["curves"]], top)
    top.set(xlabel="true loss beyond the promise (log scale)", ylabel="runs needed (log scale)")
    head(top, "(a) runs for power 0.8", own_keys(top), ncols=4, x=-0.2)
    _draw_differences(below, rows)
    return figure


def _draw_differences(ax: Axes, rows: list[dict[str, Any]]) -> None:
    ax.axvspan(-100 * WITHIN, 100 * WITHIN, color=GRAY, alpha=0.25, linewidth=0)  # the expectation
    ax.axvline(0, color=BLACK, linewidth=0.9)
    for place, row in enumerate(rows):
        error = 200 * math.sqrt(row["planned"] * (1 - row["planned"]) / row["audits"])
        apart = 100 * (row["seen"] / row["audits"] - row["planned"])
        ax.errorbar(apart, place, xerr=error, **STYLES[row["kind"]], linewidth=1)
        column(ax, place, f"{row['power']:g}", 40)
        column(ax, place, f"{row['size']:,}", 84)
    for words, points in (("power", 40), ("runs", 84)):
        column(ax, -1.2, words, points, style="italic")
    beside(ax, -1.2, "promise, and the true loss in units of it", x=-0.02, size=8, ha="right", style="italic")
    name_rows(ax, [row["case"] for row in rows], top=-1.8, size=8)
    handles: list[Any] = [bar_key(f"as expected: within {100 * WITHIN:g} points", GRAY, alpha=0.25)]
    handles += [line_key(kind, **look) for kind, look in STYLES.items()]
    head(ax, "(b) simulated power less planned power", handles, ncols=5, x=-0.4)
    ax.set_xlabel("percentage points (bars: 2 standard errors)")
