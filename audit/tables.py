"""Audits as a table that reads without a manual."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from audit.claims import Relation
from audit.results import AuditResult, Verdict

__all__ = ["NEIGHBORS", "audit_table"]

NEIGHBORS: dict[Relation, str] = {"add_remove": "{} added or removed", "replace_one": "{} replaced"}
STYLES: dict[Verdict, str] = {"violated": "bold red", "not refuted": "green", "no power": "yellow"}


def audit_table(results: Sequence[AuditResult], names: Sequence[str] | None = None) -> Table:
    """Return one row for each audit.

    Parameters
    ----------
    results : sequence of AuditResult
        At least one.
    names : sequence of str, optional
        What to call each; default: its mechanism.

    Returns
    -------
    rich.table.Table
        To be printed by a `rich.console.Console`.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("algorithm", no_wrap=True)
    table.add_column("promised\nepsilon", justify="right")
    table.add_column("neighbors:\none ...")
    table.add_column("runs force\nat least", justify="right")
    table.add_column("would have\nseen from", justify="right")
    table.add_column("verdict")
    table.add_column("event: which database (x, y) the release is guessed to come from", ratio=1)
    table.add_column("seconds", justify="right")
    for name, result in zip(names or [result.mechanism for result in results], results, strict=True):
        declared = " (declared)" if result.adjacency == "declared" else ""
        group = f", pairs of {result.distance}" if result.distance > 1 else ""
        table.add_row(
            Text(name),
            f"{result.claim.epsilon:.4g}",
            Text(NEIGHBORS[result.relation].format(result.unit) + group + declared),
            "infinity" if result.support else f"{result.measured.epsilon:.4f}",
            f"{result.detectable:.3f}",
            Text(result.verdict, style=STYLES[result.verdict]),
            Text(result.event),
            f"{result.seconds:.1f}",
        )
    return table
