"""``plaudit check``: saved audits against their claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from audit.cli.exits import exit_code

__all__: list[str] = []


def check(
    folder: Annotated[
        Path, typer.Argument(help="Folder of saved audits (*.json), one of them, or a report of pytest --audit-report.")
    ],
    form: Annotated[
        str, typer.Option("--format", help="table, or one of line, text, markdown, latex, csv, json.")
    ] = "table",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> int:
    """Read saved audits and hold them against their claims."""
    from audit.cli.showing import show
    from audit.report.formats import FORMS
    from audit.results.folder import read_audits

    if form not in ("table", "json", *FORMS):
        raise ValueError(f"format must be one of table, json, {', '.join(FORMS)}, got {form!r}")
    if as_json and form not in ("table", "json"):
        raise ValueError(f"--json and --format {form} exclude each other")
    results = read_audits(folder)
    if form in FORMS:
        print(FORMS[form](results), end="")
    else:
        show(results, as_json or form == "json")
    return exit_code(audit.verdict for _, audit in results)
