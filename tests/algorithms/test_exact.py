"""What a release would be without noise, of every system and stage that says it: its shape, the middle of outputs."""

import numpy as np
import pytest

from algorithms.systems import systems

NAMES = [(system, stage) for system in systems().values() for stage in ("", *system.stages)]
EXACT = [(system, stage) for system, stage in NAMES if hasattr(system.mechanism(stage=stage), "exact")]
SILENT = {"nist", "phsafe-published"}  # rows of people who do not exist, and ends of intervals: no truth to subtract
PARTED = [("phsafe", ""), ("ons-independent", "")]
PARTED += [(name, "measurements") for name in ("topdown", "ons", "nist")]


def named(given):
    return getattr(given, "name", str(given))


def test_all_systems_of_the_papers_tell_it_but_of_rows_that_stand_for_nobody():
    folders = ("flaxman", "bottom_up", "ons", "nist", "phsafe", "topdown")
    papers = [one for one in NAMES if type(one[0].mechanism()).__module__.split(".")[1] in folders]
    assert {system.name for system, stage in papers if (system, stage) not in EXACT} == SILENT


@pytest.mark.parametrize(("system", "stage"), EXACT, ids=named)
def test_it_has_the_shape_of_one_output(system, stage):
    mechanism, data = system.mechanism(stage=stage), system.pair().x
    assert np.shape(mechanism.exact(data)) == np.shape(mechanism(data, 1, np.random.default_rng(1)))[1:]


BUDGETS = {"epsilon": 1e6, "rho": 1e12, "times": 1e12}  # hardly any noise


@pytest.mark.parametrize(
    ("system", "stage"),
    [one for one in EXACT if BUDGETS.keys() & one[0].settings and one[0].below > 1e6 and one[1] != "counted"],
    ids=named,
)
def test_with_hardly_any_noise_it_is_the_output(system, stage):
    budget = next(name for name in BUDGETS if name in system.settings)
    mechanism, data = system.mechanism(stage=stage, **{budget: BUDGETS[budget]}), system.pair().x
    np.testing.assert_allclose(mechanism(data, 1, np.random.default_rng(1))[0], mechanism.exact(data), atol=0.01)


@pytest.mark.parametrize(("name", "stage"), PARTED, ids=str)
def test_parts_side_by_side_are_the_whole(name, stage):
    system = systems()[name]
    mechanism, data = system.mechanism(stage=stage), system.pair().x
    parts = mechanism.components()
    np.testing.assert_array_equal(np.concatenate([part.exact(data) for part in parts]), mechanism.exact(data))
    assert sum(part.claim.budget for part in parts) == pytest.approx(mechanism.claim.budget)


def test_rows_are_counted_as_they_are_drawn():
    """The mean error of 9,292 bins in 400 runs, where noise is small: beyond 7.5 standard errors below 1e-8."""
    nist = systems()["nist"]
    mechanism, data = nist.mechanism(stage="counted", epsilon=1e6), nist.pair().x
    outputs = mechanism(data, 400, np.random.default_rng(5))
    groups = np.split(outputs, np.cumsum(mechanism.nist.bins)[:-1], axis=1)
    assert all((group.sum(axis=1) == mechanism.nist.rows).all() for group in groups)
    common = mechanism.exact(data) > 1  # a mean of rare bins is far from normal
    errors = (outputs - mechanism.exact(data))[:, common]
    assert (np.abs(errors.mean(axis=0)) < 7.5 * errors.std(axis=0, ddof=1) / np.sqrt(400)).all()
    assert (outputs[:, mechanism.exact(data) == 0] == 0).all()
