"""Tables of results: what is put in comes out, and a write that fails leaves nothing behind."""

from pathlib import Path

import numpy as np
import pytest

from algorithms.release.frames import Frame
from tests.helpers import refuses


@pytest.fixture
def frame():
    return Frame({"CELL": ["2", "10", "3"], "COUNT": np.array([470, 0, -1]), "SHARE": [0.5, 1.25, 1e-9]})


def test_rows_have_values_of_python_and_a_frame_cannot_be_changed(frame):
    assert [type(value) for value in next(frame.rows())] == [str, int, float]
    assert repr(frame) == "Frame(3 rows: CELL, COUNT, SHARE)"
    assert (len(Frame({})), list(Frame({}).rows())) == (0, [])
    with pytest.raises(ValueError, match="read-only"):
        frame["COUNT"][0] = 1
    with pytest.raises(TypeError):
        frame["COUNT"] = [1, 2, 3]
    given = np.array([1, 2])
    Frame({"A": given}).to_dict()["B"] = given  # a copy of the mapping
    assert given.flags.writeable


def test_text_has_no_width():
    assert [type(value) for value in Frame({"A": np.array(["a", "bc"])})["A"]] == [str, str]
    assert Frame({"A": ["a\x00", "bc"]})["A"].tolist() == ["a\x00", "bc"]


def test_columns_of_different_lengths_are_refused():
    refuses(ValueError, "columns must have one length, got A 2, B 3", Frame, {"A": [1, 2], "B": [1, 2, 3]})


def test_a_written_table_has_the_line_ends_of_production(tmp_path, frame):
    frame.to_csv(str(tmp_path / "a.csv"), separator="|")
    assert (tmp_path / "a.csv").read_bytes() == b"CELL|COUNT|SHARE\n2|470|0.5\n10|0|1.25\n3|-1|1e-09\n"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_write_that_fails_leaves_nothing(tmp_path, frame, error):
    class Broken(Frame):
        def rows(self):
            yield "2", 470, 0.5
            raise error

    with pytest.raises(error):
        Broken(frame.to_dict()).to_csv(tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_after_the_naming_does_not_hide_behind_another_error(tmp_path, frame, monkeypatch):
    name = Path.hardlink_to

    def interrupted(path, part):
        name(path, part)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "hardlink_to", interrupted)
    with pytest.raises(KeyboardInterrupt):
        frame.to_csv(tmp_path / "a.csv")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]
    with pytest.raises(FileExistsError, match="is there: it stays"):
        frame.to_csv(tmp_path / "a.csv")
