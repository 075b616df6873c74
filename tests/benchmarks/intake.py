"""Time and memory from rows of Parquet to a histogram, for 10, 30 and 100 million rows: `make bench`.

Nothing here is asserted. Every size runs in a process of its own, so that its memory is its own. ONS, the bottom-up
mechanism and TopDown read histograms; NistDp3 reads records.
"""

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
# Persons at random in areas at random, 10 x 10 x 10, unsorted.
ROWS = """copy (
    select (area // 100)::varchar as region, (area // 10)::varchar as county, area::varchar as district,
        substr('fm', drawn % 2 + 1, 1) as sex, (drawn // 2 % 90)::varchar as age,
        substr('abcdefg', drawn // 256 % 7 + 1, 1) as work
    from (select (hash(i) % 1000)::int as area, (hash(i + {rows}) % 100_000)::int as drawn from range({rows}) r(i))
) to '{path}' (format parquet)"""


def taken_in(path: str, kind: str) -> dict[str, Any]:
    """Read one file; return the size of what is returned, in GiB."""
    if kind == "histogram":
        _, counts = read_histogram(path, SCHEMA, ("region", "county", "district"), memory=MEMORY)
    else:
        counts = read_records(path, SCHEMA, memory=MEMORY)
    return {"returned": counts.nbytes / 2**30}


if __name__ == "__main__":
    columns = ("rows", "to", "seconds", "a million rows", "peak memory", "of which returned")
    table = Table(*columns, title=f"From one Parquet file to counts, at most {MEMORY} for DuckDB")
    with tempfile.TemporaryDirectory(prefix="plaudit-bench-") as folder:
        for rows in SIZES:
            path = Path(folder) / "persons.parquet"
            duckdb.sql(ROWS.format(rows=rows, path=path))
            for kind in ("histogram", "records") if rows < SIZES[-1] else ("histogram",):
                cost = in_a_process(taken_in, path, kind)
                spent, sizes = cost["seconds"], (cost[key] for key in ("gigabytes", "returned"))
                each = f"{spent / rows * 1e6:.2f} s"
                table.add_row(f"{rows:,}", kind, f"{spent:.1f}", each, *(f"{size:.2f} GiB" for size in sizes))
    Console().print(table)
