"""Open the database that the relational steps run on: in this process or on a cluster, on the same SQL text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from algorithms.tables.duck import DuckDB
from algorithms.tables.engine import Engine
from algorithms.tables.spark import Spark

__all__ = ["opened"]


@contextmanager
def opened(engine: str | Engine, sources: Sequence[Any], *, memory: str = "") -> Iterator[Engine]:
    """Open an engine by name and close it afterwards, or lend the one given; `memory` is the most of DuckDB."""
    if not isinstance(engine, str):
        if not hasattr(engine, "fetch"):
            raise TypeError(f"engine must be duckdb, spark or an engine, got {engine!r}")
        yield engine
        return
    if engine == "duckdb":
        database: Engine = DuckDB(sources, memory=memory)
    elif engine == "spark":
        database = Spark()
    else:
        raise ValueError(f"engine must be duckdb or spark, got {engine!r}")
    try:
        yield database
    finally:
        database.close()
