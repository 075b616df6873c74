"""The fuzzer finds what is wrong, makes the same case again, and finds nothing in the command as it is."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from audit.cli import exits
from tests.fuzz import holding, running
from tests.fuzz.cases import KINDS, Case, case_of
from tests.fuzz.desk import make_desk
from tests.fuzz.holding import RAN, Counted, faults, tree
from tests.fuzz.oracle import NO_POWER, VIOLATION, WITHIN
from tests.fuzz.past import PAST
from tests.reliability.plugin import seed_of


@pytest.mark.parametrize("case", PAST, ids=[case.name for case in PAST])
def test_what_went_wrong_once_holds(case, desk):
    assert faults(case, running.run(case, desk)) == []


@pytest.mark.reliability(10)
@pytest.mark.parametrize(
    ("first", "cases"),
    [
        pytest.param(0, 24, marks=pytest.mark.quick),
        *(pytest.param(at, 500, marks=pytest.mark.slow) for at in range(0, 10_000, 500)),
    ],
)
def test_nothing_goes_wrong_with_hostile_words_and_files(request, first, cases, desk, record_property):
    seed, counted, found = seed_of(request.config), Counted(), {}
    for number in range(first, first + cases):
        case = case_of(seed, number, desk)
        outcome = running.run(case, desk)
        counted.add(case, outcome)
        found[case.name] = faults(case, outcome)
    record_property("tried", cases)
    record_property("counts", {name: dict(kinds) for name, kinds in counted.kinds.items()})
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert counted.kinds[RAN].total() >= cases / 2


@pytest.mark.slow
def test_a_case_is_made_again_from_seed_and_number_alone(desk, tmp_path):
    make_desk(tmp_path)
    assert tree(tmp_path) == tree(desk)
    first, second = ([case_of(3, number, folder) for number in range(300)] for folder in (desk, tmp_path))
    assert first == second
    assert len({(case.arguments, *case.files.items()) for case in first}) > 295
    assert {case.kind for case in first} == {*KINDS}


# The checks can fail: commands that are wrong in one way each, as what they do


def refuse(words="out must be a new folder, got 'old'"):
    print(f"plaudit: error: {words}", file=sys.stderr)
    sys.exit(2)


IMPORTS = "import os, signal, sys, tempfile, time\nfrom pathlib import Path"
HALF_A_FILE = "Path('out').mkdir(); Path('out/audit.json').write_text('{\"schema\": 2,'); refuse()"
HANGS = "time.sleep(600)"


@pytest.mark.parametrize(
    ("done", "words", "wrong"),
    [
        ("raise KeyError('x')", "check old/count.json", ["traceback", "stray line", "wrong code"]),
        (HALF_A_FILE, "audit gdpc --out out", ["partial output", "partial output"]),
        (HALF_A_FILE, "audit gdpc", ["partial output", "partial output"]),
        ("Path('.release-x').mkdir()", "release ons --out out", ["partial output", "partial output"]),
        ("tempfile.mkstemp(); refuse()", "release ons --out out", ["partial output"]),
        ("Path('counts.csv').write_text('1')", "audit gdpc --data counts.csv", ["changed input"]),
        ("Path('counts.csv').unlink(); refuse()", "audit gdpc --data counts.csv", ["changed input"]),
        ("sys.exit(1)", "check old/count.json", ["wrong code"]),  # accuses without a reason
        ("print('violated'); sys.exit(1)", "list", ["wrong code"]),  # where nothing is audited
        ("os.kill(os.getpid(), signal.SIGKILL)", "check old", ["no end"]),
        (HANGS, "check old", ["no end"]),
        ("sys.exit(0)", "check new", ["wrong code"]),  # a violation is no pass
        ("sys.exit(3)", "check new/count.json", ["wrong code"]),
        ("sys.exit(0)", "verify new", ["wrong code"]),
        ("sys.exit(0)", "check old/zcdp.json", ["wrong code"]),  # without power neither
        ("sys.exit(3)", "check old/count.json", ["wrong code"]),
        ("sys.exit(130)", "check old", ["wrong code"]),  # nobody interrupted it
        ("print('mine: violated:')", "replay gdpc", ["wrong code"]),
        ("print('REGRESSION: x')", "compare old new", ["wrong code"]),
        ("print('\x1b[31mred')", "check old/count.json", ["control characters"]),
        ("sys.exit(2)", "check old", ["no refusal"]),
        ("refuse(\"'NoneType' object is not iterable\")", "check old", ["no rule named"]),
        ("refuse('x' * 3000)", "check old", ["no rule named"]),
        (
            "print('RuntimeWarning: overflow encountered in exp', file=sys.stderr)",
            "check old/count.json",
            ["stray line"],
        ),
        ("refuse()", "check old", []),
        ("sys.exit(1)", "check old", []),
        ("Path('counts.csv').write_text('<html>')", "report old/count.json --out=counts.csv", []),
    ],
)
def test_a_broken_command_is_found_out(done, words, wrong, desk, monkeypatch):
    monkeypatch.setattr(holding, "LIMIT", 0.2 if done is HANGS else 60.0)
    case = Case("broken", tuple(words.split()))
    found = faults(case, running.run(case, desk, lambda _: exec(f"{IMPORTS}\n{done}", globals())))
    assert [fault.partition(":")[0] for fault in found] == wrong


@pytest.mark.parametrize(("code", "planted"), [(VIOLATION, WITHIN), (NO_POWER, WITHIN), (WITHIN, NO_POWER)])
@pytest.mark.parametrize("how", ["--json", "--out out"])
def test_a_planted_exit_code_is_found_out_by_the_counts(code, planted, how, desk, monkeypatch):
    """Negative control: the command itself, whose last line turns one verdict into another."""
    what = {VIOLATION: "mine:buggy --claim pure:1", NO_POWER: "gdpc --epsilon 0.02", WITHIN: "gdpc"}[code]
    case = Case("planted", tuple(f"audit {what} --data counts.csv --size 400 --seed 1 --jobs 1 {how}".split()))
    assert faults(case, running.run(case, desk)) == []
    changed = lambda verdicts: planted if exits.exit_code(verdicts) == code else code  # noqa: E731
    monkeypatch.setattr("audit.cli.run_audits.exit_code", changed)
    (wrong,) = faults(case, running.run(case, desk))
    assert wrong.startswith(f"wrong code: {planted}, and by counts it is [{code}]")


@pytest.fixture(scope="module")
def released(desk):
    """A case of a release, and what it leaves."""
    words = "release bottom-up --data persons.csv --areas state,county --spec spec.json --epsilon 2 --seed 1 --out out"
    case = Case("release", tuple(words.split()))
    return case, running.run(case, desk)


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("level_0.csv", b"COUNT\n,,", b"COUNT\n,,9", "is no sum of what it is made of"),
        ("level_0.csv", b"sex,age", b"age,sex", "has other columns than columns.csv says"),
        ("level_2.csv", b",f,", b",x,", "no code of columns.csv"),
        ("level_2.csv", b"COUNT\n", b"COUNT\nA,1\n", "cannot be read back"),
        ("columns.csv", b"level_0.csv", b"level_9.csv", "columns.csv tells of"),
        ("release.json", b'"epsilon": 2.0', b'"epsilon": 1.0', "epsilon 1.0 is promised, and 2 was asked for"),
        ("ledger.txt", b"2", b"3", "the ledger does not name the budget"),
    ],
)
def test_a_release_that_does_not_keep_its_word_is_found_out(file, old, new, words, released):
    case, outcome = released
    assert faults(case, outcome) == []
    after = outcome.after | {f"out/{file}": outcome.after[f"out/{file}"].replace(old, new)}
    wrong = faults(case, replace(outcome, after=after))
    assert any(words in one for one in wrong), wrong
