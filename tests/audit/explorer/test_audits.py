"""The sheet `audit`: plans as `plaudit plan` makes and refuses them, interpolated where they are simulated."""

from __future__ import annotations

import re

import pytest

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.claims.families import FAMILIES
from audit.explorer.audits import sheet
from audit.explorer.sheet import Explored
from audit.planning import OutOfReachError, plan_power, plan_size, plan_violation
from tests.helpers import refuses

KNOWN = "audit/plan/all/known"


def results(**settings):
    keys = {key.rpartition("/")[2]: key for key in sheet().published}
    return Explored(sheet(), {keys[name]: value for name, value in settings.items()}).results


def of_plan(numbers, *names):
    return tuple(numbers[f"audit/plan/all/{name}"] for name in names)


@pytest.mark.parametrize(("family", "claim"), [("pure", PureDP(0.5)), ("approx", ApproxDP(0.5, 1e-3))])
def test_numbers_are_those_of_plans(family, claim):
    numbers = results(family=family, budget=0.5, delta=1e-3, runs=20_000, violation=1.2, power=0.9, distance=2)
    times = plan_violation(claim, 20_000, power=0.9, distance=2)
    assert of_plan(numbers, "times", "detectable") == (times, times * 0.5)
    assert of_plan(numbers, "power_found") == (plan_power(claim, 20_000, violation=1.2, distance=2),)
    assert of_plan(numbers, "runs_needed") == (plan_size(claim, violation=1.2, power=0.9, distance=2),)
    assert numbers["audit/curve/130%/power"] == plan_power(claim, 20_000, violation=1.3, distance=2)
    assert numbers[KNOWN] == "audit.known.computed"


@pytest.mark.parametrize(("family", "claim"), [("gaussian", GaussianDP(0.5)), ("zcdp", ZCDP(0.5))])
def test_simulated_plans_are_interpolated_in_their_table(family, claim):
    numbers = results(family=family, budget=0.5, runs=20_000, violation=1.6, selection=0)
    loss, power, runs = of_plan(numbers, "times", "power_found", "runs_needed")
    assert loss == pytest.approx(plan_violation(claim, 20_000, selection=0), rel=0.03)
    assert power == pytest.approx(plan_power(claim, 20_000, violation=1.6, selection=0), abs=0.1)
    assert runs == pytest.approx(plan_size(claim, violation=1.6, selection=0), rel=0.15)
    assert numbers["audit/curve/101%/power"] is None  # less than any in the table
    assert numbers["audit/curve/200%/power"] == pytest.approx(0.99)  # where it ends
    assert numbers["audit/plan/all/refused"] is None
    assert numbers[KNOWN] == "audit.known.interpolated"


@pytest.mark.parametrize("beyond", [{"selection": 0.2}, {"confidence": 0.9}, {"budget": 5.0}, {"distance": 3}])
def test_what_is_not_in_the_table_is_not_shown(beyond):
    numbers = results(**{"family": "zcdp", "budget": 1.0} | beyond)
    assert of_plan(numbers, "power_found", "times", "detectable", "runs_needed", "refused") == (None,) * 5
    assert numbers["audit/curve/130%/power"] is None
    assert numbers[KNOWN] == "audit.known.simulated"


def test_groups_have_the_budget_that_claims_give_them():
    alone, group = results(family="zcdp", budget=0.9), results(family="zcdp", budget=0.1, distance=3)
    assert group["audit/plan/all/times"] == pytest.approx(alone["audit/plan/all/times"], rel=1e-12)


def test_a_power_that_nobody_plans_with_is_zero():
    assert results(budget=10.0, distance=5)["audit/curve/101%/power"] == 0


def test_what_plans_refuse_is_refused():
    few = results(runs=100, selection=0.01)
    with pytest.raises(ValueError, match="size must be at least 750, got 100"):
        plan_power(PureDP(1.0), 100, selection=0.01)
    assert of_plan(few, "refused", "power_found") == ("audit.refused.few", None)
    tiny = results(selection=1e-7)
    with pytest.raises(ValueError, match="selection must be 0, or 1e-06"):
        plan_power(PureDP(1.0), 5000, selection=1e-7)
    assert of_plan(tiny, "refused", "power_found") == ("audit.refused.selection", None)
    far = results(budget=10.0, distance=5)
    with pytest.raises(OutOfReachError):
        plan_size(PureDP(10.0), violation=1.1, distance=5)
    assert of_plan(far, "refused", "runs_needed") == ("audit.refused.far", None)
    assert of_plan(far, "power_found") == (0.0,)


def test_the_command_prints_the_sheet_at_settings(capsys):
    command = sheet().command()
    assert command(["runs=2000", "audit/claim/all/family=approx"]) == 0
    output = capsys.readouterr().out
    assert "130% of the promise" in output
    assert re.search(r"Runs needed +4,\d{3}", output)
    assert "neighbor" in output.lower()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs=few", "audit/plan/all/runs must be a whole number from 100 to 1e+06, got 'few'"),
        ("family=secret", f"audit/claim/all/family must be one of {', '.join(FAMILIES)}, got 'secret'"),
        (
            "budgets=1",
            "--set takes NAME=VALUE with one of the names family, budget, delta, runs, confidence, distance, "
            "selection, violation, power, got 'budgets=1'",
        ),
    ],
)
def test_wrong_settings_are_refused(text, message):
    refuses(ValueError, message, sheet().command(), [text])
