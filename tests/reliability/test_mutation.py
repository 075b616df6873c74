"""Mutants of small programs, of which all are known: which die, which live, and what is no mutant."""

from __future__ import annotations

import pytest

pytest.importorskip("cosmic_ray", reason="it is in the extra mutation")
from tests.reliability import mutants, mutation

HEAD = "from __future__ import annotations\n\n\n"
CHOICE = f"""{HEAD}def larger(a: int | None, *, b: int) -> int:
    return a if a > b else b


SOME = {{'a': 'b', **{{}}}}
"""
LOOP = f"""{HEAD}def first(words, loud=False):
    for word in words:
        return word
"""
TEST = "from toy.words import first\n\n\ndef test_first():\n    assert first('ab') == 'a'\n"
KILLED, LEFT = "for word in words: -> for word in []:", "def first(words, loud=False): -> def first(words, loud=True):"


@pytest.fixture(autouse=True)
def few_libraries(request, monkeypatch):
    """Small programs need none."""
    if "tmp_path" in request.fixturenames:
        monkeypatch.setattr(mutation, "LIBRARIES", [])


def toy(root, source=LOOP, test=TEST):
    (root / "toy").mkdir()
    (root / "toy" / "__init__.py").touch()
    (root / "toy" / "words.py").write_text(source)
    (root / "test_words.py").write_text(test)
    return mutants.Room("toy", ("test_words.py",), root)


def test_every_change_of_what_runs_is_a_mutant(tmp_path):
    """Not what does not run, nor what is no program: that leaves five comparisons and a negation."""
    drawn = list(mutants.sample([toy(tmp_path, CHOICE)], None, seed=1))
    was = "return a if a > b else b"
    become = {f"return a if a {operator} b else b" for operator in ("==", "!=", "<", "<=", ">=")}
    assert [mutant.place for mutant in drawn] == ["toy/words.py:5"] * 6
    assert {mutant.change for mutant in drawn} == {
        f"{was} -> {now}" for now in become | {"return a if not a > b else b"}
    }


def test_tests_kill_what_they_can_tell_apart(tmp_path, monkeypatch):
    room, folder = toy(tmp_path), tmp_path / "found"
    found = mutation.score([room], size=None, folder=folder, jobs=1)
    assert [survivor["change"] for survivor in found.pop("survivors")] == [LEFT]
    assert found.pop("interval") == pytest.approx([0.0126, 0.9874], abs=1e-4)  # of 1 in 2, by Clopper and Pearson
    assert found == {"tried": 2, "killed": 1, "timed out": 0}

    monkeypatch.setattr(mutation, "forked", None)  # what was found is not run again
    assert mutation.score([room], size=None, folder=folder)["killed"] == 1


def test_tests_that_enter_the_function_run_and_no_others(tmp_path):
    """A change of what runs on import concerns all tests; a function that none enters has none."""
    kept, room = mutation.Trials(tmp_path / "found"), toy(tmp_path, f"{LOOP}\n\ndef unused():\n    return -1\n")
    _, reached = kept.unchanged(room)
    tests = {mutant.change: mutation.collected(mutant, reached) for mutant in mutants.sample([room], None, seed=1)}
    assert tests[KILLED] == ["test_words.py::test_first"]
    assert tests[LEFT] == ["test_words.py"]
    (unused, *_) = (mutant for mutant in mutants.sample([room], None, seed=1) if "-1" in mutant.change)
    assert mutation.collected(unused, reached) == []
    assert kept.outcome(unused, 0.0, reached) == "survived"


def test_a_mutant_has_its_time(tmp_path):
    room = toy(tmp_path)
    assert mutation.forked(tmp_path, list(room.tests), next(mutants.sample([room], 1, seed=1)), 0.0) is None


def test_tests_of_another_source_prove_nothing(tmp_path, monkeypatch):
    """Were the mutant not what the tests import, every mutant would survive, or die of something else."""
    room, kept = toy(tmp_path, test="def test_nothing():\n    pass\n"), mutation.Trials(tmp_path / "found")
    monkeypatch.setattr(mutation, "collected", lambda mutant, reached: list(mutant.room.tests))
    with pytest.raises(RuntimeError, match="tests must import what is changed, got exit code 99 of"):
        kept.outcome(next(mutants.sample([room], 1, seed=1)), 60.0, None)


def test_tests_that_fail_anyway_prove_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="tests must pass on the source as it is, got exit code 1 of"):
        mutation.score([toy(tmp_path, test="def test_nothing():\n    assert False\n")], folder=tmp_path / "found")


def test_every_explanation_is_of_a_mutant_that_there_is():
    """A source that changes takes its explanations along, or loses them."""
    for one in mutation.explained():
        path = mutation.ROOT / one["file"]
        room = mutants.Room(one["file"], (), mutation.ROOT)
        assert mutants.Mutant(room, path, one["operator"], one["occurrence"]).change == one["change"]


@pytest.mark.slow
@pytest.mark.reliability(14)
@pytest.mark.parametrize("room", mutation.ROOMS, ids=lambda room: room.sources)
def test_the_tests_of_what_proves_a_bound_notice_its_changes(room, record_property):
    """At least nine in ten of a sample, but for those that no test can notice."""
    found = mutation.score([room], size=80, jobs=1)
    low, high = found["interval"]
    left = [f"{one['place']} `{one['change']}` ({one['why'] or 'not explained'})" for one in found["survivors"]]
    told = f"{room.sources}: {found['killed']} of {found['tried']} noticed ({low:.0%} to {high:.0%})"
    record_property("tried", found["tried"])
    record_property("reached", found["killed"])
    record_property("words", f"{told}; not noticed: {'; '.join(left)}" if left else told)
    possible = found["tried"] - sum(bool(one["why"]) for one in found["survivors"])
    assert found["killed"] >= 0.9 * possible
