from __future__ import annotations

import math

import numpy as np
import pytest

import audit
import audit.replay  # the module, which is a function too
from algorithms import noise
from algorithms.flaxman import ADPC, RDPC
from algorithms.hierarchy import Hierarchy
from algorithms.noise import DiscreteGaussian, Gaussian, Laplace, TwoTailedGeometric, add_noise
from algorithms.schema import Schema
from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from audit.claims import ZCDP, PureDP
from audit.neighbors import NeighborPair
from audit.replay.recording import run

replay, primitive = audit.replay, audit.replay.primitive


TREE = Hierarchy.regular(3, 2)


SCHEMA = Schema({"sex": ("female", "male"), "age": ("minor", "adult")})


PEOPLE = 10 + np.arange(36).reshape(9, 4) % 7


ADDED = NeighborPair.add_people([50, 3, 7], 0)


PURE, CONCENTRATED = PureDP(1.0, "replace_one"), ZCDP(0.5, "replace_one")


def topdown(kind=TopDown, promise=PURE, **options):
    budget = Budget(promise, ["1/3"] * 3, [{"detailed": "1/2", "sex": "1/2"}] * 3)
    return kind(SCHEMA, TREE, budget, **options)


def kinds(found):
    return [violation.kind for violation in found.violations]


def sum_of(law=None, *, query="sum", sensitivity=None, of=np.sum, claim=None):
    """A mechanism that releases one noisy number."""

    def mechanism(data, size, rng):
        return add_noise(of(data), law or Laplace(1.0), size, rng, query=query, sensitivity=sensitivity)

    mechanism.claim = claim
    return mechanism


@pytest.mark.parametrize("law", [TwoTailedGeometric(0.5), Laplace(2.0), Gaussian(2.0), DiscreteGaussian(2.0)])
@pytest.mark.parametrize("exact", [[10, 0, 3], [[1.5], [2.5]], 7, 2.5])
@pytest.mark.parametrize("size", [None, 4])
def test_noise_is_that_of_the_law_and_added(law, exact, size):
    shape = np.shape(exact) if size is None else (size, *np.shape(exact))
    expected = law.sample(shape, np.random.default_rng(1)) + np.asarray(exact)
    found = add_noise(exact, law, size, np.random.default_rng(1))
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


def test_values_that_noise_is_added_to_stay():
    exact = np.array([1, 2, 3])
    add_noise(exact, TwoTailedGeometric(1e-3), None, np.random.default_rng(0))
    assert exact.tolist() == [1, 2, 3]


def test_a_watcher_sees_every_draw_once_and_may_answer():
    seen = []

    def watcher(draw, **call):
        seen.append(call)
        return draw() * 0

    rng = np.random.default_rng(0)
    with noise.watched(watcher):
        assert Gaussian(1.0).sample((2, 3), rng).tolist() == [[0] * 3] * 2
        assert add_noise([5], Laplace(2.0), 2, rng, query="q", sensitivity=(1, 2)).tolist() == [[0], [0]]
    assert seen[0] == {"law": Gaussian(1.0), "shape": (2, 3), "rng": rng}
    assert seen[1]["value"].tolist() == [5]
    assert (seen[1]["query"], seen[1]["sensitivity"], seen[1]["shape"]) == ("q", (1, 2), (2, 1))
    assert seen[2]["law"] == Laplace(2.0)  # the draw that it is made of
    assert len(seen) == 3
    assert Gaussian(1.0).sample(3, rng).any()
    assert len(seen) == 3


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
