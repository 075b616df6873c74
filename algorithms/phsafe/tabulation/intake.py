"""Reading of the three frames for the tabulation: columns are found by name and typed; large frames are cut."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

from algorithms.phsafe.schema import RECODED, Codes, Digits, Domain, Whole
from algorithms.release.duck import DuckDB, check_columns, check_renamed
from algorithms.release.engine import tell
from algorithms.release.recoding import Recoded
from algorithms.release.spark import Engine, Spark
from algorithms.schema import read_named

__all__ = ["Types", "each_part", "name_unused", "read_frame", "recoded_frames", "typed", "unread"]

WAY = ": docs/how-to/phsafe.md says what they hold, and --recode makes them of yours"  # advice if columns are missing
WORKER_MEMORY = "1GB"  # DuckDB's limit on a worker, of which a machine has several
Columns = Mapping[str, Domain]
Types = Mapping[str, Mapping[str, str]]
"""The type of each column of each frame in the input: text, whole or real."""
Result = TypeVar("Result")


def each_part(
    engine: Engine,
    sources: Mapping[str, Any],
    columns: Mapping[str, Columns],
    work: Callable[[DuckDB, Types], Result],
    *,
    parts: int = 1,
) -> Iterator[Result]:
    """Cut frames by ``MAFID`` and yield the result of `work` for each part, which has all rows of its households.

    `work` gets a database and the types of the columns. DuckDB processes `parts` one after another; Spark chooses the
    number of parts, and pickles `work` for its workers.
    """
    if isinstance(engine, Spark):
        if parts > 1:
            raise ValueError(f"--partitions is for duckdb, got {parts}; for Spark set spark.sql.shuffle.partitions")
        chosen = {name: _columns(name, engine.read(name, source), columns[name]) for name, source in sources.items()}
        yield from engine.each_part(chosen, "MAFID", partial(_on_worker, columns=columns, work=work))
        return
    for part in range(parts):
        types = {
            name: read_frame(engine, name, source, columns[name], part=part, parts=parts)
            for name, source in sources.items()
        }
        yield work(engine, types)


def _on_worker(
    frames: Mapping[str, Any], *, columns: Mapping[str, Columns], work: Callable[[DuckDB, Types], Result]
) -> Result:
    with closing(DuckDB(threads=1, memory=WORKER_MEMORY)) as database:
        return work(
            database, {name: read_frame(database, name, frame, columns[name]) for name, frame in frames.items()}
        )


def read_frame(
    database: DuckDB, name: str, source: Any, columns: Columns, *, part: int = 0, parts: int = 1
) -> dict[str, str]:
    """Read one frame, or a part of it by ``MAFID``, without columns that no table reads; return the columns' types."""
    given = f"given_{name}"
    types = {column: kind for column, (_, kind) in _columns(name, database.read(given, source), columns).items()}
    number = typed("MAFID", columns["MAFID"], types["MAFID"])
    values = {column: typed(column, columns[column], types[column]) for column in types}
    for column in types:
        if isinstance(domain := columns[column], Codes):  # one byte a value instead of 16
            values[column] = f"try_cast({values[column]} as enum ({', '.join(map(repr, domain.codes))}))"
        elif isinstance(domain, Digits):
            del values[column]  # only its validation reads it
    chosen = ", ".join(f"{value} as {column}" for column, value in values.items())
    rows = given
    if parts > 1:
        rows = f"part_{name}"  # read once; another name, since a database may be used again without parts
        database.keep(
            rows, f"select * from {given} where coalesce(({number} % {parts} + {parts}) % {parts}, 0) = {part}"
        )
    database.view(unread(name), f"select * from {rows}")
    database.keep(name, f"select {chosen} from {unread(name)}")
    return types


def _columns(name: str, given: Mapping[str, str], columns: Columns) -> dict[str, tuple[str, str]]:
    """Return each column's name in the input and its type; refuse missing or repeated columns and wrong types."""
    check_renamed(name, given, columns)
    check_columns(name, given, [column for column, domain in columns.items() if not isinstance(domain, Digits)], WAY)
    known = {column.upper(): (column, kind) for column, kind in given.items()}
    present = {column: known[column] for column in columns if column in known}
    for column, (original, kind) in present.items():
        number = isinstance(columns[column], Whole)
        if kind not in ("text", "whole", "real")[: 3 if number else 2]:
            words = "real numbers" if kind == "real" else kind
            raise ValueError(f"{name}.{original} must hold {'whole numbers' if number else 'text'}, got {words}")
    return present


def recoded_frames(files: Sequence[Any], recode: str | os.PathLike[str] | None) -> list[Any]:
    """Return persons, units and geo, with columns recoded by a .json file if there is one."""
    if recode is None:
        return list(files)
    made = read_named(recode, "recode")
    names = list(made) if isinstance(made, dict) else made
    if names is made or not made.keys() <= RECODED.keys():
        raise ValueError(f"recode must be an object with {', '.join(RECODED)} alone, got {reprlib.repr(names)}")
    return [
        Recoded(name, os.fspath(file), made[name], known) if name in made else file
        for (name, known), file in zip(RECODED.items(), files, strict=True)
    ]


def name_unused(engine: Engine, files: Sequence[str | Recoded], read: Mapping[str, Columns]) -> None:
    """List on stderr the columns of persons and units that are not read, and so not released."""
    given: dict[str, list[str]] = {}
    needed: dict[str, set[str]] = {}
    placed: set[str] = set()
    for (name, columns), file in zip(read.items(), files, strict=True):
        path = os.fspath(file)
        given[path] = list(engine.read(f"given_{name}", path))
        made = file.columns if isinstance(file, Recoded) else {}
        there = set(map(str.upper, given[path]))
        optional = {name for name, domain in columns.items() if isinstance(domain, Digits)} - made.keys() - there
        names = [made[column].get("from", "") if column in made else column for column in columns.keys() - optional]
        placed = set(map(str.upper, filter(None, names)))  # after the loop, those of geo
        needed.setdefault(path, set()).update(placed)
    if any(needed[path] - set(map(str.upper, given[path])) for path in given):
        return
    mine = dict.fromkeys(os.fspath(file) for file in files[:2])
    rest = [column for path in mine for column in given[path] if column.upper() not in needed[path] | placed]
    if rest:
        tell(f"not released: {', '.join(dict.fromkeys(rest))}")


def unread(name: str) -> str:
    """Return the name of the view of a frame's current part with its unconverted values."""
    return f"unread_{name}"


def typed(column: str, domain: Domain, kind: str) -> str:
    """Return the SQL of a column converted to its type, null if the input is no such value."""
    if isinstance(domain, Whole):
        readable = {"text": f"regexp_matches({column}, '^[0-9]{{1,9}}$')", "real": f"{column} = floor({column})"}
        return column if kind == "whole" else f"case when {readable[kind]} then try_cast({column} as bigint) end"
    return column if kind == "text" else f"cast({column} as string)"
