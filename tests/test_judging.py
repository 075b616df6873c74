"""From guesses to a verdict: the numbers are those of the theorems, the question is one that can be asked."""

from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import beta, binom

from audit.attacks import Attack
from audit.bounds import guessing_game_lower, two_sample_lower
from audit.claims import PureDP
from audit.events import Event
from audit.exact import LossDistribution, loss_distribution
from audit.judging import GAME, RECTANGLE, check_question, judge, support_witness
from audit.neighbors import NeighborPair
from audit.planning import game_ceiling, game_detectable, rectangle_ceiling, rectangle_detectable
from audit.results import AuditResult

REST = {
    "mechanism": "count",
    "event": "y if output[0] >= 13",
    "searched": "thresholds on output[0]",
    "pair": "1 person added to cell 0",
    "relation": "add_remove",
    "unit": "person",
    "adjacency": "verified",
    "size": 2000,
    "selection": 600,
    "seed_entropy": 42,
    "provenance": {},
}
PAIR = NeighborPair.add_people([5, 7], cell=0)
WITNESS = {"order": "possible on x only", "probability": 0.25}


def guesses(named_x, named_y, neither=0):
    return np.repeat([-1, 1, 0], [named_x, named_y, neither]).astype(np.int8)


def judged(x, y, *, bound=GAME, claim=1.0, distance=1, confidence=0.95, support=None):
    """The verdict on guesses (for x, for y, for neither) made on either database."""
    return judge(
        time.perf_counter(),
        PureDP(claim),
        guesses(*x),
        guesses(*y),
        bound=bound,
        support=support,
        distance=distance,
        confidence=confidence,
        **REST,
    )


GUESSED = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
CONFIDENCES = st.floats(0.01, 0.999)


# Known truth


def test_a_game_is_the_log_odds_of_the_rate_that_is_certain():
    result = judged((30, 10, 60), (10, 50, 40))
    by_hand = logit(beta.ppf(0.05, 80, 21))  # 80 of 100 guesses are right
    assert result.measured.epsilon == pytest.approx(by_hand, abs=1e-12)
    assert by_hand > 0.9
    assert result.counts == {
        "x": {"runs": 100, "guessed_x": 30, "guessed_y": 10},
        "y": {"runs": 100, "guessed_x": 10, "guessed_y": 50},
    }
    assert (result.bound, result.verdict, result.confidence) == (GAME, "not refuted", 0.95)


@pytest.mark.parametrize(("x", "y"), [((0, 4, 36), (0, 38, 12)), ((38, 0, 12), (4, 0, 36))])
def test_a_rectangle_is_the_ratio_of_the_two_limits_that_are_certain(x, y):
    result = judged(x, y, bound=RECTANGLE)
    each = 0.05 / 2 / 2  # two regions, two limits
    by_hand = math.log(beta.ppf(each, 38, 13) / beta.ppf(1 - each, 5, 36))
    assert result.measured.epsilon == pytest.approx(by_hand, abs=1e-12)
    assert by_hand > 0.7
    assert (result.bound, result.verdict) == (RECTANGLE, "no power")
    assert {name: counts["runs"] for name, counts in result.counts.items()} == {"x": sum(x), "y": sum(y)}


@given(GUESSED, GUESSED, CONFIDENCES, st.integers(1, 5))
def test_a_game_is_that_of_the_bounds(x, y, confidence, distance):
    result = judged(x, y, confidence=confidence, distance=distance)
    correct, guessed = x[0] + y[1], x[0] + x[1] + y[0] + y[1]
    loss = float(guessing_game_lower(correct, guessed, confidence=confidence))
    assert result.measured == PureDP(loss / distance)
    assert result.ceiling == game_ceiling(sum(x) + sum(y), confidence=confidence, distance=distance)
    assert result.detectable == game_detectable(1.0, guessed, confidence=confidence, distance=distance)
    assert result.measured.epsilon <= result.ceiling + 1e-12
    swapped = judged((y[1], y[0], y[2]), (x[1], x[0], x[2]), confidence=confidence, distance=distance)
    assert (swapped.measured, swapped.verdict) == (result.measured, result.verdict)


@settings(max_examples=40)  # the detectable loss enumerates all counts
@given(GUESSED, GUESSED, CONFIDENCES, st.integers(1, 5))
def test_a_rectangle_is_that_of_the_bounds(x, y, confidence, distance):
    result = judged(x, y, bound=RECTANGLE, confidence=confidence, distance=distance)
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
    assert result.measured.epsilon <= result.ceiling + 1e-12
    swapped = judged((y[1], y[0], y[2]), (x[1], x[0], x[2]), bound=RECTANGLE, confidence=confidence, distance=distance)
    assert (swapped.measured, swapped.verdict) == (result.measured, result.verdict)


@pytest.mark.parametrize("bound", [GAME, RECTANGLE])
def test_a_group_shares_its_loss(bound):
    alone = judged((90, 5, 5), (5, 90, 5), bound=bound)
    group = judged((90, 5, 5), (5, 90, 5), bound=bound, distance=4)
    assert group.measured.epsilon == pytest.approx(alone.measured.epsilon / 4, rel=1e-12)
    assert group.ceiling == pytest.approx(alone.ceiling / 4, rel=1e-12)
    assert (alone.distance, group.distance) == (1, 4)
    assert alone.verdict == "violated" != group.verdict


@pytest.mark.parametrize("distance", [1, 3])
def test_a_game_sees_what_it_calls_detectable_in_four_of_five_audits(distance):
    runs, promised = 60, 0.8
    seen = [judged((k, 0), (runs - k, 0), claim=promised, distance=distance) for k in range(runs + 1)]
    detectable = seen[0].detectable
    assert {result.detectable for result in seen} == {detectable}
    chance = binom.pmf(np.arange(runs + 1), runs, expit(detectable * distance))
    power = sum(p for p, result in zip(chance, seen, strict=True) if result.verdict == "violated")
    assert power == pytest.approx(0.8, abs=1e-9)
    assert seen[-1].measured.epsilon == pytest.approx(seen[-1].ceiling, rel=1e-9)  # every guess was right


# Coverage, exact: every count that can occur, weighted by its probability

K = np.arange(13)  # events in 12 runs on either database


@pytest.fixture(scope="module")
def forced():
    """What all counts, on y and on x, force at even odds: misses are then common enough to be seen."""
    results = [[judged((12 - b, b), (12 - a, a), bound=RECTANGLE, confidence=0.5) for b in K] for a in K]
    return np.array([[result.measured.epsilon for result in row] for row in results])


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_rectangle_covers_a_mechanism_at_its_promise(forced, epsilon):
    chance = np.outer(binom.pmf(K, 12, expit(epsilon)), binom.pmf(K, 12, expit(-epsilon)))  # randomized response
    assert 0 < chance[forced > epsilon].sum() <= 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = np.log(np.maximum(K[:, None] / K, (12 - K) / (12 - K[:, None])))
    assert chance[seen > epsilon].sum() > 0.5  # negative control: the ratios themselves


@pytest.mark.parametrize("distance", [1, 2])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_game_covers_each_step_of_a_group(epsilon, distance):
    runs = 80
    forced = np.array([judged((k, 0), (runs - k, 0), distance=distance).measured.epsilon for k in range(runs + 1)])
    chance = binom.pmf(np.arange(runs + 1), runs, expit(distance * epsilon))
    missed = chance[forced > epsilon].sum()
    assert missed <= 0.05
    assert missed > 0.01  # and not by showing nothing
    if distance > 1:
        assert chance[distance * forced > epsilon].sum() > 0.1  # negative control: a loss that is not shared


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
        ((95, 5), (5, 95), {"bound": RECTANGLE}, "violated"),
        ((0, 0), (0, 0), {"bound": RECTANGLE}, "no power"),
        ((120, 80), (80, 120), {"bound": RECTANGLE}, "not refuted"),
        ((120, 80), (80, 120), {"bound": RECTANGLE, "support": WITNESS}, "violated"),
    ],
)
def test_verdicts(x, y, options, verdict):
    result = judged(x, y, **options)
    assert result.verdict == verdict
    assert result.support is options.get("support")


def test_nothing_seen_shows_nothing():
    result = judged((0, 0, 50), (0, 0, 50))
    assert (result.measured.epsilon, result.detectable) == (0, math.inf)
    assert result.ceiling > 3
    empty = judged((0, 0), (0, 0), bound=RECTANGLE)
    assert (empty.measured.epsilon, empty.ceiling, empty.detectable) == (0, 0, math.inf)


def test_an_honest_claim_under_the_other_relation_is_held_against_its_own():
    result = judge(
        time.perf_counter() - 5,
        PureDP(1.0, "replace_one"),
        guesses(60, 40),
        guesses(40, 60),
        bound=GAME,
        support=None,
        distance=1,
        confidence=0.9,
        **REST | {"relation": "replace_one"},
    )
    assert result.measured.relation == "replace_one"
    assert 5 <= result.seconds < 600
    assert {name: getattr(result, name) for name in REST} == REST | {"relation": "replace_one"}
    # Counts of numpy arrays are plain numbers by now.
    values = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert AuditResult.from_dict(values).to_dict() == result.to_dict()


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
def test_a_known_law_tells_what_one_database_only_can_give(p, q, witness):
    mechanism = Known(loss_distribution(p, q))
    found = support_witness(mechanism, PAIR)
    assert mechanism.asked is PAIR
    if witness is None:
        assert found is None
        assert judged((60, 40), (40, 60), support=found).verdict == "not refuted"
    else:
        assert found == {"order": f"possible on {witness[0]} only", "probability": pytest.approx(witness[1])}
        assert judged((60, 40), (40, 60), support=found).verdict == "violated"
        json.dumps(found, allow_nan=False)


def test_a_tiny_mass_is_a_witness():
    law = LossDistribution(np.array([0.0]), np.array([0.0]), missing_mass=5e-324)
    assert support_witness(Known(law), PAIR) == {"order": "possible on y only", "probability": 5e-324}


def test_a_law_that_is_not_known_is_no_witness():
    def count(data, size, rng):
        return rng.random(size)

    assert support_witness(count, PAIR) is None
    assert support_witness(Known(None), PAIR) is None
    count.exact_loss = loss_distribution([1.0, 0.0], [0.0, 1.0])  # a law, not a way to ask for one
    assert support_witness(count, PAIR) is None


def test_an_error_in_the_law_is_not_hidden():
    class Wrong(Known):
        def exact_loss(self, pair):
            raise ZeroDivisionError("the law is wrong")

    with pytest.raises(ZeroDivisionError, match="the law is wrong"):
        support_witness(Wrong(None), PAIR)


# What can be asked


@pytest.mark.parametrize(
    ("name", "families"), [("auto", ("threshold", "cell")), ("threshold", ("threshold",)), ("cell", ("cell",))]
)
def test_an_attack_by_its_name(name, families):
    attack = check_question(PureDP(1.0), "add_remove", name, None, 0.95)
    assert isinstance(attack, Attack)
    assert (attack.families, attack.statistics) == (families, None)


def test_an_attack_of_one_s_own_and_a_registered_event():
    attack = Attack(families=("cell",))
    assert check_question(PureDP(1.0, "replace_one"), "replace_one", attack, Event.at_least(0, 13), 0.5) is attack


def test_the_way_out_leads_out():
    claim, moved = PureDP(1.0), NeighborPair.move_people([5, 7], source=0, target=1)
    with pytest.raises(ValueError, match=r'claim\.under\("replace_one"\), or pair\.under\("add_remove"\)'):
        check_question(claim, moved.relation, "auto", None, 0.95)
    check_question(claim.under("replace_one"), moved.relation, "auto", None, 0.95)
    check_question(claim, moved.under("add_remove").relation, "auto", None, 0.95)
    assert moved.under("add_remove").distance == 2


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"claim": 1.0}, TypeError, "claim must be a PureDP, got float"),
        ({"claim": None}, TypeError, "claim must be a PureDP, got NoneType"),
        ({"claim": PureDP(0.0)}, ValueError, r"must have a positive and finite epsilon, got 0\.0"),
        ({"claim": PureDP(math.inf)}, ValueError, "must have a positive and finite epsilon, got inf"),
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
        ({"attack": "best"}, ValueError, 'attack must be "auto", "threshold", "cell" or an Attack, got \'best\''),
        ({"attack": ""}, ValueError, "or an Attack, got ''"),
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
