"""Sums and finite arithmetic, beyond what the twins of `test_known_bugs` show."""

import math

import numpy as np
import pytest
from scipy import stats

from algorithms.bugs.sums import BoundsFromData, LaplaceHoles, NaNSurvivesClipping, RawDataSummed, ReorderedSum
from tests.helpers import pair_of, refuses

NAN = math.nan


def test_no_people_have_a_sum():
    assert ReorderedSum(1.0).exact([]) == 0
    assert BoundsFromData(1.0)([], 2, np.random.default_rng(1)).shape == (2,)


@pytest.mark.parametrize("bits", [6, 10])
def test_holes_are_where_the_other_database_puts_nothing(bits):
    """The outputs of both databases, listed one by one."""
    bug = LaplaceHoles(0.5, bits)
    magnitudes = -np.log(np.arange(1, 2**bits + 1) / 2**bits) / 0.5
    noise = [sign * e for e in magnitudes.tolist() for sign in (-1, 1)]
    on_x, on_y = ([count + e for e in noise] for count in (10, 11))
    only_x, only_y = set(on_x) - set(on_y), set(on_y) - set(on_x)
    masses = bug.support_masses(pair_of([10, 4], [11, 4]))
    alone = [sum(z in only for z in released) / len(noise) for only, released in ((only_x, on_x), (only_y, on_y))]
    assert masses == pytest.approx(alone, abs=1e-12)
    assert min(masses) > 0.9
    released = bug([10], 20_000, np.random.default_rng(1)).ravel()
    np.testing.assert_array_equal(np.isin(released, on_x), True)  # equal to the last bit
    assert np.isin(released, on_y).mean() < 0.1


def test_many_bits_look_like_laplace():
    bug = LaplaceHoles(0.5)
    errors = bug([10, 0], 50_000, np.random.default_rng(2)) - [10, 0]
    assert stats.kstest(errors.ravel(), stats.laplace(scale=2).cdf).pvalue > 1e-6  # the false alarm
    assert stats.kstest(errors.ravel(), stats.laplace(scale=2.2).cdf).pvalue < 1e-12
    assert LaplaceHoles(0.5, 4).support_masses(pair_of([10, 4], [10, 4])) == (0, 0)
    assert bug.support_masses(pair_of([10], [11])) == (0, 0)  # too many outputs to list


def test_values_are_whole_and_small():
    rng = np.random.default_rng(0)
    for make in (RawDataSummed, BoundsFromData, NaNSurvivesClipping):
        for value in (-1.0, 0.5, 2.0**31, math.inf, NAN):
            if make is not NaNSurvivesClipping or not math.isnan(value):  # which is the bug
                message = f"values must be whole numbers from 0 to 2**31 - 1, got {value}"
                refuses(ValueError, message, make(1.0), [value], 3, rng)
    refuses(ValueError, "shares must not be NaN, got 1 of 2", ReorderedSum(1.0), [1, NAN], 3, rng)
    refuses(ValueError, "bits must be at most 53, got 54", LaplaceHoles, 1.0, 54)
