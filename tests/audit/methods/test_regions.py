"""Gaussian and zero-concentrated privacy: bounds by hand and as the theorems give them, and exact coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from audit.bounds.gaussian import gaussian_lower
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.claims import ZCDP, GaussianDP
from audit.methods import Gaussian, Renyi
from tests.audit.methods.cases import BINS, BOTH, CONFIDENCES, GUESSED, ONE, WEIGHTS, binned, lower, named, weighed


@given(GUESSED, GUESSED, CONFIDENCES, st.integers(1, 5))
def test_regions_are_those_of_the_bounds(x, y, confidence, distance):
    both = [(y[1], sum(y), x[1], sum(x)), (x[0], sum(x), y[0], sum(y))]
    one = [(y[1], y[1] + y[2], x[1], x[1] + x[2])]
    for event, counts, each, regions in (
        (BOTH, named(x, y), (1 + confidence) / 2, both),
        (ONE, named((0, *x[1:]), (0, *y[1:])), confidence, one),
    ):
        shift = max(float(gaussian_lower(*region, confidence=each)) for region in regions)
        assert lower(Gaussian(GaussianDP(1), distance, confidence), counts, event) == pytest.approx(shift / distance)
        rho = max(renyi_event_lower(*region, confidence=each) for region in regions)
        assert lower(Renyi(ZCDP(1), distance, confidence), counts, event) == pytest.approx(rho / distance**2)


@given(BINS, BINS, CONFIDENCES, st.integers(1, 5), st.sampled_from([1.0, 1.5, 4.0]), st.sampled_from(["x", "y"]))
def test_a_likelihood_ratio_is_that_of_the_bounds(x, y, confidence, distance, order, toward):
    event = weighed(order, toward)
    likely, other = (y, x) if toward == "y" else (x, y)
    rho = renyi_variational_lower(event.rule.weights, likely, other, order=order, confidence=confidence)
    assert lower(Renyi(ZCDP(1), distance, confidence), binned(x, y), event) == rho / distance**2


@pytest.mark.parametrize("method", [Gaussian, Renyi])
def test_a_region_of_unknown_rate_detects_nothing(method):
    how = method(GaussianDP(1) if method is Gaussian else ZCDP(1), 1, 0.95)
    for x, y in (((0, 0, 50), (0, 0, 50)), ((0, 50, 0), (0, 50, 0)), ((0, 25, 25), (0, 0, 0))):
        assert how.detectable(named(x, y), how.basis(ONE)) == math.inf
    assert method(how.claim.at(9.0), 1, 0.95).detectable(named((0, 25, 25), (0, 25, 25)), how.basis(ONE)) == math.inf


def test_what_a_region_detects_is_called_a_violation_in_four_of_five_audits():
    """Normal laws stand for both counts: here that is off by 0.011. Without the chance of the rarer one it is 0.72."""
    runs, rare, met, how = 400, 0.2, np.arange(401), Gaussian(GaussianDP(0.5), 1, 0.95)
    shift = how.detectable(named((0, 80, 320), (0, 200, 200)), how.basis(ONE))
    shown = gaussian_lower(met[:, None], runs, met, runs, confidence=0.95) > 0.5
    likely = norm.cdf(norm.ppf(rare) + shift)
    chance = np.outer(binom.pmf(met, runs, likely), binom.pmf(met, runs, rare))
    assert chance[shown].sum() == pytest.approx(0.8, abs=0.02)


def test_more_runs_detect_a_smaller_divergence():
    def detectable(runs, confidence=0.95, rho=0.5):
        how = Renyi(ZCDP(rho), 1, confidence)
        return how.detectable(binned((0, 0, 0, runs), (runs, 0, 0, 0)), how.basis(WEIGHTS))

    found = [detectable(runs) for runs in (100, 1000, 10_000, 100_000)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 1.5 > 1.1 * 0.5 > found[-1] > 0.5
    assert detectable(10_000, confidence=0.999) > found[2]
    assert detectable(1) == detectable(50, rho=9.0) == math.inf
    # However little is promised, what can be detected ends at what chance does to as many runs.
    least = detectable(10_000, rho=1e-300)
    assert 1e-5 < least < 0.02
    assert detectable(10_000, rho=1e-9) == pytest.approx(least, rel=0.02)
