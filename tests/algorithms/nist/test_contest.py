"""The contest's codebook and specifications: which values each field may have, read before any record."""

from pathlib import Path

import pytest

from algorithms.nist.contest import read_codebook, read_contest
from tests.algorithms.releases import refused_in_one_line, released
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


FILES = ("specs.json", "codebook.cbk", "bins.json")


@pytest.fixture(autouse=True)
def files(desk):
    desk({"specs.json": SPECS, "bins.json": BINS})
    Path("codebook.cbk").write_bytes(BOOK.encode() + b" LABEL\t\tA letter of another encoding\n1\t\t\xe9\n")


def test_a_codebook_lists_values_without_leading_zeros():
    assert read_codebook("codebook.cbk") == {"SEX": ("1", "2"), "BPL": ("1", "10", "0"), "LABEL": ("1",)}
    words = "codebook must be a file that can be read, got none.cbk (No such file or directory)"
    refuses(ValueError, words, read_codebook, "none.cbk")


def test_values_are_of_the_codebook_then_of_maxval_and_special_bins_come_first():
    schema = read_contest(*FILES)
    assert list(schema.attributes) == list(SPECS)
    assert schema.attributes["BPL"] == ("1", "10", "0")
    assert schema.attributes["AGE"] == ("0", "1", "2", "3")
    assert schema.attributes["VALUEH"] == ("0 to less than 1000", "1000 to less than 9999998", "9999998 or more")
    assert dict(schema.edges) == {"VALUEH": (0.0, 1000.0, 9_999_998.0)}


def test_a_release_reads_the_files_of_the_contest(desk, capsys):
    desk({"d.csv": [list(SPECS), *[[10, 1, 3, 500]] * 40, *[[0, 2, 1, 9_999_998]] * 40]})
    desk({"groups.json": {"groups": [["SEX", "AGE"], ["BPL"], ["VALUEH"]]}})
    given = {"spec": "specs.json", "codebook": "codebook.cbk", "bins": "bins.json", "groups": "groups.json"}
    given |= {"data": "d.csv", "out": "out", "epsilon": 9, "rows": 5, "seed": 1}
    assert released("nist", **given) == 0
    assert "5 rows of 4 fields" in capsys.readouterr().out
    words = "--bins goes with --codebook: without it the bins of fields stand in --spec"
    refused_in_one_line(capsys, words, "nist", **given | {"codebook": None, "out": "new"})


LEVELS = "must have values in the codebook, a maxval below 1,000,000, or bins, got maxval"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("specs.json", "[]", "specifications must be an object of one field or more, got []"),
        ("specs.json", {"AGE": {"maxval": 1.5}}, "bins must be of fields of the specifications, got 'VALUEH'"),
        ("bins.json", {"attributes": {"AGE": ["1"]}}, f"VALUEH {LEVELS} 9999998"),
        ("specs.json", {"VALUEH": {}, "AGE": {"maxval": -1}}, f"AGE {LEVELS} -1"),
        ("codebook.cbk", "SEX", "codebook must list fields and their values as IPUMS does, got none in codebook.cbk"),
    ],
)
def test_files_that_break_a_rule(desk, name, content, words):
    desk({name: content})
    refuses(ValueError, words, read_contest, *FILES)
