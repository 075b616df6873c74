"""The contest's codebook and specifications: which values each field may have, read before any record."""

from __future__ import annotations

import csv
import json

import pytest

from algorithms.nist.contest import read_codebook, read_contest
from algorithms.systems import run
from tests.helpers import refuses

BOOK = """Description: 1940 Full Extract
  Variable               Columns        Len    1940
  SEX                P  73              1      X
Variable Availability Key:
All Years X - available in this sample

 SEX\t\tSex
1\t\tMale
2\t\tFemale

 BPL\t\tBirthplace
\t\tNORTHEAST
001\t\tMaine
010\t\t   Vermont
\t\tWEST
000\t\tnot known
001\t\tMaine, under another heading

 HISTID\t\tA field without values
"""
SPECS = {
    "BPL": {"type": "enum", "count": 3, "maxval": 10},
    "SEX": {"type": "enum", "count": 2, "maxval": 2},
    "AGE": {"type": "enum", "count": 4, "maxval": 3},
    "VALUEH": {"type": "enum", "count": 9, "maxval": 9_999_998},
}
BINS = {"attributes": {"VALUEH": {"edges": [0, 1000, 9_999_998]}}}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "codebook.cbk").write_bytes(BOOK.encode() + b" LABEL\t\tA letter of another encoding\n1\t\t\xe9\n")
    (tmp_path / "specs.json").write_text(json.dumps(SPECS))
    (tmp_path / "bins.json").write_text(json.dumps(BINS))
    return tmp_path


def test_a_codebook_lists_values_without_leading_zeros(files):
    found = read_codebook(files / "codebook.cbk")
    assert found == {"SEX": ("1", "2"), "BPL": ("1", "10", "0"), "LABEL": ("1",)}


def test_values_are_of_the_codebook_then_of_maxval_and_special_bins_come_first(files):
    schema = read_contest(files / "specs.json", files / "codebook.cbk", files / "bins.json")
    assert list(schema.attributes) == list(SPECS)
    assert schema.attributes["BPL"] == ("1", "10", "0")
    assert schema.attributes["AGE"] == ("0", "1", "2", "3")
    assert schema.attributes["VALUEH"] == ("0 to less than 1000", "1000 to less than 9999998", "9999998 or more")
    assert dict(schema.edges) == {"VALUEH": (0.0, 1000.0, 9_999_998.0)}


def test_a_release_reads_the_files_of_the_contest(files, capsys):
    with (files / "d.csv").open("w", newline="") as file:
        csv.writer(file).writerows([SPECS, *([[10, 1, 3, 500]] * 40), *([[0, 2, 1, 9_999_998]] * 40)])
    (files / "groups.json").write_text('{"groups": [["SEX", "AGE"], ["BPL"], ["VALUEH"]]}')
    given = {"spec": "specs.json", "codebook": "codebook.cbk", "bins": "bins.json", "groups": "groups.json"}
    given |= {"data": "d.csv", "out": "out"}
    arguments = ["nist", "--epsilon=9", "--rows=5", "--seed=1", *(f"--{k}={files / v}" for k, v in given.items())]
    assert run("release", arguments) == 0
    assert "5 rows of 4 fields" in capsys.readouterr().out
    words = "--bins goes with --codebook: without it the bins of fields stand in --spec"
    refuses(
        ValueError,
        words,
        run,
        "release",
        [*(one for one in arguments if "codebook" not in one), f"--out={files / 'new'}"],
    )


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("specs.json", "[]", "specifications must be an object of one field or more, got []"),
        ("specs.json", '{"SEX": 2}', "specifications must be an object of one field or more, got {'SEX': 2}"),
        ("specs.json", '{"AGE": {"maxval": 1.5}}', "bins must be of fields of the specifications, got 'VALUEH'"),
        ("bins.json", '{"attributes": {"AGE": ["1"]}}', "VALUEH must have values in the codebook, a maxval below "),
        (
            "specs.json",
            '{"VALUEH": {}, "AGE": {"maxval": -1}}',
            "AGE must have values in the codebook, a maxval below ",
        ),
        ("codebook.cbk", "SEX\nno tabs", "codebook must list fields and their values as IPUMS does, got none in "),
    ],
)
def test_files_that_break_a_rule(files, name, content, words):
    (files / name).write_text(content)
    with pytest.raises(ValueError, match=r"^[^\n]*$") as caught:
        read_contest(files / "specs.json", files / "codebook.cbk", files / "bins.json")
    assert str(caught.value).startswith(words)


def test_a_codebook_must_be_there(tmp_path):
    with pytest.raises(ValueError, match=r"^codebook must be a file that can be read, got .*none\.cbk"):
        read_codebook(tmp_path / "none.cbk")
