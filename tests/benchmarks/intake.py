"""Time and memory from rows of Parquet to a histogram, for 10, 30 and 100 million rows: `make bench`.

Nothing here is asserted. Every size runs in a process of its own, so that its memory is its own. ONS, the bottom-up
mechanism and TopDown read histograms; NistDp3 reads records.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table

from algorithms.schema import Schema
from algorithms.tables.intake import read_histogram, read_records

SIZES = (10_000_000, 30_000_000, 100_000_000)
MEMORY = "1GB"  # for DuckDB: what takes more is spilled
SCHEMA = Schema({"sex": ("f", "m"), "age": tuple(map(str, range(90))), "work": tuple("abcdefg")})
AREAS = ("region", "county", "district")  # 10 x 10 x 10


def write_rows(path: Path, rows: int) -> None:
    """Write persons at random in areas at random, unsorted."""
    district = "(hash(i) % 1000)::int"
    drawn = f"hash(i + {rows})"
    duckdb.sql(
        f"copy (select ({district} // 100)::varchar as region, ({district} // 10)::varchar as county, "
        f"{district}::varchar as district, case when {drawn} % 2 = 0 then 'f' else 'm' end as sex, "
        f"({drawn} // 2 % 90)::varchar as age, substr('abcdefg', ({drawn} // 256 % 7)::int + 1, 1) as work "
        f"from range({rows}) r(i)) to '{path}' (format parquet)"
    )


def taken_in(path: Path, kind: str) -> dict[str, Any]:
    """Read one file in this process; return seconds, peak memory and bytes of what is returned."""
    begun = time.perf_counter()
    if kind == "histogram":
        _, found = read_histogram(path, SCHEMA, AREAS, memory=MEMORY)
    else:
        found = read_records(path, SCHEMA, memory=MEMORY)
    spent = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux counts in KiB
    return {"seconds": spent, "gigabytes": peak, "returned": found.nbytes / 2**30}


def in_a_process(path: Path, kind: str) -> dict[str, Any]:
    """Run `taken_in` in a process of its own; importing is not timed."""
    code = (
        "import json, sys; from pathlib import Path; from tests.benchmarks.intake import taken_in; "
        "print(json.dumps(taken_in(Path(sys.argv[1]), sys.argv[2])))"
    )
    done = subprocess.run([sys.executable, "-c", code, path, kind], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure and print."""
    table = Table(
        *("rows", "to", "seconds", "a million rows", "peak memory", "of which returned"),
        title=f"From one Parquet file to counts, at most {MEMORY} for DuckDB",
    )
    with tempfile.TemporaryDirectory(prefix="plaudit-bench-") as folder:
        for rows in SIZES:
            path = Path(folder) / "persons.parquet"
            write_rows(path, rows)
            for kind in ("histogram", "records") if rows < SIZES[-1] else ("histogram",):
                found = in_a_process(path, kind)
                each, peak = found["seconds"] / rows * 1e6, f"{found['gigabytes']:.2f} GiB"
                returned = f"{found['returned']:.2f} GiB"
                table.add_row(f"{rows:,}", kind, f"{found['seconds']:.1f}", f"{each:.2f} s", peak, returned)
    Console().print(table)


if __name__ == "__main__":
    main()
