"""Where the relational steps run: DuckDB in this process, or Spark on a cluster, on the same SQL text."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from algorithms.phsafe.frames import Frame

__all__ = ["DuckDB", "Engine", "Spark", "engine_called"]

FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


class Engine(Protocol):
    """What the tabulation asks of a database; statements are in the language that DuckDB and Spark share."""

    def read(self, name: str, source: Any) -> dict[str, str]:
        """Make a view of a file or an in-memory frame; return the type of each column: text, whole or another."""
        ...

    def view(self, name: str, query: str) -> None:
        """Name a query."""
        ...

    def keep(self, name: str, query: str) -> None:
        """Name the rows of a query, computed once."""
        ...

    def fetch(self, query: str) -> Frame:
        """Return the rows of a query."""
        ...

    def code(self, column: str, codes: tuple[str, ...]) -> str:
        """Return the SQL of a column of codes in the type that holds them best; other text may become null."""
        ...

    def close(self) -> None:
        """Forget everything."""
        ...


class DuckDB:
    """DuckDB inside this process: no server, no network, no extension, and no file but those it is given.

    Parameters
    ----------
    sources : sequence
        What will be read; of the paths among them, and of nothing else, the database may open files.
    memory : str
        Most memory, such as ``"4GB"``; beyond it, rows are spilled to a private temporary folder. Default: DuckDB's,
        four fifths of the machine's.
    threads : int, optional
        Default: all cores.
    """

    def __init__(self, sources: Sequence[Any] = (), *, memory: str = "", threads: int | None = None) -> None:
        import duckdb  # not at the top: only releases need it, and audits should start fast

        self._spill = tempfile.mkdtemp(prefix="plaudit-")
        settings: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
            "temp_directory": self._spill,
        }
        settings |= {"memory_limit": memory} if memory else {}
        settings |= {"threads": threads} if threads else {}
        try:
            self._connection = duckdb.connect(":memory:", config=settings)
            allowed = [str(Path(source).resolve()) for source in sources if isinstance(source, str | os.PathLike)]
            self._connection.execute("SET allowed_paths = ?", [allowed])
            self._connection.execute(f"SET allowed_directories = ['{self._spill}']")
            for statement in (
                "CREATE MACRO sha2(message, bits) AS sha256(message)",  # Spark's name for it
                "CREATE MACRO regexp_like(value, pattern) AS regexp_matches(value, pattern)",
                "SET enable_progress_bar = false",  # it would go to standard output
                "SET enable_external_access = false",
                "SET lock_configuration = true",
            ):
                self._connection.execute(statement)
        except duckdb.Error as error:
            self.close()
            raise ValueError(f"DuckDB cannot start: {_first_line(error)}") from error
        self._error: type[Exception] = duckdb.Error
        self._frames: list[Any] = []  # DuckDB does not keep what a view reads alive

    def read(self, name: str, source: Any) -> dict[str, str]:
        """Make a view of a CSV or Parquet file, or of a frame that DuckDB can scan.

        Raises
        ------
        ValueError
            If the file cannot be read, or is neither; the message says why.
        TypeError
            If it is no frame.
        """
        try:
            if isinstance(source, str | os.PathLike):
                self._read_file(name, Path(source).resolve())
            else:
                self._frames.append(source.to_dict() if isinstance(source, Frame) else source)
                self._connection.register(name, self._frames[-1])
            described = self._connection.execute(f"DESCRIBE {name}").fetchall()
        except (self._error, UnicodeError) as error:
            what = source if isinstance(source, str | os.PathLike) else f"a {type(source).__name__}"
            kind = ValueError if isinstance(source, str | os.PathLike) else TypeError
            raise kind(f"{name}: cannot read {what}: {_first_line(error)}") from error
        kinds = {"VARCHAR": "text"} | dict.fromkeys(WHOLE, "whole")
        return {column: "text" if kind.startswith("ENUM") else kinds.get(kind, kind) for column, kind, *_ in described}

    def _read_file(self, name: str, path: Path) -> None:
        kind = FORMATS.get(path.suffix.lower())
        if kind is None:
            raise ValueError(f"{name} must be a .csv or .parquet file, got {path.name}")
        if not path.is_file():
            raise ValueError(f"{name}: there is no file {path}")
        if kind == "csv":
            rows = self._connection.read_csv(str(path), header=True, all_varchar=True, sep=",", quotechar='"')
        else:
            rows = self._connection.read_parquet(str(path))
        rows.create_view(name)

    def view(self, name: str, query: str) -> None:
        """Name a query."""
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {query}")

    def keep(self, name: str, query: str) -> None:
        """Name the rows of a query, computed once."""
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")

    def fetch(self, query: str) -> Frame:
        """Return the rows of a query."""
        return Frame(self._connection.execute(query).fetchnumpy())

    def code(self, column: str, codes: tuple[str, ...]) -> str:
        """Return a column of codes as an enumeration: one byte a value instead of sixteen."""
        return f"try_cast({column} as enum ({', '.join(repr(code) for code in codes)}))"

    def close(self) -> None:
        """Forget everything, spilled rows included."""
        with suppress(AttributeError):  # it may not have started
            self._connection.close()
        shutil.rmtree(self._spill, ignore_errors=True)


WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT")


class Spark:
    """Spark, through a session of the caller's or a local one: for more rows than one machine can hold.

    Parameters
    ----------
    session : pyspark.sql.SparkSession, optional
        Default: a new local session, which `close` stops.

    Raises
    ------
    ImportError
        If pyspark is not installed.
    """

    def __init__(self, session: Any = None) -> None:
        self._own = session is None
        self._session = _local_session() if session is None else session
        self._kept: list[Any] = []

    def read(self, name: str, source: Any) -> dict[str, str]:
        """Make a view of a CSV or Parquet file, an in-memory frame, or a Spark data frame.

        Raises
        ------
        ValueError
            If the file is neither.
        """
        if isinstance(source, str | os.PathLike):
            kind = FORMATS.get(Path(source).suffix.lower())
            if kind is None:
                raise ValueError(f"{name} must be a .csv or .parquet file, got {Path(source).name}")
            reader = self._session.read
            frame = reader.csv(str(source), header=True) if kind == "csv" else reader.parquet(str(source))
        elif isinstance(source, Frame):
            frame = self._session.createDataFrame(list(source.rows()), list(source.columns))
        else:
            frame = source if hasattr(source, "createOrReplaceTempView") else self._session.createDataFrame(source)
        frame.createOrReplaceTempView(name)
        kinds = {"string": "text", "tinyint": "whole", "smallint": "whole", "int": "whole", "bigint": "whole"}
        return {column: kinds.get(kind, kind) for column, kind in frame.dtypes}

    def view(self, name: str, query: str) -> None:
        """Name a query."""
        self._session.sql(query).createOrReplaceTempView(name)

    def keep(self, name: str, query: str) -> None:
        """Name the rows of a query, computed once."""
        self._kept.append(self._session.sql(query).cache())
        self._kept[-1].createOrReplaceTempView(name)

    def fetch(self, query: str) -> Frame:
        """Return the rows of a query."""
        frame = self._session.sql(query)
        rows = frame.collect()
        return Frame({name: [row[place] for row in rows] for place, name in enumerate(frame.columns)})

    def code(self, column: str, codes: tuple[str, ...]) -> str:
        """Return a column of codes as text."""
        return column

    def close(self) -> None:
        """Forget the rows kept, and stop a session of one's own."""
        for frame in self._kept:
            frame.unpersist()
        if self._own:
            self._session.stop()


def engine_called(engine: str | Engine, sources: Sequence[Any]) -> Engine:
    """Return an engine by name, or the one given.

    Parameters
    ----------
    engine : {"duckdb", "spark"} or Engine
        Which.
    sources : sequence
        What it will read.

    Returns
    -------
    Engine
        A new one, which the caller closes, or the one given.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if not isinstance(engine, str):
        return engine
    if engine == "duckdb":
        return DuckDB(sources)
    if engine == "spark":
        return Spark()
    raise ValueError(f"engine must be duckdb or spark, got {engine!r}")


def _local_session() -> Any:
    try:
        from pyspark.sql import SparkSession  # not at the top: a large, optional dependency
    except ImportError as error:
        raise ImportError("the Spark engine needs pyspark: pip install 'plaudit[spark]'") from error
    builder = SparkSession.builder.appName("plaudit").config("spark.ui.enabled", "false")
    return builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
