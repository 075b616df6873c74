"""Make hostile text safe: remove control characters for terminals, and disarm formulas for spreadsheets."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["MISSING", "SUMS", "from_cell", "in_cell", "printable", "quoted", "shown"]

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
FORMULAS = ("=", "+", "-", "@", "\N{MINUS SIGN}")  # their first characters, after blanks, quotes and invisible ones
QUOTES = " \"'`\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}" + (
    "\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
)
ENDS = re.compile(r"([;\t\r\n])")  # some spreadsheets end a cell here, even inside quotes
LINE_ENDS = re.compile("(\r?\n)")
SUMS = (
    r"(?i)(.*[\s_:,.()/-])?(sub|grand)?-?(totals?|totale[ns]?|totaal|totalt|insgesamt|gesamt|gesamtsumme|ensemble)"
    r"([\s_:,.()/-].*)?|_t|tot|all( (areas|regions|states|counties|districts|municipalities|persons|people))?|sum|suma"
    r"|summe|overall|zusammen|tout|tous|toutes|tutti|tutte|todos|todas|geral|samtliga|i alt|yhteensä|razem|ogółem"
    r"|celkem|összesen|ukupno|toplam|всего|итого|σύνολο|合计|合計|everywhere|nationwide"
)
"""Names of totals: a row with such a name would count people twice. A pattern for whole names, in Python and SQL."""
MISSING = r"(?i)#?n/?a|nan|null|none|missing|unknown|not (known|stated)|\.|\?|-+|-[0-9]|9{3,}"
"""Names that may mean a missing area. A pattern for whole names, in Python and SQL."""
OTHER, LONGEST = re.compile("[^ -~]"), 30  # not printable ASCII; most characters that `quoted` shows


def printable(words: str) -> str:
    """Return hostile text in one line, with one space for each run of unprintable characters and blanks."""
    return " ".join(_spaced(words).split())


def shown(text: str) -> str:
    """Return text with a space for each unprintable character; ends of lines stay."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(part if number % 2 else _spaced(part) for number, part in enumerate(LINE_ENDS.split(text)))


def quoted(words: str) -> str:
    """Return text of a file in quotes for a message, as one short line of printable ASCII."""
    known = OTHER.sub("?", words)
    return f"'{known[:LONGEST]}...'" if len(known) > LONGEST else f"'{known}'"


def in_cell(words: str) -> str:
    """Return text for a cell of a CSV file, with an apostrophe before each part that a spreadsheet would compute."""
    # Some spreadsheets compute text after a semicolon inside quotes. A part that begins with an apostrophe gets another
    # one, so that `from_cell` can restore the text. A number, such as a code of -1, stays unchanged.
    if words.isalnum() or NUMBER.fullmatch(words):
        return words
    return "".join(f"'{part}" if _computed(part) or part[:1] == "'" else part for part in ENDS.split(words))


def from_cell(words: str) -> str:
    """Undo `in_cell`: return the original text of a cell."""
    return "".join(part.removeprefix("'") for part in ENDS.split(words)) if "'" in words else words


def _spaced(words: str) -> str:
    if words.isprintable():
        return words
    return "".join(letter if letter.isprintable() else " " for letter in words)


def _computed(part: str) -> bool:
    """Return whether a spreadsheet would compute the text; some accept full-width and small forms of the signs."""
    return unicodedata.normalize("NFKC", _spaced(part)).lstrip(QUOTES)[:1] in FORMULAS
