import json
import math

import numpy as np
import pytest
from scipy.stats import beta

from audit.estimates.direct import direct_loss
from audit.results import LossEstimate
from tests.helpers import halving, refused_like


@pytest.mark.parametrize("distance", [1, 3])
def test_the_tails_of_a_geometric_law_give_its_epsilon(distance):
    x, y = halving() + 100, halving() + 100 - distance
    estimate = direct_loss(x, y, 100, at=range(9), distance=distance)
    assert estimate.loss == pytest.approx(np.full(9, math.log(2)), abs=1e-14)
    assert estimate.value == pytest.approx(math.log(2), abs=1e-14)
    assert (estimate.size, estimate.areas, estimate.statistic) == (2 * len(x), 1, "largest |loss|")


def test_cells_of_a_geometric_law_give_epsilon_with_the_sign_of_the_side():
    x, y = halving() + 100, halving() + 99
    estimate = direct_loss(x, y, 100, event="equal")
    assert estimate.at.tolist() == list(range(-8, 9))
    assert estimate.loss == pytest.approx(np.where(estimate.at >= 0, 1, -1) * math.log(2), abs=1e-14)


def test_real_outputs_are_rounded_to_whole_people_with_halves_up():
    x, y = [9.5, 10.0, 10.25, 10.49, 10.5, 8.0], [9.49, 10.0, 11.0, 10.75, 8.5, 9.0]
    estimate = direct_loss(x, y, 10, at=[0], event="equal")
    assert (estimate.settings["counts_x"], estimate.settings["counts_y"]) == ([4], [1])
    at_least = direct_loss(x, y, 10, at=[0.25], event="at_least")
    assert (at_least.settings["counts_x"], at_least.settings["counts_y"]) == ([3], [2])


def test_an_event_unseen_on_one_side_is_nan_and_its_counts_are_kept():
    estimate = direct_loss([0, 1, 2, 3], [0, 0, 1, 1], 0, at=[-1, 1, 2, 4])
    assert np.isnan(estimate.loss).tolist() == [False, False, True, True]
    assert np.isnan(estimate.low).tolist() == np.isnan(estimate.high).tolist() == [False, False, True, True]
    assert estimate.settings["counts_x"] == [4, 3, 2, 0]
    assert estimate.settings["counts_y"] == [4, 2, 0, 0]
    assert estimate.value == pytest.approx(math.log(3 / 2))


def test_the_interval_is_a_ratio_of_clopper_pearson_intervals():
    x, y = np.repeat([1, 0], [30, 70]), np.repeat([1, 0], [12, 48])
    estimate = direct_loss(x, y, 0, at=[1], distance=2, confidence=0.9)
    each = 0.1 / 4  # four one-sided limits
    low = math.log(beta.ppf(each, 30, 71) / beta.ppf(1 - each, 13, 48)) / 2
    high = math.log(beta.ppf(1 - each, 31, 70) / beta.ppf(each, 12, 49)) / 2
    assert (estimate.low[0], estimate.high[0]) == pytest.approx((low, high), abs=1e-12)
    assert estimate.low[0] < 0  # a log-ratio may be negative, a loss not
    assert estimate.interval == (0, estimate.high[0])
    swapped = direct_loss(y, x, 0, at=[1], distance=2, confidence=0.9)
    assert (swapped.low[0], swapped.high[0]) == pytest.approx((-high, -low), abs=1e-12)
    assert swapped.interval == pytest.approx(estimate.interval, abs=1e-12)
    assert swapped.value == pytest.approx(estimate.value)


def test_a_clear_loss_has_the_interval_of_its_log_ratio():
    x, y = np.repeat([1, 0], [60, 40]), np.repeat([1, 0], [12, 48])
    one, swapped = (direct_loss(*runs, 0, at=[1]) for runs in ((x, y), (y, x)))
    assert one.interval == (one.low[0], one.high[0])
    assert swapped.interval == pytest.approx(one.interval, abs=1e-12)


def test_the_size_of_a_log_ratio_may_be_that_of_its_other_sign():
    """One of three against 300 of 1,000: the ratio is above 1, and what it may be reaches further below."""
    estimate = direct_loss([1, 0, 0], np.repeat([1, 0], [300, 700]), 0, at=[1])
    assert 0 < estimate.loss[0] < estimate.high[0] < -estimate.low[0]
    assert estimate.interval == (0, -estimate.low[0])


def test_the_bias_is_said_and_the_exact_count_is_not():
    estimate = direct_loss(halving() + 77_777, halving() + 77_776, 77_777)
    assert "uncorrected" in estimate.assumptions[0]
    assert str(estimate).startswith("estimate, no bound: largest |loss| 0.6931 [")
    text = json.dumps(estimate.to_dict(), allow_nan=False)
    assert "7777" not in text
    assert LossEstimate.from_dict(json.loads(text)).to_dict() == estimate.to_dict()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"outputs_x": []}, ValueError, r"outputs_x must be a filled array of 1 dimensions, got shape \(0,\)"),
        ({"outputs_y": [1, math.nan]}, ValueError, r"outputs_y must be finite and below 2\*\*53 in size, got nan"),
        ({"event": "at_most"}, ValueError, 'event must be "at_least" or "equal", got \'at_most\''),
        ({"event": "equal", "at": [0, 0.5]}, ValueError, 'at must be whole numbers for event "equal", got 0.5'),
        ({"distance": 0}, ValueError, "distance must be at least 1, got 0"),
        ({"at": [5]}, ValueError, r"no event was seen on both databases, got counts \[0\] and \[0\]"),
        ({"distance": 1.0}, TypeError, "distance must be an integer, got 1.0"),
    ],
)
def test_bad_input_is_refused(options, error, words):
    with refused_like(error, words):
        direct_loss(**{"outputs_x": [0, 1], "outputs_y": [0, 1], "exact": 0} | options)
