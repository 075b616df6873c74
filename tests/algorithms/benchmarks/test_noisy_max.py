"""Report noisy max: samplers, laws and densities against the definitions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from algorithms.benchmarks.noisy_max import ReportNoisyMax1, ReportNoisyMax2, ReportNoisyMax3, ReportNoisyMax4
from tests.helpers import pair_of, refuses

INDEX = [ReportNoisyMax1(0.7), ReportNoisyMax2(0.7)]
VALUE = [ReportNoisyMax3(0.7), ReportNoisyMax4(0.7)]
ANSWERS = np.array([1.0, 3.5, 0.0, 1.0])


@pytest.mark.parametrize("mechanism", INDEX + VALUE)
def test_the_largest_of_the_noisy_answers(mechanism, scripted):
    released = mechanism(ANSWERS, 60, np.random.default_rng(2))
    ((scale, noise),) = scripted
    assert scale == 2 / 0.7
    if mechanism in (INDEX[1], VALUE[1]):
        noise = np.abs(noise)  # the magnitude of Laplace noise is exponential
    for run in range(60):
        noisy = [a + n for a, n in zip(ANSWERS.tolist(), noise[run].tolist(), strict=True)]
        assert released[run] == (noisy.index(max(noisy)) if mechanism in INDEX else max(noisy))


# Laws


def closed_form(answers, scale):
    """Exponential noise: sum over all sets of others of the integral of a product of exponentials."""
    top = max(answers)
    shares = [math.exp((a - top) / scale) for a in answers]
    law = []
    for i, own in enumerate(shares):
        others = [share for j, share in enumerate(shares) if j != i]
        sets = itertools.chain.from_iterable(itertools.combinations(others, k) for k in range(len(others) + 1))
        law.append(own * sum((-1) ** len(chosen) * math.prod(chosen) / (len(chosen) + 1) for chosen in sets))
    return law


@pytest.mark.parametrize("answers", [[5.0], [1.0, 1.0], [1.0, 3.5, 0.0, 1.0], [0.0, 40.0, 39.0], [2.0] * 9])
def test_exponential_noise_in_closed_form(answers):
    found = ReportNoisyMax2(0.7).log_likelihood(np.arange(len(answers)), answers)
    np.testing.assert_allclose(np.exp(found), closed_form(answers, 2 / 0.7), rtol=1e-10)


@pytest.mark.parametrize("mechanism", INDEX)
@pytest.mark.parametrize("answers", [[4.0], [1.0, 3.5, 0.0], [1.0, 900.0, -900.0], [7.0] * 60])
def test_probabilities_add_up_to_one(mechanism, answers):
    log_law = mechanism.log_likelihood(np.arange(len(answers)), answers)
    assert np.isfinite(log_law).all()
    assert math.fsum(np.exp(log_law)) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("mechanism", VALUE)
def test_densities_are_derivatives_of_the_distribution(mechanism):
    """The largest is at most v when every noisy answer is; the density integrates to 1."""
    scale = 2 / 0.7
    noise = stats.laplace(scale=scale) if mechanism is VALUE[0] else stats.expon(scale=scale)

    def density(v):
        return math.exp(mechanism.log_likelihood([v], ANSWERS)[0])

    ends = sorted({-60.0, *ANSWERS.tolist(), *np.linspace(5, 120, 12).tolist()})
    total = 0.0
    for low, high in itertools.pairwise(ends):
        mass = integrate.quad(density, low, high, epsrel=1e-10)[0]
        wanted = math.prod(noise.cdf(high - ANSWERS)) - math.prod(noise.cdf(low - ANSWERS))
        assert mass == pytest.approx(wanted, rel=1e-8, abs=1e-15)
        total += mass
    assert total == pytest.approx(1, rel=1e-9)


def test_what_cannot_come_out_is_impossible():
    refuses(ValueError, "outputs must have shape () a run, got shape ()", VALUE[0].log_likelihood, 0.3, [1, 1])
    for mechanism in INDEX:
        found = mechanism.log_likelihood([-1, 0, 3, 1, 0.5], [1.0, 2.0, 3.0])
        assert np.isneginf(found).tolist() == [True, False, True, False, True]
    mechanism = VALUE[1]  # nothing below the largest answer
    assert mechanism(ANSWERS, 10_000, np.random.default_rng(1)).min() > 3.5
    found = mechanism.log_likelihood([-100.0, 1.0, 3.49, 3.5, 3.51, 200.0], ANSWERS)
    assert np.isneginf(found).tolist() == [True, True, True, True, False, False]


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.floats(-1, 1)), min_size=1, max_size=6),
    st.floats(0.05, 4),
    st.floats(-50, 50),
)
@settings(max_examples=30, deadline=None)
def test_indices_keep_the_promise_and_the_largest_value_loses_half_a_budget_a_query(changes, epsilon, released):
    x, change = np.array(changes).T
    for mechanism in (ReportNoisyMax1(epsilon), ReportNoisyMax2(epsilon)):
        on_x, on_y = (mechanism.log_likelihood(np.arange(x.size), answers) for answers in (x, x + change))
        assert np.abs(on_x - on_y).max() <= epsilon * (1 + 1e-9) + 1e-9
    mechanism = ReportNoisyMax3(epsilon)
    loss = mechanism.log_likelihood([released], x)[0] - mechanism.log_likelihood([released], x + change)[0]
    assert abs(loss) <= epsilon / 2 * x.size * (1 + 1e-9) + 1e-9


def test_support_on_one_side_only():
    mechanism = ReportNoisyMax4(0.7)
    pair = pair_of([1.0, -8.0], [0.5, 2.0])
    on_x, on_y = mechanism.support_masses(pair)
    assert on_x == pytest.approx((1 - math.exp(-0.35)) * (1 - math.exp(-3.5)), rel=1e-12)  # both below 2
    assert on_y == 0
    assert mechanism.support_masses(pair_of([0.5, 2.0], [1.0, -8.0])) == (on_y, on_x)
    assert mechanism.support_masses(pair_of([2.0, 0.0], [0.0, 2.0])) == (0, 0)
    message = "the two databases must answer the same queries, got 1 and 2"
    refuses(ValueError, message, mechanism.support_masses, pair_of([1], [1, 2]))
    released = mechanism(pair.x, 40_000, np.random.default_rng(1))
    impossible = int(np.isneginf(mechanism.log_likelihood(released, pair.y)).sum())
    assert stats.binomtest(impossible, 40_000, on_x).pvalue > 1e-6  # false alarm 1e-6
