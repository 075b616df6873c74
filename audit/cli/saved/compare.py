"""``plaudit compare``: saved audits of yesterday and of today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.exits import NO_POWER, VIOLATION, WITHIN
from audit.cli.inputs.options import with_options
from audit.cli.saved.reading import audits_in

if TYPE_CHECKING:
    from audit.results import AuditResult
    from audit.review.compare import Comparison

__all__: list[str] = []


@with_options
def compare(
    old: Annotated[
        Path, typer.Argument(help="Folder of saved audits (*.json), one of them, or pytest's report: before.")
    ],
    new: Annotated[Path, typer.Argument(help="The same: after.")],
    confidence: Annotated[float, "With which nothing is called changed by chance, over all audits together."] = 0.999,
    as_json: Annotated[bool, "--json", "Print the comparison as JSON."] = False,
) -> int:
    """Compare two sets of saved audits: exit code 1 if anything got worse, 3 if power was lost."""
    from audit.review.compare import compare_results

    for path in (old, new):
        if not path.exists():
            raise ValueError(f"{path} must be a folder of saved audits or one of them, and there is none")
    name = new.stem if new.is_file() and old.is_file() else ""
    before, after = audits_in(old), audits_in(new)
    comparison = compare_results(
        _called(before.audits, old, name),
        _called(after.audits, new, name),
        confidence=confidence,
        known_bugs=after.known_bugs,
    )
    schemas = _schemas(old, new, [change.name for change in comparison.changes])
    if as_json:
        print(json.dumps(_plain(comparison, schemas), indent=1, allow_nan=False))
    else:
        _show(comparison, schemas)
    return VIOLATION if comparison.regressed else NO_POWER if comparison.weakened else WITHIN


def _called(audits: list[tuple[str, AuditResult]], path: Path, name: str) -> list[tuple[str, AuditResult]]:
    """Return the audits of a folder or file; of two files with an audit each the name is that of the second."""
    return [(name if name and own == path.stem else own, result) for own, result in audits]


def _schemas(old: Path, new: Path, names: list[str]) -> dict[str, tuple[int, int]]:
    """Return which schemas the files of each audit are of, where they differ; the files were read before."""
    found = {}
    files = [
        {file.stem: file for file in path.glob("*.json")} if path.is_dir() else {new.stem: path} for path in (old, new)
    ]
    for name in names:
        if all(name in those for those in files):
            before, after = (json.loads(those[name].read_bytes())["schema"] for those in files)
            if before != after:
                found[name] = (before, after)
    return found


def _show(comparison: Comparison, schemas: dict[str, tuple[int, int]]) -> None:
    from audit.io.terminal import console
    from audit.io.text import printable
    from audit.report.tables import comparison_table
    from audit.results.formatting import WARNING, nearest, number_of, percent

    terminal = console()

    def say(words: str, style: str = "") -> None:
        terminal.print(printable(words), style=style, soft_wrap=True)

    if comparison.confidential:
        say(WARNING)
    changes = comparison.changes
    for heading, style, kind in (("REGRESSION", "bold red", "regressions"), ("LESS POWER", "yellow", "weaknesses")):
        for change in changes:
            for words in getattr(change, kind):
                say(f"{heading}: {change.name}: {words}", style)
    terminal.print(comparison_table(changes))
    for change in changes:
        events = dict.fromkeys(
            result.event + result.witness for result in (change.old, change.new) if result is not None
        )
        say(f"{change.name}: {' -> '.join(events)}")
    for change in changes:
        for words in change.notes:
            say(f"{change.name}: {words}")
    for name, (before, after) in schemas.items():
        say(f"{name}: the file is of schema {after}, was of schema {before}")
    levels = sorted({result.confidence for change in changes if (result := change.new) is not None})
    say(
        f"Compared: {number_of(comparison.compared, 'audit')}, of which {comparison.tested} by their counts. If no "
        f"algorithm changed, any counts are called changed with probability {nearest(1 - comparison.confidence)} at "
        f"most, over all audits. A verdict holds by itself, at {', '.join(map(percent, levels)) or 'no'} confidence."
    )


def _plain(comparison: Comparison, schemas: dict[str, tuple[int, int]]) -> dict[str, Any]:
    """Return the comparison as plain values for strict JSON."""
    from audit.results import plain_number

    def plain(result: AuditResult | None) -> dict[str, Any] | None:
        if result is None:
            return None
        return {
            key: plain_number(value) if isinstance(value, float) else value for key, value in result.summary().items()
        }

    return {
        "confidence": comparison.confidence,
        "confidential": comparison.confidential,
        "compared": comparison.compared,
        "tested": comparison.tested,
        "regressed": comparison.regressed,
        "weakened": comparison.weakened,
        "audits": {
            change.name: {
                "counts": change.counts,
                "p_value": change.p_value,
                "regressions": change.regressions,
                "weaknesses": change.weaknesses,
                "notes": change.notes,
                "schemas": schemas.get(change.name),
                "old": plain(change.old),
                "new": plain(change.new),
            }
            for change in comparison.changes
        },
    }
