"""Mutants of a small program, of which all are known: which die, which live, and what is no mutant."""

import pytest

pytest.importorskip("cosmic_ray", reason="it is in the extra mutation")
from tests.reliability import mutation

HEAD = "from __future__ import annotations\n\n\n"
CHOICE = f"""{HEAD}def larger(a: int | None, *, b: int) -> int:
    return a if a > b else b


SOME = {{'a': 'b', **{{}}}}
"""
LOOP = f"""{HEAD}def first(words, loud=False):
    for word in words:
        return word


def unused():
    return -1
"""
TEST = "from toy.words import first\n\n\ndef test_first():\n    assert first('ab') == 'a'\n"


def toy(root, source=LOOP, test=TEST):
    (root / "toy").mkdir()
    (root / "toy" / "__init__.py").touch()
    (root / "toy" / "words.py").write_text(source)
    (root / "test_words.py").write_text(test)
    return mutation.Room("toy", ("test_words.py",), root)


def test_every_change_of_what_runs_is_a_mutant(tmp_path):
    """Not what does not run, nor what is no program: that leaves five comparisons and a negation."""
    drawn = list(mutation.sample([toy(tmp_path, CHOICE)], None, seed=1))
    was = "return a if a > b else b"
    become = {f"return a if a {operator} b else b" for operator in ("==", "!=", "<", "<=", ">=")}
    assert {mutant.change for mutant in drawn} == {
        (5, f"{was} -> {now}") for now in become | {"return a if not a > b else b"}
    }


def test_tests_that_enter_the_function_kill_what_they_can_tell_apart(tmp_path):
    """A default that no test uses survives, and whatever is in a function that none enters."""
    found = mutation.score([toy(tmp_path)], size=None, jobs=1)
    left = [one["change"] for one in found["survivors"]]
    assert left[0] == "def first(words, loud=False): -> def first(words, loud=True):"
    assert all("return -1" in change for change in left[1:])
    assert (found["killed"], found["tried"]) == (1, 1 + len(left))


def test_tests_that_fail_anyway_prove_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="tests must pass on the source as it is, got exit code 1 of"):
        mutation.score([toy(tmp_path, test="def test_nothing():\n    assert False\n")], jobs=1)


@pytest.mark.slow
@pytest.mark.reliability(row=10)
@pytest.mark.parametrize("room", mutation.ROOMS, ids=lambda room: room.sources)
def test_the_tests_of_what_proves_a_bound_notice_its_changes(room, record_property):
    """At least nine in ten of a sample, but for those that no test can notice."""
    found = mutation.score([room], size=80, jobs=1)
    low, high = found["interval"]
    left = [f"{one['place']} `{one['change']}` ({one['why'] or 'not explained'})" for one in found["survivors"]]
    summary = f"{room.sources}: {found['killed']} of {found['tried']} noticed ({low:.0%} to {high:.0%})"
    record_property("tried", found["tried"])
    record_property("reached", found["killed"])
    record_property("words", f"{summary}; not noticed: {'; '.join(left)}" if left else summary)
    possible = found["tried"] - sum(bool(one["why"]) for one in found["survivors"])
    assert found["killed"] >= 0.9 * possible
