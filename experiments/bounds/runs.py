"""The numbers of runs that prove a loss or detect a violation, and a comparison of planned and simulated power."""

from __future__ import annotations

import math
from collections.abc import Callable
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
from audit.bounds.game import guessing_game_lower
from audit.bounds.rectangle import two_sample_lower
from audit.claims import Claim, parse_claim
from audit.planning import Design
from audit.results.plots import BLACK, BLUE, GRAY, PALE
from experiments.bounds.early import DRAWN, FACTORS, check_early, draw_early, needed_runs, stopped_early
from experiments.bounds.laws import coin, normal
from experiments.bounds.sequential import check_printed, fewer_than_printed, on_printed_cases
from experiments.drawing import bar_key, column, group_rows, head, line_key, name_rows, own_keys, page, styles
from experiments.experiment import Check, Checks, Numbers, between, load_data, most_misses, near

Rng = np.random.Generator

COUNT, NOISE = 120, 10.0  # people in a count; standard deviation of its normal noise
CONFIDENCE_HERE = 0.95
PROVED = 0.9  # share of the loss to prove, in the comparison with theory
EPSILONS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
CLAIMED = 0.1  # epsilon, in the answer
WITHIN = 0.03  # tolerance of the simulated power around the planned power
PLANNED = (1.05, 1.1, 1.2, 1.5, 2.0)  # violations
CURVES = ("pure:1", "approx:0.3,1e-6", "gaussian:1", "zcdp:0.5")
LAW = 0.5  # up to this excess, runs are about proportional to 1 / excess squared
BATCH = 25  # audits in a task of a worker
STYLES = styles(("pure", "approx", "gaussian", "zcdp"), linestyle="none")
DESIGNS = {"coins": "", "outputs": ", given outputs", "one_run": ", one run"}


@dataclass(frozen=True)
class Case:
    """A promise, its violation, and the design of the audit."""

    promise: str  # as `parse_claim` reads it
    violation: float  # true loss / promise; 1 (no violation) uses the runs for 1.2
    power: float
    audits: int = 2000  # simulated audits, if not quick
    distance: int = 1  # like `share`, an argument of `plan_size`
    share: float = 1.0
    design: Design = "coins"

    @property
    def claim(self) -> Claim:
        return parse_claim(self.promise)

    @property
    def options(self) -> dict[str, Any]:
        selection = 0.3 if self.share == 1 else 0.0
        audit = {"confidence": CONFIDENCE_HERE, "distance": self.distance, "selection": selection}
        return {**audit, "share": self.share, "design": self.design}

    @property
    def words(self) -> str:
        claim = self.claim
        numbers = f"{claim.parameter} {claim.budget:g}"
        numbers += f", delta {claim.delta:g}" if isinstance(claim, ApproxDP) else ""
        more = f", {self.distance} people" if self.distance > 1 else ""
        more += f", in {self.share:.0%} of outputs" if self.share < 1 else ""
        return f"{numbers}{more}{DESIGNS[self.design]}: {self.violation:g} x"


CASES = {name: tuple(Case(**row) for row in rows) for name, rows in load_data("bounds/planning.toml").items()}


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Plan and simulate audits of each case; prove losses; stop early (quick: fewer cases and audits)."""
    root, parallel = np.random.SeedSequence(seed), Parallel(n_jobs=jobs)
    needed, early = (np.random.SeedSequence(seed, spawn_key=(place,)) for place in (2, 3))
    rng = np.random.default_rng(needed)
    violations, curves = [1.2, 1.5] if quick else list(PLANNED), []
    for promise in CURVES[:3] if quick else CURVES:
        sizes = [plan_size(parse_claim(promise), violation=violation) for violation in violations]
        curves.append({"promise": promise, "violations": violations, "sizes": sizes})
    return {
        "needed": [
            _needed(epsilon, people, 200 if quick else 4000, rng)
            for epsilon in EPSILONS
            for people in sorted({1, math.ceil(2 / epsilon)})
        ],
        "early": stopped_early(FACTORS[::4] if quick else FACTORS, 2 if quick else 20, early, parallel),
        "published": on_printed_cases(2 if quick else 20, np.random.SeedSequence(seed, spawn_key=(4,)), parallel),
        "rows": _simulated(CASES["quick"] if quick else CASES["full"] + CASES["kept"], root, parallel),
        "curves": curves,
        "quick": quick,
    }


def _needed(epsilon: float, people: int, audits: int, rng: Rng) -> dict[str, Any]:
    """Return for both bounds the runs with which half of the audits of a registered event prove 0.9 of epsilon."""
    # Event: a geometric count is at least the larger true count. The game also guesses by counts up to the smaller one.
    likely = float(special.expit(epsilon))
    rare = likely * math.exp(-people * epsilon)
    guessed, right, target = likely + rare, likely / (likely + rare), PROVED * people * epsilon

    def game(guesses: Any, correct: Any) -> Any:
        return guessing_game_lower(correct, guesses, confidence=CONFIDENCE_HERE) >= target

    def limits(runs: int, y: Any, x: Any) -> Any:
        return two_sample_lower(y, runs, x, runs, confidence=CONFIDENCE_HERE) >= target

    theory = _theory(people * epsilon) / guessed
    played = _fewest(lambda runs: bool(game(round(runs * guessed), round(runs * guessed * right))), round(theory))
    each = _fewest(lambda runs: bool(limits(runs, round(runs * likely), round(runs * rare))), round(1.5 * theory))
    guesses = rng.binomial(played, guessed, audits)
    reached = float(game(guesses, rng.binomial(guesses, right)).mean())
    y, x = rng.binomial(each, likely, audits), rng.binomial(each, rare, audits)
    return {
        "epsilon": epsilon,
        "people": people,
        "theory": theory,
        "game": {"runs": played, "reached": reached},
        "limits": {"runs": 2 * each, "reached": float(limits(each, y, x).mean())},
    }


def _theory(loss: float) -> float:
    """Return the asymptotic number of guesses of a coin with this loss that prove 0.9 of it half of the time."""
    p, q = special.expit(loss), special.expit(PROVED * loss)
    divergence = special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)
    return float(special.ndtri(CONFIDENCE_HERE)) ** 2 / (2 * float(divergence))


def _fewest(enough: Callable[[int], bool], guess: int) -> int:
    """Return the smallest sufficient number of runs, starting from a guess, with a relative precision of 1/1,000."""
    low, high = 1, guess
    while not enough(high):
        low, high = high, 2 * high
    while high - low > max(1, high // 2000):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _simulated(cases: tuple[Case, ...], root: np.random.SeedSequence, parallel: Parallel) -> list[dict[str, Any]]:
    rows = []
    for case, stream in zip(cases, root.spawn(len(cases)), strict=True):
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
    return rows


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
    yield from _check_proved(numbers)
    yield from check_early(numbers)
    yield from check_printed(numbers)
    for row in numbers["rows"]:
        share = row["seen"] / row["audits"]
        if row["violation"] == 1:
            most = most_misses(row["audits"], CONFIDENCE_HERE)
            yield between(f"{row['case']}: violations reported, of {row['audits']}", row["seen"], 0, most)
            continue
        planned, words = row["planned"], f"{row['case']}, power {row['power']:g}"
        # With few audits allow 4 standard errors, which chance exceeds with probability below 1e-4.
        chance = 4 * math.sqrt(planned * (1 - planned) / row["audits"]) if numbers["quick"] else 0.0
        limit = WITHIN + chance
        text = f"{words}: detected in {share:.1%} of {row['audits']:,} audits, planned {planned:.1%} +- "
        yield Check(f"{text}{100 * limit:.2g}", abs(share - planned) <= limit)
        excess = (row["smallest"] - 1) / (row["violation"] - 1)
        # In one run, the power of tests at tiny deltas jumps from 0 to nearly 1 at some number of canaries.
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


def _check_proved(numbers: Numbers) -> Checks:
    needed = {(row["epsilon"], row["people"] > 1): row for row in numbers["needed"]}
    for epsilon, bound, target in ((1.0, "game", 1399), (0.1, "game", 109_115), (1.0, "limits", 3944)):
        runs = needed[epsilon, False][bound]["runs"]
        yield near(f"runs to prove {PROVED} epsilon, {bound}, epsilon {epsilon}", runs, target, 0.02 * target)
    for (epsilon, group), row in needed.items():
        where = f"epsilon {epsilon:g}, {'group' if group else 'one person'}"
        yield between(f"{where}: runs of the game / theory", row["game"]["runs"] / row["theory"], 0.98, 1.25)
        for bound in ("game", "limits"):  # about half, as counts are discrete; error probability below 1e-4
            yield between(f"{where}, {bound}: audits that prove it", row[bound]["reached"], 0.35, 0.7)


def facts(numbers: Numbers) -> dict[str, Any]:
    needed = {(row["epsilon"], row["people"] > 1): row for row in numbers["needed"]}
    one, group = needed[CLAIMED, False], needed[CLAIMED, True]
    early = {row["law"]: needed_runs(row, 0.5) for row in numbers["early"] if row["factor"] == 2}
    fewer, printed = fewer_than_printed(numbers)
    cases = [row for row in numbers["rows"] if row["violation"] > 1]
    apart = [100 * (row["seen"] / row["audits"] - row["planned"]) for row in cases]
    mean_apart, most_apart = np.mean(np.abs(apart)), max(apart, key=abs)
    curves = numbers["curves"]
    promises = " | ".join(curve["promise"] for curve in curves)
    excess = [f"{100 * (violation - 1):.3g}%" for violation in curves[0]["violations"]]
    sizes = zip(*(curve["sizes"] for curve in curves), strict=True)
    rows = [(words, *(f"{size:,}" for size in row)) for words, row in zip(excess, sizes, strict=True)]
    alarms = " and ".join(
        f"{row['seen'] / row['audits']:.1%} ({row['case'].partition(':')[0]})"
        for row in numbers["rows"]
        if row["violation"] == 1
    )
    # There are none in the quick version.
    kept = f"Audits of what keeps its promise report a violation in {alarms} of cases." if alarms else ""
    return locals()


def draw(numbers: Numbers) -> Figure:
    rows = [row for row in numbers["rows"] if row["violation"] > 1]
    early = [row for row in numbers["early"] if float(row["factor"]) > DRAWN]
    published = numbers["published"]
    heights = [2.6, 0.16 * (len(early) + len(published)) + 0.7, 0.16 * len(rows) + 0.4]
    figure, (top, middle, below) = page(3.1 + sum(heights), 3, 1, heights=heights)
    _draw_needed(top, numbers["needed"])
    draw_early(middle, early, published)
    _draw_differences(below, rows)
    return figure


def _draw_needed(ax: Axes, rows: list[dict[str, Any]]) -> None:
    for group, who, face in ((False, "one person", None), (True, "a group of 2 / $\\epsilon$", "white")):
        own = [row for row in rows if (row["people"] > 1) == group]
        at = [row["epsilon"] for row in own]
        ax.plot(at, [row["theory"] for row in own], color=BLACK, linewidth=1.0)
        for bound, color, marker, words in (
            ("limits", PALE, "s", "two Clopper-Pearson limits"),
            ("game", BLUE, "o", "guessing game"),
        ):
            look: dict[str, Any] = {"markersize": 5, "markerfacecolor": face or color, "label": f"{who}: {words}"}
            ax.plot(at, [row[bound]["runs"] for row in own], marker, color=color, **look)
    ax.set(xscale="log", yscale="log", ylim=(300, 1.2e7), ylabel="runs (log scale)")
    ax.set_xticks([0.025, 0.1, 0.25, 1, 4], ["0.025", "0.1", "0.25", "1", "4"])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("$\\epsilon$ of a geometric count (log scale)")
    handles = [*own_keys(ax), line_key("theory of the game, z² / (2 KL)", color=BLACK, linewidth=1.0)]
    head(ax, f"(a) runs until half of the audits prove {PROVED} $\\epsilon$", handles, ncols=2, x=-0.2)


def _draw_differences(ax: Axes, rows: list[dict[str, Any]]) -> None:
    ax.axvspan(-100 * WITHIN, 100 * WITHIN, color=GRAY, alpha=0.25, linewidth=0)  # the expected range
    ax.axvline(0, color=BLACK, linewidth=0.9)
    for place, row in enumerate(rows):
        error = 200 * math.sqrt(row["planned"] * (1 - row["planned"]) / row["audits"])
        apart = 100 * (row["seen"] / row["audits"] - row["planned"])
        ax.errorbar(apart, place, xerr=error, **STYLES[row["kind"]], linewidth=1)
        column(ax, place, f"{row['power']:g}", 40)
        column(ax, place, f"{row['size']:,}", 84)
    for words, points in (("power", 40), ("runs", 84)):
        column(ax, -1.2, words, points, style="italic")
    group_rows(ax, -1.2, "promise: true loss / promise", style="italic")
    name_rows(ax, [row["case"] for row in rows], top=-1.8)
    handles: list[Any] = [bar_key(f"as expected: within {100 * WITHIN:g} points", GRAY, alpha=0.25)]
    handles += [line_key(kind, **look) for kind, look in STYLES.items()]
    head(ax, "(c) simulated power less planned power", handles, ncols=5, x=-0.4)
    ax.set_xlabel("percentage points (bars: 2 standard errors)")
