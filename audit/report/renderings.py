"""Audits as lines, as tables for readers, and as data for programs: the same cells in every form."""

from __future__ import annotations

import importlib
import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, Literal

from audit.report.formatting import COLUMNS, VALUES, WARNING, cells, line, named, row, values
from audit.results import AuditResult

__all__ = [
    "FORMS",
    "render",
    "to_csv",
    "to_frame",
    "to_json",
    "to_latex",
    "to_lines",
    "to_markdown",
    "to_text",
]

FIGURES = {"runs force at least", "confidence", "would have seen from", "ceiling"}  # set flush right
WIDE = {"event", "pair", "neighbors: one ..."}  # of many words, which may be broken
HOSTILE = {"name", "mechanism", "event", "witness", "pair"}  # written by others
FORMULAS = ("=", "+", "-", "@", "\N{MINUS SIGN}")  # what they begin with, after blanks and quotes
QUOTES = " \"'`\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}" + (
    "\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
)
# Brackets and asterisks would be arguments of the end of a line, quotation marks commands of some languages.
LATEX = {
    **{letter: f"\\{letter}" for letter in "{}$&#%_"},
    **{letter: f"{{{letter}}}" for letter in "[*-'`"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",
    "\N{LATIN SMALL LETTER SHARP S}": r"\ss{}",
    "\N{LATIN SMALL LETTER AE}": r"\ae{}",
    "\N{LATIN CAPITAL LETTER AE}": r"\AE{}",
    "\N{LATIN SMALL LETTER O WITH STROKE}": r"\o{}",
    "\N{LATIN CAPITAL LETTER O WITH STROKE}": r"\O{}",
    "\N{LATIN SMALL LETTER L WITH STROKE}": r"\l{}",
    "\N{LATIN CAPITAL LETTER L WITH STROKE}": r"\L{}",
    "\N{LATIN SMALL LIGATURE OE}": r"\oe{}",
    "\N{LATIN CAPITAL LIGATURE OE}": r"\OE{}",
}
ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0327": "c",
}  # combining marks, and LaTeX's names of them


def to_lines(results: Sequence[AuditResult], names: Sequence[str] | None = None) -> str:
    """Return one line an audit, which begins with its name if that is not its mechanism's.

    Parameters
    ----------
    results : sequence of AuditResult
        The audits.
    names : sequence of str, optional
        What to call each; default: its mechanism.

    Returns
    -------
    str
        Lines, each `str` of its result.

    Raises
    ------
    ValueError
        If there are not as many names as results.
    """
    said = [(row(result, name), line(result)) for result, name in named(results, names)]
    return _joined([words if r["name"] == r["mechanism"] else f"{r['name']}: {words}" for r, words in said])


def to_text(results: Sequence[AuditResult], names: Sequence[str] | None = None) -> str:
    """Return a table of plain text, one line an audit, as long as it takes.

    Parameters
    ----------
    results, names
        As `to_lines` takes them.

    Returns
    -------
    str
        Lines whose columns are flush in a font of one width.

    Raises
    ------
    ValueError
        If there are not as many names as results.
    """
    rows = [list(COLUMNS), *(list(said.values()) for said in _rows(results, names))]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    lines = [
        "  ".join(
            " " * (width - _width(cell)) + cell if title in FIGURES else cell + " " * (width - _width(cell))
            for title, cell, width in zip(COLUMNS, cells, widths, strict=True)
        ).rstrip()
        for cells in rows
    ]
    return _joined([*_warning(results, "{}"), *lines])


def to_markdown(results: Sequence[AuditResult], names: Sequence[str] | None = None) -> str:
    """Return a table in the Markdown of GitHub.

    Parameters
    ----------
    results, names
        As `to_lines` takes them.

    Returns
    -------
    str
        Names, events and labels stand in code spans, where nothing becomes a link, an image, markup or a mention.

    Raises
    ------
    ValueError
        If there are not as many names as results.
    """
    rule = ["---:" if title in FIGURES else ":---" for title in COLUMNS]
    rows = [
        [_in_code(cell) if title in HOSTILE else cell for title, cell in said.items()] for said in _rows(results, names)
    ]
    lines = [f"| {' | '.join(entries)} |" for entries in (COLUMNS, rule, *rows)]
    return _joined([*_warning(results, "**{}**\n"), *lines])


def to_latex(results: Sequence[AuditResult], names: Sequence[str] | None = None) -> str:
    r"""Return a ``tabular`` of LaTeX, which needs no package.

    Parameters
    ----------
    results, names
        As `to_lines` takes them.

    Returns
    -------
    str
        A fragment for ``\input``, in ASCII: letters with accents as commands, and letters of other scripts as the
        numbers of their code points, since no font of LaTeX's own has them.

    Raises
    ------
    ValueError
        If there are not as many names as results.
    """
    kinds = ["r" if title in FIGURES else "p{4cm}" if title in WIDE else "l" for title in COLUMNS]
    rows = [" & ".join(map(_in_latex, said.values())) + r" \\" for said in _rows(results, names)]
    head = " & ".join(map(_in_latex, COLUMNS)) + r" \\"
    begin, end = rf"\begin{{tabular}}{{{''.join(kinds)}}}", r"\end{tabular}"
    lines = [begin, r"\hline", head, r"\hline", *rows, r"\hline", end]
    return _joined([*_warning(results, "\\textbf{{{}}}\\par"), *lines])


def to_csv(results: Sequence[AuditResult], names: Sequence[str] | None = None) -> str:
    r"""Return comma-separated values as RFC 4180 has them, with a header.

    Parameters
    ----------
    results, names
        As `to_lines` takes them.

    Returns
    -------
    str
        Lines that end in ``"\r\n"``, to be written in UTF-8 and without translating them. Words are quoted, with an
        apostrophe before what a spreadsheet would compute; numbers are not.

    Raises
    ------
    ValueError
        If there are not as many names as results.
    """
    lines = [",".join(VALUES)]
    for result, name in named(results, names):
        raw, said = values(result, name), cells(result, name)
        number = {key: isinstance(raw[key], int | float) and key != "confidential" for key in raw}
        lines.append(",".join(cell if number[key] or not cell else _in_csv(cell) for key, cell in said.items()))
    return "".join(f"{entry}\r\n" for entry in lines)


def to_json(results: Sequence[AuditResult], names: Sequence[str] | None = None) -> str:
    """Return strict JSON of everything that the results hold, with numbers as they are.

    Parameters
    ----------
    results, names
        As `to_lines` takes them.

    Returns
    -------
    str
        An object with one entry a name; ASCII, so that nothing in it can command a terminal.

    Raises
    ------
    ValueError
        If there are not as many names as results, or one stands twice.
    """
    found = {name: result.to_dict() for result, name in named(results, names)}
    if len(found) < len(results):
        raise ValueError(f"names must differ to be keys of JSON, got {len(results)} results with {len(found)} names")
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def to_frame(
    results: Sequence[AuditResult],
    names: Sequence[str] | None = None,
    *,
    library: Literal["pandas", "polars"] = "pandas",
) -> Any:
    """Return a data frame, with numbers as they are.

    Parameters
    ----------
    results, names
        As `to_lines` takes them.
    library : {"pandas", "polars"}
        Whose frame; it is imported here.

    Returns
    -------
    pandas.DataFrame or polars.DataFrame
        One row an audit, with the columns `values`.

    Raises
    ------
    ValueError
        If there are not as many names as results, or the library is neither of the two.
    ImportError
        If the library is not installed.
    """
    if library not in ("pandas", "polars"):
        raise ValueError(f'library must be "pandas" or "polars", got {library!r}')
    rows = [values(result, name) for result, name in named(results, names)]
    columns = {key: [row[key] for row in rows] for key in VALUES}
    try:
        frames = importlib.import_module(library)
    except ImportError as error:
        raise ImportError(f"a data frame needs {library}: pip install {library}") from error
    return frames.DataFrame(columns)


FORMS: dict[str, Callable[[Sequence[AuditResult], Sequence[str] | None], str]] = {
    "text": to_text,
    "markdown": to_markdown,
    "latex": to_latex,
    "csv": to_csv,
    "line": to_lines,
    "json": to_json,
}


def render(results: Sequence[AuditResult], names: Sequence[str] | None = None, form: str = "text") -> str:
    """Return audits in one of the forms.

    Parameters
    ----------
    results, names
        As `to_lines` takes them.
    form : {"text", "markdown", "latex", "csv", "line", "json"}
        As the function of that name makes it.

    Returns
    -------
    str
        Whole lines, to be written as they are.

    Raises
    ------
    ValueError
        If there is no such form, or there are not as many names as results.
    """
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(FORMS)}, got {form!r}")
    return FORMS[form](results, names)


def _rows(results: Sequence[AuditResult], names: Sequence[str] | None) -> list[dict[str, str]]:
    return [row(result, name) for result, name in named(results, names)]


def _joined(lines: list[str]) -> str:
    return "".join(f"{entry}\n" for entry in lines)


def _warning(results: Sequence[AuditResult], pattern: str) -> list[str]:
    """Return what stands above a table with confidential audits."""
    return [pattern.format(WARNING)] if any(result.confidential for result in results) else []


def _width(words: str) -> int:
    """Return how many columns a text takes: two for a wide letter, none for one that is put on another."""
    return sum(
        0 if unicodedata.category(letter) in ("Mn", "Me") else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in words
    )


def _in_code(words: str) -> str:
    """Return words in code spans, in which Markdown reads nothing, with pipes between them, as no cell may hold one."""
    return "&#124;".join(map(_code_span, words.split("|")))


def _code_span(words: str) -> str:
    if not words:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", words)), default=0))
    edge = " " if words.strip("`") != words or words != words.strip() else ""  # one space at either end is taken off
    return f"{fence}{edge}{words}{edge}{fence}"


def _in_csv(words: str) -> str:
    """Return words quoted, and made plain text also for a spreadsheet that takes semicolons for the ends of cells."""
    plain = ";".join(f"'{part}" if _begins_formula(part) else part for part in words.split(";"))
    return '"' + plain.replace('"', '""') + '"'


def _begins_formula(words: str) -> bool:
    """Tell whether a spreadsheet would compute; the full-width and small forms of signs are those signs to some."""
    return unicodedata.normalize("NFKC", words).lstrip(QUOTES)[:1] in FORMULAS


def _in_latex(words: str) -> str:
    return "".join(map(_latex_letter, words))


def _latex_letter(letter: str) -> str:
    if letter in LATEX:
        return LATEX[letter]
    if letter.isascii():
        return letter
    taken_apart = unicodedata.normalize("NFD", letter)
    base, marks = taken_apart[0], taken_apart[1:]
    if base.isascii() and base.isalpha() and marks in ACCENTS:
        return f"\\{ACCENTS[marks]}{{{base}}}"
    return f"{{[}}U+{ord(letter):04X}]"
