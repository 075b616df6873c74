"""Where the noise comes from: losses beyond the registered pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.bugs.randomness import CachedNoise, ForkedAreas, OneStream, SeededByData, SeededByTime
from algorithms.flaxman import GDPC
from algorithms.noise import TwoTailedGeometric
from tests.helpers import pair_of, same_losses


def at(second):
    return SeededByTime(1.0, clock=lambda: second)


# One output for each database


@pytest.mark.parametrize("bug", [SeededByData(1.0), at(1_585_692_000.7), OneStream(1.0)])
def test_the_generator_given_is_never_asked(bug):
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    released = bug([50, 3], 100, rng)
    assert rng.bit_generator.state == before
    np.testing.assert_array_equal(bug([50, 3], 100, np.random.default_rng(2)), released)
    assert released.shape == (100, 2)
    assert bug.exact_loss(pair_of([50, 3], [50, 3])).maximum == 0
    law = bug.exact_loss(pair_of([50, 3], [51, 3]))
    assert law.infinite_mass == law.missing_mass == 1


def test_how_the_noise_repeats():
    """Over many databases the noise still follows its law: the bug is that each has one."""
    rng = np.random.default_rng(0)
    errors = np.array([SeededByData(1.0)([n], 1, rng)[0, 0] - n for n in range(3000)])
    chance = math.tanh(0.5)
    assert abs((errors == 0).mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / 3000)  # false alarm 6e-7
    assert len(np.unique(SeededByData(1.0)([50, 3], 50, rng), axis=0)) == 1
    one = at(100.2)([50, 3], 500, rng)  # a second has one noise and the next another
    np.testing.assert_array_equal(at(100.9)([50, 3], 500, rng), one)
    assert (at(101.0)([50, 3], 500, rng) != one).any()
    assert len(np.unique(one, axis=0)) > 10  # within a batch runs do differ
    assert SeededByTime(1.0).clock() > 1.7e9
    np.testing.assert_array_equal(OneStream(1.0)([50, 3], 9, rng) - OneStream(1.0)([49, 5], 9, rng), [[1, -2]] * 9)


# Shared noise


@pytest.mark.parametrize(("areas", "workers"), [(2, 2), (5, 2), (7, 3), (3, 5)])
def test_workers_repeat_each_other(areas, workers):
    bug, counts = ForkedAreas(1.0, workers), np.arange(areas) * 10
    errors = bug(counts, 200, np.random.default_rng(1)) - counts
    parts = np.array_split(np.arange(areas), workers)
    for part in parts[1:]:
        np.testing.assert_array_equal(errors[:, part], errors[:, parts[0][: part.size]])
    distinct = {tuple(column) for column in errors.T}
    assert len(distinct) == parts[0].size


def test_shared_noise_hides_what_is_added_to_all_who_share():
    bug, one_shift = ForkedAreas(0.7), GDPC(0.7).exact_loss(pair_of([5], [6]))
    same_losses(bug.exact_loss(pair_of([5, 3, 8, 1], [6, 3, 9, 1])), one_shift)  # one noise
    assert bug.exact_loss(pair_of([5, 3, 8, 1], [6, 3, 8, 1])).infinite_mass == 1
    alone = pair_of([5, 3, 8], [5, 4, 8])  # the second area of the first worker shares with nobody
    assert bug.exact_loss(alone).maximum == pytest.approx(0.7)
    assert bug.exact_loss(pair_of([5, 3], [2**23, 2**23])) is not None
    assert bug.exact_loss(pair_of([0, 0], [2**23, 2**23])) is None


@pytest.mark.parametrize("shift", [1, 3])
def test_company_tells(shift):
    """All four cases of a count that changes, from lists of what both noises can be."""
    bug, noise = CachedNoise(1.0), TwoTailedGeometric(1.0)
    k = np.arange(-60, 61)
    chance = np.exp(noise.logpmf(k))
    agree = float(np.sum(np.exp(noise.logpmf(k) + noise.logpmf(k - shift))))

    alone = bug.exact_loss(pair_of([7, 1], [7 + shift, 1]))
    assert alone.maximum == pytest.approx(shift)
    left = bug.exact_loss(pair_of([7, 7], [7, 7 + shift]))
    assert left.infinite_mass == 0
    assert left.missing_mass == pytest.approx(1 - agree)
    assert left.maximum == math.inf
    own = -noise.logpmf(k - shift)  # loss of an output that shows the noise k: its own noise had to agree
    for epsilon in (0.5, 2.0, 5.0):
        exact = np.sum(chance * np.maximum(1 - np.exp(epsilon - own), 0))
        assert left.delta_at(epsilon) == pytest.approx(exact, abs=1e-12)
    joined = bug.exact_loss(pair_of([7, 7 + shift], [7, 7]))
    assert joined.infinite_mass == pytest.approx(1 - agree)
    assert joined.reverse().maximum == math.inf
    both = bug.exact_loss(pair_of([7, 7, 7 + shift], [7, 7 + shift, 7 + shift]))
    assert both.infinite_mass == pytest.approx(1 - agree)
    assert both.missing_mass == pytest.approx(1 - agree)
    assert both.loss.tolist() == [0]
    assert bug.exact_loss(pair_of([7, 7], [7, 7])).maximum == 0
    assert bug.exact_loss(pair_of([7, 7], [8, 9])) is None
