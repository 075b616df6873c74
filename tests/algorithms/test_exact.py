"""What a release would be without noise, of every system and stage that says it: its shape, the middle of outputs."""

from __future__ import annotations

import numpy as np
import pytest

from algorithms.systems import systems

NAMES = [(system, stage) for system in systems().values() for stage in ("", *system.stages)]
TOLD = [(system, stage) for system, stage in NAMES if hasattr(system.mechanism(stage=stage), "exact")]
SILENT = {"nist", "phsafe-published"}  # rows of people who do not exist, and ends of intervals: no truth to subtract
UNBIASED = [
    *(("gdpc", ""), ("adpc", ""), ("gaussian-counts", ""), ("bottom-up", ""), ("bottom-up-inverse-cdf", "")),
    *(("ons-independent", ""), ("ons", "measurements"), ("nist", "measurements"), ("phsafe", "")),
    *(("topdown", "measurements"), ("gdpc-twice", ""), ("rdpc-square-root-shares", "")),
]
PARTED = [("phsafe", ""), ("ons-independent", "")]
PARTED += [(name, "measurements") for name in ("topdown", "ons", "nist")]


def named(given):
    return getattr(given, "name", str(given))


def test_all_systems_of_the_papers_tell_it_but_of_rows_that_stand_for_nobody():
    folders = ("flaxman", "bottom_up", "ons", "nist", "phsafe", "topdown")
    papers = [one for one in NAMES if type(one[0].mechanism()).__module__.split(".")[1] in folders]
    assert {system.name for system, stage in papers if (system, stage) not in TOLD} == SILENT


@pytest.mark.parametrize(("system", "stage"), TOLD, ids=named)
def test_it_has_the_shape_of_one_output(system, stage):
    mechanism, data = system.mechanism(stage=stage), system.pair().x
    assert np.shape(mechanism.exact(data)) == np.shape(mechanism(data, 1, np.random.default_rng(1)))[1:]


@pytest.mark.parametrize(
    ("system", "stage"),
    [one for one in TOLD if "epsilon" in one[0].settings and one[0].below > 1e6 and one[1] != "counted"],
    ids=named,
)
def test_with_hardly_any_noise_it_is_the_output(system, stage):
    mechanism, data = system.mechanism(stage=stage, epsilon=1e6), system.pair().x
    np.testing.assert_allclose(mechanism(data, 1, np.random.default_rng(1))[0], mechanism.exact(data), atol=0.01)


@pytest.mark.parametrize(("name", "stage"), PARTED, ids=str)
def test_parts_side_by_side_are_the_whole(name, stage):
    system = systems()[name]
    mechanism, data = system.mechanism(stage=stage), system.pair().x
    parts = mechanism.components()
    np.testing.assert_array_equal(np.concatenate([part.exact(data) for part in parts]), mechanism.exact(data))
    assert sum(part.claim.budget for part in parts) == pytest.approx(mechanism.claim.budget)


def deviation(errors):
    """Largest mean error of a cell in standard errors."""
    spread = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
    return float(np.max(np.abs(errors.mean(axis=0)) / spread))


@pytest.mark.parametrize(("name", "stage"), UNBIASED)
def test_outputs_without_bias_have_it_for_their_mean(name, stage):
    """A sound one is beyond 7.5 standard errors in one of 25,000 cells with a probability below 1e-8."""
    system = systems()[name]
    mechanism, data = system.mechanism(stage=stage), system.pair().x
    exact = mechanism.exact(data)
    outputs = np.asarray(mechanism(data, 400, np.random.default_rng(5)), float)
    assert deviation(outputs - exact) < 7.5
    moved = np.roll(exact.reshape(-1), 1).reshape(exact.shape)  # each truth at the next cell
    assert deviation(outputs - moved) > 7.5


def test_rows_are_counted_as_they_are_drawn():
    """The mean error of 9,292 bins in 400 runs, where noise is small: beyond 7.5 standard errors below 1e-8."""
    nist = systems()["nist"]
    mechanism, data = nist.mechanism(stage="counted", epsilon=1e6), nist.pair().x
    outputs = mechanism(data, 400, np.random.default_rng(5))
    groups = np.split(outputs, np.cumsum(mechanism.nist.bins)[:-1], axis=1)
    assert all((group.sum(axis=1) == mechanism.nist.rows).all() for group in groups)
    seen = mechanism.exact(data) > 1  # a mean of rare bins is far from normal
    assert deviation((outputs - mechanism.exact(data))[:, seen]) < 7.5
    assert (outputs[:, mechanism.exact(data) == 0] == 0).all()
