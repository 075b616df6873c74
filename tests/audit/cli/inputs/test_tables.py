"""Files of counts and outputs: every line of data is data, and what could be read in two ways is refused."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.cli.inputs import tables
from audit.cli.inputs.tables import Table, read_counts
from tests.helpers import refused_like

HEADER = r" \(a first line is names if none of its fields is a number, nan, NA, inf, None or empty\)"


def read_outputs(*paths):
    return tables.read_outputs(*paths)[0]


@pytest.fixture
def file(tmp_path):
    """Write a file, and return its path."""

    def write(text, name="x.csv"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write


@pytest.mark.parametrize("lines", ["3,x,1", "3e0,x,1", "3,x,nan", "3,7,", "3,-nan,NA"])  # the last may be half written
def test_files_that_grow_are_read_as_before(file, lines, capsys):
    """Columns that begin empty, as a program adds them that meets a new entry, are left out."""
    begins = "a,b,c\n1,,\n2,y,\n"
    x, y = file(f"{begins}{lines}\n9,x"), file(begins, "y.csv")
    (read, other), names = tables.read_outputs(x, y, first=2)
    assert read[:2] == other == [(1.0, ""), (2.0, "y")]
    assert (len(read), read[2][0], names) == (3 + lines.count("\n"), 3.0, ("a", "b"))
    assert "column 'c' is left out: 2 lines begin without it" in capsys.readouterr().err


def test_numbers_of_a_file_that_grows_stay_numbers(file):
    x, y = file("a,b\n1,x\n2,y\nz,z\n"), file("a,b\n1,\n2,\n", "y.csv")
    where = f"{x} and {y}"
    with refused_like(ValueError, f"must hold only numbers, as the first 2 lines of {where} do, got 'z' in column 'a'"):
        tables.read_outputs(x, y, first=2)
    read_outputs(x, y)
    empty, array = file("a,b\n,\n,\n3,3\n"), x.with_suffix(".npy")
    np.save(array, np.arange(3.0))
    for other, words in ((empty, "must hold an entry in their first 2 lines, got none"), (array, "text, or both .npy")):
        with refused_like(ValueError, words):
            tables.read_outputs(empty, other, first=2)


def test_files_of_other_widths_are_refused(file):
    with refused_like(ValueError, "y.csv must have the same number of columns, got 1 and 2"):
        read_outputs(file("1,2\n3,4\n"), file("1\n2\n", "y.csv"))


@pytest.mark.parametrize("word", ["NaN", "NA", "-Infinity", "NONE", "-.5e3", '""'])
def test_a_value_in_the_first_line_is_data(file, word):
    (x, y) = read_outputs(file(f"{word}\n1\n2\n"), file(f"{word}\n1\n2\n", "y.csv"))
    assert len(x) == len(y) == 3
    assert x[1:].tolist() == [1, 2]
    assert math.isnan(x[0]) == (word.lower() in ("nan", "na", "none", '""'))


@pytest.mark.parametrize("text", ["people\n120\n75\n", "\ufeff120\n75", "120,75\n", "a,b\n120,75\n", '"120"\n"75"\n'])
def test_counts_with_and_without_names(file, text):
    assert read_counts(file(text)).tolist() == [120, 75]


@pytest.mark.parametrize(("text", "line"), [("\n1\n", 1), ("1\n2\n\n", 3), ("1\n \t\n2\n", 2), ("people\n1\n\r\n2", 3)])
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("people\n", "x.csv must hold at least one value, got none" + HEADER),
        ("1\n# 3\n2\n", "one count a line, got '# 3' in field 1 of line 2: records need --add-row or .*" + HEADER),
        ("1\n9007199254740993\n", r"whole numbers below 2\*\*53, got '9007199254740993' in field 1 of"),
        ("101,120\n102,75\n", "got 2 columns, '101,120': if .*; else keep one column"),
        ("1,200\n1,075\n", "got 2 columns, '1,200': if that is one number, .*, none for thousands"),
        ("n\n12,5\n7,5\n", "got 2 in line 2, '12,5': a number has no comma, and"),
        ('n\n12\n"1,200"\n', "must hold numbers without commas, got '1,200' in column 'n' of line 3: write a point"),
        ("n\n12.000\n75\n", "must hold counts, .*, got '12.000' in column 'n' of line 2"),
        ("n\n12\n-7\n", "must hold counts, whole numbers .*, got '-7' in column 'n' of line 3"),
        ("120\ninf\n", "must hold counts, whole numbers .*, got 'inf' in field 1 of line 2"),
        ('"","n"\n"1",12\n', "must name every column, got row names without a name in .*: row.names = FALSE in R"),
        ("1,5;2,5\n3;4\n", "got semicolons in line 1, '1,5;2,5': tr ',;' '.,' < .* .decimal commas become points.$"),
        ("a\tb\n3\t4\n", r"got tabs in line 1, 'a\\tb': tr ',\\t' '.,' <"),
        ('"a" "b"\n3 4\n', "got spaces in line 1, '\"a\" \"b\"': tr ', ' '.,' <"),
        ("1,2\n3\n", "x.csv must have 2 fields in every line, got 1 in line 2"),
        ("12O\n75\n", "x.csv must begin with names or values, and '12O' may be either" + HEADER),
        ("count,1_000\n75,3\n", "x.csv must begin with names or values, and '1_000' may be either" + HEADER),
        ('1\n"2\n', "x.csv must be comma-separated text: "),
    ],
)
def test_counts_that_cannot_be_read_are_one_line(file, text, words):
    with refused_like(ValueError, words):
        read_counts(file(text))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"gr\xf6\n1\n", "line 1 is probably Latin-1, got 'gr[?]': iconv -f latin1 -t utf-8 < .*x.csv > .*x-new.csv$"),
        (b"a,b\n1,2\n3,\x80 4\n", "line 3 is probably Windows-1252, got '[?] 4': iconv -f cp1252"),
        ("größe\n".encode() + b"\xfc\n", "line 2 is probably Latin-1, got '[?]': write it anew"),
        ("n\n1\n".encode("utf-16"), "line 1 is probably UTF-16, got '[?]*n[?]': iconv -f utf-16 "),
        ("n\n1\n".encode("utf-16-le"), "line 1 is probably UTF-16, got 'n[?]': iconv -f utf-16le "),
        ("n\n1\n".encode("utf-16-be"), "line 1 is probably UTF-16, got '[?]n[?]': iconv -f utf-16be "),
        (b"PK\3\4\xff", "is a workbook or an archive: save it as CSV"),
    ],
)
def test_another_encoding_is_told_by_line_and_value_with_the_command_that_converts(file, content, words):
    path = file("")
    path.write_bytes(content)
    with refused_like(ValueError, f"x.csv must be text in UTF-8, and {words}"):
        read_counts(path)


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
        (("many\nfew\n", "few\nmany\n"), "x.csv and .*y.csv begin with the same line of names, got 'few' in"),
        (("1\nmany\n", "1\n2\n"), "x.csv must hold numbers, or .* begin with the same line of names, got 'many'"),
        (("1,7\n2,07\n", "1,8\n2,7\n"), "x.csv must have names .*, or points for decimal commas, got '2,07' in line 2"),
        (("a,b\n1,2\n", "b,a\n2,1\n"), "must both begin with the same line of names, or neither, got a, b and b, a"),
        (("people\n1\n", "1\n2\n"), "the same line of names, or neither, got people and none" + HEADER),
    ],
)
def test_a_run_is_never_taken_for_a_name(file, texts, words):
    x, y = texts
    with refused_like(ValueError, words):
        read_outputs(file(x), file(y, "y.csv"))


NOISE = np.random.default_rng(1).normal(size=40).round(3)
LONG = "".join(f"{run},{key},{NOISE[2 * run + key]}\n" for run in range(20) for key in range(2))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run,n\n" + "".join(f"{3 * k},{n}\n" for k, n in enumerate(NOISE)), "'run' rises .* .0, 3, .*: leave it out"),
        ("w,run\n" + "".join(f"a,r{k}\n" for k in range(40)), "'run' rises .* .r0, r1, r2, r3, .*: leave it out"),
        ("n,day\n" + "".join(f"{n},{k % 20 + 1:02}.{k // 20 + 1}.26\n" for k, n in enumerate(NOISE)), "'day' rises"),
        ("run,key,n\n" + LONG, "'run' repeats .* .0, 0, 1, 1, ...*: .*if several lines are one run, pivot the table"),
        ("".join(f"{n}\n" for n in np.sort(NOISE)[::-1]), "field 1 falls .*; else keep the order in which the"),
    ],
)
def test_what_numbers_the_runs_is_named_and_so_is_long_format(file, text, words):
    """Independent rows are refused with probability below 1e-11: two of 40! orders rise or fall."""
    shuffled = text.splitlines(keepends=True)
    shuffled[1:] = np.random.default_rng(2).permutation(shuffled[1:]).tolist()
    read_outputs(file("".join(shuffled)))
    with refused_like(ValueError, rf"x\.csv: .*{words}"):
        read_outputs(file(text))


def test_run_numbers_in_any_order_and_words_among_numbers_are_told(file, capsys):
    """A column that has each of 40 whole numbers once: by any law with probability below 1e-15."""
    runs = np.random.default_rng(3).permutation(np.arange(7, 47))
    with refused_like(ValueError, r"column 'run' numbers the lines \(.*: leave it out"):
        read_outputs(file("run,n\n" + "".join(f"{k},{n}\n" for k, n in zip(runs, NOISE, strict=True))))
    text = "n\n" + "".join(f"{n}\n" for n in NOISE)
    read_outputs(file(f"{text}NULL\n"))
    assert "column 'n' read as words, for 'NULL' in line 42 is no number" in capsys.readouterr().err
    read_outputs(file("100,3\n99,7\n"))
    assert "read as 2 columns, divided by commas" in capsys.readouterr().err


def test_arrays_are_given_on_as_they_are(file, tmp_path):
    np.save(tmp_path / "y.npy", np.array(["many", "few"]))
    np.save(tmp_path / "z.npy", np.array([[1.5, math.nan]]))
    y, z = read_outputs(tmp_path / "y.npy", tmp_path / "z.npy")
    assert (y.tolist(), z.shape) == (["many", "few"], (1, 2))
    x, z = read_outputs(file("1,2\n"), tmp_path / "z.npy")
    assert (x.tolist(), z.shape) == ([[1, 2]], (1, 2))
    with refused_like(ValueError, r"x\.csv must hold numbers, as the other file does"):
        read_outputs(file("word\nmany\n"), tmp_path / "z.npy")


@pytest.mark.parametrize("cut", [7, 100, 130])
def test_a_damaged_array_is_one_line(tmp_path, cut):
    """Whatever a parser raises over a header that ends too soon."""
    path = tmp_path / "x.npy"
    np.save(path, np.arange(9.0))
    path.write_bytes(path.read_bytes()[:cut])
    with refused_like(ValueError, r"x\.npy must hold an array of numbers or words: "):
        read_counts(path)


@pytest.mark.parametrize("kind", ["<U0", []])
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
