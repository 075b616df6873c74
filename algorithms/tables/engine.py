"""What DuckDB and Spark have in common: which files they take, and their errors in one line."""

from __future__ import annotations

import re

__all__ = ["FORMATS", "in_one_line"]

FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


def in_one_line(error: Exception) -> str:
    """Return what an engine says, without the row it quotes and the advice it has for programmers."""
    text = re.sub(
        r"\nOriginal Line:.*?\n(?=Expected|Invalid|Value|Maximum|Error|\Z)", "\n", str(error), flags=re.DOTALL
    )
    file = re.search(r"^ *file ?= ?(.*)$", text, flags=re.MULTILINE)
    told = re.split(r"\n\s*(?:Possible |JVM stacktrace|at )", text)[0].split()
    return " ".join([*([f"{file[1]}:"] if file else []), *told])[:500] or type(error).__name__
