"""Cell keys: noise keeps its moments and limits, by its law and by records with keys, and loses without end."""

import math

import numpy as np
import pytest
from scipy import stats

from algorithms.benchmarks.cell_key import CellKey
from algorithms.noise import TwoTailedGeometric
from algorithms.noise.counts import Databases
from audit import PureDP
from tests.helpers import chi_square, refuses

SETTINGS = [(1, 0.5), (2, 1.0), (2, 0.15), (3, 0.7), (5, 3.0), (5, 0.001), (15, 0.001), (15, 7.0), (15, 14.25)]


def law(mechanism, count):
    """Probability of every output from 0 on, by the likelihood."""
    outputs = np.arange(count + mechanism.most + 2)
    return outputs, np.exp(mechanism.log_likelihood(outputs[:, None], [count]))


def loss(mechanism, x, y):
    return mechanism.exact_loss(Databases(np.array(x), np.array(y)))


@pytest.mark.parametrize(("most", "variance"), SETTINGS)
def test_noise_is_unbiased_bounded_and_of_its_variance_and_empty_cells_stay_empty(most, variance):
    mechanism = CellKey(most, variance)
    for count in (*range(1, most + 3), 1000):
        outputs, p = law(mechanism, count)
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert p @ outputs == pytest.approx(count, rel=1e-12)
        assert p @ (outputs - count) ** 2 == pytest.approx(variance, rel=1e-9)
        assert not p[np.abs(outputs - count) > most].any()
    assert law(mechanism, 0)[1].tolist() == [1.0] + [0.0] * (most + 1)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_no_other_table_with_these_moments_has_a_larger_entropy(count):
    """Steps along every direction that keeps the three moments, of which there are two or more."""
    outputs, p = law(CellKey(3, 0.7), count)
    outputs, p = outputs[p > 0], p[p > 0]
    moments = np.stack([np.ones(outputs.size), outputs, outputs**2.0])
    kept = np.linalg.svd(moments)[2][3:]
    assert len(kept) >= 2
    for direction in (*kept, *-kept):
        other = p + 1e-4 * direction * p.min()
        assert stats.entropy(other) < stats.entropy(p)


def test_runs_follow_the_law_as_sums_of_record_keys_do():
    """Records have keys of 16 bits, which are added up modulo 2^16: false alarm 1e-6 each."""
    mechanism, counts, runs = CellKey(2, 1.0), np.array([0, 1, 2, 20]), 20_000
    rng = np.random.default_rng(4)
    released = mechanism(counts, runs, rng)
    assert released.dtype == np.int64
    assert not released[:, 0].any()
    for cell, count in enumerate(counts[1:], start=1):
        outputs, p = law(mechanism, count)
        keys = rng.integers(2**16, size=(runs, count)).sum(axis=1) % 2**16 / 2**16
        by_records = p.cumsum().searchsorted(keys, side="right")
        for values in (released[:, cell], by_records):
            assert chi_square(np.bincount(values, minlength=outputs.size), runs * p) > 1e-6
        neighbor = runs * np.append(0, p[:-1])  # negative control: one person more
        assert chi_square(np.bincount(by_records, minlength=outputs.size), neighbor) < 1e-12
    lone, crowd = released[:, 1] - 1, released[:, 3] - 20
    assert abs(np.corrcoef(lone, crowd)[0, 1]) < 4.9 / math.sqrt(runs)  # disjoint cells: false alarm 1e-6
    one, again = (mechanism(counts, 9, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one, again)


def test_the_loss_is_infinite_with_the_probability_of_what_one_database_alone_can_give():
    mechanism = CellKey(2, 1.0)
    among, p = loss(mechanism, [20], [21]), law(mechanism, 20)[1]
    assert (among.infinite_mass, among.missing_mass) == (pytest.approx(p[18]), pytest.approx(p[22]))
    assert among.maximum == math.inf
    alone, lone = loss(mechanism, [0], [1]), law(mechanism, 1)[1]
    assert (alone.infinite_mass, alone.missing_mass) == (0, pytest.approx(1 - lone[0]))
    assert alone.maximum == pytest.approx(-math.log(lone[0]))  # an empty cell says that nobody may be there
    assert loss(mechanism, [20], [30]).infinite_mass == pytest.approx(1)  # no output in common
    both = loss(mechanism, [20, 0, 5], [21, 1, 5])
    assert both.missing_mass == pytest.approx(1 - (1 - p[22]) * lone[0])
    assert loss(mechanism, [3, 4], [3, 4]).maximum == 0


def test_the_promise_is_that_of_geometric_noise_of_the_same_variance():
    for most, variance in SETTINGS:
        promise = CellKey(most, variance).claim
        assert promise == PureDP(promise.epsilon)
        assert TwoTailedGeometric(promise.epsilon).variance == pytest.approx(variance, rel=1e-9)


def test_refusals():
    refuses(ValueError, "most must be at least 1, got 0", CellKey, 0)
    refuses(ValueError, "most must be at most 15, got 16", CellKey, 16)
    for variance in (2.0, 0, math.nan):
        refuses(ValueError, f"variance must be from 0.001 to 0.95 of most, 1.9, got {variance}", CellKey, 2, variance)
