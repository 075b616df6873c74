"""Conversions of a claim to epsilon at a delta."""

from __future__ import annotations

import math

import pytest

from algorithms.release.ledger import conversions
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
