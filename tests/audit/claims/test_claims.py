import json
import math
import pickle
import re
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP, check_relation, claim_from_dict, compose, parse_claim
from tests.helpers import powers, refused_like

LOSSES = st.floats(0, 700) | st.just(math.inf)
DELTAS = st.floats(0, 1, exclude_max=True)
RELATIONS = st.sampled_from(["add_remove", "replace_one"])


def families(budgets, deltas, relations):
    """Claims of each family; a budget is a scale of the loss, of rho its square."""
    return [
        st.builds(PureDP, budgets, relations),
        st.builds(ApproxDP, budgets, deltas, relations),
        st.builds(lambda scale, relation: ZCDP(scale * scale, relation), budgets, relations),
        st.builds(GaussianDP, budgets, relations),
    ]


BUDGETS = st.sampled_from([0.0, math.inf]) | powers(-12, 3)
ANY = st.one_of(families(BUDGETS, st.floats(0, 1), RELATIONS))
FINITE = st.one_of(families(powers(-6, 2.8), powers(-15, -0.5), st.just("add_remove")))
SEVERAL = st.one_of(
    [st.lists(claims, min_size=2, max_size=4) for claims in families(BUDGETS, st.floats(0, 1), st.just("add_remove"))]
)


# Known truth


@pytest.mark.parametrize("claim", [PureDP(1.0), PureDP(0.3), ApproxDP(1.0, 0.1), ApproxDP(0.3, 0.02), ApproxDP(0, 0.2)])
def test_no_law_on_four_outputs_goes_beyond_the_profile(claim):
    """Delta is largest over all pairs of laws within the claim: a linear program, solved for 4 outputs."""
    m, bound = 4, math.exp(claim.epsilon)
    events = np.array([[(event >> i) & 1 for i in range(m)] for event in range(1, 2**m)], float)
    within = np.block([[events, -bound * events], [-bound * events, events]])
    slack = np.full(len(within), getattr(claim, "delta", 0.0))
    sums = np.repeat(np.eye(2), m, axis=1)
    for at in (0.0, claim.epsilon / 2, claim.epsilon, 2 * claim.epsilon):
        first = [events[2**size - 2] for size in range(1, m + 1)]  # outputs are alike: an event is as good as its size
        gains = (np.concatenate([inside, -math.exp(at) * inside]) for inside in first)
        largest = max(-linprog(-gain, A_ub=within, b_ub=slack, A_eq=sums, b_eq=[1, 1]).fun for gain in gains)
        assert claim.delta_at(at) == pytest.approx(largest, abs=1e-9)
        if 0 < at < claim.epsilon:
            assert claim.epsilon_at(largest) == pytest.approx(at, abs=1e-6)


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.01), ZCDP(0.5)])
@pytest.mark.parametrize("probability", [0.3, 0.02])
def test_an_event_is_at_least_so_likely_on_a_neighbor(claim, probability):
    """The largest of the lower bounds that each epsilon gives; of zero-concentration, that each Renyi order gives."""
    if isinstance(claim, ZCDP):
        orders = 1 + np.geomspace(1e-3, 1e3, 100_001)
        least = max(probability ** (orders / (orders - 1)) * np.exp(-orders * claim.rho))
    else:
        least = (probability - claim.delta_at(1.0)) / math.e
    assert claim.rarest(probability) == pytest.approx(least, rel=1e-6)
    assert claim.rarest(0.0) == 0


def test_published_values():
    census = 2.5562  # the persons' rho of the 2020 redistricting data
    assert ZCDP(census).epsilon_at(1e-10) == pytest.approx(17.143451, abs=1e-6)  # published as 17.14
    assert GaussianDP(math.sqrt(2 * census)).epsilon_at(1e-10) == pytest.approx(16.465059, abs=1e-6)
    assert GaussianDP(1).epsilon_at(1e-5) == pytest.approx(4.377178, abs=1e-6)
    assert GaussianDP(1).delta_at(0) == pytest.approx(math.erf(1 / math.sqrt(8)), rel=1e-14)
    assert PureDP(1).delta_at(0) == pytest.approx(math.tanh(0.5), rel=1e-14)
    assert PureDP(1).delta_at(0.5) == pytest.approx(0.287649137, abs=1e-9)


def test_nothing_and_everything_can_be_promised():
    assert PureDP(0).delta_at(0) == 0
    assert PureDP(0).epsilon_at(0.3) == PureDP(0).epsilon_at(0.6) == PureDP(0.1).epsilon_at(0.9) == 0
    assert PureDP(0).excess(0.0, []) is None
    assert PureDP(math.inf).delta_at(5) == 1
    assert PureDP(math.inf).delta_at(math.inf) == 0
    assert PureDP(math.inf).epsilon_at(0.999) == math.inf
    assert PureDP(1).epsilon_at(0) == 1
    assert PureDP(1).epsilon_at(0.47) == 0  # above tanh(1/2), where any epsilon is guaranteed
    assert PureDP(1).epsilon_at(math.nextafter(1, 0)) == 0
    for family in (ZCDP, GaussianDP):
        assert family(0).delta_at(0) == family(0).epsilon_at(0) == 0
        assert family(math.inf).delta_at(1e300) == 1
        assert family(math.inf).delta_at(math.inf) == family(1).delta_at(math.inf) == 0
        assert family(math.inf).epsilon_at(0.999) == family(1).epsilon_at(0) == math.inf
        assert family(1).epsilon_at(0.99) == 0


def test_what_may_tell_everything_does_so_with_its_delta():
    assert ApproxDP(1, 0) == ApproxDP(1.0, 0.0)
    assert ApproxDP(1, 0).delta_at(0.5) == PureDP(1).delta_at(0.5)
    assert ApproxDP(1, 0).epsilon_at(0) == 1
    assert ApproxDP(0, 0.1).delta_at(0) == 0.1
    assert ApproxDP(0, 0.1).epsilon_at(0.1) == 0
    assert ApproxDP(1, 0.1).epsilon_at(0.1) == 1
    assert ApproxDP(1, 0.1).epsilon_at(0.0999) == math.inf
    assert ApproxDP(1, 0.1).delta_at(math.inf) == 0.1
    assert ApproxDP(1, 1).delta_at(5) == 1
    assert ApproxDP(1, 1).epsilon_at(0.999) == math.inf
    assert ApproxDP(math.inf, 0.1).delta_at(1e300) == 1
    assert ApproxDP(math.inf, 0.1).epsilon_at(0.2) == math.inf
    # The rest of a delta may be rounded up to one.
    promised, largest = 0.25 - 2.0**-54, math.nextafter(1, 0)
    assert (largest - promised) / (1 - promised) == 1
    assert ApproxDP(1, promised).epsilon_at(largest) == 0
    assert ApproxDP(math.inf, promised).epsilon_at(largest) == math.inf


def test_extreme_budgets_keep_their_digits():
    assert PureDP(1e-16).epsilon_at(1e-17) == pytest.approx(8e-17, rel=1e-9)
    delta = 1 - 1e-10
    assert PureDP(30).epsilon_at(delta) == pytest.approx(math.log(math.exp(30) * (1 - delta) - delta), rel=1e-14)
    assert PureDP(1e3).epsilon_at(0.5) == pytest.approx(1e3 - math.log(2), rel=1e-14)
    assert PureDP(1e3).delta_at(999) == pytest.approx(-math.expm1(-1), rel=1e-14)
    # Far below one deviation the law of a Gaussian is known from its density: delta(0) is mu / sqrt(2 pi).
    assert GaussianDP(1e-17).delta_at(0) == pytest.approx(1e-17 / math.sqrt(2 * math.pi), rel=1e-12)
    # Curves of small budgets are all of one form: epsilon and delta in units of the budget's root.
    assert GaussianDP(1e-12).epsilon_at(1e-13) == pytest.approx(1e6 * GaussianDP(1e-18).epsilon_at(1e-19), rel=1e-9)
    assert ZCDP(1e-12).epsilon_at(1e-10) == pytest.approx(1e3 * ZCDP(1e-18).epsilon_at(1e-13), rel=1e-5)
    # Large ones pass half their way at the loss expected: rho, and mu squared by 2.
    assert GaussianDP(1e6).delta_at(5e11) == pytest.approx(0.5, abs=1e-6)
    assert GaussianDP(1e6).epsilon_at(0.5) == pytest.approx(5e11, rel=1e-11)
    assert ZCDP(1e6).delta_at(0) == 1
    assert ZCDP(1e6).delta_at(2e6) == 0
    assert 1 < ZCDP(1e6).epsilon_at(1e-10) / GaussianDP(math.sqrt(2e6)).epsilon_at(1e-10) < 1.001
    assert GaussianDP(1e200).epsilon_at(0.1) == math.inf
    assert ZCDP(1e300).epsilon_at(0.1) == pytest.approx(1e300, rel=1e-12)


# Properties


@given(FINITE, powers(-300, -1e-3))
def test_epsilon_at_is_where_the_profile_is_down_to_delta(claim, delta):
    at = claim.epsilon_at(delta)
    if at == math.inf:  # no epsilon is enough: something is told with a larger probability
        assert claim.delta_at(1e300) > delta
    else:
        assert claim.delta_at(at * (1 + 1e-9)) <= delta * (1 + 1e-6)
        if at > 0 and at != getattr(claim, "epsilon", None):  # where the profile does not jump
            assert claim.delta_at(at * (1 - 1e-9)) >= delta * (1 - 1e-6)


@given(ANY, DELTAS, LOSSES)
def test_no_claim_breaks_down(claim, delta, epsilon):
    assert 0 <= claim.epsilon_at(delta) <= math.inf
    assert 0 <= claim.delta_at(epsilon) <= 1


@given(SEVERAL, st.floats(0, 700))
def test_a_smaller_claim_promises_more(claims, at):
    limit = 1 if claims[0].parameter == "delta" else math.inf
    low, high = (claims[0].at(budget) for budget in sorted(min(claim.budget, limit) for claim in claims[:2]))
    assert low <= high
    assert high >= low
    assert low.delta_at(at) <= high.delta_at(at) * (1 + 1e-9)
    assert (high <= low) == (low == high)


def test_the_order_takes_both_numbers():
    assert PureDP(1) != PureDP(1, "replace_one")
    assert PureDP(1) != ApproxDP(1, 0)
    assert ApproxDP(1, 1e-7) <= ApproxDP(1, 1e-6) <= ApproxDP(2, 1e-6)
    assert not ApproxDP(1, 1e-6) <= ApproxDP(2, 1e-7)
    assert not ApproxDP(2, 1e-7) <= ApproxDP(1, 1e-6)


@given(ANY)
@example(PureDP(0.0))
@example(ZCDP(math.inf))
def test_a_claim_survives_json(claim):
    assert claim_from_dict(json.loads(json.dumps(claim.to_dict(), allow_nan=False))) == claim


@given(powers(-300, 300), powers(-300, 0), RELATIONS)
def test_a_claim_survives_the_command_line(number, delta, relation):
    for claim in (PureDP(number, relation), ZCDP(number, relation), GaussianDP(number, relation)):
        assert parse_claim(f"{claim.kind}:{claim.budget!r}", relation) == claim
    assert parse_claim(f"approx:{number!r},{delta!r}", relation) == ApproxDP(number, delta, relation)
    assert parse_claim(f"approx:0,{delta!r}", relation) == ApproxDP(0, delta, relation)
    assert parse_claim("zcdp:1").relation == "add_remove"


@given(ANY)
def test_the_same_budget_is_the_same_claim(claim):
    assert claim.at(claim.budget) == claim
    for budget in (0, 0.7):
        other = claim.at(budget)
        assert (type(other), other.budget, other.relation) == (type(claim), budget, claim.relation)
        assert (other.parameter, other.at(claim.budget), other.group(1).budget) == (claim.parameter, claim, budget)
        unchanged = other.parameters.keys() - {claim.parameter}
        assert all(other.parameters[name] == claim.parameters[name] for name in unchanged)


def test_a_promise_with_epsilon_0_is_measured_by_its_delta():
    claim = ApproxDP(0, 0.1)
    assert (claim.parameter, claim.budget, claim.forgiven, claim.guessed_right) == ("delta", 0.1, 0.1, 0.55)
    assert (claim.scale, ApproxDP(1, 0.1).scale) == ("delta at epsilon 0", "epsilon in nats")
    assert claim.at(0.05) == ApproxDP(0, 0.05) <= claim <= ApproxDP(0, 0.2)
    assert claim.group(3).budget == pytest.approx(0.3)
    assert compose(claim, ApproxDP(1, 0.1)).budget == 1
    assert compose(claim, claim).budget == 0.2
    # What is measured of a promise about epsilon is one, also where it is nothing.
    for nothing in (ApproxDP(1, 0.1).at(0), pickle.loads(pickle.dumps(ApproxDP(1, 0.1).at(0))), ApproxDP(0, 0)):
        assert (nothing.parameter, nothing.budget) == ("epsilon", 0)
    assert ApproxDP(1, 0.1).at(0) == claim
    with pytest.raises(ValueError, match=r"delta must be in \[0, 1\], got 1\.5"):
        claim.at(1.5)


# Groups


@given(ANY, st.integers(1, 50))
def test_a_group_of_one_is_a_person_and_larger_groups_lose_more(claim, people):
    assert claim.group(1) == claim
    assert claim <= claim.group(people) <= claim.group(people + 1)


@given(st.integers(1, 100))
def test_groups_by_the_formulas_of_the_books(people):
    assert PureDP(0.3, "replace_one").group(people) == PureDP(people * 0.3, "replace_one")
    assert GaussianDP(0.3).group(people) == GaussianDP(people * 0.3)
    assert ZCDP(0.3).group(people) == ZCDP(people**2 * 0.3)
    steps = math.fsum(math.exp(0.3 * step) for step in range(people))
    assert_close(ApproxDP(0.3, 1e-20).group(people), ApproxDP(people * 0.3, 1e-20 * steps), rel=1e-12)


def largest_gain(claim, people, at):
    """The largest ``P(S) - exp(at) Q(S)`` over chains of laws from P to Q, all neighbors within the claim.

    The probabilities of one event along the chain are all that counts: a linear program.
    """
    bound, delta = math.exp(claim.epsilon), getattr(claim, "delta", 0.0)
    rows, slack = [], []
    for i in range(people):
        for here, there in ((i, i + 1), (i + 1, i)):
            row = np.zeros(people + 1)
            row[here], row[there] = 1, -bound
            rows += [row, -row]  # of the event, and of its complement
            slack += [delta, delta + bound - 1]
    gain = np.zeros(people + 1)
    gain[0], gain[-1] = 1, -math.exp(at)
    return -linprog(-gain, A_ub=rows, b_ub=slack, bounds=(0, 1)).fun


@pytest.mark.parametrize("people", [2, 3, 7])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_the_claim_of_a_group_is_the_worst_chain_of_neighbors(epsilon, people):
    pure, approx = PureDP(epsilon).group(people), ApproxDP(epsilon, 1e-4).group(people)
    if epsilon > 0:  # no smaller epsilon holds, and between 0 and it no more is reached than the profile says
        assert 0 < largest_gain(PureDP(epsilon), people, 0.99 * pure.epsilon) < pure.delta_at(0.99 * pure.epsilon)
        assert 0 < largest_gain(PureDP(epsilon), people, 0.0) < pure.delta_at(0.0)
    assert largest_gain(PureDP(epsilon), people, pure.epsilon) == pytest.approx(0, abs=1e-9)
    worst = largest_gain(ApproxDP(epsilon, 1e-4), people, approx.epsilon)
    if approx.delta < 0.05:
        assert approx.delta == pytest.approx(worst, rel=1e-6)
    else:  # the sum along the chain is not reached where it is a large probability
        assert worst < approx.delta
    assert largest_gain(ApproxDP(epsilon, 1e-4), people, 0.0) <= approx.delta_at(0.0) + 1e-9


def test_the_delta_of_a_group_is_at_most_one():
    assert ApproxDP(1, 1e-6).group(10**6) == ApproxDP(10**6, 1)
    assert ApproxDP(0, 0.4).group(3) == ApproxDP(0, 1)
    assert ApproxDP(1e-300, 0.1).group(3).delta == pytest.approx(0.3)
    assert ApproxDP(7, 1e-305).group(101).delta == pytest.approx(math.exp(700) * 1e-305 / -math.expm1(-7), rel=1e-12)
    assert ApproxDP(7, 1e-305).group(102).delta == 1
    assert ApproxDP(math.inf, 0.1).group(2) == ApproxDP(math.inf, 1)
    assert ApproxDP(math.inf, 0).group(2) == ApproxDP(math.inf, 0)


# Composition


@given(SEVERAL)
def test_the_order_of_releases_does_not_matter(claims):
    together = compose(*claims)
    assert_close(compose(*reversed(claims)), together, rel=1e-15)
    assert_close(compose(compose(*claims[:2]), *claims[2:]), together, rel=1e-12)
    assert all(claim <= together for claim in claims)
    assert compose(claims[0]) == claims[0]
    assert compose(claims[0], claims[0].at(0)).budget == claims[0].budget


def test_composition_by_the_formulas_of_the_books():
    assert compose(*[PureDP(0.1)] * 10) == PureDP(1.0)
    assert compose(ApproxDP(0.5, 1e-6), ApproxDP(1, 1e-7, "add_remove")) == ApproxDP(1.5, 1.1e-6)
    assert compose(ApproxDP(0.5, 0.7), ApproxDP(1, 0.7)) == ApproxDP(1.5, 1)
    assert compose(ZCDP(0.25, "replace_one"), ZCDP(0.5, "replace_one")) == ZCDP(0.75, "replace_one")
    assert compose(GaussianDP(3), GaussianDP(4)) == GaussianDP(5)
    assert compose(PureDP(math.inf), PureDP(1)) == PureDP(math.inf)
    assert compose(GaussianDP(math.inf), GaussianDP(1)) == GaussianDP(math.inf)
    assert PureDP(0.5).group(np.int64(4)) == PureDP(2.0)


# Between families


@given(powers(-5, 2), st.floats(0, 3))
def test_zero_concentration_covers_what_has_it(scale, share):
    """Gaussian noise has rho ``mu**2 / 2``, and so has pure privacy by Bun and Steinke, proposition 1.4."""
    rho = scale * scale / 2
    at = share * ZCDP(rho).epsilon_at(1e-6)
    bound = ZCDP(rho).delta_at(at) * (1 + 1e-9)
    assert GaussianDP(scale).delta_at(at) <= bound
    assert PureDP(scale).delta_at(at) <= bound


def test_half_of_the_rho_covers_neither():
    assert ZCDP(0.25).delta_at(2.0) < GaussianDP(1.0).delta_at(2.0)
    assert ZCDP(0.05).delta_at(0.5) < PureDP(1.0).delta_at(0.5)


# Relations, words, refusals


def assert_close(one, other, rel):
    """Claims of one family and relation whose numbers differ by rounding."""
    assert type(one) is type(other)
    left, right = one.to_dict(), other.to_dict()
    assert left == {
        key: value if isinstance(value, str) else pytest.approx(value, rel=rel) for key, value in right.items()
    }


@given(ANY)
def test_replacing_one_is_a_group_of_two(claim):
    assert claim.under(claim.relation) == claim
    if claim.relation == "add_remove":
        replaced = claim.under("replace_one")
        assert replaced.relation == "replace_one"
        assert replaced.budget == claim.group(2).budget
        assert getattr(replaced, "delta", None) == getattr(claim.group(2), "delta", None)
    else:
        with pytest.raises(ValueError, match="a replace_one promise says nothing about add_remove"):
            claim.under("add_remove")


def test_a_claim_is_stored_under_its_names():
    assert PureDP(math.inf).to_dict() == {"kind": "pure", "epsilon": "inf", "relation": "add_remove"}
    assert ApproxDP(1, 1e-6).to_dict() == {"kind": "approx", "epsilon": 1.0, "delta": 1e-6, "relation": "add_remove"}
    assert ZCDP(0.5).to_dict() == {"kind": "zcdp", "rho": 0.5, "relation": "add_remove"}
    assert GaussianDP(2, "replace_one").to_dict() == {"kind": "gaussian", "mu": 2.0, "relation": "replace_one"}
    assert [claim.budget for claim in (PureDP(1), ApproxDP(2, 0.5), ZCDP(3), GaussianDP(4))] == [1, 2, 3, 4]


MADE = {
    "epsilon": PureDP,
    "rho": ZCDP,
    "mu": GaussianDP,
    "delta": lambda delta: ApproxDP(1, delta),
    "epsilon, delta": lambda epsilon: ApproxDP(epsilon, 0.5),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("number", [1, np.float32(1), np.int64(1), Decimal(1), Fraction(1), np.array(1.0)])
def test_numbers_are_kept_as_floats(name, number):
    claim, plain = MADE[name](number), MADE[name](1.0)
    assert claim == plain
    assert hash(claim) == hash(plain)
    assert {type(value) for value in claim.to_dict().values()} == {str, float}


@pytest.mark.parametrize(
    "values",
    [
        {},
        [],
        None,
        {"kind": "renyi", "epsilon": 1, "relation": "add_remove"},
        {"kind": "zcdp", "epsilon": 1, "relation": "add_remove"},
        {"kind": "gaussian", "mu": "-1", "relation": "add_remove", "sigma": 1},
        {"kind": "approx", "epsilon": 1, "delta": 2, "relation": "add_remove"},
        {"kind": "pure", "epsilon": 1},
        {"kind": "pure", "epsilon": -1, "relation": "add_remove"},
        {"kind": "pure", "epsilon": 1, "relation": "swap"},
    ],
)
def test_a_stored_claim_is_whole_or_refused(values):
    with pytest.raises(ValueError, match=r"a claim has the keys|(epsilon|delta|mu|relation) must be .*, got "):
        claim_from_dict(values)


def stored(kind, parameter):
    return lambda number: claim_from_dict({"kind": kind, parameter: number, "relation": "add_remove"})


NO_RELATIONS = ("swap", "", None, "ADD_REMOVE", ["add_remove"])
BELOW, NO_NUMBERS = (-1, -1e-300, math.nan, -math.inf, np.float64("nan"), 10**400), ("1", None, True, 1j, [1])
RELATION = "relation must be"
FOUR = [PureDP(1), ApproxDP(1, 0.1), ZCDP(1), GaussianDP(1)]
CLAIMS = [*FOUR, PureDP(0), ZCDP(0), GaussianDP(math.inf)]


@pytest.mark.parametrize(
    ("ask", "values", "error", "message"),
    [
        (lambda one: PureDP(1) <= one, [PureDP(2, "replace_one")], ValueError, "claims under add_remove and replace_o"),
        (lambda one: PureDP(1) <= one, [2], TypeError, "not supported between instances of 'PureDP' and 'int'"),
        (lambda one: PureDP(1) <= one, [ZCDP(1)], TypeError, "no order, got PureDP and ZCDP: a bound"),
        (lambda claims: compose(*claims), [()], ValueError, "at least one claim must be given, got none"),
        (lambda claims: compose(*claims), [(ZCDP(1), PureDP(1))], TypeError, "must be of one family, got PureDP, ZCDP"),
        (compose, [1, None], TypeError, "claims that are composed must be of one family"),
        (lambda relation: compose(ZCDP(1), ZCDP(1, relation)), ["replace_one"], ValueError, "one relation, got add_r"),
        *[(make, BELOW, ValueError, f"{name.split(',')[0]} must be 0 or more, got") for name, make in MADE.items()],
        *[(make, NO_NUMBERS, TypeError, f"{name.split(',')[0]} must be a number, got") for name, make in MADE.items()],
        (MADE["delta"], [1.0000001, 2, math.inf], ValueError, r"delta must be in \[0, 1\], got"),
        *[(claim.at, [-1, math.nan], ValueError, f"{claim.parameter} must be 0 or more, got") for claim in FOUR],
        *[(claim.at, ["1"], TypeError, f"{claim.parameter} must be a number, got") for claim in FOUR],
        (check_relation, NO_RELATIONS, ValueError, 'relation must be "add_remove" or "replace_one", got'),
        *[(partial(family, 1), NO_RELATIONS, ValueError, RELATION) for family in (PureDP, ZCDP, GaussianDP)],
        (partial(ApproxDP, 1, 0.1), NO_RELATIONS, ValueError, RELATION),
        *[(claim.delta_at, [-1e-9, math.nan], ValueError, "epsilon must be 0 or more, got") for claim in CLAIMS],
        *[(one.epsilon_at, [-1e-9, 1.0, 2, math.nan], ValueError, r"delta must be in \[0, 1\), got") for one in CLAIMS],
        (ZCDP(1).group, [0, -3], ValueError, "people must be at least 1, got"),
        (ZCDP(1).group, [1.5, math.nan, "2", True], TypeError, "people must be an integer, got"),
        (stored("pure", "epsilon"), ["1", "Infinity", None, True, [1]], TypeError, "epsilon must be a number"),
        (parse_claim, ["approx:1,2"], ValueError, r"delta must be in \[0, 1\], got 2.0"),
        (partial(parse_claim, "zcdp:1"), ["swap"], ValueError, RELATION),
    ],
)
def test_what_is_no_claim_is_refused(ask, values, error, message):
    for value in values:
        with refused_like(error, message):
            ask(value)


WRONG = ["", ":", ":0", ":-1", ":inf", ":nan", ":x", ":1,", ":,1", ":1,1,1", ":1;1", ":1:1", "=1", " 1"]


@pytest.mark.parametrize(
    "text",
    [f"{family}{rest}" for family in ("pure", "approx", "zcdp", "gaussian") for rest in WRONG]
    + ["pure:1,1e-6", "zcdp:1,1", "gaussian:1,1", "approx:1", "approx:1,0", "approx:0,0", "approx:1,nan"]
    + ["", ":", ":1", "1", "Pure:1", " pure:1", "nobody:2,1", "gdp:1", "rho:1"],
)
def test_a_written_claim_is_of_a_family_positive_and_finite(text):
    with pytest.raises(ValueError, match=r"^a claim is written ") as refused:
        parse_claim(text)
    forms, rest = str(refused.value).removeprefix("a claim is written ").split(" with ", 1)
    assert set(re.split(", | or ", forms)) >= {"pure:EPSILON", "approx:EPSILON,DELTA", "gaussian:MU", "zcdp:RHO"}
    meant = ": did you mean pure:1?" if text == "1" else ""
    assert rest == f"positive finite numbers, approx:0,DELTA for total variation, got {text!r}{meant}"
