"""One release of many areas proves as much as many runs of one area, if the areas do not share the budget."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import optimize, sparse, special

from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from audit import Canaries, GaussianDP, NeighborPair, PureDP, measure_loss, measure_loss_one_run
from audit.bounds.limits import clopper_pearson_lower
from audit.bounds.one_run import one_run_least_mass
from audit.exact.roots import brentq
from audit.methods.method import guesses
from audit.results.plots import BLACK, BLUE, GRAY, ORANGE, PALE, PURPLE
from experiments.drawing import column, foot, head, name_rows, own_keys, page, promise
from experiments.experiment import DATA, Checks, Numbers, between, down, few_misses, most_misses, near, up
from experiments.flaxman.audit import paths_only

AREAS, PEOPLE, FANOUT, LEVELS = 100_000, 100, 46, 3  # 46**3 = 97,336 leaves
SHARE = 0.05  # of ADPC's areas for which a guess is made: rare errors have larger losses
SEEDS, FEW_SEEDS = 100, 20  # FEW_SEEDS: for runs of RDPC, which take seconds each
COLUMNS = {"one_run": 38, "repeated": 80}  # positions of written medians, in points right of the panel
CONFIDENCE = 0.95  # of each bound, low enough to count misses
# Limits of the median of one release / budget: smallest for 100 seeds, smallest for 10 seeds, largest. The smallest
# are at least 3 standard errors below the medians of GDPC, which vary for one person at a small budget.
LIMITS = {tuple(case): tuple(limits) for case, limits in DATA["one_run"]["limits"]}
REFERENCE = {("GDPC", 0.1, 1): (0.0898, 0.002), ("GDPC", 1.0, 1): (0.989, 0.004)}  # medians of an earlier simulation
KINDS = {"one_run": ("one release of all areas", BLUE, "o"), "repeated": ("as many runs of one area", PALE, "s")}
CASES = tuple(LIMITS)  # mechanism, budget, group size
# Normal noise: mu, and the smallest share of it that the median must prove: 4 standard errors less with 10 seeds.
NOISE = {0.5: 0.6, 1.0: 0.65, 2.0: 0.64}
CANARIES, SHARED, SURE = 10_000, 200, 0.9999  # of each run; runs with a shared coin; confidence under independence
COIN, ACCURACY, REST = 0.1, 0.89, 0.77  # with probability COIN every guess is right with ACCURACY, else mu is REST
OTHERS: dict[str, tuple[str, float, dict[str, Any]]] = {  # by kind: words, place below our median, and look
    "mass": ("Mahloujifar et al. 2024 (jax-privacy), same guesses", 0.25, {"marker": "D", "color": PURPLE}),
    "one": ("estimated limit of one threshold (medians)", 0.0, {"marker": "|", "color": GRAY, "markersize": 14}),
    "any": ("estimated limit of every valid method (medians)", 0.0, {"marker": "|", "color": BLACK, "markersize": 14}),
    "independent": (
        "independent canaries, no bound: refute a sound\nalgorithm {independent} of {runs} times, and ours {ours}",
        0.0,
        {"marker": "x", "color": ORANGE},
    ),
}


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit one release with each of 100 seeds (quick: 10), and many runs of one area 100 or 20 times (quick: once)."""
    tree = Hierarchy.regular(FANOUT, LEVELS)
    rows = []
    for root, (name, epsilon, people) in zip(np.random.SeedSequence(seed).spawn(len(CASES)), CASES, strict=True):
        counts = np.full(tree.n_leaves if name == "RDPC" else AREAS, PEOPLE)
        times = (10, 1) if quick else (SEEDS, FEW_SEEDS if name == "RDPC" else SEEDS)
        once, often = (part.spawn(number) for part, number in zip(root.spawn(2), times, strict=True))
        mechanism = RDPC(epsilon, tree) if name == "RDPC" else (GDPC if name == "GDPC" else ADPC)(epsilon)
        canaries, claim = Canaries(counts, people=people), mechanism.claim
        share = SHARE if name == "ADPC" else None
        repeated, pair = mechanism, NeighborPair.add_people(counts[:1], 0, people)
        if isinstance(mechanism, RDPC):  # the runs need only the path of the area and its siblings
            cut, near_path, (place,) = paths_only(mechanism.tree, counts, (0,))
            repeated, pair = RDPC(epsilon, cut), NeighborPair.add_people(near_path, place, people)
        row: dict[str, Any] = {"algorithm": name, "epsilon": epsilon, "people": people, "areas": counts.size}
        row["one_run"] = [
            measure_loss_one_run(
                mechanism, canaries, claim, share=share, confidence=CONFIDENCE, rng=rng
            ).measured.budget
            for rng in once
        ]
        options: dict[str, Any] = {"size": counts.size, "confidence": CONFIDENCE, "n_jobs": jobs}
        row["repeated"] = [measure_loss(repeated, pair, claim, rng=rng, **options).measured.budget for rng in often]
        rows.append(row)
    noise = [_noise(mu, 10 if quick else SEEDS, 200 if quick else 1000, seed) for mu in NOISE]
    return {"rows": rows, "noise": noise, "shared": _shared(20 if quick else SHARED)}


def _noise(mu: float, seeds: int, draws: int, seed: int) -> dict[str, Any]:
    """Return lower bounds of one run with normal noise, what others make of the same guesses, and limits."""
    row: dict[str, Any] = {"mu": mu, "ours": [], "mass": [], "independent": []}

    def normal(data: NDArray[np.int64], size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.round(data + rng.normal(0, 1 / mu, (size, data.size)), 6)

    for rng in np.random.SeedSequence(seed).spawn(seeds):
        result, every = _twice(normal, GaussianDP(mu), rng)
        right, made, _ = guesses(result.counts)

        def surplus(of: float, right: int = right, made: int = made) -> float:
            rarest = GaussianDP(of).rarest
            return 1 - one_run_least_mass(right, made, CANARIES, error=1 - CONFIDENCE, rarest=rarest)

        row["ours"].append(result.measured.budget)
        row["mass"].append(brentq(surplus, 1e-6, 2 * mu))
        low = float(clopper_pearson_lower(*guesses(every.counts)[:2], confidence=CONFIDENCE))
        row["independent"].append(2 * float(special.ndtri(low)))
    row["one"] = max(most_provable(mu, [at], draws) for at in mu / 2 + np.linspace(1.1, 2.3, 7))
    return row | {"any": most_provable(mu, np.linspace(0.05, mu / 2 + 4, 45), draws)}


def _twice(mechanism: Any, claim: GaussianDP, rng: Any) -> tuple[Any, Any]:
    """Return the audit of one run, and another of the same run whose rule guesses every canary."""
    canaries = Canaries([50] * CANARIES)
    ours = measure_loss_one_run(mechanism, canaries, claim, confidence=CONFIDENCE, rng=rng)
    return ours, measure_loss_one_run(mechanism, canaries, PureDP(1.0), share=1.0, rng=rng)


def most_provable(mu: float, thresholds: Any, draws: int) -> float:
    """Return an estimate of the largest mu that a valid test proves of normal noise in half of all runs.

    The test counts right and wrong guesses between thresholds. An algorithm that keeps mu0 may pick a law by a coin,
    and guess all canaries by this law, independently. A linear program finds coins of which a test that refutes mu0 in
    half of the runs of mu refutes most; at the limit it refutes with probability 0.05. It is no bound, as laws,
    epsilons and runs are samples.
    """
    rng, ends = np.random.default_rng(0), np.append(thresholds, np.inf)
    right, wrong = (-np.diff(special.ndtr(side - ends)) for side in (mu / 2, -mu / 2))
    share, odds = right + wrong, np.log(right / wrong)
    caps = mu * np.linspace(0.8, mu / 2 + 4.5, 25)
    laws = np.unique(
        [special.expit(np.minimum(f * odds, cap)) for f in np.linspace(0.5, 1, 21) for cap in caps], axis=0
    )
    epsilons = mu * np.linspace(0.05, mu / 2 + 6, 120)
    shown = np.array([np.maximum(law - np.exp(epsilons)[:, None] * (1 - law), 0) @ share for law in laws])

    def ratios(law: Any, size: int) -> Any:
        """Return log-ratios of all laws to that of normal noise in runs of a law."""
        counts = (rng.poisson(CANARIES * share * part, (size, share.size)) for part in (law, 1 - law))
        each = (np.log(laws * share / right).T, np.log((1 - laws) * share / wrong).T)
        return sum(count @ of for count, of in zip(counts, each, strict=True))

    first, fresh = ratios(right / share, draws), ratios(right / share, 5 * draws)

    def refuted(mu0: float) -> float:
        allowed = [GaussianDP(mu0).delta_at(epsilon) for epsilon in epsilons]
        rows = [[shown.T, None, None], [np.ones((1, len(laws))), None, None]]
        rows += [[-np.exp(np.minimum(first, 30)), np.ones((draws, 1)), -sparse.eye(draws)]]
        costs = np.concatenate([np.zeros(len(laws)), [-0.5], np.full(draws, 1 / draws)])
        limits = np.concatenate([allowed, [1.0], np.zeros(draws)])
        coins = optimize.linprog(costs, sparse.bmat(rows).tocsr(), limits).x[: len(laws)]
        used = np.flatnonzero(coins > 1e-7)
        middle = np.median(special.logsumexp(fresh[:, used], b=coins[used], axis=1))
        runs = (ratios(laws[at], draws)[:, used] for at in used)
        means = [np.mean(special.logsumexp(each, b=coins[used], axis=1) <= middle) for each in runs]
        return float(coins[used] @ means) - (1 - CONFIDENCE)

    return brentq(refuted, 0.5 * mu, mu, xtol=0.002 * mu)


def _shared(runs: int) -> dict[str, int]:
    """Return how often mu 1 is refuted of an algorithm that keeps it, whose secret bits share a coin."""

    def mechanism(data: NDArray[np.int64], size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        if rng.random() >= COIN:
            return np.round(data + rng.normal(0, 1 / REST, (size, data.size)), 6)
        return np.where((data > 50) ^ (rng.random((size, data.size)) > ACCURACY), 1000.0, -1000.0)

    refuted = {"runs": runs, "independent": 0, "ours": 0}
    for seed in range(runs):
        ours, every = _twice(mechanism, GaussianDP(1.0), seed)
        refuted["ours"] += ours.verdict == "violated"
        refuted["independent"] += bool(
            clopper_pearson_lower(*guesses(every.counts)[:2], confidence=SURE) > special.ndtr(0.5)
        )
    return refuted


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        once, often = (np.array(row[kind]) / row["epsilon"] for kind in KINDS)
        case, full = (row["algorithm"], row["epsilon"], row["people"]), once.size >= SEEDS
        where, median = f"{case[0]} at {case[1]:g}, {_people(case[2])}", float(np.median(once))
        low, quick_low, high = LIMITS[case]
        yield between(f"{where}: one release, median / budget", median, low if full else quick_low, high)
        for kind, bounds in (("one release", once), ("repeated", often)):
            yield few_misses(f"{where}, {kind}", int(np.sum(bounds > 1)), bounds.size, CONFIDENCE)
        if case in REFERENCE:
            target, within = REFERENCE[case]
            words = f"{where}: one release, median bound"
            yield near(words, median * case[1], target, within if full else 5 * within)
        if case[0] == "RDPC":
            yield between(f"{where}: repeated, median / budget", float(np.median(often)), 0.7, 1.0)
    for row in numbers["noise"]:
        mu, where = row["mu"], f"normal noise, mu {row['mu']:g}"
        ours, mass = (float(np.median(row[kind])) / mu for kind in ("ours", "mass"))
        yield between(f"{where}: one release, median / mu", ours, max(mass, NOISE[mu]), row["any"] / mu)
        yield between(f"{where}: limit of one threshold / mu", row["one"] / mu, 0.72, row["any"] / mu)
        yield few_misses(where, int(np.sum(np.array(row["ours"]) > mu)), len(row["ours"]), CONFIDENCE)
    shared = numbers["shared"]
    yield few_misses("a shared coin", shared["ours"], shared["runs"], CONFIDENCE)
    most = most_misses(shared["runs"], SURE)
    yield between("a shared coin: refuted as if canaries were independent", shared["independent"], most + 1, np.inf)


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"


def facts(numbers: Numbers) -> dict[str, Any]:
    medians = {
        (row["algorithm"], f"{row['epsilon']:g}", str(row["people"])): [down(np.median(row[kind])) for kind in KINDS]
        for row in numbers["rows"]
    }
    alone, group, leaves = (
        medians[case][0] for case in (("GDPC", "1", "1"), ("GDPC", "0.1", "20"), ("RDPC", "0.1", "80"))
    )
    noise = {
        kind: ", ".join(rounded(float(np.median(row[kind])) / row["mu"], 2) for row in numbers["noise"])
        for kind, rounded in {"ours": down, "mass": down, "one": up, "any": up, "independent": down}.items()
    }
    shared = numbers["shared"]
    refuted = {"runs": shared["runs"], "independent_refuted": shared["independent"], "ours_refuted": shared["ours"]}
    rows = [(*case, *own) for case, own in medians.items()]
    return {"alone": alone, "group": group, "leaves": leaves, "rows": rows, **noise, **refuted}


def draw(numbers: Numbers) -> Figure:
    rows, noise = numbers["rows"], numbers["noise"]
    figure, (ax, below) = page(2.7 + 0.4 * (len(rows) + len(noise)), 2, heights=(len(rows), len(noise) + 0.4))
    promise(ax, label="promise")
    for place, row in enumerate(rows):
        for shift, (kind, (words, color, marker)) in zip((-0.16, 0.16), KINDS.items(), strict=True):
            values, label = np.array(row[kind]) / row["epsilon"], f"{words}: median, 5 to 95%" if place == 0 else None
            _spread(ax, place + shift, values, label, color=color, marker=marker)
            column(ax, place, down(np.median(values), 3), COLUMNS[kind])
        if row["algorithm"] == "RDPC":
            label = "RDPC's share of the leaf level"
            shared: dict[str, Any] = {"color": GRAY, "linewidth": 1.4, "linestyle": ":", "label": label}
            ax.plot([1 / (LEVELS + 1)] * 2, [place - 0.42, place + 0.42], **shared)
    name_rows(ax, [f"{row['algorithm']}, $\\epsilon$ = {row['epsilon']:g}, {_people(row['people'])}" for row in rows])
    promise(below)
    for place, row in enumerate(noise):
        ours = np.array(row["ours"]) / row["mu"]
        _spread(below, place, ours, None, color=BLUE, marker="o")
        column(below, place, down(np.median(ours), 3), COLUMNS["one_run"])
        for kind, (words, lower, look) in OTHERS.items():
            label = words.format(**numbers["shared"]) if place == 0 else None
            below.plot(np.median(row[kind]) / row["mu"], place + lower, linestyle="none", **look, label=label)
    name_rows(below, [f"normal noise, $\\mu$ = {row['mu']:g}" for row in noise])
    ax.set(xlim=(0, 1.05), xticks=[0, 0.25, 0.5, 0.75, 1])
    below.set(xlim=(0.5, 1.025), xticks=[0.5, 0.6, 0.7, 0.8, 0.9, 1])
    head(below, f"one release of {CANARIES:,} areas (the axis begins at 0.5)")
    below.set_xlabel("lower bound for one person added or removed / promise (95% confidence)")
    for points, words in zip(COLUMNS.values(), ("one\nrelease", "many\nruns"), strict=True):
        column(ax, -0.6, words, points, va="bottom")
    foot(figure, own_keys(ax) + own_keys(below), ncols=2)
    return figure


def _spread(ax: Axes, at: float, values: NDArray[np.float64], label: str | None, *, color: str, marker: str) -> None:
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    ax.plot([low, high], [at] * 2, color=color, linewidth=2.5, alpha=0.5, solid_capstyle="butt")
    ax.plot(middle, at, marker, color=color, markersize=5, label=label)
