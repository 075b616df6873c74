"""How often intervals of estimates cover, and what the estimates of published shapes are."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from algorithms.noise import DiscreteGaussian, Gaussian
from audit.estimates.direct import direct_loss
from audit.estimates.residuals import residual_loss
from tests.helpers import averaged, geometric

C = 21  # children of each area in the paper's figure, three levels deep
LEAVES = C**3


def raked(epsilon, runs, rng):
    """Residuals of the lowest of three levels, each raked to the one above; a quarter of epsilon for each level."""
    exact = np.full((runs, C, C, C), 108.0)
    parent = exact.sum(axis=(1, 2, 3), keepdims=True) + geometric(epsilon / 4, (runs, 1, 1, 1), rng)
    for level in (1, 2, 3):
        counts = exact.sum(axis=tuple(range(level + 1, 4)), keepdims=True)
        noisy = counts + geometric(epsilon / 4, counts.shape, rng)
        parent = noisy * (parent / noisy.sum(axis=level, keepdims=True))
    return (parent - exact).reshape(runs, -1)


@pytest.mark.parametrize("name", ["gdpc", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rdpc", "adpc"))])
def test_the_three_algorithms_show_the_papers_loss_of_0025(name):
    rng = np.random.default_rng(2019)
    make = {
        "gdpc": lambda: geometric(0.025, LEAVES, rng),
        "rdpc": lambda: raked(0.1, 1, rng)[0],
        "adpc": lambda: averaged(0.05, (LEAVES,), rng),
    }[name]
    estimates = [residual_loss(make(), method="kde", resamples=20, rng=1) for _ in range(8)]
    values, windows, largest = zip(*((e.value, e.settings["window"], e.maximum) for e in estimates), strict=True)
    # Over 40 releases values had means of 0.0243 to 0.0254 and deviations up to 0.0010, windows 184 to 187.5 and 3.1,
    # maxima 0.044 to 0.063 and 0.010: each gate is 4 standard errors of a mean of 8 away (false alarm 1e-4 each).
    assert np.mean(values) == pytest.approx(0.025, abs=0.002)
    assert np.mean(windows) == pytest.approx(185, abs=7)
    # The largest of the curve is biased upwards by the noise of its edges, which is why the median is the statistic.
    assert np.mean(largest) > 0.033


def test_the_lag_tail_tells_the_three_shapes_apart():
    # One release has a standard deviation of up to 0.04, at 2 MAD-sd: with 20 of them pooled, all gates are 4 standard
    # errors away or more (false alarm 1e-4 each).
    rng = np.random.default_rng(15)
    gdpc = residual_loss(geometric(0.025, (20, LEAVES), rng), resamples=20, rng=1).loss / 0.025
    adpc = residual_loss(averaged(0.05, (20, LEAVES), rng), resamples=20, rng=1).loss / 0.05
    rdpc = residual_loss(raked(0.1, 20, rng), resamples=20, rng=1).loss / 0.1
    assert gdpc == pytest.approx(np.ones(5), abs=0.05)
    assert rdpc == pytest.approx(np.full(5, 0.25), abs=0.03)
    assert adpc[0] == pytest.approx(0.428, abs=0.03)
    assert adpc[4] == pytest.approx(0.70, abs=0.12)
    assert (np.diff(adpc) > 0).all()


SIMULATIONS = 200
MOST_MISSES = int(binom.isf(1e-4, SIMULATIONS, 0.05))  # 23: a true 95% interval has more with probability 1e-4 at most


def misses(make, epsilon, **options):
    """Simulations in which the true loss is outside, for each event of the curve."""
    count = 0
    for seed in range(SIMULATIONS):
        estimate = residual_loss(make(np.random.default_rng([seed, 8])), rng=seed, **options)
        count = count + ~((estimate.low <= epsilon) & (epsilon <= estimate.high))
    return count


@pytest.mark.parametrize(
    "shape", [(2000,), pytest.param((20, 400), marks=pytest.mark.slow), pytest.param((4, 2000), marks=pytest.mark.slow)]
)
def test_intervals_cover_the_true_loss(shape):
    # 5 events a case: false alarm 5e-4 at most.
    count = misses(lambda rng: geometric(0.1, shape, rng), 0.1, lag=11, at=[0, 6, 11, 16, 21])
    assert (count <= MOST_MISSES).all()


@pytest.mark.slow
def test_intervals_of_dependent_areas_need_blocks():
    # Every residual stands four times in its run: a block of areas that move together.
    def make(rng):
        return np.repeat(geometric(0.1, 500, rng), 4)

    fixed = {"lag": 11, "at": [0, 6, 11]}
    assert (misses(make, 0.1, blocks=np.repeat(np.arange(500), 4), **fixed) <= MOST_MISSES).all()
    # Negative control: half as wide as they should be, intervals over single areas miss a third of the time (65 of
    # 200 with a deviation of 7: false alarm 1e-4 each).
    assert (misses(make, 0.1, **fixed) > 40).all()


@pytest.mark.slow
def test_the_median_of_the_curve_is_covered():
    inside = 0
    for seed in range(SIMULATIONS):
        low, high = residual_loss(geometric(0.1, (20, 400), np.random.default_rng([seed, 9])), rng=seed).interval
        inside += low <= 0.1 <= high
    assert inside >= SIMULATIONS - MOST_MISSES


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("rho", [0.05, 0.5, 2.0])
def test_the_slope_tells_rho(rho, whole):
    law = DiscreteGaussian(math.sqrt(0.5 / rho)) if whole else Gaussian(math.sqrt(0.5 / rho))
    made = [
        residual_loss(law.sample((1000,), np.random.default_rng([seed, 10])), method="slope", resamples=100, rng=seed)
        for seed in range(SIMULATIONS)
    ]
    values = [estimate.value for estimate in made]
    # A single one scatters by 5%, so the median of 20 by 1.3%: false alarm below 1e-10; bias below 1%: 1e-2 / 1e-4.
    assert np.median(values[:20]) == pytest.approx(rho, rel=0.1)
    assert np.median(values) == pytest.approx(rho, rel=0.02)
    inside = sum(estimate.interval[0] <= rho <= estimate.interval[1] for estimate in made)
    assert 0.85 * SIMULATIONS <= inside <= 0.99 * SIMULATIONS
    # Negative control: intervals half as wide would miss about a third of the time.
    centers = [(estimate.value, (estimate.interval[1] - estimate.interval[0]) / 4) for estimate in made]
    assert sum(abs(value - rho) <= half for value, half in centers) < 0.85 * SIMULATIONS


def missed(p, q, confidence, runs=20):
    """Exact probability of an interval without the true loss: all outcomes, weighted; no interval is no miss."""
    total = 0.0
    for a, b in itertools.product(range(1, runs + 1), repeat=2):
        x, y = [1] * a + [0] * (runs - a), [1] * b + [0] * (runs - b)
        estimate = direct_loss(x, y, 0, at=[1], confidence=confidence)
        if not estimate.low[0] <= math.log(p / q) <= estimate.high[0]:
            total += binom.pmf(a, runs, p) * binom.pmf(b, runs, q)
    return total


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.4), (0.9, 0.3), (0.1, 0.08), (0.97, 0.95)])
def test_the_interval_of_an_event_fixed_beforehand_covers(p, q):
    assert missed(p, q, 0.95) <= 0.05


def test_a_narrow_interval_does_miss():
    assert missed(0.5, 0.4, 0.2) > 0.1  # negative control


def test_the_largest_ratio_is_biased_upwards_although_every_single_one_is_not():
    rng = np.random.default_rng(500)
    epsilon, simulations = 0.025, 200
    largest = {"at_least": [], "equal": []}
    single = []
    for _ in range(simulations):
        x, y = geometric(epsilon, 500, rng), geometric(epsilon, 500, rng) - 1
        for event, values in largest.items():
            values.append(direct_loss(x, y, 0, event=event).value)
        single.append(direct_loss(x, y, 0, at=[0]).loss[0])
    # One ratio scatters by sqrt(2 / 500) = 0.063 around the truth: 4 standard errors of the mean (false alarm 6e-5).
    assert np.mean(single) == pytest.approx(epsilon, abs=4 * 0.063 / math.sqrt(simulations))
    # The seed paper's sizes and events. In 2,000 simulations the largest had a median of 3.1 epsilon for tails and 60
    # for cells, and was above these gates in 80% and 90% of them (false alarm of a median of 200: below 1e-15).
    assert np.median(largest["at_least"]) > 2 * epsilon
    assert np.median(largest["equal"]) > 40 * epsilon
