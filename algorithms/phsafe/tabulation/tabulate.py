"""Exact tables: the counts to which a release adds noise, and the complete tables without noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
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
"""For each query about persons, the number of households by number of such persons. Not private."""
Counts = Mapping[tuple[str, str], NDArray[np.int64]]
STATES = """
    select cast(TABBLKST as string) as STATE, coalesce(bool_or(RTYPE not in ('4', '5')), false) as HOUSED
    from geo where TABBLKST is not null group by TABBLKST"""
MOST_PARTS = 1_000  # each part needs a pass over the files
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
        """Return the counts and the numerators derived from them, one row a cell, in the production order."""
        measured = {query for query, _ in self.counts}
        sums = {name: DERIVED.get(name, (name, {})) for name in PUBLISHED}
        return self.rows(
            {
                name: (QUERIES[source], parts or {cell: (cell,) for cell in QUERIES[source].cells})
                for name, (source, parts) in sums.items()
                if source in measured
            }
        )

    def rows(self, tables: Mapping[str, tuple[Query, Mapping[str, Sequence[str]]]]) -> Frame:
        """Return tables as rows, region by region; a table is a query, and for each cell the basis cells of its sum."""
        rows = []
        for name, (query, parts) in tables.items():
            places = {cell: place for place, cell in enumerate(query.cells)}
            summed = {cell: [places[part] for part in basis] for cell, basis in parts.items()}
            for kind, regions in (("usa", ("1",)), ("state", self.states)):
                levels = [level for level in query.levels if (query.name, level) in self.counts]
                of_kind = [level for level in levels if split_level(level)[0] == kind]
                for (i, region), level in product(enumerate(regions), of_kind):
                    for counts, iteration in zip(self.counts[query.name, level][i], split_level(level)[1], strict=True):
                        code = "" if query.race is None else iteration
                        rows += [
                            (name, kind.upper(), region, code, cell, int(counts[at].sum()))
                            for cell, at in summed.items()
                        ]
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

    With `truncate`, count the basis cells of the queries as a release does, zeros included. Without, count every cell
    with totals and subtotals, without zeros, as the production code's non-private tabulator does.

    Parameters
    ----------
    persons, units, geo : path or frame
        CSV or Parquet files, or pandas, polars and Arrow tables, or other sources that DuckDB reads.
    tables : "all" or sequence of str
        Names of some of the eleven tables.
    config : any type that `read_config` accepts, optional
        Default: thresholds of the 2020 Census, all states in the data, all levels.
    engine, partitions : {"duckdb", "spark"}, DuckDB or Spark; int
        The engine, and the number of parts in which it counts households, one by one: more parts need less memory.
    validation : {"full", "production", "none"}
        The checks before counting; see `algorithms.phsafe.tabulation.validate`.

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
    exact, summed = tabulation(persons, units, geo, queries, truncate=False, **options), {}
    for name, query in queries.items():
        cells = sorted({*query.cells, *query.totals}, key=int)
        summed[name] = query, {cell: query.totals.get(cell, (cell,)) for cell in cells}
    frame = exact.rows(summed)
    return frame.where(frame["COUNT"] != 0)


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
        faults, places, cubes = zip(*each_part(opened_engine, sources, FRAMES, work, parts=partitions), strict=True)
    check_report(chain(*faults))
    housing = dict(sorted(chain(*places)))  # a state has housing if it has in any part: True sorts last
    if PUERTO_RICO in housing and len(housing) > 1 and validation != "none":  # each part checks only itself
        raise ValueError(f"geo: Puerto Rico must be by itself, and there is {min(housing)} besides")
    ordered = tuple(state for state, housed in housing.items() if housed)
    counts = {
        (name, level): array
        for name, query in queries.items()
        for level, array in levels_of(query, [cube[name] for cube in cubes], ordered).items()
        if settings is None or settings.budget(DERIVED.get(name, (name, {}))[0], level)
    }
    return Tabulation(ordered, counts)


def household_sizes(
    persons: Any, units: Any, geo: Any, config: Settings = "us", *, engine: str | Engine = "duckdb"
) -> Sizes:
    """Count households by the number of their persons whom each query counts, without truncation."""
    sources = dict(zip(FRAMES, (persons, units, geo), strict=True))
    work = partial(_sizes, allowed=read_config(config).state_filter)
    with opened(engine, [persons, units, geo]) as opened_engine:
        faults, parts = zip(*each_part(opened_engine, sources, FRAMES, work), strict=True)
    check_report(chain(*faults))
    sizes: dict[str, Counter[int]] = {name: Counter() for name in TAU}
    for name, people, homes in chain(*parts):
        sizes[name][people] += homes
    return sizes


def _sizes(
    database: DuckDB, types: Types, *, allowed: Sequence[str] | None
) -> tuple[Sequence[Finding], Sequence[tuple[str, int, int]]]:
    """Return findings; or rows with a query about persons, a number of persons, and the number of such households."""
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


def _count(
    database: DuckDB,
    types: Types,
    *,
    queries: Mapping[str, Query],
    taus: Mapping[str, int],
    allowed: Sequence[str] | None,
    validation: Validation,
) -> tuple[Sequence[Finding], Sequence[tuple[str, bool]], Mapping[str, Frame]]:
    """Return findings; or states, with whether they have housing, and the cubes of counts."""
    if faults := find_faults(database, types, allowed, validation):
        return faults, (), {}
    states = list(database.fetch(STATES).rows())
    locate_households(database)
    return (), states, count_cubes(database, queries, taus)
