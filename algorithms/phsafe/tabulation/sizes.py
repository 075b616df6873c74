"""How many persons of each household a query counts before truncation: what a threshold leaves out. Not private."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from algorithms.phsafe.budget import Settings, read_config
from algorithms.phsafe.tables import QUERIES
from algorithms.phsafe.tabulation.cubes import locate_households
from algorithms.phsafe.tabulation.validate import check_report, read_frames
from algorithms.tables.duck import DuckDB

__all__ = ["Sizes", "household_sizes"]

Sizes = Mapping[str, Mapping[int, int]]
"""By query about persons: how many households have how many of them."""


def household_sizes(persons: Any, units: Any, geo: Any, config: Settings = "us") -> Sizes:
    """Count households by how many of their persons each query counts, without truncation."""
    allowed = read_config(config).state_filter
    with closing(DuckDB([persons, units, geo])) as database:
        check_report(read_frames(database, (persons, units, geo), allowed, "full"))
        locate_households(database)
        found = {}
        for name, query in QUERIES.items():
            if query.truncated:
                rows = database.fetch(f"""
                    select PEOPLE, count(*) as HOMES
                    from (select MAFID, count(*) as PEOPLE from persons p where {query.persons} group by MAFID) counted
                    join joinable h on h.MAFID = counted.MAFID where {query.units} group by PEOPLE order by PEOPLE""")
                found[name] = {int(people): int(homes) for people, homes in rows.rows()}
        return found
