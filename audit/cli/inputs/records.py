"""Files of records, and pairs that add or replace a row; also pairs of similar rows that may lose more."""

from __future__ import annotations

import csv
import glob
import json
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain, count, islice, zip_longest
from pathlib import Path
from typing import Any

from audit.cli.inputs import HEADER, tables
from audit.cli.inputs.groups import DatabaseOptions
from audit.cli.inputs.tables import LARGEST_INPUT, MOST_VALUES, Table, check_size, is_numeric
from audit.neighbors import NeighborPair
from audit.neighbors.counts import is_missing, place_of, where

__all__ = ["Row", "column_of", "read_records", "read_rows", "record_of"]

COUNT = re.compile(r"\d{1,15}", re.ASCII)  # the format of counts in `plaudit release`
CODE = re.compile(r"[+-]?0\d")  # a leading zero: a code, such as a postal code, not a number
WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
CODES, LARGEST_CODE, REPEATS = 12, 20, 3  # a column seems to hold codes: most codes, largest, rows per code
MOST = 12  # rows with a missing or unknown value that a search tries


def read_records(path: Path, count: str | None = None) -> Any:
    """Return the records of a file as a pandas DataFrame if pandas is installed, else as a list of dicts."""
    # CSV must start with a line of names. A column is numeric if all its fields are numbers or missing, and none has a
    # leading zero, as codes have; otherwise it is text. The column `count` must hold counts.
    if path.suffix == ".parquet":
        return _read_parquet(path)
    table = Table.read(path)
    if not table.names or len(set(table.names)) < len(table.names):
        raise ValueError(f"{path} must begin with a line of names, all different ({HEADER})")
    columns = {name: _typed(table, place) for place, name in enumerate(table.names)}
    if count in columns:
        table.check(COUNT.fullmatch, "must hold counts, in digits alone", place=table.names.index(count))
        columns[count] = list(map(int, table.columns[table.names.index(count)]))
    pandas = _library("pandas")
    if pandas is not None:
        return pandas.DataFrame(columns)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def record_of(records: Any, text: str) -> dict[str, Any]:
    """Parse a record: a JSON object, or values in the order of the columns."""
    if text.lstrip().startswith("{"):
        try:
            return dict(json.loads(text, parse_constant=_refuse))
        except (ValueError, RecursionError) as error:
            raise ValueError(f'a record in JSON must be an object such as {{"age": 30}}: {error}') from None
    try:
        fields = next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        raise ValueError(f"a record must be a JSON object or comma-separated values: {error}") from None
    names = list(records[0]) if isinstance(records, list) else list(records.columns)
    if len(fields) != len(names):
        raise ValueError(f"a record must have {len(names)} values, of {', '.join(names)}, got {len(fields)}")
    return {name: _value(records, name, field.strip()) for name, field in zip(names, fields, strict=True)}


def column_of(records: Any, name: str) -> list[Any]:
    """Return the values of a column."""
    return [row[name] for row in records] if isinstance(records, list) else list(records[name].tolist())


def _value(records: Any, name: str, field: str) -> Any:
    kinds = {type(value) for value in column_of(records, name) if value is not None and value == value}
    if kinds == {str}:
        return field
    if kinds == {bool}:
        return {"true": True, "false": False}.get(field.lower(), field)
    if tables.is_missing(field):
        return None
    if kinds == {int} and WHOLE.fullmatch(field):
        return int(field)
    return float(field) if is_numeric([field]) else field


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no value")


def _typed(table: Table, place: int) -> list[Any]:
    column = table.columns[place]
    if not table.has_numbers(place) or any(CODE.match(field) for field in column):
        return column
    values = table.as_numbers(place).tolist()
    if all(WHOLE.fullmatch(field) for field in column if not tables.is_missing(field)):
        values = [int(value) if value == value else value for value in values]
    return [value if value == value else None for value in values]


def _read_parquet(path: Path) -> Any:
    check_size(path)
    if (duckdb := _library("duckdb")) is None:
        raise ValueError(f"{path}: Parquet needs DuckDB: pip install 'plaudit[census]'")
    try:
        source = duckdb.read_parquet(glob.escape(str(path)))
        if not 0 < len(source) * len(source.columns) <= MOST_VALUES:
            got = f"{len(source)} rows of {len(source.columns)}"
            raise ValueError(f"it must hold 1 to {MOST_VALUES} values, got {got}")
        texts = [name for name, kind in zip(source.columns, source.types, strict=True) if str(kind) == "VARCHAR"]
        lengths = ", ".join(f'coalesce(sum(strlen("{name.replace(chr(34), 2 * chr(34))}")), 0)' for name in texts)
        if (size := sum(source.aggregate(lengths).fetchall()[0]) if texts else 0) > LARGEST_INPUT:
            raise ValueError(f"it must hold at most {LARGEST_INPUT} bytes, got {size} once unpacked")
        pandas, arrow = _library("pandas"), _library("pyarrow.parquet")
        if pandas is not None and arrow is not None:  # pyarrow keeps categories, decimals, dates and an index
            with arrow.ParquetFile(path) as file:
                return file.read().to_pandas()
        rows = [dict(zip(source.columns, row, strict=True)) for row in source.fetchall()]
        return rows if pandas is None else pandas.DataFrame(rows)
    except Exception as error:  # the libraries may raise any type
        raise ValueError(f"{path} must be a Parquet file of records: {error}") from None


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


@dataclass(frozen=True)
class Row:
    """A record, its text, and the place in a file where it is added or replaces another."""

    path: Path
    records: Any
    text: str
    record: dict[str, Any]
    place: int
    replaces: bool
    number: str = ""  # if several rows were given

    @property
    def name(self) -> str:
        """The words for the pair in the name of a result."""
        there = where(self.place, len(self.records))
        return f"replaced row {self.place}" if self.replaces else f"added row{self.number}{there}"

    def pair(self, words: str = "") -> NeighborPair:
        """Return the pair, with words added to its label. A missing value becomes '' in a text column of CSV."""
        names = self.records[0] if isinstance(self.records, list) else self.records
        gaps = [name for name in names if self.path.suffix == ".csv" and self.record.get(name, "") is None]
        record = self.record | {name: "" for name in gaps if type(column_of(self.records, name)[0]) is str}
        if self.replaces:
            label = f"row {self.place} replaced{words}"
            return NeighborPair.replace_row(self.records, self.place, record, label=label)
        added = f"added row{self.number}" if self.number else "1 row added"
        label = f"{added}{where(self.place, len(self.records))}{words}"
        return NeighborPair.add_row(self.records, record, at=self.place, label=label)

    def alike(self) -> Iterator[NeighborPair]:
        """Yield pairs with the row at other places, with one record fewer, and with other values in the row."""
        rows, (larger, others) = len(self.records), self._changes()
        places = [0] if self.replaces else [0, place_of("random", rows), rows]
        elsewhere = [(replace(self, place=place), "") for place in dict.fromkeys(places) if place != self.place]
        fewer = replace(self, records=self.records[:-1], place=min(self.place, rows - 1))
        front = self if self.replaces else replace(self, place=0)
        starts = [front] if front.place == self.place else [front, self]
        changes = [(row, *change) for change in larger for row in starts]
        changes += [(front, *change) for change in islice(others, MOST)]
        values = [(replace(row, record=self.record | change), f", {words}") for row, words, change in changes]
        shorter = [(fewer, ", one row fewer")] if rows > 1 else []
        for row, words in (*elsewhere[:1], *shorter, *values, *elsewhere[1:]):
            with suppress(ValueError):  # the row is gone or unchanged, or a value does not fit its column
                yield row.pair(words)

    def _changes(self) -> tuple[list[tuple[str, dict[str, Any]]], Iterable[tuple[str, dict[str, Any]]]]:
        """Return changed values with descriptions: first larger numbers, which code may forget to clip, then others."""
        # The others are missing values, and values that do not occur in the data. A column that seems to hold codes
        # gets no larger numbers.
        larger: dict[str, Any] = {}
        missing: dict[str, dict[str, Any]] = {}
        unknown: dict[str, dict[str, Any]] = {}
        for name, value in sorted(self.record.items(), key=lambda item: type(item[1]) is str):  # numeric columns first
            known, number = set(column_of(self.records, name)), type(value) in (int, float)
            sizes = {abs(one) for one in known if number and type(one) in (int, float) and abs(one) < math.inf}
            if value != "" and not is_missing(value):
                missing[f"no {name}"] = {name: None}
            if type(value) is str or (number and _are_codes(sizes, len(self.records))):
                new = next(one for one in _others(value) if one not in known)
                unknown |= {f"an unknown {name}": {name: new}} if value in known else {}
            elif number:
                larger[name] = max(10 * max(sizes, default=1), 10, abs(value))
        numbers = []
        for words, sign in (("larger numbers", 1), ("numbers far below 0", -1)):
            if change := {name: sign * most for name, most in larger.items() if self._fits(name, sign * most)}:
                numbers.append((words, change))
        return numbers, filter(None, chain.from_iterable(zip_longest(missing.items(), unknown.items())))

    def _fits(self, name: str, value: float) -> bool:
        whole = self.records
        with suppress(ValueError):
            first = [{name: whole[0][name]}] if isinstance(whole, list) else whole[[name]][:1]
            NeighborPair.add_row(first, {name: value})
            return math.isfinite(value)
        return False


def _are_codes(sizes: set[Any], rows: int) -> bool:
    """Return whether the numbers of a column seem to be codes: few small integers, each repeated."""
    return 1 < len(sizes) <= CODES and rows >= REPEATS * len(sizes) and sizes <= set(range(LARGEST_CODE + 1))


def _others(value: Any) -> Iterator[Any]:
    if type(value) is not str:
        return count(1)
    if value.isdecimal():
        return (str(number).zfill(len(value)) for number in count(1))
    return chain(["other"], (f"other {number}" for number in count(2)))


def read_rows(data: str, databases: DatabaseOptions) -> list[Row]:
    """Return the requested rows."""
    path = Path(data)
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"data must be a .csv or .parquet file of records for --add-row, got {data!r}")
    if databases.add_row and databases.replace_row:
        raise ValueError("--add-row and --replace-row exclude each other: a pair differs in one of them")
    records = read_records(path)
    if databases.replace_row is not None:
        index, text = databases.replace_row
        return [Row(path, records, text, record_of(records, text), index, True)]
    place = place_of(int(databases.at) if databases.at.isdecimal() else databases.at, len(records))
    rows = [Row(path, records, text, record_of(records, text), place, False) for text in databases.add_row or ()]
    return [replace(row, number=f" {number}") for number, row in enumerate(rows, 1)] if len(rows) > 1 else rows
