"""Spark: the engine for more rows than one machine can hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from algorithms.extras import needing
from algorithms.tables.engine import FORMATS, in_one_line
from algorithms.tables.frames import Frame

__all__ = ["Spark"]

KINDS = {
    "string": "text",
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "whole"),
    **dict.fromkeys(("float", "double", "decimal"), "real"),
}
QUIET = {"spark.log.level": "OFF", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
SHUFFLES = "spark.sql.shuffle.partitions"


class Spark:
    """Spark, through a session of the caller's or one of its own: for more rows than one machine can hold.

    A session that is given, or at work already, keeps its settings and stays open.
    """

    def __init__(self, session: Any = None, *, master: str = "") -> None:
        with needing("spark", "the Spark engine"):
            from py4j.protocol import Py4JError  # not at the top: a large, optional dependency
            from pyspark.errors import PySparkException
        self._errors: tuple[type[Exception], ...] = (PySparkException, Py4JError)
        self._kept: dict[str, Any] = {}
        with self._told():
            given = session or _at_work(master)
            self._session, self._own = given or _new_session(master), given is None

    def read(self, name: str, source: Any) -> dict[str, str]:
        """Make a view of a CSV or Parquet file, an in-memory frame, or a Spark data frame."""
        kind = None
        if isinstance(source, str | os.PathLike):
            kind = FORMATS.get(Path(source).suffix.lower())
            if kind is None:
                raise ValueError(f"persons, units and geo must be .csv or .parquet files, got {source}")
            reader = self._session.read
            with self._told():
                frame = (
                    reader.csv(str(source), header=True, escape='"', mode="FAILFAST")
                    if kind == "csv"
                    else reader.parquet(str(source))
                )
        else:
            unsuited: tuple[type[Exception], ...] = (*self._errors, TypeError, ValueError)
            try:
                frame = source if hasattr(source, "createOrReplaceTempView") else self._frame(source)
            except unsuited as error:
                got = type(source).__name__
                raise TypeError(f"persons, units and geo must be files or data frames, got {got}") from error
        if kind != "parquet" and not frame.storageLevel.useMemory:  # its owner may keep it
            with self._told():
                self._keep(name, frame)
        frame.createOrReplaceTempView(name)
        return {column: KINDS.get(kind.split("(")[0], kind) for column, kind in frame.dtypes}

    def _frame(self, source: Any) -> Any:
        if isinstance(source, Frame):
            return self._session.createDataFrame(list(source.rows()), list(source.columns))
        for way in ("to_arrow_table", "to_arrow"):  # of a DuckDB relation, and of a polars frame
            if hasattr(source, way):
                return self._session.createDataFrame(getattr(source, way)())
        return self._session.createDataFrame(source)

    def view(self, name: str, query: str) -> None:
        """Name a query."""
        with self._told():
            self._session.sql(query).createOrReplaceTempView(name)

    def table(self, name: str, query: str) -> None:
        """Name a query: to keep a row costs Spark several times what reading it from Parquet again does."""
        self.view(name, query)

    def keep(self, name: str, query: str) -> None:
        """Name the rows of a query, computed once, when they are first asked for."""
        with self._told():
            kept = self._session.sql(query)
            self._keep(name, kept)
            kept.createOrReplaceTempView(name)

    def _keep(self, name: str, frame: Any) -> None:
        frame.cache()
        if name in self._kept:
            self._kept[name].unpersist()
        self._kept[name] = frame

    def fetch(self, query: str) -> Frame:
        """Return the rows of a query, what is missing as None."""
        with self._told():
            frame = self._session.sql(query)
            rows = frame.collect()
        return Frame({name: [row[place] for row in rows] for place, name in enumerate(frame.columns)})

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise ValueError(f"Spark stopped: {in_one_line(error)}") from error

    def code(self, column: str, codes: tuple[str, ...]) -> str:
        """Return a column of codes as text."""
        return column

    def close(self) -> None:
        """Forget the rows kept, and stop a session of one's own."""
        for frame in self._kept.values():
            frame.unpersist()
        if self._own:
            self._session.stop()


def _at_work(master: str) -> Any:
    """Return the session that is at work in this program, if there is one."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None and master and session.conf.get("spark.master") != master:
        raise ValueError(
            f"--master must be that of the session at work, {session.conf.get('spark.master')}, got {master}"
        )
    return session


def _new_session(master: str) -> Any:
    """Start a session, by the settings of the installation where it has any."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("plaudit")
    if master:
        builder = builder.master(master)
    for setting, value in QUIET.items():
        builder = builder.config(setting, value)
    session = builder.getOrCreate()
    if not session.sparkContext.getConf().contains(SHUFFLES) and str(session.sparkContext.master).startswith("local"):
        session.conf.set(SHUFFLES, "4")  # of 200, nearly all would be empty
    return session
