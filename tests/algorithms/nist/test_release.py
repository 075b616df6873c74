"""A release of NistDp3: its files, which say the same, or none; and its command."""

import csv
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from algorithms.nist import Groups, NistDp3, choose_groups, read_groups
from algorithms.schema import Schema
from audit.io.text import from_cell
from tests.algorithms.releases import names, record, refused_in_one_line, released, specification
from tests.helpers import rows_of, system_module

release = system_module("nist").release

SCHEMA = Schema({"sex": ("male", "female"), "age": ("0-17", "18, or more"), "county": ("a", "b", "c")})
RECORDS = np.array([[0, 1, 2]] * 60 + [[1, 0, 0]] * 50 + [[1, 1, 1]] * 40)
NIST = NistDp3(SCHEMA, choose_groups(RECORDS, SCHEMA), 10.0, rows=300, law="geometric")
TABLES = ["columns.csv", "microdata.csv", "noisy_measurements.csv"]
FILES = sorted([*TABLES, "groups.json", "groups.txt", "ledger.txt", "release.json"])


def test_the_files_say_the_same(tmp_path):
    made = release(NIST, RECORDS, out=tmp_path / "out", rng=np.random.default_rng(0))
    folder = tmp_path / "out"
    assert names(folder) == FILES
    synthetic = rows_of(folder / "microdata.csv")
    assert list(synthetic[0]) == ["sex", "age", "county"]
    assert len(synthetic) == 300
    codes = [[SCHEMA.attributes[name].index(value) for name, value in row.items()] for row in synthetic]
    fitted, rows = made.drawn
    assert np.array_equal(codes, rows)
    histograms = rows_of(folder / "noisy_measurements.csv")
    assert [int(row["COUNT"]) for row in histograms] == [count for counts in fitted.counts for count in counts]
    for row in histograms:
        filled = "*".join(name for name in SCHEMA.attributes if row[name])
        assert row["GROUP"] == filled
    cells = {tuple(row[name] for name in SCHEMA.attributes) for row in histograms}
    assert {("female", "0-17", "a"), ("male", "18, or more", "c")} <= cells
    assert read_groups(folder / "groups.json").fields == NIST.groups.fields
    assert (folder / "groups.txt").read_text() == f"{NIST.groups}\n"
    assert (record(folder)["uniform"], record(folder)["groups_from"]) == ([], "public records")
    assert "total: epsilon 10 (add/remove)" in (folder / "ledger.txt").read_text()


def test_groups_of_which_nothing_is_left_are_named():
    nothing = NistDp3(SCHEMA, Groups.single(SCHEMA), 0.001, factor=50.0, rows=5)
    made = release(nothing, RECORDS, rng=np.random.default_rng(0))
    assert made.record["uniform"] == ["sex", "age", "county"]
    assert made.record["groups_from"] == "a list of groups"
    assert "Nothing is left of sex, age, county: their rows are uniform, noise alone." in made.ledger


def test_releases_that_are_refused(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(ValueError, match=r'^a secure release needs law="geometric", got \'laplace\''):
        release(NistDp3(SCHEMA, Groups.single(SCHEMA), 1.0), RECORDS, out=out)
    schema = Schema({"Group": "ab"})
    with pytest.raises(ValueError, match="other columns of a file must have different names, got 'GROUP' twice"):
        release(NistDp3(schema, Groups.single(schema), 1.0), [[0]], rng=np.random.default_rng(0), out=out)
    assert not list(tmp_path.iterdir())


def test_there_are_as_many_rows_as_the_noisy_counts_of_the_fewest_bins_unless_a_number_is_given():
    nist = NistDp3(SCHEMA, Groups([["sex"], ["age", "county"]]), 20.0, law="geometric")
    made = release(nist, RECORDS, rng=np.random.default_rng(0), as_counted=True)
    fitted, rows = made.drawn
    assert len(rows) == sum(fitted.counts[0]) == made.record["rows"]
    assert len(rows) == pytest.approx(len(RECORDS), abs=5)
    none = release(nist, np.zeros((0, 3), int), rng=np.random.default_rng(0), as_counted=True)
    assert len(none.drawn[1]) >= 1


GROUPED = {"public": None, "groups": "groups.json"}

FILES_GIVEN = {"data": "d.csv", "spec": "spec.json", "public": "public.csv"}
GIVEN = FILES_GIVEN | {"epsilon": 2, "rows": 50, "seed": 1, "out": "out"}


@pytest.fixture
def files(desk):
    levels = list(SCHEMA.attributes.values())
    rows = [[given[code] for given, code in zip(levels, row, strict=True)] for row in RECORDS.tolist()]
    persons = [list(SCHEMA.attributes), *rows]
    desk({"spec.json": specification(SCHEMA), "d.csv": persons, "public.csv": persons})
    desk({"groups.json": {"groups": [["sex", "age"], ["county"]]}})


def test_the_command_writes_a_release(files, capsys):
    assert released("nist", **GIVEN | {"max_bins": 6}) == 0
    assert "\n50 rows of 3 fields, with noise from seed 1" in capsys.readouterr().out
    assert released("nist", **GIVEN | GROUPED | {"out": "again", "rows": None}) == 0
    assert 50 < len(rows_of(Path("again/microdata.csv"))) < 250
    assert Path("again/groups.txt").read_text().startswith("2 groups, as given\nsex*age\n")


def test_names_of_a_specification_reach_files_as_text_and_no_terminal_as_commands(desk, capsys):
    """Fields and levels that are formulas to a spreadsheet, lines to a reader, or commands to a terminal."""
    levels = {"=f": ["=cmd", "-1", "'a", 'b\r\nc,"d"'], "\x1b[31mRED": ["\x1b[2J", "plain"]}
    desk({"spec.json": {"attributes": levels}, "groups.json": {"groups": [[name] for name in levels]}})
    desk({"d.csv": [list(levels), *list(product(*levels.values())) * 50]})
    assert released("nist", **GIVEN | GROUPED | {"rows": 400}) == 0
    printed = capsys.readouterr().out
    assert "[31mRED" in printed
    assert printed.replace("\n", "").isprintable()
    for name in ("microdata.csv", "noisy_measurements.csv"):
        with Path("out", name).open(encoding="utf-8", newline="") as file:
            header, *rows = ([from_cell(field) for field in row] for row in csv.reader(file))
        assert set(levels) <= set(header)
        for name, known in levels.items():
            column = {row[header.index(name)] for row in rows}
            assert set(known) <= column <= {*known, ""}
    written = Path("out/microdata.csv").read_text()
    assert "'=f,\x1b[31mRED\n" in written
    assert "\n=" not in written
    for name in ("ledger.txt", "groups.txt", "release.json", "groups.json"):
        text = Path("out", name).read_text()
        assert "[31mRED" in text
        assert text.replace("\n", "").isprintable()


SAME = "--public must be another file than --data: the data must have no say"
BAD = {
    "public or groups is needed, and not both": {"public": None},
    "--max-bins goes with --public": GROUPED | {"max_bins": 9},
    SAME: {"public": "d.csv"},
    f"{SAME} in the groups": {"public": "link.csv"},
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_line_and_nothing_is_written(files, capsys, words):
    Path("link.csv").symlink_to("d.csv")
    refused_in_one_line(capsys, words, "nist", **GIVEN | BAD[words])
