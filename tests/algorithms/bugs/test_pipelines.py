"""Pipelines with a bug: each is caught by one pair of runs, and its twin without the bug is not accused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.bugs import pipeline_bugs
from algorithms.bugs.pipelines import (
    CollapsingScale,
    CountInMessage,
    ImputesOnDemand,
    MeanOfKnownSize,
    NoLimitNoNoise,
    PageByPage,
    RawSum,
)
from audit.neighbors import NeighborPair
from audit.replay import replay
from tests.helpers import refuses

BUGS = pipeline_bugs()
SETTINGS = [(False, 0), (True, 0), (False, 30), (True, 30)]


def neighbors(bug):
    if bug.records.dtype.kind == "f":  # NaN, which equals no other record
        return NeighborPair.declared(bug.records, np.append(bug.records, bug.record), "add_remove", unit="record")
    return NeighborPair.add_record(bug.records, bug.record)


@pytest.mark.parametrize(("name", "bug"), BUGS.items())
def test_every_bug_is_caught_and_its_twin_keeps_its_promise_in_either_direction(name, bug):
    """Of the twin's time by chance 1e-6."""
    pair, options = neighbors(bug), {"observe": "time", "size": 120} if bug.kind == "time" else {}
    caught = replay(bug.pipeline, pair, **options)
    assert (caught.verdict, caught.violations[0].kind) == ("violated", bug.kind)
    if bug.kind == "time":  # only a watch tells
        assert replay(bug.pipeline, pair).verdict == "not refuted"
        assert replay(bug.pipeline.twin, pair, **options).violations == ()
    for way in (pair, NeighborPair.declared(pair.y, pair.x, "add_remove", unit="record")):
        sound = replay(bug.pipeline.twin, way, size=4)
        assert (sound.verdict, sound.violations) == ("not refuted", ())
        assert sound.exact_loss is None or sound.exact_loss.maximum <= 1 + 1e-9
    assert bug.pipeline.twin.true_loss == 1.0 == bug.pipeline.claim.epsilon
    assert bug.pipeline.true_loss == (2.0 if name == "spent-twice" else math.inf)
    if name == "spent-twice":
        assert (caught.exact_loss.maximum, sound.exact_loss.maximum) == (pytest.approx(2), pytest.approx(1))


def test_every_bug_says_what_it_is():
    kinds = {"number", "shape", "order", "law", "seed", "sensitivity", "nan", "loss", "output", "exception", "time"}
    assert {bug.kind for bug in BUGS.values()} == kinds
    assert len({bug.words for bug in BUGS.values()}) == len(BUGS) == 14
    for bug in BUGS.values():
        documentation = type(bug.pipeline).__doc__
        assert all(part in documentation for part in ("**Bug.**", "The twin", "**True loss.**"))
        assert bug.source
        assert not bug.records.flags.writeable


@pytest.mark.parametrize(("name", "bug"), BUGS.items())
def test_they_release_so_many_runs_as_they_are_asked_for(name, bug):
    for pipeline in (bug.pipeline, bug.pipeline.twin):
        if isinstance(pipeline, CountInMessage):
            continue
        data = np.asarray(neighbors(bug).y)
        first, second = (pipeline(data, 4, np.random.default_rng(seed)) for seed in (1, 2))
        assert len(first) == 4
        assert np.array_equal(first, pipeline(data, 4, np.random.default_rng(1)), equal_nan=True)
        if name not in ("keyed-noise", "nan-kept"):
            assert not np.array_equal(first, second)


# What they release


def test_sums_and_means_are_those_of_the_clipped_values():
    rng, values = np.random.default_rng(0), np.array([20, 60, 500])
    for clipping in (CollapsingScale(1e9, sound=True), RawSum(1e9, sound=True)):
        assert clipping(values, 1, rng)[0] == 180
    assert RawSum(1e9)(values, 1, rng)[0] == 580
    for sound in (False, True):
        assert MeanOfKnownSize(1e9, sound)(values, 1, rng)[0] == 60
    assert MeanOfKnownSize(1e9, sound=True)(np.zeros(0, np.int64), 1, rng)[0] == 0
    imputed = ImputesOnDemand(1e9)(np.array([1, -1, 3, -1]), 1, rng)[0]
    assert imputed.tolist() == [2, 1, 0, 1, 0]


def test_a_limit_holds_where_there_is_one():
    rng, values = np.random.default_rng(0), np.array([20, 60, 500])
    released = [NoLimitNoNoise(1e9, sound, most)(values, 1, rng)[0].tolist() for sound, most in SETTINGS]
    assert released == [[580, 3], [180, 3], [80, 3], [80, 3]]
    pages = [PageByPage(1e9, sound)(np.arange(9), 1, rng)[0].tolist() for sound in (False, True)]
    assert pages == [[4, 4, 1], [9]]


def test_an_exception_quotes_what_it_may():
    rng, message = np.random.default_rng(0), "at least 10 people are needed for a release, got 9"
    for sound in (False, True):
        refuses(RuntimeError, message, CountInMessage(1e9, sound=sound), np.zeros(9), 3, rng)
    assert CountInMessage(1e9, sound=True)(np.zeros(10), 3, rng).tolist() == [10] * 3
