"""Audits as a table that reads without a manual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from audit.claims import ApproxDP, Relation
from audit.results import AuditResult, Verdict

__all__ = ["NEIGHBORS", "audit_table"]

NEIGHBORS: dict[Relation, str] = {"add_remove": "{} added or removed", "replace_one": "{} replaced"}
STYLES: dict[Verdict, str] = {"violated": "bold red", "not refuted": "green", "no power": "yellow"}


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
    for name, result in zip(names or [result.mechanism for result in results], results, strict=True):
        declared = " (declared)" if result.adjacency == "declared" else ""
        group = f", {result.distance} steps apart" if result.distance > 1 else ""
        table.add_row(
            _as_it_stands(name),
            f"{result.claim.parameter} {result.claim.budget:.4g}"
            + (f"\ndelta {result.claim.delta:.4g}" if isinstance(result.claim, ApproxDP) else ""),
            _as_it_stands(NEIGHBORS[result.relation].format(result.unit) + group + declared),
            f"{result.measured.budget:.4f}",
            f"{result.detectable:.3f}",
            Text(result.verdict, style=STYLES[result.verdict]),
            *([_as_it_stands(result.event + result.witness)] if events else []),
            f"{result.seconds:.1f}",
        )
    return table


def _as_it_stands(words: str) -> Text:
    """Return words without markup, and without the control characters that a terminal would obey."""
    return Text("".join(letter if letter.isprintable() else " " for letter in words))
