"""Audits and comparisons of audits as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from audit.io.text import printable
from audit.report.formats import Named
from audit.results import Verdict
from audit.results.formatting import COLUMNS, percent, row

if TYPE_CHECKING:
    from audit.review.compare import Change, Counted

__all__ = ["audit_table", "comparison_table"]

STYLES: dict[Verdict, str] = {"violated": "bold red", "not refuted": "green", "no power": "yellow"}
WHOLE = {"measured", "detectable", "verdict"}  # never in two pieces
FATES: dict[Counted, str] = {"changed": "bold", "missing": "bold red", "new": "bold"}
HEADINGS = COLUMNS | {"neighbors": "neighbors:\none ...", "detectable": "minimum\ndetectable loss"}


def audit_table(audits: Named, *, events: bool = True) -> Table:
    """Return one row for each audit."""
    # Words fold where the terminal is narrow, numbers and verdicts stay in one piece: nothing is cut off.
    words: dict[str, Any] = {"overflow": "fold"}
    whole: dict[str, Any] = {"no_wrap": True, "justify": "right"}
    levels = {percent(audit.confidence) for _, audit in audits}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("algorithm", **words)
    table.add_column("promised", **whole)
    table.add_column(HEADINGS["neighbors"], **words)
    table.add_column("lower bound" + (f"\n({levels.pop()})" if len(levels) == 1 else ""), **whole)
    table.add_column(HEADINGS["detectable"], **whole)
    table.add_column("verdict", no_wrap=True)
    if events:
        table.add_column("event: which database (x, y) the release is guessed to come from", **words)
    table.add_column("seconds", **whole)
    for name, audit in audits:
        said = row(audit.summary(name))
        table.add_row(
            Text(said["name"]),
            said["promised"].replace(", ", "\n"),
            Text(said["neighbors"]),
            said["measured"],
            said["detectable"],
            Text("\n".join(filter(None, (said["verdict"], said["confidential"]))), style=STYLES[audit.verdict]),
            *([Text("; ".join(filter(None, (said["event"], said["witness"]))))] if events else []),
            f"{audit.seconds:.1f}",
        )
    return table


def comparison_table(changes: Sequence[Change], *, events: bool = True) -> Table:
    """Return one row for each audit that is there before or after, with old and new values where they differ."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    shown = ["promised", "neighbors", "measured", "detectable", "verdict", *(["event"] if events else [])]
    table.add_column("audit", overflow="fold")
    table.add_column("counts", no_wrap=True)
    for key in shown:
        table.add_column(HEADINGS[key], overflow="fold", no_wrap=key in WHOLE)
    for change in changes:
        rows = [row(result.summary()) for result in (change.old, change.new) if result is not None]
        confidential = any(said["confidential"] for said in rows)
        table.add_row(
            Text(printable(change.name)),
            Text(change.counts + ("\nCONFIDENTIAL" if confidential else ""), style=FATES.get(change.counts, "")),
            *(Text("\n-> ".join(dict.fromkeys(said[key] for said in rows))) for key in shown),
        )
    return table
