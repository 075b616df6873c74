"""From a question to a verdict: what can be asked, what is counted, and which witnesses hold."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.events import CellRule, Event, cell
from audit.exact import loss_distribution
from audit.measure.choice import UNSEEN, Counted, count_event
from audit.measure.evaluation import check_question, detectable_loss, support_witness
from audit.methods import Game, Gaussian, Renyi, TwoSamples
from audit.neighbors import NeighborPair
from tests.audit.methods.cases import BOTH, WEIGHTS, audited, named
from tests.helpers import refused_like

PAIR = NeighborPair.add_people([5, 7], cell=0)
WITNESS = {"order": "possible on x only", "probability": 0.25}


def test_counts_are_of_the_guesses_of_a_rule():
    scores = np.array([-3.0, 12, 12.5, 13]), np.array([13.0, 14, 15])
    assert count_event(BOTH, *scores) == named((2, 1, 1), (0, 3, 0))
    values = Event(cell(0), CellRule(np.array([13.0, 15]), np.array([12.5])))
    assert count_event(values, *scores) == named((1, 1, 2), (0, 2, 1))
    assert count_event(BOTH, np.empty(0), scores[1])["x"] == {"runs": 0, "guessed_x": 0, "guessed_y": 0}


def test_counts_of_a_likelihood_ratio_are_of_its_bins():
    counts = count_event(WEIGHTS, np.array([-5.0, -1, 0.5, 0.5]), np.array([1.0, 9]))
    assert counts == {"x": {"runs": 4, "bin 0": 1, "bin 1": 1, "bin 2": 2}, "y": {"runs": 2, "bin 3": 2}}
    json.dumps(counts)  # plain numbers by now


@given(st.lists(st.floats(-3, 3), max_size=20), st.lists(st.floats(-3, 3), max_size=20), st.integers(0, 20))
def test_counts_of_two_sets_of_runs_add_up(x, y, cut):
    x, y = np.array(x, float), np.array(y, float)
    for event in (WEIGHTS, Event.at_least(0, 0.5, low=-0.5)):
        parts = [count_event(event, x[part], y[part]) for part in (slice(cut), slice(cut, None))]
        together = count_event(event, x, y)
        assert (Counted(parts[0]) + Counted(parts[1])).counts == together
        assert (Counted() + Counted(together)).counts == together


def test_runs_unlike_those_that_chose_have_no_power():
    how, counts = Game(PureDP(1), 1, 0.95), named((400, 100, 0), (100, 400, 0))
    known = how.detectable(counts, {}, choosing=0)
    found = [detectable_loss(how, [(counts, {"unseen": share})], 0)[0] for share in (UNSEEN, UNSEEN + 1e-9)]
    assert found == [known, math.inf]


def test_the_event_that_sees_most_is_named():
    """The smallest loss of those with power; where there is power nowhere, of all."""
    how, few, many = Game(PureDP(1), 1, 0.95), named((4, 1, 95), (1, 4, 95)), named((400, 100, 0), (100, 400, 0))
    less = named((250, 250, 0), (250, 250, 0))  # which carries less than the promise
    losses = [how.detectable(counts, {}, choosing=0) for counts in (few, many)]
    assert losses[1] < 2 < losses[0]
    assert detectable_loss(how, [(few, {}), (many, {})], 0) == (losses[1], 1)
    assert detectable_loss(how, [(many, {}), (less, {})], 0) == (losses[1], 0)
    assert detectable_loss(how, [(few, {})], 0) == (losses[0], 0)


@pytest.mark.parametrize(
    ("x", "y", "options", "verdict"),
    [
        ((95, 5), (5, 95), {}, "violated"),
        ((60, 40), (40, 60), {}, "not refuted"),
        ((6, 4), (4, 6), {}, "no power"),
        ((60, 40), (40, 60), {"support": WITNESS}, "violated"),
        ((0, 0, 50), (0, 0, 50), {}, "no power"),
        ((120, 80), (80, 120), {"method": TwoSamples}, "not refuted"),
        ((60, 40), (40, 60), {"method": Gaussian}, "not refuted"),
        ((9000, 800, 100, 0), (0, 100, 800, 9000), {"method": Renyi, "event": WEIGHTS}, "violated"),
        ((3000, 2500, 2400, 2000), (2000, 2400, 2500, 3000), {"method": Renyi, "event": WEIGHTS}, "not refuted"),
    ],
)
def test_verdicts(x, y, options, verdict):
    result = audited(x, y, **options)
    assert result.verdict == verdict
    assert result.support is options.get("support")
    assert type(result.measured) is type(result.claim)


class Known:
    """A mechanism whose law is known, and which remembers the pair it was asked about."""

    def __init__(self, law):
        self.law = law

    def __call__(self, data, size, rng):
        return rng.random(size)

    def exact_loss(self, pair):
        self.pair = pair
        return self.law


@pytest.mark.parametrize("claim", [PureDP(1), ZCDP(1), GaussianDP(1), ApproxDP(1, 1e-6)])
@pytest.mark.parametrize(
    ("p", "q", "witness"),
    [
        ([0.5, 0.5, 0.0], [0.5, 0.25, 0.25], ("y", 0.25)),
        ([0.5, 0.5, 0.0], [0.75, 0.0, 0.25], ("x", 0.5)),
        ([0.5, 0.5, 0.0], [0.5, 0.0, 0.5], ("x", 0.5)),  # as likely on either: x comes first
        ([0.5, 0.5], [0.25, 0.75], None),
        ([1.0 - 1e-300, 1e-300], [1.0, 1e-300], None),
    ],
)
def test_a_known_law_tells_what_one_database_only_can_give(p, q, witness, claim):
    mechanism = Known(loss_distribution(p, q))
    found = support_witness(mechanism, PAIR, claim)
    assert mechanism.pair is PAIR
    if witness is None:
        assert found is None
        assert audited((60, 40), (40, 60), support=found).verdict == "not refuted"
    else:
        assert found == {"order": f"possible on {witness[0]} only", "probability": pytest.approx(witness[1])}
        assert audited((60, 40), (40, 60), support=found).verdict == "violated"
        json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("pair", "forgiven"),
    [(PAIR, 1e-6), (NeighborPair.add_people([5, 7], cell=0, people=3), 1e-6 * (1 + math.e + math.e**2))],
)
def test_approximate_privacy_forgives_its_delta_and_a_group_what_its_chain_adds_up_to(pair, forgiven):
    for mass, found in ((0.999 * forgiven, False), (1e-6, False), (1.0001 * forgiven, True), (0.5, True)):
        law = loss_distribution([1 - mass, mass], [1.0, 0.0])
        assert (support_witness(Known(law), pair, ApproxDP(1.0, 1e-6)) is not None) == found


def test_what_has_no_counterpart_may_be_known_where_the_law_is_not():
    class Half(Known):
        def support_masses(self, pair):
            return self.masses

    half = Half(None)
    for masses, order, probability in (((0.25, 0.5), "y", 0.5), ((0.25, 0.125), "x", 0.25), ((0.5, 0.5), "x", 0.5)):
        half.masses = masses
        witness = support_witness(half, PAIR, PureDP(1))
        assert witness == {"order": f"possible on {order} only", "probability": probability}
    half.law, half.masses = loss_distribution([0.5, 0.5], [0.25, 0.75]), (0.5, 0.5)  # the law knows better
    assert support_witness(half, PAIR, PureDP(1)) is None

    def count(data, size, rng):
        return rng.random(size)

    assert support_witness(count, PAIR, PureDP(1)) is None
    assert support_witness(Known(None), PAIR, PureDP(1)) is None
    count.exact_loss = loss_distribution([1.0, 0.0], [0.0, 1.0])  # a law, not a way to ask for one
    assert support_witness(count, PAIR, PureDP(1)) is None


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.5), GaussianDP(1.0)])
def test_the_way_out_leads_out(claim):
    moved = NeighborPair.move_people([5, 7], source=0, target=1)
    with pytest.raises(ValueError, match=r'audit claim\.under\("replace_one"\), or pair\.under\("add_remove"\)'):
        check_question(claim, moved.relation, "auto", None, 0.95)
    check_question(claim.under("replace_one"), moved.relation, "auto", None, 0.95)
    check_question(claim, moved.under("add_remove").relation, "auto", None, 0.95)
    assert moved.under("add_remove").distance == 2


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"claim": 1.0}, TypeError, "claim must be one of .*PureDP.*, got float"),
        ({"claim": PureDP(0.0)}, ValueError, r"must have a positive and finite epsilon, got 0\.0"),
        ({"claim": PureDP(math.inf)}, ValueError, "must have a positive and finite epsilon, got inf"),
        ({"claim": ApproxDP(1.0, 1.0)}, ValueError, r"must have a delta in \[0, 1\), got 1\.0"),
        ({"claim": ZCDP(0.0)}, ValueError, r"must have a positive and finite rho, got 0\.0"),
        ({"claim": PureDP(1.0, "replace_one")}, ValueError, "build the pair with move_people"),
        ({"event": "output[0] >= 13"}, TypeError, "event must be an Event, got str"),
        ({"event": WEIGHTS}, ValueError, "weighs likelihood ratios bounds a rho, got a claim of epsilon"),
        ({"attack": "best"}, ValueError, "attack must be an Attack or one of auto, threshold, cell, .*, got 'best'"),
        ({"attack": None}, TypeError, "attack must be a name or an Attack, got NoneType"),
    ],
)
def test_what_cannot_be_asked_is_refused(changes, error, words):
    question = {"claim": PureDP(1.0), "relation": "add_remove", "attack": "auto", "event": None, "confidence": 0.95}
    check_question(**question)
    with refused_like(error, words):
        check_question(**question | changes)
