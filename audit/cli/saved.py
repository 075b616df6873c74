"""``plaudit check``, ``compare`` and ``report``, which read saved results and measure nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from audit.cli.exits import exit_code
from audit.cli.inputs.groups import Verbose
from audit.cli.inputs.options import with_options
from audit.cli.run_audits import show
from audit.io.text import printable

if TYPE_CHECKING:
    from audit.results import AuditResult, ReplayRecord
    from audit.results.folder import Results
    from audit.review.compare import Change

__all__ = ["Saved", "audits_in"]

Saved = Annotated[
    list[Path], typer.Argument(help="Saved results (*.json), folders of them, or reports of pytest --audit-report.")
]


def audits_in(path: Path) -> Results:
    """Read at least one saved audit, and print in one line how many results of other kinds are left out."""
    from audit.results.folder import read_results

    saved = read_results(path, needed=("audits",), through=partial(_with_progress, "reading"))
    _leave_out([path], estimates=len(saved.estimates), replays=len(saved.replays))
    return saved


def _with_progress(what: str, results: Collection[Any]) -> Iterator[Any]:
    """Yield the results and show progress."""
    from audit.sampling.progress import progress_bar

    with progress_bar(what, len(results), unit="results") as advance:
        for result in results:
            yield result
            advance(1)


def _leave_out(paths: list[Path], **numbers: int) -> None:
    """Print in one line how many results of each kind are left out, if any."""
    from audit.results.formatting import number_of

    counts = [number_of(number, kind.removesuffix("s")) for kind, number in numbers.items() if number]
    if counts:
        print(f"plaudit: {' and '.join(counts)} in {printable(', '.join(map(str, paths)))} left out", file=sys.stderr)


@with_options
def check(
    results: Saved,
    form: Annotated[
        str, "--format", "table, line, markdown, csv or json; github writes a job's annotations and summary."
    ] = "table",
    verbose: Verbose = False,
    as_json: Annotated[bool, "--json", "The same as --format json."] = False,
) -> int:
    """Read saved audits and compare them with their promises."""
    from audit.report.formats import FORMS, to_annotations, to_github, to_json
    from audit.report.words import bugs_found
    from audit.results.folder import read_results

    if form not in ("table", "github", *FORMS):
        raise ValueError(f"format must be one of table, {', '.join(FORMS)}, github, got {form!r}")
    if as_json and form not in ("table", "json"):
        raise ValueError(f"--json and --format {form} exclude each other")
    saved = read_results(*results, needed=("audits", "replays"), through=partial(_with_progress, "reading"))
    _leave_out(results, estimates=len(saved.estimates))
    every: list[tuple[str, AuditResult | ReplayRecord]] = [*saved.audits, *saved.replays]
    if as_json or form == "json":
        print(to_json(every), end="")
    elif form == "github":
        path = os.environ.get("GITHUB_STEP_SUMMARY")
        if not path:
            raise ValueError("--format github needs a job of GitHub Actions: GITHUB_STEP_SUMMARY must name a file")
        with open(path, "a", encoding="utf-8") as file:  # append: earlier steps of the job write to the same file
            file.write(f"{to_github(every, saved.known_bugs)}\n")
        print(to_annotations(every, saved.known_bugs), end="")
    else:
        aside = sys.stdout if form in ("table", "line") else sys.stderr
        if saved.audits and form == "table":
            show(saved.audits, saved.known_bugs, verbose=verbose)
        elif saved.audits:
            print(FORMS[form](saved.audits), end="")
        for name, record in saved.replays:  # a replay has no numbers for a table
            print(f"{printable(name)}: {record}", file=aside)
        if words := bugs_found(saved.audits, saved.known_bugs):
            print(words, file=aside)
    return exit_code(saved.verdicts)


@with_options
def compare(
    old: Annotated[Path, typer.Argument(help="Earlier audits: a folder (*.json), one file, or pytest's report.")],
    new: Annotated[Path, typer.Argument(help="Later audits.")],
    as_json: Annotated[bool, "--json", "Print the comparison as JSON."] = False,
) -> int:
    """Compare two sets of saved audits. Exit code 1 if anything got worse, 3 if power was lost."""
    from audit.review.compare import compare_results, totals

    for path in (old, new):
        if not path.exists():
            raise ValueError(f"{path}: no such file or folder of saved audits")
    before, after = audits_in(old), audits_in(new)
    audits = before.audits
    if old.is_file() and new.is_file():  # two files: rename the old audit, so that names match
        audits = [(new.stem if name == old.stem else name, audit) for name, audit in audits]
    changes = compare_results(audits, after.audits, known_bugs=after.known_bugs)
    total = totals(changes)
    if as_json:
        print(json.dumps(_plain(changes, total), indent=1, allow_nan=False))
    else:
        _show_changes(changes, total)
    return exit_code(["violated"] * total["regressed"] + ["no power"] * total["weakened"])


def _show_changes(changes: tuple[Change, ...], total: dict[str, bool | int]) -> None:
    from audit.io.terminal import console, say
    from audit.report.tables import comparison_table
    from audit.results.formatting import WARNING, number_of, percent

    if total["confidential"]:
        say(WARNING)
    for heading, style, kind in (("REGRESSION", "bold red", "regressions"), ("LESS POWER", "yellow", "weaknesses")):
        for change in changes:
            for words in getattr(change, kind):
                say(f"{heading}: {change.name}: {words}", style=style)
    differing = [c for c in changes if c.counts != "identical" or c.regressions or c.weaknesses or c.notes]
    if differing:
        console().print(comparison_table(differing))
    if same := len(changes) - len(differing):
        say(f"The same as before: {number_of(same, 'audit')}.")
    for change in differing:
        audits = [audit for audit in (change.old, change.new) if audit is not None]
        events = " -> ".join(dict.fromkeys(audit.event + audit.witness for audit in audits))
        say(*(f"{change.name}: {words}" for words in (events, *change.notes)))
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
        numbers = {key: plain_number(value) for key, value in values.items() if isinstance(value, float)}
        return {**values, **numbers} or None

    audits = {}
    for change in changes:
        words = {kind: getattr(change, kind) for kind in ("counts", "regressions", "weaknesses", "notes")}
        audits[change.name] = {**words, "old": summary(change.old), "new": summary(change.new)}
    return {**total, "audits": audits}


@with_options
def report(
    results: Saved,
    out: Annotated[
        Path | None,
        {"metavar": "FILE"},
        "Page to write; replaces a report and nothing else. Default: report.html in the folder of the first results.",
    ] = None,
    public: Annotated[bool, "Leave out what could disclose data: events, labels, counts and names."] = False,
    title: Annotated[str, "Title of the page, also with --public."] = "",
    author: Annotated[str, "Who answers for the page, also with --public."] = "",
    question: Annotated[str, "The question that the page answers, also with --public."] = "",
) -> int:
    """Write saved results as one HTML page that needs no other file."""
    from audit.io.files import check_replaceable, write_atomically
    from audit.report.page import REPORT, report_parts
    from audit.report.words import bugs_found
    from audit.results.folder import read_results
    from audit.results.formatting import number_of

    first = results[0] if results[0].is_dir() else results[0].parent
    path = first / "report.html" if out is None else out
    check_replaceable(path, REPORT)
    saved = read_results(*results, through=partial(_with_progress, "reading"))
    published = _names_of_systems() if public else ()
    words: dict[str, Any] = {"title": title, "author": author, "question": question}
    page = report_parts(*saved, **words, public=public, published=published, through=partial(_with_progress, "writing"))
    records = (saved.audits, saved.estimates, saved.replays)
    confidential = any(result.confidential for kind in records for _, result in kind)
    write_atomically(path, map(str.encode, page), REPORT, private=confidential and not public)
    audits = [audit.verdict for name, audit in saved.audits if name not in saved.known_bugs]
    replays = [record.verdict for _, record in saved.replays]
    counts = [f"{number_of(len(audits), 'audit')}, {audits.count('violated')} violated"]
    counts += [f"{number_of(len(replays), 'replay')}, {replays.count('violated')} violated"] if replays else []
    counts += [number_of(len(saved.estimates), "estimate")]
    bugs = bugs_found(saved.audits, saved.known_bugs)
    print(printable(" ".join(filter(None, [f"Wrote {path}: {'; '.join(counts)}.", bugs]))))
    return exit_code(saved.verdicts)


def _names_of_systems() -> set[str]:
    from audit.installed import plugin
    from audit.mechanism import mechanism_name

    names: set[str] = set()
    with suppress(ValueError):  # the systems are not installed
        for system in plugin("systems").systems().values():
            with suppress(ImportError):  # the extra of this system is not installed
                names |= {mechanism_name(system.mechanism(stage=stage)) for stage in ("", *system.stages)}
    return names
