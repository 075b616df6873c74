"""Time and memory from rows of Parquet to a histogram, for 10, 30 and 100 million rows: `make bench`.

Nothing here is asserted. Every size runs in a process of its own, so that its memory is its own. ONS, the bottom-up
mechanism and TopDown read histograms; NistDp3 reads records.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table

from algorithms.release.intake import read_histogram, read_records
from algorithms.schema import Schema
from tests.benchmarks.measuring import in_a_process

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


def taken_in(path: str, kind: str) -> dict[str, Any]:
    """Read one file; return the size of what is returned, in GiB."""
    if kind == "histogram":
        _, counts = read_histogram(path, SCHEMA, AREAS, memory=MEMORY)
    else:
        counts = read_records(path, SCHEMA, memory=MEMORY)
    return {"returned": counts.nbytes / 2**30}


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
                measured = in_a_process(taken_in, path, kind)
                each, sizes = measured["seconds"] / rows * 1e6, (measured[key] for key in ("gigabytes", "returned"))
                spent = (f"{measured['seconds']:.1f}", f"{each:.2f} s")
                table.add_row(f"{rows:,}", kind, *spent, *(f"{size:.2f} GiB" for size in sizes))
    Console().print(table)


if __name__ == "__main__":
    main()
