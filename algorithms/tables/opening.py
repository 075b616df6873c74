"""Open what the relational steps run on: DuckDB in this process, or Spark, whose workers run DuckDB too."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from algorithms.tables.duck import DuckDB
from algorithms.tables.files import FORMATS
from algorithms.tables.recoding import Recoded, in_sql
from algorithms.tables.spark import Spark

__all__ = ["GIVEN", "Engine", "in_sql", "opened", "reading"]

Engine = DuckDB | Spark

GIVEN = "given_rows"  # a view: the rows of a source as it is


@contextmanager
def opened(engine: str | Engine, sources: Sequence[Any], *, memory: str = "", master: str = "") -> Iterator[Engine]:
    """Open an engine by name and close it afterwards, or lend the one given.

    `memory` is the most of DuckDB, `master` where Spark runs.
    """
    if (engine == "spark" or isinstance(engine, Spark)) and any(isinstance(source, Recoded) for source in sources):
        raise ValueError("--recode is for duckdb, got the engine spark")
    if not isinstance(engine, str):
        if not isinstance(engine, Engine):
            raise TypeError(f"engine must be duckdb, spark or an engine, got {engine!r}")
        yield engine
        return
    if memory and engine != "duckdb":
        raise ValueError(f"--memory is for duckdb, got the engine {engine}")
    if master and engine != "spark":
        raise ValueError(f"--master is for spark, got the engine {engine}")
    if engine == "duckdb":
        database: Engine = DuckDB(sources, memory=memory)
    elif engine == "spark":
        database = Spark(master=master)
    else:
        raise ValueError(f"engine must be duckdb or spark, got {engine!r}")
    try:
        yield database
    finally:
        database.close()


@contextmanager
def reading(what: str, source: Any, names: Sequence[str], *, memory: str) -> Iterator[tuple[DuckDB, dict[str, str]]]:
    """Open a file or a frame with DuckDB and refuse one that lacks a column; lend it with its columns and their types.

    Columns are found by name, whatever its case.
    """
    if isinstance(source, str | os.PathLike) and Path(source).suffix.lower() not in FORMATS:
        raise ValueError(f"{what} must be a .csv or .parquet file, got {os.fspath(source)}")
    with closing(DuckDB([source], memory=memory)) as database:
        try:
            types = database.read(GIVEN, source)
        except TypeError as error:
            raise TypeError(f"{what} must be a file or a data frame, got {type(source).__name__}") from error
        known = {name.upper() for name in types}
        if missing := [name for name in names if name.upper() not in known]:
            got = reprlib.repr(list(types))
            raise ValueError(
                f"{what} must have the columns {', '.join(names)}; {', '.join(missing)} missing, got {got}"
            )
        yield database, types
