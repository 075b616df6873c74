"""``plaudit check``: saved audits against their claims."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

from audit.cli.exits import exit_code
from audit.cli.inputs.options import with_options
from audit.cli.saved.reading import Saved, leave_out, with_progress
from audit.io.text import printable

if TYPE_CHECKING:
    from audit.results import AuditResult, ReplayRecord

__all__: list[str] = []


@with_options
def check(
    results: Saved,
    form: Annotated[
        str, "--format", "table, line, markdown, csv or json; github writes a job's annotations and summary."
    ] = "table",
    as_json: Annotated[bool, "--json", "The same as --format json."] = False,
) -> int:
    """Read saved audits and compare them with their promises."""
    from audit.cli.run_audits import show
    from audit.report.formats import FORMS, to_annotations, to_github, to_json
    from audit.report.words import bugs_found
    from audit.results.folder import read_results

    if form not in ("table", "github", *FORMS):
        raise ValueError(f"format must be one of table, {', '.join(FORMS)}, github, got {form!r}")
    if as_json and form not in ("table", "json"):
        raise ValueError(f"--json and --format {form} exclude each other")
    saved = read_results(*results, needed=("audits", "replays"), through=with_progress("reading"))
    leave_out(results, estimates=len(saved.estimates))
    every: list[tuple[str, AuditResult | ReplayRecord]] = [*saved.audits, *saved.replays]
    if as_json or form == "json":
        print(to_json(every), end="")
    elif form == "github":
        _summarize(to_github(every, saved.known_bugs))
        print(to_annotations(every, saved.known_bugs), end="")
    else:
        aside = sys.stdout if form in ("table", "line") else sys.stderr
        if saved.audits and form == "table":
            show(saved.audits, as_json=False, known_bugs=saved.known_bugs)
        elif saved.audits:
            print(FORMS[form](saved.audits), end="")
        for name, record in saved.replays:  # which has no numbers for the columns of a table
            print(f"{printable(name)}: {record}", file=aside)
        if words := bugs_found(saved.audits, saved.known_bugs):
            print(words, file=aside)
    return exit_code(saved.verdicts)


def _summarize(text: str) -> None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        raise ValueError("--format github needs a job of GitHub Actions: GITHUB_STEP_SUMMARY must name a file")
    with open(path, "a", encoding="utf-8") as file:  # other steps have written there
        file.write(f"{text}\n")
