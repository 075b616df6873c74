"""`plaudit audit` on several pairs of databases, and on records of a user's own."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from audit.results import AuditResult
from audit.results.files import read_json
from tests.audit.cli.desk import OWN, QUICK, VIOLATION, WITHIN, Command, audited, refused, results

BUGGY = """
def buggy(counts, size, rng):
    noisy = counts + rng.laplace(size=(size, counts.size))
    noisy[:, 2] = counts[2]
    return noisy
"""
TABLE = """
def old(people, size, rng):
    ages = [row["age"] for row in people] if isinstance(people, list) else people["age"]
    return (sum(age >= 65 for age in ages) + rng.laplace(size=size)).round(3)
"""
PEOPLE = "name,age,zip\nAda,36,01234\nBob,70,99999\nCid,64,00001\n"


@pytest.fixture(autouse=True)
def mechanisms(desk: Path) -> None:
    (desk / "helper.py").write_text(BUGGY + TABLE)
    (desk / "people.csv").write_text(PEOPLE)
    (desk / "spread.csv").write_text("people\n7\n0\n90\n3\n0\n")


# Counts


def test_several_cells_share_the_confidence(plaudit: Command) -> None:
    asked = ("audit", "helper:buggy", "mine:noisy", "--data", "counts.csv", "--claim", "pure:1", "--size", "2000")
    asked += ("--seed", "1", "--confidence", "0.999", "--cell", "2", "--cell", "0", "--out", "out")
    outcome = plaudit(*asked)
    assert outcome.code == VIOLATION
    words = " ".join(outcome.out.split())
    assert (
        "Each of the 2 pairs of databases is audited at 99.95% confidence: together their lower bounds hold at 99.9%."
        in words
    )
    assert [word in words for word in ("1 person added to cell 2.", "1 person added to cell 0.")] == [True, True]
    names = ["helper-buggy-cell-2", "helper-buggy-cell-0", "mine-noisy-cell-2", "mine-noisy-cell-0"]
    found = {name: AuditResult.from_dict(read_json(Path("out") / f"{name}.json")) for name in names}
    assert [result.verdict for result in found.values()] == ["violated", *["not refuted"] * 3]
    assert {result.confidence for result in found.values()} == {1 - (1 - 0.999) / 2}
    assert found[names[0]].provenance["together"] == {"pairs": 2, "confidence": 0.999}
    command = shlex.split(found[names[3]].provenance["command"])  # of that pair alone, at its own confidence
    alone = plaudit(*command[1:], "--json")
    assert (alone.code, len(results(alone))) == (WITHIN, 1)
    assert results(alone)["mine:noisy cell 0"].counts == found[names[3]].counts


def test_cells_by_their_counts_each_once(plaudit: Command) -> None:
    asked = ("audit", "mine:noisy", "--data", "spread.csv", "--claim", "pure:1", *QUICK, "--json")
    found = results(plaudit(*asked, "--cells", "smallest, largest,empty", "--cell", "3", "--cell", "4"))
    assert list(found) == [f"mine:noisy cell {cell}" for cell in (3, 4, 2, 1)]
    assert len({result.pair for result in found.values()}) == 4
    (name,) = results(plaudit(*asked, "--cells", "largest", "--people", "5", "--relation", "add_remove"))
    assert name == "mine:noisy cell 2 people 5"
    (name,) = results(plaudit(*asked, "--cell", "2", "--move-to", "0"))
    assert name == "mine:noisy cell 2 to 0"


def test_one_pair_has_the_whole_confidence(plaudit: Command) -> None:
    result = audited(plaudit, "mine:noisy", *OWN, "--cell", "1")
    assert (result.confidence, "together" in result.provenance) == (0.999, False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cells", "median"), "cells must be of smallest, largest, empty, got 'median'"),
        (("--cells", "empty"), "counts must have an empty cell for --cells empty, got none"),
        (("--data", "counts.txt"), "or a .csv or .npy file of counts, got 'counts.txt'"),
        (("--cells", "smallest,"), "cells must be of smallest, largest, empty, got ''"),
        (("--cell", "0", "--cell", "3"), "cell must be inside counts of shape (3,), got 3"),
        (("--cell", "1", "--cell", "0", "--move-to", "0"), "source and target must differ, got 0 twice"),
        (("--cell", "0", "--cell", "1", "--confidence", "1.5"), "confidence must be in (0, 1), got 1.5"),
        (("--add-row", "1"), "data must be a .csv or .parquet file of records"),
    ],
)
def test_cells_that_are_not_there_are_one_line(plaudit: Command, options: tuple[str, ...], words: str) -> None:
    Path("counts.npy").touch()
    data = "counts.npy" if "--add-row" in options else "counts.csv"
    asked = ("audit", "mine:noisy", "--data", data, "--claim", "pure:1", *options, "--out", "out")
    assert refused(plaudit(*asked), words)
    assert not list(Path("out").glob("*"))


@pytest.mark.parametrize("counts", ["nan\n120\n75\n", "NA\n120\n75\n", "120\n\n75\n", "120\ninf\n"])
def test_counts_that_are_no_counts_are_refused(plaudit: Command, counts: str) -> None:
    Path("counts.csv").write_text(counts)
    blank = "counts.csv must have no blank line, which would shift what follows, got line 2"
    words = blank if "\n\n" in counts else f"counts must be whole numbers, got {'inf' if 'inf' in counts else 'nan'}"
    assert refused(plaudit("audit", "mine:noisy", *OWN), words)


def test_a_mechanism_of_ones_own_needs_data(plaudit: Command) -> None:
    words = "mine:noisy needs --data: a file of counts or records, or the name of bundled counts"
    assert refused(plaudit("audit", "mine:noisy", "--claim", "pure:1"), words)
    assert refused(plaudit("audit", "gdpc", "mine:noisy", "--claim", "pure:1"), words)
    assert audited(plaudit, "mine:noisy", "--claim", "pure:1", "--data", "morocco").pair.startswith("1 person added to")


# Records


ASKED = ("helper:old", "--data", "people.csv", "--claim", "pure:1")


@pytest.mark.parametrize("row", ["Eve,80,12345", '{"zip": "12345", "age": 80, "name": "Eve"}'])
def test_a_record_is_added(plaudit: Command, row: str) -> None:
    result = audited(plaudit, *ASKED, "--add-row", row)
    assert (result.verdict, result.relation, result.distance) == ("not refuted", "add_remove", 1)
    assert (result.adjacency, result.confidential) == ("verified", True)
    half = (*ASKED[:-1], "pure:0.5", "--add-row", row)
    assert audited(plaudit, *half, code=VIOLATION).verdict == "violated"


def test_a_record_is_replaced(plaudit: Command) -> None:
    outcome = plaudit("audit", *ASKED, "--replace-row", "2", "Cid,65,00001", *QUICK, "--out", "out")
    assert outcome.code == WITHIN
    result = AuditResult.from_dict(read_json(Path("out/helper-old-replaced-row-2.json")))
    assert (result.relation, result.claim.relation, result.pair) == ("replace_one", "replace_one", "row 2 replaced")
    again = results(plaudit(*shlex.split(result.provenance["command"])[1:], "--json"))
    assert again["helper:old replaced row 2"].counts == result.counts
    steps = audited(plaudit, *ASKED, "--replace-row", "2", "Cid,65,00001", "--relation", "add_remove")
    assert (steps.relation, steps.distance) == ("add_remove", 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--add-row", "Eve,old,12345"), "column 'age' holds int64, got 'old'"),
        (("--add-row", '{"age": 80}'), "a row must have the columns of the table, got ['name', 'zip'] missing"),
        (("--replace-row", "3", "Eve,80,1"), "index must be below the number of rows, 3, got 3"),
        (("--replace-row", "0", "Ada,36,01234"), "the databases must be at distance 1 under replace_one, got"),
        (("--replace-row", "x", "Eve,80,1"), "Invalid value for '--replace-row'"),
        (("--add-row", "Eve,80,1", "--replace-row", "0", "Eve,80,1"), "--add-row and --replace-row exclude each other"),
        (("--add-row", "Eve,80,1", "--relation", "replace_one"), "people added or removed are not replaced"),
        (("--add-row", "Eve,80,1", "--cell", "0"), "--cell is for counts, and --add-row and --replace-row for records"),
        (("--cell", "0"), "people.csv must hold numbers, one count a line, got 'Ada': records need --add-row or"),
    ],
)
def test_records_that_do_not_fit_are_one_line(plaudit: Command, options: tuple[str, ...], words: str) -> None:
    assert refused(plaudit("audit", *ASKED, *options, "--out", "out"), words)
    assert not list(Path("out").glob("*"))


def test_records_are_for_mechanisms_of_ones_own_and_parquet_for_records(plaudit: Command) -> None:
    words = "--add-row is for mechanisms of your own, module:object"
    assert refused(plaudit("audit", "gdpc", "--data", "people.csv", "--add-row", "Eve,80,1"), words)
    words = "people.parquet must come with --add-row or --replace-row: Parquet holds records, not counts"
    assert refused(plaudit("audit", "gdpc", "--data", "people.parquet"), words)
    outputs = ("audit", "--outputs-x", "x.csv", "--outputs-y", "y.csv", "--add-row", "1")
    assert refused(plaudit(*outputs), "--add-row has no effect on outputs from elsewhere")
