from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest

from audit.mechanism import mechanism_name, per_run
from audit.sampling.probes import check_uses_rng, one_output


def noisy_total(data, rng):
    return data.sum() + rng.laplace()


def noisy_table(data, rng):
    return data + rng.laplace(size=data.shape)


@dataclass
class Release:
    scale: float

    def __call__(self, data, size, rng):
        return rng.laplace(data, self.scale, (size, *data.shape))


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (noisy_total, ()),
        (noisy_table, (2, 3)),
        (lambda data, rng: [rng.random(), 1], (2,)),
        (lambda data, rng: rng.integers(9), ()),
        (lambda data, rng: np.array([[rng.random()]]), (1, 1)),
    ],
)
@pytest.mark.parametrize("size", [1, 5])
def test_one_output_a_run(function, shape, size):
    data = np.arange(6).reshape(2, 3)
    outputs = per_run(function)(data, size, np.random.default_rng(0))
    assert outputs.shape == (size, *shape)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(outputs, [function(data, rng) for _ in range(size)])
    assert one_output(per_run(function), [data], np.random.SeedSequence(0)).shape == (1, *shape)
    check_uses_rng(per_run(function), data, size + 1, np.random.SeedSequence(0), shape=shape)


def test_runs_must_agree_in_shape():
    with pytest.raises(ValueError, match="all input arrays must have the same shape"):
        per_run(lambda data, rng: np.zeros(rng.integers(1, 9)))(None, 20, np.random.default_rng(0))


def test_a_function_that_ignores_its_generator_is_caught_through_the_adapter():
    def reseeded(data, size, rng):
        return per_run(noisy_table)(data, size, np.random.default_rng(3))

    with pytest.raises(ValueError, match="the mechanism ignores its rng"):
        check_uses_rng(reseeded, np.zeros(2), 9, np.random.SeedSequence(0), shape=(2,))


def test_mechanisms_are_named_after_what_they_are():
    assert mechanism_name(noisy_total) == "noisy_total"
    assert mechanism_name(per_run(noisy_total)) == "noisy_total"
    assert mechanism_name(lambda data, size, rng: data) == "<lambda>"
    assert mechanism_name(Release(2.0)) == mechanism_name(per_run(Release(1.0))) == "Release"
    assert mechanism_name(functools.partial(noisy_total)) == "partial"
    assert mechanism_name(Release(2.0).__call__) == "__call__"
