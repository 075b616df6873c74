"""Spark: cuts records into parts on its workers, for more rows than one machine can hold."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from algorithms.extras import check_extra, needing
from algorithms.release.duck import DuckDB
from algorithms.release.folder import FORMATS, in_one_line
from algorithms.release.frames import Frame
from algorithms.release.recoding import Recoded

__all__ = ["Engine", "Spark", "opened"]

Result = TypeVar("Result")

KINDS = {
    "string": "text",
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "whole"),
    **dict.fromkeys(("float", "double", "decimal"), "real"),
}
TYPES = {"text": "string", "whole": "bigint", "real": "double"}
QUIET = {"spark.log.level": "OFF", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
SHUFFLES = "spark.sql.shuffle.partitions"
PARTS = 8  # for each partition of a shuffle: Spark shares them out by a hash
HELD = 1 << 18  # rows of a frame that a worker cuts at a time
LARGEST = 1 << 30  # bytes of them: a column of text in Arrow has less than twice as many


class Spark:
    """Spark, through a session of the caller's or one of its own: for more rows than one machine can hold.

    A session that is given, or at work already, keeps its settings and stays open. The Python of its workers needs
    plaudit with the extra spark.
    """

    def __init__(self, session: Any = None, *, master: str = "") -> None:
        check_extra("spark", "the Spark engine")
        with needing("spark", "the Spark engine"):
            from py4j.protocol import Py4JError  # not at the top: large, optional dependencies
            from pyspark import SparkContext
            from pyspark.errors import PySparkException

        self._errors: tuple[type[Exception], ...] = (PySparkException, Py4JError)
        self._frames: dict[str, Any] = {}
        if session is not None and not hasattr(session, "createDataFrame"):
            raise TypeError(f"session must be a session of Spark, got {session!r}")
        with self._one_line_errors():
            lent = session if session is not None else _at_work(master)
            self._own = lent is None and SparkContext._active_spark_context is None  # which other threads may use
            self._session = lent or _new_session(master)

    def read(self, name: str, source: Any) -> dict[str, str]:
        """Name a CSV or Parquet file, an in-memory frame, or a Spark data frame; return the type of each column."""
        if isinstance(source, str | os.PathLike):
            kind = FORMATS.get(Path(source).suffix.lower())
            if kind is None:
                raise ValueError(f"persons, units and geo must be .csv or .parquet files, got {source}")
            reader = self._session.read
            with self._one_line_errors():
                frame = (
                    reader.option("columnPruning", False).csv(str(source), header=True, escape='"', mode="FAILFAST")
                    if kind == "csv"
                    else reader.parquet(str(source))
                )
        else:
            unsuited: tuple[type[Exception], ...] = (*self._errors, TypeError, ValueError)
            try:
                with _unwarned():
                    frame = source if hasattr(source, "mapInArrow") else self._frame(source)
            except unsuited as error:
                got = type(source).__name__
                raise TypeError(f"persons, units and geo must be files or data frames, got {got}") from error
        twice = [column for column, times in Counter(map(str.upper, frame.columns)).items() if times > 1]
        if twice:
            raise ValueError(f"{name} must have one column {twice[0]}, got several")
        self._frames[name] = frame
        return {column: KINDS.get(kind.split("(")[0], kind) for column, kind in frame.dtypes}

    def _frame(self, source: Any) -> Any:
        if getattr(source, "empty", False) or (isinstance(source, Frame) and not len(source)):  # no value has a type
            return self._session.createDataFrame([], ", ".join(f"{_quoted(name)} string" for name in source.columns))
        if isinstance(source, Frame):
            return self._session.createDataFrame(list(source.rows()), list(source.columns))
        for way in ("to_arrow_table", "to_arrow"):  # of a DuckDB relation, and of a polars frame
            if hasattr(source, way):
                return self._session.createDataFrame(getattr(source, way)())
        return self._session.createDataFrame(source)

    def each_part(
        self, frames: Mapping[str, Mapping[str, tuple[str, str]]], key: str, work: Callable[[Mapping[str, Any]], Result]
    ) -> list[Result]:
        """Cut frames by a column of whole numbers and return what `work` returns of each part, in any order.

        `frames` has the columns of each frame that was read: the name given, and text, whole or real. `work` runs on
        the workers of Spark and gets an Arrow table by each name. Rows are read once, go to Python as Arrow, and are
        shuffled as pieces of a part: Spark's own rows would cost several times as much.
        """
        schemas = {name: {column: kind for column, (_, kind) in columns.items()} for name, columns in frames.items()}
        with self._one_line_errors():
            shuffles = self._session.conf.get(SHUFFLES)
            parts = PARTS * (int(shuffles) if shuffles.isdigit() else 200)  # some clusters say "auto"
            pieces = []
            for name, columns in frames.items():
                chosen = [f"{_cast(source, kind)} as {_quoted(column)}" for column, (source, kind) in columns.items()]
                part = f"cast(coalesce(pmod(try_cast({_quoted(columns[key][0])} as bigint), {parts}), 0) as int)"
                rows = self._frames[name].selectExpr(f"{part} as PART", *chosen)
                cut = partial(_cut, name=name, columns=schemas[name])
                pieces.append(rows.mapInArrow(cut, "PART int, FRAME string, ROWS binary"))
            together = reduce(lambda one, other: one.union(other), pieces).repartition("PART")
            worked = together.mapInArrow(partial(_worked, schemas=schemas, work=work), "RESULT binary")
            with self._job():
                results = worked.collect()
        answers = [_serializer().loads(row.RESULT) for row in results]
        if refused := next((answer for answer in answers if isinstance(answer, ValueError)), None):
            raise refused
        return answers or [work({name: _schema(columns).empty_table() for name, columns in schemas.items()})]

    @contextmanager
    def _job(self) -> Iterator[None]:
        """End what runs in here with whatever ends the wait for it: a session of the caller's would go on with it."""
        context = getattr(self._session, "sparkContext", None)
        if context is None:  # Spark Connect, whose client ends its jobs itself
            yield
            return
        tag = f"plaudit-{uuid4()}"
        context.addJobTag(tag)
        try:
            yield
        except BaseException:
            # Where an interrupt has cut this thread's connection, one call fails, and the next has another connection.
            with suppress(*self._errors):
                context.cancelJobsWithTag(tag)
            context.cancelJobsWithTag(tag)  # by its name alone: the interrupted thread has lost its own in Java
            raise
        finally:
            context.removeJobTag(tag)

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        try:
            with _unwarned():
                yield
        except self._errors as error:
            first: BaseException | None = error
            while first is not None and not isinstance(first, KeyboardInterrupt):
                first = first.__context__
            if first is not None:  # what it cut short is no error of Spark
                raise first from None
            raised = re.findall(r"^\w+Error\b.*", str(error), flags=re.MULTILINE)  # by the Python of a worker
            summary = "Spark stopped"
            if raised and raised[-1].startswith("ModuleNotFoundError"):
                summary = "the Python of Spark's workers (PYSPARK_PYTHON) needs plaudit[spark]"
            raise ValueError(f"{summary}: {raised[-1] if raised else in_one_line(error)}") from error

    def close(self) -> None:
        """Forget the frames, and stop a session of one's own."""
        self._frames.clear()
        if self._own:
            self._session.stop()


Engine = DuckDB | Spark


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
def _unwarned() -> Iterator[None]:
    """Leave out what Spark says of new versions of pandas, of which nothing is used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _cast(column: str, kind: str) -> str:
    """Return the SQL of a column in its type; a decimal that a double would round to a whole number is none."""
    name = _quoted(column)
    cast = f"cast({name} as {TYPES[kind]})"
    return cast if kind != "real" else f"if({name} % 1 <> 0 and {cast} % 1 = 0, double('NaN'), {cast})"


def _schema(columns: Mapping[str, str]) -> Any:
    import pyarrow

    arrow = {"text": pyarrow.string(), "whole": pyarrow.int64(), "real": pyarrow.float64()}
    return pyarrow.schema([(column, arrow[kind]) for column, kind in columns.items()])


def _cut(batches: Iterator[Any], *, name: str, columns: Mapping[str, str]) -> Iterator[Any]:
    """Yield the rows of a frame in pieces, each of one part; runs on a worker."""
    import numpy as np
    import pyarrow

    for held in _gathered(batches):
        if held.nbytes > LARGEST:
            raise ValueError(
                f"{name} must have at most {LARGEST:,} bytes in {held.num_rows:,} rows, got {held.nbytes:,}"
            )
        part = held["PART"].to_numpy()
        order = np.argsort(part, kind="stable")
        rows = held.select(list(columns)).cast(_schema(columns)).combine_chunks().take(order).to_batches()[0]
        parts, starts = np.unique(part[order], return_index=True)
        ends = [*starts[1:], rows.num_rows]
        packed = [
            rows.slice(start, end - start).serialize().to_pybytes() for start, end in zip(starts, ends, strict=True)
        ]
        yield pyarrow.record_batch(
            [pyarrow.array(parts, pyarrow.int32()), [name] * len(packed), pyarrow.array(packed, pyarrow.binary())],
            names=["PART", "FRAME", "ROWS"],
        )


def _gathered(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches together, as tables of more than a few rows."""
    import pyarrow

    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= HELD:
            yield pyarrow.Table.from_batches(held)
            held = []
    if any(one.num_rows for one in held):
        yield pyarrow.Table.from_batches(held)


def _worked(
    pieces: Iterator[Any], *, schemas: Mapping[str, Mapping[str, str]], work: Callable[..., Any]
) -> Iterator[Any]:
    """Put the pieces of the parts together that are in one place, and yield what `work` returns; runs on a worker."""
    import pyarrow

    types = {name: _schema(columns) for name, columns in schemas.items()}
    batches: dict[str, list[Any]] = {name: [] for name in types}
    for batch in pieces:
        for name, rows in zip(batch["FRAME"].to_pylist(), batch["ROWS"], strict=True):
            batches[name].append(pyarrow.ipc.read_record_batch(rows.as_buffer(), types[name]))
    if not any(batches.values()):
        return
    frames = {name: pyarrow.Table.from_batches(batches.pop(name), types[name]).combine_chunks() for name in types}
    try:
        answer = work(frames)
    except ValueError as error:  # to be told in its own words
        answer = error
    yield pyarrow.record_batch([pyarrow.array([_serializer().dumps(answer)], pyarrow.binary())], names=["RESULT"])


def _serializer() -> Any:
    """Return what Spark itself writes results of Python with."""
    from pyspark.serializers import CompressedSerializer, CPickleSerializer

    return CompressedSerializer(CPickleSerializer())


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
    if str(session.sparkContext.master).startswith("local"):
        if not session.sparkContext.getConf().contains(SHUFFLES):
            session.conf.set(SHUFFLES, "4")  # of 200, nearly all would be empty
        if "PYSPARK_PYTHON" not in os.environ:
            session.sparkContext.pythonExec = sys.executable  # not whatever python3 is
    return session
