"""Laplace, noisy histograms, parallel and prefix sums, truncated geometric: samplers and laws against definitions."""

from __future__ import annotations

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

ADDITIVE = [Laplace(0.5), NoisyHist1(0.5), NoisyHist2(0.5), LaplaceParallel(0.5, 2), PrefixSum(0.5)]
SCALES = [2, 2, 0.5, 4, 2]


def noise_in(mechanism, released, answers):
    """The independent noise of every number that was released."""
    if isinstance(mechanism, PrefixSum):
        return np.diff(np.insert(released, 0, 0, axis=1), axis=1) - answers
    return released - np.tile(answers, getattr(mechanism, "parts", 1))


@pytest.mark.parametrize(("mechanism", "scale"), list(zip(ADDITIVE, SCALES, strict=True)))
def test_noise_is_laplace_of_its_scale_in_every_column_and_so_is_its_likelihood(mechanism, scale):
    """Kolmogorov and Smirnov a column, false alarm 1e-6 together; a scale 10% off is rejected."""
    answers = np.array([3.0, -1.0, 250.0])
    released = mechanism(answers, 30_000, np.random.default_rng(4))
    noise = noise_in(mechanism, released, answers)
    assert noise.shape[1] == (6 if isinstance(mechanism, LaplaceParallel) else 3)
    p_values = [stats.kstest(column, stats.laplace(scale=scale).cdf).pvalue for column in noise.T]
    assert min(p_values) * len(p_values) > 1e-6
    assert stats.kstest(noise.ravel(), stats.laplace(scale=1.1 * scale).cdf).pvalue < 1e-12
    # Columns are independent: correlations of 30,000 runs, 15 of them at most, stay within 5.5 standard errors.
    correlations = np.corrcoef(noise.T)[np.triu_indices(noise.shape[1], 1)]
    assert np.abs(correlations).max() < 5.5 / math.sqrt(30_000)
    wanted = stats.laplace(scale=scale).logpdf(noise[:9]).sum(axis=1)
    np.testing.assert_allclose(mechanism.log_likelihood(released[:9], answers), wanted, rtol=1e-12)


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
