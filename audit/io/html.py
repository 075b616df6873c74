"""Small HTML tables of results for notebooks; all words are escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from audit.io.text import printable

__all__ = ["as_facts", "as_table"]

COLORS = {"violated": "#D55E00", "not refuted": "#0072B2", "no power": "#8C8C8C"}  # as in figures
LEFT = "text-align:left;vertical-align:top"


def as_facts(title: str, facts: Iterable[tuple[str, str]], *, verdict: str = "", notes: Iterable[str] = ()) -> str:
    """Return a title with a verdict in its color, facts with their names, and notes below them, as HTML.

    All words are hostile text; a fact that is empty is left out.
    """
    rows = "".join(_row((name, words), heads=1) for name, words in facts if words)
    return _titled(title, f"<tbody>{rows}</tbody>", verdict, notes)


def as_table(
    title: str, head: Iterable[str], rows: Iterable[Iterable[str]], *, verdict: str = "", notes: Iterable[str] = ()
) -> str:
    """Return a title, a table with a head, and notes below it, as HTML; see `as_facts`."""
    body = "".join(_row(row) for row in rows)
    return _titled(title, f"<thead>{_row(head, heads=None)}</thead><tbody>{body}</tbody>", verdict, notes)


def _titled(title: str, rows: str, verdict: str, notes: Iterable[str]) -> str:
    mark = f' <span style="color:{COLORS[verdict]}"><strong>{verdict}</strong></span>' if verdict else ""
    lines = "".join(f"<div>{_text(words)}</div>" for words in notes)
    return f"<div><strong>{_text(title)}</strong>{mark}<table>{rows}</table>{lines}</div>"


def _row(texts: Iterable[str], heads: int | None = 0) -> str:
    cells = []
    for place, text in enumerate(texts):
        kind = "th" if heads is None or place < heads else "td"
        cells.append(f'<{kind} style="{LEFT}">{_text(text)}</{kind}>')
    return f"<tr>{''.join(cells)}</tr>"


def _text(words: str) -> str:
    return escape(printable(words))
