"""Exact tables: what a release adds noise to, and the whole tables without privacy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.phsafe.budget import Settings, read_config
from algorithms.phsafe.schema import FRAMES, PUERTO_RICO
from algorithms.phsafe.tables import DERIVED, NONPRIVATE, PUBLISHED, QUERIES, TAU, Query, named, split_level
from algorithms.phsafe.tabulation.cubes import count_cubes, levels_of, locate_households
from algorithms.phsafe.tabulation.intake import Types, each_part
from algorithms.phsafe.tabulation.rules import Finding, check_report
from algorithms.phsafe.tabulation.validate import Validation, find_faults
from algorithms.release.duck import DuckDB
from algorithms.release.frames import Frame
from algorithms.release.spark import Engine, opened

__all__ = ["Sizes", "Tabulation", "household_sizes", "tabulate", "tabulation"]

Sizes = Mapping[str, Mapping[int, int]]
"""By query about persons: how many households have how many of them. Not private."""
Counts = Mapping[tuple[str, str], NDArray[np.int64]]
STATES = """
    select cast(TABBLKST as string) as STATE, coalesce(bool_or(RTYPE not in ('4', '5')), false) as HOUSED
    from geo where TABBLKST is not null group by TABBLKST"""
MOST_PARTS = 1_000  # each costs a pass over the files
COLUMNS = ("TABLE", "REGION_TYPE", "REGION_ID", "ITERATION_CODE", "DATA_CELL", "COUNT")


@dataclass(frozen=True, eq=False)
class Tabulation:
    """Exact counts of the queries' basis cells, shape (1 or states, iterations, cells) by query and level."""

    states: tuple[str, ...]
    counts: Counts

    @property
    def size(self) -> int:
        """Number of counts."""
        return sum(array.size for array in self.counts.values())

    def frame(self) -> Frame:
        """Return the counts, and the numerators made from them, one row a cell, in the production order."""
        measured = {query for query, _ in self.counts}
        sums = {name: DERIVED.get(name, (name, {})) for name in PUBLISHED}
        rows = (
            row
            for name, (source, parts) in sums.items()
            if source in measured
            for row in _rows(name, QUERIES[source], self, parts or {cell: (cell,) for cell in QUERIES[source].cells})
        )
        return Frame.from_rows(COLUMNS, rows)


def tabulate(
    persons: Any,
    units: Any,
    geo: Any,
    tables: str | Sequence[str] = "all",
    *,
    truncate: bool = True,
    config: Settings | None = None,
    engine: str | Engine = "duckdb",
    partitions: int = 1,
    validation: Validation = "full",
) -> Frame:
    """Count exactly. The result is not private.

    With `truncate`, count the basis cells of the queries as the private path does, zeros included. Without, count every
    cell with totals and subtotals, without zeros, as the production code's own non-private tabulator does: there the
    denominators of PH1 and PH5 repeat one count in three cells, and PH8's numerator adds up the units' populations.

    Parameters
    ----------
    persons, units, geo : path or frame
        The three frames: CSV or Parquet files, or pandas, polars and Arrow tables or whatever DuckDB reads.
    tables : "all" or sequence of str
        Which of the eleven tables.
    truncate : bool
        Whether at most tau of a household's persons are counted, and basis cells only.
    config : what `read_config` takes, optional
        Its thresholds, states and levels. Default: thresholds of the 2020 Census, all states in the data, all levels.
    engine : {"duckdb", "spark"}, DuckDB or Spark
        The engine that counts.
    partitions : int
        Number of parts of the households, by ``MAFID``, that are counted one by one: more parts need less memory.
    validation : {"full", "production", "none"}
        What is checked first; see `algorithms.phsafe.tabulation.validate`.

    Returns
    -------
    Frame
        Columns TABLE, REGION_TYPE, REGION_ID, ITERATION_CODE (empty in PH2 and PH6), DATA_CELL and COUNT.
    """
    names = named(tables, PUBLISHED)
    if not names:
        raise ValueError("tables must name at least one table, got none")
    options: dict[str, Any] = {"config": config, "engine": engine, "partitions": partitions, "validation": validation}
    if truncate:
        sources = {DERIVED.get(name, (name, {}))[0] for name in names}
        queries = {name: query for name, query in QUERIES.items() if name in sources}
        frame = tabulation(persons, units, geo, queries, **options).frame()
        return frame.where(np.isin(frame["TABLE"].astype(str), names))
    queries = {name: NONPRIVATE[name] for name in PUBLISHED if name in names}
    exact = tabulation(persons, units, geo, queries, truncate=False, **options)
    rows = (
        row
        for name, query in queries.items()
        for row in _rows(
            name,
            query,
            exact,
            {cell: query.totals.get(cell, (cell,)) for cell in sorted({*query.cells, *query.totals}, key=int)},
        )
    )
    return Frame.from_rows(COLUMNS, (row for row in rows if row[-1]))


def tabulation(
    persons: Any,
    units: Any,
    geo: Any,
    queries: Mapping[str, Query] = QUERIES,
    *,
    truncate: bool = True,
    config: Settings | None = None,
    engine: str | Engine = "duckdb",
    partitions: int = 1,
    validation: Validation = "full",
) -> Tabulation:
    """Count the basis cells of queries as arrays, at the levels that have a budget; otherwise as `tabulate`."""
    if isinstance(partitions, bool) or not isinstance(partitions, int) or not 1 <= partitions <= MOST_PARTS:
        raise ValueError(f"partitions must be a whole number from 1 to {MOST_PARTS:,}, got {partitions!r}")
    settings = None if config is None else read_config(config)
    taus = {name: (settings.tau if settings else TAU)[name] for name in TAU} if truncate else {}
    work = partial(
        _count, queries=queries, taus=taus, allowed=settings.state_filter if settings else None, validation=validation
    )
    sources = dict(zip(FRAMES, (persons, units, geo), strict=True))
    with opened(engine, [persons, units, geo]) as opened_engine:
        parts = list(each_part(opened_engine, sources, FRAMES, work, parts=partitions))
    report = [fault for part in parts for fault in part.faults]
    states = {state for part in parts for state, _ in part.states}
    check_report(report)
    if PUERTO_RICO in states and len(states) > 1 and validation != "none":  # seen across parts only here
        raise ValueError(f"geo: Puerto Rico must be by itself, and there is {min(states)} besides")
    ordered = tuple(sorted({state for part in parts for state, housed in part.states if housed}))
    counts = {
        (name, level): array
        for name, query in queries.items()
        for level, array in levels_of(query, [part.cubes[name] for part in parts], ordered).items()
        if settings is None or settings.budget(DERIVED.get(name, (name, {}))[0], level)
    }
    return Tabulation(ordered, counts)


def household_sizes(
    persons: Any, units: Any, geo: Any, config: Settings = "us", *, engine: str | Engine = "duckdb"
) -> Sizes:
    """Count households by how many of their persons each query counts, without truncation."""
    sources = dict(zip(FRAMES, (persons, units, geo), strict=True))
    work = partial(_sizes, allowed=read_config(config).state_filter)
    with opened(engine, [persons, units, geo]) as opened_engine:
        parts = list(each_part(opened_engine, sources, FRAMES, work))
    check_report(fault for faults, _ in parts for fault in faults)
    sizes: dict[str, Counter[int]] = {name: Counter() for name, query in QUERIES.items() if query.truncated}
    for _, rows in parts:
        for name, people, homes in rows:
            sizes[name][people] += homes
    return sizes


def _sizes(
    database: DuckDB, types: Types, *, allowed: Sequence[str] | None
) -> tuple[Sequence[Finding], Sequence[tuple[str, int, int]]]:
    """Return what is wrong, or for each query about persons how many households have how many of them."""
    if faults := find_faults(database, types, allowed, "full"):
        return faults, ()
    locate_households(database)
    counts = {
        name: database.fetch(f"""
            select PEOPLE, count(*) as HOMES
            from (select MAFID, count(*) as PEOPLE from persons p where {query.persons} group by MAFID) counted
            join joinable h on h.MAFID = counted.MAFID where {query.units} group by PEOPLE order by PEOPLE""")
        for name, query in QUERIES.items()
        if query.truncated
    }
    return (), [(name, int(people), int(homes)) for name, rows in counts.items() for people, homes in rows.rows()]


@dataclass(frozen=True)
class _Part:
    """What was found and counted in some households (nothing if faults were found); states, and which have housing."""

    faults: Sequence[Finding]
    states: Sequence[tuple[str, bool]] = ()
    cubes: Mapping[str, Frame] = field(default_factory=dict)


def _count(
    database: DuckDB,
    types: Types,
    *,
    queries: Mapping[str, Query],
    taus: Mapping[str, int],
    allowed: Sequence[str] | None,
    validation: Validation,
) -> _Part:
    if faults := find_faults(database, types, allowed, validation):
        return _Part(faults)
    states = list(database.fetch(STATES).rows())
    locate_households(database)
    return _Part((), states, count_cubes(database, queries, taus))


def _rows(
    name: str, query: Query, exact: Tabulation, parts: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str, str, str, str, int]]:
    """Yield the rows of a table, region by region; each cell is the sum of its parts."""
    places = {cell: place for place, cell in enumerate(query.cells)}
    picked = {cell: [places[part] for part in summed] for cell, summed in parts.items()}
    for region_type, regions in (("usa", ("1",)), ("state", exact.states)):
        for i, region in enumerate(regions):
            for level in query.levels:
                counts = exact.counts.get((query.name, level))
                kind, iterations = split_level(level)
                if counts is None or kind != region_type:
                    continue
                for j, iteration in enumerate(iterations):
                    code = "" if query.race is None else iteration
                    for cell, summed in picked.items():
                        yield name, kind.upper(), region, code, cell, int(counts[i, j, summed].sum())
