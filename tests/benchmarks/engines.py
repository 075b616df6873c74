"""Spark beside DuckDB on one machine: ``python -m tests.benchmarks.engines 3000000`` (extra spark, and Java).

Both count the queries of PHSafe from the same Parquet files, validation included; starting Spark is not timed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from algorithms.phsafe.tabulation.tabulate import tabulation
from algorithms.release.spark import Spark
from tests.households import write_synthetic_households

SIZES = (100_000, 1_000_000, 3_000_000)


def main() -> None:
    """Measure and print."""
    table = Table("persons", "DuckDB", "Spark, local[2]", "times as long", "same counts")
    engine = Spark(master="local[2]")
    engine._session.range(1).collect()  # and its Java is warm
    with tempfile.TemporaryDirectory(prefix="plaudit-bench-") as folder:
        for size in map(int, sys.argv[1:] or SIZES):
            write_synthetic_households(Path(folder) / str(size), size, 1)
            files = [Path(folder) / str(size) / f"{name}.parquet" for name in ("persons", "units", "geo")]
            begun = time.perf_counter()
            here = tabulation(*files)
            between = time.perf_counter()
            there = tabulation(*files, engine=engine)
            ended = time.perf_counter()
            one, other = between - begun, ended - between
            same = all(np.array_equal(here.counts[key], there.counts[key]) for key in here.counts)
            table.add_row(f"{size:,}", f"{one:.1f} s", f"{other:.1f} s", f"{other / one:.0f}", "yes" if same else "NO")
    engine.close()
    Console().print(table)


if __name__ == "__main__":
    main()
