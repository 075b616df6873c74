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
from audit.events import cell
from tests.audit.attacks.cases import BOTH, ENTRY, scored


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
