"""Worst-case laws, whose loss equals the promise: simulated counts, audits and bounds, and deliberate mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from algorithms.flaxman import GDPC
from algorithms.flaxman.gaussian import GaussianCounts
from algorithms.noise import DiscreteGaussian, Laplace, TwoTailedGeometric
from audit import (
    ZCDP,
    ApproxDP,
    Canaries,
    GaussianDP,
    Mechanism,
    NeighborPair,
    PureDP,
    loss_distribution,
    measure_loss,
    measure_loss_from_outputs,
    measure_loss_one_run,
    search_loss,
)
from audit.bounds.betting import growth, rates, score_growth, total
from audit.bounds.game import approx_game_lower, guessing_game_lower
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.one_run import one_run_p_value
from audit.bounds.rectangle import delta_lower, two_sample_lower
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.claims import Claim
from audit.methods import OneRun
from audit.methods.betting import prior

Floats = NDArray[np.float64]
Rng = np.random.Generator
Bounds = Callable[[float], Floats]  # confidence -> bound / promise of each audit, from counts drawn before
Draw = Callable[[float, int, Rng], Bounds]  # (true loss / promise, number of audits, rng) -> bounds

LOOKS = np.unique(np.geomspace(20, 20_000, 50).astype(int))
FAR = 10**6  # larger than any noise


def worst_law(epsilon: float, delta: float, guessed: float, distance: int) -> Floats:
    """Return the probabilities of a right guess, a wrong guess and no guess if the promise holds with equality."""
    pair = ApproxDP(epsilon, delta).group(distance)
    wrong = (guessed - pair.delta) / (1 + math.exp(pair.epsilon))
    return np.array([guessed - wrong, wrong, 1 - guessed])


def by_audit(bound: Callable[..., Any], promise: float, *counts: NDArray[Any]) -> Bounds:
    rows = list(zip(*(column.tolist() for column in counts), strict=True))
    return lambda confidence: np.array([float(bound(*row, confidence=confidence)) for row in rows]) / promise


def game(epsilon: float, runs: int, *, delta: float = 0.0, guessed: float = 1.0, distance: int = 1) -> Draw:
    def draw(share: float, audits: int, rng: Rng) -> Bounds:
        right, wrong, _ = rng.multinomial(runs, worst_law(share * epsilon, delta, guessed, distance), audits).T
        if delta == 0:
            scale = distance * epsilon
            return lambda confidence: guessing_game_lower(right, right + wrong, confidence=confidence) / scale
        lower = partial(approx_game_lower, runs=runs, delta=delta, distance=distance)
        return by_audit(lower, epsilon, right, right + wrong)

    return draw


def looks(epsilon: float, *, delta: float = 0.0, betting: bool = True) -> Draw:
    """Bet at every look of a guessing game, or bound the loss by all runs so far; the largest evidence counts."""

    def draw(share: float, audits: int, rng: Rng) -> Bounds:
        law = worst_law(share * epsilon, delta, 1.0, 1)
        new = np.stack([rng.multinomial(step, law, audits) for step in np.diff(LOOKS, prepend=0)])
        past, runs = new.cumsum(axis=0) - new, new.sum(axis=2)
        if not betting:
            right, wrong, _ = (past + new).T
            return lambda confidence: (
                guessing_game_lower(right, right + wrong, confidence=confidence).max(axis=1) / epsilon
            )
        expected = prior(past.sum(axis=2), past[..., 0], past[..., 1])
        bets = np.stack([np.full(runs.shape, 2), *expected, runs, new[..., 0], new[..., 1]], axis=2)
        grown = growth(bets, [ApproxDP(epsilon, delta).lines()]).reshape(-1, *runs.shape)
        evidence = total(grown.cumsum(axis=1)).max(axis=0)
        return lambda confidence: np.where(evidence >= -math.log1p(-confidence), math.inf, math.nan)  # no bound

    return draw


def score_looks(rho: float) -> Draw:
    """Bet on the likelihood ratio of a coin at every look; the largest evidence counts."""

    def draw(share: float, audits: int, rng: Rng) -> Bounds:
        p, q = coin_of(share * rho, 1)
        sizes = np.broadcast_to(np.diff(LOOKS, prepend=0)[:, None], (LOOKS.size, audits))
        on_y = rng.binomial(sizes, 0.5)
        new = [rng.multinomial(runs, law) for runs, law in ((sizes - on_y, [q, p]), (on_y, [p, q]))]
        past = [rates(side.cumsum(axis=0) - side) for side in new]
        score = np.broadcast_to([math.log(p / q), math.log(q / p)], new[0].shape)
        grown = score_growth(np.stack([score, *past, *new], axis=2).reshape(-1, 5, 2), [rho])
        evidence = total(grown.reshape(-1, *sizes.shape).cumsum(axis=1)).max(axis=0)
        return lambda confidence: np.where(evidence >= -math.log1p(-confidence), math.inf, math.nan)  # no bound

    return draw


def event(bound: Callable[..., Any], law: Callable[[float], tuple[float, float]], runs: int, promise: float) -> Draw:
    """Count one event in fixed numbers of runs; `law` maps a loss to the probabilities of the event on `y` and `x`."""

    def draw(share: float, audits: int, rng: Rng) -> Bounds:
        y, x = (rng.binomial(runs, chance, audits) for chance in law(share * promise))
        each = np.full(audits, runs)
        return by_audit(bound, promise, y, each, x, each)

    return draw


def curve(events_y: int, runs_y: int, events_x: int, runs_x: int, *, confidence: float, epsilon: float) -> float:
    """Return the largest ratio of the lower bound on delta to the delta of pure privacy, times epsilon."""
    at = np.linspace(0, 1.2, 25) * epsilon
    true = PureDP(epsilon)
    low = delta_lower(at, events_y, runs_y, events_x, runs_x, confidence=confidence)
    allowed = np.array([true.delta_at(level) for level in at])
    return epsilon * max(
        math.inf if top == 0 else found / top for found, top in zip(low, allowed, strict=True) if top > 0 or found > 0
    )


def coin(epsilon: float) -> tuple[float, float]:
    return float(special.expit(epsilon)), float(special.expit(-epsilon))


def coin_of(rho: float, order: float) -> tuple[float, float]:
    """Return the probabilities of a coin whose Renyi divergence of this order is order times rho."""

    def excess(epsilon: float) -> float:
        p, q = coin(epsilon)
        return float(loss_distribution([p, q], [q, p]).renyi(order)) / order - rho

    return coin(float(optimize.brentq(excess, 1e-6, 20.0)))


def variational(rho: float, order: float, runs: int) -> Draw:
    def draw(share: float, audits: int, rng: Rng) -> Bounds:
        p, q = coin_of(share * rho, order)
        y, x = rng.multinomial(runs, [p, q], audits), rng.multinomial(runs, [q, p], audits)
        lower = partial(renyi_variational_lower, [math.log(p / q), math.log(q / p)], order=order)
        return by_audit(lower, rho, y, x)

    return draw


def one_run(epsilon: float, canaries: int, *, delta: float = 0.0, leaked: int = 1) -> Draw:
    """Guess every canary of one run that reveals `leaked` canaries together, each with probability delta."""

    def draw(share: float, audits: int, rng: Rng) -> Bounds:
        leaks = np.where(rng.random(audits) < delta * canaries / leaked, leaked, 0)
        right = leaks + rng.binomial(canaries - leaks, special.expit(share * epsilon))
        values = np.array([one_run_p_value(int(v), canaries, epsilon, delta=delta) for v in right])
        return lambda confidence: np.where(values <= 1 - confidence, math.inf, math.nan)  # only a verdict, no bound

    return draw


def one_run_together(mu: float, canaries: int, guesses: int, seldom: float) -> Draw:
    """Guess canaries of one run that rarely reveals many of them together, at the best rate of Gaussian privacy."""

    def draw(share: float, audits: int, rng: Rng) -> Bounds:
        law, leaks = GaussianDP(share * mu), seldom * guesses / canaries
        rate = optimize.brentq(lambda rate: law.rarest(leaks * rate) - leaks * (1 - rate), 0.5, 1.0)
        right = rng.binomial(guesses, np.where(rng.random(audits) < seldom, rate, 0.5))

        def bounds(confidence: float) -> Floats:
            needed = OneRun(GaussianDP(mu), 1, confidence).needed(guesses, canaries)
            return np.where(right >= needed, math.inf, math.nan)

        return bounds  # only verdicts, no bounds

    return draw


def whole(audit: Callable[[float, int], float]) -> Draw:
    """Return complete audits, with selection; `audit` maps a confidence and a seed to bound / promise."""
    return lambda share, audits, rng: (
        lambda confidence: np.array([audit(confidence, int(s)) for s in rng.integers(2**62, size=audits)])
    )


def audited_counts(mechanism: Mechanism, claim: Claim, size: int, *, people: int = 1, stop: Any = "fixed") -> Draw:
    pair = NeighborPair.add_people([120], 0, people)

    def audit(confidence: float, seed: int) -> float:
        result = measure_loss(mechanism, pair, claim, size=size, confidence=confidence, rng=seed, stop=stop)
        return result.measured.budget / claim.budget

    return whole(audit)


def given(runs_x: int, runs_y: int, mechanism: Mechanism, claim: Claim, *, selection: float = 0.3) -> Draw:
    def audit(confidence: float, seed: int) -> float:
        rng = np.random.default_rng(seed)
        x, y = (mechanism(np.array([count]), runs, rng) for count, runs in ((120, runs_x), (121, runs_y)))
        options: dict[str, Any] = {"relation": "add_remove", "confidence": confidence, "rng": rng}
        return measure_loss_from_outputs(x, y, claim, selection=selection, **options).measured.budget / claim.budget

    return whole(audit)


def searched(pairs: int, keep: int, size: int) -> Draw:
    """Run `search_loss` on geometric counts whose pairs all have the promised loss; the largest bound counts."""
    family = [NeighborPair.add_people([100 + number], 0) for number in range(pairs)]

    def audit(confidence: float, seed: int) -> float:
        found = search_loss(GDPC(1.0), family, PureDP(1.0), keep=keep, size=size, confidence=confidence, rng=seed)
        return max(result.measured.budget for result in found.results)

    return whole(audit)


def canaries_audited(confidence: float, seed: int) -> float:
    areas = Canaries(np.full(1000, 120))
    return measure_loss_one_run(GDPC(1.0), areas, PureDP(1.0), confidence=confidence, rng=seed).measured.budget


def leaky_counts(counts: ArrayLike, size: int, rng: Rng) -> NDArray[np.int64]:
    released = GDPC(1.0)(counts, size, rng)
    return np.where(rng.random((size, 1)) < 0.01, np.asarray(counts) + FAR, released)


def laplace_counts(counts: ArrayLike, size: int, rng: Rng) -> Floats:
    return np.asarray(counts) + Laplace(1.0).sample((size, np.size(counts)), rng)


def normal_counts(mu: float) -> Mechanism:
    return lambda counts, size, rng: np.asarray(counts) + rng.standard_normal((size, np.size(counts))) / mu


def best_threshold(share: float, audits: int, rng: Rng) -> Bounds:
    """Mistake: count the best of many thresholds on the runs that chose it."""
    epsilon, at = 0.1, np.arange(-40, 42)
    mass = np.exp(TwoTailedGeometric(epsilon).logpmf(at))
    law = np.concatenate([mass, np.append(0.0, mass[:-1])]) / 2  # on x, and shifted by one on y
    counts = rng.multinomial(400, np.append(law, max(0.0, 1 - law.sum())), audits)[:, :-1].reshape(audits, 2, at.size)
    above = counts[:, :, ::-1].cumsum(axis=2)[:, :, ::-1][:, :, 25:57]
    x, y = above[:, 0], above[:, 1]
    below_x = counts[:, 0].sum(axis=1, keepdims=True) - x
    below_y = counts[:, 1].sum(axis=1, keepdims=True) - y
    right = np.concatenate([y, below_x, y + below_x], axis=1)
    guesses = np.concatenate([x + y, below_x + below_y, x + y + below_x + below_y], axis=1)
    return lambda confidence: guessing_game_lower(right, guesses, confidence=confidence).max(axis=1) / epsilon


def paired_runs(share: float, audits: int, rng: Rng) -> Bounds:
    """Mistake: run both databases in turn and guess only if outputs differ, so that two guesses are right together."""
    p, q = coin(1.0)
    differ = rng.binomial(300, p * p + q * q, audits)
    right = 2 * rng.binomial(differ, p * p / (p * p + q * q))
    return lambda confidence: guessing_game_lower(right, 2 * differ, confidence=confidence)


def forgotten_delta(share: float, audits: int, rng: Rng) -> Bounds:
    """Mistake: treat an approximate promise as a pure one."""
    right, wrong, _ = rng.multinomial(20_000, worst_law(1.0, 0.01, 0.1, 1), audits).T
    return lambda confidence: guessing_game_lower(right, right + wrong, confidence=confidence)


def divided_delta(share: float, audits: int, rng: Rng) -> Bounds:
    """Mistake: divide the bound of a group by its size although the promise has a delta."""
    right, wrong, _ = rng.multinomial(2000, worst_law(0.1, 1e-3, 0.5, 20), audits).T
    return by_audit(partial(approx_game_lower, runs=2000, delta=1e-3), 20 * 0.1, right, right + wrong)


def rho_of_mu(*counts: int, confidence: float) -> float:
    """Mistake: treat half of the squared bound on mu as a bound on rho."""
    return float(gaussian_lower(*counts, confidence=confidence)) ** 2 / 2


def normal(threshold: float) -> Callable[[float], tuple[float, float]]:
    """Return the probabilities that unit normal noise around `mu` and around 0 exceeds a threshold."""
    return lambda mu: (float(special.ndtr(mu - threshold)), float(special.ndtr(-threshold)))


def discrete_gaussian(rho: float) -> tuple[float, float]:
    noise = DiscreteGaussian(math.sqrt(0.5 / rho))
    return float(noise.sf(-1)), float(noise.sf(0))


def with_delta(epsilon: float) -> tuple[float, float]:
    return 0.05 * math.exp(epsilon) + 0.01, 0.05


def of_three(*counts: int, confidence: float) -> float:
    return float(gaussian_lower(*counts, confidence=confidence)) / 3


MISTAKES, WHOLE, OTHERS = "Mistakes, on purpose", "Whole audits, selection included", "Whole audits of other kinds"


@dataclass(frozen=True)
class Case:
    """A bound, and a worst-case law for it."""

    group: str
    words: str
    draw: Draw
    audits: int = 1000


PURE, APPROX, GAUSSIAN, RENYI = "Pure privacy", "Approximate privacy", "Gaussian privacy", "Zero-concentrated privacy"
LOOKING, ONE_RUN = "At 50 looks, the largest evidence counts", "One run"
SILENT = (1 + math.exp(-1)) / 2  # probability that a Laplace count is not between the two true counts
DISCRETE = "zero-concentrated: discrete Gaussian, rho 0.5"
EARLY = partial(audited_counts, stop="early")
OF_TWENTY: dict[str, Any] = {"delta": 1e-3, "guessed": 0.5, "distance": 20}
GIVEN = ((8, 8, 0.5), (20, 30, 0.3), (49, 51, 0.3), (60, 2000, 0.3), (300, 300, 0.3), (20_000, 300, 0.3))
CASES = (
    Case(PURE, "guessing game, geometric, epsilon 0.1", game(0.1, 10_000)),
    Case(PURE, "guessing game, geometric, epsilon 1", game(1.0, 1000)),
    Case(PURE, "guessing game, geometric, epsilon 4", game(4.0, 1000)),
    Case(PURE, "guessing game, Laplace, epsilon 1, silent between", game(1.0, 1000, guessed=SILENT)),
    Case(PURE, "guessing game, 20 people, epsilon 0.1", game(0.1, 1000, distance=20)),
    Case(PURE, "two Clopper-Pearson limits, epsilon 0.1", event(two_sample_lower, coin, 10_000, 0.1)),
    Case(PURE, "two Clopper-Pearson limits, epsilon 1", event(two_sample_lower, coin, 500, 1.0)),
    Case(PURE, "25 points of the curve of delta, epsilon 1", event(partial(curve, epsilon=1.0), coin, 500, 1.0)),
    Case(APPROX, "guessing game, delta 1e-5, all guessed", game(1.0, 2000, delta=1e-5)),
    Case(APPROX, "guessing game, delta 1e-5, 1% guessed", game(1.0, 20_000, delta=1e-5, guessed=0.01)),
    Case(APPROX, "guessing game, delta 0.01, all guessed", game(1.0, 2000, delta=0.01)),
    Case(APPROX, "guessing game, delta 0.01, 5% guessed", game(1.0, 20_000, delta=0.01, guessed=0.05)),
    Case(APPROX, "guessing game, 20 people, delta 1e-3, half guessed", game(0.1, 2000, **OF_TWENTY)),
    Case(APPROX, "two limits, delta 0.01", event(partial(two_sample_lower, delta=0.01), with_delta, 20_000, 1.0)),
    Case(GAUSSIAN, "region from the middle, mu 1", event(gaussian_lower, normal(0.5), 500, 1.0)),
    Case(GAUSSIAN, "region of 2.3%, mu 1", event(gaussian_lower, normal(2.0), 2000, 1.0)),
    Case(GAUSSIAN, "region of 93%, mu 1", event(gaussian_lower, normal(-1.5), 2000, 1.0)),
    Case(GAUSSIAN, "3 people, mu 0.5", event(of_three, lambda mu: normal(0.75)(3 * mu), 500, 0.5)),
    Case(RENYI, "Renyi divergence of one event, a coin", event(renyi_event_lower, partial(coin_of, order=1), 500, 0.5)),
    Case(RENYI, "variational, order 1, a coin", variational(0.5, 1.0, 500)),
    Case(RENYI, "variational, order 2, a coin", variational(0.3, 2.0, 500)),
    Case(LOOKING, "bets on guesses, epsilon 1", looks(1.0)),
    Case(LOOKING, "bets on guesses, epsilon 1, delta 0.01", looks(1.0, delta=0.01)),
    Case(LOOKING, "bets on a score, a coin, rho 0.5", score_looks(0.5)),
    Case(ONE_RUN, "1,000 canaries, epsilon 1", one_run(1.0, 1000)),
    Case(ONE_RUN, "1,000 canaries, delta 1e-3: 40 revealed at once", one_run(1.0, 1000, delta=1e-3, leaked=40)),
    Case(ONE_RUN, "10,000 canaries, mu 1: 500 told together", one_run_together(1.0, 10_000, 500, 0.06)),
    Case(WHOLE, "pure: geometric count, epsilon 1", audited_counts(GDPC(1.0), PureDP(1.0), 4000)),
    Case(WHOLE, "pure: Laplace count, epsilon 1", audited_counts(laplace_counts, PureDP(1.0), 4000), 300),
    Case(WHOLE, "pure: 20 people, epsilon 0.1", audited_counts(GDPC(0.1), PureDP(0.1), 4000, people=20), 300),
    Case(WHOLE, "pure: stopped early", EARLY(GDPC(1.0), PureDP(1.0), 4000), 200),
    Case(WHOLE, "pure: 2,000 + 2,000 given outputs", given(2000, 2000, GDPC(1.0), PureDP(1.0))),
    Case(WHOLE, "pure: 40 + 40 given outputs", given(40, 40, GDPC(1.0), PureDP(1.0)), 300),
    Case(WHOLE, "pure: one run, 1,000 areas", whole(canaries_audited), 300),
    Case(WHOLE, "approximate: true count told, delta 0.01", audited_counts(leaky_counts, ApproxDP(1.0, 0.01), 10_000)),
    Case(WHOLE, "Gaussian: normal count, mu 1", audited_counts(normal_counts(1.0), GaussianDP(1.0), 4000)),
    Case(WHOLE, "Gaussian: stopped early", EARLY(normal_counts(1.0), GaussianDP(1.0), 4000), 300),
    Case(WHOLE, DISCRETE, audited_counts(GaussianCounts(0.5), ZCDP(0.5), 4000), 300),
    Case(MISTAKES, "threshold chosen on the counted runs", best_threshold),
    Case(MISTAKES, "delta ignored", forgotten_delta),
    Case(MISTAKES, "bound of 20 people divided by 20 in spite of delta", divided_delta),
    Case(MISTAKES, "50 looks with a bound for one", looks(1.0, betting=False)),
    Case(MISTAKES, "half the square of mu taken for rho", event(rho_of_mu, discrete_gaussian, 100_000, 0.5)),
    Case(MISTAKES, "game with fixed numbers of runs", paired_runs),
    Case(OTHERS, "pure: 20 pairs searched, 3 measured", searched(20, 3, 6000)),
    Case(OTHERS, "pure: 20 pairs searched, all measured", searched(20, 20, 6000)),
    Case(OTHERS, "pure: stopped early, to 20,000", EARLY(GDPC(1.0), PureDP(1.0), 20_000), 200),
    Case(OTHERS, "approximate: stopped early, to 20,000", EARLY(leaky_counts, ApproxDP(1.0, 0.01), 20_000), 200),
    *(
        Case(OTHERS, f"{kind}: {x:,} + {y:,} given outputs", given(x, y, mechanism, claim, selection=selection))
        for kind, mechanism, claim, sizes in (
            ("pure", GDPC(1.0), PureDP(1.0), GIVEN),
            ("approximate", leaky_counts, ApproxDP(1.0, 0.01), GIVEN[2:]),
        )
        for x, y, selection in sizes
    ),
)
