from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from audit.claims import PureDP, check_relation, claim_from_dict, parse_claim

LOSSES = st.floats(0, 700) | st.just(math.inf)
DELTAS = st.floats(0, 1, exclude_max=True)


# Known truth


@pytest.mark.parametrize("epsilon", [0.025, 0.1, 1.0, 4.0, 30.0])
def test_the_profile_of_pure_dp_is_that_of_randomized_response(epsilon):
    truthful, lying = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    for at in epsilon * np.linspace(0, 1.5, 13):
        literal = max(0.0, truthful - math.exp(at) * lying)
        assert PureDP(epsilon).delta_at(at) == pytest.approx(literal, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_profile_agrees_with_dp_accounting(epsilon):
    theirs = pld.from_randomized_response(2 / (1 + math.exp(epsilon)), 2, value_discretization_interval=1e-4)
    for at in epsilon * np.array([0, 0.3, 0.7, 0.999, 1.2]):
        assert PureDP(epsilon).delta_at(at) == pytest.approx(theirs.get_delta_for_epsilon(at), abs=2e-4)


def test_no_law_on_three_outputs_goes_beyond_the_profile():
    """Delta is largest over all epsilon-DP pairs of laws: a linear program, solved for 3 outputs."""
    for epsilon, at in [(1.0, 0.0), (1.0, 0.5), (0.3, 0.1)]:
        bound, m = math.exp(epsilon), 3
        eye = np.eye(m)
        within = np.block([[eye, -bound * eye], [-bound * eye, eye]])
        largest = 0.0
        for event in range(1, 2**m):
            inside = np.array([(event >> i) & 1 for i in range(m)], float)
            gain = np.concatenate([inside, -math.exp(at) * inside])
            sums = np.array([[1.0] * m + [0.0] * m, [0.0] * m + [1.0] * m])
            largest = max(largest, -linprog(-gain, A_ub=within, b_ub=np.zeros(2 * m), A_eq=sums, b_eq=[1, 1]).fun)
        assert PureDP(epsilon).delta_at(at) == pytest.approx(largest, abs=1e-9)


def test_nothing_and_everything_can_be_promised():
    assert PureDP(0).delta_at(0) == 0
    assert PureDP(0).epsilon_at(0.3) == 0
    assert PureDP(math.inf).delta_at(5) == 1
    assert PureDP(math.inf).delta_at(math.inf) == 0
    assert PureDP(math.inf).epsilon_at(0.999) == math.inf
    assert PureDP(1).epsilon_at(0) == 1
    assert PureDP(1).epsilon_at(0.47) == 0  # above tanh(1/2), where any epsilon is guaranteed


# Properties


@given(LOSSES, st.floats(0, 1))
def test_epsilon_at_inverts_delta_at(epsilon, share):
    claim = PureDP(epsilon)
    at = share * min(epsilon, 30.0)
    delta = claim.delta_at(at)
    if 0 < delta < 1:
        # One rounding of delta moves epsilon by as much over the slope of the profile.
        slope = math.exp(at - epsilon) / (1 + math.exp(-epsilon))
        assert claim.epsilon_at(delta) == pytest.approx(at, abs=1e-9 + 1e-15 / slope)


@given(LOSSES, DELTAS)
def test_delta_at_is_within_reach_of_epsilon_at(epsilon, delta):
    claim = PureDP(epsilon)
    assert claim.delta_at(claim.epsilon_at(delta)) <= delta + 1e-12


@given(LOSSES, LOSSES, st.floats(0, 700))
def test_a_smaller_claim_promises_more(first, second, at):
    low, high = sorted([first, second])
    assert PureDP(low) <= PureDP(high)
    assert PureDP(high) >= PureDP(low)
    assert PureDP(low).delta_at(at) <= PureDP(high).delta_at(at)
    assert (PureDP(high) <= PureDP(low)) == (low == high)


@given(LOSSES, st.sampled_from(["add_remove", "replace_one"]))
@example(0.0, "add_remove")
def test_a_claim_survives_json(epsilon, relation):
    claim = PureDP(epsilon, relation)
    assert claim_from_dict(json.loads(json.dumps(claim.to_dict(), allow_nan=False))) == claim


@given(st.floats(1e-300, 1e300))
def test_a_claim_survives_the_command_line(epsilon):
    assert parse_claim(f"pure:{epsilon!r}") == PureDP(epsilon)
    assert parse_claim(f"pure:{epsilon!r}", "replace_one").relation == "replace_one"


@given(st.floats(0, 100), st.integers(1, 50), st.integers(1, 50))
def test_groups_of_groups_multiply(epsilon, first, second):
    claim = PureDP(epsilon, "replace_one").group(first).group(second)
    assert claim.relation == "replace_one"
    assert claim.epsilon == pytest.approx(first * second * epsilon)


# Relations, words, refusals


def test_replacing_is_removing_and_adding():
    assert PureDP(0.5).under("replace_one") == PureDP(1.0, "replace_one")
    assert PureDP(0.5).under("add_remove") == PureDP(0.5)
    assert PureDP(0.5, "replace_one").under("replace_one") == PureDP(0.5, "replace_one")
    with pytest.raises(ValueError, match="a replace_one promise says nothing about add_remove"):
        PureDP(0.5, "replace_one").under("add_remove")
    with pytest.raises(ValueError, match="relation must be"):
        PureDP(0.5).under("swap")


def test_claims_under_two_relations_have_no_order():
    with pytest.raises(ValueError, match="claims under add_remove and replace_one have no order"):
        _ = PureDP(1) <= PureDP(2, "replace_one")
    with pytest.raises(TypeError):
        _ = PureDP(1) <= 2
    assert PureDP(1) != PureDP(1, "replace_one")


def test_a_claim_reads_as_one_would_say_it():
    assert str(PureDP(0.1)) == "epsilon 0.1 (add/remove)"
    assert str(PureDP(1 / 3, "replace_one")) == "epsilon 0.3333 (replace one)"
    assert str(PureDP(math.inf)) == "epsilon inf (add/remove)"


@pytest.mark.parametrize("number", [1, np.float32(1), np.int64(1), Decimal(1), Fraction(1), np.array(1.0)])
def test_epsilon_is_kept_as_a_float(number):
    assert type(PureDP(number).epsilon) is float
    assert PureDP(number) == PureDP(1.0)
    assert hash(PureDP(number)) == hash(PureDP(1.0))


@pytest.mark.parametrize("epsilon", [-1, -1e-300, math.nan, -math.inf, np.float64("nan"), 10**400])
def test_epsilon_must_be_zero_or_more(epsilon):
    with pytest.raises(ValueError, match="epsilon must be 0 or more, got"):
        PureDP(epsilon)


@pytest.mark.parametrize("epsilon", ["1", None, True, 1j, [1]])
def test_epsilon_must_be_a_number(epsilon):
    with pytest.raises(TypeError, match="epsilon must be a number, got"):
        PureDP(epsilon)


@pytest.mark.parametrize("relation", ["swap", "", None, "ADD_REMOVE", ["add_remove"]])
def test_there_are_two_relations(relation):
    with pytest.raises(ValueError, match='relation must be "add_remove" or "replace_one", got'):
        check_relation(relation)
    with pytest.raises(ValueError, match="relation must be"):
        PureDP(1, relation)


@pytest.mark.parametrize("at", [-1e-9, math.nan])
def test_a_profile_is_asked_at_zero_or_more(at):
    with pytest.raises(ValueError, match="epsilon must be 0 or more, got"):
        PureDP(1).delta_at(at)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 2, math.nan])
def test_delta_is_a_probability_below_one(delta):
    with pytest.raises(ValueError, match=r"delta must be in \[0, 1\), got"):
        PureDP(1).epsilon_at(delta)


def test_a_group_is_of_whole_people():
    for people in (0, -3):
        with pytest.raises(ValueError, match="people must be at least 1, got"):
            PureDP(1).group(people)
    for people in (1.5, math.nan, "2", True):
        with pytest.raises(TypeError, match="people must be an integer, got"):
            PureDP(1).group(people)
    assert PureDP(0.5).group(np.int64(4)) == PureDP(2.0)


@pytest.mark.parametrize(
    "values",
    [
        {},
        [],
        None,
        {"kind": "zcdp", "epsilon": 1, "relation": "add_remove"},
        {"kind": "pure", "epsilon": 1},
        {"kind": "pure", "epsilon": 1, "relation": "add_remove", "delta": 0},
        {"kind": "pure", "epsilon": -1, "relation": "add_remove"},
        {"kind": "pure", "epsilon": 10**400, "relation": "add_remove"},
        {"kind": "pure", "epsilon": 1, "relation": "swap"},
    ],
)
def test_a_stored_claim_is_whole_or_refused(values):
    with pytest.raises(ValueError, match=r"a claim has the keys|epsilon must be|relation must be"):
        claim_from_dict(values)


@pytest.mark.parametrize("epsilon", ["1", "Infinity", None, True, [1]])
def test_a_stored_epsilon_is_a_number_or_inf(epsilon):
    with pytest.raises(TypeError, match="epsilon must be a number"):
        claim_from_dict({"kind": "pure", "epsilon": epsilon, "relation": "add_remove"})


@pytest.mark.parametrize("text", ["", "pure", "pure:", "pure:0", "pure:-1", "pure:inf", "pure:nan", "pure:x", "zcdp:1"])
def test_a_written_claim_is_positive_and_finite(text):
    with pytest.raises(ValueError, match="a claim is written pure:EPSILON"):
        parse_claim(text)
