"""The choice of regions for Gaussian privacy, and of weights for divergences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import logsumexp, ndtri
from scipy.stats import norm

from audit.attacks.selection import Shifts, rate_candidates, select_events, select_weights, tabulated
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.renyi import renyi_variational_lower
from audit.events import WeightRule, cell
from tests.audit.attacks.cases import BOTH, ENTRY, scored
from tests.helpers import geometric


def region(x, y, *, families=BOTH, counting=50_000, confidence=0.95):
    shifts = Shifts(counting, confidence)
    return select_events(rate_candidates(tabulated(ENTRY, *scored(ENTRY, x, y), families), shifts), shifts)[0]


def weights(x, y, *, counting=50_000, confidence=0.95):
    return select_weights(ENTRY, *scored(ENTRY, x, y), counting=counting, confidence=confidence)


@pytest.mark.parametrize("mu", [-2.0, -0.3, 0.3, 1.0, 3.0])
def test_a_region_shows_the_shift_of_normal_laws(mu):
    shown = []
    for seed in range(5):
        x, y = np.random.default_rng([seed, 10]).normal([[0], [mu]], size=(2, 5000))
        event = region(x, y, families=("threshold",))
        rule = event.rule
        assert math.isinf(rule.low) != math.isinf(rule.high)  # it names one database only
        here, there = (mu, 0) if len(set(event.guess(np.array([-1e9, 1e9])).tolist()) & {1}) else (0, mu)
        tail = (
            (lambda c, r=rule: norm.sf(r.high - c)) if math.isinf(rule.low) else (lambda c, r=rule: norm.cdf(r.low - c))
        )
        p, q = tail(here), tail(there)
        assert ndtri(p) - ndtri(q) == pytest.approx(abs(mu))  # any half-line does: what counts is how many runs fall in
        shown.append(gaussian_lower(round(25_000 * p), 25_000, round(25_000 * q), 25_000, confidence=0.95))
    # The best region shows mu less 2 standard errors of 25,000 runs on either side: 0.025 at the middle.
    assert abs(mu) - 0.08 < np.median(shown) <= abs(mu)


def test_a_region_of_single_values_is_one_of_a_side():
    rng = np.random.default_rng(11)
    response = np.array([0, 1, 2, 3])
    x = rng.choice(response, 6000, p=[0.4, 0.2, 0.2, 0.2])
    y = rng.choice(response, 6000, p=[0.2, 0.2, 0.4, 0.2])
    event = region(x, y, families=("cell",))
    assert event.rule.y.size * event.rule.x.size == 0
    assert str(event) in ("y if output in {2}", "x if output in {0}", "y if output in {1..3}")
    # 0.58 is shown by either, and by all but 0, which says the same. To take others along, as thresholds must for 2,
    # shows 0.51.
    either = (
        "y if output in {2}",
        "x if output in {0}",
        "x if output <= 0",
        "y if output in {1..3}",
        "y if output >= 1",
    )
    assert str(region(x, y)) in either


@pytest.mark.parametrize("side", ["x", "y"])
def test_a_region_of_an_atom_is_found_between_other_values(side):
    rng = np.random.default_rng(12)
    x, y = rng.laplace(size=(2, 20_000))
    (x if side == "x" else y)[rng.random(20_000) < 0.02] = 0.5
    assert str(region(x, y)) == f"{side} if output in {{0.5}}"


def test_regions_are_chosen_however_many_runs_will_count():
    # For one number in ten the limit of an event that was never seen rounds to below 0.
    x, y = np.random.default_rng(13).normal([[0], [2]], size=(2, 300))
    for counting in range(20, 60):
        event = region(x, y, counting=counting, families=("threshold",))
        assert event.guess(np.array([-9.0, 11.0])).any()


def divergence_shown(event, p, q):
    """What the weights of an event show of a divergence over its order, on exact probabilities of its bins."""
    rule = event.rule
    likely, other = (q, p) if rule.toward == "y" else (p, q)
    with np.errstate(divide="ignore"):
        log_likely, log_other = np.log(likely), np.log(other)
    a, g = rule.order, rule.weights
    first = likely @ g if a == 1 else logsumexp(log_likely + (a - 1) * g) / (a - 1)
    return first - logsumexp(log_other + a * g) / a


def normal_bins(event, mean):
    return np.diff(norm.cdf(event.rule.edges, mean), prepend=0, append=1)


@pytest.mark.parametrize("mu", [0.2, 1.0, -1.0, 2.0])
def test_weights_show_the_divergence_of_normal_laws(mu):
    shown = []
    for seed in range(3):
        x, y = np.random.default_rng([seed, 14]).normal([[0], [mu]], size=(2, 10_000))
        event = weights(x, y, counting=400_000)
        shown.append(divergence_shown(event, normal_bins(event, 0), normal_bins(event, mu)))
        # No weights show more than there is. Of 256 quantiles, clipped where they are rare, most of it is left.
        assert shown[-1] <= mu**2 / 2 + 1e-9
    assert np.median(shown) > 0.85 * mu**2 / 2


def test_weights_that_are_taken_at_random_show_less():
    x, y = np.random.default_rng(16).normal([[0], [1]], size=(2, 10_000))
    event = weights(x, y)
    p, q = normal_bins(event, 0), normal_bins(event, 1)
    mixed = np.random.default_rng(17).permutation(event.rule.weights)  # negative control
    rule = WeightRule(event.rule.edges, mixed, event.rule.order, event.rule.toward)
    assert divergence_shown(type(event)(event.statistic, rule), p, q) < 0.1 < divergence_shown(event, p, q)


@pytest.mark.parametrize("noise", [lambda rng, n: rng.normal(size=n), lambda rng, n: geometric(0.3, n, rng)])
def test_weights_of_equal_laws_show_nothing_on_fresh_runs(noise):
    rng = np.random.default_rng(18)
    for _ in range(5):
        event = weights(noise(rng, 1000), noise(rng, 1000))
        rule = event.rule
        x, y = (np.bincount(rule.bins(cell()(noise(rng, 20_000))), minlength=rule.weights.size) for _ in range(2))
        likely, other = (y, x) if rule.toward == "y" else (x, y)
        # False alarm of each 1e-6.
        assert renyi_variational_lower(rule.weights, likely, other, order=rule.order, confidence=1 - 1e-6) == 0


@pytest.mark.parametrize("values", [(0.0, 1.0), (1.0, 0.0), (-math.inf, math.inf), (math.inf, 5.0)])
def test_disjoint_laws_get_the_largest_weights(values):
    x, y = (np.full(200, value) for value in values)
    event = weights(x, y)
    # Only 4 bits of loss can be told by 25,000 runs if one in 10 must be doubted; 9 is the most that is tried.
    assert np.abs(event.rule.weights).max() >= 4
    assert event.guess(np.array(values)).tolist() == [-1, 1]
    rule, counts = event.rule, [np.bincount(event.rule.bins(cell()(part)), minlength=2) * 125 for part in (x, y)]
    likely, other = counts[::-1] if rule.toward == "y" else counts
    assert renyi_variational_lower(rule.weights, likely, other, order=rule.order, confidence=0.95) > 2


@pytest.mark.parametrize("share", [0.0002, 0.01, 0.4])
@pytest.mark.parametrize("end", [-math.inf, math.inf, 1e307])
def test_weights_of_infinite_scores_are_finite(share, end):
    rng = np.random.default_rng(19)
    x, y = rng.normal([[0], [1]], size=(2, 10_000))
    x[rng.random(x.size) < share], y[rng.random(y.size) < share] = end, end
    event = weights(x, y)
    assert np.isfinite(event.rule.weights).all()
    assert event.guess(np.array([-2.0, 3.0])).tolist() == [-1, 1]


def test_weights_of_one_score_are_none():
    event = weights(np.full(50, 3), np.full(60, 3))
    assert str(event) == "never a guess"
    assert event.rule.weights.tolist() == [0]
