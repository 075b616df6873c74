"""Noise of the pilot far out, in fine print and at its limits; adjustment and shares that are refused."""

import math

import numpy as np
import pytest
from scipy import special

from algorithms.hierarchy import Hierarchy
from algorithms.ons import IndependentNoise
from algorithms.ons.laws import CountNoise
from algorithms.ons.tables import Table
from algorithms.ons.top_down import adjusted, maximum_remainder
from algorithms.schema import Schema
from audit.neighbors import NeighborPair
from tests.helpers import refuses

LAWS = ("laplace", "geometric", "gaussian")
TREE, SCHEMA = Hierarchy.regular(2, 1), Schema({"sex": ("f", "m")})


def noise_of(law, epsilon, **options):
    return CountNoise(law, epsilon, 0.01 if law == "gaussian" else 0.0, **options)


@pytest.mark.parametrize("law", LAWS)
def test_zeros_stay_possible_however_large_the_count(law):
    # The least that float64 tells from 0 is exp(-745): counts of 74 and more at epsilon 10 are beyond it.
    noise, errors = noise_of(law, 10.0), -np.array([1.0, 74.0, 100.0, 1e6])
    wanted = {
        "laplace": 10 * (errors + 0.5) - math.log(2),
        "geometric": 10 * errors - math.log1p(math.exp(-10)),
        "gaussian": special.log_ndtr((errors + 0.5) / noise.scale),
    }
    assert noise.log_below(errors) == pytest.approx(wanted[law], rel=1e-14)
    above = {"laplace": math.exp(-25) / 2, "geometric": math.exp(-30) / (1 + math.exp(-10))}
    if law in above:  # what is not below 2: lost where the logarithm is that of a number next to 1
        assert noise.log_below(np.array([2.0]))[0] == pytest.approx(math.log1p(-above[law]), rel=1e-12, abs=0)
    assert np.isnan(noise.log_below(np.array([math.nan]))[0])
    assert noise_of("laplace", 10.0, rounded=False).log_below(-np.array([100.0]))[0] == -1000 - math.log(2)


@pytest.mark.parametrize("law", ["laplace", "geometric"])
def test_raised_counts_of_many_people_are_no_witness_against_a_sound_release(law):
    release = IndependentNoise(TREE, SCHEMA, 10.0, [Table(1, "sex")], law=law, nonnegative=True)
    pair = NeighborPair.add_people(np.zeros((2, 2), np.int64), (0, 0), 100)
    on_x, on_y = (release.log_likelihood(np.zeros((1, 4)), data)[0] for data in (pair.x, pair.y))
    assert 900 < abs(on_x - on_y) <= 1000 * (1 + 1e-12)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("rounded", [True, False])
def test_nan_is_not_impossible_and_infinity_is(law, rounded):
    found = noise_of(law, 1.0, rounded=rounded).log_law(np.array([math.nan, math.inf, -math.inf]))
    assert np.isnan(found).tolist() == [True, False, False]
    assert np.isneginf(found[1:]).all()


def test_far_and_narrow_cells_have_all_digits():
    noise = CountNoise("gaussian", 1e-9, 1e-11)  # cells so narrow that the density is level within them
    errors = np.array([0.0, 1.0, 2.5, 8.0]) * noise.scale // 1
    assert noise.log_law(errors) == pytest.approx(noise.noise.logpdf(errors), rel=1e-14)
    narrow = CountNoise("gaussian", 5.0, 0.3)
    edges = np.array([-0.5, 0.5, 1.5, 2.5]) / narrow.scale
    assert np.exp(narrow.log_law(np.arange(3.0))) == pytest.approx(-np.diff(special.ndtr(-edges)), rel=1e-13)
    gaussian = noise_of("gaussian", 1.0)
    assert np.isfinite(gaussian.log_law(np.array([200.0 * gaussian.scale // 1]))).all()
    for epsilon, error, log in ((2.0, 500.0, -1000 + math.log(math.sinh(1))), (2000.0, 1.0, -1000 - math.log(2))):
        assert CountNoise("laplace", epsilon).log_law(np.array([error]))[0] == pytest.approx(log)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 0.3), (1e-3, 1e-12), (0.5, 1e-6), (20.0, 0.3), (20.0, 1e-12)])
def test_rounded_gaussian_noise_keeps_its_promise(epsilon, delta):
    loss = CountNoise("gaussian", epsilon, delta).exact_loss([1])
    for law in (loss, loss.reverse()):
        assert law.delta_at(epsilon) <= delta * (1 + 1e-9)


def test_no_table_of_very_many_outcomes_or_of_unrounded_gaussian_noise():
    assert CountNoise("gaussian", 1e-9, 1e-11).exact_loss([1]) is None
    assert CountNoise("gaussian", 1.0, 1e-3).exact_loss([2**19]) is None
    assert CountNoise("gaussian", 1.0, 0.05, rounded=False).exact_loss([1]) is None
    assert CountNoise("laplace", 1.0).exact_loss([1] * 1001) is None


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 30.0])
def test_variance_is_that_of_the_numbers_released(law, epsilon):
    noise, k = noise_of(law, epsilon), np.arange(-3000.0, 3001.0)
    assert noise.variance == pytest.approx(np.sum(k * k * np.exp(noise.log_law(k))), rel=1e-12)
    assert noise_of(law, epsilon, rounded=False).variance == noise.noise.variance
    assert CountNoise("laplace", 5000.0).variance == 0  # it rounds to nothing


def test_gaussian_noise_at_and_beyond_its_limits():
    for epsilon, delta in ((1e-10, 1e-300), (1e-10, 0.999), (1e6, 1e-300), (1e6, 0.999)):
        assert 0 < CountNoise("gaussian", epsilon, delta, rounded=False).variance < math.inf
    for epsilon, delta in ((1e30, 1e-6), (1e300, 1e-6), (1e-12, 1e-300), (1.0, 1e-310)):
        with pytest.raises(ValueError, match=r"^gaussian noise must have an epsilon from 1e-10 to 1e\+06 and a delta"):
            CountNoise("gaussian", epsilon, delta)


def test_families_that_cannot_be_divided():
    refuses(ValueError, "parts of 1 must not all be 0", adjusted, [1], [[0.0, 0.0]])
    refuses(ValueError, "parts of 2 must add up to it, got 1", maximum_remainder, [2], [[1.0]])
