"""Runs whose noise is recorded, and answered from a recording."""

from __future__ import annotations

import numpy as np

from algorithms.flaxman import ADPC, RDPC
from algorithms.noise import TwoTailedGeometric, add_noise
from audit.replay import primitive, replay
from audit.replay.recording import run
from tests.audit.replay.cases import ADDED, PEOPLE, TREE, kinds, topdown


def test_a_recorded_run_is_the_run():
    seed = np.random.SeedSequence(5)
    for mechanism, data in ((RDPC(1.0, TREE), PEOPLE[:, 0]), (topdown(), PEOPLE), (ADPC(1.0), [3, 4])):
        trace = run(mechanism, data, seed)
        assert np.array_equal(trace.output, mechanism(data, 1, np.random.default_rng(seed)))
        again = run(mechanism, data, seed, trace.calls)
        assert np.array_equal(again.output, trace.output)
        other = run(mechanism, data, np.random.SeedSequence(6), trace.calls)
        assert np.array_equal(other.output, trace.output)
        assert not np.array_equal(run(mechanism, data, np.random.SeedSequence(6)).output, trace.output)


def test_answers_are_recorded_before_the_mechanism_works_on():
    def clipped(data, size, rng):
        noisy = add_noise(data, TwoTailedGeometric(0.1), size, rng, sensitivity=1)
        noisy[noisy < 40] = 0
        return noisy

    assert replay(clipped, ADDED).verdict == "not refuted"


def test_parts_that_a_mechanism_goes_on_to_change_are_kept():
    scaled = primitive("value", law="scale", sensitivity=1)(lambda value, scale, rng: value + rng.laplace() * scale)

    def mechanism(data, size, rng):
        scale = np.array([float(data.max())])
        noisy = scaled(data.sum(), scale, rng)
        scale[:] = 0
        return noisy

    assert kinds(replay(mechanism, ADDED)) == ["law"]
