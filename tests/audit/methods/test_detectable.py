"""What runs can show: ceilings that nothing exceeds, and losses that are seen in four of five audits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtri
from scipy.stats import binom, norm

from audit.bounds.game import approx_game_lower, guessing_game_lower
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.rectangle import rectangle, two_sample_lower
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.claims import ApproxDP
from audit.methods.ceilings import divergence_ceiling, game_ceiling, rectangle_ceiling, region_ceiling
from audit.methods.detectable import (
    detectable_loss,
    divergence_detectable,
    divergence_event_detectable,
    game_detectable,
    rectangle_detectable,
    region_detectable,
)


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


@pytest.mark.parametrize(("epsilon", "delta", "distance"), [(0.5, 0.1, 1), (0.2, 0.02, 3)])
@pytest.mark.parametrize("share", [1.0, 0.5, 1.4])
def test_rectangle_detectable_pays_for_what_is_forgiven(epsilon, delta, distance, share):
    """The worst law: with the delta of the pair the event happens on y, else it is as in randomized response."""
    runs_x, runs_y = 40, 50
    found = rectangle_detectable(epsilon, runs_x, runs_y, confidence=0.95, distance=distance, share=share, delta=delta)
    pair, promise = ApproxDP(found, delta).group(distance), ApproxDP(epsilon, delta).group(distance)
    rare = (share - pair.delta) / (1 + math.exp(pair.epsilon))
    likely = min(1.0, share - rare)
    if likely == 1.0:
        rare = (1 - pair.delta) / math.exp(pair.epsilon)
    assert likely == pytest.approx(math.exp(pair.epsilon) * rare + pair.delta)
    x, y = np.arange(runs_x + 1), np.arange(runs_y + 1)
    low, high = rectangle(y[:, None], runs_y, x, runs_x, confidence=0.95)
    violated = low > high * math.exp(promise.epsilon) + promise.delta
    chance = np.outer(binom.pmf(y, runs_y, likely), binom.pmf(x, runs_x, rare))
    assert chance[violated].sum() == pytest.approx(0.8, abs=1e-6)
    pure = rectangle_detectable(epsilon, runs_x, runs_y, confidence=0.95, distance=distance, share=share)
    assert pure != pytest.approx(found, rel=1e-3)


def test_the_game_ceiling_is_the_best_of_all_counts_of_an_approximate_promise():
    most = max(
        approx_game_lower(correct, guesses, 25, delta=0.05, confidence=0.95, distance=2)
        for guesses in range(26)
        for correct in range(guesses + 1)
    )
    assert game_ceiling(25, confidence=0.95, distance=2, delta=0.05) == most > 0.3
    assert most < game_ceiling(25, confidence=0.95, distance=2)


@pytest.mark.parametrize(
    ("epsilon", "delta", "guesses", "runs", "distance"),
    [(0.5, 0.02, 150, 150, 1), (0.5, 0.02, 150, 600, 1), (1.5, 1e-6, 150, 200, 1), (0.2, 0.005, 150, 200, 3)],
)
def test_a_game_that_forgives_has_the_power_it_says(epsilon, delta, guesses, runs, distance):
    """The worst law: all that is forgiven falls on runs with a guess, which is then right."""
    found = game_detectable(epsilon, guesses, confidence=0.95, distance=distance, delta=delta, runs=runs)
    pair = ApproxDP(found, delta).group(distance)
    right = expit(pair.epsilon)
    right += pair.delta * runs / guesses * (1 - right)
    correct = np.arange(guesses + 1)
    shown = [
        approx_game_lower(k, guesses, runs, delta=delta, confidence=0.95, distance=distance) > epsilon for k in correct
    ]
    assert binom.pmf(correct, guesses, right)[shown].sum() == pytest.approx(0.8, abs=1e-8)
    assert epsilon < found < game_detectable(epsilon, guesses, confidence=0.95, distance=distance) + 1
    assert game_detectable(epsilon, guesses, confidence=0.95, delta=delta) == game_detectable(
        epsilon, guesses, confidence=0.95, delta=delta, runs=guesses
    )


@pytest.mark.parametrize("power", [0.2, 0.8])
@pytest.mark.parametrize("needed", [1, 60, 100])
def test_any_bound_on_a_game_has_the_power_it_says(needed, power):
    found = detectable_loss(lambda correct: correct >= needed, 100, 100, power=power)
    if needed == 1:
        assert found == 0  # seen at odds of one half already
        return
    if math.isfinite(found) and found > 0:
        assert binom.sf(needed - 1, 100, expit(found)) == pytest.approx(power, abs=1e-9)
    grouped = detectable_loss(lambda correct: correct >= needed, 100, 100, distance=4, power=power)
    assert grouped == pytest.approx(found / 4)


def test_what_no_count_shows_is_never_detected():
    assert detectable_loss(lambda correct: False, 50, 50) == math.inf
    assert detectable_loss(lambda correct: True, 0, 50) == math.inf
    assert detectable_loss(lambda correct: True, 50, 50) == 0
    assert detectable_loss(lambda correct: correct == 10**6, 10**6, 10**6, distance=1, power=0.999999) < 40
    certain = detectable_loss(lambda correct: correct == 10**17, 10**17, 10**17, distance=1, power=1 - 1e-15)
    assert certain == math.inf  # beyond what a probability in floating point can tell from 1


def test_the_rectangle_ceiling_is_the_best_of_all_counts():
    for runs_x, runs_y in ((7, 12), (12, 7), (40, 40), (1, 1)):
        y, x = np.arange(runs_y + 1), np.arange(runs_x + 1)
        on_y = two_sample_lower(y[:, None], runs_y, x, runs_x, confidence=0.95).max()
        on_x = two_sample_lower(x[:, None], runs_x, y, runs_y, confidence=0.95).max()
        assert rectangle_ceiling(runs_x, runs_y, confidence=0.95) == pytest.approx(max(on_x, on_y))
        assert rectangle_ceiling(runs_x, runs_y, confidence=0.95, distance=4) == pytest.approx(max(on_x, on_y) / 4)


def test_the_region_ceiling_is_the_best_of_all_counts():
    for runs_x, runs_y in ((7, 12), (12, 7), (40, 40), (1, 1)):
        y, x = np.arange(runs_y + 1), np.arange(runs_x + 1)
        on_y = gaussian_lower(y[:, None], runs_y, x, runs_x, confidence=0.95).max()
        on_x = gaussian_lower(x[:, None], runs_x, y, runs_y, confidence=0.95).max()
        assert region_ceiling(runs_x, runs_y, confidence=0.95) == pytest.approx(max(on_x, on_y))
        assert region_ceiling(runs_x, runs_y, confidence=0.95, distance=4) == pytest.approx(max(on_x, on_y) / 4)


def test_the_divergence_ceiling_is_the_best_of_scores_with_two_values():
    clips = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0)
    for runs_x, runs_y in ((200, 300), (5000, 5000), (50, 10**6)):
        most = max(
            renyi_variational_lower([-clip, clip], [0, runs_y], [runs_x, 0], order=1.0, confidence=0.95)
            for clip in clips
        )
        assert divergence_ceiling(runs_x, runs_y, confidence=0.95) == pytest.approx(most)
        assert divergence_ceiling(runs_x, runs_y, confidence=0.95, distance=3) == pytest.approx(most / 9)
    # With ever more runs the limits close in on laws that share nothing: the clip is what remains.
    assert 17 < divergence_ceiling(10**12, 10**12, confidence=0.95) < 18


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


@pytest.mark.parametrize(
    ("mu", "rare", "runs_x", "runs_y", "distance"),
    [
        (1.0, 0.5, 10_000, 10_000, 1),
        (1.0, 0.3, 3000, 300, 1),
        (1.0, 0.3, 300, 3000, 1),
        (0.3, 0.5, 5000, 5000, 3),
        (1.0, 0.02, 10_000, 10_000, 1),
    ],
)
def test_a_shift_that_is_detectable_is_detected_four_times_in_five(mu, rare, runs_x, runs_y, distance):
    """The rates of either law are both random; 0.025 besides for the normal approximation to their quantiles."""
    rng, audits, seen = np.random.default_rng(9), 4000, round(rare * runs_x)
    found = region_detectable(mu, seen, runs_x, runs_y, confidence=0.95, distance=distance)

    def share(shift):
        a, b = (
            rng.binomial(runs_x, rare, audits),
            rng.binomial(runs_y, norm.cdf(ndtri(rare) + distance * shift), audits),
        )
        return np.mean(gaussian_lower(b, runs_y, a, runs_x, confidence=0.95) / distance > mu)

    assert share(found) == pytest.approx(0.8, abs=0.05)
    assert share(mu) < 0.05
    assert share((found + mu) / 2) < 0.6  # negative control


def test_a_rho_that_one_event_detects_is_detected_four_times_in_five():
    rng, rho, runs, distance = np.random.default_rng(10), 0.1, 4000, 2
    found = divergence_event_detectable(rho, 1200, runs, runs, confidence=0.95, distance=distance)
    likely = norm.cdf(ndtri(0.3) + distance * math.sqrt(2 * found))
    shown = [
        renyi_event_lower(b, runs, a, runs, confidence=0.95) / distance**2 > rho
        for a, b in zip(rng.binomial(runs, 0.3, 400), rng.binomial(runs, likely, 400), strict=True)
    ]
    # Of 400 audits, a share of 0.8 strays by 0.08 with probability below 1e-4.
    assert np.mean(shown) == pytest.approx(0.8, abs=0.08)
    # One event carries about two thirds of the divergence, so that it sees less than a likelihood ratio.
    assert found > 1.3 * rho
    assert found > divergence_detectable(rho, runs, runs, confidence=0.95, distance=distance)


@pytest.mark.parametrize(("rho", "runs", "distance"), [(0.5, 20_000, 1), (0.005, 50_000, 10)])
def test_a_rho_that_is_detectable_is_detected_four_times_in_five(rho, runs, distance):
    """Two normal laws weighed by their own likelihood ratio in 64 bins, clipped where that shows most."""
    rng = np.random.default_rng(11)
    found = divergence_detectable(rho, runs, runs, confidence=0.95, distance=distance)
    assert rho < found < 1.6 * rho
    shift, powers = distance * math.sqrt(2 * found), []
    for clip in (0.5, 1.0, 2.0, 3.0, 4.0, 6.0):
        edges = np.linspace(-clip, clip, 63)
        values = np.concatenate([[-clip], (edges[:-1] + edges[1:]) / 2, [clip]])
        laws = [np.diff(norm.cdf((edges - side * shift**2 / 2) / shift), prepend=0, append=1) for side in (1, -1)]
        on_y, on_x = (rng.multinomial(runs, law, 400) for law in laws)
        shown = [
            renyi_variational_lower(values, b, a, order=1.0, confidence=0.95) / distance**2 > rho
            for b, a in zip(on_y, on_x, strict=True)
        ]
        powers.append(np.mean(shown))
    assert max(powers) == pytest.approx(0.8, abs=0.08)  # false alarm below 1e-4, for the best of six that differ widely
    assert min(powers) < 0.5  # negative control: a clip that does not suit


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


@settings(max_examples=25)
@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(2, 5000))
def test_more_runs_show_more_of_shifts_and_divergences(first, second, other):
    few, many = sorted([first, second])
    for ceiling in (region_ceiling, divergence_ceiling):
        assert ceiling(few, other, confidence=0.95) <= ceiling(many, other, confidence=0.95) + 1e-9
        assert ceiling(other, few, confidence=0.95) <= ceiling(other, many, confidence=0.95) + 1e-9
        assert ceiling(other, few, confidence=0.99) <= ceiling(other, few, confidence=0.95)
    shifts = [region_detectable(1.0, 3 * runs // 10, runs, runs, confidence=0.95) for runs in (10 * few, 10 * many)]
    assert shifts[1] <= shifts[0] + 1e-9


def test_more_runs_detect_a_smaller_divergence():
    found = [divergence_detectable(0.5, runs, runs, confidence=0.95) for runs in (100, 1000, 10_000, 100_000)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 1.5 > 1.1 * 0.5 > found[-1] > 0.5
    assert divergence_detectable(0.5, 10_000, 10_000, confidence=0.999) > found[2]
    assert divergence_detectable(0.5, 10_000, 10_000, confidence=0.95, power=0.5) < found[2]


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


def test_no_runs_show_no_shift_and_no_divergence():
    for ceiling in (region_ceiling, divergence_ceiling):
        assert ceiling(0, 50, confidence=0.95) == ceiling(50, 0, confidence=0.95) == 0
    assert divergence_ceiling(1, 50, confidence=0.95) == 0  # one run has no variance
    assert region_detectable(1.0, 0, 50, 50, confidence=0.95) == math.inf  # never seen: its rate is unknown
    assert region_detectable(1.0, 50, 50, 50, confidence=0.95) == math.inf
    assert region_detectable(1.0, 25, 50, 0, confidence=0.95) == math.inf
    assert region_detectable(9.0, 25, 50, 50, confidence=0.95) == math.inf
    assert divergence_event_detectable(9.0, 25, 50, 50, confidence=0.95) == math.inf
    assert divergence_detectable(0.5, 1, 50, confidence=0.95) == math.inf
    assert divergence_detectable(9.0, 50, 50, confidence=0.95) == math.inf


def test_a_power_below_the_false_alarm_needs_no_loss():
    assert game_detectable(0.0, 100, confidence=0.5, power=0.1) == 0
    assert rectangle_detectable(0.0, 10, 10, confidence=0.5, power=0.01) == 0
    assert region_detectable(0.0, 50, 100, 100, confidence=0.5, power=0.01) == 0
    assert divergence_event_detectable(0.0, 50, 100, 100, confidence=0.5, power=0.01) == 0
    assert game_detectable(0.0, 100, confidence=0.5, delta=0.4, power=0.1) == 0


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
        lambda: region_ceiling(5, 5, **sound),
        lambda: region_detectable(1.0, 2, 5, 5, **sound),
        lambda: divergence_ceiling(5, 5, **sound),
        lambda: divergence_detectable(1.0, 5, 5, **sound),
        lambda: divergence_event_detectable(1.0, 2, 5, 5, **sound),
    ):
        with pytest.raises(ValueError, match=message):
            plan()


def test_plans_refuse_negative_runs_losses_and_impossible_powers():
    for plan in (
        lambda: game_ceiling(-1, confidence=0.9),
        lambda: game_detectable(1.0, -1, confidence=0.9),
        lambda: rectangle_ceiling(5, -1, confidence=0.9),
        lambda: rectangle_detectable(1.0, -1, 5, confidence=0.9),
        lambda: region_ceiling(-1, 5, confidence=0.9),
        lambda: region_detectable(1.0, -1, 5, 5, confidence=0.9),
        lambda: divergence_ceiling(5, -1, confidence=0.9),
        lambda: divergence_detectable(1.0, -1, 5, confidence=0.9),
        lambda: divergence_event_detectable(1.0, 1, 5, -1, confidence=0.9),
    ):
        with pytest.raises(ValueError, match="runs must be 0 or more, got -1"):
            plan()
    asked = {
        "game": lambda loss, power: game_detectable(loss, 5, confidence=0.9, power=power),
        "rectangle": lambda loss, power: rectangle_detectable(loss, 5, 5, confidence=0.9, power=power),
        "region": lambda loss, power: region_detectable(loss, 2, 5, 5, confidence=0.9, power=power),
        "divergence": lambda loss, power: divergence_detectable(loss, 5, 5, confidence=0.9, power=power),
        "event": lambda loss, power: divergence_event_detectable(loss, 2, 5, 5, confidence=0.9, power=power),
    }
    for name, plan in asked.items():
        word = {"region": "mu", "divergence": "rho", "event": "rho"}.get(name, "epsilon")
        for loss in (-0.1, math.nan):
            with pytest.raises(ValueError, match=f"{word} must be 0 or more, got"):
                plan(loss, 0.8)
        for power in (0.0, 1.0, math.nan):
            with pytest.raises(ValueError, match=r"power must be in \(0, 1\), got"):
                plan(1.0, power)
