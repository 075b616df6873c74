"""A release of NistDp3: its files, which say the same, or none; and its command."""

from __future__ import annotations

import csv
import json
from itertools import product

import numpy as np
import pytest

from algorithms.nist import Groups, NistDp3, choose_groups, read_groups
from algorithms.nist.release import noise_table, release
from algorithms.schema import Schema
from algorithms.systems import run
from audit.io.text import from_cell
from tests.helpers import plaudit, rows_of

SCHEMA = Schema({"sex": ("male", "female"), "age": ("0-17", "18, or more"), "county": ("a", "b", "c")})
RECORDS = np.array([[0, 1, 2]] * 60 + [[1, 0, 0]] * 50 + [[1, 1, 1]] * 40)
NIST = NistDp3(SCHEMA, choose_groups(RECORDS, SCHEMA), 10.0, rows=300, law="geometric")
FILES = ["groups.json", "groups.txt", "histograms.csv", "ledger.txt", "release.json", "synthetic.csv"]


def test_the_files_say_the_same(tmp_path):
    made = release(NIST, RECORDS, out=tmp_path / "out", rng=np.random.default_rng(0))
    folder = tmp_path / "out"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    synthetic = rows_of(folder / "synthetic.csv")
    assert list(synthetic[0]) == ["sex", "age", "county"]
    assert len(synthetic) == 300
    levels = [{level: code for code, level in enumerate(given)} for given in SCHEMA.attributes.values()]
    codes = [[place[value] for place, value in zip(levels, row.values(), strict=True)] for row in synthetic]
    assert np.array_equal(codes, made.synthetic)
    histograms = rows_of(folder / "histograms.csv")
    assert [int(row["COUNT"]) for row in histograms] == [count for counts in made.fitted.counts for count in counts]
    for row in histograms:
        filled = "*".join(name for name in SCHEMA.attributes if row[name])
        assert row["GROUP"] == filled
    seen = {tuple(row[name] for name in SCHEMA.attributes) for row in histograms}
    assert {("female", "0-17", "a"), ("male", "18, or more", "c")} <= seen
    assert read_groups(folder / "groups.json").fields == NIST.groups.fields
    assert (folder / "groups.txt").read_text() == f"{NIST.groups}\n"
    about = json.loads((folder / "release.json").read_text())
    assert about["promise"] == {"kind": "pure", "epsilon": 10.0, "relation": "add_remove"}
    assert about["noise"] == "from a seeded generator: a simulation, not to be published"
    assert about["uniform"] == []
    assert about["groups_from"] == "public records"
    assert "total: epsilon 10 (add/remove)" in (folder / "ledger.txt").read_text()


def test_groups_of_which_nothing_is_left_are_named():
    nothing = NistDp3(SCHEMA, Groups.single(SCHEMA), 0.001, factor=50.0, rows=5)
    made = release(nothing, RECORDS, rng=np.random.default_rng(0))
    assert made.provenance["uniform"] == ["sex", "age", "county"]
    assert made.provenance["groups_from"] == "a list of groups"
    assert "Nothing is left of sex, age, county: their rows are uniform, noise alone." in made.ledger
    assert release(NIST, np.zeros((0, 3), int), rng=np.random.default_rng(0)).synthetic.shape == (300, 3)


def test_the_table_of_noise_has_shares_that_add_up():
    table = noise_table(NistDp3(SCHEMA, Groups.single(SCHEMA), 1.0))
    assert table["EPSILON"].sum() == pytest.approx(1)
    assert table["BINS"].tolist() == [2, 2, 3]
    assert table["SCALE"].tolist() == [3, 3, 3]


def test_releases_that_are_refused(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(ValueError, match=r'^a secure release needs law="geometric", got \'laplace\''):
        release(NistDp3(SCHEMA, Groups.single(SCHEMA), 1.0), RECORDS, out=out)
    for name in ("COUNT", "Group"):  # as columns of a file are called
        schema = Schema({name: "ab"})
        with pytest.raises(ValueError, match=f"^fields must not be called GROUP or COUNT, .* got '{name}'"):
            release(NistDp3(schema, Groups.single(schema), 1.0), [[0]], rng=np.random.default_rng(0), out=out)
    assert not list(tmp_path.iterdir())
    pytest.importorskip("opendp")
    assert release(NIST, RECORDS).provenance["noise"] == "secure: exact, on the operating system's entropy"


# The command


@pytest.fixture
def files(tmp_path):
    spec = {"attributes": {name: list(levels) for name, levels in SCHEMA.attributes.items()}}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    levels = list(SCHEMA.attributes.values())
    with (tmp_path / "d.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(SCHEMA.attributes)
        writer.writerows([[given[code] for given, code in zip(levels, row, strict=True)] for row in RECORDS.tolist()])
    (tmp_path / "public.csv").write_text((tmp_path / "d.csv").read_text())
    (tmp_path / "groups.json").write_text('{"groups": [["sex", "age"], ["county"]]}')
    return tmp_path


def arguments(folder, **changes):
    paths = {"data": folder / "d.csv", "spec": folder / "spec.json", "public": folder / "public.csv"}
    given = paths | {"epsilon": 2, "rows": 50, "seed": 1, "out": folder / "out"} | changes
    return ["nist", *(f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value is not None)]


def test_the_command_writes_a_release(files, capsys):
    assert run("release", arguments(files, max_bins=6)) == 0
    assert sorted(path.name for path in (files / "out").iterdir()) == FILES
    said = capsys.readouterr().out
    assert "total: epsilon 2 (add/remove)" in said
    assert "50 rows of 3 fields, with noise from seed 1: a simulation, not to be published, written to" in said
    assert run("release", arguments(files, public=None, groups=files / "groups.json", out=files / "again")) == 0
    assert (files / "again" / "groups.txt").read_text().startswith("2 groups, as given\nsex*age\n")


def test_names_of_a_specification_reach_files_as_text_and_no_terminal_as_commands(tmp_path, capsys):
    """Fields and levels that are formulas to a spreadsheet, lines to a reader, or commands to a terminal."""
    levels = {"=f": ["=cmd", "-1", "'a", 'b\r\nc,"d"'], "\x1b[31mRED": ["\x1b[2J", "plain"]}
    (tmp_path / "spec.json").write_text(json.dumps({"attributes": levels}))
    (tmp_path / "groups.json").write_text(json.dumps({"groups": [[name] for name in levels]}))
    with (tmp_path / "d.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(levels)
        writer.writerows(list(product(*levels.values())) * 50)
    assert plaudit("release", *arguments(tmp_path, public=None, groups=tmp_path / "groups.json", rows=400)) == 0
    said = capsys.readouterr().out
    assert "[31mRED" in said
    assert said.replace("\n", "").isprintable()
    for name in ("synthetic.csv", "histograms.csv"):
        with (tmp_path / "out" / name).open(encoding="utf-8", newline="") as file:
            header, *rows = ([from_cell(field) for field in row] for row in csv.reader(file))
        assert set(levels) <= set(header)
        for name, known in levels.items():
            column = {row[header.index(name)] for row in rows}
            assert set(known) <= column <= {*known, ""}
    written = (tmp_path / "out" / "synthetic.csv").read_text()
    assert "'=f,\x1b[31mRED\n" in written
    assert "\n=" not in written
    for name in ("ledger.txt", "groups.txt", "release.json", "groups.json"):
        text = (tmp_path / "out" / name).read_text()
        assert "[31mRED" in text
        assert text.replace("\n", "").isprintable()


GIVEN = {"public": None, "groups": "groups.json"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"public": None}, "--public or --groups is needed, and not both"),
        ({"groups": "groups.json"}, "--public or --groups is needed, and not both"),
        (GIVEN | {"max_bins": 9}, "--max-bins goes with --public"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"public": "d.csv"}, "--public must be another file than --data: the data must have no say"),
        ({"public": "link.csv"}, "--public must be another file than --data: the data must have no say"),
        ({"rows": 99_999_999_999_999}, "rows must be at most 50,000,000, got 99,999,999,999,999"),
        (GIVEN | {"epsilon": 1e-12}, "epsilon / groups must .* got 1e-12 / 2"),
        ({"factor": -1}, "factor must be 0 or more and finite, got -1.0"),
        ({"max_bins": 2}, "max_bins must hold the levels of every field, county has 3, got 2"),
        ({"seed": -1}, "seed must be 0 or more, got -1"),
        ({"spec": "d.csv"}, "specification must be a .json file"),
        ({"public": "empty.csv"}, "public records must have one row at least, got none"),
        pytest.param({"data": "empty.csv"}, "data must have one row at least, got none", marks=pytest.mark.slow),
        ({"out": "."}, "out must be a new or an empty folder"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(changes, words, files):
    (files / "link.csv").symlink_to(files / "d.csv")
    (files / "empty.csv").write_text("sex,age,county\n")
    before = sorted(files.iterdir())
    paths = {name: files / value for name, value in changes.items() if isinstance(value, str)}
    with pytest.raises(ValueError, match=f"^{words}") as caught:
        run("release", arguments(files, **changes | paths))
    assert "\n" not in str(caught.value)
    assert sorted(files.iterdir()) == before
