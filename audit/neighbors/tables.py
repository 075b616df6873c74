"""Tables of rows: data frames of pandas and polars, which are never imported here, and lists of dicts."""

from __future__ import annotations

import datetime
import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import chain, pairwise
from typing import Any
from uuid import UUID

import numpy as np

from audit.arguments import LARGEST, whole_number
from audit.claims import Relation
from audit.neighbors.counts import (
    check_counts,
    check_records,
    distance_of_counts,
    distance_of_records,
    frozen,
    is_missing,
    steps,
)

__all__ = ["as_given", "check_table", "compared", "distance_of_tables", "joined", "replaced", "rows_apart", "units_of"]

# Types whose `repr` differs for different values, 1 and 1.0 and True included; a subclass may have another `repr`.
TOLD_APART = {str, bytes, bool, int, float, complex, type(None), Decimal, Fraction, UUID}
LONGEST, FEW = 2**17, 4  # most rows of a database, and most differing rows, that are compared
TOLD_APART |= {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}


def check_table(data: Any) -> Any:
    """Return a copy of a table; refuse other data."""
    if not _is_table(data):
        what = f"a list that holds {data!r:.40}" if isinstance(data, list) else type(data).__name__
        what += " (use NeighborPair.declared for several tables)" if isinstance(data, Mapping) else ""
        raise TypeError(f"a table must be a DataFrame of pandas or polars or a list of dicts, got {what}")
    if isinstance(data, list):
        names = list(data[0]) if data else []
        return [_ordered(row, names) for row in data]
    names = list(data.columns)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"a table must have columns with different names, got {names}")
    if _library(data) == "pandas" and (data.index.names != [None] or data.index.tolist() != list(range(len(data)))):
        raise ValueError("the index of a frame must be 0, 1, ... without a name: use frame.reset_index()")
    return data.clone() if _library(data) == "polars" else data.copy()


def joined(table: Any, rows: Sequence[Any], place: int) -> tuple[Any, Any]:
    """Return a table, and a copy with rows inserted; a column with its first missing value changes its type in both."""
    table, new = _like(table, rows)
    return table, _together(table[:place], new, table[place:])


def replaced(table: Any, indices: Sequence[int], rows: Sequence[Any]) -> tuple[Any, Any]:
    """Return a table, and a copy with some rows replaced by `rows`, of which surplus ones follow the last place."""
    places = [whole_number("index", index, least=0) for index in indices]
    if not places or places != sorted(set(places)):
        raise ValueError(f"indices must be at least one, each once and in order, got {places}")
    if places[-1] >= len(table):
        raise ValueError(f"index must be below the number of rows, {len(table)}, got {places[-1]}")
    table, new = _like(table, rows)
    pieces = [table[: places[0]]]
    for number, (start, end) in enumerate(pairwise([*places, len(table)]), 1):
        pieces += [new[number - 1 : number if number < len(places) else None], table[start + 1 : end]]
    return table, _together(*pieces)


def compared(x: Any, y: Any, relation: Relation, *, records: bool, key: str | None) -> tuple[Any, Any, int | None]:
    """Return two checked databases and the steps between them, or None; with `records`, arrays are records."""
    check: Callable[[Any], Any]
    measure: Callable[[Any, Any, Relation], int | None]
    if _is_table(x) or _is_table(y):
        check, measure = check_table, partial(distance_of_tables, key=key)
    elif records:
        check, measure = check_records, distance_of_records
    else:
        check, measure = check_counts, distance_of_counts
    x, y = check(x), check(y)
    return x, y, measure(x, y, relation)


def as_given(data: Any) -> Any:
    """Return arrays and lists of numbers as read-only arrays, and everything else, even ragged lists, unchanged."""
    if isinstance(data, list):
        try:
            array = np.asarray(data)
        except ValueError:
            return data
        return frozen(array) if array.dtype.kind in "biufc" else data
    return frozen(np.asarray(data)) if isinstance(data, np.ndarray) else data


def distance_of_tables(x: Any, y: Any, relation: Relation, key: str | None) -> int | None:
    """Return the steps between two multisets of units, or None if there is no such number."""
    if not _alike(x, y):
        return None
    of_x, of_y = (Counter(units_of(table, key).values()) for table in (x, y))
    return steps((of_y - of_x).total(), (of_x - of_y).total(), relation)


def rows_apart(x: Any, y: Any) -> list[tuple[Any, bool]]:
    """Return the rows, at most 4, that one database has more often, and whether it is `y`; none of large databases."""
    sides = [_rows(data) for data in (x, y)]
    if any(side is None or len(side) > LONGEST for side in sides):
        return []
    on_x, on_y = (Counter(map(repr, side or ())) for side in sides)
    apart = {key: on_y[key] > on_x[key] for key in (on_y - on_x) | (on_x - on_y)}
    rows = {key: row for side in sides for row in side or () if (key := repr(row)) in apart}
    return [(rows[key], in_y) for key, in_y in apart.items()] if len(apart) <= FEW else []


def _rows(data: Any) -> list[Any] | None:
    """Return the rows of records or of a table, as mappings if columns have names; None for other data."""
    if _is_table(data):
        names = _names(data)
        return [
            dict(zip(names, row, strict=True)) for row in zip(*(_column(data, name) for name in names), strict=True)
        ]
    if isinstance(data, np.ndarray):
        return data.tolist() if data.ndim == 2 else None
    listed = isinstance(data, list) and all(isinstance(row, list | tuple) for row in data)
    return data if listed else None


def units_of(table: Any, key: str | None) -> dict[str, bytes]:
    """Return a digest of the data of each unit, by its key as text; without a key, each row is a unit."""
    names = _names(table)
    columns = [_column(table, name) for name in names]
    for name, column in zip(names, columns, strict=True):
        for kind in set(map(type, column)) - TOLD_APART:
            if not issubclass(kind, np.generic) and not kind.__module__.startswith("pandas"):
                raise TypeError(
                    f"cells must be numbers, text, dates or missing, got {kind.__name__} in column {name!r} "
                    "(use NeighborPair.declared for them)"
                )
    rows = [hashlib.blake2b(repr(row).encode(), digest_size=16).digest() for row in zip(*columns, strict=True)]
    if key is None:
        return {str(number): row for number, row in enumerate(rows)}
    if names and key not in names:
        raise ValueError(f"key must be a column of the table, got {key!r}")
    units: dict[str, list[bytes]] = defaultdict(list)
    for value, row in zip(columns[names.index(key)] if names else [], rows, strict=True):
        if is_missing(value):
            raise ValueError(f"every row must name its unit, got {value!r} in column {key!r}")
        units[repr(value)].append(row)
    return {unit: b"".join(sorted(of_unit)) for unit, of_unit in units.items()}


def _is_table(data: Any) -> bool:
    """Tell whether data are a frame or a list of dicts."""
    return _library(data) is not None or (isinstance(data, list) and all(isinstance(row, Mapping) for row in data))


def _library(data: Any) -> str | None:
    """Return the library of a data frame; None for everything else, including frames of subclasses."""
    library = type(data).__module__.partition(".")[0]
    return library if type(data).__name__ == "DataFrame" and library in ("pandas", "polars") else None


def _names(table: Any) -> list[Any]:
    return list(table[0]) if isinstance(table, list) and table else list(getattr(table, "columns", []))


def _alike(x: Any, y: Any) -> bool:
    """Tell whether two tables have the same kind, columns and types; a list without rows fits any list."""
    if isinstance(x, list) or isinstance(y, list):
        return type(x) is type(y) and (not x or not y or _names(x) == _names(y))
    same = _library(x) == _library(y) and _names(x) == _names(y)
    return same and all(x[name].dtype == y[name].dtype for name in _names(x))


def _column(table: Any, name: Any) -> list[Any]:
    """Return the values of a column, as Python objects if possible."""
    if isinstance(table, list):
        return [row[name] for row in table]
    column = table[name]
    if _library(table) == "polars" and column.dtype.is_temporal():
        column = column.to_physical()  # Python's times have microseconds, and these may have nanoseconds
    return list(column.to_list())


def _together(*pieces: Any) -> Any:
    """Return one table with the rows of several tables of one kind."""
    library = _library(pieces[0])
    if library is None:
        return list(chain(*pieces))
    concat = sys.modules[library].concat  # loaded, as there is a frame
    return concat(pieces, ignore_index=True) if library == "pandas" else concat(pieces)


def _like(table: Any, rows: Sequence[Any]) -> tuple[Any, Any]:
    """Return a table and rows as a table, with the same columns and types."""
    first = rows[0] if isinstance(table, list) and rows else {}
    names = _names(table) or (list(first) if isinstance(first, Mapping) else [])
    rows = [_ordered(row, names) for row in rows]
    if isinstance(table, list):
        present = {name: _column(table, name) for name in names}
        columns = {name: _of_column_types(present[name], [row[name] for row in rows], name) for name in names}
        return table, [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    series = {}
    for name in names:
        column, series[name] = _series(table[name], [row[name] for row in rows], name)
        if column.dtype != table[name].dtype:  # only in pandas, and in a copy
            table[name] = column
    return table, type(table)(series)


def _ordered(row: Any, names: Sequence[Any]) -> dict[Any, Any]:
    """Return a row in the order of columns; refuse a row with missing or other columns."""
    if not isinstance(row, Mapping):
        raise TypeError(f"a row must be a mapping from column to value, got {type(row).__name__}")
    if row.keys() != set(names):
        wanted, got = (", ".join(map(str, columns)) for columns in (names, row))
        raise ValueError(f"a row must have the columns {wanted}, got {got or 'none'}")
    return {name: row[name] for name in names}


def _of_column_types(column: list[Any], values: list[Any], name: Any) -> list[Any]:
    """Return values for a column of Python objects, with missing values as it has them; refuse types it has not."""
    kinds = {
        kind
        for kind in set(map(type, column))
        if any(type(value) is kind and not is_missing(value) for value in column)
    }
    gaps = {type(value): value for value in column if is_missing(value)} if any(map(is_missing, values)) else {}
    entries = []
    for value in values:
        if is_missing(value):
            value = gaps.get(type(value), next(iter(gaps.values()), value))
        elif float in kinds and int not in kinds and type(value) is int and abs(value) < LARGEST:
            value = float(value)
        elif kinds and type(value) not in kinds:
            raise ValueError(f"column {name!r} holds {', '.join(sorted(k.__name__ for k in kinds))}, got {value!r}")
        entries.append(value)
    return entries


def _series(column: Any, values: list[Any], name: Any) -> tuple[Any, Any]:
    """Return a column, and values as one of its type, which can hold missing values if there are any; or refuse."""
    if column.dtype == object:
        values = _of_column_types(column.to_list(), values, name)
    series = _fitting(column, values)
    there = [value for value in values if not is_missing(value)]
    if series is None and len(there) < len(values) and _fitting(column, there) is not None:
        column = _with_gaps(column)
        series = _fitting(column, [None if is_missing(value) else value for value in values])
    if series is None:
        raise ValueError(f"column {name!r} holds {column.dtype}, got {', '.join(map(repr, values))}")
    return column, series


def _fitting(column: Any, values: list[Any]) -> Any:
    """Return values as a column of the same type, or None if the type changes some."""
    try:
        series = type(column)(values, dtype=column.dtype)
        fit = series.dtype == column.dtype and all(map(_same, series.to_list(), values))
    except Exception:  # each library has its own
        return None
    return series if fit else None


def _with_gaps(column: Any) -> Any:
    """Return a pandas column as its readers make it if a value is missing; other types can hold missing values."""
    kind = getattr(column.dtype, "kind", None)
    if kind in ("i", "u") and (column.astype(float).abs() < LARGEST).all():
        return column.astype(float)
    return column.astype(object) if kind == "b" else column


def _same(kept: Any, value: Any) -> bool:
    """Tell whether a column keeps a value; a float may be rounded to fewer bits."""
    if is_missing(kept) or is_missing(value):
        return is_missing(kept) and is_missing(value)
    if isinstance(kept, bool | np.bool_) or isinstance(value, bool | np.bool_):
        return type(kept) is type(value) and bool(kept == value)
    if isinstance(kept, float) and isinstance(value, float | np.floating):
        return bool(np.isfinite(kept) == np.isfinite(value))
    return bool(kept == value)
