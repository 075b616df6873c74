from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.rdp.rdp_privacy_accountant import compute_delta, compute_epsilon
from hypothesis import given
from scipy.integrate import quad

from audit.claims import ZCDP, GaussianDP
from audit.claims.profiles import invert
from tests.helpers import powers

RHOS = [1e-12, 1e-6, 0.01, 0.5, 2.5562, 30.0, 1e3, 1e6]
MUS = [1e-14, 1e-9, 0.9e-5, 1.1e-5, 1e-3, 0.3, 1.0, 7.0, 100.0, 1e3]


def conversion(rho, epsilon, above):
    """Log of delta by the Renyi orders ``1 + above``."""
    return above * ((1 + above) * rho - epsilon - np.log1p(1 / above)) - np.log1p(above)


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


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("deviations", [-2, 0, 0.3, 2, 10, 30])
def test_no_order_does_better_than_the_best(rho, deviations):
    epsilon = max(0.0, rho + deviations * math.sqrt(rho))
    best = ZCDP(rho).log_delta(epsilon)
    largest = epsilon / rho + 2 / math.sqrt(rho)
    others = conversion(rho, epsilon, largest * np.geomspace(1e-24, 1, 20_001))
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


@pytest.mark.parametrize("mu", MUS)
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
