"""``plaudit report``: saved results as one HTML page."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from audit.cli.exits import exit_code
from audit.cli.inputs.options import with_options
from audit.cli.saved.reading import Saved, with_progress
from audit.io.text import printable

__all__: list[str] = []


@with_options
def report(
    results: Saved,
    out: Annotated[
        Path | None,
        "Page to write; replaces a report and nothing else. Default: report.html in the folder of the first results.",
    ] = None,
    public: Annotated[bool, "Leave out what could disclose data: events, labels, counts, names, ..."] = False,
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
    saved = read_results(*results, through=with_progress("reading"))
    published = _names_of_systems() if public else ()
    words: dict[str, Any] = {"title": title, "author": author, "question": question}
    page = report_parts(*saved, **words, public=public, published=published, through=with_progress("writing"))
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
    with suppress(ValueError):  # not installed
        for system in plugin("systems").systems().values():
            with suppress(ImportError):  # nor what it needs
                names |= {mechanism_name(system.mechanism(stage=stage)) for stage in ("", *system.stages)}
    return names
