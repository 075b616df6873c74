"""Lower bounds: literal twins of the formulas, exact and simulated coverage, and designs that must break it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom, binomtest, multinomial, norm

from audit.bounds.game import approx_game_lower, guessing_game_lower, variation_game_lower
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.limits import clopper_pearson_lower, clopper_pearson_upper
from audit.bounds.one_run import one_run_p_value
from audit.bounds.rectangle import delta_lower, rectangle, two_sample_lower
from audit.claims import ApproxDP
from tests.audit.audits import at_the_boundary
from tests.helpers import counts
from tests.hostile.oracle import limit_below


def literal_approx(correct, guesses, runs, delta, alpha, distance):
    """The largest promise for which so many right guesses are too many, by bisection and tails summed by scipy."""
    guessed = limit_below(guesses, runs, alpha / 10)

    def rejected(epsilon):
        pair = ApproxDP(epsilon, delta).group(distance)
        rate = expit(pair.epsilon) + pair.delta * expit(-pair.epsilon) / guessed
        return rate < 1 and binom.sf(correct - 1, guesses, rate) <= 0.9 * alpha

    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


# Known truth


def test_reference_figures():
    hits = (600, 1000, 400, 1000)
    assert float(two_sample_lower(*hits, confidence=0.95)) == pytest.approx(0.277276706, abs=1e-8)
    assert float(delta_lower(0.0, *hits, confidence=0.95)) == pytest.approx(0.137756892, abs=1e-8)
    assert float(gaussian_lower(692, 1000, 309, 1000, confidence=0.95)) == pytest.approx(0.834980955, abs=1e-8)
    assert float(guessing_game_lower(800, 1000, confidence=0.95)) == pytest.approx(1.254330359, abs=1e-8)
    assert float(guessing_game_lower(100, 100, confidence=0.95)) == pytest.approx(3.492965431, abs=1e-8)
    assert one_run_p_value(800, 1000, 1.0) == pytest.approx(2.488948e-7, abs=1e-12)
    assert one_run_p_value(800, 1000, 1.0, delta=1e-5, canaries=1000) == pytest.approx(3.81780e-5, abs=1e-9)


@pytest.mark.parametrize(
    ("hits", "delta", "distance"),
    [((80, 100, 100), 0.01, 1), ((80, 100, 300), 1e-5, 1), ((48, 50, 400), 0.02, 1), ((95, 100, 150), 1e-3, 4)],
)
@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.001])
def test_the_approximate_game_is_its_test_inverted(hits, delta, distance, alpha):
    found = approx_game_lower(*hits, delta=delta, confidence=1 - alpha, distance=distance)
    assert found == pytest.approx(literal_approx(*hits, delta, alpha, distance), abs=1e-9)
    assert found > 0


def test_a_promise_that_is_empty_at_a_distance_is_never_rejected():
    # 60 steps of delta 0.01 at epsilon 0.1 forgive more than everything; below that epsilon there is power.
    found = approx_game_lower(1000, 1000, 1000, delta=0.01, confidence=0.95, distance=60)
    assert 0 < found < 0.05
    assert ApproxDP(found, 0.01).group(60).delta < 1
    assert approx_game_lower(1000, 1000, 1000, delta=0.02, confidence=0.95, distance=60) == 0
    assert approx_game_lower(990, 1000, 10**6, delta=0.01, confidence=0.95) == 0  # so seldom may be the leak alone


@pytest.mark.parametrize("runs", [1, 2, 7, 30])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.001])
def test_clopper_pearson_is_the_textbook_s(runs, alpha):
    k = np.arange(runs + 1)
    literal = [limit_below(i, runs, alpha) for i in k]
    np.testing.assert_allclose(clopper_pearson_lower(k, runs, confidence=1 - alpha), literal, rtol=1e-9)
    upper = clopper_pearson_upper(k, runs, confidence=1 - alpha)
    np.testing.assert_allclose(upper, 1 - np.array(literal)[::-1], rtol=1e-9)


@pytest.mark.parametrize(("successes", "runs"), [(0, 10**6), (1, 10**6), (417_233, 10**6), (10**6, 10**6), (3, 10**9)])
def test_clopper_pearson_is_scipy_s(successes, runs):
    theirs = binomtest(successes, runs).proportion_ci(0.9, method="exact")
    assert float(clopper_pearson_lower(successes, runs, confidence=0.95)) == pytest.approx(theirs.low, rel=1e-8)
    assert float(clopper_pearson_upper(successes, runs, confidence=0.95)) == pytest.approx(theirs.high, rel=1e-6)


@pytest.mark.parametrize(
    ("right", "wrong", "runs"), [(1, 0, 1), (0, 4, 9), (0, 0, 3), (1, 1, 3), (40, 10, 200), (700, 300, 1000), (9, 0, 9)]
)
@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.95])
def test_total_variation_is_two_limits_apart(right, wrong, runs, confidence):
    error = 1 - confidence
    low = float(clopper_pearson_lower(right, runs, confidence=1 - 0.9 * error))
    high = float(clopper_pearson_upper(wrong, runs, confidence=1 - 0.1 * error))
    for named in (1, 2):
        ours = variation_game_lower(right, right + wrong, runs, named=named, confidence=confidence)
        assert float(ours) == pytest.approx(min(1.0, max(0.0, low - high, 2 * low - 1) * 2 / named), abs=1e-12)


# Coverage, exact


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("guesses", [1, 10, 333, 5000])
def test_the_game_never_misses_more_than_it_says(confidence, epsilon, guesses):
    v = np.arange(guesses + 1)
    too_much = guessing_game_lower(v, guesses, confidence=confidence) > epsilon * (1 + 1e-12)
    assert binom.pmf(v, guesses, expit(epsilon))[too_much].sum() <= (1 - confidence) * (1 + 1e-9)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("rate", [1e-3, 0.2, 0.5, 0.97])
def test_clopper_pearson_never_misses_more_than_it_says(confidence, rate):
    k, runs = np.arange(251), 250
    mass = binom.pmf(k, runs, rate)
    assert mass[clopper_pearson_lower(k, runs, confidence=confidence) > rate].sum() <= 1 - confidence
    assert mass[clopper_pearson_upper(k, runs, confidence=confidence) < rate].sum() <= 1 - confidence


@pytest.mark.parametrize(
    ("p", "q", "delta"), [(expit(1), expit(-1), 0.0), (0.3, 0.1, 0.0), (0.5, 0.5, 0.0), (0.5, 0.1, 0.3)]
)
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_two_samples_never_miss_more_than_they_say(p, q, delta, confidence):
    y, x = np.arange(61)[:, None], np.arange(81)
    chance = binom.pmf(y, 60, p) * binom.pmf(x, 80, q)
    loss, shift = math.log((p - delta) / q) + 1e-12, norm.ppf(p) - norm.ppf(q) + 1e-12
    losses = two_sample_lower(y, 60, x, 80, confidence=confidence, delta=delta)
    shifts = gaussian_lower(y, 60, x, 80, confidence=confidence)
    for misses in (chance[losses > loss].sum(), chance[shifts > shift].sum()):
        assert misses <= 1 - confidence
        assert confidence > 0.5 or misses > 0.01  # the bound is not vacuous
    # Negative controls: the estimates, and a bound that forgets the delta.
    with np.errstate(divide="ignore", invalid="ignore"):
        estimates = (y / 60 - delta) / (x / 80) > math.exp(loss), norm.ppf(y / 60) - norm.ppf(x / 80) > shift
    assert min(chance[excess].sum() for excess in estimates) > 0.4
    forgetful = chance[two_sample_lower(y, 60, x, 80, confidence=confidence) > loss].sum()
    assert delta == 0 or forgetful > 1 - confidence


@pytest.mark.parametrize(("epsilon", "delta", "share"), [(0.5, 0.1, 1.0), (1.0, 0.01, 0.4), (0.2, 0.05, 0.06)])
@pytest.mark.parametrize("confidence", [0.3, 0.95])
def test_the_approximate_game_never_misses_more_than_it_says(epsilon, delta, share, confidence):
    runs, law = 40, at_the_boundary(epsilon, delta, share)
    miss = 0.0
    for guesses in range(runs + 1):
        for correct in range(guesses + 1):
            if approx_game_lower(correct, guesses, runs, delta=delta, confidence=confidence) > epsilon * (1 + 1e-9):
                miss += multinomial.pmf([correct, guesses - correct, runs - guesses], runs, law)
    assert miss <= 1 - confidence
    if (confidence, share) == (0.3, 1.0):
        assert miss > 0.2  # the bound is not vacuous


# Properties


@given(counts(), st.floats(0.5, 0.999))
def test_the_game_inverts_its_own_test(hits, confidence):
    correct, guesses = hits
    bound = float(guessing_game_lower(correct, guesses, confidence=confidence))
    assert 0 <= bound < math.inf
    if bound > 0:
        assert one_run_p_value(correct, guesses, bound) == pytest.approx(1 - confidence, rel=1e-6)
    else:
        assert one_run_p_value(correct, guesses, 0) >= (1 - confidence) * (1 - 1e-9)


@given(counts(300), counts(300), st.floats(0.5, 0.999), st.floats(0, 0.99))
def test_bounds_of_two_rates_read_one_rectangle(on_y, on_x, confidence, delta):
    low, high = map(float, rectangle(*on_y, *on_x, confidence=confidence))
    each = 1 - (1 - confidence) / 2
    assert low == clopper_pearson_lower(*on_y, confidence=each)
    assert high == clopper_pearson_upper(*on_x, confidence=each)
    loss = float(two_sample_lower(*on_y, *on_x, confidence=confidence, delta=delta))
    assert loss == pytest.approx(max(0.0, math.log((low - delta) / high)) if low > delta else 0.0, abs=1e-9)
    curve = delta_lower([0.0, 0.3, 5.0], *on_y, *on_x, confidence=confidence)
    assert curve == pytest.approx([max(0.0, low - math.exp(epsilon) * high) for epsilon in (0.0, 0.3, 5.0)], abs=1e-12)
    mu = float(gaussian_lower(*on_y, *on_x, confidence=confidence))
    assert mu == pytest.approx(norm.ppf(low) - norm.ppf(high) if low > high else 0.0, abs=1e-9)


def test_bounds_take_arrays():
    found = guessing_game_lower([80, 90, 0], [100, 100, 0], confidence=0.95)
    alone = [float(guessing_game_lower(v, r, confidence=0.95)) for v, r in ((80, 100), (90, 100), (0, 0))]
    assert found == pytest.approx(alone)
    assert two_sample_lower([[60], [70]], 100, [40, 30, 20], 100, confidence=0.95).shape == (2, 3)
    assert gaussian_lower([[60], [70]], 100, [40, 30, 20], 100, confidence=0.95).shape == (2, 3)
    curve = delta_lower([0.0, 0.1, 800.0, math.inf], 600, 1000, 400, 1000, confidence=0.95)
    assert curve[0] > curve[1] > curve[2] == curve[3] == 0


def test_nothing_seen_shows_nothing_and_little_seen_shows_something_finite():
    assert guessing_game_lower(0, 0, confidence=0.95) == 0
    assert guessing_game_lower(3, 10, confidence=0.95) == 0
    assert clopper_pearson_upper(0, 0, confidence=0.95) == 1
    assert clopper_pearson_lower(0, 50, confidence=0.95) == 0
    assert clopper_pearson_upper(50, 50, confidence=0.95) == 1
    assert two_sample_lower(0, 0, 0, 0, confidence=0.95) == 0
    assert gaussian_lower(0, 0, 0, 0, confidence=0.95) == 0
    assert gaussian_lower(0, 10, 10, 10, confidence=0.95) == 0
    assert 8 < gaussian_lower(10**6, 10**6, 0, 10**6, confidence=0.95) < 10
    assert approx_game_lower(0, 0, 0, delta=0.1, confidence=0.95) == 0
    assert approx_game_lower(0, 0, 100, delta=0.1, confidence=0.95) == 0
    assert approx_game_lower(3, 10, 10, delta=0.1, confidence=0.95) == 0
    for correct in range(70, 100):  # a delta below rounding
        least = approx_game_lower(correct, 100, 100, delta=1e-300, confidence=0.95)
        assert least == pytest.approx(float(guessing_game_lower(correct, 100, confidence=1 - 0.9 * 0.05)), rel=1e-12)
    assert one_run_p_value(0, 0, 1.0) == 1
    assert one_run_p_value(0, 10, 1.0, delta=0.1) == 1
    assert one_run_p_value(10, 10, math.inf) == 1
    assert 10 < two_sample_lower(10**6, 10**6, 0, 600_000, confidence=0.95) < 13
    assert 12 < guessing_game_lower(600_000, 600_000, confidence=0.95) < 13
