"""Laplace, noisy histograms, parallel and prefix sums, truncated geometric: samplers and laws against definitions."""

import math

import numpy as np
import pytest
from scipy import stats

from algorithms.benchmarks.noisy_answers import (
    Laplace,
    LaplaceParallel,
    NoisyHist1,
    NoisyHist2,
    PrefixSum,
    TruncatedGeometric,
)
from tests.helpers import refused, refuses

ANSWERS = np.array([3.0, -1.0, 250.0])
ADDITIVE = {  # the scale of the noise, and what is released of noisy answers
    Laplace(0.5): (2, lambda noise: ANSWERS + noise),
    NoisyHist1(0.5): (2, lambda noise: ANSWERS + noise),
    NoisyHist2(0.5): (0.5, lambda noise: ANSWERS + noise),
    LaplaceParallel(0.5, 2): (4, lambda noise: np.tile(ANSWERS, 2) + noise),
    PrefixSum(0.5): (2, lambda noise: (ANSWERS + noise).cumsum(axis=1)),
}


@pytest.mark.parametrize("mechanism", ADDITIVE, ids=lambda one: type(one).__name__)
def test_every_answer_has_laplace_noise_of_its_own_and_so_has_the_likelihood(mechanism, scripted):
    scale, released_with = ADDITIVE[mechanism]
    released = mechanism(ANSWERS, 9, np.random.default_rng(4))
    ((drawn, noise),) = scripted
    assert drawn == scale
    np.testing.assert_allclose(released, released_with(noise), rtol=1e-12)
    wanted = stats.laplace(scale=scale).logpdf(noise).sum(axis=1)
    np.testing.assert_allclose(mechanism.log_likelihood(released, ANSWERS), wanted, rtol=1e-12)


# Truncated geometric


def literal(count, people, power):
    """Geometric noise of base 1 + 1/power around the count; what falls outside goes to the nearer end."""
    ratio = power / (power + 1)
    reach = np.arange(-6000, 6001)
    weights = ratio ** np.abs(reach)
    return np.bincount(np.clip(reach + count, 0, people), weights / weights.sum(), minlength=people + 1)


@pytest.mark.parametrize(("epsilon", "power"), [(0.1, 8), (0.7356, 4), (0.736, 2)])
@pytest.mark.parametrize("people", [1, 5])
def test_the_law_is_geometric_noise_moved_to_the_ends(epsilon, power, people):
    """The power is 2 to the natural logarithm of 2 / epsilon, rounded up: 2 / e = 0.7358 is a limit."""
    mechanism = TruncatedGeometric(epsilon, people)
    support = np.arange(people + 1)[:, None]
    for count in range(people + 1):
        law = np.exp(mechanism.log_likelihood(support, [count]))
        np.testing.assert_allclose(law, literal(count, people, power), rtol=1e-9)


def test_counts_have_noise_of_their_own():
    mechanism = TruncatedGeometric(1.0)
    released = mechanism([0, 3], 40_000, np.random.default_rng(2))
    assert released.min() >= 0
    assert released.max() <= 5
    joint = np.outer(literal(0, 5, 2), literal(3, 5, 2)).ravel()
    observed = np.bincount(released @ [6, 1], minlength=36)
    assert stats.chisquare(observed, 40_000 * joint).pvalue > 1e-6  # false alarm 1e-6
    impossible = mechanism.log_likelihood([[0, 5], [0, 6], [-1, 0], [0.5, 1]], [1, 2])
    assert np.isneginf(impossible).tolist() == [False, True, True, True]
    swapped = np.outer(literal(3, 5, 2), literal(0, 5, 2)).ravel()
    assert stats.chisquare(observed, 40_000 * swapped).pvalue < 1e-12  # negative control


# Bad input


def test_bad_input_is_refused_in_one_line():
    refuses(ValueError, "parts must be at least 1, got 0", LaplaceParallel, 0.1, 0)
    refuses(ValueError, "epsilon must be at most 1, got 1.5", TruncatedGeometric, 1.5)
    refuses(ValueError, "people must be at least 1, got 0", TruncatedGeometric, 0.1, 0)
    refuses(ValueError, "people must be few enough for probabilities in 63 bits, got 20", TruncatedGeometric, 0.1, 20)
    for count in (6.0, 1.5):
        with refused(ValueError, f"counts must be whole numbers from 0 to 5, got {count}"):
            TruncatedGeometric(0.1).log_likelihood([[1]], [count])


def test_the_largest_population_still_adds_up():
    largest = TruncatedGeometric(0.1, 19)
    assert math.fsum(np.exp(largest.log_likelihood(np.arange(20)[:, None], [9]))) == pytest.approx(1, rel=1e-12)
    assert largest([9], 2000, np.random.default_rng(1)).std() > 3
