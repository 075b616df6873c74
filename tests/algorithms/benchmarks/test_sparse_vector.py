"""SVT1 to SVT6: the published algorithms as slow loops over the same noise, and laws that add up."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from algorithms.benchmarks import benchmark
from algorithms.benchmarks.numeric_vector import SVT3, NumericalSVT, SVT34Parallel
from algorithms.benchmarks.sparse_vector import SVT1, SVT2, SVT4, SVT5, SVT6
from tests.helpers import refused, refuses

CODES = [SVT1(0.8), SVT1(0.8, 0.5, 2), SVT2(0.8, 1.0, 3), SVT4(0.8, 1.5, 2), SVT5(0.8), SVT6(0.8)]
ANSWERS = np.array([1.0, 2.5, 0.0, 1.0, 4.0])


def literal(answers, level, noise, *, threshold, limit, renewed=()):
    """One run: answers with their noise against a noisy threshold, until `limit` are above.

    `renewed` holds what the noise of the threshold becomes after each answer above.
    """
    renewed, codes = iter(renewed), []
    count = 0
    for answer, own in zip(answers, noise, strict=True):
        if count == limit:
            codes.append(-1)
        elif answer + own >= threshold + level:
            codes.append(1)
            count += 1
            level = next(renewed, level)
        else:
            codes.append(0)
    return codes


# The publications, slowly


@pytest.mark.parametrize(
    ("mechanism", "scales"),
    [
        (SVT1(0.1, 0.5, 2), [20, 80]),
        (SVT2(0.1, 0.5, 3), [60, 120]),  # 2 c / epsilon and 4 c / epsilon
        (SVT4(0.1, 1.5, 2), [40, 40 / 3]),
        (SVT6(0.1, 0.5), [20, 20]),
        (SVT5(0.1, 0.5), [20]),
    ],
)
def test_codes_are_those_of_the_loop(mechanism, scales, scripted, monkeypatch):
    """The second alone renews the noise of the threshold, which changes its codes."""
    monkeypatch.setattr(benchmark, "chunks", lambda size, cells: [slice(0, 30), slice(30, size)])
    codes = mechanism(ANSWERS, 200, np.random.default_rng(1))
    drawn = {}
    for scale, noise in scripted:
        drawn.setdefault((scale, noise.shape[1]), []).append(noise)
    parts = sorted(drawn.items(), key=lambda one: one[0][1])
    assert [scale for (scale, _), _ in parts] == pytest.approx(scales)
    levels, noise, *_ = *(np.concatenate(pieces) for _, pieces in parts), np.zeros((200, 5))
    limit, renewing = getattr(mechanism, "positives", None), isinstance(mechanism, SVT2)

    def looped(renewing):
        runs = zip(levels, noise, strict=True)
        rule = {"threshold": mechanism.threshold, "limit": limit}
        return [literal(ANSWERS, z[0], own, **rule, renewed=z[1:] if renewing else ()) for z, own in runs]

    assert codes.tolist() == looped(renewing)
    assert (codes.tolist() == looped(False)) != renewing
    assert len(np.unique(codes, axis=0)) > 4


@pytest.mark.parametrize(
    ("mechanism", "scales"), [(SVT3(0.1, 0.5, 2), [40, 20]), (NumericalSVT(0.1, 0.5, 2), [120, 30, 60])]
)
def test_numeric_answers_are_those_of_the_loop(mechanism, scales, scripted):
    """The third releases the answer that it compared; the numerical one draws it again."""
    released = mechanism(ANSWERS, 100, np.random.default_rng(1))
    assert [scale for scale, _ in scripted] == pytest.approx(scales)
    (_, noise), (_, levels) = scripted[:2]
    added = scripted[2][1] if scripted[2:] else noise
    for run in range(100):
        codes = literal(ANSWERS, levels[run, 0], noise[run], threshold=0.5, limit=2)
        assert released[run, 0].tolist() == codes
        answers = [a + t if code == 1 else 0 for a, t, code in zip(ANSWERS, added[run], codes, strict=True)]
        assert released[run, 1].tolist() == answers


def test_side_by_side_is_the_third_and_the_fourth():
    both = SVT34Parallel(0.5, 1.0, 2)
    released, rng = both(ANSWERS, 50, np.random.default_rng(4)), np.random.default_rng(4)
    np.testing.assert_array_equal(released[:, :2], SVT3(0.5, 1.0, 2)(ANSWERS, 50, rng))
    np.testing.assert_array_equal(released[:, 2], SVT4(0.5, 1.0, 2)(ANSWERS, 50, rng))
    for data in (ANSWERS, ANSWERS + 1):
        parts = both.numeric.log_likelihood(released[:, :2], data) + both.codes.log_likelihood(released[:, 2], data)
        np.testing.assert_array_equal(both.log_likelihood(released, data), parts)


# Laws


def rows(queries):
    return np.array(list(itertools.product((-1, 0, 1), repeat=queries)))


@pytest.mark.parametrize("mechanism", CODES)
@pytest.mark.parametrize("answers", [[1.0], [1.0, 1.0, 1.0], [0.0, 3.0, 1.0, -7.5], [90.0, -60.0, 1.0]])
def test_probabilities_of_all_rows_add_up_to_one(mechanism, answers):
    log_probability = mechanism.log_likelihood(rows(len(answers)), answers)
    assert special.logsumexp(log_probability) == pytest.approx(0, abs=1e-12)


def test_rows_that_cannot_be_released_have_no_probability():
    impossible = [[1, 0, 0], [-1, 0, 1], [0, -1, -1], [0, 1, 1], [0, 2, 0], [0, 0.5, 0], [math.nan, 0, 0]]
    assert np.isneginf(SVT1(0.5).log_likelihood(np.array(impossible), [1, 1, 1])).all()
    assert np.isfinite(SVT1(0.5).log_likelihood([[1, -1, -1], [0, 1, -1], [0, 0, 0]], [1, 1, 1])).all()
    assert np.isneginf(SVT6(0.5).log_likelihood([[1, -1, -1]], [1, 1, 1])).all()
    unreleased = [[[0, 1], [0.1, 2.0]], [[1, -1], [2.0, 0.1]], [[1, 1], [2.0, 0.1]], [[1, -1], [2.0, 0.0]]]
    found = NumericalSVT(0.8).log_likelihood(unreleased, [1, 1])
    assert np.isneginf(found).tolist() == [True, True, True, False]


def test_renewed_noise_makes_independent_parts():
    """Of SVT2, what follows an answer above is a run of its own with one positive less to go."""
    mechanism, half = SVT2(0.8, 1.0, 2), SVT1(0.4, 1.0, 1)
    assert half._scales() == mechanism._scales()
    whole = mechanism.log_likelihood([[0, 1, 0, 1], [1, 0, 0, 0]], [1, 2, 0, 1])
    first = [half.log_likelihood([[0, 1]], [1, 2])[0], half.log_likelihood([[1]], [1])[0]]
    rest = [half.log_likelihood([[0, 1]], [0, 1])[0], half.log_likelihood([[0, 0, 0]], [2, 0, 1])[0]]
    np.testing.assert_allclose(whole, np.add(first, rest), rtol=1e-12)


@pytest.mark.parametrize("released", [-4000.0, -3.0, 0.2, 1.0, 2.6, 9.0, 5000.0])
def test_density_of_the_third_is_an_integral_over_the_threshold(released):
    mechanism = SVT3(0.8, 0.5, 1)
    answers = [1.0, 3.0, 0.0]
    found = mechanism.log_likelihood([[[0, 0, 1], [0, 0, released]]], answers)[0]
    top = released - 0.5

    def log_cdf(x):
        return x / 2.5 - math.log(2) if x < 0 else math.log1p(-math.exp(-x / 2.5) / 2)

    def joint(z):
        return math.exp(-abs(z) / 2.5 + sum(log_cdf(z + 0.5 - a) for a in answers[:2])) / 5

    if top < -100:  # exp(3 z / 2.5) all the way, integrated by hand
        log_mass = 3 * top / 2.5 - 3 / 2.5 - math.log(5 * 2 * 2 * 3 / 2.5)
    else:
        end = min(top, 100.0)  # beyond, the threshold's noise has a probability of 1e-18
        kinks = sorted(k for k in {0.0, 0.5, 2.5, end, *np.arange(-100.0, 100.0, 10.0).tolist()} if k <= end)
        pieces = (integrate.quad(joint, *piece, epsrel=1e-12)[0] for piece in itertools.pairwise(kinks))
        log_mass = math.log(sum(pieces))
    log_noise = -abs(released) / 2.5 - math.log(5)
    assert found == pytest.approx(log_mass + log_noise, rel=1e-9)


# Losses

NEIGHBORS = st.lists(st.tuples(st.floats(-6, 6), st.floats(-1, 1)), min_size=1, max_size=5)


@given(NEIGHBORS, st.floats(0.05, 3), st.integers(1, 3), st.floats(-3, 3))
@settings(max_examples=40, deadline=None)
def test_correct_ones_keep_their_promise_and_wrong_ones_their_bound(changes, epsilon, positives, threshold):
    x, change = np.array(changes).T
    bounds = {
        SVT1(epsilon, threshold, positives): epsilon,
        SVT2(epsilon, threshold, positives): epsilon,
        SVT4(epsilon, threshold, positives): epsilon * (1 + 6 * positives) / 4,
        SVT6(epsilon, threshold): epsilon * x.size / 2,
    }
    for mechanism, bound in bounds.items():
        on_x, on_y = (mechanism.log_likelihood(rows(x.size), answers) for answers in (x, x + change))
        possible = np.isfinite(on_x)
        assert np.abs(on_x[possible] - on_y[possible]).max() <= bound * (1 + 1e-9) + 1e-9
        assert (possible == np.isfinite(on_y)).all()


def test_bad_input_is_refused_in_one_line():
    refuses(ValueError, "threshold must be finite, got inf", SVT6, 1.0, math.inf)
    for make in (SVT1, SVT2, SVT4, SVT34Parallel):
        refuses(ValueError, "positives must be at least 1, got 0", make, 1.0, positives=0)
    refuses(ValueError, "outputs must have shape (2,) a run, got shape (2,)", SVT1(1.0).log_likelihood, [0, 1], [1, 1])
    with refused(ValueError, "outputs must have shape (2, 2) a run, got shape (1, 2)"):
        SVT3(1.0).log_likelihood([[0, 1]], [1, 1])
    with refused(ValueError, "outputs must have shape (3, 2) a run, got shape (4, 2, 2)"):
        SVT34Parallel(1.0).log_likelihood(np.zeros((4, 2, 2)), [1, 1])
