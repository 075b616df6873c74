"""Read files of numbers, text and records (CSV or .npy); input that can be read in two ways is an error."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.arguments import LARGEST
from audit.cli.inputs import HEADER
from audit.io.files import read_bytes
from audit.io.layout import check_commas, decoded
from audit.io.text import printable, quoted

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
MOST_VALUES = 2**26  # of a file; reading needs up to 100 bytes of memory for each
MISSING = {"", "na", "nan", "none"}
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
UNCLEAR = re.compile(r"[+-]?\.?\d")  # the start of a number, so perhaps a mistyped number
# A number with a comma, decimal or of thousands; POINTS: a number whose points may be decimal or of thousands.
COMMA = re.compile(r"[+-]?\d{1,3}([., ]?\d{3})*,(\d{3}\.)?\d+(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
DECIMALS = re.compile(r"(?<![^,\n])[+-]?\d+,0\d+(?![^,\n])")  # a decimal comma: no integer starts with 0
FORMS = (r"\g<0>", r"\3-\2-\1", r"\3-\1-\2")  # of dates: unchanged, day first, month first
POINTS = re.compile(r"\d{1,3}(\.\d{3})+", re.ASCII)
BLANK = re.compile(r"^[^\S\n]*\n|^[^\S\n]+\Z", re.MULTILINE)


@dataclass(frozen=True)
class Table:
    """Comma-separated text with columns, and optionally a line of names."""

    path: Path
    text: str

    def __post_init__(self) -> None:
        if blank := BLANK.search(self.text):
            line = self.text.count("\n", 0, blank.start()) + 1
            raise ValueError(f"{self.path} must have no blank line, which would shift what follows, got line {line}")
        if not self.body:
            raise ValueError(f"{self.path} must hold at least one value, got none ({HEADER})")

    @classmethod
    def read(cls, path: Path, *, grows: bool = False) -> Table:
        """Read a file, but no line without an end if it `grows`. It is opened only once, since it may be a pipe."""
        content = read_bytes(path, LARGEST_INPUT)
        content = content[: max(map(content.rfind, (b"\n", b"\r"))) + 1] if grows else content
        if (values := content.count(b",") + max(map(content.count, (b"\n", b"\r")))) > MOST_VALUES:
            raise ValueError(f"{path} must hold at most {MOST_VALUES} values, got {values} commas and lines")
        text = decoded(path, content)
        check_commas(path, *text.split("\n", 2)[:2])
        return cls(path, text)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns; empty if the first line holds values."""
        fields = [field.strip() for field in next(self._rows(self.text.partition("\n")[0]), [])]
        values = [_is_number(field) or is_missing(field) for field in fields]
        if fields[:1] == [""] and values[1:] and not any(values[1:]):
            ways = "row.names = FALSE in R, index=False in pandas"
            raise ValueError(f"{self.path} must name every column, got row names without a name in column 1: {ways}")
        if not fields or any(values):
            return ()
        if unclear := next(filter(UNCLEAR.match, fields), ""):
            rule = f"must begin with names or values, and {unclear[:40]!r} may be either ({HEADER})"
            raise ValueError(f"{self.path} {rule}")
        return tuple(fields)

    @cached_property
    def body(self) -> str:
        """The lines below the names."""
        return self.text.partition("\n")[2] if self.names else self.text

    @cached_property
    def columns(self) -> list[list[str]]:
        """The columns below the names, as text."""
        rows = list(self._rows(self.body))
        width = len(self.names) or len(rows[0])
        for number, row in enumerate(rows, start=1 + bool(self.names)):
            if len(row) != width:
                got = f"got {len(row)} in line {number}, {quoted(','.join(row))}"
                way_out = "a number has no comma, and row names have a name"
                raise ValueError(f"{self.path} must have {width} fields in every line, {got}: {way_out}")
        return [[field.strip() for field in column] for column in zip(*rows, strict=True)]

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        """The columns as numbers, shape (lines, columns), NaN if missing; None if any column holds text."""
        try:
            table = np.loadtxt(io.StringIO(self.body), delimiter=",", ndmin=2, comments=None)
            exact = not np.any(np.isfinite(table) & (np.abs(table) >= LARGEST))
            if exact and len(self.names) in (0, table.shape[1]):
                return table
        except ValueError:  # it holds text, or numbers in quotes
            pass
        places = range(len(self.columns))
        if not all([self.has_numbers(place) for place in places]):
            return None
        return np.column_stack([self.as_numbers(place) for place in places])

    def has_numbers(self, place: int) -> bool:
        """Return whether a column holds numbers; raise an error for numbers with commas, which would become text."""
        column = self.columns[place]
        if not is_numeric(column) and is_numeric(["0" if COMMA.fullmatch(field) else field for field in column]):
            way_out = "write a point for a decimal comma, nothing between thousands, and a letter into words"
            self.check(lambda field: not COMMA.fullmatch(field), "must hold numbers without commas", way_out, place)
        return is_numeric(column)

    def as_numbers(self, place: int) -> NDArray[np.float64]:
        """Return a column of numbers; raise an error for integers that a float cannot represent."""

        def exact(field: str) -> bool:
            return not WHOLE.fullmatch(field) or abs(float(field)) < LARGEST

        self.check(exact, "must hold whole numbers below 2**53", "leave the column out, or make it words", place)
        return np.array([np.nan if is_missing(field) else float(field) for field in self.columns[place]])

    def check(self, right: Callable[[str], Any], rule: str, way_out: str = "", place: int | None = None) -> None:
        """Raise an error that locates the first value of a column, or of all columns, for which `right` is false."""
        for number in range(len(self.columns)) if place is None else [place]:
            for line, field in enumerate(self.columns[number], 1 + bool(self.names)):
                if not right(field):
                    got = f"got {quoted(field)} in {self.title(number)} of line {line}"
                    raise ValueError(f"{self.path} {rule}, {got}{way_out and f': {way_out}'}")

    def title(self, place: int) -> str:
        """Return the name of a column for messages."""
        return f"column {quoted(self.names[place])}" if self.names else f"field {place + 1}"

    def _rows(self, text: str) -> Any:
        try:
            yield from csv.reader(io.StringIO(text), strict=True)
        except csv.Error as error:
            raise ValueError(f"{self.path} must be comma-separated text: {error}") from None


def is_numeric(*columns: Sequence[str]) -> bool:
    """Return whether columns hold numbers, apart from missing values."""
    fields = {field for column in columns for field in column}
    return all(_is_number(field) or is_missing(field) for field in fields) and any(map(_is_number, fields))


def read_counts(path: Path) -> NDArray[Any]:
    """Read counts, shape (cells,), from .npy of any shape, or from text with one count a line or a single line."""
    if path.suffix == ".npy":
        return _read_npy(path).reshape(-1)
    table = Table.read(path)
    ways = "records need --add-row or --replace-row, counts with areas --areas and --count (systems only)"
    counts = table.numbers
    if counts is None or len(counts) != 1:
        counts = _column(table, "count", ways)
    table.check(_is_count, "must hold counts, whole numbers below 2**53 without points for thousands")
    return counts.reshape(-1)


def read_errors(path: Path) -> NDArray[Any]:
    """Read errors, shape (areas,), from .npy of any shape, or from text with one error a line."""
    return (_read_npy(path) if path.suffix == ".npy" else _column(Table.read(path), "error")).reshape(-1)


def _column(table: Table, what: str, ways: str = "") -> NDArray[np.float64]:
    """Return the numbers of a file with one column, shape (lines, 1); the error for other files says what to do."""
    if table.numbers is None:
        table.check(_is_number, f"must hold numbers, one {what} a line", f"{ways} ({HEADER})" if ways else HEADER)
    elif table.numbers.shape[1] == 1:
        return table.numbers
    got = f"{len(table.columns)} columns, {quoted(table.text.partition(chr(10))[0])}"
    way_out = "if that is one number, write a point for a decimal comma, none for thousands; else keep one column"
    raise ValueError(f"{table.path} must hold one {what} a line, got {got}: {way_out}")


def read_outputs(*paths: Path, first: int = 0) -> tuple[list[Any], tuple[str, ...]]:
    """Read outputs on two databases, one run a line: numbers, text, or records of both; and names of columns.

    Of files that grow, the `first` lines of both decide what columns hold, and columns that are empty there are left
    out: all looks at these files read them alike.
    """
    # The type of a column is inferred from both files together, so that it is the same in both.
    files = [_read_npy(path) if path.suffix == ".npy" else Table.read(path, grows=first > 0) for path in paths]
    tables = [file for file in files if isinstance(file, Table)]
    where = " and ".join(str(table.path) for table in tables)
    words = [table for table in tables if table.numbers is None]
    names = [table.names for table in tables]
    if words and (not all(names) or len(set(names)) > 1):  # else a run could be read as names, or names as a run
        words[0].check(_is_number, f"must hold numbers, or {where} begin with the same line of names", HEADER)
    if len(set(map(bool, names))) > 1 or len(set(names)) > len(set(map(frozenset, names))):
        got = " and ".join(", ".join(one) or "none" for one in names)
        raise ValueError(f"{where} must both begin with the same line of names, or neither, got {got} ({HEADER})")
    for table in tables:
        _check_order(table)
        _tell_reading(table)
    widths = {len(table.columns) if table.numbers is None else table.numbers.shape[1] for table in tables}
    if len(widths) > 1:
        raise ValueError(f"{where} must have the same number of columns, got {' and '.join(map(str, sorted(widths)))}")
    if first and tables:
        if len(tables) < len(files):
            raise ValueError(f"files that grow must both be text, or both .npy, got {paths[0]} and {paths[1]}")
        return _read_alike(tables, first, where)
    of_columns = names[0] if len(set(names)) == 1 and len(names[0]) > 1 else ()
    if not words:
        return [_alone(file.numbers) if isinstance(file, Table) else file for file in files], of_columns
    if len(tables) < len(files):
        raise ValueError(f"{where} must hold numbers, as the other file does")
    kinds = [is_numeric(*columns) for columns in zip(*(table.columns for table in tables), strict=True)]
    records = []
    for table in tables:
        columns = [
            table.as_numbers(place).tolist() if numeric else table.columns[place] for place, numeric in enumerate(kinds)
        ]
        records.append(columns[0] if len(columns) == 1 else list(zip(*columns, strict=True)))
    return records, of_columns


def _read_alike(tables: Sequence[Table], first: int, where: str) -> tuple[list[Any], tuple[str, ...]]:
    """Return outputs of files that grow, and names of columns, read as the first lines of both decide."""
    kept, names = [], []
    for place, columns in enumerate(zip(*(table.columns for table in tables), strict=True)):
        begins = [field for column in columns for field in column[:first]]
        if all(map(is_missing, begins)):
            print(f"{where}: {tables[0].title(place)} is left out: {first} lines begin without it", file=sys.stderr)
            continue
        if numeric := is_numeric(begins):
            for table in tables:
                rule = f"must hold only numbers, as the first {first} lines of {where} do"
                table.check(_is_number_or_missing, rule, "begin anew with new runs, and without --early", place)
        kept.append([table.as_numbers(place).tolist() if numeric else table.columns[place] for table in tables])
        names.append(tables[0].names[place] if tables[0].names else "")
    if not kept:
        raise ValueError(f"{where} must hold an entry in their first {first} lines, got none")
    records = [side[0] if len(side) == 1 else list(zip(*side, strict=True)) for side in zip(*kept, strict=True)]
    return records, tuple(names) if len(names) > 1 and len({table.names for table in tables}) == 1 else ()


def _is_number_or_missing(field: str) -> bool:
    return is_missing(field) or _is_number(field)


def _tell_reading(table: Table) -> None:
    """Print on stderr possible mistakes: commas read as separators, and a column of mostly numbers read as text."""
    if len(table.columns) > 1 and not table.names:
        print(f"{printable(str(table.path))} read as {len(table.columns)} columns, divided by commas", file=sys.stderr)
    for place, column in enumerate(table.columns if table.numbers is None else ()):
        lines = enumerate(column, 1 + bool(table.names))
        odd = [(field, line) for line, field in lines if not (_is_number(field) or is_missing(field))]
        if 0 < 2 * len(odd) < len(column):
            got = f"{quoted(odd[0][0])} in line {odd[0][1]} is no number"
            print(f"warning: {table.path}: {table.title(place)} read as words, for {got}", file=sys.stderr)


def _key(form: str, field: str) -> str:
    """Return a key that sorts r9 before r10, and dates by year, month and day."""
    field = re.sub(r"^(\d+)[./-](\d+)[./-](\d+)\b", form, field)
    return re.sub(r"\d+", lambda digits: digits[0].zfill(20), field)


def _check_order(table: Table) -> None:
    """Raise an error if a column is sorted or numbers the runs, or if decimal commas split numbers into columns."""
    from audit.sampling.independence import order_of

    if not table.names and (decimals := DECIMALS.search(table.text)):
        line = table.text.count("\n", 0, decimals.start()) + 1
        rule = "must have names above its columns, or points for decimal commas"
        raise ValueError(f"{table.path} {rule}, got {quoted(decimals[0])} in line {line}")
    for place in range(len(table.columns) if table.numbers is None else table.numbers.shape[1]):
        if table.numbers is not None:
            keys = [table.numbers[:, place]]
        elif table.has_numbers(place):
            keys = [table.as_numbers(place)]
        else:
            keys = [np.array([_key(form, field) for field in table.columns[place]], object) for form in FORMS]
        if order := next(filter(None, map(order_of, keys)), ""):
            does = "numbers the lines" if order == "numbers" else f"{order} from line to line"
            got = f"{table.title(place)} {does} ({', '.join(table.columns[place][:4])}, ...)"
            way_out = "leave it out if it numbers or dates the runs; if several lines are one run, pivot the table so "
            way_out += "that each key is a column; else keep the order in which the runs were made"
            raise ValueError(f"{table.path}: {got}: {way_out}")


def _alone(table: NDArray[Any] | None) -> Any:
    return table[:, 0] if table is not None and table.shape[1] == 1 else table


def _is_number(field: str) -> bool:
    return bool(NUMBER.fullmatch(field))


def _is_count(field: str) -> bool:
    return _is_number(field) and 0 <= float(field) < LARGEST and float(field) % 1 == 0 and not POINTS.fullmatch(field)


def is_missing(field: str) -> bool:
    """Return whether a field means a missing value."""
    return field.lower() in MISSING


def check_size(path: Path) -> None:
    """Raise an error if a file is too large to be read into memory."""
    if (size := path.stat().st_size) > LARGEST_INPUT:
        raise ValueError(f"{path} must be at most {LARGEST_INPUT} bytes, got {size}")


def _read_npy(path: Path) -> NDArray[Any]:
    check_size(path)
    with path.open("rb") as file:
        try:
            array = np.asarray(np.lib.format.read_array(file, allow_pickle=False))  # np.load also opens archives
            if not array.dtype.itemsize:  # a small file could declare any number of empty elements
                raise ValueError(f"it has dtype {array.dtype}")
            return array
        except Exception as error:  # the parser of a damaged header may raise any type
            raise ValueError(f"{path} must hold an array of numbers or words: {error}") from error
