"""Every bound, a thousand times over, on laws that lose exactly what is promised: how often it accuses them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats

from algorithms.flaxman import GDPC
from algorithms.flaxman.gaussian import GaussianCounts
from algorithms.noise import DiscreteGaussian, Laplace, TwoTailedGeometric
from audit.bounds.anytime import anytime_game_lower, look_confidence
from audit.bounds.discrete_gaussian import discrete_gaussian_lower
from audit.bounds.game import approx_game_lower, guessing_game_lower
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.one_run import one_run_p_value
from audit.bounds.rectangle import delta_lower, score_lower, two_sample_lower
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.claims import ZCDP, ApproxDP, Claim, GaussianDP, PureDP
from audit.exact import loss_distribution
from audit.loss import measure_loss, measure_loss_from_outputs
from audit.mechanism import Mechanism
from audit.neighbors import NeighborPair
from audit.one_run import Canaries, measure_loss_one_run
from audit.results.plots import BLACK, BLUE, GRAY, ORANGE, new_figure
from experiments.experiment import Check

QUESTION = "How often does each bound accuse a mechanism that loses exactly what it promises?"
EXPECTATION = (
    "At most as often as its confidence allows: of 1,000 audits at most 77 miss at 95% and 248 at 80%, limits that a "
    "valid bound exceeds once in 10,000 such rows. The classical mistakes exceed them."
)

Floats = NDArray[np.float64]
Rng = np.random.Generator
Bounds = Callable[[float], Floats]  # from a confidence to bound / promise of each audit, on counts drawn before
Draw = Callable[[float, int, Rng], Bounds]  # from what the law loses / promised, and how many audits

FALSE_ALARM = 1e-4
LEVELS = (0.95, 0.8)
NEAR = (1.0, 0.95)  # losses of the law / promised
LOOKS = np.unique(np.geomspace(20, 20_000, 50).astype(int))
FAR = 10**6  # beyond all noise
MISTAKES, WHOLE = "Mistakes, on purpose", "Whole audits, selection included"


@dataclass(frozen=True)
class Case:
    """A bound, and a law that is as hard on it as the promise allows."""

    group: str
    words: str
    draw: Draw
    audits: int = 1000


def worst_law(epsilon: float, delta: float, guessed: float, distance: int) -> Floats:
    """Return the chances of a right guess, a wrong one and none, where a promise holds with equality."""
    pair = ApproxDP(epsilon, delta).group(distance)
    wrong = (guessed - pair.delta) / (1 + math.exp(pair.epsilon))
    return np.array([guessed - wrong, wrong, 1 - guessed])


def game(epsilon: float, runs: int, *, delta: float = 0.0, guessed: float = 1.0, distance: int = 1) -> Draw:
    """Play the guessing game."""

    def draw(share: float, audits: int, rng: Rng) -> Bounds:
        right, wrong, _ = rng.multinomial(runs, worst_law(share * epsilon, delta, guessed, distance), audits).T

        def bounds(confidence: float) -> Floats:
            if delta == 0:
                return guessing_game_lower(right, right + wrong, confidence=confidence) / distance / epsilon
            lower = partial(approx_game_lower, runs=runs, delta=delta, confidence=confidence, distance=distance)
            return np.array([lower(int(v), int(v + w)) for v, w in zip(right, wrong, strict=True)]) / epsilon

        return bounds

    return draw


def looks(epsilon: float, bound: str, *, delta: float = 0.0) -> Draw:
    """Play the game and bound the loss at every look; the largest bound counts."""

    def draw(share: float, audits: int, rng: Rng) -> Bounds:
        law = worst_law(share * epsilon, delta, 1.0, 1)
        steps = [rng.multinomial(step, law, audits) for step in np.diff(LOOKS, prepend=0)]
        right, wrong, _ = np.stack(steps, axis=1).cumsum(axis=1).transpose(2, 0, 1)

        def anytime(audit: int, look: int, confidence: float) -> float:
            seen = int(right[audit, look]), int(wrong[audit, look]), int(LOOKS[look])
            return anytime_game_lower(*seen, confidence=confidence, delta=delta)

        def bounds(confidence: float) -> Floats:
            if bound == "shared":
                each = [
                    guessing_game_lower(v, v + w, confidence=look_confidence(look, confidence))
                    for look, (v, w) in enumerate(zip(right.T, wrong.T, strict=True), start=1)
                ]
                return np.asarray(np.max(each, axis=0) / epsilon)
            once = guessing_game_lower(right, right + wrong, confidence=confidence)
            if bound == "one look":
                return np.asarray(once.max(axis=1) / epsilon)
            # A bound for all looks is never above that for one, so that the other looks cannot miss.
            largest = [anytime(audit, -1, confidence) for audit in range(audits)]
            for audit, look in np.argwhere(once > epsilon).tolist():
                if largest[audit] <= epsilon:
                    largest[audit] = max(largest[audit], anytime(audit, look, confidence))
            return np.array(largest) / epsilon

        return bounds

    return draw


def event(bound: Callable[..., Any], law: Callable[[float], tuple[float, float]], runs: int, promise: float) -> Draw:
    """Count one event in fixed numbers of runs; `law` takes a loss to the event's chances on `y` and on `x`."""

    def draw(share: float, audits: int, rng: Rng) -> Bounds:
        y, x = (rng.binomial(runs, chance, audits) for chance in law(share * promise))

        def bounds(confidence: float) -> Floats:
            seen = zip(y.tolist(), x.tolist(), strict=True)
            return np.array([float(bound(a, runs, b, runs, confidence=confidence)) for a, b in seen]) / promise

        return bounds

    return draw


def curve(events_y: int, runs_y: int, events_x: int, runs_x: int, *, confidence: float, epsilon: float) -> float:
    """Return the largest ratio of the bounds on delta to what pure privacy allows, times epsilon."""
    at = np.linspace(0, 1.2, 25) * epsilon
    true = PureDP(epsilon)
    low = delta_lower(at, events_y, runs_y, events_x, runs_x, confidence=confidence)
    allowed = np.array([true.delta_at(level) for level in at])
    return epsilon * max(
        math.inf if top == 0 else found / top for found, top in zip(low, allowed, strict=True) if top > 0 or found > 0
    )


def coin(epsilon: float) -> tuple[float, float]:
    """Return the chances of randomized response, which geometric noise on a count comes down to."""
    return float(special.expit(epsilon)), float(special.expit(-epsilon))


def coin_of(rho: float, order: float) -> tuple[float, float]:
    """Return the chances of the coin whose Renyi divergence of an order is order times rho."""

    def excess(epsilon: float) -> float:
        p, q = coin(epsilon)
        return float(loss_distribution([p, q], [q, p]).renyi(order)) / order - rho

    return coin(float(optimize.brentq(excess, 1e-6, 20.0)))


def variational(rho: float, order: float, runs: int) -> Draw:
    """Bound a divergence by the exact likelihood ratio of a coin."""

    def draw(share: float, audits: int, rng: Rng) -> Bounds:
        p, q = coin_of(share * rho, order)
        y, x = rng.multinomial(runs, [p, q], audits), rng.multinomial(runs, [q, p], audits)
        lower = partial(renyi_variational_lower, [math.log(p / q), math.log(q / p)], order=order)
        return lambda confidence: (
            np.array([lower(a, b, confidence=confidence) for a, b in zip(y, x, strict=True)]) / rho
        )

    return draw


def one_run(epsilon: float, canaries: int, *, delta: float = 0.0, leaked: int = 1) -> Draw:
    """Guess at every canary of one run, which tells some canaries at once; each is told with probability delta."""

    def draw(share: float, audits: int, rng: Rng) -> Bounds:
        told = np.where(rng.random(audits) < delta * canaries / leaked, leaked, 0)
        right = told + rng.binomial(canaries - told, special.expit(share * epsilon))
        values = np.array([one_run_p_value(int(v), canaries, epsilon, delta=delta) for v in right])
        return lambda confidence: np.where(values <= 1 - confidence, math.inf, math.nan)  # no bound, but a verdict

    return draw


def whole(audit: Callable[[float, int], float]) -> Draw:
    """Audit outputs, selection included; `audit` takes a confidence and a seed."""

    def draw(share: float, audits: int, rng: Rng) -> Bounds:
        return lambda confidence: np.array([audit(confidence, int(s)) for s in rng.integers(2**62, size=audits)])

    return draw


def audited(mechanism: Mechanism, claim: Claim, size: int, *, people: int = 1, stop: Any = "fixed") -> Draw:
    """Run `measure_loss`."""
    pair = NeighborPair.add_people([120], 0, people)

    def audit(confidence: float, seed: int) -> float:
        result = measure_loss(mechanism, pair, claim, size=size, confidence=confidence, rng=seed, stop=stop)
        return result.measured.budget / claim.budget

    return whole(audit)


def given(runs: int) -> Draw:
    """Run `measure_loss_from_outputs` on geometric counts."""

    def audit(confidence: float, seed: int) -> float:
        rng = np.random.default_rng(seed)
        x, y = (GDPC(1.0)(np.array([count]), runs, rng) for count in (120, 121))
        result = measure_loss_from_outputs(x, y, PureDP(1.0), relation="add_remove", confidence=confidence, rng=rng)
        return result.measured.budget

    return whole(audit)


def canaries_audited(confidence: float, seed: int) -> float:
    """Run `measure_loss_one_run`."""
    areas = Canaries(np.full(1000, 120))
    return measure_loss_one_run(GDPC(1.0), areas, PureDP(1.0), confidence=confidence, rng=seed).measured.budget


def leaky_counts(counts: ArrayLike, size: int, rng: Rng) -> NDArray[np.int64]:
    """Release geometric counts, and with probability 0.01 the true ones, marked as such."""
    released = GDPC(1.0)(counts, size, rng)
    return np.where(rng.random((size, 1)) < 0.01, np.asarray(counts) + FAR, released)


def laplace_counts(counts: ArrayLike, size: int, rng: Rng) -> Floats:
    """Release counts with Laplace noise of scale 1."""
    return np.asarray(counts) + Laplace(1.0).sample((size, np.size(counts)), rng)


def normal_counts(counts: ArrayLike, size: int, rng: Rng) -> Floats:
    """Release counts with normal noise of deviation 1."""
    return np.asarray(counts) + rng.standard_normal((size, np.size(counts)))


def best_threshold(share: float, audits: int, rng: Rng) -> Bounds:
    """Mistake: of many thresholds, count the best on the runs that chose it."""
    epsilon, at = 0.1, np.arange(-40, 42)
    mass = np.exp(TwoTailedGeometric(epsilon).logpmf(at))
    law = np.concatenate([mass, np.append(0.0, mass[:-1])]) / 2  # on x, and one higher on y
    seen = rng.multinomial(400, np.append(law, max(0.0, 1 - law.sum())), audits)[:, :-1].reshape(audits, 2, at.size)
    above = seen[:, :, ::-1].cumsum(axis=2)[:, :, ::-1][:, :, 25:57]
    x, y = above[:, 0], above[:, 1]
    below_x = seen[:, 0].sum(axis=1, keepdims=True) - x
    below_y = seen[:, 1].sum(axis=1, keepdims=True) - y
    right = np.concatenate([y, below_x, y + below_x], axis=1)
    guesses = np.concatenate([x + y, below_x + below_y, x + y + below_x + below_y], axis=1)
    return lambda confidence: guessing_game_lower(right, guesses, confidence=confidence).max(axis=1) / epsilon


def paired_runs(share: float, audits: int, rng: Rng) -> Bounds:
    """Mistake: one run on either database in turn, named where the two differ, so that guesses fall together."""
    p, q = coin(1.0)
    differ = rng.binomial(300, p * p + q * q, audits)
    right = 2 * rng.binomial(differ, p * p / (p * p + q * q))
    return lambda confidence: guessing_game_lower(right, 2 * differ, confidence=confidence)


def forgotten_delta(share: float, audits: int, rng: Rng) -> Bounds:
    """Mistake: take an approximate promise for a pure one."""
    right, wrong, _ = rng.multinomial(20_000, worst_law(1.0, 0.01, 0.1, 1), audits).T
    return lambda confidence: guessing_game_lower(right, right + wrong, confidence=confidence)


def divided_delta(share: float, audits: int, rng: Rng) -> Bounds:
    """Mistake: divide the bound of a group pair by its distance although a delta is forgiven."""
    right, wrong, _ = rng.multinomial(2000, worst_law(0.1, 1e-3, 0.5, 20), audits).T
    lower = partial(approx_game_lower, runs=2000, delta=1e-3)
    return lambda confidence: np.array(
        [lower(int(v), int(v + w), confidence=confidence) / 20 / 0.1 for v, w in zip(right, wrong, strict=True)]
    )


def rho_of_mu(*counts: int, confidence: float) -> float:
    """Mistake: take half the square of a Gaussian bound for a rho."""
    return float(gaussian_lower(*counts, confidence=confidence)) ** 2 / 2


def normal(threshold: float) -> Callable[[float], tuple[float, float]]:
    """Return the law of exceeding a threshold by unit normal noise around `mu` and around 0."""
    return lambda mu: (float(special.ndtr(mu - threshold)), float(special.ndtr(-threshold)))


def discrete_gaussian(rho: float) -> tuple[float, float]:
    """Return the chances that a count with discrete Gaussian noise is at least the higher of the two true ones."""
    noise = DiscreteGaussian(math.sqrt(0.5 / rho))
    return float(noise.sf(-1)), float(noise.sf(0))


def with_delta(epsilon: float) -> tuple[float, float]:
    """Return the chances of an event that uses up epsilon and a delta of 0.01."""
    return 0.05 * math.exp(epsilon) + 0.01, 0.05


def of_three(*counts: int, confidence: float) -> float:
    """Return the mu of one step of three."""
    return float(gaussian_lower(*counts, confidence=confidence)) / 3


PURE, APPROX, GAUSSIAN, RENYI = "Pure privacy", "Approximate privacy", "Gaussian privacy", "Zero-concentrated privacy"
LOOKING, ONE_RUN = "At 50 looks, the largest bound counts", "One run"
SILENT = (1 + math.exp(-1)) / 2  # share of runs in which Laplace noise does not fall between the two true counts

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
    Case(
        PURE,
        "25 points of the curve of delta, epsilon 1",
        event(partial(curve, epsilon=1.0), coin, 500, 1.0),
    ),
    Case(APPROX, "guessing game, delta 1e-5, all guessed", game(1.0, 2000, delta=1e-5)),
    Case(APPROX, "guessing game, delta 1e-5, 1% guessed", game(1.0, 20_000, delta=1e-5, guessed=0.01)),
    Case(APPROX, "guessing game, delta 0.01, all guessed", game(1.0, 2000, delta=0.01)),
    Case(APPROX, "guessing game, delta 0.01, 5% guessed", game(1.0, 20_000, delta=0.01, guessed=0.05)),
    Case(
        APPROX,
        "guessing game, 20 people, delta 1e-3, half guessed",
        game(0.1, 2000, delta=1e-3, guessed=0.5, distance=20),
    ),
    Case(APPROX, "two limits, delta 0.01", event(partial(two_sample_lower, delta=0.01), with_delta, 20_000, 1.0)),
    Case(GAUSSIAN, "region from the middle, mu 1", event(gaussian_lower, normal(0.5), 500, 1.0)),
    Case(GAUSSIAN, "region of 2.3%, mu 1", event(gaussian_lower, normal(2.0), 2000, 1.0)),
    Case(GAUSSIAN, "region of 93%, mu 1", event(gaussian_lower, normal(-1.5), 2000, 1.0)),
    Case(GAUSSIAN, "3 people, mu 0.5", event(of_three, lambda mu: normal(0.75)(3 * mu), 500, 0.5)),
    Case(
        RENYI, "Renyi divergence of one event, a coin", event(renyi_event_lower, lambda rho: coin_of(rho, 1), 500, 0.5)
    ),
    Case(RENYI, "variational, order 1, a coin", variational(0.5, 1.0, 500)),
    Case(RENYI, "variational, order 2, a coin", variational(0.3, 2.0, 500)),
    Case(RENYI, "within the discrete Gaussian family", event(discrete_gaussian_lower, discrete_gaussian, 500, 0.5)),
    Case(LOOKING, "anytime guessing game, epsilon 1", looks(1.0, "anytime")),
    Case(LOOKING, "anytime guessing game, epsilon 1, delta 0.01", looks(1.0, "anytime", delta=0.01)),
    Case(LOOKING, "shared confidence, guessing game, epsilon 1", looks(1.0, "shared")),
    Case(ONE_RUN, "1,000 canaries, epsilon 1", one_run(1.0, 1000)),
    Case(ONE_RUN, "1,000 canaries, delta 1e-3: 40 told at once", one_run(1.0, 1000, delta=1e-3, leaked=40)),
    Case(WHOLE, "pure: geometric count, epsilon 1", audited(GDPC(1.0), PureDP(1.0), 4000)),
    Case(WHOLE, "pure: Laplace count, epsilon 1", audited(laplace_counts, PureDP(1.0), 4000), 300),
    Case(WHOLE, "pure: 20 people, epsilon 0.1", audited(GDPC(0.1), PureDP(0.1), 4000, people=20), 300),
    Case(WHOLE, "pure: stopped early", audited(GDPC(1.0), PureDP(1.0), 4000, stop="early"), 200),
    Case(WHOLE, "pure: 2,000 + 2,000 given outputs", given(2000)),
    Case(WHOLE, "pure: 40 + 40 given outputs", given(40), 300),
    Case(WHOLE, "pure: one run, 1,000 areas", whole(canaries_audited), 300),
    Case(WHOLE, "approximate: true count told, delta 0.01", audited(leaky_counts, ApproxDP(1.0, 0.01), 10_000)),
    Case(WHOLE, "Gaussian: normal count, mu 1", audited(normal_counts, GaussianDP(1.0), 4000)),
    Case(WHOLE, "Gaussian: stopped early", audited(normal_counts, GaussianDP(1.0), 4000, stop="early"), 300),
    Case(WHOLE, "zero-concentrated: discrete Gaussian, rho 0.5", audited(GaussianCounts(0.5), ZCDP(0.5), 4000), 300),
    Case(MISTAKES, "threshold chosen on the counted runs", best_threshold),
    Case(MISTAKES, "delta ignored", forgotten_delta),
    Case(MISTAKES, "bound of 20 people divided by 20 in spite of delta", divided_delta),
    Case(MISTAKES, "50 looks with a bound for one", looks(1.0, "one look")),
    Case(MISTAKES, "half the square of mu taken for rho", event(rho_of_mu, discrete_gaussian, 100_000, 0.5)),
    Case(MISTAKES, "game with fixed numbers of runs", paired_runs),
)


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Make 1,000 audits of each case, 200 or 300 where each takes long (quick: 20, of mistakes 300)."""
    tasks = []
    for place, (case, stream) in enumerate(zip(CASES, np.random.SeedSequence(seed).spawn(len(CASES)), strict=True)):
        audits = case.audits if not quick else 300 if case.group == MISTAKES else 4 if case.group == WHOLE else 20
        shares = NEAR[:1] if case.group in (WHOLE, MISTAKES) else NEAR
        streams = stream.spawn(len(shares))
        tasks += [delayed(_rows)(place, share, audits, s) for share, s in zip(shares, streams, strict=True)]
    return {"rows": [row for rows in Parallel(n_jobs=jobs)(tasks) for row in rows]}


def _rows(place: int, share: float, audits: int, stream: np.random.SeedSequence) -> list[dict[str, Any]]:
    """Count how many of the bounds of one case are above the promise, at each level."""
    case, rows = CASES[place], []
    bounds = case.draw(share, audits, np.random.default_rng(stream))
    for confidence in LEVELS:
        found = bounds(confidence)
        shown = not np.isnan(found).any()
        rows.append(
            {
                "group": case.group,
                "case": case.words,
                "share": share,
                "confidence": confidence,
                "audits": audits,
                "misses": int((found > 1).sum()),
                "median": float(np.median(found)) if shown else None,
            }
        )
    return rows


def allowed(row: dict[str, Any]) -> int:
    """Return the most misses that are not suspicious: a valid bound exceeds them with probability 1e-4."""
    return int(stats.binom.isf(FALSE_ALARM, row["audits"], 1 - row["confidence"]))


def check(numbers: dict[str, Any]) -> Iterator[Check]:
    """Hold the misses against their limits."""
    for row in numbers["rows"]:
        what = f"{row['group']}, {row['case']}, loss {row['share']:g} of the promise, {row['confidence']:.0%}"
        limit, misses = allowed(row), row["misses"]
        wrong = row["group"] == MISTAKES
        words = f"{what}: {misses} of {row['audits']} above the promise, {'more than' if wrong else 'at most'} {limit}"
        yield Check(words, misses > limit if wrong else misses <= limit)


def finding(numbers: dict[str, Any]) -> str:
    """Return the misses nearest to their limits, and those of the mistakes."""
    rows = [row for row in numbers["rows"] if row["confidence"] == LEVELS[0]]
    valid = [row for row in rows if row["group"] != MISTAKES]
    bound, whole = (
        max((row for row in valid if (row["group"] == WHOLE) == complete), key=lambda row: row["misses"] / allowed(row))
        for complete in (False, True)
    )
    above = sum(row["misses"] > allowed(row) for row in valid)
    mistakes = ", ".join(
        f"{row['case']} {row['misses'] / row['audits']:.0%}" for row in rows if row["group"] == MISTAKES
    )
    return (
        f"{'None' if above == 0 else above} of {len(valid)} rows at 95% {'is' if above < 2 else 'are'} above the "
        f"limit; nearest is {bound['case']}, {bound['misses']} of {bound['audits']:,} (at most "
        f"{allowed(bound)}), and of whole audits {whole['case']}, {whole['misses']} of {whole['audits']:,} (at most "
        f"{allowed(whole)}). Mistakes accuse far oftener: {mistakes}."
    )


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw the share of audits above the promise, one row a case, at both levels."""
    places: dict[tuple[str, str], float] = {}
    headings: dict[str, float] = {}
    place = -0.6
    for row in numbers["rows"]:
        if row["group"] not in headings:
            headings[row["group"]] = place = place + 1.6
        if (row["group"], row["case"]) not in places:
            places[row["group"], row["case"]] = place = place + 1
    figure, axes = new_figure(9.6, 1.6 + 0.175 * place, 1, 2)
    for ax, confidence in zip(axes, LEVELS, strict=True):
        for row in numbers["rows"]:
            if row["confidence"] == confidence:
                _draw_row(ax, row, places[row["group"], row["case"]])
        ax.axvline(1 - confidence, color=GRAY, linewidth=0.9, linestyle=":", zorder=0)
        ax.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))  # room for what is rare
        ticks = (0, 0.01, 0.05, 0.2, 0.5, 1)
        ax.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks])
        ax.set_xlim(0, 1)
        ax.set_ylim(place + 0.8, 0.3)
        ax.set_yticks(list(places.values()), [""] * len(places), fontsize=8)
        ax.tick_params(axis="y", length=0, pad=7)
        ax.spines["left"].set_visible(False)
        ax.set_title(f"confidence {confidence:.0%}")
        ax.set_xlabel("audits that accuse")
        ax.text(1.03, 0.7, "median\nbound", va="center", fontsize=7.5, transform=ax.get_yaxis_transform())
    left = axes[0]
    left.set_yticks(list(places.values()), [_in_symbols(words) for _, words in places])
    for heading, at in headings.items():
        left.text(-0.03, at, heading, ha="right", va="center", weight="bold", transform=left.get_yaxis_transform())
    some: list[dict[str, Any]] = [
        {"marker": "o", "label": "the law loses all that is promised"},
        {"marker": "o", "markerfacecolor": "white", "label": "95% of it"},
        {"marker": "X", "color": ORANGE, "label": "a mistake, on a law that loses what is promised"},
        {"marker": "|", "color": BLACK, "markersize": 11, "markeredgewidth": 1.4, "label": "limit (false alarm 1e-4)"},
    ]
    handles = [Line2D([], [], **({"color": BLUE, "linestyle": "none"} | style)) for style in some]
    handles.append(Line2D([], [], color=GRAY, linestyle=":", label="1 - confidence"))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=5, fontsize=8, handletextpad=0.3, columnspacing=1.2
    )
    return figure


def _draw_row(ax: Axes, row: dict[str, Any], at: float) -> None:
    wrong, boundary, limit = row["group"] == MISTAKES, row["share"] == 1, allowed(row) / row["audits"]
    color = ORANGE if wrong else BLUE
    if boundary:
        ax.fill_betweenx([at - 0.5, at + 0.5], 0, limit, color=BLUE, alpha=0.1, linewidth=0)
        ax.plot([limit] * 2, [at - 0.5, at + 0.5], color=BLACK, linewidth=1.4, solid_capstyle="butt")
        median = "" if row["median"] is None else f"{row['median']:.2f}"
        ax.text(1.03, at, median, va="center", fontsize=7.5, transform=ax.get_yaxis_transform())
    ax.plot(
        row["misses"] / row["audits"],
        at,
        marker="X" if wrong else "o",
        markersize=5.5 if wrong else 4.5,
        color=color,
        markerfacecolor=color if boundary else "white",
        linestyle="none",
        clip_on=False,
        zorder=4 if boundary else 3,
    )


def _in_symbols(words: str) -> str:
    return (
        re.sub(r"\b(epsilon|delta|mu|rho)\b", r"$\\\1$", words)
        .replace("1e-5", "$10^{-5}$")
        .replace("1e-3", "$10^{-3}$")
    )
