"""Speeds of TopDown, as ratios within one run: `make bench`. Nothing here is asserted."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
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
from algorithms.topdown.estimation import quadratic
from algorithms.topdown.estimation.batched import solve_level
from algorithms.topdown.estimation.family import Box, Family, Fit, Joint, answer
from algorithms.topdown.release import release
from audit.claims import PureDP
from tests.benchmarks.measuring import in_a_process, paired

SCHEMAS = {63: (7, 3, 3), 252: (7, 6, 6), 2016: (8, 12, 21)}
SIZES = {"c": 100, "t": 10, "b": 1}  # blocks of a county, of a tract, of a block
QUERIES = ("total", "a", "b", "c", "detailed")
GIVEN = ("", "bounds on cells", "totals of two halves")
GROWTH = ((63, 1000), (63, 10_000), (63, 100_000), (2016, 500), (2016, 5000))
PUBLISHED = 500  # blocks of a release with secure noise; another number is an argument, which measures that alone
DRAWN = 1000  # blocks whose people are drawn at a time
TOLERANCE = 1e-3  # of the releases counted by the minute; families are compared at the solvers' defaults


def schema_of(cells: int) -> Schema:
    """Return a schema of three attributes with that many cells."""
    return Schema({name: tuple(map(str, range(n))) for name, n in zip("abc", SCHEMAS[cells], strict=True)})


def families(cells: int, rng: np.random.Generator, count: int, given: str = "") -> list[Family]:
    """Return families of ten parts: a sparse parent, five queries, geometric noise of one fifth of the budget each.

    With bounds on cells, each count is known to 2 people; with totals of two halves, those of five parts each.
    """
    bounded, halves = (given == name for name in GIVEN[1:])
    schema, found = schema_of(cells), []
    for _ in range(count):
        law = rng.dirichlet(np.full(cells, 0.1))
        parts = rng.multinomial(rng.poisson(130, 10), law)
        fits = []
        for name in QUERIES:
            groups = schema.query(name).groups
            exact = np.array([np.bincount(groups, part) for part in parts])
            noise = rng.geometric(0.1, exact.shape) - rng.geometric(0.1, exact.shape)
            fits.append(Fit(name, groups, exact + noise.astype(float), np.full(10, 1 / 200)))
        box = Box("known", schema.query("detailed").groups, np.maximum(parts - 2.0, 0), parts + 2.0)
        first = np.arange(10) < 5
        joints = tuple(Joint("half", members, int(parts[members].sum())) for members in (first, ~first))
        found.append(
            Family(10, cells, tuple(fits), (box,) * bounded, joints if halves else (), parent=parts.sum(axis=0))
        )
    return found


def together(problems: list[Family]) -> NDArray[np.float64]:
    """Solve families by the batched solver, as those of one level: tables of shape (families, parts, cells)."""
    fits = [
        Fit(
            fit.name,
            fit.groups,
            np.concatenate([family.fits[place].answers for family in problems])[np.newaxis],
            np.concatenate([family.fits[place].weights for family in problems]),
        )
        for place, fit in enumerate(problems[0].fits)
    ]
    boxes = [
        Box(
            box.name,
            box.groups,
            np.concatenate([family.boxes[place].lower for family in problems]),
            np.concatenate([family.boxes[place].upper for family in problems]),
        )
        for place, box in enumerate(problems[0].boxes)
    ]
    parents = np.array([family.parent for family in problems])[np.newaxis]
    starts = 10 * np.arange(len(problems) + 1)
    solved = solve_level(parents, starts, fits, boxes, joints=[family.joints for family in problems])
    if not solved.converged.all():
        raise RuntimeError("every family must be solved to the tolerance")
    return solved.tables.reshape(len(problems), 10, -1)


def blocks(number: int) -> Hierarchy:
    """Return a tree of counties of ten tracts of ten blocks."""
    return Hierarchy.from_codes(*([f"{name}{i // size}" for i in range(number)] for name, size in SIZES.items()))


def releases_a_minute(cells: int, number: int, rng: np.random.Generator, workers: int) -> tuple[float, float]:
    """Return how many whole releases `workers` threads make in a minute, noise to rounding, and processor seconds.

    The latter are those of one release: on a busy machine they say what a quiet one would do.
    """
    tree, schema = blocks(number), schema_of(cells)
    shares = ["1/4"] * 4
    budget = Budget(PureDP(4.0, "replace_one"), shares, [dict.fromkeys(QUERIES, "1/5")] * 4)
    topdown = TopDown(schema, tree, budget, solver="batched", tolerance=TOLERANCE)
    histogram = rng.multinomial(rng.poisson(60, number), rng.dirichlet(np.full(cells, 0.1)))
    runs = max(4, 100_000 // (cells * number // 10))
    generators = rng.spawn(workers)
    topdown(histogram, 1, rng)
    with ThreadPoolExecutor(workers) as pool:
        begun, work = time.perf_counter(), time.process_time()
        list(pool.map(lambda generator: topdown(histogram, runs, generator), generators))
        spent, worked = time.perf_counter() - begun, time.process_time() - work
        return 60 * workers * runs / spent, worked / (workers * runs)


def people(number: int, cells: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Draw a histogram of 60 people a block, most of whom share few cells, some blocks at a time."""
    law = rng.gamma(0.05, size=cells)
    for start in range(0, number, DRAWN):
        local = law * rng.gamma(0.3, size=(min(DRAWN, number - start), cells))
        yield rng.multinomial(rng.poisson(60, len(local)), local / local.sum(axis=1, keepdims=True))


def one_release(cells: int, number: int, folder: str, jobs: int = 1, secure: bool = False) -> dict[str, float]:
    """Make one release, in memory or from a store into a folder; only it is timed, and the processes it starts."""
    rng, tree = np.random.default_rng(1), blocks(number)
    if cells == 2016:
        topdown = preset("pl94-2020", tree, n_jobs=jobs)
    else:
        budget = Budget(PureDP(4.0, "replace_one"), ["1/4"] * 4, [dict.fromkeys(QUERIES, "1/5")] * 4)
        topdown = TopDown(schema_of(cells), tree, budget, solver="batched", tolerance=TOLERANCE)
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
    """Return the time of one release with secure noise on one job and on two, and how many times as fast two are.

    Quiet seconds are those of a machine without other work: the processor's in the caller, and an equal part of the
    workers'.
    """
    columns = ("seconds", "processor, caller", "workers", "quiet seconds", "a block")
    table = Table("jobs", *columns, title=f"One release with secure noise: {number:,} blocks x 2,016 cells")
    found = []
    for jobs in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            measured = in_a_process(one_release, 2016, number, folder, jobs, True)
        here, there = measured["processor"], measured.get("workers", 0.0)
        found.append((measured["seconds"], here, there, here + there / jobs))
        table.add_row(str(jobs), *(f"{value:.1f} s" for value in found[-1]), f"{found[-1][-1] / number * 1e3:.1f} ms")
    one, two = found
    table.add_row("times as fast", f"{one[0] / two[0]:.2f}", "", "", f"{one[-1] / two[-1]:.2f}", "")
    return table


def objective(family: Family, tables: NDArray[np.float64]) -> float:
    """Return the weighted sum of squares of tables, shape (parts, cells)."""
    squares = (fit.weights @ np.sum((answer(fit.groups, tables) - fit.answers) ** 2, axis=1) for fit in family.fits)
    return float(sum(squares))


def main() -> None:
    """Measure and print."""
    if len(sys.argv) > 1:
        Console().print(published(int(sys.argv[1])))
        return
    rng = np.random.default_rng(1)
    table = Table("what", "batched", "PIQP", "ratio", title="TopDown: families of ten parts, one thread")
    for given, (cells, count) in product(GIVEN, ((63, 40), (252, 20), (2016, 4))):
        problems = families(cells, rng, count, given)
        one, other, ratio = paired(
            lambda given=problems: together(given),
            lambda given=problems: [quadratic.solve(family) for family in given],
            repeats=5,
        )
        found, oracle = together(problems), [quadratic.solve(family).tables for family in problems]
        off = max(
            abs(objective(family, mine) / objective(family, theirs) - 1)
            for family, mine, theirs in zip(problems, found, oracle, strict=True)
        )
        name = f"{cells:,} cells{', ' * bool(given)}{given}, objectives within {off:.0e}"
        row = (f"{one / count * 1e3:.2f} ms", f"{other / count * 1e3:.1f} ms", f"{ratio:.1f}")
        table.add_row(name, *row)
    Console().print(table)
    columns = ("1 thread", "2 threads", "processor, a release")
    minute = Table("cells", "blocks", *columns, title=f"Releases a minute, tolerance {TOLERANCE:g}")
    for cells, number in ((63, 100), (63, 500), (63, 2500), (252, 500), (2016, 500)):
        (one, work), (two, _) = (releases_a_minute(cells, number, rng, workers) for workers in (1, 2))
        minute.add_row(f"{cells:,}", f"{number:,}", f"{one:,.0f}", f"{two:,.0f}", f"{1e3 * work:.1f} ms")
    Console().print(minute)
    Console().print(published(PUBLISHED))
    Console().print(growth())


if __name__ == "__main__":
    main()
