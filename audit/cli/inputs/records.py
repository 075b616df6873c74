"""Files of records, and the record that is added or put in the place of another."""

from __future__ import annotations

import csv
import glob
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from audit.cli.inputs import HEADER
from audit.cli.inputs.tables import LARGEST_INPUT, MOST_VALUES, Table, check_size, is_missing, is_numeric

__all__ = ["column_of", "read_records", "record_of"]

COUNT = re.compile(r"\d{1,15}", re.ASCII)  # as `plaudit release` reads it
CODE = re.compile(r"[+-]?0\d")  # a leading zero: not a number, but a code such as a postal one
WHOLE = re.compile(r"[+-]?\d+", re.ASCII)


def read_records(path: Path, count: str | None = None) -> Any:
    """Return the records of a file as a frame of pandas if that is installed, else as a list of dicts.

    CSV begins with a line of names. A column has numbers if all its fields are numbers or missing and none has a
    leading zero, as codes have; else words. The column `count` holds counts.
    """
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
    """Return a record that is written as a JSON object, or as values in the order of the columns."""
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
    """Return the values of a column, a row each."""
    return [row[name] for row in records] if isinstance(records, list) else list(records[name].tolist())


def _value(records: Any, name: str, field: str) -> Any:
    kinds = {type(value) for value in column_of(records, name) if value is not None and value == value}
    if kinds == {str}:
        return field
    if kinds == {bool}:
        return {"true": True, "false": False}.get(field.lower(), field)
    if is_missing(field):
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
    if all(WHOLE.fullmatch(field) for field in column if not is_missing(field)):
        values = [int(value) if value == value else value for value in values]
    return [value if value == value else None for value in values]


def _read_parquet(path: Path) -> Any:
    check_size(path)
    arrow, duckdb, pandas = _library("pyarrow.parquet"), _library("duckdb"), _library("pandas")
    if arrow is None and duckdb is None:
        raise ValueError(f"{path}: Parquet needs pyarrow or DuckDB: pip install 'plaudit[census]'")
    try:
        if arrow is not None:
            table = _read_arrow(arrow, path)
            return table.to_pandas() if pandas is not None else table.to_pylist()
        source = duckdb.read_parquet(glob.escape(str(path)))
        _check_held(values=(len(source), len(source.columns)))
        texts = [name for name, kind in zip(source.columns, source.types, strict=True) if str(kind) == "VARCHAR"]
        lengths = ", ".join(f'coalesce(sum(strlen("{name.replace(chr(34), 2 * chr(34))}")), 0)' for name in texts)
        _check_held(size=sum(source.aggregate(lengths).fetchall()[0]) if texts else 0)
        rows = [dict(zip(source.columns, row, strict=True)) for row in source.fetchall()]
        return pandas.DataFrame(rows) if pandas is not None else rows
    except Exception as error:  # theirs, of every kind
        raise ValueError(f"{path} must be a Parquet file of records: {error}") from None


def _read_arrow(arrow: Any, path: Path) -> Any:
    """Read a table after checking that its text, unpacked, fits into memory."""
    kinds, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    with arrow.ParquetFile(path) as file:
        about, schema = file.metadata, file.schema_arrow
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    unpacked = (group.column(k).total_uncompressed_size for group in groups for k in range(group.num_columns))
    _check_held(values=(about.num_rows, about.num_columns), size=sum(unpacked))
    with arrow.ParquetFile(path, read_dictionary=schema.names) as file:  # text that comes again is kept once
        table = file.read()
    chunks = [chunk for column in table.columns for chunk in column.chunks if isinstance(chunk, kinds.DictionaryArray)]
    lengths = (compute.sum(compute.binary_length(chunk.dictionary).take(chunk.indices)) for chunk in chunks)
    _check_held(size=sum(length.as_py() or 0 for length in lengths))
    return table.cast(kinds.schema(schema, schema.metadata))


def _check_held(*, values: tuple[int, int] = (1, 1), size: int = 0) -> None:
    if not 0 < values[0] * values[1] <= MOST_VALUES:
        raise ValueError(f"it must hold 1 to {MOST_VALUES} values, got {values[0]} rows of {values[1]}")
    if size > LARGEST_INPUT:
        raise ValueError(f"it must hold at most {LARGEST_INPUT} bytes, got {size} once unpacked")


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None
