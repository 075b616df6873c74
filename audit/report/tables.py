"""Audits as a table that reads without a manual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from audit.report.formatting import named, row
from audit.results import AuditResult, Verdict, printable

if TYPE_CHECKING:
    from audit.review.comparing import Change, Counted

__all__ = ["audit_table", "comparison_table"]

STYLES: dict[Verdict, str] = {"violated": "bold red", "not refuted": "green", "no power": "yellow"}
WHOLE = {"runs force at least", "would have seen from", "verdict"}  # never in two pieces
FATES: dict[Counted, str] = {"changed": "bold", "missing": "bold red", "new": "bold"}


def audit_table(results: Sequence[AuditResult], names: Sequence[str] | None = None, *, events: bool = True) -> Table:
    """Return one row for each audit.

    Parameters
    ----------
    results : sequence of AuditResult
        At least one.
    names : sequence of str, optional
        What to call each; default: its mechanism.
    events : bool
        Whether there is a column of events, which needs some 40 characters.

    Returns
    -------
    rich.table.Table
        To be printed by a `rich.console.Console`.

    Raises
    ------
    ValueError
        If there are not as many names as results.
    """
    # Words fold where the terminal is narrow, numbers and verdicts stay in one piece: nothing is cut off.
    words: dict[str, Any] = {"overflow": "fold"}
    whole: dict[str, Any] = {"no_wrap": True, "justify": "right"}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("algorithm", **words)
    table.add_column("promised", **whole)
    table.add_column("neighbors:\none ...", **words)
    table.add_column("runs force\nat least", **whole)
    table.add_column("would have\nseen from", **whole)
    table.add_column("verdict", no_wrap=True)
    if events:
        table.add_column("event: which database (x, y) the release is guessed to come from", **words)
    table.add_column("seconds", **whole)
    for result, name in named(results, names):
        said = row(result, name)
        table.add_row(
            Text(said["name"]),
            said["promised"].replace(", ", "\n"),
            Text(said["neighbors: one ..."]),
            said["runs force at least"],
            said["would have seen from"],
            Text("\n".join(filter(None, (said["verdict"], said["confidential"]))), style=STYLES[result.verdict]),
            *([Text("; ".join(filter(None, (said["event"], said["witness"]))))] if events else []),
            f"{result.seconds:.1f}",
        )
    return table


def comparison_table(changes: Sequence[Change], *, events: bool = True) -> Table:
    """Return one row for each audit that is there before or after, with old and new values where they differ.

    Parameters
    ----------
    changes : sequence of Change
        As `audit.review.comparing.compare_results` returns them.
    events : bool
        As in `audit_table`.

    Returns
    -------
    rich.table.Table
        To be printed by a `rich.console.Console`.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    titles = {
        "promised": "promised",
        "neighbors: one ...": "neighbors:\none ...",
        "runs force at least": "runs force\nat least",
        "would have seen from": "would have\nseen from",
        "verdict": "verdict",
    } | ({"event": "event"} if events else {})
    table.add_column("audit", overflow="fold")
    table.add_column("counts", no_wrap=True)
    for title, heading in titles.items():
        table.add_column(heading, overflow="fold", no_wrap=title in WHOLE)
    for change in changes:
        rows = [row(result) for result in (change.old, change.new) if result is not None]
        confidential = any(said["confidential"] for said in rows)
        table.add_row(
            Text(printable(change.name)),
            Text(change.counts + ("\nCONFIDENTIAL" if confidential else ""), style=FATES.get(change.counts, "")),
            *(Text("\n-> ".join(dict.fromkeys(said[title] for said in rows))) for title in titles),
        )
    return table
