"""Bounds on rho: exact divergences as the truth, and bounds whose runs chose, too (coverage: row 1)."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from audit.bounds.rectangle import rectangle
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.exact import loss_distribution
from tests.hostile.oracle import score_money

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


@pytest.mark.parametrize(
    "hits", [(692, 1000, 309, 1000), (60, 1000, 10, 1000), (1000, 1000, 0, 1000), (940, 1000, 700, 1000)]
)
def test_the_event_bound_is_the_divergence_at_the_corner(hits):
    """Of the last event, which is met nearly always, the other direction shows more."""
    low, high = map(float, rectangle(*hits, confidence=0.95))
    found = renyi_event_lower(*hits, confidence=0.95)
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


@pytest.mark.parametrize("runs", [30, 900, 40_000])
@pytest.mark.parametrize(("order", "confidence"), [(1.0, 0.95), (1.0, 0.5), (1.25, 0.95), (4.0, 0.8)])
def test_the_bound_is_where_the_money_is_enough_if_bets_are_made_one_by_one(order, confidence, runs):
    values, y, x = [-2.0, 0.0, 1.0, 2.0], np.array([10, 30, 25, 35]), np.array([40, 35, 20, 5])
    rng, needed, positive = np.random.default_rng(runs), -math.log1p(-confidence), 0
    for lots in range(3):
        on_y, on_x = (rng.multinomial(runs, side / 100).tolist() for side in (y, x))
        found = renyi_variational_lower(values, on_y, on_x, order=order, confidence=confidence, lots=lots)
        money = [score_money(values, on_y, on_x, order, needed, lots, found + by) for by in (-1e-8, 1e-8)]
        assert needed > money[1]
        assert found == 0 or money[0] >= needed
        positive += found > 0
    assert positive or runs == 30


# Properties


@given(
    st.lists(st.tuples(st.integers(-12, 12), st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=8),
    st.floats(1, 8),
    CONFIDENCES,
    st.integers(-20, 20),
)
def test_the_variational_bound_is_finite_and_knows_no_origin(hits, order, confidence, moved):
    fourths, on_y, on_x = map(list, zip(*hits, strict=True))  # quarters: other values might be equal after a move
    values = [fourth / 4 for fourth in fourths]
    found = renyi_variational_lower(values, on_y, on_x, order=order, confidence=confidence)
    assert 0 <= found <= max(values) - min(values)
    shifted = [value + moved / 4 for value in values]
    assert renyi_variational_lower(shifted, on_y, on_x, order=order, confidence=confidence) == found
    none = [0] * len(values)
    merged = renyi_variational_lower(values * 2, on_y + none, none + on_x, order=order, confidence=confidence)
    assert merged == found


def test_a_greater_range_that_was_possible_costs():
    values, on_y, on_x = [-1.0, 0.0, 1.0], [100, 300, 600], [600, 300, 100]
    ranges = [([*values, most], [*on_y, 0], [*on_x, 0]) for most in (1.0, 3.0, 5.0, 9.0)]
    found = [renyi_variational_lower(*one, order=1.0, confidence=0.95) for one in ranges]
    assert found == sorted(found, reverse=True)
    assert found[0] > 2 * found[-1]


def test_nothing_seen_shows_nothing():
    assert renyi_event_lower(0, 0, 0, 0, confidence=0.95) == 0
    assert renyi_event_lower(50, 100, 50, 100, confidence=0.95) == 0
    assert renyi_event_lower(0, 100, 100, 100, confidence=0.95) == 0
    assert 5 < renyi_event_lower(10**6, 10**6, 0, 10**6, confidence=0.95) < 15
    assert renyi_event_lower(501_000, 10**6, 499_000, 10**6, confidence=0.95) > 0
    assert renyi_variational_lower([0.0], [10], [10], order=1.0, confidence=0.95) == 0
    assert renyi_variational_lower([0.0, 1.0], [0, 0], [0, 0], order=2.0, confidence=0.95) == 0
    assert renyi_variational_lower([0.0, 1.0], [0, 1], [1, 0], order=1.0, confidence=0.95) == 0
    assert renyi_variational_lower([0.0, 1e-300], [9, 90], [90, 9], order=1.0, confidence=0.95) == 0  # squares are 0
    # Powers of the least score underflow. Half of the runs have one that at most 3% of the others may have.
    assert 0 < renyi_variational_lower([-1e4, 0.0], [50, 50], [100, 0], order=2.0, confidence=0.95) < math.log(3)
    assert renyi_variational_lower([-1e4, 0.0], [100, 0], [100, 0], order=2.0, confidence=0.95) == 0
    with pytest.raises(ValueError, match=r"must share one shape .* got \(3,\), \(2,\) and \(2,\)"):
        renyi_variational_lower([0.0, 1.0, 2.0], [1, 2], [1, 2], order=1.0, confidence=0.95)


def test_of_few_runs_the_bound_holds_over_all_lots():  # 40 lots for each of 36 counts
    """Exactly, for all that two coins may be: of single lots some miss too often."""
    runs, chances, misses = 5, np.linspace(0.02, 0.98, 13), []
    counts = [[runs - k, k] for k in range(runs + 1)]
    bounds = np.array(
        [
            [
                [renyi_variational_lower([-1, 1], y, x, order=1.0, confidence=0.5, lots=lot) for x in counts]
                for y in counts
            ]
            for lot in range(40)
        ]
    )
    law = binom.pmf(np.arange(runs + 1), runs, chances[:, None])
    for p, q in itertools.combinations_with_replacement(range(13), 2):
        shown = 2 * chances[q] - 1 - math.log(chances[p] * math.e + (1 - chances[p]) / math.e)
        misses.append(np.einsum("y,x,lyx->l", law[q], law[p], bounds > max(shown, 0.0)))
    assert max(np.mean(lots) for lots in misses) <= 0.4
    assert max(lots.max() for lots in misses) > 0.42


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
