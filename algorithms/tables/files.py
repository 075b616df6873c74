"""Files and folders that are whole or absent: written under a temporary name, and renamed when on the disk."""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

__all__ = ["check_folder", "usual_mode", "whole_file", "whole_folder", "write_rows", "write_texts"]


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Open a text file that appears, or replaces another, when the block ends without an error."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, usual_mode(0o666))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)  # an interrupt may come after the renaming
        raise


def write_rows(path: Path, columns: Sequence[Any], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file row by row: whole or not at all."""
    with whole_file(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Write text files into a folder, each with a line end behind it: whole or not at all."""
    for name, text in texts.items():
        with whole_file(folder / name) as file:
            file.write(f"{text}\n")


def usual_mode(most: int) -> int:
    """Return the permissions that the user's mask leaves: temporary files and folders have fewer."""
    mask = os.umask(0)
    os.umask(mask)
    return most & ~mask


@contextmanager
def whole_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Lend a temporary folder that takes the place of another when the block ends without an error, in one step."""
    target = check_folder(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=".release-", dir=target.parent))
    try:
        yield staged
        staged.chmod(target.stat().st_mode & 0o777 if target.exists() else usual_mode(0o777))
        os.replace(staged, target)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Return the path of a folder that does not exist or is empty, or refuse it."""
    target = Path(folder).resolve()
    if target.exists() and not target.is_dir():
        raise ValueError(f"out must be a folder, got the file {folder}")
    if target.is_dir() and any(target.iterdir()):
        raise ValueError(f"out must be a new or an empty folder, and {folder} holds something")
    if target == Path.cwd() or target.is_mount():  # could not be replaced in one step
        raise ValueError(f"out must not be the current folder or a mount, got {folder}")
    return target
