"""What a database must do for the relational steps, `algorithms.tables.duck` or `algorithms.tables.spark`."""

from __future__ import annotations

import re
from typing import Any, Protocol

from algorithms.tables.frames import Frame

__all__ = ["FORMATS", "Engine", "in_one_line"]

FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


class Engine(Protocol):
    """What the tabulation asks of a database; statements are in the language that DuckDB and Spark share."""

    def read(self, name: str, source: Any) -> dict[str, str]:
        """Make a view of a file or an in-memory frame; return the type of each column: text, whole or another."""
        ...

    def view(self, name: str, query: str) -> None:
        """Name a query."""
        ...

    def table(self, name: str, query: str) -> None:
        """Name the rows of a query that takes little but reading: stored where that costs less than reading again."""
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


def in_one_line(error: Exception) -> str:
    """Return what an engine says, without the row it quotes and the advice it has for programmers."""
    text = re.sub(
        r"\nOriginal Line:.*?\n(?=Expected|Invalid|Value|Maximum|Error|\Z)", "\n", str(error), flags=re.DOTALL
    )
    file = re.search(r"^ *file ?= ?(.*)$", text, flags=re.MULTILINE)
    told = re.split(r"\n\s*(?:Possible |JVM stacktrace|at )", text)[0].split()
    return " ".join([*([f"{file[1]}:"] if file else []), *told])[:500] or type(error).__name__
