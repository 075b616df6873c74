"""The sheet `audit`: plans as `plaudit plan` makes them, refused in its words, and silent where they are simulated."""

from __future__ import annotations

import re

import pytest

from audit.claims import ApproxDP, GaussianDP, PureDP
from audit.explorer.audits import sheet
from audit.explorer.sheet import Explored
from audit.planning import OutOfReachError, plan_power, plan_size, plan_violation
from tests.helpers import refuses

KNOWN = "audit/plan/all/known"


def results(**settings):
    keys = {key.rpartition("/")[2]: key for key in sheet().published}
    return Explored(sheet(), {keys[name]: value for name, value in settings.items()}).results


def of_plan(found, *names):
    return tuple(found[f"audit/plan/all/{name}"] for name in names)


@pytest.mark.parametrize(("family", "claim"), [("pure", PureDP(0.5)), ("approx", ApproxDP(0.5, 1e-3))])
def test_numbers_are_those_of_plans(family, claim):
    found = results(family=family, budget=0.5, delta=1e-3, runs=20_000, violation=1.2, power=0.9, distance=2)
    times = plan_violation(claim, 20_000, power=0.9, distance=2)
    assert of_plan(found, "times", "detectable") == (times, times * 0.5)
    assert of_plan(found, "power_found") == (plan_power(claim, 20_000, violation=1.2, distance=2),)
    assert of_plan(found, "runs_needed") == (plan_size(claim, violation=1.2, power=0.9, distance=2),)
    assert found["audit/curve/130%/power"] == plan_power(claim, 20_000, violation=1.3, distance=2)
    assert found[KNOWN] == "audit.known.computed"


def test_a_registered_event_of_a_gaussian_promise_has_a_power_only():
    found = results(family="gaussian", budget=0.5, runs=20_000, violation=1.2, selection=0)
    assert of_plan(found, "power_found") == (plan_power(GaussianDP(0.5), 20_000, violation=1.2, selection=0),)
    assert of_plan(found, "times", "detectable", "runs_needed", "refused") == (None, None, None, None)
    assert found[KNOWN] == "audit.known.registered"


def test_what_is_simulated_is_not_shown():
    found = results(family="zcdp")
    assert of_plan(found, "power_found", "times", "detectable", "runs_needed", "refused") == (None,) * 5
    assert found["audit/curve/130%/power"] is None
    assert found[KNOWN] == "audit.known.simulated"


def test_a_power_that_nobody_plans_with_is_zero():
    assert results(family="zcdp", selection=0, runs=2000)["audit/curve/101%/power"] == 0


def test_refusals_are_those_of_plans():
    few = results(runs=100, selection=0.01)
    assert of_plan(few, "refused", "power_found") == ("size must be at least 750, got 100", None)
    far = results(budget=10.0, distance=5)
    with pytest.raises(OutOfReachError) as refused:
        plan_size(PureDP(10.0), violation=1.1, distance=5)
    assert of_plan(far, "refused", "runs_needed") == (str(refused.value), None)
    assert of_plan(far, "power_found") == (0.0,)


def test_the_command_prints_the_sheet_at_settings(capsys):
    command = sheet().command()
    assert command(["runs=2000", "audit/claim/all/family=approx"]) == 0
    told = capsys.readouterr().out
    assert "130% of the promise" in told
    assert re.search(r"Runs needed +4,\d{3}", told)
    assert "neighbor" in told.lower()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs=few", "audit/plan/all/runs must be a whole number from 100 to 1e+06, got 'few'"),
        ("family=secret", "audit/claim/all/family must be one of pure, approx, gaussian, zcdp, got 'secret'"),
        (
            "budgets=1",
            "--set takes NAME=VALUE with one of the names family, budget, delta, runs, confidence, distance, "
            "selection, violation, power, got 'budgets=1'",
        ),
    ],
)
def test_wrong_settings_are_refused(text, message):
    refuses(ValueError, message, sheet().command(), [text])
