"""PHSafe's time and memory: the bundled population, simulated releases, and 1, 3 and 10 million persons: `make bench`.

Other sizes and numbers of parts are asked for as ``python -m tests.benchmarks.households 30000000x3 100000000x10``.
Nothing here is asserted. Every size runs in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from algorithms.phsafe.budget import read_config
from algorithms.phsafe.measurement import PHSafe
from algorithms.phsafe.population import load_households
from algorithms.phsafe.release import release
from algorithms.phsafe.tabulation.tabulate import tabulation
from tests.benchmarks.measuring import in_a_process
from tests.households import write_parquet, write_synthetic_households

SIZES = (1_000_000, 3_000_000, 10_000_000)
PARTS = 10
RELEASES, BLOCK = 10_000, 500
PRODUCTION = (160, 200)  # seconds of the production release for 1,210 persons, two quiet cores


def whole_release(folder: str, out: str, parts: int) -> dict[str, Any]:
    """Release a population of files by the US settings, from reading to checked output."""
    files = (Path(folder) / f"{name}.parquet" for name in ("persons", "units", "geo"))
    made = release(*files, "us", out=Path(out), partitions=parts)
    return {"rows": sum(map(len, made.tables.values()))}


def simulated_releases() -> tuple[float, int]:
    """Return the seconds that simulated releases of the bundled population take, and the cells of each."""
    bundled, config = load_households(), read_config("us")
    exact, mechanism = tabulation(bundled.persons, bundled.units, bundled.geo, config=config), PHSafe(config)
    rng, cells = np.random.default_rng(1), 0
    begun = time.perf_counter()
    for _ in range(RELEASES // BLOCK):
        cells = mechanism(exact, BLOCK, rng).shape[1]
    return time.perf_counter() - begun, cells


def main() -> None:
    """Measure and print."""
    table = Table(
        *("persons", "seconds", "a million persons", "peak memory", "rows", "beside it"),
        title="PHSafe, from Parquet files to checked tables: validation, nine queries, secure noise",
    )
    with tempfile.TemporaryDirectory(prefix="plaudit-bench-") as folder:
        root, first = Path(folder), 0.0
        bundled = load_households()
        write_parquet(bundled, root / "bundled")
        asked = [(int(size), int(parts or 1)) for size, _, parts in (word.partition("x") for word in sys.argv[1:])]
        sizes = asked or [*((size, 1) for size in SIZES), (SIZES[-1], PARTS)]
        for size, parts in ((len(bundled.persons), 1), *sizes):
            given = root / ("bundled" if size == len(bundled.persons) else str(size))
            if not given.exists():
                write_synthetic_households(given, size, 1)
            found = in_a_process(whole_release, given, root / f"{size}-{parts}-out", parts)
            each = found["seconds"] / size * 1e6
            if size == len(bundled.persons):
                beside = f"production, 1,210 persons: {PRODUCTION[0]} to {PRODUCTION[1]} s"
            else:
                first = first or each
                beside = f"{each / first:.2f} times the first million"
            words = f"{size:,}" + (f" in {parts} parts" if parts > 1 else "")
            memory, rows = f"{found['gigabytes']:.2f} GiB", f"{found['rows']:,}"
            table.add_row(words, f"{found['seconds']:.2f}", f"{each:.2f} s", memory, rows, beside)
    spent, cells = simulated_releases()
    console = Console()
    console.print(table)
    console.print(
        f"{RELEASES:,} simulated releases of the bundled population, {cells:,} noisy cells each: {spent:.1f} s, "
        f"{spent / RELEASES / cells * 1e9:.0f} ns a cell, one thread."
    )


if __name__ == "__main__":
    main()
