"""``plaudit plan``: what it promises is what the functions say, and what is wrong is one line."""

import json

import pytest
from matplotlib.figure import Figure

from audit.claims import ApproxDP, PureDP
from audit.cli.plan import plan
from audit.planning import plan_early, plan_power, plan_size, plan_violation

VIOLATIONS = [1.05, 1.1, 1.2, 1.5, 2.0]


def planned(capsys, claim, *, code=0, **options):
    assert plan(claim, **options) == code
    return capsys.readouterr().out


def test_runs_for_each_violation(capsys):
    found = json.loads(planned(capsys, "pure:1", violation=1.3, seconds_per_run=0.5, as_json=True))
    assert [row["violation"] for row in found["rows"]] == sorted([*VIOLATIONS, 1.3])
    for row in found["rows"]:
        assert row["runs"] == 2 * row["seconds"] == plan_size(PureDP(1.0), violation=row["violation"])
        assert row["epsilon"] == pytest.approx(row["violation"])
        within = (None, None) if row["violation"] < 1.1 else plan_early(PureDP(1.0), violation=row["violation"])
        assert (row["early_median"], row["early_80"]) == within


def test_options_reach_the_plan(capsys):
    options = {"power": 0.9, "confidence": 0.99, "distance": 3, "selection": 0.0}
    arguments = {"violation": 1.5, "relation": "replace_one", "as_json": True}
    found = json.loads(planned(capsys, "approx:0.3,1e-5", **arguments, **options))
    (row,) = [row for row in found["rows"] if row["violation"] == 1.5]
    assert row["runs"] == plan_size(ApproxDP(0.3, 1e-5, "replace_one"), violation=1.5, **options)


def test_what_so_many_runs_would_have_seen(capsys):
    found = json.loads(planned(capsys, "pure:1", runs=2000, violation=1.3, as_json=True))
    assert found["smallest_violation"] == plan_violation(PureDP(1.0), 2000)
    for row in found["rows"]:
        assert row["power"] == plan_power(PureDP(1.0), 2000, violation=row["violation"])
    assert f"{plan_violation(PureDP(1.0), 2000):.4g} times the promise, eps" in planned(capsys, "pure:1", runs=2000)


def test_what_nobody_sees_is_a_row(capsys):
    """A million canaries cannot tell 0.01 from 0.0105; thirty runs never refute epsilon 6."""
    printed = " ".join(planned(capsys, "pure:0.01", violation=9.0, design="one_run").split())
    assert "epsilon 0.0105 1.05 out of reach" in printed
    early = " ".join(planned(capsys, "pure:1", seconds_per_run=2.0).split())
    assert "epsilon 1.05 1.05 18,574 10 hours out of reach out of reach epsilon 1.1" in early
    assert f"epsilon 0.09 9 {plan_size(PureDP(0.01), violation=9.0, design='one_run'):,}" in printed
    found = json.loads(planned(capsys, "pure:6", runs=30, as_json=True, code=3))
    assert found["smallest_violation"] == "inf"
    assert "Smallest violation detected with power 0.8: none." in planned(capsys, "pure:6", runs=30, code=3)


def test_a_figure_is_drawn_from_the_plan(tmp_path, capsys, monkeypatch):
    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda self, file, **_: (figures.append(self), file.write(b"drawn")))
    planned(capsys, "pure:1", out=tmp_path / "new" / "plan.SVG")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["plan.SVG"]
    ((curve,),) = [ax.get_lines() for ax in figures[0].axes]
    assert curve.get_xdata() == pytest.approx([worse - 1 for worse in VIOLATIONS])
    assert list(curve.get_ydata()) == [plan_size(PureDP(1.0), violation=worse) for worse in VIOLATIONS]
