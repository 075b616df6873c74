"""Files of counts and outputs: every line of data is data, and what could be read in two ways is refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.cli.inputs.tables import Table, read_counts, read_outputs
from tests.helpers import refused_like

HEADER = r" \(a first line is names if none of its fields is a number, nan, NA, inf, None or empty\)"


@pytest.fixture
def file(tmp_path):
    """Write a file, and return its path."""

    def write(text, name="x.csv"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write


# A line of names, or data


@pytest.mark.parametrize("word", ["nan", "NaN", "NA", "na", "inf", "-Infinity", "None", "NONE", "7", "-.5e3", '""'])
def test_a_value_in_the_first_line_is_data(file, word):
    (x, y) = read_outputs(file(f"{word}\n1\n2\n"), file(f"{word}\n1\n2\n", "y.csv"))
    assert len(x) == len(y) == 3
    assert x[1:].tolist() == [1, 2]
    assert math.isnan(x[0]) == (word.lower() in ("nan", "na", "none", '""'))


@pytest.mark.parametrize("text", ["people\n120\n75\n", "\ufeff120\n75", "120,75\n", "a,b\n120,75\n", '"120"\n"75"\n'])
def test_counts_with_and_without_names(file, text):
    assert read_counts(file(text)).tolist() == [120, 75]


@pytest.mark.parametrize(
    ("text", "line"),
    [("1\n\n2\n", 2), ("\n1\n", 1), ("1\n2\n\n", 3), ("1\n \t\n2\n", 2), ("1\n  ", 2), ("people\n1\n\r\n2", 3)],
)
def test_a_blank_line_is_refused_by_number(file, text, line):
    for read in (read_counts, read_outputs):
        with refused_like(ValueError, rf"x\.csv must have no blank line, which would shift .*, got line {line}$"):
            read(file(text))


@given(st.lists(st.one_of(st.floats(width=64), st.integers(-(2**53) + 1, 2**53 - 1)), min_size=1), st.booleans())
def test_every_number_is_read_as_it_is_written(tmp_path_factory, values, named):
    path = tmp_path_factory.getbasetemp() / "numbers.csv"
    path.write_text("".join(f"{line}\n" for line in [*(["output"] if named else []), *values]))
    (read,) = read_outputs(path)
    np.testing.assert_array_equal(read, np.array(values, dtype=float))


def test_comments_are_no_comments(file):
    with refused_like(
        ValueError, rf"must hold numbers, one count a line, got '# 3': records need --add-row or .*{HEADER}"
    ):
        read_counts(file("1\n# 3\n2\n"))


def test_what_a_float_cannot_hold_is_refused(file):
    with refused_like(ValueError, r"x\.csv must hold whole numbers below 2\*\*53, got 9007199254740993"):
        read_counts(file("1\n9007199254740993\n"))
    assert read_counts(file("1\n1e300\n")).tolist() == [1, 1e300]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "x.csv must hold at least one value, got none" + HEADER),
        ("people\n", "x.csv must hold at least one value, got none" + HEADER),
        (
            "people\n120\nmany\n",
            "x.csv must hold numbers, one count a line, got 'many': records need --add-row or --replace-row.*" + HEADER,
        ),
        ("1,120\n2,75\n", "x.csv must hold one count a line, got 2 fields in a line: a decimal comma is read as two"),
        ("1,2\n3\n", "x.csv must have 2 fields in every line, got 1 in line 2"),
        ("a,b\n1\n", "x.csv must have 2 fields in every line, got 1 in line 2"),
        ("12O\n75\n", "x.csv must begin with names or values, and '12O' may be either" + HEADER),
        ("count,1_000\n75,3\n", "x.csv must begin with names or values, and '1_000' may be either" + HEADER),
        ('1\n"2\n', "x.csv must be comma-separated text: "),
        ("age;sex\n30;f\n", "^.*x.csv must separate fields by commas, and counts by lines, got ';' in its first line$"),
        ("age\tsex\n30\tf\n", r"x.csv must separate fields by commas, .*, got '\\t' in its first line$"),
        ("1;2\n3;4\n", "x.csv must separate fields by commas, and counts by lines, got ';' in its first line$"),
    ],
)
def test_counts_that_cannot_be_read_are_one_line(file, text, words):
    with refused_like(ValueError, words):
        read_counts(file(text))


# Outputs on two databases


def test_words_are_read_below_a_line_of_names(file):
    x, y = read_outputs(file("word\nmany\nfew\nmany\n"), file("word\nfew\n7.0\nnan\n", "y.csv"))
    assert (x, y) == (["many", "few", "many"], ["few", "7.0", "nan"])


def test_what_a_column_holds_is_settled_over_both_files(file):
    """On x the first column happens to hold numbers only; on y it does not, so that it holds words on either."""
    x, y = read_outputs(file("a,b\n7.0,1\n8,NA\n"), file("a,b\nnone of them,3\n", "y.csv"))
    assert (y, x[0]) == ([("none of them", 3.0)], ("7.0", 1.0))
    assert (x[1][0], math.isnan(x[1][1])) == ("8", True)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (("many\nfew\n", "few\nmany\n"), "x.csv and .*y.csv must begin with the same line of names, since they hold"),
        (("1\nmany\n", "1\n2\n"), "must begin with the same line of names, since they hold words" + HEADER),
        (("people\n1\n", "1\n2\n"), "must both begin with a line of names, or neither" + HEADER),
    ],
)
def test_a_run_is_never_taken_for_a_name(file, texts, words):
    x, y = texts
    with refused_like(ValueError, words):
        read_outputs(file(x), file(y, "y.csv"))


def test_arrays_are_given_on_as_they_are(file, tmp_path):
    np.save(tmp_path / "y.npy", np.array(["many", "few"]))
    np.save(tmp_path / "z.npy", np.array([[1.5, math.nan]]))
    y, z = read_outputs(tmp_path / "y.npy", tmp_path / "z.npy")
    assert (y.tolist(), z.shape) == (["many", "few"], (1, 2))
    x, z = read_outputs(file("1,2\n"), tmp_path / "z.npy")
    assert (x.tolist(), z.shape) == ([[1, 2]], (1, 2))
    with refused_like(ValueError, r"x\.csv must hold numbers, as the other file does"):
        read_outputs(file("word\nmany\n"), tmp_path / "z.npy")


@pytest.mark.parametrize("cut", [7, 40, 100, 130])
def test_a_damaged_array_is_one_line(tmp_path, cut):
    """Whatever a parser raises over a header that ends too soon."""
    path = tmp_path / "x.npy"
    np.save(path, np.arange(9.0))
    path.write_bytes(path.read_bytes()[:cut])
    with refused_like(ValueError, r"x\.npy must hold an array of numbers or words: "):
        read_counts(path)


@pytest.mark.parametrize("kind", ["<U0", "|V0", []])
def test_a_header_cannot_promise_a_billion_empty_values(tmp_path, kind):
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": (10**9,)})
    assert (tmp_path / "x.npy").stat().st_size == 128
    with refused_like(ValueError, r"x\.npy must hold an array of numbers or words: it has dtype "):
        read_outputs(tmp_path / "x.npy", tmp_path / "x.npy")


def test_a_pipe_is_read_once(file, monkeypatch):
    path = file("people\n1\n2\n")
    calls, opened = [], Path.open
    monkeypatch.setattr(Path, "open", lambda self, *given: calls.append(self) or opened(self, *given))
    table = Table.read(path)
    assert (table.names, table.numbers.tolist(), table.columns) == (("people",), [[1], [2]], [["1", "2"]])
    assert calls == [path]
