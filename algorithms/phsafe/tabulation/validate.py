"""Checks of the three input frames before counting; for every broken rule, the rows that break it are counted.

Three phases are those of the production code: columns, values within their domains, and keys (unique ``MAFID`` in units
and in places, every person in a unit, the same ``MAFID`` in units and places, no state outside the filter). The fourth
finds contradictory households, such as two householders, a household type that the members do not have, or no tenure in
an occupied unit. For some of these, the production code stops in the middle of a tabulation, depending on the data.

Privacy. Findings depend on confidential records and have no noise: they are for the curator only, and no promise covers
them, as the paper says of production's checks (section 6.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from algorithms.phsafe.schema import FRAMES, GROUP_QUARTERS, PUERTO_RICO
from algorithms.phsafe.tables import sql_in
from algorithms.phsafe.tabulation.derive import DERIVED_COLUMNS, household_columns, members
from algorithms.phsafe.tabulation.intake import Types
from algorithms.phsafe.tabulation.rules import Finding, Rule, domains, tally
from algorithms.release.duck import DuckDB

__all__ = ["Validation", "find_faults"]

Validation = Literal["full", "production", "none"]

# Householder's sex, inferred from the household type: the production layout of persons has no such column.
STATED_SEX = "case when u.HHT2 >= '09' or (u.HHT2 < '05' and u.HHT in ('2', '4', '5')) then '1' else '2' end"


def find_faults(database: DuckDB, types: Types, states: Sequence[str] | None, validation: Validation) -> list[Finding]:
    """Check the frames in a database; a phase runs only if the phases before it found nothing."""
    if validation not in get_args(Validation):
        raise ValueError(f"validation must be one of {', '.join(get_args(Validation))}, got {validation!r}")
    findings: list[Finding] = []
    if validation != "none":
        findings = [fault for name in FRAMES for fault in tally(database, domains(name, FRAMES[name], types[name]))]
        findings = findings or tally(database, _keys(states))
    if findings:
        return findings
    return tally(database, _consistency(database)) if validation == "full" else []


def _keys(states: Sequence[str] | None) -> list[Rule]:
    unit, place = (f"every MAFID must be that of a {kind}" for kind in ("unit", "place"))
    once = "no MAFID may stand twice"
    marks = ("PEOPLE", "UNITS", "PLACES")
    rows = " union all ".join(
        f"select MAFID, {', '.join(f'{int(mark == own)} as {mark}' for mark in marks)} from {name}"
        for name, own in zip(FRAMES, marks, strict=True)
    )
    sums = ", ".join(f"sum({mark}) as {mark}" for mark in marks)
    keys = f"(select MAFID, {sums} from ({rows}) r group by MAFID) k"
    rules = [
        Rule("units", once, keys, "UNITS > 1", "MAFID", "UNITS"),
        Rule("geo", once, keys, "PLACES > 1", "MAFID", "PLACES"),
        Rule("persons", unit, keys, "PEOPLE > 0 and UNITS = 0", "MAFID", "PEOPLE"),
        Rule("units", place, keys, "UNITS > 0 and PLACES = 0", "MAFID", "UNITS"),
        Rule("geo", unit, keys, "PLACES > 0 and UNITS = 0", "MAFID", "PLACES"),
    ]
    if states is None:
        island, elsewhere = (f"geo where TABBLKST {sign} '{PUERTO_RICO}'" for sign in ("=", "<>"))
        rows = f"(select * from {island} and exists (select 1 from {elsewhere})) r"  # subqueries work only in a filter
        return [*rules, Rule("geo", "Puerto Rico must be by itself", rows, "true", "MAFID")]
    outside = f"not {sql_in('TABBLKST', states)}"
    return [*rules, Rule("geo", "every state must be in the filter", "geo", outside, "TABBLKST")]


def _consistency(database: DuckDB) -> list[Rule]:
    """Compare every household with its place and members; ``PEOPLE`` is null in an empty unit."""
    alone = f"RELSHIP must be {' or '.join(GROUP_QUARTERS)} in group quarters and only there"
    columns = household_columns(STATED_SEX)
    derived = ", ".join(f"{columns[name]} as D_{name}" for name in DERIVED_COLUMNS)
    elsewhere = "case when u.RTYPE = '2' then m.PEOPLE - m.IN_HOUSEHOLD else m.IN_HOUSEHOLD end as elsewhere"
    database.view("household_members", members("persons", sex=False))
    database.keep(
        "compared",
        f"""select u.*, m.PEOPLE, m.HOUSEHOLDERS as householders, m.PARTNERS as partners, {elsewhere}, {derived},
            g.RTYPE as PLACE
        from units u left join household_members m on m.MAFID = u.MAFID join geo g on g.MAFID = u.MAFID""",
    )
    housed = "RTYPE = '2' and coalesce(PEOPLE, 0) > 0"
    one_householder = f"not ({housed} and householders <> 1)"
    rules = (
        ("an occupied unit must have one householder", f"{housed} and householders <> 1", "householders"),
        ("at most one member may be the householder's spouse or partner", f"{housed} and partners > 1", "partners"),
        ("TEN must be 1 to 4 where people live", f"{housed} and TEN = '0'", "TEN"),
        ("TEN must be 0 where nobody lives, and in group quarters", f"not ({housed}) and TEN <> '0'", "TEN"),
        *(
            (f"{name} must be that of the members", f"{one_householder} and {name} <> D_{name}", name)
            for name in DERIVED_COLUMNS
        ),
    )
    housing, units = "RTYPE must be 3 in a housing unit and 5 in group quarters", "(PLACE = '2') <> (RTYPE = '2')"
    return [
        Rule("persons", housing, "compared", "elsewhere > 0", "MAFID", "elsewhere"),
        Rule("persons", alone, "persons", f"(RTYPE = '5') <> ({sql_in('RELSHIP', GROUP_QUARTERS)})", "RELSHIP"),
        Rule("geo", "RTYPE must be 2 for housing units and only for them", "compared", units, "MAFID"),
        *(Rule("units", words, "compared", broken, value) for words, broken, value in rules),
    ]
