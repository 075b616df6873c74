"""``plaudit compare``: earlier and later saved audits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.exits import exit_code
from audit.cli.inputs.options import with_options
from audit.cli.saved.reading import audits_in
from audit.io.text import printable

if TYPE_CHECKING:
    from audit.results import AuditResult
    from audit.review.compare import Change

__all__: list[str] = []


@with_options
def compare(
    old: Annotated[Path, typer.Argument(help="Earlier audits: a folder (*.json), one file, or pytest's report.")],
    new: Annotated[Path, typer.Argument(help="Later audits.")],
    as_json: Annotated[bool, "--json", "Print the comparison as JSON."] = False,
) -> int:
    """Compare two sets of saved audits: exit code 1 if anything got worse, 3 if power was lost."""
    from audit.review.compare import compare_results, totals

    for path in (old, new):
        if not path.exists():
            raise ValueError(f"{path}: no such file or folder of saved audits")
    before, after = audits_in(old), audits_in(new)
    audits = before.audits
    if old.is_file() and new.is_file():  # of two files with an audit each the name is that of the second
        audits = [(new.stem if name == old.stem else name, audit) for name, audit in audits]
    changes = compare_results(audits, after.audits, known_bugs=after.known_bugs)
    total = totals(changes)
    if as_json:
        print(json.dumps(_plain(changes, total), indent=1, allow_nan=False))
    else:
        _show(changes, total)
    return exit_code(["violated"] * total["regressed"] + ["no power"] * total["weakened"])


def _show(changes: tuple[Change, ...], total: dict[str, bool | int]) -> None:
    from audit.io.terminal import console
    from audit.report.tables import comparison_table
    from audit.results.formatting import WARNING, number_of, percent

    terminal = console()

    def say(words: str, style: str = "") -> None:
        terminal.print(printable(words), style=style, soft_wrap=True)

    if total["confidential"]:
        say(WARNING)
    for heading, style, kind in (("REGRESSION", "bold red", "regressions"), ("LESS POWER", "yellow", "weaknesses")):
        for change in changes:
            for words in getattr(change, kind):
                say(f"{heading}: {change.name}: {words}", style)
    differing = [c for c in changes if c.counts != "identical" or c.regressions or c.weaknesses or c.notes]
    if differing:
        terminal.print(comparison_table(differing))
    if same := len(changes) - len(differing):
        say(f"The same as before: {number_of(same, 'audit')}.")
    for change in differing:
        audits = [audit for audit in (change.old, change.new) if audit is not None]
        say(f"{change.name}: {' -> '.join(dict.fromkeys(audit.event + audit.witness for audit in audits))}")
    for change in differing:
        for words in change.notes:
            say(f"{change.name}: {words}")
    levels = sorted({result.confidence for change in changes if (result := change.new) is not None})
    say(
        f"Compared: {number_of(total['compared'], 'audit')}, of which {total['repeated']} with the same seed and "
        "settings. Only verdicts are compared: bounds of other runs differ by chance, too. A verdict "
        f"holds by itself, at {', '.join(map(percent, levels)) or 'no'} confidence."
    )


def _plain(changes: tuple[Change, ...], total: dict[str, bool | int]) -> dict[str, Any]:
    from audit.results import plain_number

    def summary(audit: AuditResult | None) -> dict[str, Any] | None:
        values = {} if audit is None else audit.summary()
        return {
            key: plain_number(value) if isinstance(value, float) else value for key, value in values.items()
        } or None

    kinds = ("counts", "regressions", "weaknesses", "notes")
    audits = {
        change.name: {
            **{kind: getattr(change, kind) for kind in kinds},
            "old": summary(change.old),
            "new": summary(change.new),
        }
        for change in changes
    }
    return {**total, "audits": audits}
