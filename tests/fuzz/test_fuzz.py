"""The fuzzer finds what is wrong, makes the same case again, and finds nothing in the command as it is."""

from __future__ import annotations

import sys

import pytest

from tests.fuzz import running
from tests.fuzz.cases import Case, case_of
from tests.fuzz.desk import make_desk
from tests.fuzz.holding import faults, tree
from tests.fuzz.past import PAST


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


# The checks can fail: commands that are wrong in one way each, as what they do


def refuse(words="out must be a new folder, got 'old'"):
    print(f"plaudit: error: {words}", file=sys.stderr)
    sys.exit(2)


IMPORTS = "import os, signal, sys, tempfile, time\nfrom pathlib import Path"
HALF_A_FILE = "Path('out').mkdir(); Path('out/audit.json').write_text('{\"schema\": 2,'); refuse()"
HANGS = "signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"


@pytest.mark.parametrize(
    ("done", "words", "wrong"),
    [
        ("raise KeyError('x')", "check old", ["traceback", "stray line", "wrong code"]),
        (HALF_A_FILE, "audit gdpc --out out", ["partial output", "partial output"]),
        (HALF_A_FILE, "audit gdpc", ["partial output", "partial output"]),
        ("Path('.release-x').mkdir()", "release ons --out out", ["partial output"]),
        ("tempfile.mkstemp(); refuse()", "release ons --out out", ["partial output"]),
        ("Path('counts.csv').write_text('1')", "audit gdpc --data counts.csv", ["changed input"]),
        ("Path('counts.csv').unlink(); refuse()", "audit gdpc --data counts.csv", ["changed input"]),
        ("print('1 audits, 0 violated'); sys.exit(1)", "check old", ["wrong code"]),  # accuses without a reason
        ("print('violated'); sys.exit(1)", "list", ["wrong code"]),  # where nothing is audited
        ("os.kill(os.getpid(), signal.SIGKILL)", "check old", ["wrong code"]),
        (HANGS, "check old", ["wrong code"]),
        ("print('\x1b[31mred')", "check old", ["control characters"]),
        ("sys.exit(2)", "check old", ["no refusal"]),
        ("refuse(\"'NoneType' object is not iterable\")", "check old", ["no rule named"]),
        ("refuse('x' * 3000)", "check old", ["no rule named"]),
        ("print('RuntimeWarning: overflow encountered in exp', file=sys.stderr)", "check old", ["stray line"]),
        ("refuse()", "check old", []),
        ("print('mine: violated'); sys.exit(1)", "check old", []),
        ("Path('counts.csv').write_text('<html>')", "report old --out=counts.csv", []),
    ],
)
def test_a_broken_command_is_found_out(done, words, wrong, desk, monkeypatch):
    for limit in ("PATIENCE", "GRACE"):
        monkeypatch.setattr(running, limit, 0.2 if done is HANGS else 20.0)
    case = Case("broken", tuple(words.split()))
    found = faults(case, running.run(case, desk, lambda _: exec(f"{IMPORTS}\n{done}", globals())))
    assert [fault.partition(":")[0] for fault in found] == wrong
