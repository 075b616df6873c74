"""One small cube of counts a query: SQL truncates, joins, maps and counts; numpy adds up the cube to its levels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from algorithms.phsafe.schema import PERSONS, Whole
from algorithms.phsafe.tables import Query, split_level
from algorithms.release.duck import DuckDB
from algorithms.release.frames import Frame

__all__ = ["count_cubes", "kept_query", "levels_of", "locate_households", "truncation_query", "universes"]

MAJOR, MINOR = tuple("ABCDEFG"), ("H", "I")
COLUMNS = ", ".join(PERSONS)
HASHES = ", ".join(
    f"sha256({f'bin({column})' if isinstance(domain, Whole) else column})"
    for column, domain in {**PERSONS, "DUPLICATE_INDEX": Whole(1, 10**9)}.items()
)

HOUSEHOLDS = """
    select u.RTYPE, u.MAFID, u.FINAL_POP, u.TEN, u.HHT, u.HHT2, u.CPLT, u.HHRACE, u.HHSPAN, g.TABBLKST as STATE
    from units u join geo g on g.MAFID = u.MAFID where g.RTYPE not in ('4', '5') and g.TABBLKST is not null"""


def locate_households(database: DuckDB) -> None:
    """Make the view ``households``, and ``joinable`` without rows that share a ``MAFID`` (algorithm 3)."""
    database.keep("households", HOUSEHOLDS)
    database.keep("repeated", "select MAFID from households group by MAFID having count(*) > 1")
    alone = "not exists (select 1 from repeated r where r.MAFID = h.MAFID)"
    database.view("joinable", f"select * from households h where {alone}")


def universes(
    queries: Mapping[str, Query], taus: Mapping[str, int]
) -> dict[tuple[str | None, int | None], dict[str, Query]]:
    """Group queries that count the same rows, by condition on persons and threshold (both None for households)."""
    groups: dict[tuple[str | None, int | None], dict[str, Query]] = {}
    for name, query in queries.items():
        groups.setdefault((query.persons, taus.get(name)), {})[name] = query
    return groups


def truncation_query(condition: str, tau: int) -> str:
    """Return the query that ranks the persons of every household with more than `tau` of them, by a hash.

    So no attribute determines who is kept, and the same rows always give the same choice. Exact repeats within a
    household are numbered from 1. Each of the six columns and that number is hashed (SHA-256, whole numbers as their
    binary digits), the digests in hexadecimal are joined by commas, and the text is hashed twice more.
    """
    return f"""
        select {COLUMNS}, DUPLICATE_INDEX, SORT_KEY, RANK from ({_ranked([(condition, tau)], "persons")}) r
        where SIZE > TAU"""


def kept_query(condition: str, tau: int | None) -> str:
    """Return the query for the persons of a universe, at most `tau` of a household; with None, for all."""
    if tau is None:
        return f"select {COLUMNS} from persons p where {condition}"
    return f"select {COLUMNS} from ({_ranked([(condition, tau)], 'persons')}) r where RANK <= TAU"


def _ranked(truncated: Sequence[tuple[str, int]], persons: str) -> str:
    """Return the query for the persons of every universe, hashed (which is slow) only in households above tau."""
    inside = " ".join(f"when {place} then {condition}" for place, (condition, _) in enumerate(truncated))
    taus = ", ".join(f"({place}, {tau})" for place, (_, tau) in enumerate(truncated))
    return f"""
        select *, row_number() over (partition by UNIVERSE, MAFID order by SORT_KEY, {COLUMNS}) as RANK from (
            select *, case when SIZE > TAU then sha256(sha256(concat_ws(',', {HASHES}))) end as SORT_KEY from (
                select {COLUMNS}, UNIVERSE, TAU, count(*) over (partition by UNIVERSE, MAFID) as SIZE,
                    row_number() over (partition by UNIVERSE, {COLUMNS} order by MAFID) as DUPLICATE_INDEX
                from {persons} p cross join (values {taus}) as t(UNIVERSE, TAU)
                where case UNIVERSE {inside} end) numbered) hashed"""


def count_cubes(database: DuckDB, queries: Mapping[str, Query], taus: Mapping[str, int]) -> dict[str, Frame]:
    """Count every query's basis cells by state, race and ethnicity, all in one fetch.

    Columns are REGION, MAJOR ("A" to "G"), MINOR ("H", "I"), CELL (its index) and COUNT. Rows in no cell are left out.
    Rows with an empty MAJOR or MINOR are in no iteration of that level.
    """
    numbers = {name: number for number, name in enumerate(queries)}
    groups = universes(queries, taus)
    truncated = [(condition, tau) for condition, tau in groups if condition is not None and tau is not None]
    households: dict[int, tuple[str, Query]] = {}
    persons: dict[int, tuple[str, Query]] = {}
    for (condition, tau), group in groups.items():
        inside = condition or "true"
        if condition is not None and tau is not None:
            inside = f"(UNIVERSE = {truncated.index((condition, tau))} or UNIVERSE < 0 and {condition})"
        (households if condition is None else persons).update(
            {numbers[n]: (inside, query) for n, query in group.items()}
        )
    rows = "persons"
    if truncated:  # households up to the smallest tau need no ranking in any universe
        least = min(tau for _, tau in truncated)
        database.keep("crowded", f"select MAFID from persons group by MAFID having count(*) > {least}")
        crowd = "exists (select 1 from crowded c where c.MAFID = p.MAFID)"
        ranked = _ranked(truncated, f"(select * from persons p where {crowd})")
        within = f"select {COLUMNS}, UNIVERSE from ({ranked}) r where RANK <= TAU"
        rows = f"(select {COLUMNS}, -1 as UNIVERSE from persons p where not {crowd} union all {within})"
    parts = [
        *([_collapsed(f"{rows} p join joinable h on h.MAFID = p.MAFID", persons)] if persons else []),
        *([_collapsed("households h", households)] if households else []),
    ]
    frame = database.fetch(" union all ".join(parts))
    return {name: frame.where(frame["QUERY"] == number) for name, number in numbers.items()}


def _collapsed(source: str, queries: Mapping[int, tuple[str, Query]]) -> str:
    """Return the SQL that counts rows by the cells of all queries at once, then adds up these groups for each query."""
    races = {"householder": ("h.HHRACE", "h.HHSPAN"), "person": ("p.CENRACE", "p.CENHISP")}
    groups, counts = {"REGION": "h.STATE"}, {"ROWS": "count(*)"}
    columns: dict[str, dict[int, str]] = {"MAJOR": {}, "MINOR": {}, "CELL": {}, "COUNT": {}}
    for number, (inside, query) in queries.items():
        cells = " ".join(f"when {condition} then {place}" for place, condition in enumerate(query.cells.values()))
        groups[f"CELL_{number}"] = f"case when {inside} and {query.units} then case {cells} end end"
        if query.race is not None:
            race, ethnicity = races[query.race]
            groups |= {f"{query.race}_MAJOR": _major(race), f"{query.race}_MINOR": _minor(race, ethnicity)}
        if query.weight is not None:
            counts[f"WEIGHT_{number}"] = f"cast(sum({query.weight}) as bigint)"
        for level in ("MAJOR", "MINOR"):
            columns[level][number] = "''" if query.race is None else f"{query.race}_{level}"
        columns["CELL"][number] = f"CELL_{number}"
        columns["COUNT"][number] = "ROWS" if query.weight is None else f"WEIGHT_{number}"
    inner = ", ".join(f"{sql} as {name}" for name, sql in {**groups, **counts}.items())
    places = ", ".join(map(str, range(1, len(groups) + 1)))
    numbers = ", ".join(f"({number})" for number in queries)
    outer = ", ".join(
        f"case QUERY {' '.join(f'when {number} then {sql}' for number, sql in values.items())} end as {name}"
        for name, values in columns.items()
    )
    return f"""
        select QUERY, cast(REGION as string) as REGION, MAJOR, MINOR, CELL, cast(sum(COUNT) as bigint) as COUNT from (
            select QUERY, REGION, {outer} from (select {inner} from {source} group by {places}) c
            cross join (values {numbers}) as q(QUERY)) d
        where CELL is not null group by 1, 2, 3, 4, 5"""


def _major(race: str) -> str:
    alone = " ".join(f"when {race} = '{code:02}' then '{letter}'" for code, letter in enumerate(MAJOR[:-1], start=1))
    return f"case {alone} when {race} between '07' and '63' then 'G' else '' end"


def _minor(race: str, ethnicity: str) -> str:
    return f"case when {ethnicity} = 2 then 'H' when {ethnicity} = 1 and {race} = '01' then 'I' else '' end"


def levels_of(query: Query, cubes: Iterable[Frame], states: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """Add up the cubes of disjoint parts; return counts by level, shape (1 or states, iterations, cells)."""
    regions = {state: i for i, state in enumerate(states)}
    majors, minors = ({code: i for i, code in enumerate((*codes, ""))} for codes in (MAJOR, MINOR))
    cube = np.zeros((len(regions), len(majors), len(minors), len(query.cells)), np.int64)
    for frame in cubes:
        for _, region, major, minor, cell, count in frame.rows():
            cube[regions[region], majors[major], minors[minor], cell] += count
    by_iterations = {
        "*": cube.sum(axis=(1, 2))[:, None],
        "A-G": cube.sum(axis=2)[:, :-1],
        "H,I": cube.sum(axis=1)[:, :-1],
    }
    levels = {}
    for level in query.levels:
        region, _ = split_level(level)
        counts = by_iterations[level.split("_")[1]]
        levels[level] = counts.sum(axis=0, keepdims=True) if region == "usa" else counts
    return levels
