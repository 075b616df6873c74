"""Bounds on rho: exact divergences as the truth, and bounds whose runs chose, too (coverage: row 1)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.bounds.rectangle import rectangle
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.exact import loss_distribution

CONFIDENCES = st.floats(0.3, 0.999)


def worst_rho(p, q):
    """Divergence over order of two coins, both directions, by the library of exact losses."""
    both = [loss_distribution([p, 1 - p], [q, 1 - q]), loss_distribution([q, 1 - q], [p, 1 - p])]
    return max(law.renyi(order) / order for law in both for order in (1.0, 1.3, 2.0, 3.0, 7.0, 20.0))


# Known truth


def test_many_runs_of_one_event_reach_its_divergence():
    p, q, runs = 0.3, 0.1, 10**9
    found = renyi_event_lower(int(p * runs), runs, int(q * runs), runs, confidence=0.95)
    assert worst_rho(p, q) * 0.999 < found < worst_rho(p, q) * 1.01  # the grid of orders here is coarser than there
    # The other direction counts as well: nearly always against often.
    often = renyi_event_lower(990, 1000, 900, 1000, confidence=0.5)
    low, high = map(float, rectangle(990, 1000, 900, 1000, confidence=0.5))
    forth = [loss_distribution([low, 1 - low], [high, 1 - high]).renyi(a) / a for a in (1.0, 1.5, 2.0, 4.0, 9.0)]
    back = [loss_distribution([high, 1 - high], [low, 1 - low]).renyi(a) / a for a in (1.0, 1.5, 2.0, 4.0, 9.0)]
    assert max(forth) < max(back) <= often


@pytest.mark.parametrize("seen", [(692, 1000, 309, 1000), (60, 1000, 10, 1000), (1000, 1000, 0, 1000)])
def test_the_event_bound_is_the_divergence_at_the_corner(seen):
    low, high = map(float, rectangle(*seen, confidence=0.95))
    found = renyi_event_lower(*seen, confidence=0.95)
    assert worst_rho(low, high) <= found + 1e-12
    assert found <= worst_rho(low, high) * 1.1


@pytest.mark.parametrize("order", [1.0, 1.0 + 1e-9, 1.5, 2.0, 5.0])
def test_the_variational_formula_is_tight_at_the_likelihood_ratio(order):
    """With 1e14 runs limits are means: the formula is the divergence at the exact score and below it at any other."""
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.25, 0.5])
    runs = 1e14
    truth = loss_distribution(p, q).renyi(order) / order
    exact = renyi_variational_lower(np.log(p / q), p * runs, q * runs, order=order, confidence=0.95)
    assert exact == pytest.approx(truth, rel=1e-5)
    assert exact < truth
    for other in (2 * np.log(p / q), [1.0, 0.0, -1.0], np.log(p / q) * [1.3, 1, 1]):
        assert renyi_variational_lower(other, p * runs, q * runs, order=order, confidence=0.95) < truth * 0.999


def test_the_empirical_bernstein_limits_term_by_term():
    values, on_y, on_x = [0.0, 0.5, 1.0], [20, 30, 150], [100, 60, 40]
    y, x = np.repeat(values, on_y), np.exp(np.repeat(values, on_x))
    term = math.log(2 / 0.05)  # confidence 0.9, an error of 0.05 each

    def error(sample, spread):
        return math.sqrt(2 * sample.var(ddof=1) * term / 200) + 7 * spread * term / (3 * 199)

    literal = y.mean() - error(y, 1.0) - math.log(x.mean() + error(x, math.e - 1))
    assert renyi_variational_lower(values, on_y, on_x, order=1.0, confidence=0.9) == pytest.approx(literal, rel=1e-12)
    y, x = np.exp(np.repeat(values, on_y)), np.exp(2 * np.repeat(values, on_x))
    literal = math.log(y.mean() - error(y, math.e - 1)) - math.log(x.mean() + error(x, math.e**2 - 1)) / 2
    assert renyi_variational_lower(values, on_y, on_x, order=2.0, confidence=0.9) == pytest.approx(literal, rel=1e-12)


# Properties


@given(
    st.lists(st.tuples(st.floats(-3, 3), st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=8),
    st.floats(1, 8),
    CONFIDENCES,
    st.floats(-5, 5),
)
def test_the_variational_bound_is_finite_and_knows_no_origin(seen, order, confidence, moved):
    values, on_y, on_x = map(list, zip(*seen, strict=True))
    found = renyi_variational_lower(values, on_y, on_x, order=order, confidence=confidence)
    assert 0 <= found < math.inf
    shifted = renyi_variational_lower([v + moved for v in values], on_y, on_x, order=order, confidence=confidence)
    assert shifted == pytest.approx(found, rel=1e-6, abs=1e-9)
    none = [0] * len(values)
    merged = renyi_variational_lower(values * 2, on_y + none, none + on_x, order=order, confidence=confidence)
    assert merged == pytest.approx(found, rel=1e-9, abs=1e-12)
    wider = renyi_variational_lower([*values, 9.0], [*on_y, 0], [*on_x, 0], order=order, confidence=confidence)
    assert wider <= found + 1e-9  # a greater range that was possible costs


def test_nothing_seen_shows_nothing():
    assert renyi_event_lower(0, 0, 0, 0, confidence=0.95) == 0
    assert renyi_event_lower(50, 100, 50, 100, confidence=0.95) == 0
    assert renyi_event_lower(0, 100, 100, 100, confidence=0.95) == 0
    assert 5 < renyi_event_lower(10**6, 10**6, 0, 10**6, confidence=0.95) < 15
    assert renyi_event_lower(501_000, 10**6, 499_000, 10**6, confidence=0.95) > 0
    assert renyi_variational_lower([0.0], [10], [10], order=1.0, confidence=0.95) == 0
    assert renyi_variational_lower([0.0, 1.0], [0, 0], [0, 0], order=2.0, confidence=0.95) == 0
    assert renyi_variational_lower([0.0, 1.0], [0, 1], [1, 0], order=1.0, confidence=0.95) == 0
    assert renyi_variational_lower([-1e4, 0.0], [50, 50], [100, 0], order=2.0, confidence=0.95) == 0  # underflows
    assert renyi_variational_lower([-1e4, 0.0], [100, 0], [100, 0], order=2.0, confidence=0.95) == 0
    with pytest.raises(ValueError, match=r"must share one shape .* got \(3,\), \(2,\) and \(2,\)"):
        renyi_variational_lower([0.0, 1.0, 2.0], [1, 2], [1, 2], order=1.0, confidence=0.95)


# Negative controls: runs that choose must not count


def test_a_score_fitted_to_the_same_runs_is_no_score():
    """No loss at all, 200 outputs, and the ratio of their frequencies as the score."""
    rng, law = np.random.default_rng(205), np.full(200, 1 / 200)
    y, x = rng.multinomial(1000, law, (2, 100)), rng.multinomial(1000, law, (2, 100))
    same, held_out = 0, 0
    for k in range(100):
        score = np.clip(np.log((y[0, k] + 1) / (x[0, k] + 1)), -2, 2)
        same += renyi_variational_lower(score, y[0, k], x[0, k], order=1.0, confidence=0.95) > 0
        held_out += renyi_variational_lower(score, y[1, k], x[1, k], order=1.0, confidence=0.95) > 0
    assert same > 90
    assert held_out <= 15  # of 100, false alarm 1e-4


def test_the_best_of_many_events_is_no_bound():
    """No loss at all, and the best of 2,000 events counted on the same runs."""
    rng = np.random.default_rng(207)
    y, x = rng.binomial(200, 0.5, (100, 2000)), rng.binomial(200, 0.5, (100, 2000))
    best = (y - x).argmax(axis=1)

    def shown(event):
        runs = zip(y[np.arange(100), event].tolist(), x[np.arange(100), event].tolist(), strict=True)
        return sum(renyi_event_lower(a, 200, b, 200, confidence=0.95) > 0 for a, b in runs)

    assert shown(best) > 90
    assert shown(0) <= 15  # of 100, false alarm 1e-4
