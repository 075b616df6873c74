"""Time and memory of what is read and released, by size: `make bench`. Nothing is asserted.

``python -m tests.benchmarks.sizes WORD ...`` measures the cases with one of the words in their names, those that are
too large for `make bench` too. Each runs in a process of its own, so that its memory is its own.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

from algorithms import phsafe
from algorithms.hierarchy import Hierarchy
from algorithms.release.intake import read_histogram, read_records
from algorithms.release.spilled import LEAVES, Spilled
from algorithms.schema import Schema
from algorithms.topdown import TopDown, preset
from algorithms.topdown.budget import Budget
from algorithms.topdown.release import release
from audit.claims import PureDP
from tests.households import write_synthetic_households

MEMORY, AREAS = "1GB", ("region", "county", "district")  # memory for DuckDB: what takes more is spilled
PERSONS = Schema({"sex": ("f", "m"), "age": tuple(map(str, range(90))), "work": tuple("abcdefg")})
# Persons at random in areas at random, 10 x 10 x 10, unsorted.
ROWS = """copy (
    select (area // 100)::varchar as region, (area // 10)::varchar as county, area::varchar as district,
        substr('fm', drawn % 2 + 1, 1) as sex, (drawn // 2 % 90)::varchar as age,
        substr('abcdefg', drawn // 256 % 7 + 1, 1) as work
    from (select (hash(i) % 1000)::int as area, (hash(i + {rows}) % 100_000)::int as drawn from range({rows}) r(i))
) to '{folder}/persons.parquet' (format parquet)"""
SMALL = Schema({name: tuple(map(str, range(n))) for name, n in zip("abc", (7, 3, 3), strict=True)})  # of 63 cells
SIZES = {"c": 100, "t": 10, "b": 1}  # blocks of a county, of a tract, of a block
DRAWN = 1000  # blocks whose people are drawn at a time
Times = tuple[float, float]


def timed(work: Callable[[], object]) -> Times:
    """Return the seconds that work takes, and those of the processor in this process."""
    begun, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begun, time.process_time() - processor


def write_rows(folder: Path, rows: int) -> None:
    duckdb.sql(ROWS.format(rows=rows, folder=folder))


def histogram(folder: Path, _: int) -> Times:
    return timed(lambda: read_histogram(folder / "persons.parquet", PERSONS, AREAS, memory=MEMORY))


def records(folder: Path, _: int) -> Times:
    return timed(lambda: read_records(folder / "persons.parquet", PERSONS, memory=MEMORY))


def topdown(folder: Path, blocks: int, cells: int, secure: bool = False, jobs: int = 1) -> Times:
    """Release 60 people a block, most of whom share few cells."""
    rng = np.random.default_rng(1)
    tree = Hierarchy.from_codes(*([f"{name}{i // size}" for i in range(blocks)] for name, size in SIZES.items()))
    queries = dict.fromkeys(("total", "a", "b", "c", "detailed"), "1/5")
    budget = Budget(PureDP(4.0, "replace_one"), ["1/4"] * 4, [queries] * 4)
    algorithm = (
        preset("pl94-2020", tree, n_jobs=jobs) if cells == 2016 else TopDown(SMALL, tree, budget, solver="batched")
    )
    law = rng.gamma(0.05, size=cells)
    with Spilled() as spilled:
        for start in range(0, blocks, DRAWN):
            local = law * rng.gamma(0.3, size=(min(DRAWN, blocks - start), cells))
            spilled.append(
                LEAVES, rng.multinomial(rng.poisson(60, len(local)), local / local.sum(axis=1, keepdims=True))
            )
        return timed(lambda: release(algorithm, spilled, out=folder / "out", rng="secure" if secure else rng))


def households(folder: Path, _: int, parts: int) -> Times:
    persons, units, geo = (folder / f"{name}.parquet" for name in ("persons", "units", "geo"))
    return timed(lambda: phsafe.release(persons, units, geo, "us", out=folder / "out", partitions=parts))


def write_households(folder: Path, people: int) -> None:
    write_synthetic_households(folder, people, 1)


# What is measured, what writes its files, how many rows, blocks or persons there are, and what else it is told.
CASES: dict[str, tuple[Any, ...]] = {
    "histogram of {:,} rows": (histogram, write_rows, (10_000_000, 30_000_000, 100_000_000), ()),
    "records of {:,} rows": (records, write_rows, (10_000_000, 30_000_000), ()),
    "TopDown, {:,} blocks of 63 cells": (topdown, None, (1000, 10_000, 100_000), (63,)),
    "TopDown, {:,} blocks of 2,016 cells": (topdown, None, (500, 5000), (2016,)),
    "TopDown, {:,} blocks of 2,016 cells, secure": (topdown, None, (500, 5000), (2016, True)),
    "TopDown, {:,} blocks of 2,016 cells, secure, two jobs": (topdown, None, (500, 5000), (2016, True, 2)),
    "PHSafe, {:,} persons": (households, write_households, (1_000_000, 3_000_000, 10_000_000), (1,)),
    "PHSafe, {:,} persons in 10 parts": (households, write_households, (10_000_000, 100_000_000), (10,)),
}
LARGE = ("5,000 blocks of 2,016 cells, secure", "PHSafe, 100,000,000")  # on request


def in_a_process(work: Callable[..., Any], *arguments: object) -> tuple[Any, float]:
    """Return what a call in a new process returns, and the peak of its memory in GiB."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        returned = pool.submit(work, *arguments).result()
        return returned, pool.submit(peak_memory).result()


def peak_memory() -> float:
    """Return that of this process; the module `resource` would count its parent's, too."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**20


if __name__ == "__main__":
    asked = sys.argv[1:]
    table = Table("case", "seconds", "processor, without workers", "peak memory", title="Time and memory by size")
    for name, (work, write, sizes, more) in CASES.items():
        for size in sizes:
            words = name.format(size)
            if any(map(words.count, asked)) if asked else not any(map(words.count, LARGE)):
                with tempfile.TemporaryDirectory(prefix="plaudit-bench-") as place:
                    if write is not None:
                        in_a_process(write, Path(place), size)
                    (seconds, processor), memory = in_a_process(work, Path(place), size, *more)
                table.add_row(words, f"{seconds:.1f} s", f"{processor:.1f} s", f"{memory:.2f} GiB")
    Console().print(table)
