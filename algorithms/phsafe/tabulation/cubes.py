"""From persons and households to one small cube a query: truncate, join, map, count; then its levels in numpy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from algorithms.phsafe.schema import PERSONS, Whole
from algorithms.phsafe.tables import Query, split_level
from algorithms.tables.engine import Engine
from algorithms.tables.frames import Frame

__all__ = ["cube_query", "kept_query", "levels_of", "locate_households", "truncation_query", "universes"]

MAJOR, MINOR = tuple("ABCDEFG"), ("H", "I")
COLUMNS = ", ".join(PERSONS)
HASHES = ", ".join(
    f"sha2({f'bin({column})' if isinstance(domain, Whole) else column}, 256)"
    for column, domain in {**PERSONS, "DUPLICATE_INDEX": Whole(1, 10**9)}.items()
)

HOUSEHOLDS = """
    select u.RTYPE, u.MAFID, u.FINAL_POP, u.TEN, u.HHT, u.HHT2, u.CPLT, u.HHRACE, u.HHSPAN, g.TABBLKST as STATE
    from units u join geo g on g.MAFID = u.MAFID where g.RTYPE not in ('4', '5') and g.TABBLKST is not null"""
REPEATED = "select MAFID from households group by MAFID having count(*) > 1"
JOINABLE = "select * from households h where not exists (select 1 from repeated r where r.MAFID = h.MAFID)"


def locate_households(database: Engine) -> None:
    """Make ``households``, and ``joinable`` to which persons are joined.

    Households are housing units with their state, which is public. Two rows of one ``MAFID`` are both dropped before a
    join (algorithm 3), not counted twice.
    """
    database.keep("households", HOUSEHOLDS)
    database.keep("repeated", REPEATED)
    database.view("joinable", JOINABLE)


def universes(
    queries: Mapping[str, Query], taus: Mapping[str, int]
) -> dict[tuple[str | None, int | None], dict[str, Query]]:
    """Return which queries count the same rows: by condition on persons and threshold, both None for households."""
    found: dict[tuple[str | None, int | None], dict[str, Query]] = {}
    for name, query in queries.items():
        found.setdefault((query.persons, taus.get(name)), {})[name] = query
    return found


def truncation_query(condition: str, tau: int) -> str:
    """Return the query that ranks the persons of every household with more than `tau` of them.

    Persons are ordered by a hash, so that none of their attributes decides who stays. Exact repeats within a household
    are numbered from 1, each of the six columns and that number is hashed (SHA-256, whole numbers as their binary
    digits), the digests in hexadecimal are joined by commas, and the text is hashed twice more. It has no key: the same
    rows always give the same choice.
    """
    return f"{_ranking(condition, tau)} select * from ranked"


def kept_query(condition: str, tau: int | None) -> str:
    """Return the query of the persons of a universe, at most `tau` of a household; None keeps all.

    Only households with more than `tau` are ranked: hashing everybody would cost several times as much.
    """
    if tau is None:
        return f"select {COLUMNS} from persons p where {condition}"
    return f"""{_ranking(condition, tau)}
        select {COLUMNS} from universe u where not exists (select 1 from oversize o where o.MAFID = u.MAFID)
        union all select {COLUMNS} from ranked where RANK <= {tau}"""


def _ranking(condition: str, tau: int) -> str:
    return f"""
        with universe as (select * from persons p where {condition}),
        oversize as (select MAFID from universe group by MAFID having count(*) > {tau}),
        numbered as (
            select {COLUMNS}, row_number() over (partition by {COLUMNS} order by MAFID) as DUPLICATE_INDEX
            from universe where MAFID in (select MAFID from oversize)),
        hashed as (select *, sha2(sha2(concat_ws(',', {HASHES}), 256), 256) as SORT_KEY from numbered),
        ranked as (select *, row_number() over (partition by MAFID order by SORT_KEY, {COLUMNS}) as RANK from hashed)"""


def cube_query(query: Query, *, rows: str = "persons", by: str = "cast(h.STATE as string)") -> str:
    """Return the query that counts a table's basis cells by state (or another `by`), race and ethnicity.

    Its columns are REGION, MAJOR ("A" to "G"), MINOR ("H", "I"), CELL and COUNT. Rows in no cell are left out, and an
    empty MAJOR or MINOR is in no iteration of that level.
    """
    cells = " ".join(f"when {condition} then '{cell}'" for cell, condition in query.cells.items())
    race, ethnicity = {
        "householder": ("h.HHRACE", "h.HHSPAN"),
        "person": ("p.CENRACE", "p.CENHISP"),
        None: ("''", "0"),
    }[query.race]
    alone = " ".join(f"when {race} = '{code:02}' then '{letter}'" for code, letter in enumerate(MAJOR[:-1], start=1))
    source = f"{rows} p join joinable h on h.MAFID = p.MAFID" if query.truncated else "households h"
    counted = "count(*)" if query.weight is None else f"sum({query.weight})"
    return f"""
        select REGION, MAJOR, MINOR, CELL, cast(sum(PEOPLE) as bigint) as COUNT from (
            select {by} as REGION, case {alone} when {race} between '07' and '63' then 'G' else '' end as MAJOR,
                case when {ethnicity} = 2 then 'H' when {ethnicity} = 1 and {race} = '01' then 'I' else '' end as MINOR,
                case {cells} end as CELL, {counted} as PEOPLE
            from {source} where {query.units} group by 1, 2, 3, 4) cube
        where CELL is not null group by 1, 2, 3, 4"""


def levels_of(query: Query, cubes: Iterable[Frame], states: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """Add up the cubes of disjoint parts: counts by level, shape (regions, iterations, cells).

    There is one region at the national levels, and the states in their order at the others.
    """
    regions, cells = {state: i for i, state in enumerate(states)}, {cell: i for i, cell in enumerate(query.cells)}
    majors, minors = ({code: i for i, code in enumerate((*codes, ""))} for codes in (MAJOR, MINOR))
    cube = np.zeros((len(regions), len(majors), len(minors), len(cells)), np.int64)
    for frame in cubes:
        for region, major, minor, cell, count in frame.rows():
            cube[regions[region], majors[major], minors[minor], cells[cell]] += count
    by_iterations = {
        "*": cube.sum(axis=(1, 2))[:, None],
        "A-G": cube.sum(axis=2)[:, :-1],
        "H,I": cube.sum(axis=1)[:, :-1],
    }
    found = {}
    for level in query.levels:
        region, _ = split_level(level)
        counts = by_iterations[level.split("_")[1]]
        found[level] = counts.sum(axis=0, keepdims=True) if region == "usa" else counts
    return found
