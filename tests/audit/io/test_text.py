"""Hostile text: nothing of it is a command, and what spreadsheets get is given back letter by letter."""

import csv
import io
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from audit.io.text import from_cell, in_cell, printable, shown

LETTERS = "=+-@\N{MINUS SIGN}\N{FULLWIDTH EQUALS SIGN}\N{SMALL COMMERCIAL AT}'\"`,;|\t\r\n ab1.e\x00\x1b\ud800"
WORDS = st.text(st.sampled_from(LETTERS), max_size=8) | st.text(max_size=8)


@settings(max_examples=30)
@given(WORDS)
@example("'=1")
@example("''")
@example(";'=1;'")
def test_a_cell_gives_back_its_text(words):
    """So that no two texts share a cell."""
    assert from_cell(in_cell(words)) == words


@given(WORDS, st.sampled_from([",", ";", "\t"]))
def test_no_spreadsheet_computes_a_cell_wherever_it_splits(words, separator):
    """Each piece is what somebody sees in a cell who splits there; quotes count beside commas."""
    line = io.StringIO(newline="")
    csv.writer(line).writerow([in_cell(words).replace("\x00", " ")])
    quoting = csv.QUOTE_MINIMAL if separator == "," else csv.QUOTE_NONE
    for row in csv.reader(io.StringIO(line.getvalue(), newline=""), delimiter=separator, quoting=quoting):
        for cell in row:
            normalized = unicodedata.normalize("NFKC", cell).lstrip(" \"'`")
            assert normalized[:1] not in ("=", "@") or cell.lstrip('" ')[:1] == "'"


@pytest.mark.reliability(row=9)
@pytest.mark.parametrize(
    ("words", "cell"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("\uff1d1+1", "'\uff1d1+1"),
        (' "=1', "' \"=1"),
        ("+1.5", "+1.5"),
        ("-1;-1", "'-1;'-1"),
        ("-\u0661", "'-\u0661"),
        ("cell (3, -1)", "cell (3, -1)"),
        ("-", "'-"),
        ("north;=1", "north;'=1"),
        ("'tis", "''tis"),
        ("65+", "65+"),
        ("", ""),
    ],
)
def test_what_looks_like_a_formula_is_text(words, cell):
    assert in_cell(words) == cell


@settings(max_examples=300)
@given(st.text(st.sampled_from("ab \r\n\t\x1b\x07\x9b\u202e\u2028\ud800\xa0é"), max_size=12))
def test_nothing_but_ends_of_lines_is_kept_of_what_a_terminal_obeys(text):
    safe = shown(text)
    assert all(line.isprintable() for line in safe.replace("\r\n", "\n").split("\n"))
    assert len(safe) == len(text)
    assert [at for at, letter in enumerate(safe) if letter == "\n"] == [n for n, c in enumerate(text) if c == "\n"]
    assert all(new in (old, " ") for new, old in zip(safe, text, strict=True))
    assert shown(safe) == safe
    assert printable(text) == " ".join(safe.split())
    assert printable(text).isprintable()
