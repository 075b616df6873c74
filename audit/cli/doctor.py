"""``plaudit doctor``: report which parts of plaudit work here, and remove temporary files of killed runs."""

from __future__ import annotations

import os
import platform
import re
import tempfile
from collections.abc import Iterator
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from audit.cli.exits import WITHIN
from audit.cli.inputs.options import with_options
from audit.io.temporary import cleaned, find_leftovers, left_below
from audit.io.terminal import say

__all__: list[str] = []

NEEDED = re.compile(r"([A-Za-z0-9_.-]+)[^;]*(?:;\s*extra == ['\"](.+)['\"])?$")
OFFERED = ("census", "release", "spark", "dask", "ray", "xlsx")  # extras for users, without those for developers


@with_options
def doctor(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders to --clean. Default: the current and the temporary folder.")
    ] = None,
    clean: Annotated[bool, "--clean", "Remove what your killed runs left in these folders and below."] = False,
) -> int:
    """Show versions, extras, settings and whether noise is secure."""
    if clean:
        return _clean(folders or [Path(), Path(tempfile.gettempdir())])
    if folders:
        raise ValueError(f"folders go with --clean, got {folders[0]}")
    for folder in (Path(), Path(tempfile.gettempdir())):
        find_leftovers(folder)  # `finished` prints them
    parts = {"Installation": _installation(), "Secure noise of releases": _noise(), "Settings": _settings()}
    for heading, facts in parts.items():
        say(heading, style="bold")
        say(*(f"- {name}: {words}" for name, words in facts))
    return WITHIN


def _clean(folders: list[Path]) -> int:
    for folder in folders:
        if folder.is_symlink() or not folder.is_dir():
            raise ValueError(f"--clean takes folders, and follows no links, got {folder}")
    for folder in folders:
        lines = (f"Removed {path}" for path in cleaned(folder))
        elsewhere = (
            f"{path} stays: it is of another machine or container, so remove it if no command is at work there"
            for path in left_below(folder, here=False)
        )
        nothing = f"{folder}: nothing was left by a run that was killed"
        say(*chain([next(lines, nothing)], lines, elsewhere))
    return WITHIN


def _installation() -> Iterator[tuple[str, str]]:
    from audit.results.provenance import version_of

    yield "plaudit", f"{metadata.version('plaudit')}, in {Path(__file__).resolve().parents[2]}"
    yield "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    matches = map(NEEDED.fullmatch, metadata.requires("plaudit") or ())
    needed = [(match[1], match[2] or "") for match in matches if match and match[1] != "plaudit"]
    for extra in ("", *OFFERED):  # the core has no name
        versions = {package: version_of(package) for package, of in needed if of == extra}  # empty if missing
        words = ", ".join(f"{package} {version}" for package, version in versions.items() if version)
        if missing := ", ".join(package for package, version in versions.items() if not version):
            words += f"{words and '; '}without {missing}: pip install 'plaudit{extra and f'[{extra}]'}'"
        yield f"extra {extra}" if extra else "core", words
    (ours,) = metadata.entry_points(group="pytest11", name="plaudit")
    foreign = ours.load().foreign_package([os.getcwd()])
    yield "pytest plugin", f"off, because {foreign} has the name of one of its packages" if foreign else "on"


def _noise() -> Iterator[tuple[str, str]]:
    from audit.installed import plugin

    try:
        yield "tested now", plugin("systems").secure_noise()
    except (ImportError, ValueError) as error:
        yield "none", str(error)


def _settings() -> Iterator[tuple[str, str]]:
    from audit.io.settings import SETTINGS, project_settings

    settings, file = project_settings(Path())
    yield (f"{file}", "") if file else ("none", f"[tool.plaudit] of pyproject.toml may hold {', '.join(SETTINGS)}")
    yield from ((name, f"{value}") for name, value in settings.items())
