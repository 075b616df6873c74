"""Read arguments of the command line: mechanisms, files of counts, outputs and records, pairs of databases."""

from __future__ import annotations

__all__ = ["EVENTS", "HEADER"]

HEADER = "a first line is names if none of its fields is a number, nan, NA, inf, None or empty"
EVENTS = '"output[3] >= 120", "y if output[0] >= 121, x if output[0] <= 120", "output in {1, 5..9}", "it raises"'
