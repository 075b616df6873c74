import math

import numpy as np
import pytest
from dp_accounting.rdp.rdp_privacy_accountant import compute_delta, compute_epsilon
from hypothesis import given
from scipy.integrate import quad
from scipy.stats import norm

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.claims.profiles import invert
from audit.exact import loss_distribution
from tests.helpers import powers, refuses


def mixture(mu, epsilon):
    """Log of delta as the integral of ``1 - exp(epsilon - loss)`` over the positive part: no difference of tails."""
    near = epsilon / mu - mu / 2

    def density(step):
        return math.exp(-step * step / 2 - near * step) * -math.expm1(-mu * step)

    if near >= 0:
        return math.log(quad(density, 0, 40 / (1 + near), epsabs=0, epsrel=1e-12)[0] / math.sqrt(2 * math.pi)) - (
            near * near / 2
        )
    total, _ = quad(
        lambda z: math.exp(-z * z / 2) * -math.expm1(-mu * (z - near)), max(near, -40), 40, epsabs=0, epsrel=1e-12
    )
    return math.log(total / math.sqrt(2 * math.pi))


# Zero-concentrated privacy


@pytest.mark.parametrize("rho", [1e-12, 1e-6, 0.01, 0.3, 0.5, 2.5562, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("deviations", [-2, 0, 0.3, 2, 10, 30])
def test_no_order_does_better_than_the_best(rho, deviations):
    epsilon = max(0.0, rho + deviations * math.sqrt(rho))
    best = ZCDP(rho).log_delta(epsilon)
    largest = epsilon / rho + 2 / math.sqrt(rho)
    above = largest * np.geomspace(1e-24, 1, 20_001)  # of Renyi orders above 1
    others = above * ((1 + above) * rho - epsilon - np.log1p(1 / above)) - np.log1p(above)  # logs of delta
    assert np.argmin(others) < others.size - 1
    assert -1e-12 <= (others.min() - best) / max(1, abs(best)) < 1e-5


@pytest.mark.parametrize("rho", [1e-3, 0.1, 2.5562, 50.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-10, 1e-100])
def test_zero_concentration_agrees_with_dp_accounting(rho, delta):
    orders = 1.01 + np.geomspace(1e-3, 1e3 / math.sqrt(rho), 5001)
    theirs, _ = compute_epsilon(orders, rho * orders, delta)
    ours = invert(ZCDP(rho).log_delta, delta)
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert ours <= theirs * (1 + 1e-12)  # their orders are on a grid
    reached, _ = compute_delta(orders, rho * orders, theirs)
    assert math.exp(ZCDP(rho).log_delta(theirs)) == pytest.approx(reached, rel=1e-3)


@pytest.mark.parametrize(
    ("claim", "epsilon", "log_delta"),
    [
        *[(ZCDP(rho), at, -math.inf) for rho in (0.5, 1e-12, 5e-324) for at in (1e18, 1e200, 1.7e308)],
        *[(GaussianDP(mu), at, -math.inf) for mu in (1.0, 5e-324) for at in (1e18, 1e200, 1.7e308)],
        (ZCDP(5e-324), 1.0, -math.inf),
        (ZCDP(1e4), 0.0, 0.0),
        (ZCDP(1e300), 1.0, 0.0),
        (GaussianDP(1e-200), 1e200, -math.inf),
        (GaussianDP(1e200), 1.0, 0.0),
        (GaussianDP(1e12), 4.9e23, 0.0),
        (GaussianDP(1e12), 5e23, math.log(0.5)),
    ],
)
def test_extreme_budgets_promise_all_or_nothing(claim, epsilon, log_delta):
    assert claim.log_delta(epsilon) == pytest.approx(log_delta, abs=1e-11)


# Gaussian privacy


@pytest.mark.parametrize("mu", [1e-14, 1e-9, 0.9e-5, 1.1e-5, 1e-3, 0.3, 1.0, 7.0, 100.0, 1e3])
@pytest.mark.parametrize("near", [-9, -1, -1e-3, 0, 1e-3, 0.5, 3, 10, 30])
def test_the_gaussian_profile_is_the_integral_of_the_loss(mu, near):
    epsilon = mu * max(near + mu / 2, 0.0)
    expected = mixture(mu, epsilon)
    # A relative error of delta: the largest is where the difference of two Mills ratios begins, at mu = 1e-5.
    assert GaussianDP(mu).log_delta(epsilon) == pytest.approx(expected, abs=1e-9 if 1e-5 < mu < 1e-3 else 2e-11)


# Inversion


@given(powers(-300, 300), powers(-300, 0))
def test_an_exponential_profile_is_inverted_at_any_scale(scale, delta):
    found = invert(lambda epsilon: -epsilon / scale, delta)
    if delta < 1:
        assert found == pytest.approx(-scale * math.log(delta), rel=1e-9)
    else:
        assert found == 0


def test_a_jump_is_found_from_either_side_or_nowhere():
    assert invert(lambda epsilon: 0.0 if epsilon < 3 else -math.inf, 0.5) == pytest.approx(3, rel=1e-13)
    assert invert(lambda epsilon: 0.0 if epsilon < 1e-9 else -1e9, 0.5) == pytest.approx(1e-9, rel=1e-13)
    # What no epsilon bounds is infinite.
    assert invert(lambda epsilon: -0.1, 0.5) == math.inf
    assert invert(GaussianDP(1e200).log_delta, 0.5) == math.inf
    assert invert(lambda epsilon: -1.0, 0.5) == 0


# What follows from a claim: how often guesses are right, which normal laws keep it, whether losses of queries do


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
        (ZCDP(0.5), 0.75),  # by Pinsker
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
        (PureDP(1.1, "replace_one"), PureDP(1.0), None),
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


@pytest.mark.parametrize(("outcomes", "most"), [(1024, 1 - 1e-7), (1100, 0.99)])
def test_queries_of_many_outcomes_are_added_up_from_below(outcomes, most):
    """A million pairs are listed, and their delta is exact; that of more may be too small, and here by less than 1%."""
    shares = np.random.default_rng(1).dirichlet(np.ones(outcomes), size=2)
    law = loss_distribution(*shares)
    both_x, both_y = (np.multiply.outer(one, one).ravel() for one in shares)
    delta = np.maximum(both_x - math.e * both_y, 0).sum()
    found = {share: ApproxDP(1.0, share * delta).excess(math.inf, [law, law]) for share in (1.0, 1 - 1e-7, 0.99)}
    assert [share for share, words in found.items() if words] == [share for share in found if share <= most]


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
