"""PHSafe's time and memory for the bundled population and for 1, 3 and 10 million persons: `make bench`.

Other sizes and numbers of parts are asked for as ``python -m tests.benchmarks.households 30000000x3 100000000x10``, and
``python -m tests.benchmarks.households spark 3000000`` counts with DuckDB and with Spark (extra spark, and Java).
Nothing here is asserted. Every release runs in a process of its own, so that its memory is its own.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from algorithms.phsafe.population import load_households
from algorithms.phsafe.release import release
from algorithms.phsafe.tabulation.tabulate import tabulation
from algorithms.release.spark import Spark
from tests.benchmarks.measuring import in_a_process
from tests.households import write_parquet, write_synthetic_households

SIZES = ("1000000", "3000000", "10000000", "10000000x10")
SPARK_SIZES = ("100000", "1000000", "3000000")
PRODUCTION = "production takes 160 to 200 s for its 1,210 persons"  # on two quiet cores


def files_of(folder: Path) -> list[Path]:
    """Return the three files of a population."""
    return [folder / f"{name}.parquet" for name in ("persons", "units", "geo")]


def whole_release(folder: str, out: str, parts: int) -> dict[str, Any]:
    """Release a population of files by the US settings, from reading to checked output."""
    made = release(*files_of(Path(folder)), "us", out=Path(out), partitions=parts)
    return {"rows": sum(map(len, made.tables.values()))}


def releases(sizes: list[str], root: Path) -> Table:
    """Return time and memory of one release of each size, such as 30000000x3: persons, and parts."""
    title = "PHSafe, from Parquet files to checked tables: validation, nine queries, secure noise"
    table = Table("persons", "seconds", "a million persons", "peak memory", "rows", title=title, caption=PRODUCTION)
    bundled = load_households()
    write_parquet(bundled, root / "bundled")
    for word in ["bundled", *(sizes or SIZES)]:
        size, _, parts = word.partition("x")
        if not (root / size).exists():
            write_synthetic_households(root / size, int(size), 1)
        cost = in_a_process(whole_release, root / size, root / f"{word}-out", int(parts or 1))
        persons, spent = len(bundled.persons) if size == "bundled" else int(size), cost["seconds"]
        words = f"{persons:,}" + (f" in {parts} parts" if parts else "")
        memory = f"{cost['gigabytes']:.2f} GiB"
        table.add_row(words, f"{spent:.2f}", f"{spent / persons * 1e6:.2f} s", memory, f"{cost['rows']:,}")
    return table


def engines(sizes: list[str], root: Path) -> Table:
    """Return the time of counting with both engines; starting Spark is not timed."""
    table = Table("persons", "DuckDB", "Spark, local[2]", "times as long", "same counts")
    engine = Spark(master="local[2]")
    engine._session.range(1).collect()  # and its Java is warm
    for size in map(int, sizes or SPARK_SIZES):
        write_synthetic_households(root / str(size), size, 1)
        times, counts = [time.perf_counter()], []
        for options in ({}, {"engine": engine}):
            counts.append(tabulation(*files_of(root / str(size)), **options).counts)
            times.append(time.perf_counter())
        here, there = np.diff(times)
        same = all(np.array_equal(counts[0][key], counts[1][key]) for key in counts[0])
        table.add_row(f"{size:,}", f"{here:.1f} s", f"{there:.1f} s", f"{there / here:.0f}", "yes" if same else "NO")
    engine.close()
    return table


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="plaudit-bench-") as folder:
        with_spark, words = sys.argv[1:2] == ["spark"], sys.argv[1:]
        Console().print(engines(words[1:], Path(folder)) if with_spark else releases(words, Path(folder)))
