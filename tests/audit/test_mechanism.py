import functools
import os
import re
import threading
from dataclasses import dataclass

import joblib
import numpy as np
import pytest

from audit.claims import PureDP
from audit.measure.loss import measure_loss
from audit.mechanism import check_mechanism, mechanism_name, per_run
from audit.outputs import kind_of
from audit.sampling.calls import Caller
from audit.sampling.probes import probe
from tests.audit.audits import COIN
from tests.audit.sampling.cases import SEED, drawn
from tests.helpers import refused_like, refuses, whole


def noisy_total(data, rng):
    return data.sum() + rng.laplace()


@dataclass
class Release:
    scale: float

    def __call__(self, data, size, rng):
        return rng.laplace(data, self.scale, (size, *data.shape))


class Connection:
    """An object of a library that lives in one process, and takes its randomness from the operating system."""

    def __init__(self):
        self.lock = threading.Lock()  # cannot be pickled

    def release(self, data):
        with self.lock:
            return data + float(np.random.default_rng().laplace())


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (noisy_total, ()),
        (lambda data, rng: data + rng.laplace(size=data.shape), (2, 3)),
        (lambda data, rng: [rng.random(), 1], (2,)),
        (lambda data, rng: "a" if rng.random() < 0.5 else None, None),
        (lambda data, rng: np.zeros(1 + rng.integers(3)), None),
    ],
)
@pytest.mark.parametrize("size", [1, 50])
def test_one_output_a_run(function, shape, size):
    data = np.arange(6).reshape(2, 3)
    outputs = per_run(function)(data, size, np.random.default_rng(0))
    assert len(outputs) == size
    rng = np.random.default_rng(0)
    for one in outputs:
        np.testing.assert_array_equal(one, function(data, rng))
    assert size == 1 or kind_of([outputs]).shape == shape
    assert probe([Caller(per_run(function), data)] * 2, 2000, SEED).kind.shape == shape


def test_an_output_that_is_used_again_is_copied():
    """Known truth: the function gives the same array in every run."""
    buffer, nested = np.zeros(2), {"of": [0.0]}

    def reusing(data, rng):
        buffer[:] = rng.random(2)
        return buffer

    def reusing_parts(data, rng):
        nested["of"][0] = rng.random()
        return nested

    for function, one in ((reusing, lambda output: output[0]), (reusing_parts, lambda output: output["of"][0])):
        outputs = per_run(function)(None, 9, np.random.default_rng(0))
        assert len({float(one(output)) for output in outputs}) == 9


def test_a_function_that_a_seed_does_not_repeat_is_called_with_the_data_alone():
    mechanism = per_run(Connection().release, seedable=False)
    outputs = mechanism(5.0, 4, np.random.default_rng(0))
    assert len(set(outputs)) == 4
    assert outputs != mechanism(5.0, 4, np.random.default_rng(0))
    result = measure_loss(mechanism, COIN, PureDP(3), size=400, rng=1)
    assert "a seed does not reproduce this audit" in " ".join(result.notes)
    assert result.provenance["parameters"]["seedable"] is False
    seeded = measure_loss(per_run(lambda data, rng: round(data + rng.laplace(), 6)), COIN, PureDP(3), size=400, rng=1)
    assert seeded.notes == ()  # negative control
    assert "seedable" not in seeded.provenance["parameters"]


def test_a_factory_builds_once_in_every_process():
    built = []

    def factory():
        built.append(os.getpid())
        connection = Connection()
        return connection.release

    mechanism = per_run(factory=factory, seedable=False)
    for size in (1, 5):
        assert len(mechanism(1.0, size, np.random.default_rng(0))) == size
    assert built == [os.getpid()]


def test_an_object_that_cannot_be_sent_is_refused():
    mechanism = per_run(Connection().release, seedable=False)
    with refused_like(ValueError, r"^the mechanism cannot be sent to another process: per_run\(factory=...\) builds"):
        drawn(mechanism, 0.0, 1024, reduce=whole, shape=(), n_jobs=2)


def Connecting():
    """A factory as a library's class is one."""
    return Connection().release


def test_threads_are_for_mechanisms_that_say_so():
    def mechanism(data, size, rng):
        return rng.random(size)

    with joblib.parallel_config(backend="threading"), refused_like(ValueError, "^threads must not share a mechanism"):
        drawn(per_run(lambda data, rng: rng.random()), None, 1024, reduce=whole, shape=(), n_jobs=2)
    mechanism.threads = True
    mechanism.runs_per_block = 100
    with joblib.parallel_config(backend="threading"):
        both = drawn(mechanism, None, 400, reduce=whole, shape=(), n_jobs=2)
    alone = drawn(mechanism, None, 400, reduce=whole, shape=())
    assert list(map(len, both)) == list(map(len, alone))
    np.testing.assert_array_equal(np.concatenate(both), np.concatenate(alone))


def test_neither_a_function_nor_a_factory_is_refused():
    for function, factory in ((None, None), (None, "noisy"), (noisy_total, noisy_total)):
        words = f"per_run takes a function or a factory, got {function} and {factory!r}"
        refuses(TypeError, words, per_run, function, factory)


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (3, "3"),
        (lambda data: data, "<lambda>(data);"),
        (noisy_total, "noisy_total(data, rng); per_run makes one of a function (data, rng) that returns one output"),
        (lambda data, size, *, rng: data, "<lambda>(data, size, *, rng);"),
        (functools.partial(Release.__call__, Release(1.0), np.ones(2)), "partial(size, rng);"),
    ],
)
def test_what_cannot_be_called_says_how_a_mechanism_is_called(mechanism, words):
    with refused_like(TypeError, f"^mechanism must be callable as {re.escape(f'(data, size, rng), got {words}')}"):
        check_mechanism(mechanism)


@functools.wraps(noisy_total)
def each_run(data, size, rng):
    return [noisy_total(data, rng) for _ in range(size)]


@pytest.mark.parametrize("mechanism", [Release(1.0), each_run, per_run(noisy_total), lambda *arguments: 0, max, np.add])
def test_what_may_be_called_so_is_not_refused(mechanism):
    """Of compiled code nothing is known before it is called."""
    check_mechanism(mechanism)


def test_mechanisms_are_named_after_what_they_are():
    assert mechanism_name(noisy_total) == "noisy_total"
    assert mechanism_name(per_run(noisy_total)) == "noisy_total"
    assert mechanism_name(per_run(factory=Connecting)) == "Connecting"
    assert mechanism_name(lambda data, size, rng: data) == "<lambda>"
    assert mechanism_name(Release(2.0)) == mechanism_name(per_run(Release(1.0))) == "Release"
    assert mechanism_name(functools.partial(noisy_total)) == "partial"
    assert mechanism_name(Release(2.0).__call__) == "__call__"
