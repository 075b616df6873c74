"""Settings of a file: the same form as the published ones, and all that breaks it is refused in one line."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from algorithms.hierarchy import Hierarchy
from algorithms.release.frames import Frame
from algorithms.systems import systems
from algorithms.topdown import preset
from algorithms.topdown.estimation.constraints import Invariant
from algorithms.topdown.presets import PRESETS, SETTINGS, settings_of
from audit.claims import ZCDP, PureDP
from tests.helpers import beside_reading, plaudit, refused_by

AGES = ["0-17", "18-64", "65+"]
ATTRIBUTES = {"sex": ["female", "male"], "age": AGES}
WHOLE = {
    "about": "a survey",
    "attributes": ATTRIBUTES,
    "groupings": {"adult": ["age", {"minor": ["0-17"], "major": ["18-64", "65+"]}]},
    "promise": {"rho": "1/2"},
    "levels": {"nation": "1/2", "state": "1/4", "county": "1/4"},
    "queries": {"nation": {"total": "1/3", "sex*adult": "2/3"}, "county": {"total": "1/10", "detailed": "9/10"}},
    "invariants": {"state": "adult"},
    "total_first": ["county"],
    "rounding": {"state": [["total"], ["sex", "detailed"]]},
    "minimal": "adult",
    "persons_a_unit": [0, 7],
    "solver": "piqp",
}


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with 60 persons in five counties of two states, and their specification."""
    monkeypatch.chdir(tmp_path)
    people = [*product(["A", "B"], ["1", "2"], ATTRIBUTES["sex"], AGES), ("B", "3", "male", "65+")] * 3
    Frame.from_rows(("state", "county", "sex", "age"), people[:60]).to_csv("persons.csv")
    Path("spec.json").write_text(json.dumps({"attributes": ATTRIBUTES}))
    return tmp_path


@pytest.fixture
def release(desk, capsys):
    def run(*words, areas="state,county", spec="spec.json"):
        given = ("--data", "persons.csv", "--areas", areas, "--spec", spec, "--out", "out", *words)
        return (plaudit("release", "topdown", *given), *capsys.readouterr())

    return run


def written(content, name="spec.json"):
    Path(name).write_text(content if isinstance(content, str) else json.dumps(content))
    return name


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_that_is_printed_is_a_file_of_the_same_settings(desk, capsys, name):
    assert plaudit("release", "topdown", "--preset", name, "--print-spec") == 0
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == (SETTINGS[name], "")
    assert replace(settings_of(spec=written(out)), name=name) == PRESETS[name]


def test_attributes_alone_are_measured_in_full_at_levels_with_equal_shares(release):
    code, _, err = release("--epsilon", "3", "--seed", "1")
    assert (code, beside_reading(err)) == (0, [])
    settings = settings_of(spec="spec.json")
    topdown = preset(settings, Hierarchy.regular(1, 2), epsilon=3.0, levels=settings.levels_of(["state", "county"]))
    assert topdown.budget.levels == (Fraction(1, 3),) * 3
    assert topdown.budget.queries == ({"detailed": 1},) * 3
    assert topdown.claim == PureDP(3.0, "replace_one")
    assert (topdown.invariants, topdown.rounding, topdown.minimal) == ((), (), None)
    record = json.loads(Path("out/release.json").read_text())
    assert (record["preset"], record["attributes"]) == ("spec.json", ATTRIBUTES)
    assert "\nSettings " not in Path("out/ledger.txt").read_text()  # only published ones are described


def test_a_file_says_all_that_a_preset_says(desk):
    settings = settings_of(spec=written({**WHOLE, "facility_zeros": [], "drop": []}))
    topdown = preset(settings, Hierarchy.regular(1, 2), levels=settings.levels_of(["STATE", "County"]))
    assert topdown.claim == ZCDP(0.5, "replace_one")
    assert topdown.budget.levels == (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    assert topdown.budget.queries[1:] == ({"detailed": 1}, {"total": Fraction(1, 10), "detailed": Fraction(9, 10)})
    assert topdown.invariants == (Invariant("adult", 1),)
    assert topdown.passes == {2: (("total",), ("detailed",))}
    assert (topdown.rounding, topdown.minimal, topdown.solver) == ({1: WHOLE["rounding"]["state"]}, "adult", "piqp")
    assert [list(topdown.rounded(level)) for level in (1, 2)] == [WHOLE["rounding"]["state"], []]
    assert settings.persons_a_unit == (0, 7)
    assert preset(settings, Hierarchy.regular(1, 2), rho=2.0, relation="add_remove").claim == ZCDP(2.0, "add_remove")


KEYS = (
    "about, promise, attributes, groupings, levels, queries, drop, invariants, total_first, rounding, minimal, "
    "persons_a_unit, facility_zeros, solver"
)
TOWN = "levels must be of nation, state, county, got 'town'"
REFUSED = [
    ([1], 'spec.json must hold an object, {"attributes": ...}, got [1]'),
    ({"epsilon": 1}, f"keys of spec.json must be of {KEYS}, got 'epsilon'"),
    ({"groupings": {"old": ["age"]}}, "groupings in spec.json must have the form {"),
    ({"promise": {"epsilon": 1, "rho": 1}}, 'promise in spec.json must be {"epsilon": number} or {"rho": number}'),
    ({"promise": {"delta": 1}}, "0 or more, got {'delta': 1}"),
    ({"promise": {"epsilon": -1}}, "0 or more, got {'epsilon': -1}"),
    ({"promise": 1}, 'promise in spec.json must have the form {"epsilon": 1}, got 1'),
    ({}, "a budget is needed, --epsilon or --rho: spec.json has no promise"),
    ({"levels": {"nation": True}}, "levels in spec.json must have the form {\"nation\": 1}, got {'nation': True}"),
    (
        {"levels": {"nation": "1/2", "state": "1/2"}},
        "columns of areas must be named after the levels of spec.json below nation, which is all areas together: "
        "state; got state, county",
    ),
    *(
        ({key: value, "promise": {"rho": 1}}, TOWN)
        for key, value in {
            "queries": {"town": {"sex": 1}},
            "invariants": {"town": "total"},
            "total_first": ["town"],
            "drop": ["town"],
            "rounding": {"town": []},
        }.items()
    ),
    ({"minimal": 3}, 'minimal in spec.json must have the form "total", got 3'),
    ({"rounding": ["total"]}, 'rounding in spec.json must have the form [["total"], ["detailed"]], got '),
    ({"rounding": {"state": ["total"]}}, 'must have the form {"state": [["total"], ["detailed"]]}, got '),
    ({"persons_a_unit": [1]}, "persons_a_unit in spec.json must have the form [0, 99], got [1]"),
    ({"persons_a_unit": [-1, 9]}, "persons_a_unit in spec.json must be at least 0, got -1"),
    ({"persons_a_unit": [2, 1]}, "persons_a_unit in spec.json must be at least 2, got 1"),
    ({"persons_a_unit": [0, "9"]}, "persons_a_unit in spec.json must be an integer, got '9'"),
]


@pytest.mark.parametrize(("content", "rule"), REFUSED)
def test_files_that_break_a_rule(release, content, rule):
    written({"attributes": ATTRIBUTES, **content} if isinstance(content, dict) else content)
    assert rule in refused_by(release)[-1]


def test_a_file_goes_without_a_preset_and_is_not_printed(release):
    assert refused_by(release, "--preset", "micro")[-1] == "preset and spec exclude each other, got micro and spec.json"
    assert refused_by(release, "--print-spec")[-1] == "--print-spec goes with --preset, got --spec spec.json"


def test_levels_that_are_left_without_a_share_are_refused(desk):
    shares = {"nation": 1, "state": 0, "county": 0}
    settings = settings_of(spec=written({"attributes": ATTRIBUTES, "levels": shares, "drop": ["nation"]}))
    with pytest.raises(ValueError, match="shares of the levels must add up to 1, got 0: 1 too little"):
        preset(settings, Hierarchy.regular(1, 1), rho=1.0)


def test_a_pair_keeps_what_is_published_exactly(desk):
    """A person of another sex, of the same age group; and none where every cell is exact."""
    options = {"areas": "state,county", "spec": written(WHOLE)}
    system = systems()["topdown"].on("persons.csv", **options)
    assert list(system.pairs) == ["replaced"]
    assert system.runs == 10_000  # area by area
    pair, topdown = system.pair(), system.mechanism()
    assert topdown.claim == ZCDP(0.5, "replace_one")
    assert topdown.exact_loss(pair) is None  # else it would be refused
    assert np.abs(pair.x - pair.y).sum() == 2
    bare = options | {"spec": written({"attributes": ATTRIBUTES}, "plain.json")}
    plain = systems()["topdown"].on("persons.csv", **bare)
    assert (list(plain.pairs), plain.runs) == (["replaced", "added"], 200_000)
    written({**WHOLE, "invariants": {"county": "detailed"}})
    with pytest.raises(ValueError, match=r"^a person must be able to have another cell within the invariants of spec"):
        systems()["topdown"].on("persons.csv", **options)
