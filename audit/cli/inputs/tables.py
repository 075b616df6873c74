"""Files of numbers, words and records: comma-separated text, or .npy; what could be read in two ways is refused."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.arguments import LARGEST
from audit.cli.inputs import HEADER
from audit.io.files import read_bytes

__all__ = [
    "LARGEST_INPUT",
    "MOST_VALUES",
    "Table",
    "check_size",
    "is_missing",
    "is_numeric",
    "read_counts",
    "read_errors",
    "read_outputs",
]

LARGEST_INPUT = 2**31  # bytes of a file
MOST_VALUES = 2**26  # of a file: each takes up to a hundred bytes while it is read
MISSING = {"", "na", "nan", "none"}
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
UNCLEAR = re.compile(r"[+-]?\.?\d")  # how numbers begin, and so what is mistyped for one
BLANK = re.compile(r"^[^\S\n]*\n|^[^\S\n]+\Z", re.MULTILINE)


@dataclass(frozen=True)
class Table:
    """Comma-separated text: its line of names, if it has one, and its columns."""

    path: Path
    text: str

    def __post_init__(self) -> None:
        if blank := BLANK.search(self.text):
            line = self.text.count("\n", 0, blank.start()) + 1
            raise ValueError(f"{self.path} must have no blank line, which would shift what follows, got line {line}")
        if not self.body:
            raise ValueError(f"{self.path} must hold at least one value, got none ({HEADER})")

    @classmethod
    def read(cls, path: Path) -> Table:
        """Read a file, once: it may be a pipe."""
        content = read_bytes(path, LARGEST_INPUT)
        if (values := content.count(b",") + max(map(content.count, (b"\n", b"\r")))) > MOST_VALUES:
            raise ValueError(f"{path} must hold at most {MOST_VALUES} values, got {values} commas and lines")
        try:
            return cls(path, io.TextIOWrapper(io.BytesIO(content), "utf-8-sig").read())
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be text in UTF-8: {error}") from error

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns; empty if the first line is no line of names."""
        fields = [field.strip() for field in next(self._rows(self.text.partition("\n")[0]), [])]
        if not fields or any(_is_number(field) or is_missing(field) for field in fields):
            return ()
        if len(fields) == 1 and (other := re.search(r"[;|\t]", fields[0])):
            where = f"got {other[0]!r} in its first line"
            raise ValueError(f"{self.path} must separate fields by commas, and counts by lines, {where}")
        if unclear := next(filter(UNCLEAR.match, fields), ""):
            raise ValueError(
                f"{self.path} must begin with names or values, and {unclear[:40]!r} may be either ({HEADER})"
            )
        return tuple(fields)

    @cached_property
    def body(self) -> str:
        """The lines below the names."""
        return self.text.partition("\n")[2] if self.names else self.text

    @cached_property
    def columns(self) -> list[list[str]]:
        """The columns below the names, as they are written."""
        rows = list(self._rows(self.body))
        width = len(self.names) or len(rows[0])
        for number, row in enumerate(rows, start=1 + bool(self.names)):
            if len(row) != width:
                raise ValueError(f"{self.path} must have {width} fields in every line, got {len(row)} in line {number}")
        return [[field.strip() for field in column] for column in zip(*rows, strict=True)]

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        """The columns as numbers, shape (lines, columns), NaN where one is missing; None if any column holds words."""
        try:
            table = np.loadtxt(io.StringIO(self.body), delimiter=",", ndmin=2, comments=None)
            exact = not np.any(np.isfinite(table) & (np.abs(table) >= LARGEST))
            if exact and len(self.names) in (0, table.shape[1]):
                return table
        except ValueError:  # it holds more than numbers, or in quotes
            pass
        if not all(map(is_numeric, self.columns)):
            return None
        return np.column_stack([self.as_numbers(column) for column in self.columns])

    def as_numbers(self, column: Sequence[str]) -> NDArray[np.float64]:
        """Return a column of numbers, or refuse what a float cannot hold."""
        for field in column:
            if WHOLE.fullmatch(field) and abs(int(field)) >= LARGEST:
                raise ValueError(f"{self.path} must hold whole numbers below 2**53, got {field[:40]}")
        return np.array([np.nan if is_missing(field) else float(field) for field in column])

    def _rows(self, text: str) -> Any:
        try:
            yield from csv.reader(io.StringIO(text), strict=True)
        except csv.Error as error:
            raise ValueError(f"{self.path} must be comma-separated text: {error}") from None


def is_numeric(*columns: Sequence[str]) -> bool:
    """Tell whether columns hold numbers, or nothing where one is missing: then they are numbers and no words."""
    fields = {field for column in columns for field in column}
    return all(_is_number(field) or is_missing(field) for field in fields) and any(map(_is_number, fields))


def read_counts(path: Path) -> NDArray[Any]:
    """Read counts, shape (cells,): .npy of any shape, or text with one count a line, or all in one."""
    if path.suffix == ".npy":
        return _read_npy(path).reshape(-1)
    table = Table.read(path)
    if table.numbers is None:
        wrong = next(field for column in table.columns for field in column if not _is_number(field))
        ways = "records need --add-row or --replace-row, counts with areas --areas and --count (systems only)"
        raise ValueError(f"{path} must hold numbers, one count a line, got {wrong[:40]!r}: {ways} ({HEADER})")
    if min(table.numbers.shape) > 1:  # such as a column of codes
        fields = f"{table.numbers.shape[1]} fields in a line: a decimal comma is read as two"
        raise ValueError(f"{path} must hold one count a line, got {fields}")
    return table.numbers.reshape(-1)


def read_errors(path: Path) -> NDArray[Any]:
    """Read errors, shape (areas,): .npy of any shape, or text with one a line."""
    if path.suffix == ".npy":
        return _read_npy(path).reshape(-1)
    numbers = Table.read(path).numbers
    if numbers is None or numbers.shape[1] > 1:
        what = "words" if numbers is None else f"a table of shape {numbers.shape}"
        raise ValueError(f"{path} must hold numbers, one error a line, got {what} ({HEADER})")
    return numbers[:, 0]


def read_outputs(*paths: Path) -> list[Any]:
    """Read outputs on two databases, one run a line: numbers, words, or records of both, as both files have them.

    What a column holds is settled once, over both files: words are words on either.
    """
    files = [_read_npy(path) if path.suffix == ".npy" else Table.read(path) for path in paths]
    tables = [file for file in files if isinstance(file, Table)]
    where = " and ".join(str(table.path) for table in tables)
    words = any(table.numbers is None for table in tables)
    names = [table.names for table in tables]
    if words and (not all(names) or len(set(names)) > 1):  # else the first run could be lost, or a name be a run
        raise ValueError(f"{where} must begin with the same line of names, since they hold words ({HEADER})")
    if len(set(map(bool, names))) > 1:
        raise ValueError(f"{where} must both begin with a line of names, or neither ({HEADER})")
    if not words:
        return [_alone(file.numbers) if isinstance(file, Table) else file for file in files]
    if len(tables) < len(files):
        raise ValueError(f"{where} must hold numbers, as the other file does")
    kinds = [is_numeric(*columns) for columns in zip(*(table.columns for table in tables), strict=True)]
    records = []
    for table in tables:
        columns = [
            table.as_numbers(column).tolist() if numeric else column
            for column, numeric in zip(table.columns, kinds, strict=True)
        ]
        records.append(columns[0] if len(columns) == 1 else list(zip(*columns, strict=True)))
    return records


def _alone(table: NDArray[Any] | None) -> Any:
    """Return a column that is the only one without its table."""
    return table[:, 0] if table is not None and table.shape[1] == 1 else table


def _is_number(field: str) -> bool:
    return bool(NUMBER.fullmatch(field) or INFINITE.fullmatch(field))


def is_missing(field: str) -> bool:
    """Tell whether a field says that there is no value."""
    return field.lower() in MISSING


def check_size(path: Path) -> None:
    """Refuse a file that is too large to be read whole."""
    if (size := path.stat().st_size) > LARGEST_INPUT:
        raise ValueError(f"{path} must be at most {LARGEST_INPUT} bytes, got {size}")


def _read_npy(path: Path) -> NDArray[Any]:
    check_size(path)
    with path.open("rb") as file:
        try:
            array = np.asarray(np.lib.format.read_array(file, allow_pickle=False))  # not np.load, which opens archives
            if not array.dtype.itemsize:  # of which a hundred bytes hold as many as they say
                raise ValueError(f"it has dtype {array.dtype}")
            return array
        except Exception as error:  # a damaged header raises whatever its parser does
            raise ValueError(f"{path} must hold an array of numbers or words: {error}") from error
