from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom

from audit.bounds import guessing_game_lower, two_sample_lower
from audit.planning import game_ceiling, game_detectable, rectangle_ceiling, rectangle_detectable


def literal_needed(epsilon, guesses, confidence):
    """The fewest right guesses whose bound exceeds the promise, tried one by one."""
    for correct in range(guesses + 1):
        if guessing_game_lower(correct, guesses, confidence=confidence) > epsilon:
            return correct
    return None


# Known truth


@pytest.mark.parametrize(
    ("epsilon", "guesses", "detectable", "within"),
    [(0.025, 140_000, 0.038, 5e-4), (10.0, 140_000, 11.4, 0.05), (10.0, 10_000, math.inf, 0)],
)
def test_what_the_contract_says_can_be_seen(epsilon, guesses, detectable, within):
    assert game_detectable(epsilon, guesses, confidence=0.95) == pytest.approx(detectable, abs=within)


@pytest.mark.parametrize(
    ("epsilon", "median", "likely"),
    [(0.025, 1.733e6, 6.93e6), (0.1, 109_115, 4.34e5), (1.0, 1399, 5426), (4.0, 865, 3245)],
)
def test_sample_sizes_are_those_of_the_reference(epsilon, median, likely):
    """Guesses for a bound of nine tenths of epsilon, half of the time and 19 times in 20."""
    half = game_detectable(0.9 * epsilon, round(median), confidence=0.95, power=0.5)
    most = game_detectable(0.9 * epsilon, round(likely), confidence=0.95, power=0.95)
    # The margin above 0.9 shrinks with the root of the size: 1 % of it is 2 % of a size.
    assert (half / epsilon - 0.9) == pytest.approx(0.1, rel=0.02)
    assert (most / epsilon - 0.9) == pytest.approx(0.1, rel=0.02)


def test_two_samples_need_what_the_reference_says():
    half = rectangle_detectable(0.9, 1972, 1972, confidence=0.95, power=0.5)
    assert (half - 0.9) == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("runs", [1, 3, 100, 10**6])
def test_the_ceiling_is_every_guess_right(confidence, runs):
    all_right = float(guessing_game_lower(runs, runs, confidence=confidence))
    assert game_ceiling(runs, confidence=confidence) == pytest.approx(all_right, rel=1e-6, abs=1e-9)
    assert game_ceiling(runs, confidence=confidence, distance=5) == pytest.approx(all_right / 5, rel=1e-6, abs=1e-9)
    alpha = 1 - confidence
    assert all_right == pytest.approx(max(0.0, math.log(alpha ** (1 / runs) / (1 - alpha ** (1 / runs)))), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("guesses", [5, 37, 600])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_game_detectable_has_the_power_it_says_and_no_more(epsilon, guesses, confidence):
    needed = literal_needed(epsilon, guesses, confidence)
    found = game_detectable(epsilon, guesses, confidence=confidence, power=0.8)
    if needed is None:
        assert found == math.inf
        return
    assert binom.sf(needed - 1, guesses, expit(found)) == pytest.approx(0.8, abs=1e-9)
    assert found > epsilon


@pytest.mark.parametrize("confidence", [0.9, 0.95])
@pytest.mark.parametrize(("epsilon", "runs_x", "runs_y"), [(0.0, 30, 30), (0.5, 60, 40), (1.5, 80, 80)])
@pytest.mark.parametrize("share", [1.0, 0.6, 1.05])
def test_rectangle_detectable_has_the_power_it_says(epsilon, runs_x, runs_y, confidence, share):
    found = rectangle_detectable(epsilon, runs_x, runs_y, confidence=confidence, share=share)
    likely = min(1.0, share * expit(found))
    power = 0.0
    for y in range(runs_y + 1):
        for x in range(runs_x + 1):
            if two_sample_lower(y, runs_y, x, runs_x, confidence=confidence) > epsilon:
                power += binom.pmf(y, runs_y, likely) * binom.pmf(x, runs_x, likely * math.exp(-found))
    assert power == pytest.approx(0.8, abs=1e-6)


def test_the_rectangle_ceiling_is_the_best_of_all_counts():
    for runs_x, runs_y in ((7, 12), (12, 7), (40, 40), (1, 1)):
        y, x = np.arange(runs_y + 1), np.arange(runs_x + 1)
        on_y = two_sample_lower(y[:, None], runs_y, x, runs_x, confidence=0.95).max()
        on_x = two_sample_lower(x[:, None], runs_x, y, runs_y, confidence=0.95).max()
        assert rectangle_ceiling(runs_x, runs_y, confidence=0.95) == pytest.approx(max(on_x, on_y))
        assert rectangle_ceiling(runs_x, runs_y, confidence=0.95, distance=4) == pytest.approx(max(on_x, on_y) / 4)


# Power, simulated: 4,000 audits leave a share of 0.8 within 0.026 but for 1e-4 (binomial)


@pytest.mark.parametrize(("claim", "distance"), [(0.1, 1), (1.0, 1), (0.05, 20)])
def test_a_detectable_loss_is_detected_four_times_in_five(claim, distance):
    rng, guesses, audits = np.random.default_rng(7), 3000, 4000
    loss = game_detectable(claim, guesses, confidence=0.95, distance=distance)

    def share(true_loss):
        correct = rng.binomial(guesses, expit(distance * true_loss), audits)
        return np.mean(guessing_game_lower(correct, guesses, confidence=0.95) / distance > claim)

    assert share(loss) == pytest.approx(0.8, abs=0.026)
    assert share(claim) < 0.08  # and a promise that is kept is not
    assert share((loss + claim) / 2) < 0.6  # negative control: half of the excess is seen less often


def test_a_loss_detectable_by_the_rectangle_is_detected_four_times_in_five():
    rng, audits = np.random.default_rng(8), 4000
    loss = rectangle_detectable(0.25, 70, 50, confidence=0.95, distance=2)
    y, x = rng.binomial(50, expit(2 * loss), audits), rng.binomial(70, expit(-2 * loss), audits)
    assert np.mean(two_sample_lower(y, 50, x, 70, confidence=0.95) / 2 > 0.25) == pytest.approx(0.8, abs=0.026)


# Properties


@given(st.floats(0, 8), st.integers(1, 3000), st.floats(0.5, 0.999), st.floats(0.1, 0.9), st.integers(1, 30))
def test_what_is_seen_lies_between_the_promise_and_the_ceiling(epsilon, guesses, confidence, power, distance):
    found = game_detectable(epsilon, guesses, confidence=confidence, distance=distance, power=power)
    assert found >= 0
    if game_ceiling(guesses, confidence=confidence, distance=distance) < epsilon - 1e-9:
        assert found == math.inf
    stronger = game_detectable(epsilon, guesses, confidence=confidence, distance=distance, power=0.95)
    stricter = game_detectable(epsilon, guesses, confidence=0.9999, distance=distance, power=power)
    broader = game_detectable(epsilon + 0.1, guesses, confidence=confidence, distance=distance, power=power)
    assert found <= min(stronger, stricter, broader)
    if power > 1 - confidence:
        assert found >= epsilon - 1e-9


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_more_runs_show_more(first, second):
    few, many = sorted([first, second])
    assert game_ceiling(few, confidence=0.95) <= game_ceiling(many, confidence=0.95)
    assert rectangle_ceiling(few, few, confidence=0.95) <= rectangle_ceiling(many, few, confidence=0.95)
    assert rectangle_ceiling(few, many, confidence=0.95) <= rectangle_ceiling(many, many, confidence=0.95)


# Edges and refusals


def test_no_runs_show_nothing():
    assert game_ceiling(0, confidence=0.95) == 0
    assert rectangle_ceiling(0, 50, confidence=0.95) == rectangle_ceiling(50, 0, confidence=0.95) == 0
    assert game_detectable(1.0, 0, confidence=0.95) == math.inf
    assert game_detectable(40.0, 10**6, confidence=0.95) == math.inf
    assert rectangle_detectable(1.0, 0, 0, confidence=0.95) == math.inf
    assert rectangle_detectable(9.0, 40, 40, confidence=0.95) == math.inf
    assert rectangle_detectable(1.0, 30, 3000, confidence=0.95, share=0.05) == math.inf  # hardly ever seen on y
    assert rectangle_detectable(1.0, 40, 40, confidence=0.95, share=0.0) == math.inf
    for share in (-0.1, 2.1, math.nan):
        with pytest.raises(ValueError, match=r"share must be in \[0, 2\], got"):
            rectangle_detectable(1.0, 5, 5, confidence=0.9, share=share)


def test_a_power_below_the_false_alarm_needs_no_loss():
    assert game_detectable(0.0, 100, confidence=0.5, power=0.1) == 0
    assert rectangle_detectable(0.0, 10, 10, confidence=0.5, power=0.01) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confidence": 1.0}, r"confidence must be in \(0, 1\), got 1\.0"),
        ({"confidence": math.nan}, r"confidence must be in \(0, 1\), got nan"),
        ({"distance": 0}, "distance must be at least 1, got 0"),
        ({"distance": -2}, "distance must be at least 1, got -2"),
    ],
)
def test_plans_refuse_numbers_out_of_range(change, message):
    sound = {"confidence": 0.95, "distance": 1, **change}
    for plan in (
        lambda: game_ceiling(5, **sound),
        lambda: game_detectable(1.0, 5, **sound),
        lambda: rectangle_ceiling(5, 5, **sound),
        lambda: rectangle_detectable(1.0, 5, 5, **sound),
    ):
        with pytest.raises(ValueError, match=message):
            plan()


def test_plans_refuse_negative_runs_losses_and_impossible_powers():
    for plan in (
        lambda: game_ceiling(-1, confidence=0.9),
        lambda: game_detectable(1.0, -1, confidence=0.9),
        lambda: rectangle_ceiling(5, -1, confidence=0.9),
        lambda: rectangle_detectable(1.0, -1, 5, confidence=0.9),
    ):
        with pytest.raises(ValueError, match="runs must be 0 or more, got -1"):
            plan()
    for epsilon in (-0.1, math.nan):
        with pytest.raises(ValueError, match="epsilon must be 0 or more, got"):
            game_detectable(epsilon, 5, confidence=0.9)
        with pytest.raises(ValueError, match="epsilon must be 0 or more, got"):
            rectangle_detectable(epsilon, 5, 5, confidence=0.9)
    for power in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match=r"power must be in \(0, 1\), got"):
            game_detectable(1.0, 5, confidence=0.9, power=power)
        with pytest.raises(ValueError, match=r"power must be in \(0, 1\), got"):
            rectangle_detectable(1.0, 5, 5, confidence=0.9, power=power)
