"""Tables of rows: data frames of pandas and polars, which are never imported here, and lists of dicts.

All three are cut by slices and have columns; each joins pieces in a way of its own.
"""

from __future__ import annotations

import datetime
import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np

from audit.arguments import LARGEST, whole_number
from audit.claims import Relation
from audit.neighbors.counts import steps

__all__ = ["check_table", "distance_of_tables", "is_table", "joined", "replaced", "units_of"]

# Whose `repr` tells two values apart, 1 and 1.0 and True included; of subclasses nobody knows what theirs tells.
TOLD_APART = {str, bytes, bool, int, float, complex, type(None), Decimal, Fraction, UUID}
TOLD_APART |= {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}


def is_table(data: Any) -> bool:
    """Tell whether data are a frame or a list of dicts."""
    return _library(data) is not None or (isinstance(data, list) and all(isinstance(row, Mapping) for row in data))


def check_table(data: Any) -> Any:
    """Return a copy of a table, or say what is wrong with it."""
    if not is_table(data):
        what = f"a list that holds {data!r:.40}" if isinstance(data, list) else type(data).__name__
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


def joined(table: Any, rows: Sequence[Any]) -> Any:
    """Return a table with rows at its end; each has a value for every column, of the type of that column."""
    return _together(table, _like(table, rows))


def replaced(table: Any, index: int, row: Any) -> Any:
    """Return a table with another row in the place of one."""
    index = whole_number("index", index, least=0)
    if index >= len(table):
        raise ValueError(f"index must be below the number of rows, {len(table)}, got {index}")
    return _together(table[:index], _like(table, [row]), table[index + 1 :])


def distance_of_tables(x: Any, y: Any, relation: Relation, key: str | None) -> int | None:
    """Return the steps between two multisets of units, or None where there is no such number."""
    if not _alike(x, y):
        return None
    of_x, of_y = (Counter(units_of(table, key).values()) for table in (x, y))
    return steps((of_y - of_x).total(), (of_x - of_y).total(), relation)


def units_of(table: Any, key: str | None) -> dict[str, bytes]:
    """Return what tells the data of each unit from others', by its key as text: without one, each row is a unit."""
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
        if _missing(value):
            raise ValueError(f"every row must name its unit, got {value!r} in column {key!r}")
        units[repr(value)].append(row)
    return {unit: b"".join(sorted(of_unit)) for unit, of_unit in units.items()}


def _library(data: Any) -> str | None:
    """Return which library a data frame is of; None for everything else, and for frames of its subclasses."""
    library = type(data).__module__.partition(".")[0]
    return library if type(data).__name__ == "DataFrame" and library in ("pandas", "polars") else None


def _names(table: Any) -> list[Any]:
    return list(table[0]) if isinstance(table, list) and table else list(getattr(table, "columns", []))


def _alike(x: Any, y: Any) -> bool:
    """Tell whether two tables have kind, columns and their types in common; a list without rows has any."""
    if isinstance(x, list) or isinstance(y, list):
        return type(x) is type(y) and (not x or not y or _names(x) == _names(y))
    same = _library(x) == _library(y) and _names(x) == _names(y)
    return same and all(x[name].dtype == y[name].dtype for name in _names(x))


def _column(table: Any, name: Any) -> list[Any]:
    """Return the values of a column, as Python's own where there are such."""
    if isinstance(table, list):
        return [row[name] for row in table]
    column = table[name]
    if _library(table) == "polars" and column.dtype.is_temporal():
        column = column.to_physical()  # Python's own have microseconds, and these may have nanoseconds
    return list(column.to_list())


def _together(*pieces: Any) -> Any:
    """Return the rows of several tables of one kind in one."""
    library = _library(pieces[0])
    if library is None:
        return list(chain(*pieces))
    concat = sys.modules[library].concat  # who has a frame has loaded it
    return concat(pieces, ignore_index=True) if library == "pandas" else concat(pieces)


def _like(table: Any, rows: Sequence[Any]) -> Any:
    """Return rows as a table with the columns and types of another."""
    names = _names(table) or (list(rows[0]) if isinstance(table, list) and isinstance(rows[0], Mapping) else [])
    rows = [_ordered(row, names) for row in rows]
    if isinstance(table, list):
        present = {name: _column(table, name) for name in names}
        columns = {name: _of_column_types(present[name], [row[name] for row in rows], name) for name in names}
        return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return type(table)({name: _series(table[name], [row[name] for row in rows], name) for name in names})


def _ordered(row: Any, names: Sequence[Any]) -> dict[Any, Any]:
    """Return a row in the order of columns, which it has all and no others."""
    if not isinstance(row, Mapping):
        raise TypeError(f"a row must be a mapping from column to value, got {type(row).__name__}")
    if row.keys() != set(names):
        wanted, got = (", ".join(map(str, columns)) for columns in (names, row))
        raise ValueError(f"a row must have the columns {wanted}, got {got or 'none'}")
    return {name: row[name] for name in names}


def _of_column_types(column: list[Any], values: list[Any], name: Any) -> list[Any]:
    """Return values for a column of Python objects, whose types are those that were seen."""
    kinds = set(map(type, column))
    if float in kinds and int not in kinds:
        values = [float(value) if type(value) is int and abs(value) < LARGEST else value for value in values]
    for value in values:
        if kinds and type(value) not in kinds:
            types = ", ".join(sorted("nothing" if kind is type(None) else kind.__name__ for kind in kinds))
            raise ValueError(f"column {name!r} holds {types}, got {value!r}")
    return values


def _series(column: Any, values: list[Any], name: Any) -> Any:
    """Return values as a column of the same type, or refuse those that come out as others."""
    if column.dtype == object:
        values = _of_column_types(column.to_list(), values, name)
    try:
        series = type(column)(values, dtype=column.dtype)
        fit = series.dtype == column.dtype and all(map(_same, series.to_list(), values))
    except Exception:  # each library has its own
        fit = False
    if not fit:
        raise ValueError(f"column {name!r} holds {column.dtype}, got {', '.join(map(repr, values))}")
    return series


def _same(kept: Any, value: Any) -> bool:
    """Tell whether a column keeps a value; a float may be rounded to fewer bits."""
    if _missing(kept) or _missing(value):
        return _missing(kept) and _missing(value)
    if isinstance(kept, bool | np.bool_) or isinstance(value, bool | np.bool_):
        return type(kept) is type(value) and bool(kept == value)
    if isinstance(kept, float) and isinstance(value, float | np.floating):
        return bool(np.isfinite(kept) == np.isfinite(value))
    return bool(kept == value)


def _missing(value: Any) -> bool:
    """Tell whether a cell is empty: None, NaN, and what pandas has for them."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)
