"""Small HTML tables of results for notebooks; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from audit.io.text import printable

__all__ = ["as_html"]

COLORS = {"violated": "#A83A00", "not refuted": "#005A9C", "no power": "#5F5F5F"}  # behind white, on any page
LEFT, MARK = "text-align:left;vertical-align:top", "border-radius:0.3em;color:#fff;padding:0 0.4em"


def as_html(
    title: str, rows: Iterable[Sequence[str]], *, head: Sequence[str] = (), verdict: str = "", notes: Iterable[str] = ()
) -> str:
    """Return HTML: a title with the verdict in color, a table, and notes. All text is escaped, as it may be hostile."""
    # Without `head`, each row is a name and a value, and rows with an empty value are left out.
    mark = f' <strong style="{MARK};background:{COLORS[verdict]}">{verdict}</strong>' if verdict else ""
    top = f"<thead>{_row(head, heads=len(head))}</thead>" if head else ""
    body = "".join(_row(row, heads=0 if head else 1) for row in rows if head or row[1])
    lines = "".join(f"<div>{_text(words)}</div>" for words in notes)
    return f"<div><strong>{_text(title)}</strong>{mark}<table>{top}<tbody>{body}</tbody></table>{lines}</div>"


def _row(texts: Sequence[str], heads: int) -> str:
    kinds = ["th"] * heads + ["td"] * (len(texts) - heads)
    cells = (f'<{kind} style="{LEFT}">{_text(text)}</{kind}>' for kind, text in zip(kinds, texts, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def _text(words: str) -> str:
    return escape(printable(words))
