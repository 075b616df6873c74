"""Read arguments of the command line: mechanisms, files of counts, outputs and records, pairs of databases."""

from __future__ import annotations

__all__ = ["HEADER"]

HEADER = "a first line is names if none of its fields is a number, nan, NA, inf, None or empty"
