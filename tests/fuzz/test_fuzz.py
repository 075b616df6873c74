"""The fuzzer finds what is wrong, makes the same case again, and finds nothing in the command as it is."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.fuzz import running
from tests.fuzz.cases import Case, case_of
from tests.fuzz.desk import make_desk
from tests.fuzz.holding import faults, tree
from tests.fuzz.past import PAST


def wrong_with(case, desk, **options):
    """The kinds of faults of a case."""
    return [fault.partition(":")[0] for fault in faults(case, running.run(case, desk, **options))]


@pytest.mark.reliability(10)
@pytest.mark.parametrize("case", PAST, ids=[case.name for case in PAST])
def test_what_went_wrong_once_holds(case, desk):
    assert faults(case, running.run(case, desk)) == []


@pytest.mark.reliability(10)
@pytest.mark.parametrize(
    ("first", "cases"), [(0, 12), *(pytest.param(at, 250, marks=pytest.mark.slow) for at in range(0, 10_000, 250))]
)
def test_nothing_goes_wrong_with_hostile_words_and_files(first, cases, desk, record_property):
    record_property("tried", cases)
    made = (case_of(1, number, desk) for number in range(first, first + cases))
    found = {case.name: faults(case, running.run(case, desk)) for case in made}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.slow
def test_a_case_is_made_again_from_seed_and_number_alone(desk, tmp_path):
    make_desk(tmp_path)
    assert tree(tmp_path) == tree(desk)
    first, second = ([case_of(3, number, folder) for number in range(300)] for folder in (desk, tmp_path))
    assert first == second
    assert len({(case.arguments, *case.files.items()) for case in first}) > 295
    assert {case.kind for case in first} == {"arguments", "files", "both"}


# The checks can fail: commands that are wrong in one way each


def refuse(words="out must be a new folder, got 'old'"):
    print(f"plaudit: error: {words}", file=sys.stderr)
    sys.exit(2)


def raises(arguments):
    raise KeyError("x")


def leaves_half_a_file(arguments):
    Path("out").mkdir()
    Path("out", "audit.json").write_text('{"schema": 2,')
    refuse()


def leaves_its_staged_folder(arguments):
    Path(".release-x").mkdir()


def leaves_temporary_files(arguments):
    tempfile.mkstemp()
    refuse()


def changes_its_input(arguments):
    Path("counts.csv").write_text("1\n")


def removes_its_input(arguments):
    Path("counts.csv").unlink()
    refuse()


def accuses_without_a_reason(arguments):
    print("1 audits, 0 violated")
    sys.exit(1)


def accuses_where_nothing_is_audited(arguments):
    print("violated")
    sys.exit(1)


def is_killed(arguments):
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(arguments):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(600)


def colors(arguments):
    print("\x1b[31mred")


def says_nothing(arguments):
    sys.exit(2)


def says_what_python_says(arguments):
    refuse("'NoneType' object is not iterable")


def says_too_much(arguments):
    refuse("x" * 3000)


def warns(arguments):
    print("RuntimeWarning: overflow encountered in exp", file=sys.stderr)


@pytest.mark.parametrize(
    ("command", "words", "wrong"),
    [
        (raises, "check old", ["traceback", "stray line", "wrong code"]),
        (leaves_half_a_file, "audit gdpc --out out", ["partial output", "partial output"]),
        (leaves_half_a_file, "audit gdpc", ["partial output", "partial output"]),
        (leaves_its_staged_folder, "release ons --out out", ["partial output"]),
        (leaves_temporary_files, "release ons --out out", ["partial output"]),
        (changes_its_input, "audit gdpc --data counts.csv", ["changed input"]),
        (removes_its_input, "audit gdpc --data counts.csv", ["changed input"]),
        (accuses_without_a_reason, "check old", ["wrong code"]),
        (accuses_where_nothing_is_audited, "list", ["wrong code"]),
        (is_killed, "check old", ["wrong code"]),
        (hangs, "check old", ["wrong code"]),
        (colors, "check old", ["control characters"]),
        (says_nothing, "check old", ["no refusal"]),
        (says_what_python_says, "check old", ["no rule named"]),
        (says_too_much, "check old", ["no rule named"]),
        (warns, "check old", ["stray line"]),
        (lambda arguments: refuse(), "check old", []),
        (lambda arguments: print("mine: violated") or sys.exit(1), "check old", []),
        (lambda arguments: Path("counts.csv").write_text("<html>"), "report old --out=counts.csv", []),
    ],
)
def test_a_broken_command_is_found_out(command, words, wrong, desk, monkeypatch):
    monkeypatch.setattr(running, "PATIENCE", 0.2 if command is hangs else 20.0)
    monkeypatch.setattr(running, "GRACE", 0.2 if command is hangs else 20.0)
    assert wrong_with(Case("broken", tuple(words.split())), desk, command=command) == wrong
