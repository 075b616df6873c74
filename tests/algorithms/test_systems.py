"""One check of every registered system: its own pair is audited, seeds decide its outputs, help is printed."""

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from algorithms import registry
from algorithms.population import EXTRACTS, load
from algorithms.systems import System, register, run, systems
from audit.claims import PureDP
from audit.events import Event, Statistic, ThresholdRule
from audit.measure.loss import measure_loss
from tests.helpers import refuses

EVERY = list(systems().values())
FEWEST = 1_000  # runs of an audit by default: a system with fewer is too slow for the usual tests
# Bugs and benchmarks are looked at by one event: their experiments, known_bugs and other_auditors, choose events.
EVENT = Event(Statistic("nothing", lambda outputs: np.zeros(len(outputs))), ThresholdRule(-math.inf, 1))
REFUSED = {"bug-seeded-by-time", "bug-one-stream"}  # no seed decides them, which is why an audit refuses them


@pytest.mark.parametrize(
    "system", [pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.runs < FEWEST else []) for one in EVERY]
)
def test_every_system(system):
    mechanism, pair = system.mechanism(), system.pair()
    assert system.about.endswith(".")
    assert mechanism.claim == system.claim
    data = pair.y if system.name == "bug-raises-on-empty" else pair.x
    once, again = (mechanism(data, 3, np.random.default_rng(5)) for _ in range(2))
    assert len(once) == 3
    claim = system.claim.under(pair.relation)
    if system.name in REFUSED:
        if hasattr(mechanism, "clock"):  # a second may end between two of its runs
            mechanism = replace(mechanism, clock=lambda: 1e9)
        with pytest.raises(ValueError, match="ignores its rng"):
            measure_loss(mechanism, pair, claim, size=30, rng=1)
        return
    np.testing.assert_array_equal(once, again)
    event = None if system.group == "reference implementations" else EVENT
    result = measure_loss(mechanism, pair, claim, size=30, rng=1, event=event)
    assert result.claim == claim
    assert result.pair == pair.label


@pytest.mark.parametrize("system", [system for system in EVERY if system.stages], ids=lambda system: system.name)
def test_every_stage_and_pair(system):
    for name in system.stages:
        stage = system.mechanism(stage=name)
        assert len(stage(system.pair().x, 2, np.random.default_rng(1))) == 2
        assert stage.claim.relation == system.claim.relation
    for name in system.pairs:
        assert system.pair(name).distance == 1
    with pytest.raises(ValueError, match=f"stage of {system.name} must be one of {system.stages[0]}, "):
        system.mechanism(stage="none")
    with pytest.raises(ValueError, match=f"pair of {system.name} must be one of {next(iter(system.pairs))}"):
        system.pair("none")


PRESETS = [  # PHSafe tabulates each pair, a second for us and for pr
    pytest.param(one, preset, marks=[pytest.mark.slow] * (one.name == "phsafe"), id=f"{one.name}-{preset}")
    for one in EVERY
    for preset in one.presets
]


@pytest.mark.parametrize(("system", "preset"), PRESETS)
def test_every_preset_has_pairs_that_its_promise_covers(system, preset):
    found = system.preset(preset)
    assert (found.name, found.stages, found.presets) == (system.name, system.stages, {})
    assert 0 < found.runs <= system.runs
    for name in found.pairs:
        pair = found.pair(name)
        options = {"relation": pair.relation} if "relation" in found.settings else {}
        mechanism = found.mechanism(**options)
        assert mechanism.claim.relation == pair.relation
        mechanism.exact_loss(pair)  # refuses a pair that the promise does not cover
        assert np.any(mechanism.exact(pair.x) != mechanism.exact(pair.y))


LATER = {"topdown": {"phsafe", "ons", "bugs", "flaxman"}, "gdpc": {"phsafe", "ons", "bugs"}, "": set()}


@pytest.fixture(scope="module")
def loaded():
    """All modules of a new process that asks for a system of a late folder, for one of the first, and for all, 1 s."""
    code = f"import sys\nfrom algorithms.systems import *\nfor name in {[*LATER]}: systems(name); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return dict(zip(LATER, map(set, map(str.split, found.stdout.splitlines())), strict=True))


def test_a_system_is_imported_without_later_ones(loaded):
    for name, others in LATER.items():
        assert "algorithms.systems" in loaded[name]
        assert {f"algorithms.{folder}.system" for folder in others} & loaded[name] == set()
        assert {f"algorithms.{folder}.system" for folder in others} <= loaded[""]


def test_only_some_systems_read_persons_and_say_what_they_need():
    offered = systems()
    for name, options, words in (
        ("gdpc", {}, "gdpc reads no file of persons, got persons.csv"),
        ("topdown", {"areas": "state", "public": "p.csv"}, "topdown takes no public"),
        ("nist", {"public": "p.csv"}, "nist needs spec with data of your own, as `plaudit release` does"),
    ):
        refuses(ValueError, words, offered[name].on, "persons.csv", **options)


def test_more_persons_have_fewer_runs(tmp_path):
    lines = [f"{area},{kind}" for area in range(500) for kind in ("female,17 and under", "male,18 and over")]
    (tmp_path / "persons.csv").write_text("\n".join(["county,sex,age", *lines]) + "\n")
    usual = systems()["topdown"]
    own = usual.on(str(tmp_path / "persons.csv"), areas="county")
    assert own.pair().x.shape == (500, 4)
    assert own.runs == usual.runs * 36 // 2_000
    assert own.mechanism().tree.n_leaves == 500


@pytest.mark.parametrize("budget", [0, math.inf])
def test_every_budget_is_checked(budget):
    for system in EVERY:
        for name in {"epsilon", "rho"} & set(system.settings):
            with pytest.raises(ValueError, match=rf"{name}\b.* must be (positive and finite|0 or more|from )"):
                system.mechanism(**{name: budget})


@pytest.mark.parametrize("command", ["release", "explore"])
def test_every_command_has_help(command, capsys):
    for system in EVERY:
        if command in system.commands:
            assert run(command, [system.name, "--help"]) == 0
            assert f"Usage: plaudit {command} {system.name}" in capsys.readouterr().out


def test_a_mechanism_has_the_budget_and_the_tree_asked_for():
    offered = systems()
    assert offered["gdpc"].mechanism(epsilon=0.25).claim == PureDP(0.25)
    assert offered["rdpc"].mechanism(tree=load("midwest")[0]).tree.n_leaves == offered["rdpc"].pair("midwest").x.size
    assert offered["gdpc-notebook"].below == 1


def test_systems_of_counts_are_those_whose_pairs_are_bundled_populations():
    assert [system.name for system in EVERY if system.of_counts != (system.pairs.keys() == EXTRACTS.keys())] == []


def test_to_list_systems_loads_nothing_that_an_extra_brings(loaded):
    assert {"numba", "duckdb", "piqp", "opendp", "pyspark", "pandas", "polars", "pyarrow"} & loaded[""] == set()


def test_what_needs_an_extra_says_which(monkeypatch):
    monkeypatch.setattr("algorithms.extras.find_spec", lambda _: None)
    words = "topdown needs the extra census: pip install 'plaudit[census]'"
    refuses(ImportError, words, systems()["topdown"].mechanism)
    refuses(ImportError, words, systems()["topdown"].pair)
    refuses(ValueError, words, run, "release", ["topdown"])
    assert run("release", ["topdown", "--help"]) == 0


def test_a_name_is_taken_once(monkeypatch):
    monkeypatch.setattr(registry, "REGISTERED", {})
    for about in ("One.", "One."):
        system = System(name="one", about=about, build=dict, pairs={})
    register(system)
    register(system)  # the same again: its module was loaded twice
    another = System(name="one", about="Another.", build=dict, pairs={})
    rule = "every system must have a name of its own, and 'one' is registered already"
    refuses(ValueError, rule, register, another)
