"""Hostile text made safe for what shows it: control characters for terminals, formulas for spreadsheets."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["MISSING", "SUMS", "from_cell", "in_cell", "printable", "quoted", "shown"]

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
FORMULAS = ("=", "+", "-", "@", "\N{MINUS SIGN}")  # what they begin with, after blanks, quotes and what cannot be seen
QUOTES = " \"'`\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}" + (
    "\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
)
ENDS = re.compile(r"([;\t\r\n])")  # of cells, for some spreadsheet or other, even inside quotes
LINE_ENDS = re.compile("(\r?\n)")
SUMS = (
    r"(?i)(.*[\s_:,.()/-])?(sub|grand)?-?(totals?|totale[ns]?|totaal|totalt|insgesamt|gesamt|gesamtsumme|ensemble)"
    r"([\s_:,.()/-].*)?|_t|tot|all( (areas|regions|states|counties|districts|municipalities|persons|people))?|sum|suma"
    r"|summe|overall|zusammen|tout|tous|toutes|tutti|tutte|todos|todas|geral|samtliga|i alt|yhteensä|razem|ogółem"
    r"|celkem|összesen|ukupno|toplam|всего|итого|σύνολο|合计|合計|everywhere|nationwide"
)
"""Names of sums: a row of such a name counts everybody twice. A pattern for whole names, in Python and SQL."""
MISSING = r"(?i)#?n/?a|nan|null|none|missing|unknown|not (known|stated)|\.|\?|-+|-[0-9]|9{3,}"
"""Names of areas that may stand for a missing one; also such a pattern."""
OTHER, LONGEST = re.compile("[^ -~]"), 30  # than printable ASCII; letters that are quoted


def printable(words: str) -> str:
    """Return words, hostile text, in one line, with a space for every run of what cannot be printed."""
    return " ".join(_spaced(words).split())


def shown(text: str) -> str:
    """Return text of several lines with a space for every character that cannot be printed, but for ends of lines."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(part if number % 2 else _spaced(part) for number, part in enumerate(LINE_ENDS.split(text)))


def quoted(words: str) -> str:
    """Return words of a file as a message quotes them: in one short line of printable ASCII."""
    known = OTHER.sub("?", words)
    return f"'{known[:LONGEST]}...'" if len(known) > LONGEST else f"'{known}'"


def in_cell(words: str) -> str:
    """Return text as a CSV file for spreadsheets holds it: an apostrophe before whatever one would compute."""
    # Some compute what stands after a semicolon inside of quotes. Each part that begins with an apostrophe gets one,
    # too, so that `from_cell` gives back the text. A number, such as a code of -1, stays as it is.
    if words.isalnum() or NUMBER.fullmatch(words):
        return words
    return "".join(f"'{part}" if _computed(part) or part[:1] == "'" else part for part in ENDS.split(words))


def from_cell(words: str) -> str:
    """Return the text of which `in_cell` made what a file holds."""
    return "".join(part.removeprefix("'") for part in ENDS.split(words)) if "'" in words else words


def _spaced(words: str) -> str:
    if words.isprintable():
        return words
    return "".join(letter if letter.isprintable() else " " for letter in words)


def _computed(part: str) -> bool:
    """Tell whether a spreadsheet would compute; the full-width and small forms of signs are those signs to some."""
    return unicodedata.normalize("NFKC", _spaced(part)).lstrip(QUOTES)[:1] in FORMULAS
