"""Runs whose noise is recorded, and answered from a recording."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.flaxman import ADPC, RDPC
from algorithms.noise import TwoTailedGeometric, add_noise
from audit.replay import primitive, replay
from audit.replay.recording import run
from tests.audit.replay.cases import ADDED, PEOPLE, TREE, kinds, sum_of, topdown


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


@pytest.mark.parametrize(
    ("sensitivity", "error", "words"),
    [
        (-1, ValueError, "the sensitivity of 'q' must be finite and not negative, got -1"),
        ((1, math.nan), ValueError, r"the sensitivity of 'q' must be finite and not negative, got \(1, nan\)"),
        ((1, 1, 1), ValueError, r"the sensitivity of 'q' must be one number or two, got \(1, 1, 1\)"),
        ("1", TypeError, "the sensitivity of 'q' must be one number or two, got '1'"),
    ],
)
def test_sensitivities_that_are_none(sensitivity, error, words):
    with pytest.raises(error, match=f"^{words}$"):
        replay(sum_of(query="q", sensitivity=sensitivity), ADDED)
    assert replay(sum_of(query="q", sensitivity=[1, 1]), ADDED).queries[0].declared == (1, 1)


@pytest.mark.parametrize("value", [1j, np.array([10**30], object)])
def test_values_that_are_no_real_numbers(value):
    with pytest.raises(TypeError, match=r"^values of 'q' must be real numbers, got dtype (complex128|object)$"):
        replay(sum_of(query="q", of=lambda _: value), ADDED)


def test_answers_that_cannot_be_kept():
    @primitive("values")
    def lazily(values, rng):
        yield from values

    with pytest.raises(TypeError, match=r"^answers of 'lazily' must be what can be copied, got generator$"):
        replay(lambda data, size, rng: list(lazily(data, rng)), ADDED)
