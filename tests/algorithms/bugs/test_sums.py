"""Sums and finite arithmetic: losses beyond the registered pairs, and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from algorithms.bugs.sums import (
    BoundsFromData,
    LaplaceHoles,
    NaNSurvivesClipping,
    OverflowingTotal,
    RawDataSummed,
    ReorderedSum,
    RoundedFirst,
)
from algorithms.noise import TwoTailedGeometric
from tests.helpers import pair_of, refuses

NAN = math.nan


# Sensitivity


def test_a_raw_value_costs_what_it_is():
    for value in (1, 10, 35):
        law = RawDataSummed(0.5, bound=10).exact_loss(pair_of([3], [3, value]))
        assert law.maximum == pytest.approx(0.05 * value)


def test_the_largest_value_sets_the_scale():
    for value in (6, 12):  # bounds that stay cost what was promised
        law = BoundsFromData(0.5).exact_loss(pair_of([12, 3], [12, 3, value]))
        assert law.maximum == pytest.approx(0.5 * value / 12)
    wider = BoundsFromData(1.0).exact_loss(pair_of([12], [12, 24])).reverse()
    assert wider.maximum == math.inf
    assert wider.infinite_mass == wider.missing_mass == 0
    assert math.isfinite(wider.reverse().maximum)
    assert np.exp(wider.log_p).sum() == pytest.approx(1)
    assert BoundsFromData(1.0)([], 2, np.random.default_rng(1)).shape == (2,)
    assert BoundsFromData(1e-6).exact_loss(pair_of([12], [12, 24])) is None


def test_missing_values_hide_each_other():
    bug = NaNSurvivesClipping(0.5, bound=10)
    assert bug.exact_loss(pair_of([1, NAN], [1, NAN, NAN])).maximum == 0
    assert bug.exact_loss(pair_of([1], [1, 30])).maximum == pytest.approx(0.5)  # clipped to 10: as promised
    assert bug.exact_loss(pair_of([1], [1, NAN])).infinite_mass == pytest.approx(
        1 - math.exp(TwoTailedGeometric(0.05).logpmf(1))
    )


# Arithmetic


def test_the_order_of_a_sum_matters():
    bug = ReorderedSum(1.0)
    ones, halves = [1.0] * 2040, [0.5] * 16
    assert bug.total(halves + ones) == 2048
    assert bug.total(ones + halves) == 2040
    assert math.fsum(ones + halves) == 2048
    assert bug.total([]) == 0
    assert bug.total([7.0, -3.0]) == 1  # clipped
    assert bug.exact_loss(pair_of(halves + ones, ones + halves)).maximum == pytest.approx(8.0)
    assert bug.exact_loss(pair_of([0.5], [0.5, 1.0])).maximum == pytest.approx(1.0)


def test_sixteen_bits_wrap_around():
    for counts, total in (([32767], 32767), ([32768], -32768), ([65536, 3], 3), ([70000], 4464)):
        errors = OverflowingTotal(30.0)(counts, 3, np.random.default_rng(1)) - total
        assert errors.tolist() == [0, 0, 0]  # false alarm 6e-13: noise of epsilon 30
        assert errors.dtype == np.int64
    assert OverflowingTotal(0.1).true_loss == pytest.approx(6553.5)  # no two totals are further apart
    assert OverflowingTotal(0.1).exact_loss(pair_of([100], [101])).maximum == pytest.approx(0.1)


@pytest.mark.parametrize("base", [2, 5])
def test_a_base_is_the_sensitivity_of_rounding(base):
    bug, counts = RoundedFirst(0.5, base), np.arange(30)
    losses = [bug.exact_loss(pair_of([n], [n + 1])).maximum for n in range(3 * base)]
    assert sorted({round(loss, 9) for loss in losses}) == [0, base * 0.5]
    assert losses.count(0) == 3 * base - 3
    assert bug.true_loss == pytest.approx(max(losses))
    sharp = RoundedFirst(40.0, base)(counts, 1, np.random.default_rng(0))[0]  # false alarm 3e-16
    assert (sharp % base == 0).all()
    assert (abs(sharp - counts) <= base / 2).all()


@pytest.mark.parametrize("bits", [6, 10])
def test_holes_are_where_the_other_database_puts_nothing(bits):
    """The outputs of both databases, listed one by one."""
    bug = LaplaceHoles(0.5, bits)
    magnitudes = -np.log(np.arange(1, 2**bits + 1) / 2**bits) / 0.5
    noise = [sign * e for e in magnitudes.tolist() for sign in (-1, 1)]
    on_x, on_y = ([count + e for e in noise] for count in (10, 11))
    only_x, only_y = set(on_x) - set(on_y), set(on_y) - set(on_x)
    law = bug.exact_loss(pair_of([10, 4], [11, 4]))
    assert law.infinite_mass == pytest.approx(sum(z in only_x for z in on_x) / len(noise), abs=1e-12)
    assert law.missing_mass == pytest.approx(sum(z in only_y for z in on_y) / len(noise), abs=1e-12)
    assert law.infinite_mass > 0.9
    released = bug([10], 20_000, np.random.default_rng(1)).ravel()
    np.testing.assert_array_equal(np.isin(released, on_x), True)  # equal to the last bit
    assert np.isin(released, on_y).mean() < 0.1


def test_many_bits_look_like_laplace():
    bug = LaplaceHoles(0.5)
    errors = bug([10, 0], 50_000, np.random.default_rng(2)) - [10, 0]
    assert stats.kstest(errors.ravel(), stats.laplace(scale=2).cdf).pvalue > 1e-6  # the false alarm
    assert stats.kstest(errors.ravel(), stats.laplace(scale=2.2).cdf).pvalue < 1e-12
    assert bug.exact_loss(pair_of([10], [11])) is None
    assert LaplaceHoles(0.5, 4).exact_loss(pair_of([10, 4], [11, 5])) is None
    assert LaplaceHoles(0.5, 4).exact_loss(pair_of([10, 4], [10, 4])).maximum == 0


def test_values_are_whole_and_small():
    rng = np.random.default_rng(0)
    for make in (RawDataSummed, BoundsFromData, NaNSurvivesClipping):
        for value in (-1.0, 0.5, 2.0**31, math.inf, NAN):
            if make is not NaNSurvivesClipping or not math.isnan(value):  # which is the bug
                message = f"values must be whole numbers from 0 to 2**31 - 1, got {value}"
                refuses(ValueError, message, make(1.0), [value], 3, rng)
    refuses(ValueError, "shares must not be NaN, got 1 of 2", ReorderedSum(1.0), [1, NAN], 3, rng)
    refuses(ValueError, "bits must be at most 53, got 54", LaplaceHoles, 1.0, 54)
