"""``plaudit report``: saved results as one HTML page."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from audit.cli.exits import exit_code

__all__: list[str] = []

HEAD = 4096  # bytes in which a report says that it is one


def report(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder of saved results (*.json), one of them, or a report of pytest --audit-report."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write, over whatever file is there. Default: report.html there.")
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Leave out what could disclose data: events, labels, counts, names, ...")
    ] = False,
    title: Annotated[str, typer.Option(help="Title of the page, shown in a public one too.")] = "",
) -> int:
    """Write saved results as one HTML page, which needs nothing but itself."""
    from audit.io.files import write_atomically
    from audit.io.text import printable
    from audit.report.page import build_report
    from audit.results.folder import read_results

    found = read_results(folder)
    place = folder if folder.is_dir() else folder.parent
    path = place / "report.html" if out is None else out
    _check_replaceable(path, place, asked=out is not None)
    published = _names_of_systems() if public else ()
    named = "" if public or folder.name in ("", "..") else f" of {folder.name}"  # no name of a folder above it
    page = build_report(*found, title=title or f"Privacy audit{named}", public=public, published=published)
    secret = not public and any(one.confidential for some in found for _, one in some)
    write_atomically(path, page, private=secret)
    audits, replays = ([one.verdict for _, one in some] for some in (found.audits, found.replays))
    told = [f"{len(audits)} audits, {audits.count('violated')} violated"]
    told += [f"{len(replays)} replays, {replays.count('violated')} violated"] if replays else []
    print(printable(f"Wrote {path}: {'; '.join(told)}; {len(found.estimates)} estimates."))
    return exit_code([*audits, *replays])


def _check_replaceable(path: Path, folder: Path, *, asked: bool) -> None:
    """Refuse to write over what is no file, or a result; or, unless the user named it, no report of ours."""
    from audit.report.page import SIGNATURE

    if path.is_dir():
        raise ValueError(f"out must be a file, got the folder {path}")
    if not path.exists():
        return
    if not path.is_file():  # a rename would put a file in the place of a device
        raise ValueError(f"out must be a file, and {path} is none")
    if path.resolve() in {result.resolve() for result in folder.glob("*.json")}:
        raise ValueError(f"out must not be a result, got {path}")
    if not asked:
        with path.open("rb") as file:
            ours = SIGNATURE.encode() in file.read(HEAD)
        if not ours:
            raise ValueError(f"{path} must be a report of plaudit to be replaced: name it with --out")


def _names_of_systems() -> set[str]:
    """Return what results call the algorithms that come with plaudit: nobody's secret."""
    from audit.installed import offered
    from audit.mechanism import mechanism_name

    names: set[str] = set()
    with suppress(ValueError):  # not installed
        for system in offered("systems").systems().values():
            with suppress(ImportError):  # nor what it needs
                names.add(mechanism_name(system.mechanism()))
    return names
