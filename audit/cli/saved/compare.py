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
    from audit.review.compare import Comparison

__all__: list[str] = []


@with_options
def compare(
    old: Annotated[Path, typer.Argument(help="Earlier audits: a folder (*.json), one file, or pytest's report.")],
    new: Annotated[Path, typer.Argument(help="Later audits.")],
    as_json: Annotated[bool, "--json", "Print the comparison as JSON."] = False,
) -> int:
    """Compare two sets of saved audits: exit code 1 if anything got worse, 3 if power was lost."""
    from audit.review.compare import compare_results

    for path in (old, new):
        if not path.exists():
            raise ValueError(f"{path}: no such file or folder of saved audits")
    before, after = audits_in(old), audits_in(new)
    audits = before.audits
    if old.is_file() and new.is_file():  # of two files with an audit each the name is that of the second
        audits = [(new.stem if name == old.stem else name, audit) for name, audit in audits]
    comparison = compare_results(audits, after.audits, known_bugs=after.known_bugs)
    if as_json:
        print(json.dumps(_plain(comparison), indent=1, allow_nan=False))
    else:
        _show(comparison)
    return exit_code(["violated"] * comparison.regressed + ["no power"] * comparison.weakened)


def _show(comparison: Comparison) -> None:
    from audit.io.terminal import console
    from audit.report.tables import comparison_table
    from audit.results.formatting import WARNING, number_of, percent

    terminal, changes = console(), comparison.changes

    def say(words: str, style: str = "") -> None:
        terminal.print(printable(words), style=style, soft_wrap=True)

    if comparison.confidential:
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
        f"Compared: {number_of(comparison.compared, 'audit')}, of which {comparison.repeated} with the same seed and "
        "settings. Only verdicts are compared: bounds of other runs differ by chance, too. A verdict "
        f"holds by itself, at {', '.join(map(percent, levels)) or 'no'} confidence."
    )


def _plain(comparison: Comparison) -> dict[str, Any]:
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
        for change in comparison.changes
    }
    totals = ("confidential", "compared", "repeated", "regressed", "weakened")
    return {**{name: getattr(comparison, name) for name in totals}, "audits": audits}
