"""From counts to a verdict: the numbers are those of the theorems, the question is one that can be asked."""

from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, ndtri
from scipy.stats import beta, binom, norm

from audit.attacks import Attack, attack_names
from audit.bounds.anytime import anytime_game_lower, look_confidence
from audit.bounds.game import approx_game_lower, guessing_game_lower
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.rectangle import rectangle, two_sample_lower
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.events import CellRule, Event, WeightRule, cell
from audit.exact import LossDistribution, loss_distribution
from audit.methods import (
    AnytimeGame,
    Divergence,
    Game,
    Rectangle,
    Region,
    added,
    check_question,
    counted,
    judge,
    method_for,
    support_witness,
)
from audit.methods.ceilings import game_ceiling, rectangle_ceiling
from audit.methods.detectable import game_detectable, rectangle_detectable
from audit.neighbors import NeighborPair
from audit.results import AuditResult

REST = {
    "mechanism": "count",
    "searched": "thresholds on output[0]",
    "pair": "1 person added to cell 0",
    "relation": "add_remove",
    "unit": "person",
    "adjacency": "verified",
    "confidence": 0.95,
    "size": 2000,
    "selection": 600,
    "seed_entropy": 42,
    "provenance": {},
}
PAIR = NeighborPair.add_people([5, 7], cell=0)
GROUP = NeighborPair.add_people([5, 7], cell=0, people=3)
WITNESS = {"order": "possible on x only", "probability": 0.25}
ONE, BOTH = Event.at_least(0, 13), Event.at_least(0, 13, low=12)  # the sides that a rule names
WEIGHTS = Event(cell(0), WeightRule(np.array([-1.0, 0.0, 1.0]), np.array([-2.0, -0.5, 0.5, 2.0])))
CLAIMS = {Game: PureDP(1), AnytimeGame: PureDP(1), Rectangle: PureDP(1), Region: GaussianDP(1), Divergence: ZCDP(0.5)}


def named(x, y):
    """Return counts of guesses (for x, for y, for neither) made on either database."""
    return {
        name: {"runs": sum(side), "guessed_x": side[0], "guessed_y": side[1]} for name, side in (("x", x), ("y", y))
    }


def binned(x, y):
    """Return counts of runs in each bin of a likelihood ratio."""
    return {
        name: {"runs": sum(side)} | {f"bin {k}": n for k, n in enumerate(side) if n}
        for name, side in (("x", x), ("y", y))
    }


def judged(x, y, *, method=Game, claim=None, distance=1, confidence=0.95, event=BOTH, support=None):
    counts = binned(x, y) if isinstance(event.rule, WeightRule) else named(x, y)
    how = method(claim or CLAIMS[method], distance, confidence)
    return judge(time.perf_counter(), how, event, counts, support=support, **REST)


GUESSED = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
MANY = st.tuples(*[st.integers(0, 2000)] * 3)
BINS = st.tuples(*[st.integers(0, 2000)] * 4)
CONFIDENCES = st.floats(0.01, 0.999)
DISTANCES = st.integers(1, 5)
DELTAS = st.floats(0, 0.3)


# What is counted


def test_counts_are_of_the_guesses_of_a_rule():
    scores = np.array([-3.0, 12, 12.5, 13]), np.array([13.0, 14, 15])
    assert counted(BOTH, *scores) == {
        "x": {"runs": 4, "guessed_x": 2, "guessed_y": 1},
        "y": {"runs": 3, "guessed_x": 0, "guessed_y": 3},
    }
    values = Event(cell(0), CellRule(np.array([13.0, 15]), np.array([12.5])))
    assert counted(values, *scores) == {
        "x": {"runs": 4, "guessed_x": 1, "guessed_y": 1},
        "y": {"runs": 3, "guessed_x": 0, "guessed_y": 2},
    }
    assert counted(BOTH, np.empty(0), scores[1])["x"] == {"runs": 0, "guessed_x": 0, "guessed_y": 0}


def test_counts_of_a_likelihood_ratio_are_of_its_bins():
    counts = counted(WEIGHTS, np.array([-5.0, -1, 0.5, 0.5]), np.array([1.0, 9]))
    assert counts == {"x": {"runs": 4, "bin 0": 1, "bin 1": 1, "bin 2": 2}, "y": {"runs": 2, "bin 3": 2}}
    json.dumps(counts)  # plain numbers by now


@given(st.lists(st.floats(-3, 3), max_size=20), st.lists(st.floats(-3, 3), max_size=20), st.integers(0, 20))
def test_counts_of_two_sets_of_runs_add_up(x, y, cut):
    for event in (WEIGHTS, Event.at_least(0, 0.5, low=-0.5)):
        parts = [
            counted(event, np.array(x[part], float), np.array(y[part], float))
            for part in (slice(cut), slice(cut, None))
        ]
        assert added(*parts) == counted(event, np.array(x, float), np.array(y, float))


def test_the_first_counts_are_added_to_none():
    assert added({"x": {"runs": 0}, "y": {"runs": 0}}, named((1, 2), (3, 4))) == named((1, 2), (3, 4))


# Known truth: every bound by hand


def test_a_game_is_the_log_odds_of_the_rate_that_is_certain():
    result = judged((30, 10, 60), (10, 50, 40))
    by_hand = logit(beta.ppf(0.05, 80, 21))  # 80 of 100 guesses are right
    assert result.measured.epsilon == pytest.approx(by_hand, abs=1e-12)
    assert by_hand > 0.9
    assert result.counts == {
        "x": {"runs": 100, "guessed_x": 30, "guessed_y": 10},
        "y": {"runs": 100, "guessed_x": 10, "guessed_y": 50},
    }
    assert (result.bound, result.verdict, result.confidence) == ("guessing game", "not refuted", 0.95)
    assert result.event == "y if output[0] >= 13, x if output[0] <= 12"


@pytest.mark.parametrize("distance", [1, 3])
def test_a_game_forgives_its_delta_where_guesses_are_made(distance):
    delta = 0.02
    result = judged((30, 10, 60), (10, 50, 40), claim=ApproxDP(1, delta), distance=distance)
    rate, guessed = beta.ppf(0.045, 80, 21), beta.ppf(0.005, 100, 101)  # nine tenths of the error, and one
    epsilon = result.measured.epsilon
    right = expit(distance * epsilon)
    forgiven = delta * sum(math.exp(step * epsilon) for step in range(distance))  # along the chain of databases
    assert right + forgiven / guessed * (1 - right) == pytest.approx(rate, abs=1e-9)
    assert result.measured == ApproxDP(epsilon, delta)
    assert 0.5 / distance < epsilon < judged((30, 10, 60), (10, 50, 40), distance=distance).measured.epsilon
    assert result.bound == "guessing game"


@pytest.mark.parametrize(("x", "y"), [((0, 4, 36), (0, 38, 12)), ((38, 0, 12), (4, 0, 36))])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_a_rectangle_is_the_ratio_of_the_two_limits_that_are_certain(x, y, delta):
    result = judged(x, y, method=Rectangle, claim=ApproxDP(1, delta) if delta else PureDP(1))
    each = 0.05 / 2 / 2  # two regions, two limits
    by_hand = math.log((beta.ppf(each, 38, 13) - delta) / beta.ppf(1 - each, 5, 36))
    assert result.measured.epsilon == pytest.approx(by_hand, abs=1e-9)
    assert by_hand > 0.7
    assert (result.bound, result.verdict) == ("Clopper-Pearson rectangle", "no power")
    assert {name: counts["runs"] for name, counts in result.counts.items()} == {"x": sum(x), "y": sum(y)}


def test_a_rectangle_forgives_a_group_the_chain_of_deltas():
    epsilon = judged((0, 4, 36), (0, 38, 12), method=Rectangle, claim=ApproxDP(1, 0.05), distance=2).measured.epsilon
    low, high = beta.ppf(0.0125, 38, 13), beta.ppf(0.9875, 5, 36)
    assert low == pytest.approx(high * math.exp(2 * epsilon) + 0.05 * (1 + math.exp(epsilon)), abs=1e-9)


@pytest.mark.parametrize(("event", "share"), [(ONE, 1), (BOTH, 2)])
def test_a_region_is_the_shift_between_two_limits_that_are_certain(event, share):
    """A rule with two sides has two regions, which share the error even where one of them was never met."""
    result = judged((0, 309, 691), (0, 692, 308), method=Region, event=event)
    each = 0.05 / share / 2
    by_hand = ndtri(beta.ppf(each, 692, 309)) - ndtri(beta.ppf(1 - each, 310, 691))
    assert result.measured.mu == pytest.approx(by_hand, abs=1e-9)
    assert result.bound == "Gaussian trade-off of a Clopper-Pearson rectangle"
    group = judged((0, 309, 691), (0, 692, 308), method=Region, event=event, distance=4)
    assert group.measured.mu == pytest.approx(by_hand / 4, abs=1e-9)


def test_the_better_of_two_regions_counts():
    high = judged((50, 3, 47), (45, 60, 0), method=Region)
    assert high.measured.mu == pytest.approx(float(gaussian_lower(60, 105, 3, 100, confidence=0.975)))
    low = judged((60, 45, 0), (3, 50, 47), method=Region)
    assert low.measured.mu == pytest.approx(float(gaussian_lower(60, 105, 3, 100, confidence=0.975)))
    assert high.measured.mu > 1


@pytest.mark.parametrize("toward", ["y", "x"])
def test_a_divergence_is_the_gap_between_two_expectations_that_are_certain(toward):
    """Order 1, Donsker and Varadhan: each expectation is lowered by the inequality of Maurer and Pontil."""
    score = WEIGHTS.rule.weights
    event = Event(cell(0), WeightRule(WEIGHTS.rule.edges, score, 1.0, toward))
    first, second = (100, 300, 600, 2000), (2500, 700, 200, 100)
    x, y = (second, first) if toward == "y" else (first, second)
    log_term = math.log(2 / 0.025)

    def lowered(values, counts):
        runs = sum(counts)
        seen = np.repeat(values, counts)
        return (
            seen.mean()
            - math.sqrt(2 * seen.var(ddof=1) * log_term / runs)
            - 7 * np.ptp(values) * log_term / (3 * (runs - 1))
        )

    by_hand = lowered(score, first) + -math.log(-lowered(-np.exp(score), second))
    result = judged(x, y, method=Divergence, event=event)
    assert result.measured.rho == pytest.approx(by_hand, abs=1e-9)
    assert by_hand > 0.5
    assert result.bound == "variational Renyi divergence"
    group = judged(x, y, method=Divergence, event=event, distance=3)
    assert group.measured.rho == pytest.approx(by_hand / 9, abs=1e-9)


@pytest.mark.parametrize(("event", "share"), [(ONE, 1), (BOTH, 2)])
def test_a_divergence_of_one_event_is_that_of_two_coins(event, share):
    result = judged((0, 100, 900), (0, 700, 300), method=Divergence, event=event)
    p, q = beta.ppf(0.05 / share / 2, 700, 301), beta.ppf(1 - 0.05 / share / 2, 101, 900)
    relative = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    orders = np.linspace(1.001, 50, 20_000)
    renyi = np.log(p**orders * q ** (1 - orders) + (1 - p) ** orders * (1 - q) ** (1 - orders)) / (orders - 1) / orders
    assert result.measured.rho == pytest.approx(max(relative, renyi.max()), rel=1e-4)
    assert judged((0, 100, 900), (0, 700, 300), method=Divergence, event=event, distance=2).measured.rho == (
        pytest.approx(result.measured.rho / 4)
    )


# Properties


@given(GUESSED, GUESSED, CONFIDENCES, DISTANCES)
def test_a_game_is_that_of_the_bounds(x, y, confidence, distance):
    result = judged(x, y, confidence=confidence, distance=distance)
    correct, guessed = x[0] + y[1], x[0] + x[1] + y[0] + y[1]
    loss = float(guessing_game_lower(correct, guessed, confidence=confidence))
    assert result.measured == PureDP(loss / distance)
    assert result.ceiling == game_ceiling(sum(x) + sum(y), confidence=confidence, distance=distance)
    assert result.detectable == game_detectable(1.0, guessed, confidence=confidence, distance=distance)
    swapped = judged((y[1], y[0], y[2]), (x[1], x[0], x[2]), confidence=confidence, distance=distance)
    assert (swapped.measured, swapped.verdict) == (result.measured, result.verdict)


@given(GUESSED, GUESSED, CONFIDENCES, DISTANCES, DELTAS, st.floats(1, 1000), st.floats(0.5, 0.99))
def test_other_games_are_those_of_the_bounds(x, y, confidence, distance, delta, guesses, accuracy):
    correct, guessed, runs = x[0] + y[1], x[0] + x[1] + y[0] + y[1], sum(x) + sum(y)
    common = {"confidence": confidence, "delta": delta, "distance": distance}
    claim = ApproxDP(1.0, delta)
    game = Game(claim, distance, confidence)
    assert game.lower(BOTH, named(x, y)) == approx_game_lower(correct, guessed, runs, **common)
    sequential = AnytimeGame(claim, distance, confidence, (guesses, accuracy))
    expected = anytime_game_lower(correct, guessed - correct, runs, expected=(guesses, accuracy), **common)
    assert sequential.lower(BOTH, named(x, y)) == expected
    assert sequential.after(7) is sequential  # no look costs more than another


@settings(max_examples=40)  # the detectable loss enumerates all counts
@given(GUESSED, GUESSED, CONFIDENCES, DISTANCES)
def test_a_rectangle_is_that_of_the_bounds(x, y, confidence, distance):
    result = judged(x, y, method=Rectangle, confidence=confidence, distance=distance)
    half = (1 + confidence) / 2
    losses = [two_sample_lower(y[1], sum(y), x[1], sum(x), confidence=half)]
    losses.append(two_sample_lower(x[0], sum(x), y[0], sum(y), confidence=half))
    assert result.measured.epsilon == pytest.approx(float(max(losses)) / distance, rel=1e-9)
    ceiling = rectangle_ceiling(sum(x), sum(y), confidence=half, distance=distance)
    assert result.ceiling == pytest.approx(ceiling, rel=1e-9)
    seen = [x[guess] / max(1, sum(x)) + y[guess] / max(1, sum(y)) for guess in (1, 0)]
    detectable = [
        rectangle_detectable(1.0, *runs, confidence=half, distance=distance, share=share)
        for runs, share in zip(((sum(x), sum(y)), (sum(y), sum(x))), seen, strict=True)
    ]
    assert result.detectable == pytest.approx(min(detectable), rel=1e-9)
    swapped = judged((y[1], y[0], y[2]), (x[1], x[0], x[2]), method=Rectangle, confidence=confidence, distance=distance)
    assert (swapped.measured, swapped.verdict) == (result.measured, result.verdict)


@given(GUESSED, GUESSED, CONFIDENCES, DISTANCES)
def test_regions_and_divergences_are_those_of_the_bounds(x, y, confidence, distance):
    both = [(y[1], sum(y), x[1], sum(x)), (x[0], sum(x), y[0], sum(y))]
    one = [(y[1], y[1] + y[2], x[1], x[1] + x[2])]
    for event, counts, each, regions in (
        (BOTH, named(x, y), (1 + confidence) / 2, both),
        (ONE, named((0, *x[1:]), (0, *y[1:])), confidence, one),
    ):
        shift = max(float(gaussian_lower(*region, confidence=each)) for region in regions)
        assert Region(GaussianDP(1), distance, confidence).lower(event, counts) == pytest.approx(shift / distance)
        rho = max(renyi_event_lower(*region, confidence=each) for region in regions)
        assert Divergence(ZCDP(1), distance, confidence).lower(event, counts) == pytest.approx(rho / distance**2)


@given(BINS, BINS, CONFIDENCES, DISTANCES, st.sampled_from([1.0, 1.5, 4.0]), st.sampled_from(["x", "y"]))
def test_a_likelihood_ratio_is_that_of_the_bounds(x, y, confidence, distance, order, toward):
    event = Event(cell(0), WeightRule(WEIGHTS.rule.edges, WEIGHTS.rule.weights, order, toward))
    likely, other = (y, x) if toward == "y" else (x, y)
    rho = renyi_variational_lower(event.rule.weights, likely, other, order=order, confidence=confidence)
    assert Divergence(ZCDP(1), distance, confidence).lower(event, binned(x, y)) == rho / distance**2


@settings(max_examples=50)
@given(MANY, MANY, BINS, BINS, CONFIDENCES, DISTANCES, DELTAS, st.sampled_from([1.0, 1.25, 4.0]))
def test_no_counts_exceed_the_ceiling(x, y, bins_x, bins_y, confidence, distance, delta, order):
    for claim in (PureDP(1), ApproxDP(1, delta)):
        for method in (Game, AnytimeGame, Rectangle):
            how = method(claim, distance, confidence)
            assert how.lower(BOTH, named(x, y)) <= how.ceiling(BOTH, named(x, y)) + 1e-9
    for method in (Region, Divergence):
        how = method(CLAIMS[method], distance, confidence)
        for event in (ONE, BOTH):
            counts = named(x, y) if event is BOTH else named((0, *x[1:]), (0, *y[1:]))
            assert how.lower(event, counts) <= how.ceiling(event, counts) + 1e-9
    for toward in ("x", "y"):
        wide = np.array([-9.0, -1.0, 0.5, 7.0])  # beyond the range that a ceiling for any score would try
        event = Event(cell(0), WeightRule(WEIGHTS.rule.edges, wide, order, toward))
        assert how.lower(event, binned(bins_x, bins_y)) <= how.ceiling(event, binned(bins_x, bins_y)) + 1e-9


@pytest.mark.parametrize(
    ("method", "claim"),
    [
        (Game, PureDP(1)),
        (Game, ApproxDP(1, 0.01)),
        (AnytimeGame, PureDP(1)),
        (AnytimeGame, ApproxDP(1, 0.01)),
        (Rectangle, PureDP(1)),
        (Region, GaussianDP(1)),
        (Divergence, ZCDP(0.5)),
    ],
)
def test_runs_that_nothing_confuses_reach_the_ceiling(method, claim):
    how = method(claim, 1, 0.95)
    counts = named((300, 0), (0, 300))
    assert how.lower(BOTH, counts) == pytest.approx(how.ceiling(BOTH, counts), rel=1e-9)
    assert how.ceiling(BOTH, counts) > 2.5
    if method is not Divergence:
        assert how.lower(BOTH, named((299, 1), (0, 300))) < how.ceiling(BOTH, counts)


@pytest.mark.parametrize("method", [Game, Rectangle])
def test_a_group_shares_its_loss(method):
    alone = judged((90, 5, 5), (5, 90, 5), method=method)
    group = judged((90, 5, 5), (5, 90, 5), method=method, distance=4)
    assert group.measured.epsilon == pytest.approx(alone.measured.epsilon / 4, rel=1e-9)
    assert group.ceiling == pytest.approx(alone.ceiling / 4, rel=1e-9)
    assert (alone.distance, group.distance) == (1, 4)
    assert alone.verdict == "violated" != group.verdict


# What would have been seen: the power at the detectable loss


@pytest.mark.parametrize("distance", [1, 3])
def test_a_game_sees_what_it_calls_detectable_in_four_of_five_audits(distance):
    runs, promised = 60, PureDP(0.8)
    seen = [judged((k, 0), (runs - k, 0), claim=promised, distance=distance) for k in range(runs + 1)]
    detectable = seen[0].detectable
    assert {result.detectable for result in seen} == {detectable}
    chance = binom.pmf(np.arange(runs + 1), runs, expit(detectable * distance))
    power = sum(p for p, result in zip(chance, seen, strict=True) if result.verdict == "violated")
    assert power == pytest.approx(0.8, abs=1e-9)
    assert seen[-1].measured.epsilon == pytest.approx(seen[-1].ceiling, rel=1e-9)  # every guess was right


@pytest.mark.parametrize("method", [Game, AnytimeGame])
@pytest.mark.parametrize(("claim", "distance"), [(ApproxDP(0.5, 0.02), 1), (ApproxDP(0.2, 0.01), 3), (PureDP(0.5), 2)])
def test_other_games_do_too_when_what_is_forgiven_falls_on_guesses(method, claim, distance):
    """Law: a guess is right as in randomized response, and besides with the delta of the pair, if a guess is made."""
    guessed, runs = 200, 300
    how = method(claim, distance, 0.95)
    counts = [named((k, 0, 50), (guessed - k, 0, 50)) for k in range(guessed + 1)]
    detectable = how.detectable(BOTH, counts[0])
    pair = (ApproxDP(detectable, claim.delta) if isinstance(claim, ApproxDP) else PureDP(detectable)).group(distance)
    right = expit(pair.epsilon)
    right += getattr(pair, "delta", 0.0) * runs / guessed * (1 - right)
    chance = binom.pmf(np.arange(guessed + 1), guessed, right)
    power = sum(p for p, count in zip(chance, counts, strict=True) if how.lower(BOTH, count) > claim.epsilon)
    assert power == pytest.approx(0.8, abs=1e-8)
    assert claim.epsilon < detectable < 10 * claim.epsilon


@pytest.mark.parametrize(("claim", "distance"), [(PureDP(0.5), 1), (ApproxDP(0.5, 0.1), 1), (ApproxDP(0.2, 0.02), 2)])
def test_a_rectangle_sees_what_it_calls_detectable(claim, distance):
    """Law: the event's two probabilities add up to what was seen, and are as far apart as the loss allows."""
    x, y = 30, 25
    how = Rectangle(claim, distance, 0.95)
    detectable = how.detectable(ONE, named((0, 9, 21), (0, 20, 5)))
    assert claim.epsilon < detectable < math.inf
    pair = (ApproxDP(detectable, claim.delta) if isinstance(claim, ApproxDP) else PureDP(detectable)).group(distance)
    share, forgiven = 9 / 30 + 20 / 25, getattr(pair, "delta", 0.0)
    rare = (share - forgiven) / (1 + math.exp(pair.epsilon))
    likely = rare * math.exp(pair.epsilon) + forgiven
    if likely > 1:
        likely, rare = 1.0, (1 - forgiven) * math.exp(-pair.epsilon)

    def needed(a):
        """Return how often at least the event must be met on y if it is met `a` times on x."""
        low, high = -1, y + 1
        while high - low > 1:
            b = (low + high) // 2
            shown = how.lower(ONE, named((0, a, x - a), (0, b, y - b))) > claim.epsilon
            low, high = (low, b) if shown else (b, high)
        return high

    power = sum(binom.pmf(a, x, rare) * binom.sf(needed(a) - 1, y, likely) for a in range(x + 1))
    assert power == pytest.approx(0.8, abs=1e-6)


AUDITS = 2000  # a share of 0.8 of them strays by 0.035 with probability below 1e-4 (binomial)


@pytest.mark.parametrize(
    ("mu", "rare", "runs_x", "runs_y", "distance"),
    [(1.0, 0.3, 10_000, 10_000, 1), (1.0, 0.3, 300, 3000, 1), (0.3, 0.5, 5000, 4000, 3), (2.0, 0.1, 500, 500, 1)],
)
def test_a_region_sees_what_it_calls_detectable(mu, rare, runs_x, runs_y, distance):
    """Law: two normal laws, beyond a threshold that the rarer one reaches as often as was seen."""
    rng = np.random.default_rng(5)
    for how, budget in (
        (Region(GaussianDP(mu), distance, 0.95), mu),
        (Divergence(ZCDP(mu**2 / 2), distance, 0.95), mu**2 / 2),
    ):
        seen = round(rare * runs_x)
        found = how.detectable(ONE, named((0, seen, runs_x - seen), (0, 0, runs_y)))
        shift = distance * (found if isinstance(how, Region) else math.sqrt(2 * found))

        def share(shift, audits=AUDITS, how=how, budget=budget):
            a = rng.binomial(runs_x, rare, audits)
            b = rng.binomial(runs_y, norm.cdf(ndtri(rare) + shift), audits)
            if isinstance(how, Region):
                return np.mean(gaussian_lower(b, runs_y, a, runs_x, confidence=0.95) / distance > budget)
            low, high = rectangle(b, runs_y, a, runs_x, confidence=0.95)
            needed = np.array([_coins(p, q) for p, q in zip(low, high, strict=True)])
            return np.mean(needed / distance**2 > budget)

        # 0.025 besides for the normal approximation to counts.
        assert share(shift) == pytest.approx(0.8, abs=0.06)
        assert share(shift - (shift - distance * mu) / 2) < 0.72  # negative control: half of what is beyond the promise


def _coins(p, q):
    """Return the largest divergence over its order between two coins, on a coarse grid of orders, both ways."""
    if p <= q:
        return 0.0
    orders = np.array([1.0001, 1.1, 1.25, 1.5, 2, 3, 4, 6, 9])
    return max(
        float(
            np.max(
                np.log(a**orders * b ** (1 - orders) + (1 - a) ** orders * (1 - b) ** (1 - orders))
                / (orders - 1)
                / orders
            )
        )
        for a, b in ((p, q), (q, p))
    )


@pytest.mark.parametrize(("rho", "runs_x", "runs_y", "distance"), [(0.5, 20_000, 20_000, 1), (0.02, 9000, 6000, 3)])
def test_a_divergence_sees_what_it_calls_detectable(rho, runs_x, runs_y, distance):
    """Law: two normal laws, weighed by their likelihood ratio, clipped where that shows most."""
    how = Divergence(ZCDP(rho), distance, 0.95)
    found = how.detectable(WEIGHTS, binned((0, 0, 0, runs_x), (0, 0, 0, runs_y)))
    assert rho < found < 2 * rho
    rng, powers = np.random.default_rng(6), []
    shift = distance * math.sqrt(2 * found)
    for clip in (0.5, 1.0, 2.0, 3.0, 4.0):
        edges = np.linspace(-clip, clip, 63)
        values = np.concatenate([[-clip], (edges[:-1] + edges[1:]) / 2, [clip]])
        event = Event(cell(0), WeightRule(edges, values))
        law = [np.diff(norm.cdf((edges - side * shift**2 / 2) / shift), prepend=0, append=1) for side in (-1, 1)]
        shown = [
            how.lower(event, binned(rng.multinomial(runs_x, law[0]), rng.multinomial(runs_y, law[1])))
            for _ in range(500)
        ]
        powers.append(np.mean(np.array(shown) > rho))
    # Of 500 audits, a share of 0.8 strays by 0.07 with probability below 1e-4.
    assert max(powers) == pytest.approx(0.8, abs=0.07)
    assert min(powers) < 0.6  # negative control: a clip that does not suit


# Coverage, exact: every count that can occur, weighted by its probability

K = np.arange(13)  # events in 12 runs on either database


@pytest.fixture(scope="module")
def forced():
    """What all counts, on y and on x, force at even odds: misses are then common enough to be seen."""
    how = Rectangle(PureDP(1), 1, 0.5)
    return np.array([[how.lower(BOTH, named((12 - b, b), (12 - a, a))) for b in K] for a in K])


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_rectangle_covers_a_mechanism_at_its_promise(forced, epsilon):
    chance = np.outer(binom.pmf(K, 12, expit(epsilon)), binom.pmf(K, 12, expit(-epsilon)))  # randomized response
    assert 0 < chance[forced > epsilon].sum() <= 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = np.log(np.maximum(K[:, None] / K, (12 - K) / (12 - K[:, None])))
    assert chance[seen > epsilon].sum() > 0.5  # negative control: the ratios themselves


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("event", [ONE, BOTH])
def test_a_region_covers_normal_noise_at_its_promise(mu, event):
    how = Region(GaussianDP(1), 1, 0.5)
    sides = (lambda k: (12 - k, k)) if event is BOTH else (lambda k: (0, k, 12 - k))
    shown = np.array([[how.lower(event, named(sides(b), sides(a))) for b in K] for a in K])
    chance = np.outer(binom.pmf(K, 12, norm.cdf(mu / 2)), binom.pmf(K, 12, norm.cdf(-mu / 2)))
    assert 0.001 < chance[shown > mu].sum() <= 0.5
    seen = ndtri(np.clip(K[:, None] / 12, 1e-9, 1)) - ndtri(np.clip(K / 12, 0, 1 - 1e-9))
    assert chance[seen > mu].sum() > 0.35  # negative control: the rates themselves


@pytest.mark.parametrize("distance", [1, 2])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_game_covers_each_step_of_a_group(epsilon, distance):
    runs = 80
    how = Game(PureDP(1), distance, 0.95)
    forced = np.array([how.lower(BOTH, named((k, 0), (runs - k, 0))) for k in range(runs + 1)])
    chance = binom.pmf(np.arange(runs + 1), runs, expit(distance * epsilon))
    missed = chance[forced > epsilon].sum()
    assert missed <= 0.05
    assert missed > 0.01  # and not by showing nothing
    if distance > 1:
        assert chance[distance * forced > epsilon].sum() > 0.1  # negative control: a loss that is not shared


@pytest.mark.parametrize("distance", [1, 2])
def test_the_game_covers_what_is_forgiven(distance):
    """The worst law: with the delta of the pair the output tells the truth, else it is randomized response."""
    epsilon, delta, runs = 0.5, 0.05, 120
    pair = ApproxDP(epsilon, delta).group(distance)
    right = pair.delta + (1 - pair.delta) * expit(pair.epsilon)
    chance = binom.pmf(np.arange(runs + 1), runs, right)
    counts = [named((k, 0), (runs - k, 0)) for k in range(runs + 1)]
    missed = {
        claim: sum(
            p
            for p, count in zip(chance, counts, strict=True)
            if Game(claim, distance, 0.95).lower(BOTH, count) > epsilon
        )
        for claim in (ApproxDP(1, delta), PureDP(1))
    }
    assert 0.005 < missed[ApproxDP(1, delta)] <= 0.05
    assert missed[PureDP(1)] > 0.1  # negative control: nothing is forgiven


# Verdicts


@pytest.mark.parametrize(
    ("x", "y", "options", "verdict"),
    [
        ((95, 5), (5, 95), {}, "violated"),
        ((60, 40), (40, 60), {}, "not refuted"),
        ((6, 4), (4, 6), {}, "no power"),
        ((10, 0), (0, 10), {}, "violated"),
        ((60, 40), (40, 60), {"support": WITNESS}, "violated"),
        ((0, 0), (0, 0), {"support": WITNESS}, "violated"),
        ((0, 0, 50), (0, 0, 50), {}, "no power"),
        ((0, 0), (0, 0), {}, "no power"),
        ((95, 5), (5, 95), {"method": Rectangle}, "violated"),
        ((0, 0), (0, 0), {"method": Rectangle}, "no power"),
        ((120, 80), (80, 120), {"method": Rectangle}, "not refuted"),
        ((120, 80), (80, 120), {"method": Rectangle, "support": WITNESS}, "violated"),
        ((95, 5), (5, 95), {"claim": ApproxDP(1, 0.1)}, "violated"),
        ((95, 5), (5, 95), {"claim": ApproxDP(1, 0.8)}, "no power"),
        ((95, 5), (5, 95), {"method": AnytimeGame}, "violated"),
        ((600, 400), (400, 600), {"method": AnytimeGame}, "not refuted"),
        ((0, 0), (0, 0), {"method": AnytimeGame}, "no power"),
        ((95, 5), (5, 95), {"method": Region}, "violated"),
        ((60, 40), (40, 60), {"method": Region}, "not refuted"),
        ((6, 4), (4, 6), {"method": Region}, "no power"),
        ((0, 0), (0, 0), {"method": Region}, "no power"),
        ((95, 5), (5, 95), {"method": Divergence}, "violated"),
        ((3000, 2000), (2000, 3000), {"method": Divergence}, "not refuted"),
        ((6, 4), (4, 6), {"method": Divergence}, "no power"),
        ((0, 0), (0, 0), {"method": Divergence}, "no power"),
        ((0, 0), (0, 0), {"method": Divergence, "support": WITNESS}, "violated"),
        ((9000, 800, 100, 0), (0, 100, 800, 9000), {"method": Divergence, "event": WEIGHTS}, "violated"),
        ((3000, 2500, 2400, 2000), (2000, 2400, 2500, 3000), {"method": Divergence, "event": WEIGHTS}, "not refuted"),
        ((0, 0, 0, 1), (0, 0, 0, 1), {"method": Divergence, "event": WEIGHTS}, "no power"),
    ],
)
def test_verdicts(x, y, options, verdict):
    result = judged(x, y, **options)
    assert result.verdict == verdict
    assert result.support is options.get("support")
    assert type(result.measured) is type(result.claim)


def test_nothing_seen_shows_nothing():
    result = judged((0, 0, 50), (0, 0, 50))
    assert (result.measured.epsilon, result.detectable) == (0, math.inf)
    assert result.ceiling > 3
    for method in CLAIMS:
        empty = judged((0, 0), (0, 0), method=method)
        assert (empty.measured.budget, empty.ceiling, empty.detectable) == (0, 0, math.inf)


def test_an_honest_claim_under_the_other_relation_is_held_against_its_own():
    how = Game(PureDP(1.0, "replace_one"), 1, 0.9)
    rest = REST | {"relation": "replace_one", "confidence": 0.9}
    counts = counted(BOTH, np.repeat([12.0, 13.0], [60, 40]), np.repeat([12.0, 13.0], [40, 60]))
    result = judge(time.perf_counter() - 5, how, BOTH, counts, support=None, **rest)
    assert result.measured.relation == "replace_one"
    assert 5 <= result.seconds < 600
    assert {name: getattr(result, name) for name in rest} == rest
    # Counts of numpy arrays are plain numbers by now.
    values = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert AuditResult.from_dict(values).to_dict() == result.to_dict()


@pytest.mark.parametrize(
    ("claim", "method"),
    [(PureDP(1), Game), (ApproxDP(1, 1e-6), Game), (ZCDP(0.5), Divergence), (GaussianDP(1), Region)],
)
def test_the_promise_says_how_it_is_measured(claim, method):
    how = method_for(claim, 3, 0.9)
    assert type(how) is method
    assert (how.claim, how.distance, how.confidence) == (claim, 3, 0.9)
    assert how.coins == (method is Game)


@pytest.mark.parametrize("method", [Region, Divergence])
def test_every_look_has_its_share_of_the_error(method):
    how = method(CLAIMS[method], 2, 0.95)
    for look in (1, 2, 9):
        assert how.after(look) == method(CLAIMS[method], 2, look_confidence(look, 0.95))
    assert sum(1 - how.after(look).confidence for look in range(1, 10_000)) <= 0.05


# Witnesses of an unbounded loss


class Known:
    """A mechanism whose law is known, and which remembers the pair it was asked about."""

    def __init__(self, law):
        self.law = law

    def __call__(self, data, size, rng):
        return rng.random(size)

    def exact_loss(self, pair):
        self.asked = pair
        return self.law


@pytest.mark.parametrize("claim", [PureDP(1), ZCDP(1), GaussianDP(1), ApproxDP(1, 1e-6)])
@pytest.mark.parametrize(
    ("p", "q", "witness"),
    [
        ([0.5, 0.5, 0.0], [0.5, 0.25, 0.25], ("y", 0.25)),
        ([0.5, 0.25, 0.25], [0.5, 0.5, 0.0], ("x", 0.25)),
        ([0.5, 0.5, 0.0], [0.75, 0.0, 0.25], ("x", 0.5)),
        ([0.75, 0.25, 0.0], [0.25, 0.0, 0.75], ("y", 0.75)),
        ([0.5, 0.5, 0.0], [0.5, 0.0, 0.5], ("x", 0.5)),  # as likely on either: x comes first
        ([1.0, 0.0], [0.0, 1.0], ("x", 1.0)),
        ([0.5, 0.5], [0.25, 0.75], None),
        ([1.0 - 1e-300, 1e-300], [1.0, 1e-300], None),
    ],
)
def test_a_known_law_tells_what_one_database_only_can_give(p, q, witness, claim):
    mechanism = Known(loss_distribution(p, q))
    found = support_witness(mechanism, PAIR, claim)
    assert mechanism.asked is PAIR
    if witness is None:
        assert found is None
        assert judged((60, 40), (40, 60), support=found).verdict == "not refuted"
    else:
        assert found == {"order": f"possible on {witness[0]} only", "probability": pytest.approx(witness[1])}
        assert judged((60, 40), (40, 60), support=found).verdict == "violated"
        json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("claim", [PureDP(1), ZCDP(1), GaussianDP(1), ApproxDP(1, 0)])
def test_a_tiny_mass_is_a_witness(claim):
    law = LossDistribution(np.array([0.0]), np.array([0.0]), missing_mass=5e-324)
    assert support_witness(Known(law), PAIR, claim) == {"order": "possible on y only", "probability": 5e-324}


@pytest.mark.parametrize(("mass", "found"), [(1e-6, False), (1.0001e-6, True), (0.5, True)])
def test_approximate_privacy_forgives_its_delta(mass, found):
    law = loss_distribution([1 - mass, mass], [1.0, 0.0])
    assert (support_witness(Known(law), PAIR, ApproxDP(1, 1e-6)) is not None) == found


def test_a_group_is_forgiven_what_its_chain_adds_up_to():
    claim = ApproxDP(1.0, 1e-6)
    most = 1e-6 * (1 + math.e + math.e**2)
    for mass, found in ((0.999 * most, False), (1.001 * most, True)):
        law = loss_distribution([1 - mass, mass], [1.0, 0.0])
        assert (support_witness(Known(law), GROUP, claim) is not None) == found


def test_what_has_no_counterpart_may_be_known_where_the_law_is_not():
    class Half(Known):
        def support_masses(self, pair):
            return self.masses

    half = Half(None)
    for masses, order, probability in (((0.25, 0.5), "y", 0.5), ((0.25, 0.125), "x", 0.25), ((0.5, 0.5), "x", 0.5)):
        half.masses = masses
        witness = support_witness(half, PAIR, PureDP(1))
        assert witness == {"order": f"possible on {order} only", "probability": probability}
    half.masses = (1e-7, 0.0)
    assert support_witness(half, PAIR, ApproxDP(1, 1e-6)) is None
    half.masses = (0.0, 0.0)
    assert support_witness(half, PAIR, PureDP(1)) is None
    half.law, half.masses = loss_distribution([0.5, 0.5], [0.25, 0.75]), (0.5, 0.5)  # the law knows better
    assert support_witness(half, PAIR, PureDP(1)) is None


def test_a_law_that_is_not_known_is_no_witness():
    def count(data, size, rng):
        return rng.random(size)

    assert support_witness(count, PAIR, PureDP(1)) is None
    assert support_witness(Known(None), PAIR, PureDP(1)) is None
    count.exact_loss = loss_distribution([1.0, 0.0], [0.0, 1.0])  # a law, not a way to ask for one
    assert support_witness(count, PAIR, PureDP(1)) is None


def test_an_error_in_the_law_is_not_hidden():
    class Wrong(Known):
        def exact_loss(self, pair):
            raise ZeroDivisionError("the law is wrong")

    with pytest.raises(ZeroDivisionError, match="the law is wrong"):
        support_witness(Wrong(None), PAIR, PureDP(1))


# What can be asked


@pytest.mark.parametrize("name", attack_names())
def test_an_attack_by_its_name(name):
    attack = check_question(PureDP(1.0), "add_remove", name, None, 0.95)
    assert isinstance(attack, Attack)
    assert attack.statistics is None
    everything = Attack()
    families = {"threshold": ("threshold",), "cell": ("cell",)}.get(name, everything.families)
    looks = everything.looks if name in ("auto", "threshold", "cell") else (name.replace("_", " "),)
    assert (attack.families, attack.looks) == (families, looks)


def test_an_attack_of_one_s_own_and_a_registered_event():
    attack = Attack(families=("cell",))
    assert check_question(PureDP(1.0, "replace_one"), "replace_one", attack, Event.at_least(0, 13), 0.5) is attack
    assert check_question(ZCDP(1.0), "add_remove", attack, WEIGHTS, 0.5) is attack


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.5), GaussianDP(1.0)])
def test_the_way_out_leads_out(claim):
    moved = NeighborPair.move_people([5, 7], source=0, target=1)
    with pytest.raises(ValueError, match=r'claim\.under\("replace_one"\), or pair\.under\("add_remove"\)'):
        check_question(claim, moved.relation, "auto", None, 0.95)
    check_question(claim.under("replace_one"), moved.relation, "auto", None, 0.95)
    check_question(claim, moved.under("add_remove").relation, "auto", None, 0.95)
    assert moved.under("add_remove").distance == 2


ANY_CLAIM = "claim must be one of PureDP, ApproxDP, GaussianDP, ZCDP"


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"claim": 1.0}, TypeError, f"{ANY_CLAIM}, got float"),
        ({"claim": None}, TypeError, f"{ANY_CLAIM}, got NoneType"),
        ({"claim": ZCDP}, TypeError, f"{ANY_CLAIM}, got type"),
        ({"claim": PureDP(0.0)}, ValueError, r"must have a positive and finite epsilon, got 0\.0"),
        ({"claim": PureDP(math.inf)}, ValueError, "must have a positive and finite epsilon, got inf"),
        ({"claim": ApproxDP(0.0, 0.1)}, ValueError, r"must have a positive and finite epsilon, got 0\.0"),
        ({"claim": ApproxDP(1.0, 1.0)}, ValueError, r"must have a delta in \[0, 1\), got 1\.0"),
        ({"claim": ZCDP(0.0)}, ValueError, r"must have a positive and finite rho, got 0\.0"),
        ({"claim": GaussianDP(math.inf)}, ValueError, "must have a positive and finite mu, got inf"),
        (
            {"relation": "replace_one"},
            ValueError,
            r'the pair is replace_one and the claim add_remove: audit claim\.under\("replace_one"\), or pair',
        ),
        (
            {"claim": PureDP(1.0, "replace_one")},
            ValueError,
            "the pair is add_remove and the claim replace_one: build the pair with move_people, or state the claim",
        ),
        ({"confidence": 0}, ValueError, r"confidence must be in \(0, 1\), got 0"),
        ({"confidence": 1.0}, ValueError, r"confidence must be in \(0, 1\), got 1\.0"),
        ({"confidence": 95}, ValueError, r"confidence must be in \(0, 1\), got 95"),
        ({"confidence": math.nan}, ValueError, r"confidence must be in \(0, 1\), got nan"),
        ({"event": "output[0] >= 13"}, TypeError, "event must be an Event, got str"),
        ({"event": lambda outputs: outputs > 13}, TypeError, "event must be an Event, got function"),
        ({"event": WEIGHTS}, ValueError, "weighs likelihood ratios bounds a rho, got a claim of epsilon"),
        ({"event": WEIGHTS, "claim": GaussianDP(1)}, ValueError, "bounds a rho, got a claim of mu"),
        ({"attack": "best"}, ValueError, "attack must be an Attack or one of auto, threshold, cell, .*, got 'best'"),
        ({"attack": ""}, ValueError, "trained, got ''"),
        ({"attack": None}, TypeError, "attack must be a name or an Attack, got NoneType"),
        ({"attack": Attack}, TypeError, "attack must be a name or an Attack, got type"),
    ],
)
def test_what_cannot_be_asked_is_refused(changes, error, words):
    asked = {"claim": PureDP(1.0), "relation": "add_remove", "attack": "auto", "event": None, "confidence": 0.95}
    check_question(**asked)
    with pytest.raises(error, match=words) as caught:
        check_question(**asked | changes)
    assert "\n" not in str(caught.value)
