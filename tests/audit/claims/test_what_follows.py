"""What follows from a claim: how often guesses are right, which normal laws keep it, whether losses of queries do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.exact import loss_distribution
from tests.helpers import refuses

COIN = loss_distribution([0.75, 0.25], [0.25, 0.75])  # tells the truth three times in four
HALF_DIVERGENCE = math.log(0.75**2 / 0.25 + 0.25**2 / 0.75) / 2


@pytest.mark.parametrize(
    ("claim", "right"),
    [
        (PureDP(math.log(3)), 0.75),
        (ApproxDP(math.log(3), 0.01), 0.75),  # but for failures
        (ApproxDP(0.0, 0.2), 0.6),
        (GaussianDP(2.0), norm.cdf(1.0)),
        (ZCDP(0.0), 0.5),
    ],
)
def test_guesses_are_right_so_often(claim, right):
    assert claim.guessed_right == pytest.approx(right, rel=1e-12)


def test_two_families_are_an_epsilon_and_a_delta_which_is_forgiven():
    claims = PureDP(0.5), ApproxDP(1.0, 1e-6), ZCDP(1.0), GaussianDP(1.0)
    assert [claim.forgiven for claim in claims] == [0, 1e-6, 0, 0]
    assert [claim.epsilon_delta for claim in claims] == [(0.5, 0.0), (1.0, 1e-6), None, None]


def test_normal_laws_by_their_distance():
    """Bun and Steinke, 2016, proposition 1.6: so many standard deviations apart, rho is half their square."""
    assert [ZCDP(0.5).shift, ZCDP(4.5).shift, GaussianDP(3.0).shift] == [1.0, 3.0, 3.0]
    assert ZCDP(1.0, "replace_one").at_shift(3.0) == ZCDP(4.5, "replace_one")
    assert GaussianDP(1.0, "replace_one").at_shift(3.0) == GaussianDP(3.0, "replace_one")


def test_other_families_have_no_normal_laws():
    for claim in (PureDP(1.0), ApproxDP(1.0, 1e-6)):
        message = f"{type(claim).__name__} is not measured by normal laws"
        refuses(TypeError, message, lambda claim=claim: claim.shift)
        refuses(TypeError, message, claim.at_shift, 1.0)


@pytest.mark.parametrize(
    ("claim", "other", "weaker"),
    [
        (PureDP(1.1), PureDP(1.0), True),
        (PureDP(1.0), ApproxDP(1.0, 1e-6), False),
        (ApproxDP(1.0, 1e-6), PureDP(1.0), True),
        (ApproxDP(0.9, 1e-5), ApproxDP(1.0, 1e-6), True),
        (PureDP(1.1), PureDP(1.0, "replace_one"), None),
        (ZCDP(0.5), ZCDP(0.4), True),
        (ZCDP(0.5), GaussianDP(1.0), None),
        (GaussianDP(1.0), PureDP(1.0), None),
    ],
)
def test_a_weaker_claim_promises_less_by_any_number(claim, other, weaker):
    assert claim.weaker_than(other) is weaker


# Losses of queries


@pytest.mark.parametrize(
    ("claim", "epsilon", "words"),
    [
        (PureDP(1.0), 1.0, None),
        (PureDP(1.0), 1 + 1e-10, None),  # floats
        (PureDP(1.0), 1 + 1e-8, ("epsilon 1", "1")),
    ],
)
def test_epsilons_of_queries_add_up(claim, epsilon, words):
    assert claim.excess(epsilon, []) == words


@pytest.mark.parametrize(
    ("coins", "delta", "words"),
    [(1, 0.5, None), (2, 0.375, None), (2, 0.37, ("delta 0.375 at epsilon 1.09861", "0.37"))],
)
def test_a_coin_told_twice_has_this_delta(coins, delta, words):
    """Both true, 9/16 against 1/16, is all that is likelier by more than 3: 9/16 - 3/16."""
    assert ApproxDP(math.log(3), delta).excess(math.inf, [COIN] * coins) == words


@pytest.mark.parametrize(("outcomes", "seen"), [(1024, 1 - 1e-7), (1100, 0.99)])
def test_queries_of_many_outcomes_are_added_up_from_below(outcomes, seen):
    """A million pairs are listed, and their delta is exact; that of more may be too small, and here by less than 1%."""
    shares = np.random.default_rng(1).dirichlet(np.ones(outcomes), size=2)
    law = loss_distribution(*shares)
    both_x, both_y = (np.multiply.outer(one, one).ravel() for one in shares)
    delta = np.maximum(both_x - math.e * both_y, 0).sum()
    found = {share: ApproxDP(1.0, share * delta).excess(math.inf, [law, law]) for share in (1.0, 1 - 1e-7, 0.99)}
    assert [share for share, words in found.items() if words] == [share for share in found if share <= seen]


@pytest.mark.parametrize("at", [lambda rho: ZCDP(rho), lambda rho: GaussianDP(math.sqrt(2 * rho))])
def test_renyi_divergences_of_queries_add_up(at):
    """Two equal laws, which may be one object. A grid under normal noise may add one in ten thousand."""
    again = loss_distribution([0.25, 0.75], [0.75, 0.25])
    for coins in ([COIN, COIN], [COIN, again]):
        promised = at(2 * HALF_DIVERGENCE)
        assert promised.excess(math.inf, coins) is None
        assert at(2 * HALF_DIVERGENCE * (1 - 0.9e-4)).excess(math.inf, coins) is None
        less = at(2 * HALF_DIVERGENCE * (1 - 1.1e-4))
        assert less.excess(math.inf, coins) == (f"{promised.parameter} {promised.budget:.6g}", f"{less.budget:.6g}")
