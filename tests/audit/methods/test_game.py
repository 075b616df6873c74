"""The guessing game: its bound by hand, its power exactly, its coverage exactly."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom

from audit.bounds.game import approx_game_lower, guessing_game_lower
from audit.claims import ApproxDP, PureDP
from audit.events import cell
from audit.methods import Game
from audit.methods.game import detectable_epsilon
from audit.methods.method import fewest
from tests.audit.methods.cases import GUESSED, lower, named


def detectable(epsilon, guessed, *, confidence=0.95, distance=1, delta=0.0, runs=None):
    how = Game(ApproxDP(epsilon, delta), distance, confidence)
    counts = named((guessed, 0, (runs or guessed) - guessed), (0, 0, 0))
    return how.detectable(counts, {})


# Known truth


@given(GUESSED, GUESSED, st.floats(0.01, 0.999), st.integers(1, 5), st.floats(0, 0.3))
def test_the_numbers_are_those_of_the_bounds(x, y, confidence, distance, delta):
    correct, guessed, runs = x[0] + y[1], x[0] + x[1] + y[0] + y[1], sum(x) + sum(y)
    common = {"confidence": confidence, "delta": delta, "distance": distance}
    pure = float(guessing_game_lower(correct, guessed, confidence=confidence)) / distance
    assert lower(Game(PureDP(1), distance, confidence), named(x, y)) == pure
    claim = ApproxDP(1.0, delta)
    assert lower(Game(claim, distance, confidence), named(x, y)) == approx_game_lower(correct, guessed, runs, **common)
    swapped = named((y[1], y[0], y[2]), (x[1], x[0], x[2]))
    assert lower(Game(claim, distance, confidence), swapped) == lower(Game(claim, distance, confidence), named(x, y))


# The minimum detectable loss


@pytest.mark.parametrize("needed", [0, 1, 60, 100])
def test_the_fewest_guesses_that_are_seen_are_found_from_anywhere_below(needed):
    for start in {-1, 0, needed // 2, needed - 1}:
        if start < needed:
            assert fewest(lambda correct: correct >= needed, 100, start) == needed
    assert fewest(lambda correct: False, 100, 40) == 101


def test_what_no_count_shows_is_never_detected():
    assert detectable_epsilon(PureDP(1), 1, 51, 50, 50) == math.inf
    assert detectable_epsilon(PureDP(1), 1, 0, 0, 50) == math.inf
    assert detectable_epsilon(PureDP(1), 1, 0, 50, 50) == 0  # seen at odds of one half already
    # Beyond what a probability in floating point can tell from 1.
    assert detectable_epsilon(PureDP(1), 1, 10**17, 10**17, 10**17) == math.inf
    assert detectable(40.0, 10**6) == math.inf


# What chance in the choice of the event takes from it


@pytest.mark.parametrize(
    ("claim", "distance", "missing"),
    [
        (PureDP(0.5), 1, [0.0]),
        (PureDP(0.5), 1, [0.0, 0.3]),
        (PureDP(0.2), 3, [0.2]),
        (ApproxDP(0.2, 0.005), 3, [0.0]),
        (ApproxDP(0.5, 0.02), 1, [0.0, 0.0, 0.1, 0.6]),
    ],
)
def test_power_is_the_mean_over_the_events_that_may_be_chosen(claim, distance, missing):
    """Law: of equally likely events each carries the loss but for what is missing of it."""
    how, guessed, runs = Game(claim, distance, 0.95), 300, 400
    counts = [named((k, 0, runs - guessed), (guessed - k, 0, 0)) for k in range(guessed + 1)]
    refuted = np.array([lower(how, count) > claim.epsilon for count in counts])
    found = how.detectable(counts[0], {"shortfalls": missing})
    pair, power = claim.at(found).group(distance), []
    for lost in missing:
        right = expit(pair.epsilon - lost)
        right += pair.forgiven * runs / guessed * (1 - right)
        power.append(binom.pmf(np.arange(guessed + 1), guessed, right)[refuted].sum())
    assert np.mean(power) == pytest.approx(0.8, abs=1e-8)
    least = how.detectable(counts[0], {})
    assert least - 1e-8 <= found <= least + max(missing) / distance + 1e-8


def scores(columns, choosing=3000, seed=5):
    """Scores on either database: of each column the shift between them, in deviations of normal noise."""
    noise = np.random.default_rng(seed).normal(size=(2, choosing, len(columns)))
    return noise[0] - np.array(columns) / 2, noise[1] + np.array(columns) / 2


WEAK = PureDP(0.1)


def shortfalls(statistics, x, y, claim=WEAK):
    how = Game(claim, 1, 0.95)
    event = how.choose(statistics, x, y, families=("threshold", "cell"), counting=4 * len(x))[0]
    assert how.basis(event) == ({"shortfalls": list(event.shortfalls)} if event.shortfalls else {})
    return np.array(event.shortfalls)


def test_events_that_runs_cannot_tell_apart_fall_short_of_one_another():
    """By about a standard error of the log-odds from the runs that choose, 2 / sqrt(6000), or less: 6 choices."""
    statistics = tuple(cell(k) for k in range(5))
    alike = shortfalls(statistics, *scores([0.1] * 5))
    error = 2 / math.sqrt(6000)
    assert alike.min() == 0
    assert 0.2 * error < np.sqrt(np.mean(alike**2)) < 3 * error
    # More runs tell more, whatever they are asked: in the mean of two.
    few, many = (
        np.mean(
            [np.mean(shortfalls(statistics, *scores([0.1] * 5, choosing=runs, seed=seed)) ** 2) for seed in range(5, 7)]
        )
        for runs in (3000, 48_000)
    )
    assert 0 < many < few
    assert np.all(shortfalls(statistics, *scores([0.1] * 5), claim=ApproxDP(0.1, 0.01)) < 10 * error)
