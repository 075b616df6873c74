"""Files of releases: exact for a reader who knows the rule, and no formula for a spreadsheet."""

from __future__ import annotations

import csv

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from algorithms.release.engine import check_folder, publishing, write_rows
from audit.io.text import from_cell
from tests.helpers import refused

FIELD = st.text(st.sampled_from("=-@'\";,|\t\r\n ab1é\x1b"), max_size=6) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=4
)


def read(path, separator=","):
    with path.open(encoding="utf-8", newline="") as file:
        return [list(map(from_cell, row)) for row in csv.reader(file, delimiter=separator)]


@settings(max_examples=60)
@given(st.lists(st.tuples(FIELD, FIELD, st.integers()), max_size=4), st.sampled_from(",|"))
@example([("a\rb", "=1\n+1", -3)], ",")
@example([("", "'", 0)], "|")
def test_every_text_comes_back(tmp_path_factory, rows, separator):
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    write_rows(path, ["=A", "b\r", "N"], rows, separator=separator)
    assert read(path, separator) == [["=A", "b\r", "N"], *[[*words, str(number)] for *words, number in rows]]


def test_a_folder_is_no_link_to_itself(tmp_path):
    link = tmp_path / "out"
    link.symlink_to(link)
    with refused(ValueError, f"out must be a new or an empty folder, got {link}"):
        check_folder(link)


@pytest.mark.parametrize(
    ("code", "told"),
    [("=cmd()!A0", "'=cmd()!A0"), ("@SUM(1)", "'@SUM(1)"), ("+1+1", "'+1+1"), ("-1+1", "'-1+1"), ("x;=1", "x;'=1")],
)
def test_a_code_is_no_formula_and_a_negative_count_is_a_number(tmp_path, code, told):
    write_rows(tmp_path / "a.csv", ["AREA", "COUNT"], [(code, -4), ("plain", 2.5)])
    header, first, second = (tmp_path / "a.csv").read_text().splitlines()
    assert (header, second) == ("AREA,COUNT", "plain,2.5")
    assert first == f"{told},-4"


def test_a_folder_that_holds_something_is_refused_before_noise_is_drawn(desk):
    desk({"text.txt": "mine"})
    with pytest.raises(ValueError, match=r"^out must be a new or an empty folder"), publishing(".", "secure"):
        pytest.fail("noise was drawn")


def test_a_folder_that_cannot_be_made_is_refused_before_noise_is_drawn():
    with pytest.raises(OSError, match="/proc/"), publishing("/proc/nowhere/out", "secure"):
        pytest.fail("noise was drawn")
