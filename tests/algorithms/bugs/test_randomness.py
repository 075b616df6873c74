"""Where the noise comes from: mechanisms with one output for each database."""

import math

import numpy as np
import pytest

from algorithms.bugs.randomness import OneStream, SeededByData, SeededByTime
from tests.helpers import pair_of


def at(second):
    return SeededByTime(1.0, clock=lambda: second)


@pytest.mark.parametrize("bug", [SeededByData(1.0), at(1_585_692_000.7), OneStream(1.0)])
def test_the_generator_given_is_never_asked(bug):
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    released = bug([50, 3], 100, rng)
    assert rng.bit_generator.state == before
    np.testing.assert_array_equal(bug([50, 3], 100, np.random.default_rng(2)), released)
    assert released.shape == (100, 2)
    assert bug.support_masses(pair_of([50, 3], [50, 3])) == (0, 0)
    assert bug.support_masses(pair_of([50, 3], [51, 3])) == (1, 1)


def test_how_the_noise_repeats():
    """Over many databases the noise still follows its law: the bug is that each has one."""
    rng = np.random.default_rng(0)
    errors = np.array([SeededByData(1.0)([n], 1, rng)[0, 0] - n for n in range(1000)])
    chance = math.tanh(0.5)
    assert abs((errors == 0).mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / 1000)  # false alarm 6e-7
    assert len(np.unique(SeededByData(1.0)([50, 3], 50, rng), axis=0)) == 1
    one = at(100.2)([50, 3], 500, rng)  # a second has one noise and the next another
    np.testing.assert_array_equal(at(100.9)([50, 3], 500, rng), one)
    assert (at(101.0)([50, 3], 500, rng) != one).any()
    assert len(np.unique(one, axis=0)) > 10  # within a batch runs do differ
    assert SeededByTime(1.0).clock() > 1.7e9
    np.testing.assert_array_equal(OneStream(1.0)([50, 3], 9, rng) - OneStream(1.0)([49, 5], 9, rng), [[1, -2]] * 9)
