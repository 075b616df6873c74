"""`plaudit verify`: what it can show by itself, and what only the same audit made again shows."""

import os
from pathlib import Path

import pytest

from audit.cli import verify as command
from audit.results import AuditResult
from audit.results.files import read_json, write_json
from audit.review.verify import recomputed
from tests.audit.cli.desk import INTERRUPTED, OWN, QUICK, VIOLATION, WITHIN, Command, refused, results, save_outputs


@pytest.fixture(scope="module")
def made() -> list[AuditResult]:
    """What the command says of one audit, once a test has made it."""
    return []


@pytest.fixture
def saved(plaudit: Command, made: list[AuditResult]) -> Path:
    """One audit of a mechanism of the user's own, as the command saves it."""
    if not made:
        made += results(plaudit("audit", "mine:noisy", *OWN, *QUICK, "--json")).values()
    made[0].to_json("out/mine-noisy.json")
    return Path("out/mine-noisy.json")


def test_verify_says_what_it_cannot_show(plaudit: Command, saved: Path) -> None:
    outcome = plaudit("verify", str(saved))
    assert outcome.code == WITHIN
    assert outcome.out.startswith("out/mine-noisy.json: file intact; bound and verdict recomputed.\n")
    assert "CONFIDENTIAL" in outcome.out
    assert outcome.out.endswith(f"{command.SCOPE}\n")


def test_an_audit_made_again_is_the_same(plaudit: Command, saved: Path) -> None:  # six audits
    files = {*os.listdir("."), "__pycache__"}  # of the mechanism, which is imported
    outcome = plaudit("verify", "--rerun", "out")
    assert (outcome.code, outcome.err) == (WITHIN, "")
    made = read_json(saved)["provenance"]["command"]
    assert f"; made again by `{made}`: the same.\n" in outcome.out
    assert outcome.out.endswith(f"{command.RERUN}\n")
    assert {*os.listdir("."), "__pycache__"} == files
    plaudit("audit", "gdpc-half-noise", *OWN[:2], "--size", "1000", *QUICK[2:], "--cell", "2", "--out", "out")
    save_outputs()
    given = ("--outputs-x", "x.csv", "--outputs-y", "y.csv", "--claim", "pure:1", "--relation", "add_remove")
    plaudit("audit", *given, "--public-data", "--out", "out")
    outcome = plaudit("verify", "--rerun", "out")
    assert (outcome.code, outcome.out.count(": the same.")) == (VIOLATION, 3)


@pytest.mark.reliability(row=7)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"counts": {"x": {"runs": 700, "guessed_x": 300, "guessed_y": 100}}}, "measured epsilon was 0."),
        ({"confidence": 0.9}, "measured epsilon was "),
        ({"adjacency": "declared"}, "adjacency was declared, and is verified"),
        ({"mechanism": "sound"}, "mechanism was sound, and is noisy"),
    ],
)
def test_a_file_that_was_forged_to_fit_is_found_by_a_rerun(plaudit, saved, changes, words):
    values = read_json(saved)
    if "counts" in changes:
        x = changes["counts"]["x"]
        runs = values["counts"]["y"]["runs"] + values["counts"]["x"]["runs"] - x["runs"]
        changes = {"counts": {"x": x, "y": {"runs": runs, "guessed_x": 200, "guessed_y": 250}}}
    forged = recomputed(AuditResult.from_dict(values | changes))  # its numbers follow from its counts
    write_json(saved, forged.to_dict())
    assert plaudit("verify", str(saved)).code == WITHIN  # negative control: it cannot see that
    outcome = plaudit("verify", "--rerun", str(saved))
    assert refused(outcome, "out/mine-noisy.json: an audit made again by `plaudit audit mine:noisy")
    assert words in outcome.err
    assert ", and is " in outcome.err


@pytest.mark.parametrize(
    ("made_by", "words"),
    [
        (None, "a recorded command of `plaudit audit`, got none: make it again in Python, as it was made"),
        ("python -m pytest t.py::t", "a rerun needs a recorded command of `plaudit audit`, got 'python -m pytest t.py"),
        ("plaudit audit 'gdpc", 'a rerun needs a recorded command of `plaudit audit`, got "plaudit audit \'gdpc"'),
        ("plaudit release gdpc", "a rerun needs a recorded command of `plaudit audit`, got 'plaudit release gdpc'"),
        ("plaudit audit gdpc", "a rerun needs a recorded seed, got none"),
        ("plaudit audit gdpc --seed 1 --out there", "must ask for an audit and nothing else, got --out"),
        ("plaudit audit gdpc --seed 1 --store there", "must ask for an audit and nothing else, got --store"),
        ("plaudit audit gdpc --seed 1 --timeout 9", "must ask for an audit and nothing else, got --timeout"),
        ("plaudit audit gdpc --help", "must ask for an audit and nothing else, got --help"),
        ("plaudit audit gdpc --seed 1 --sise 9", "No such option: --sise"),
        ("plaudit audit --seed 1 gdpc --data gone.csv", "gone.csv: no such file or directory"),
        ("plaudit audit gdpc --cell 0 --cell 1 --size 40 --seed 1", "must ask for one audit, got 2"),
    ],
)
def test_what_cannot_be_made_again_is_one_line(plaudit: Command, saved: Path, made_by: str | None, words: str) -> None:
    values = read_json(saved)
    write_json(saved, values | {"provenance": {**values["provenance"], "command": made_by}})
    assert refused(plaudit("verify", "--rerun", str(saved)), words)
    assert not Path("there").exists()


def test_entropy_of_its_own_is_repeated_by_no_seed(plaudit: Command) -> None:
    own = "from mine import *\nown = lambda counts, size, rng: noisy(counts, size, np.random.default_rng())\n"
    Path("helper.py").write_text(own)
    plaudit("audit", "helper:own", *OWN, *QUICK, "--out", "out")
    words = "helper-own.json: a rerun needs a mechanism whose randomness comes from the seed, and this one's does"
    assert refused(plaudit("verify", "--rerun", "out/helper-own.json"), words)


def test_an_interrupt_of_a_rerun_is_one(plaudit: Command, saved: Path) -> None:
    values = read_json(saved)
    provenance = {"command": "plaudit audit mine:impatient --data counts.csv --claim pure:1 --seed 1"}
    write_json(saved, values | {"provenance": {**values["provenance"], **provenance}})
    assert plaudit("verify", "--rerun", str(saved)).code == INTERRUPTED
