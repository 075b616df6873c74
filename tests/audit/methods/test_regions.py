"""Gaussian and zero-concentrated privacy: bounds by hand and as the theorems give them, and exact coverage."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from audit.bounds.gaussian import gaussian_lower
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.bounds.two_samples import surprises
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.methods import Gaussian, Renyi, TwoSamples
from audit.methods.two_samples import STEP
from tests.audit.methods.cases import BINS, BOTH, CONFIDENCES, GUESSED, ONE, audited, binned, lower, named, weighed


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
def test_a_likelihood_ratio_is_that_of_the_bounds(x, y, confidence, distance, order, toward):  # bets for each
    event = weighed(order, toward)
    likely, other = (y, x) if toward == "y" else (x, y)
    rho = renyi_variational_lower(event.rule.weights, likely, other, order=order, confidence=confidence)
    found = lower(Renyi(ZCDP(1), distance, confidence), binned(x, y), event)
    assert found == pytest.approx(rho / distance**2, rel=1e-9)  # 1 - (1 - confidence) is rounded


@pytest.mark.parametrize("method", [Gaussian, Renyi])
def test_a_region_of_unknown_rate_detects_nothing(method):
    how = method(GaussianDP(1) if method is Gaussian else ZCDP(1), 1, 0.95)
    for x, y in (((0, 0, 50), (0, 0, 50)), ((0, 50, 0), (0, 50, 0)), ((0, 25, 25), (0, 0, 0))):
        assert how.detectable(named(x, y), how.basis(ONE)) == math.inf
    assert method(how.claim.at(9.0), 1, 0.95).detectable(named((0, 25, 25), (0, 25, 25)), how.basis(ONE)) == math.inf


def test_a_run_in_two_bins_is_refused():
    how, counts = Renyi(ZCDP(0.5), 1, 0.95), binned((0, 0, 0, 10), (10, 0, 0, 0))
    how.check(counts, how.basis(weighed()))
    counts["x"]["bin 1"] = counts["x"].get("bin 1", 0) + 1
    with pytest.raises(ValueError, match="every run must be in one of 4 bins"):
        how.check(counts, how.basis(weighed()))


def test_more_runs_detect_a_smaller_divergence():
    def detectable(runs, confidence=0.95, rho=0.5):
        how = Renyi(ZCDP(rho), 1, confidence)
        return how.detectable(binned((0, 0, 0, runs), (runs, 0, 0, 0)), how.basis(weighed()))

    found = [detectable(runs) for runs in (100, 1000, 10_000, 100_000)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 1.5 > 1.1 * 0.5 > found[-1] > 0.5
    assert detectable(10_000, confidence=0.999) > found[2]
    assert detectable(1) == detectable(50, rho=9.0) == math.inf
    # However little is promised, what can be detected ends at what chance does to as many runs.
    least = detectable(10_000, rho=1e-300)
    assert 1e-5 < least < 0.02
    assert detectable(10_000, rho=1e-9) == pytest.approx(least, rel=0.02)


# Few given runs: the steps of the bound, its power exactly


@settings(max_examples=8)  # the minimum detectable loss needs all counts
@given(GUESSED, GUESSED, st.floats(0.01, 0.999), st.integers(1, 3), st.sampled_from([0.0, 0.02]))
def test_few_runs_prove_the_last_step_that_they_refute(x, y, confidence, distance, delta):
    claim = ApproxDP(1, delta) if delta else PureDP(1)
    options = {"method": TwoSamples, "confidence": confidence, "distance": distance, "claim": claim}
    result, swapped = audited(x, y, **options), audited((y[1], y[0], y[2]), (x[1], x[0], x[2]), **options)
    assert (swapped.measured, swapped.verdict, result.bound) == (result.measured, result.verdict, "two samples")
    assert swapped.detectable == pytest.approx(result.detectable)
    steps = round(result.measured.epsilon * distance / STEP)
    assert result.measured.epsilon == steps * STEP / distance
    if min(sum(x), sum(y)) == 0:
        assert steps == 0
        return
    both = surprises(y[1], sum(y), x[1], sum(x)), surprises(x[0], sum(x), y[0], sum(y))
    for step, refuted in ((steps, steps > 0), (steps + 1, False)):
        pair = claim.at(step * STEP / distance).group(distance)
        found = [one.refute(pair.budget, pair.forgiven, confidence=(1 + confidence) / 2) for one in both]
        assert any(found) == refuted or step < 2


@pytest.mark.parametrize(
    ("claim", "distance", "hits"),
    [
        (PureDP(0.5), 1, (7, 16)),
        (PureDP(0.5), 1, (1, 13)),
        (ApproxDP(0.5, 0.1), 1, (7, 16)),
        (ApproxDP(0.2, 0.02), 2, (7, 16)),
    ],
)
def test_what_is_detectable_is_seen_in_four_of_five_audits(claim, distance, hits):
    """Law: the event's two probabilities add up to what was seen, and are as far apart as the loss allows."""
    x, y = 24, 20
    how = TwoSamples(claim, distance, 0.95)
    found = how.detectable(named((0, hits[0], x - hits[0]), (0, hits[1], y - hits[1])), {"regions": 1})
    assert claim.epsilon < found < math.inf
    pair, share = claim.at(found).group(distance), hits[0] / x + hits[1] / y
    rare = (share - pair.forgiven) / (1 + math.exp(pair.epsilon))
    likely = rare * math.exp(pair.epsilon) + pair.forgiven
    if likely > 1:
        likely, rare = 1.0, (1 - pair.forgiven) * math.exp(-pair.epsilon)

    def needed(a):
        """Return how often at least the event must be met on y if it is met `a` times on x."""
        low, high = -1, y + 1
        while high - low > 1:
            b = (low + high) // 2
            shown = lower(how, named((0, a, x - a), (0, b, y - b)), ONE) > claim.epsilon
            low, high = (low, b) if shown else (b, high)
        return high

    power = sum(binom.pmf(a, x, rare) * binom.sf(needed(a) - 1, y, likely) for a in range(x + 1))
    assert power == pytest.approx(0.8, abs=1e-6)


def test_what_is_hardly_ever_seen_is_never_detected():
    def detectable(epsilon, x, y):
        return TwoSamples(PureDP(epsilon), 1, 0.95).detectable(named(x, y), {"regions": 2})

    assert detectable(9.0, (20, 20), (20, 20)) == math.inf
    assert detectable(1.0, (0, 0, 40), (0, 0, 40)) == math.inf
    assert detectable(1.0, (0, 0, 30), (0, 30, 570)) == math.inf
