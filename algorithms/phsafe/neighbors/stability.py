"""Exact change of every query between two databases, both counted by the SQL of a release.

A Gaussian query with budget rho and noise scaled to Delta really spends ``rho * L2**2 / Delta**2`` on a pair of
databases whose counts are ``L2`` apart (Sexton et al., 2024, lemma 3): the loss of a given pair needs no simulation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from algorithms.phsafe.budget import Settings, read_config
from algorithms.phsafe.schema import FRAMES, PERSONS
from algorithms.phsafe.tables import QUERIES, TAU, Query, named
from algorithms.phsafe.tabulation.cubes import count_cubes, kept_query, levels_of, locate_households, universes
from algorithms.phsafe.tabulation.intake import read_frame
from algorithms.release.duck import DuckDB
from algorithms.release.frames import Frame

__all__ = ["stability_change"]

Database = tuple[Any, Any, Any]
"""Persons, units and geo: paths, or frames."""

PERSON_COLUMNS = ", ".join(f"p.{column}" for column in PERSONS)
UNIT_COLUMNS = "h.RTYPE as UNIT_TYPE, h.FINAL_POP, h.TEN, h.HHT, h.HHT2, h.CPLT, h.HHRACE, h.HHSPAN, h.STATE"


def stability_change(
    x: Database, y: Database, *, tables: str | Sequence[str] = "all", config: Settings | None = None
) -> Frame:
    """Return the exact change of every query between two databases, each of persons, units and geo.

    `config`, which `read_config` reads, has the thresholds, and the levels: those with a budget. Default: thresholds of
    the 2020 Census, all levels.

    One row for each query and level: TABLE, LEVEL, L1, L2_SQUARED, LARGEST (of one cell), STABILITY (Delta, to which
    noise is scaled), SHARE (``L2_SQUARED / STABILITY**2``: the part of the level's rho that is spent) and ROWS: the
    number of rows of truncated and joined persons, or of households, that are in one database only. SHARE is exact for
    Gaussian noise, and for discrete Gaussian noise at production's scales. Under pure privacy a pair spends at most
    ``L1 / STABILITY`` of the epsilon. Lemma 6 bounds ROWS by 2 tau + 2, for any counts.
    """
    queries = {name: QUERIES[name] for name in named(tables, QUERIES)}
    settings = None if config is None else read_config(config)
    taus = settings.tau if settings else TAU
    rows: dict[str, int] = {}
    with closing(DuckDB([*x, *y])) as database:
        sides = [_cubes(database, frames, queries, taus, side) for side, frames in (("x", x), ("y", y))]
        for number, view in enumerate(universes(queries, taus).values()):
            rows |= dict.fromkeys(view, _rows_changed(database, number))
    states = sorted({str(state) for cubes in sides for cube in cubes.values() for state in cube["REGION"]})
    changes = []
    for name, query in queries.items():
        before, after = (levels_of(query, [cubes[name]], states) for cubes in sides)
        stability = query.stability(taus.get(name))
        for level in query.levels:
            if settings and not settings.budget(name, level):
                continue
            change = np.abs(after[level] - before[level])
            squared, largest = int((change**2).sum()), int(change.max(initial=0))
            share = squared / stability**2
            changes.append((name, level, int(change.sum()), squared, largest, stability, share, rows[name]))
    columns = ("TABLE", "LEVEL", "L1", "L2_SQUARED", "LARGEST", "STABILITY", "SHARE", "ROWS")
    return Frame.from_rows(columns, changes)


def _cubes(
    database: DuckDB, frames: Database, queries: Mapping[str, Query], taus: Mapping[str, int], side: str
) -> dict[str, Frame]:
    """Count one database, and keep the rows behind the counts."""
    for name, source in zip(FRAMES, frames, strict=True):
        read_frame(database, name, source, FRAMES[name])
    locate_households(database)
    for number, (condition, tau) in enumerate(universes(queries, taus)):
        rows, columns = "households h", f"h.MAFID, {UNIT_COLUMNS}"
        if condition is not None:
            rows = f"({kept_query(condition, tau)}) p join joinable h on h.MAFID = p.MAFID"
            columns = f"{PERSON_COLUMNS}, {UNIT_COLUMNS}"
        database.keep(f"rows_{number}_{side}", f"select {columns} from {rows}")
    return count_cubes(database, queries, taus)


def _rows_changed(database: DuckDB, view: int) -> int:
    """Return the size of the symmetric difference of the rows behind queries, as multisets."""
    x, y = (f"select * from rows_{view}_{side}" for side in "xy")
    both = f"select * from ({x} except all {y}) d union all select * from ({y} except all {x}) e"
    return int(database.fetch(f"select count(*) as N from ({both}) f")["N"][0])
