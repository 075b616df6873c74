"""DuckDB inside this process: the default engine, locked down."""

from __future__ import annotations

import csv
import os
import re
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.extras import needing
from algorithms.release.frames import Frame
from algorithms.release.recoding import Recoded
from audit.io.layout import BYTES, check_commas, decoded, encoding_fault
from audit.io.temporary import SPILLED, temporary_folder

__all__ = ["FORMATS", "GIVEN", "DuckDB", "check_columns", "check_renamed", "in_one_line", "open_source"]

FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}  # formats that DuckDB and Spark read, by ending
GIVEN = "given_rows"  # name of the view of a source's unchanged rows

LARGEST_CHUNK = 2**28  # most uncompressed bytes of a column in one row group
LONGEST_HEADER = 2**20  # bytes; the longest header of the production layout has 97
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT")
KINDS = {
    **dict.fromkeys(("VARCHAR", "ENUM"), "text"),
    **dict.fromkeys(WHOLE, "whole"),
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), "real"),
}


class DuckDB:
    """DuckDB inside this process: no server, no network, no extension, and access to the given files only."""

    def __init__(self, sources: Sequence[Any] = (), *, memory: str = "", threads: int | None = None) -> None:
        with needing("census", "reading files and frames"):
            import duckdb  # imported here: a large, optional dependency

        self._error: type[Exception] = duckdb.Error
        self._full: type[Exception] = duckdb.OutOfMemoryException
        self._memory = memory
        self._frames: dict[str, Any] = {}  # keeps frames alive, which DuckDB's views do not
        self._held = ExitStack()
        self._spill = str(self._held.enter_context(temporary_folder(SPILLED)))
        settings: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "pandas_analyze_sample": 0,  # else a sample sets the type of object columns, and rounds others
            "preserve_insertion_order": False,
            "temp_directory": self._spill,
        }
        settings |= {"memory_limit": memory} if memory else {}
        settings |= {"threads": threads} if threads else {}
        try:
            with self._one_line_errors("DuckDB cannot start"):
                self._connection = duckdb.connect(":memory:", config=settings)
                self._lock(sources)
        except BaseException:
            self.close()
            raise

    def _lock(self, sources: Sequence[Any]) -> None:
        paths = [Path(os.path.realpath(source)) for source in sources if isinstance(source, str | os.PathLike)]
        allowed = [name for path in paths for name in {str(path), _literal(path)}]
        self._connection.execute("SET allowed_paths = ?", [allowed])
        self._connection.execute("SET allowed_directories = ?", [[self._spill]])
        # A progress bar would go to stdout. In a notebook without ipywidgets there is no bar, and setting it fails.
        bar = self._connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (True,)
        for statement in (
            *(["SET enable_progress_bar = false"] if bar else []),
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._connection.execute(statement)

    def read(self, name: str, source: Any, what: str = "persons, units and geo") -> dict[str, str]:
        """Make a view of a CSV or Parquet file, or of a frame that DuckDB can scan; messages call it `what`."""
        self._connection.unregister(name)  # an older frame of that name would hide a file
        if isinstance(source, Recoded):
            given = f"recoded_{name}"
            columns = source.selected(self.read(given, source.path, what))
            self._run(f"CREATE OR REPLACE VIEW {name} AS SELECT {columns} FROM {given}")  # like a file's view
            source.check(given, self.fetch)
        elif isinstance(source, str | os.PathLike):
            with self._one_line_errors(f"{source} cannot be read"):
                self._read_file(name, Path(os.path.realpath(source)), what)
        else:
            frame = source.to_dict() if isinstance(source, Frame) else source
            self._frames[name] = _Stream(frame) if type(frame).__name__ == "DuckDBPyRelation" else frame
            try:
                self._connection.register(name, self._frames[name])
            except (self._error, TypeError) as error:
                raise TypeError(f"{what} must be files or data frames, got {type(source).__name__}") from error
        with self._one_line_errors():
            described = self._connection.execute(f"DESCRIBE {name}").fetchall()
        return {column: KINDS.get(kind.split("(")[0], kind) for column, kind, *_ in described}

    def _read_file(self, name: str, path: Path, what: str) -> None:
        kind = FORMATS.get(path.suffix.lower())
        if kind is None:
            raise ValueError(f"{what} must be .csv or .parquet files, got {path}")
        if not path.is_file():
            raise ValueError(f"there is no file {path}")
        if kind == "parquet":
            self._check_parquet(path)
            rows = self._connection.read_parquet(_literal(path), hive_partitioning=False)
        else:
            rows = self._connection.read_csv(  # no detection: a wrong guess may skip rows
                _literal(path),
                header=True,
                columns=dict.fromkeys(_header(path), "VARCHAR"),
                auto_detect=False,
                sep=",",
                quotechar='"',
                escapechar='"',
                comment="",
                skiprows=0,
                hive_partitioning=False,
            )
        rows.create_view(name)

    def _check_parquet(self, path: Path) -> None:
        """Refuse columns whose row groups, which are read whole, are too large for memory by the file's metadata."""
        ask = "SELECT coalesce(max(total_uncompressed_size), 0) FROM parquet_metadata(?)"
        size = self._connection.execute(ask, [_literal(path)]).fetchall()[0][0]
        if size > LARGEST_CHUNK:
            most = f"at most {LARGEST_CHUNK:,} bytes in a column of a row group"
            raise ValueError(f"{path} must have {most}, got {size:,}")

    def view(self, name: str, query: str) -> None:
        """Make a view of a query."""
        self._run(f"CREATE OR REPLACE TEMP VIEW {name} AS {query}")

    def keep(self, name: str, query: str) -> None:
        """Make a table of the rows of a query, so that it is computed once."""
        self._run(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")

    def fetch(self, query: str) -> Frame:
        """Return the rows of a query, with None for null."""
        with self._one_line_errors():
            columns = self._connection.execute(query).fetchnumpy()
        return Frame({name: _none_where_masked(column) for name, column in columns.items()})

    def _run(self, statement: str) -> None:
        with self._one_line_errors():
            self._connection.execute(statement)

    @contextmanager
    def _one_line_errors(self, what: str = "the data cannot be read") -> Iterator[None]:
        """Turn DuckDB's errors into errors of one line; bad rows raise in any query, because rows are read lazily."""
        try:
            yield
        except self._full as error:
            limit = f" within {self._memory} of memory (--memory; of Spark, more partitions)" if self._memory else ""
            raise ValueError(f"{what}{limit}: {in_one_line(error)}") from error
        except (self._error, csv.Error) as error:
            raise ValueError(f"{what}: {in_one_line(error)}") from error
        except RuntimeError as error:  # DuckDB raises it for an interrupt
            raise (KeyboardInterrupt if "interrupted" in str(error) else error) from None

    def close(self) -> None:
        """Close the connection, and remove spilled rows."""
        with suppress(AttributeError):  # if it has not started
            self._connection.close()
        self._held.close()


@contextmanager
def open_source(
    what: str, source: Any, names: Sequence[str], *, memory: str
) -> Iterator[tuple[DuckDB, dict[str, str]]]:
    """Open a file or a frame, which must have the columns `names`, with DuckDB; yield it and all columns' types."""
    with closing(DuckDB([source], memory=memory)) as database:
        types = database.read(GIVEN, source, what)
        check_columns(what, types, names)
        yield database, types


def check_columns(what: str, given: Iterable[str], names: Sequence[str], way: str = "") -> None:
    """Refuse a source that lacks a column (case does not matter); the message ends with the advice `way`."""
    known = {name.upper() for name in given}
    if missing := [name for name in names if name.upper() not in known]:
        words = f"{', '.join(names)}; {', '.join(missing)} missing, got {reprlib.repr(list(given))}{way}"
        raise ValueError(f"{what} must have the columns {words}")


def check_renamed(what: str, given: Iterable[str], names: Iterable[str]) -> None:
    """Refuse two columns with the same name, which engines rename to ``name_1``."""
    for name in names:
        if again := [other for other in given if re.fullmatch(rf"{re.escape(name)}_\d+", other, re.IGNORECASE)]:
            raise ValueError(f"{what} must have one column {name}, got {again[0]} besides")


class _Stream:
    """Wrapper by which this connection can scan a relation of another DuckDB connection."""

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._relation.__arrow_c_stream__(requested_schema)


def _none_where_masked(column: NDArray[Any]) -> NDArray[Any]:
    if not np.ma.is_masked(column):
        return column
    values = np.array(column, dtype=object)
    values[np.ma.getmaskarray(column)] = None
    return values


def _literal(path: Path) -> str:
    """Return a pattern that matches only this path, because DuckDB reads every path as a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))


def _header(path: Path) -> list[str]:
    """Read the names of a CSV file's columns."""
    with path.open("rb") as file:
        first = re.split(rb"[\r\n]", file.read(LONGEST_HEADER), maxsplit=1)[0]
    if len(first) == LONGEST_HEADER:
        raise ValueError(f"{path} must begin with the names of its columns, got a line of {LONGEST_HEADER:,} bytes")
    line = decoded(path, first)
    check_commas(path, line)
    row = next(csv.reader([line]), [])
    names = [name.strip() or f"column{place}" for place, name in enumerate(row)]
    if not names:
        raise ValueError(f"{path} must begin with the names of its columns, got nothing")
    if twice := [name for name, number in Counter(name.upper() for name in names).items() if number > 1]:
        raise ValueError(f"{path} must have columns of different names, got {twice[0]!r} twice")
    return names


def in_one_line(error: Exception) -> str:
    """Return an engine's message in one line, without the quoted row (confidential) and advice for programmers."""
    text = re.sub(
        r"\nOriginal Line:.*?\n(?=Expected|Invalid|Value|Maximum|Error|\Z)", "\n", str(error), flags=re.DOTALL
    )
    file = re.search(r"^ *file ?= ?(.*)$", text, flags=re.MULTILINE)
    if file and "not utf-8" in text:
        with open(file[1], encoding="utf-8-sig", errors=BYTES) as lines:
            return encoding_fault(Path(file[1]), lines)
    words = re.split(r"\n\s*(?:Possible |JVM stacktrace|at )", text)[0].split()
    return " ".join([*([f"{file[1]}:"] if file else []), *words])[:500] or type(error).__name__
