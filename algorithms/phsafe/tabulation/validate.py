"""Are the three frames what the tabulation takes them for? Every offending row is counted, before any table is made.

Three phases are the production code's: columns, values within their domains, and keys (no ``MAFID`` twice among units
or places, every person in a unit, units and places the same, no state outside the filter). A fourth is not: households
that contradict themselves, such as two householders, a household type its members do not have, or no tenure where
people live. The production code stops in the middle of a tabulation on some of these, and that depends on the data.

Privacy. What is found depends on confidential records and has no noise: it is for the curator, and is outside every
promise, as the paper says of the production's checks (section 6.1).
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from algorithms.phsafe.schema import FRAMES, GROUP_QUARTERS, PUERTO_RICO, Codes, Digits, Domain, Whole
from algorithms.phsafe.tabulation.derive import DERIVED_COLUMNS, household_columns, members
from algorithms.phsafe.tabulation.intake import read_frame, typed, unread
from algorithms.tables.engine import Engine

__all__ = ["Finding", "InvalidHouseholds", "Validation", "check_report", "read_frames"]

Validation = Literal["full", "production", "none"]

# Householder's sex, as the household type tells it: the production layout of persons has none.
STATED_SEX = "case when u.HHT2 >= '09' or (u.HHT2 < '05' and u.HHT in ('2', '4', '5')) then '1' else '2' end"


@dataclass(frozen=True)
class Finding:
    """One rule that rows break.

    Attributes
    ----------
    frame : str
        persons, units or geo.
    rule : str
        What must hold.
    rows : int
        How many rows break it.
    example : str
        A value that does.
    """

    frame: str
    rule: str
    rows: int
    example: str

    def __str__(self) -> str:
        number = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        return f"{self.frame}: {self.rule}; {number} broke it, such as {self.example}"


class InvalidHouseholds(ValueError):
    """Frames that break rules: every one of them is in `findings`, with the rows counted."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(map(str, findings)))


def check_report(findings: Iterable[Finding]) -> None:
    """Raise what was found, if anything, the same rule in several parts added up."""
    merged: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        same = merged.get((finding.frame, finding.rule))
        if same:
            finding = replace(finding, rows=finding.rows + same.rows, example=min(finding.example, same.example))
        merged[finding.frame, finding.rule] = finding
    if merged:
        raise InvalidHouseholds(list(merged.values()))


def read_frames(
    database: Engine,
    frames: Sequence[Any],
    states: Sequence[str] | None,
    validation: Validation,
    *,
    part: int = 0,
    parts: int = 1,
) -> list[Finding]:
    """Read persons, units and geo, or a part of them, and return the rules that they break."""
    types = {
        name: read_frame(database, name, source, FRAMES[name], part=part, parts=parts)
        for name, source in zip(FRAMES, frames, strict=True)
    }
    return _find_faults(database, types, states, validation)


def _find_faults(
    database: Engine, types: Mapping[str, Mapping[str, str]], states: Sequence[str] | None, validation: Validation
) -> list[Finding]:
    """Check the frames that a database holds; a phase is only begun when those before it found nothing."""
    if validation not in get_args(Validation):
        raise ValueError(f"validation must be one of {', '.join(get_args(Validation))}, got {validation!r}")
    if validation == "none":
        return []
    found = [fault for name in FRAMES for fault in _domains(database, name, types[name])]
    found = found or list(_keys(database, states))
    if found or validation == "production":
        return found
    return list(_consistency(database))


def _domains(database: Engine, name: str, types: Mapping[str, str]) -> Iterator[Finding]:
    """Count, in one pass over a frame, the values of every column that are outside its domain."""
    broken = {
        column: f"not coalesce({_inside(column, domain, types[column])}, false)"
        for column, domain in FRAMES[name].items()
    }
    tests = ", ".join(f"count(case when {test} then 1 end) as {column}" for column, test in broken.items())
    found = database.fetch(f"select {tests} from {unread(name)}")
    for column, domain in FRAMES[name].items():
        if rows := int(found[column][0]):
            value = f"coalesce(cast({column} as string), 'nothing')"
            least = database.fetch(f"select min({value}) as X from {unread(name)} where {broken[column]}")["X"][0]
            yield Finding(name, f"{column} must be {domain}", rows, reprlib.repr(str(least)))


def _inside(column: str, domain: Domain, kind: str) -> str:
    value = typed(column, domain, kind)
    match domain:
        case Codes(codes):
            return f"{value} in ({', '.join(repr(code) for code in codes)})"
        case Digits():
            return f"regexp_like({value}, '^[0-9]+$')"
        case Whole(least, most, without):
            gap = f" and {value} not in ({', '.join(map(str, without))})" if without else ""
            return f"{value} between {least} and {most}{gap}"


def _keys(database: Engine, states: Sequence[str] | None) -> Iterator[Finding]:
    for name in ("units", "geo"):
        twice = f"select MAFID from {name} group by MAFID having count(*) > 1"
        yield from _count(database, name, "no MAFID may stand twice", f"{name} r where MAFID in ({twice})")
    for name, other, rule in (
        ("persons", "units", "every MAFID must be that of a unit"),
        ("units", "geo", "every MAFID must be that of a place"),
        ("geo", "units", "every MAFID must be that of a unit"),
    ):
        yield from _count(database, name, rule, f"{name} r where MAFID not in (select MAFID from {other})")
    if states is None:
        island = f"TABBLKST = '{PUERTO_RICO}' and exists (select 1 from geo where TABBLKST <> '{PUERTO_RICO}')"
        yield from _count(database, "geo", "Puerto Rico must be by itself", f"geo r where {island}")
    else:
        allowed = ", ".join(repr(state) for state in states)
        rule = "every state must be in the filter"
        yield from _count(database, "geo", rule, f"geo r where TABBLKST not in ({allowed})", "TABBLKST")


def _consistency(database: Engine) -> Iterator[Finding]:
    """Hold every household against its members. Units that hold nobody have no members ``m``."""
    quarters = ", ".join(repr(code) for code in GROUP_QUARTERS)
    in_unit = "persons r join units u on u.MAFID = r.MAFID"
    yield from _count(
        database,
        "persons",
        "RTYPE must be 3 in a housing unit and 5 in group quarters",
        f"{in_unit} where (r.RTYPE = '3') <> (u.RTYPE = '2')",
    )
    yield from _count(
        database,
        "persons",
        f"RELSHIP must be {' or '.join(GROUP_QUARTERS)} in group quarters and only there",
        f"persons r where (r.RTYPE = '5') <> (r.RELSHIP in ({quarters}))",
        "r.RELSHIP",
    )
    yield from _count(
        database,
        "geo",
        "RTYPE must be 2 for housing units and only for them",
        "geo r join units u on u.MAFID = r.MAFID where (r.RTYPE = '2') <> (u.RTYPE = '2')",
    )
    database.view("household_members", members("persons", sex=False))
    columns = household_columns(STATED_SEX)
    derived = ", ".join(f"{sql} as D_{name}" for name, sql in columns.items() if name in DERIVED_COLUMNS)
    database.keep(
        "compared",
        f"select u.*, m.PEOPLE, m.HOUSEHOLDERS, m.PARTNERS, {derived} "
        "from units u left join household_members m on m.MAFID = u.MAFID",
    )
    housed = "r.RTYPE = '2' and coalesce(r.PEOPLE, 0) > 0"
    rules = [
        ("an occupied unit must have one householder", f"{housed} and r.HOUSEHOLDERS <> 1", "r.HOUSEHOLDERS"),
        ("at most one member may be the householder's spouse or partner", f"{housed} and r.PARTNERS > 1", "r.PARTNERS"),
        ("TEN must be 1 to 4 where people live", f"{housed} and r.TEN = '0'", "r.TEN"),
        ("TEN must be 0 where nobody lives, and in group quarters", f"not ({housed}) and r.TEN <> '0'", "r.TEN"),
        *(
            (f"{name} must be that of the members", f"{one_householder} and r.{name} <> r.D_{name}", f"r.{name}")
            for one_householder in (f"not ({housed} and r.HOUSEHOLDERS <> 1)",)
            for name in DERIVED_COLUMNS
        ),
    ]
    for rule, broken, value in rules:
        yield from _count(database, "units", rule, f"compared r where {broken}", value)


def _count(database: Engine, name: str, rule: str, rows: str, value: str = "r.MAFID") -> Iterator[Finding]:
    found = database.fetch(f"select count(*) as N, min(cast({value} as string)) as X from {rows}")
    if number := int(found["N"][0]):
        what = value.removeprefix("r.").replace("HOUSEHOLDERS", "householders").replace("PARTNERS", "partners")
        yield Finding(name, rule, number, f"{what} {found['X'][0]}")
