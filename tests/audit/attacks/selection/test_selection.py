"""The choice of an event for the guessing game: laws whose best event is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from audit.attacks.entries import changed
from audit.events import LARGEST, CellRule, Statistic, ThresholdRule, cell
from audit.neighbors import NeighborPair
from tests.audit.attacks.cases import BOTH, SUPPORT, exact_quality, geometric_law, select, several
from tests.helpers import geometric


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_geometric_noise_is_told_by_thresholds_that_always_guess(epsilon):
    rng, first = np.random.default_rng(2), 0
    for _ in range(10):
        x, y = geometric(epsilon, 5000, rng), geometric(epsilon, 5000, rng) + 1
        events = several(x, y, families=("threshold",))
        rules = [(event.rule.low, event.rule.high, event.rule.above) for event in events]
        assert (0, 1, "y") in rules
        first += rules[0] == (0, 1, "y")
    assert first >= 9  # now and then a bolder rule promises clearly more; the cautious one is counted, too
    event = events[rules.index((0, 1, "y"))]
    quality = exact_quality(event, geometric_law(epsilon), geometric_law(epsilon, 1))
    assert quality == pytest.approx((expit(epsilon), 1))


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_randomized_response_is_told_by_the_two_true_answers(epsilon):
    rng, answers = np.random.default_rng(4), 10
    kept = math.exp(epsilon) / (math.exp(epsilon) + answers - 1)

    def response(truth, size):
        other = (truth + rng.integers(1, answers, size)) % answers
        return np.where(rng.random(size) < kept, truth, other)

    x, y = response(2, 10_000), response(5, 10_000)
    event = select(x, y)
    assert (event.rule.y.tolist(), event.rule.x.tolist()) == ([5], [2])
    law = np.full(answers, (1 - kept) / (answers - 1))
    p, q = (np.where(np.arange(answers) == truth, kept, law) for truth in (2, 5))
    assert exact_quality(event, p, q, np.arange(answers))[0] == pytest.approx(expit(epsilon))
    # Thresholds must take other answers along: negative control of the family.
    best = exact_quality(select(x, y, families=("threshold",)), p, q, np.arange(answers))[0]
    assert best < expit(epsilon) - 0.02


def with_atom(noise, rate, value, rng):
    """Outputs on both databases; those on `y` are now and then `value`: an unbounded loss."""
    x, y = (noise(30_000, rng).astype(float) for _ in range(2))
    y[rng.random(y.size) < rate] = value
    return x, y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("noise", "value", "words"),
    [
        (lambda size, rng: geometric(0.3, size, rng), 0.5, "y if output in {0.5}"),
        (lambda size, rng: rng.laplace(size=size), 0.0, "y if output in {0}"),
        (lambda size, rng: rng.normal(size=size), 1.25, "y if output in {1.25}"),
        (lambda size, rng: rng.integers(0, 10**7, size), 5e6 - 0.5, "y if output in {4999999.5}"),
    ],
)
def test_a_rare_value_between_others_is_found(noise, value, words, seed):
    assert str(select(*with_atom(noise, 0.01, value, np.random.default_rng(seed)))) == words


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_certain_outputs_are_not_diluted_by_doubtful_ones(share):
    rng = np.random.default_rng(5)
    x, y = rng.laplace(size=(2, 20_000))
    x[rng.random(x.size) < share], y[rng.random(y.size) < share] = -math.inf, math.inf
    assert str(select(x, y)) == "y if output >= inf, x if output <= -inf"


def test_the_statistic_with_the_signal_is_chosen():
    rng = np.random.default_rng(7)
    x, y = rng.laplace(size=(2, 5000, 4))
    y[:, 2] += 1
    statistics = [cell(k) for k in range(4)]
    assert select(x, y, statistics).statistic is statistics[2]


@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_two_entries_that_move_are_told_jointly(epsilon):
    rng = np.random.default_rng(8)
    pair = NeighborPair.move_people([30, 40, 50], 0, 2)
    x, y = (data + geometric(epsilon, (10_000, 3), rng) for data in (pair.x, pair.y))
    event = select(x, y, changed(pair, (3,)))
    assert event.statistic.name == "joint shift of output[0], [2]"
    near = slice(340, 462)
    cells = np.stack(np.meshgrid(SUPPORT[near], SUPPORT[near], indexing="ij"), axis=-1).reshape(-1, 2)
    outputs = np.insert(cells + pair.x[[0, 2]], 1, 0, axis=1)
    joint = [np.outer(geometric_law(epsilon, -k)[near], geometric_law(epsilon, k)[near]).ravel() for k in (0, 1)]
    accuracy, _ = exact_quality(event, *joint, support=outputs)
    assert accuracy == pytest.approx(expit(2 * epsilon), abs=1e-3)


DELTA = 0.05


def four_outcomes(epsilon, delta, runs, rng):
    """The law that attains every inequality of (epsilon, delta): 0 on `x` only, 3 on `y` only, 1 and 2 in between."""
    s = expit(epsilon)
    p = np.array([delta, (1 - delta) * s, (1 - delta) * (1 - s), 0])
    return p, p[::-1], rng.choice(4, runs, p=p), rng.choice(4, runs, p=p[::-1])


def forgiving_epsilon(event, p, q, forgiven, support):
    """What the guesses of an event prove of (epsilon, delta), were there no error of chance."""
    accuracy, share = exact_quality(event, p, q, support)
    odds = forgiven / share
    return logit((accuracy - odds) / (1 - odds)) if accuracy > odds < 1 else -math.inf


@pytest.mark.parametrize("families", [("threshold",), ("cell",), BOTH])
@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_what_is_forgiven_is_not_guessed_by_itself(epsilon, families):
    p, q, x, y = four_outcomes(epsilon, DELTA, 10_000, np.random.default_rng(7))
    event = select(x, y, families=families, forgiven=DELTA)
    assert event.guess(np.arange(4)).tolist() == [-1, -1, 1, 1]
    assert forgiving_epsilon(event, p, q, DELTA, np.arange(4)) == pytest.approx(epsilon)
    certain = select(x, y, families=families)  # negative control: nothing is forgiven
    assert certain.guess(np.arange(4)).tolist() == [-1, 0, 0, 1]
    assert forgiving_epsilon(certain, p, q, DELTA, np.arange(4)) == -math.inf


@pytest.mark.parametrize("families", [("threshold",), ("cell",), BOTH])
@pytest.mark.parametrize("score", [0, 7.5, -math.inf])
def test_one_and_the_same_score_is_never_guessed_from(score, families):
    event = select(np.full(50, score), np.full(70, score), families=families)
    assert str(event) == "never a guess"
    assert not event.guess(np.array([score, 0.0, math.inf])).any()


SCORES = st.one_of(st.integers(-3, 3), st.floats(-10, 10), st.sampled_from([-math.inf, math.inf, 1e308]))


@given(
    st.lists(SCORES, min_size=1, max_size=30),
    st.lists(SCORES, min_size=1, max_size=30),
    st.sampled_from([("threshold",), ("cell",), BOTH]),
)
def test_any_scores_give_an_event_of_the_families(x, y, families):
    x, y = np.array(x, float), np.array(y, float)
    event = select(x, y, families=families)
    kinds = {"threshold": ThresholdRule, "cell": CellRule}
    if str(event) != "never a guess":
        assert isinstance(event.rule, tuple(kinds[family] for family in families))
    assert set(event.guess(np.concatenate([x, y])).tolist()) <= {-1, 0, 1}


def test_databases_that_never_agree_are_told_apart_by_infinities():
    event = select(np.full(100, math.inf), np.full(100, -math.inf))
    assert (event.rule.low, event.rule.high, event.rule.above) == (-LARGEST, LARGEST, "x")


def test_the_ends_of_many_scores_are_tried():
    x = np.append(np.linspace(0, 1, 5000), np.full(300, 2.0))
    y = np.append(np.linspace(0, 1, 5000), np.full(300, -1.0))
    event = select(x, y, families=("threshold",))
    assert (event.rule.low, event.rule.high, event.rule.above) == (-1, 2, "x")


def test_the_first_among_equals_is_chosen():
    x, y = np.random.default_rng(10).laplace([[0], [1]], size=(2, 500))
    one, other = Statistic("one", lambda outputs: outputs), Statistic("other", lambda outputs: outputs)
    assert select(x, y, [one, other]).statistic is one
    assert select(x, y, [other, one]).statistic is other
    reverse = Statistic("reverse", lambda outputs: -outputs)
    assert select(x, y, [one, reverse]).statistic is one
