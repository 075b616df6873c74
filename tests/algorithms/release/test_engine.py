"""Files of releases: exact for a reader who knows the rule, and no formula for a spreadsheet."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from algorithms.release.engine import publishing, read_rows, write_rows

FIELD = st.text(st.sampled_from("=-@'\";,|\t\r\n ab1é\x1b"), max_size=6) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=4
)


@settings(max_examples=60)  # each syncs a file
@given(st.lists(st.tuples(FIELD, FIELD, st.integers()), max_size=4), st.sampled_from(",|"))
@example([("a\rb", "=1\n+1", -3)], ",")
@example([("", "'", 0)], "|")
def test_every_text_comes_back(tmp_path_factory, rows, separator):
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    write_rows(path, ["=A", "b\r", "N"], rows, separator=separator)
    assert read_rows(path, separator=separator) == [
        ["=A", "b\r", "N"],
        *[[*words, str(number)] for *words, number in rows],
    ]


def test_a_code_is_no_formula_and_a_negative_count_is_a_number(tmp_path):
    write_rows(tmp_path / "a.csv", ["AREA", "COUNT"], [("=cmd()!A0", -4), ("x;=1", 2.5)])
    assert (tmp_path / "a.csv").read_text() == "AREA,COUNT\n'=cmd()!A0,-4\nx;'=1,2.5\n"


def test_a_folder_is_refused_before_noise_is_drawn(desk):
    Path("full").mkdir()
    desk({"full/text.txt": "mine"})
    Path("loop").symlink_to("loop")
    for folder, error, words in (
        ("full", ValueError, "^out must be a new or an empty folder, got full$"),
        ("loop", ValueError, "^out must be a new or an empty folder, got loop$"),
        ("/proc/nowhere/out", OSError, "/proc/"),
    ):
        with pytest.raises(error, match=words), publishing(folder, "secure"):
            pytest.fail("noise was drawn")
