"""Files and folders that are whole or absent: written under a temporary name, and renamed when on the disk."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from audit.io.files import check_levels, make_folder, sync, writing
from audit.io.layout import BYTES, encoding_fault
from audit.io.temporary import STAGED, find_leftovers, temporary_folder
from audit.io.text import from_cell, in_cell, shown

__all__ = [
    "CELLS",
    "FORMATS",
    "RECORD",
    "check_folder",
    "in_one_line",
    "read_rows",
    "whole_file",
    "whole_folder",
    "write_rows",
    "write_texts",
]

Row = Sequence[Any]

BOTH = "\r\n"  # a reader takes either for the end of a line: both are quoted inside of a field
CELLS = "text that a spreadsheet would compute, or that begins with an apostrophe, has an apostrophe before it"
"""The rule of all CSV files that are written here, for the record; `audit.io.text.from_cell` gives back the text."""
FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}  # that DuckDB and Spark take, by ending
RECORD = "release.json"  # every release has one


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Open a text file that appears where nothing is when the block ends without an error."""
    with writing(path, None) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
        yield text


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Row], *, separator: str = ",") -> None:
    """Write a CSV file row by row, whole or not at all, and no formula to a spreadsheet; see `CELLS`."""
    cell = lru_cache(2**12)(in_cell)  # a file has millions of rows, and few words side by side
    with whole_file(path) as file:
        writer = csv.writer(_Lines(file), delimiter=separator, lineterminator=BOTH)
        for row in chain([columns], rows):
            writer.writerow([cell(value) if isinstance(value, str) else value for value in row])


def read_rows(path: Path, *, separator: str) -> list[list[str]]:
    """Return the fields of each row of a file that `write_rows` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        return [list(map(from_cell, row)) for row in csv.reader(file, delimiter=separator)]


class _Lines:
    """Lines with one letter at their end, of a writer that would quote only what ends its own."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(f"{line.removesuffix(BOTH)}\n")


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Write text files into a folder, for whoever shows them on a terminal."""
    for name, text in texts.items():
        with whole_file(folder / name) as file:
            file.write(shown(text))


def _usual_mode() -> int:
    """Return the permissions that the user's mask leaves a folder: temporary ones have fewer."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o777 & ~mask


@contextmanager
def whole_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Lend a temporary folder that takes the place of another when the block ends without an error, in one step."""
    target = check_folder(folder)
    above = [parent for parent in target.parents if not parent.exists()]
    try:
        make_folder(target.parent)
        with temporary_folder(STAGED, target.parent) as staged:
            yield staged
            staged.chmod(target.stat().st_mode & 0o777 if target.exists() else _usual_mode())
            os.replace(staged, target)
            sync(target.parent)
    except BaseException:
        for parent in above:
            with suppress(OSError):  # not there, or others have put something into it meanwhile
                parent.rmdir()
        raise


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Return the path of a folder that does not exist or is empty, or refuse it."""
    check_levels(Path(folder))
    find_leftovers(Path(folder))
    target = Path(os.path.realpath(folder))
    if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):  # a file, or a link to itself
        raise ValueError(f"out must be a new or an empty folder, got {folder}")
    if target == Path.cwd() or target.is_mount():  # could not be replaced in one step
        raise ValueError(f"out must not be the current folder or a mount, got {folder}")
    return target


def in_one_line(error: Exception) -> str:
    """Return what an engine says, without the row it quotes and the advice it has for programmers."""
    text = re.sub(
        r"\nOriginal Line:.*?\n(?=Expected|Invalid|Value|Maximum|Error|\Z)", "\n", str(error), flags=re.DOTALL
    )
    file = re.search(r"^ *file ?= ?(.*)$", text, flags=re.MULTILINE)
    if file and "not utf-8" in text:
        with open(file[1], encoding="utf-8-sig", errors=BYTES) as lines:
            return encoding_fault(Path(file[1]), lines)
    words = re.split(r"\n\s*(?:Possible |JVM stacktrace|at )", text)[0].split()
    return " ".join([*([f"{file[1]}:"] if file else []), *words])[:500] or type(error).__name__
