"""Exact shares of a budget, and conversions of a claim to epsilon at a delta."""

import math
from fractions import Fraction

import pytest

from algorithms.release.ledger import conversions, exact_share
from audit.claims import ZCDP, GaussianDP, PureDP
from tests.helpers import refuses


def test_conversions_of_pure_privacy_are_one_number():
    assert conversions(PureDP(1.0), 1e-10) == {"tight": PureDP(1.0).epsilon_at(1e-10)}


@pytest.mark.parametrize("rho", [0.01, 2.5])
@pytest.mark.parametrize("delta", [1e-12, 1e-3])
def test_conversions_of_rho_are_ordered(rho, delta):
    found = conversions(ZCDP(rho), delta)
    assert list(found) == ["simple", "tight", "Gaussian"]
    assert found["simple"] > found["tight"] > found["Gaussian"] >= 0
    assert found["simple"] == pytest.approx(rho + math.sqrt(4 * rho * math.log(1 / delta)))
    assert GaussianDP(math.sqrt(2 * rho)).delta_at(found["Gaussian"]) <= delta * (1 + 1e-6)


def test_a_delta_that_is_no_probability_and_other_claims_are_refused():
    for delta in (0, 1, math.nan):
        with pytest.raises(ValueError, match=r"^delta must be between 0 and 1, got"):
            conversions(ZCDP(1.0), delta)
    refuses(TypeError, "claim must be PureDP or ZCDP, got GaussianDP", conversions, GaussianDP(1.0), 1e-6)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (0.1, TypeError, "must be exact"),
        (True, TypeError, "must be exact"),
        ("1/0", ValueError, "fraction from 0 to 1"),
        ("5/4", ValueError, "fraction from 0 to 1, got 5/4"),
        (-1, ValueError, "fraction from 0 to 1, got -1"),
        # Endless digits are refused at once, and told in short.
        *(
            (text, ValueError, r"^share of level 0 must be a fraction from 0 to 1, got '.{1,40}'$")
            for text in ("1e999999999", "1E-9_999", "1/" + "3" * 99)
        ),
    ],
)
def test_shares_are_exact(value, error, words):
    with pytest.raises(error, match=words):
        exact_share("level 0", value)
    assert exact_share("level 0", "25e-2") == Fraction(1, 4)
