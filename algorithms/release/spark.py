"""Spark engine: its workers process parts of the records, for more rows than fit on one machine."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeVar

from algorithms.extras import check_extra, needing
from algorithms.release.duck import FORMATS, DuckDB, in_one_line
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


class Spark:
    """Spark, by the caller's session or a new one, for more rows than fit on one machine.

    A given or already active session keeps its settings and is not closed. The Python of its workers needs plaudit with
    the extra spark.
    """

    def __init__(self, session: Any = None, *, master: str = "") -> None:
        check_extra("spark", "the Spark engine")
        with needing("spark", "the Spark engine"):
            from py4j.protocol import Py4JError  # imported here: large, optional dependencies
            from pyspark import SparkContext
            from pyspark.errors import PySparkException

        self._errors: tuple[type[Exception], ...] = (PySparkException, Py4JError)
        self._frames: dict[str, Any] = {}
        if session is not None and not hasattr(session, "createDataFrame"):
            raise TypeError(f"session must be a session of Spark, got {session!r}")
        with self._one_line_errors():
            lent = session if session is not None else _at_work(master)
            self._own = lent is None and SparkContext._active_spark_context is None  # others may use an active one
            self._session = lent or _new_session(master)

    def read(self, name: str, source: Any) -> dict[str, str]:
        """Register a CSV or Parquet file, an in-memory frame, or a Spark data frame; return the type of each column."""
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
        if getattr(source, "empty", False) or (isinstance(source, Frame) and not len(source)):  # no values, so no types
            return self._session.createDataFrame([], ", ".join(f"{_quoted(name)} string" for name in source.columns))
        if isinstance(source, Frame):
            return self._session.createDataFrame(list(source.rows()), list(source.columns))
        for way in ("to_arrow_table", "to_arrow"):  # methods of a DuckDB relation, and of a polars frame
            if hasattr(source, way):
                return self._session.createDataFrame(getattr(source, way)())
        return self._session.createDataFrame(source)

    def each_part(
        self, frames: Mapping[str, Mapping[str, tuple[str, str]]], key: str, work: Callable[[Mapping[str, Any]], Result]
    ) -> list[Result]:
        """Cut frames by a column of whole numbers and return the result of `work` for each part, in any order.

        `frames` has, for each frame that was read, its columns with name in the input and type (text, whole or real).
        `work` runs on the workers of Spark and gets an Arrow table for each name. Rows of all frames share one shuffle.
        """
        columns = [(name, column, kind) for name, given in frames.items() for column, (_, kind) in given.items()]
        with self._one_line_errors():
            rows = []
            for name, given in frames.items():
                chosen = [f"try_cast({_quoted(given[key][0])} as bigint) as PART", f"'{name}' as FRAME"]
                for number, (owner, column, kind) in enumerate(columns):
                    value = _cast(*given[column]) if owner == name else f"cast(null as {TYPES[kind]})"
                    chosen.append(f"{value} as c{number}")
                rows.append(self._frames[name].selectExpr(*chosen))
            together = reduce(lambda one, other: one.union(other), rows).repartition("PART")
            worked = together.mapInArrow(partial(_worked, columns=columns, work=work), "RESULT binary")
            results = worked.collect()
        answers = [_serializer().loads(row.RESULT) for row in results]
        if refused := next((answer for answer in answers if isinstance(answer, ValueError)), None):
            raise refused
        return answers or [work(_parted([], columns))]

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        try:
            with _unwarned():
                yield
        except self._errors as error:
            first: BaseException | None = error
            while first is not None and not isinstance(first, KeyboardInterrupt):
                first = first.__context__
            if first is not None:  # an interrupt, not an error of Spark
                raise first from None
            raised = re.findall(r"^\w+Error\b.*", str(error), flags=re.MULTILINE)  # errors in a worker's Python
            summary = "Spark stopped"
            if raised and raised[-1].startswith("ModuleNotFoundError"):
                summary = "the Python of Spark's workers (PYSPARK_PYTHON) needs plaudit[spark]"
            raise ValueError(f"{summary}: {raised[-1] if raised else in_one_line(error)}") from error

    def close(self) -> None:
        """Release the frames, and stop the session if it was started here."""
        self._frames.clear()
        if self._own:
            self._session.stop()


Engine = DuckDB | Spark


@contextmanager
def opened(engine: str | Engine, sources: Sequence[Any], *, memory: str = "", master: str = "") -> Iterator[Engine]:
    """Open an engine by name, DuckDB with `memory` or Spark with `master`, or yield the given engine."""
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
    if engine not in ("duckdb", "spark"):
        raise ValueError(f"engine must be duckdb or spark, got {engine!r}")
    with closing(DuckDB(sources, memory=memory) if engine == "duckdb" else Spark(master=master)) as database:
        yield database


@contextmanager
def _unwarned() -> Iterator[None]:
    """Suppress Spark's warning about new versions of pandas, whose features are not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _cast(column: str, kind: str) -> str:
    """Return the SQL of a column in its type; a decimal that rounding would make a whole number becomes NaN."""
    name = _quoted(column)
    cast = f"cast({name} as {TYPES[kind]})"
    return cast if kind != "real" else f"if({name} % 1 <> 0 and {cast} % 1 = 0, double('NaN'), {cast})"


def _parted(batches: Iterable[Any], columns: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """Return the rows of each frame as Arrow tables, from batches whose column FRAME names the frame of each row."""
    import pyarrow
    import pyarrow.compute

    arrow = {"text": pyarrow.string(), "whole": pyarrow.int64(), "real": pyarrow.float64()}
    places: dict[str, list[int]] = {}
    for number, (name, _, _) in enumerate(columns):
        places.setdefault(name, []).append(number)
    schemas = {name: pyarrow.schema([(columns[j][1], arrow[columns[j][2]]) for j in of]) for name, of in places.items()}
    parts: dict[str, list[Any]] = {name: [schema.empty_table()] for name, schema in schemas.items()}
    for batch in batches:
        for name, of in places.items():
            rows = pyarrow.Table.from_batches([batch.filter(pyarrow.compute.equal(batch["FRAME"], name))])
            own = rows.select([f"c{number}" for number in of]).rename_columns(schemas[name].names)
            parts[name].append(own.cast(schemas[name]))
    return {name: pyarrow.concat_tables(tables).combine_chunks() for name, tables in parts.items()}


def _worked(
    batches: Iterator[Any], *, columns: Sequence[tuple[str, str, str]], work: Callable[..., Any]
) -> Iterator[Any]:
    """Yield the result of `work` for the rows of one partition, unless it is empty; runs on a worker."""
    import pyarrow

    frames = _parted(batches, columns)
    if not any(rows.num_rows for rows in frames.values()):
        return
    try:
        answer = work(frames)
    except ValueError as error:  # the driver raises it again, with its message
        answer = error
    yield pyarrow.record_batch([pyarrow.array([_serializer().dumps(answer)], pyarrow.binary())], names=["RESULT"])


def _serializer() -> Any:
    """Return the serializer that Spark uses for results of Python."""
    from pyspark.serializers import CompressedSerializer, CPickleSerializer

    return CompressedSerializer(CPickleSerializer())


def _at_work(master: str) -> Any:
    """Return the active session of this program, if there is one."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None and master and session.conf.get("spark.master") != master:
        raise ValueError(
            f"--master must be that of the session at work, {session.conf.get('spark.master')}, got {master}"
        )
    return session


def _new_session(master: str) -> Any:
    """Start a session; settings of the Spark installation apply."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("plaudit")
    if master:
        builder = builder.master(master)
    for setting, value in QUIET.items():
        builder = builder.config(setting, value)
    session = builder.getOrCreate()
    if str(session.sparkContext.master).startswith("local"):
        if not session.sparkContext.getConf().contains(SHUFFLES):
            session.conf.set(SHUFFLES, "4")  # nearly all of the default 200 would be empty
        if "PYSPARK_PYTHON" not in os.environ:
            session.sparkContext.pythonExec = sys.executable  # not the system's python3
    return session
