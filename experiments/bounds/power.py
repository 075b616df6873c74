"""How many runs it takes to prove most of a loss, to detect a violation, and to stop early."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy import special

from algorithms.flaxman import GDPC
from algorithms.flaxman.gaussian import GaussianCounts
from audit import ZCDP, ApproxDP, Event, GaussianDP, Mechanism, NeighborPair, PureDP, measure_loss
from audit.bounds.game import guessing_game_lower
from audit.bounds.rectangle import two_sample_lower
from audit.claims import Claim
from audit.methods import Game
from audit.results.plots import BLACK, BLUE, GRAY, PALE
from experiments.bounds.worst_laws import normal_counts
from experiments.drawing import foot, head, line_key, own_keys, page, spread, styles
from experiments.experiment import Check, Checks, Numbers, between, most_misses, near

COUNT = 120
CONFIDENCE_HERE = 0.95
SIZES = (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
PROVED = 0.9  # of the loss, in the comparison with theory
EPSILONS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
CLAIMED, VIOLATIONS, MOST = 0.1, (1.0, 1.1, 1.5, 2.0, 4.0), 1_000_000
LEAST = {"pure": 0.93, "approximate": 0.92, "Gaussian": 0.87, "zero-concentrated": 0.7}  # proved by a million runs
LEAST_OF_GROUP = 0.95
CHECKED = {True: 100_000, False: 10_000}  # runs at which detectable losses are tried, for one person and for a group


class Subject(NamedTuple):
    """A family of mechanisms whose loss is known, with noise of about ten people."""

    loss: Claim
    group: int
    make: Callable[[float], Mechanism]


def leaky_counts(epsilon: float) -> Mechanism:
    """Return geometric counts that reveal the true one, marked, with probability 1e-5."""
    noisy = GDPC(epsilon)

    def mechanism(counts: ArrayLike, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return np.where(rng.random((size, 1)) < 1e-5, np.asarray(counts) + 10**6, noisy(counts, size, rng))

    return mechanism


SUBJECTS = {
    "pure": Subject(PureDP(0.1), 20, GDPC),
    "approximate": Subject(ApproxDP(0.1, 1e-5), 20, leaky_counts),
    "Gaussian": Subject(GaussianDP(0.1), 15, normal_counts),
    "zero-concentrated": Subject(ZCDP(0.005), 15, GaussianCounts),
}


def run(
    *, quick: bool, seed: int, jobs: int, sizes: Sequence[int] = SIZES, repetitions: int = 40, most: int = MOST
) -> Numbers:
    """Make 40 audits of up to a million runs for each promise (quick: 2 of up to 10,000), and others beside them."""
    curves_seed, checked_seed, needed_seed, early_seed = np.random.SeedSequence(seed).spawn(4)
    rng = np.random.default_rng(needed_seed)
    pairs = [(name, people) for name, subject in SUBJECTS.items() for people in (1, subject.group)]
    parallel = Parallel(n_jobs=jobs)
    sizes, repeats = (sizes[:3], min(2, repetitions)) if quick else (sizes, repetitions)
    streams = iter(curves_seed.spawn(len(pairs) * len(sizes) * repeats))
    tasks = [(*pair, size, 1.0, next(streams)) for pair in pairs for size in sizes for _ in range(repeats)]
    audits = iter(parallel(delayed(_audit)(*task) for task in tasks))
    curves = []
    for name, people in pairs:
        results = np.array([[next(audits)[:2] for _ in range(repeats)] for _ in sizes])
        curve = {"promise": name, "people": people, "sizes": list(sizes)}
        curve["lower_bound"] = np.quantile(results[:, :, 0], (0.05, 0.5, 0.95), axis=1).tolist()
        curves.append({**curve, "detectable": np.median(results[:, :, 1], axis=1).tolist()})
    most = most // 50 if quick else most
    return {
        "curves": curves,
        "repeats": repeats,
        "checked": _checked(curves, 5 if quick else 200, checked_seed, parallel),
        "needed": [
            _needed(epsilon, people, 200 if quick else 4000, rng)
            for epsilon in EPSILONS
            for people in sorted({1, math.ceil(2 / epsilon)})
        ],
        "early": _early(2 if quick else 30, most, early_seed, parallel),
        "most": most,
    }


def _audit(
    name: str, people: int, size: int, factor: float, rng: np.random.SeedSequence, *, known: bool = True
) -> tuple[float, float, bool]:
    """Audit `factor` times the promise; return bound and detectable loss / promised, and whether it is violated."""
    subject, claimed = SUBJECTS[name], SUBJECTS[name].loss.budget
    pair, mechanism = NeighborPair.add_people([COUNT], 0, people), subject.make(factor * claimed)
    if not known:
        mechanism = partial(mechanism)  # which has no likelihood
    result = measure_loss(mechanism, pair, subject.loss, size=size, confidence=CONFIDENCE_HERE, rng=rng)
    return result.measured.budget / claimed, result.detectable / claimed, result.verdict == "violated"


def _checked(
    curves: list[dict[str, Any]], audits: int, root: np.random.SeedSequence, parallel: Parallel
) -> list[dict[str, Any]]:
    """Audit mechanisms that lose just the minimum detectable loss, and count how often audits report a violation."""
    rows = []
    for curve, stream in zip(curves, root.spawn(len(curves)), strict=True):
        name, people = curve["promise"], curve["people"]
        size = max((s for s in curve["sizes"] if s <= CHECKED[people == 1]), default=curve["sizes"][0])
        factor = curve["detectable"][curve["sizes"].index(size)]
        offers = hasattr(SUBJECTS[name].make(1.0), "log_likelihood")
        for known, more in zip((True, False) if name == "pure" else (offers,), stream.spawn(2), strict=False):
            runs = parallel(delayed(_audit)(name, people, size, factor, rng, known=known) for rng in more.spawn(audits))
            row = {"promise": name, "people": people, "told": known, "size": size, "factor": factor, "audits": audits}
            rows.append({**row, "seen": sum(hit for *_, hit in runs)})
    return rows


def _needed(epsilon: float, people: int, audits: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return the runs from which on half of all audits of a registered event prove 0.9 of epsilon, by either bound.

    The event is that a geometric count is at least the higher of the two true ones; the game also guesses the other
    database where it is at most the lower one.
    """
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
    """Return the guesses by which a coin of this loss refutes nine tenths of it, half of the time, as runs grow."""
    p, q = special.expit(loss), special.expit(PROVED * loss)
    divergence = special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)
    return float(special.ndtri(CONFIDENCE_HERE)) ** 2 / (2 * float(divergence))


def _fewest(enough: Callable[[int], bool], guess: int) -> int:
    """Return a number from which on runs are enough, near a guess, to 1 in 1,000."""
    low, high = 1, guess
    while not enough(high):
        low, high = high, 2 * high
    while high - low > max(1, high // 2000):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _early(audits: int, most: int, root: np.random.SeedSequence, parallel: Parallel) -> list[dict[str, Any]]:
    """Return the runs that audits make which may stop early, and those of a fixed number planned for the violation."""

    def detected(factor: float, runs: int) -> bool:
        counts = {"x": {"runs": 0, "guessed_x": 0, "guessed_y": 0}}
        counts["y"] = {"runs": runs, "guessed_x": 0, "guessed_y": runs}
        return Game(PureDP(CLAIMED), 1, CONFIDENCE_HERE).detectable(counts, {}) <= factor * CLAIMED

    rows = []
    for factor, stream in zip(VIOLATIONS, root.spawn(len(VIOLATIONS)), strict=True):
        results = parallel(delayed(_stopped)(factor, most, rng) for rng in stream.spawn(audits))
        runs, violated = zip(*results, strict=True)
        planned = None if factor == 1 else _fewest(partial(detected, factor), 100)
        rows.append({"factor": factor, "runs": list(runs), "violated": sum(violated), "planned": planned})
    return rows


def _stopped(factor: float, most: int, rng: np.random.SeedSequence) -> tuple[int, bool]:
    """Return the runs of an audit that may stop early, and whether it reports a violation."""
    pair, event = NeighborPair.add_people([COUNT], 0), Event.at_least(0, COUNT + 1, low=COUNT)
    options: dict[str, Any] = {"size": most, "confidence": CONFIDENCE_HERE, "rng": rng, "stop": "early"}
    result = measure_loss(GDPC(factor * CLAIMED), pair, PureDP(CLAIMED), event=event, **options)
    return result.size, result.verdict == "violated"


def runs_until(curve: dict[str, Any], factor: float) -> float:
    """Return the runs from which on a violation by a factor is detectable, read between sizes; 0 or infinity beyond."""
    excess, log_runs = -np.log(curve["detectable"]), np.log(curve["sizes"])
    return float(np.exp(np.interp(-math.log(factor), excess, log_runs, left=-math.inf, right=math.inf)))


def check(numbers: Numbers) -> Checks:
    full = numbers["most"] == MOST
    needed = {(row["epsilon"], row["people"] > 1): row for row in numbers["needed"]}
    for epsilon, bound, target in ((1.0, "game", 1399), (0.1, "game", 109_115), (1.0, "limits", 3944)):
        runs = needed[epsilon, False][bound]["runs"]
        yield near(f"runs to prove {PROVED} epsilon, {bound}, epsilon {epsilon}", runs, target, 0.02 * target)
    for (epsilon, group), row in needed.items():
        where = f"epsilon {epsilon:g}, {'group' if group else 'one person'}"
        yield between(f"{where}: runs of the game / theory", row["game"]["runs"] / row["theory"], 0.98, 1.25)
        for bound in ("game", "limits"):  # half, give or take the steps of whole counts: false alarm below 1e-4
            yield between(f"{where}, {bound}: audits that prove it", row[bound]["reached"], 0.35, 0.7)
    for curve in numbers["curves"]:
        where = f"{curve['promise']}, people {curve['people']}"
        median = curve["lower_bound"][1]
        least = LEAST_OF_GROUP if curve["people"] > 1 else LEAST[curve["promise"]]
        yield between(f"{where}: lower bound from most runs / true", median[-1], least if full else 0.0, 1.0)
        if full:
            steps = float(np.diff(median).min())
            yield Check(f"{where}: smallest gain by more runs {steps:.2g}, expected above -0.02", steps > -0.02)
    for row in numbers["checked"]:
        if full and row["told"] and row["promise"] == "pure":  # elsewhere the event, or its bound, is not the best
            where = f"{row['promise']}, people {row['people']}, loss {row['factor']:.3g} of the promise"
            share = row["seen"] / row["audits"]
            yield between(f"{where}: violations reported", share, 0.69, 1.0)  # of 0.8: false alarm 1e-4
    medians = [float(np.median(row["runs"])) for row in numbers["early"]]
    yield Check("the worse the violation, the sooner an audit stops", medians == sorted(medians, reverse=True))
    for row in numbers["early"]:
        audits, where = len(row["runs"]), f"stopped early, {row['factor']:g} times the promise: violations"
        if row["factor"] == 1:
            yield between(where, row["violated"], 0, most_misses(audits, CONFIDENCE_HERE))
        elif row["factor"] >= 1.5 and full:
            yield between(where, row["violated"], audits, audits)


def facts(numbers: Numbers) -> dict[str, Any]:
    needed = {(row["epsilon"], row["people"] > 1): row for row in numbers["needed"]}
    one, group, unit = needed[CLAIMED, False], needed[CLAIMED, True], needed[1.0, False]
    alone, many = (_rounded(runs_until(curve, 1.1), curve) for curve in numbers["curves"][:2])
    rows = [
        (curve["promise"], str(curve["people"]), *(_rounded(runs_until(curve, factor), curve) for factor in (1.1, 2.0)))
        for curve in numbers["curves"]
    ]
    lowest = min(row["seen"] / row["audits"] for row in numbers["checked"])
    double = next(row for row in numbers["early"] if row["factor"] == 2)
    return locals()


def _rounded(runs: float, curve: dict[str, Any]) -> str:
    least, most = curve["sizes"][0], curve["sizes"][-1]
    if least <= runs <= most:
        return f"{float(f'{runs:.2g}'):,.0f}"
    return f"under {least:,}" if runs < least else f"over {most:,}"


def draw(numbers: Numbers) -> Figure:
    figure, axes = page(7.0, 2, 2)
    proved, detected, needed = spread(axes)
    looks = styles(SUBJECTS, linewidth=1.3)
    alone = [curve for curve in numbers["curves"] if curve["people"] == 1]
    for curve, shift in zip(alone, np.geomspace(0.88, 1.14, len(alone)), strict=True):
        sizes, (low, median, high) = shift * np.array(curve["sizes"]), np.array(curve["lower_bound"])
        proved.errorbar(sizes, median, [median - low, high - median], **looks[curve["promise"]], elinewidth=0.8)
        detected.plot(curve["sizes"], np.array(curve["detectable"]) - 1, **looks[curve["promise"]])
    proved.axhline(1, color=BLACK, linewidth=0.8, zorder=0)
    proved.set(ylim=(0, 1.2), ylabel="lower bound / true loss", title="(a) one person: lower bounds")
    detected.set(yscale="log", ylim=(0.04, 120), title="(b) one person: violations")
    detected.set_yticks([0.1, 1, 10, 100], ["10%", "100%", "1000%", "10000%"])
    detected.set_ylabel("minimum detectable loss\nbeyond the promise (log scale)")
    detected.grid(True, which="major", color=GRAY, alpha=0.25, linewidth=0.6)
    for ax in (proved, detected):
        ax.set(xscale="log", xlabel="runs, selection included (log scale)")
    _draw_needed(needed, numbers["needed"])
    handles: list[Any] = [line_key(name, **look) for name, look in looks.items()]
    foot(figure, handles, words="(a, b) each kind of promise; in (a) lines from 5 to 95% of audits, marks at medians")
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
    handles = [*own_keys(ax), line_key("theory of the game, $z^2$ / 2 KL", color=BLACK, linewidth=1.0)]
    head(ax, f"(c) runs until half of the audits prove {PROVED} $\\epsilon$", handles, ncols=2)
