"""Time and memory of releases of TopDown by size, and on one job and on two: `make bench`. Nothing is asserted."""

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from joblib.externals.loky import get_reusable_executor
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from algorithms.hierarchy import Hierarchy
from algorithms.release.spilled import LEAVES, Spilled
from algorithms.schema import Schema
from algorithms.topdown import TopDown, preset
from algorithms.topdown.budget import Budget
from algorithms.topdown.release import release
from audit.claims import PureDP
from tests.benchmarks.measuring import in_a_process

SCHEMA = Schema({name: tuple(map(str, range(n))) for name, n in zip("abc", (7, 3, 3), strict=True)})  # of 63 cells
SIZES = {"c": 100, "t": 10, "b": 1}  # blocks of a county, of a tract, of a block
QUERIES = ("total", "a", "b", "c", "detailed")
GROWTH = ((63, 1000), (63, 10_000), (63, 100_000), (2016, 500), (2016, 5000))
PUBLISHED = 500  # blocks of a release with secure noise; another number is an argument, which measures that alone
DRAWN = 1000  # blocks whose people are drawn at a time


def people(number: int, cells: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Draw a histogram of 60 people a block, most of whom share few cells, some blocks at a time."""
    law = rng.gamma(0.05, size=cells)
    for start in range(0, number, DRAWN):
        local = law * rng.gamma(0.3, size=(min(DRAWN, number - start), cells))
        yield rng.multinomial(rng.poisson(60, len(local)), local / local.sum(axis=1, keepdims=True))


def one_release(cells: int, number: int, folder: str, jobs: int = 1, secure: bool = False) -> dict[str, float]:
    """Make one release, in memory or from a store into a folder; only it is timed, and the processes it starts."""
    rng = np.random.default_rng(1)
    tree = Hierarchy.from_codes(*([f"{name}{i // size}" for i in range(number)] for name, size in SIZES.items()))
    if cells == 2016:
        topdown = preset("pl94-2020", tree, n_jobs=jobs)
    else:
        budget = Budget(PureDP(4.0, "replace_one"), ["1/4"] * 4, [dict.fromkeys(QUERIES, "1/5")] * 4)
        topdown = TopDown(SCHEMA, tree, budget, solver="batched")
    with Spilled() as spilled:
        for part in people(number, cells, rng):
            spilled.append(LEAVES, part)
        histogram = None if folder else spilled.read(LEAVES, 0, number * cells).reshape(number, cells)
        begun, work = time.perf_counter(), time.process_time()
        if histogram is None:
            release(topdown, spilled, out=Path(folder) / "out", rng="secure" if secure else rng)
        else:
            topdown.estimate(topdown.measure(histogram, rng))
        times = {"seconds": time.perf_counter() - begun, "processor": time.process_time() - work}
    if jobs > 1:
        get_reusable_executor().shutdown(wait=True)  # processes that ended are counted
        times["workers"] = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    written = sum(path.stat().st_size for path in Path(folder).glob("out/noisy_measurements.csv")) if folder else 0
    return times | {"written": written / 1e6}


def growth() -> Table:
    """Return time and memory of one release of trees of several sizes, each in a process of its own."""
    columns = ("seconds", "of the processor", "peak memory", "noisy measurements")
    table = Table("cells", "blocks", "tables", *columns, title="One release, one process")
    for cells, number in GROWTH:
        for where in ("in memory", "written level by level"):
            with tempfile.TemporaryDirectory() as folder:
                measured = in_a_process(one_release, cells, number, folder if where != "in memory" else "")
            seconds = (f"{measured[key]:.1f} s" for key in ("seconds", "processor"))
            sizes = (f"{measured['gigabytes']:.2f} GiB", f"{measured['written']:.0f} MB")
            table.add_row(f"{cells:,}", f"{number:,}", where, *seconds, *sizes)
    return table


def published(number: int) -> Table:
    """Return the time of one release with secure noise on one job and on two.

    Quiet seconds are those of a machine without other work: the processor's in the caller, and an equal part of the
    workers'.
    """
    columns = ("jobs", "seconds", "processor, caller", "workers", "quiet seconds")
    table = Table(*columns, title=f"One release with secure noise: {number:,} blocks x 2,016 cells")
    for jobs in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            measured = in_a_process(one_release, 2016, number, folder, jobs, True)
        here, there = measured["processor"], measured.get("workers", 0.0)
        times = (measured["seconds"], here, there, here + there / jobs)
        table.add_row(str(jobs), *(f"{value:.1f} s" for value in times))
    return table


if __name__ == "__main__":
    if len(sys.argv) == 1:
        Console().print(growth())
    Console().print(published(int(sys.argv[1]) if len(sys.argv) > 1 else PUBLISHED))
