"""The three frames as the tabulation reads them: found by name, typed, and split when memory is short."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from typing import Any

from algorithms.phsafe.schema import Codes, Digits, Domain, Whole
from algorithms.tables.engine import Engine

__all__ = ["raw", "read_frame", "typed", "unread"]


def raw(name: str) -> str:
    """Return the name of a frame as it was given, before any value was read."""
    return f"given_{name}"


def read_frame(
    database: Engine, name: str, source: Any, columns: Mapping[str, Domain], *, part: int = 0, parts: int = 1
) -> dict[str, str]:
    """Read one frame under its name, without the columns that no table reads, and return the types given.

    Values outside a domain may become null. Of several `parts`, divided by ``MAFID``, a row without one is in the
    first.
    """
    types = {column.upper(): (column, kind) for column, kind in database.read(raw(name), source).items()}
    for column in columns:  # engines rename the second of two columns of one name
        if again := [given for key, (given, _) in types.items() if re.fullmatch(rf"{column}_\d+", key)]:
            raise ValueError(f"{name} must have one column {column}, got {again[0]} besides")
    if missing := [column for column in columns if column not in types]:
        found = reprlib.repr([column for column, _ in types.values()])
        raise ValueError(
            f"{name} must have the columns {', '.join(columns)}; {', '.join(missing)} missing, got {found}"
        )
    for column in columns:
        given, kind = types[column]
        wanted = ("text", "whole", "real") if isinstance(columns[column], Whole) else ("text", "whole")
        if kind not in wanted:
            raise ValueError(
                f"{name}.{given} must hold {'whole numbers' if 'real' in wanted else 'text'}, got {_words(kind)}"
            )
    given_types = {column: types[column][1] for column in columns}
    number = typed("MAFID", columns["MAFID"], given_types["MAFID"])
    values = {column: typed(column, domain, given_types[column]) for column, domain in columns.items()}
    for column, domain in columns.items():
        if isinstance(domain, Codes):
            values[column] = database.code(values[column], domain.codes)
        elif isinstance(domain, Digits):
            del values[column]  # nothing reads it but its own check
    chosen = ", ".join(f"{value} as {column}" for column, value in values.items())
    rows = raw(name)
    if parts > 1:
        rows = f"part_{name}"  # read once; a name of its own, for an engine may be used again without parts
        database.keep(rows, f"select * from {raw(name)} where coalesce({number} % {parts}, 0) = {part}")
    database.view(unread(name), f"select * from {rows}")
    database.table(name, f"select {chosen} from {unread(name)}")
    return given_types


def _words(kind: str) -> str:
    return "real numbers" if kind == "real" else kind


def unread(name: str) -> str:
    """Return the name of the part of a frame that is at work, values as they were given."""
    return f"unread_{name}"


def typed(column: str, domain: Domain, kind: str) -> str:
    """Return the SQL of a column in its type, null where the text given is no such value."""
    if isinstance(domain, Whole):
        readable = {"text": f"regexp_like({column}, '^[0-9]{{1,9}}$')", "real": f"{column} = floor({column})"}
        return column if kind == "whole" else f"case when {readable[kind]} then try_cast({column} as bigint) end"
    return column if kind == "text" else f"cast({column} as string)"
