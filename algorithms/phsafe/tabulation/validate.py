"""Checks the three input frames before anything is counted, and counts every row that breaks a rule.

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
    rules = [
        (
            f"{column} must be {domain}",
            f"not coalesce({_inside(column, domain, types[column])}, false)",
            f"coalesce(cast({column} as string), 'nothing')",
        )
        for column, domain in FRAMES[name].items()
    ]
    return _tally(database, name, unread(name), rules)


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
    unit, place = "every MAFID must be that of a unit", "every MAFID must be that of a place"
    rules = [
        *(
            (
                name,
                "no MAFID may stand twice",
                f"MAFID in (select MAFID from {name} group by MAFID having count(*) > 1)",
            )
            for name in ("units", "geo")
        ),
        ("persons", unit, "MAFID not in (select MAFID from units)"),
        ("units", place, "MAFID not in (select MAFID from geo)"),
        ("geo", unit, "MAFID not in (select MAFID from units)"),
    ]
    if states is None:
        elsewhere = f"exists (select 1 from geo where TABBLKST <> '{PUERTO_RICO}')"
        rules.append(("geo", "Puerto Rico must be by itself", f"TABBLKST = '{PUERTO_RICO}' and {elsewhere}"))
    for name, rule, broken in rules:  # a subquery may only stand in a filter
        yield from _tally(database, name, f"(select * from {name} where {broken}) r", [(rule, "true", "MAFID")])
    if states is not None:
        outside = f"TABBLKST not in ({', '.join(repr(state) for state in states)})"
        yield from _tally(database, "geo", "geo", [("every state must be in the filter", outside, "TABBLKST")])


def _consistency(database: Engine) -> Iterator[Finding]:
    """Compare every household with its members. Units that hold nobody have no members ``m``."""
    quarters = ", ".join(repr(code) for code in GROUP_QUARTERS)
    housing = "RTYPE must be 3 in a housing unit and 5 in group quarters"
    alone = f"RELSHIP must be {' or '.join(GROUP_QUARTERS)} in group quarters and only there"
    rules = [
        (housing, "(r.RTYPE = '3') <> (u.RTYPE = '2')", "r.MAFID"),
        (alone, f"(r.RTYPE = '5') <> (r.RELSHIP in ({quarters}))", "r.RELSHIP"),
    ]
    yield from _tally(database, "persons", "persons r join units u on u.MAFID = r.MAFID", rules)
    rule = "RTYPE must be 2 for housing units and only for them"
    places = "geo r join units u on u.MAFID = r.MAFID"
    yield from _tally(database, "geo", places, [(rule, "(r.RTYPE = '2') <> (u.RTYPE = '2')", "r.MAFID")])
    database.view("household_members", members("persons", sex=False))
    columns = household_columns(STATED_SEX)
    derived = ", ".join(f"{sql} as D_{name}" for name, sql in columns.items() if name in DERIVED_COLUMNS)
    database.keep(
        "compared",
        f"select u.*, m.PEOPLE, m.HOUSEHOLDERS as householders, m.PARTNERS as partners, {derived} "
        "from units u left join household_members m on m.MAFID = u.MAFID",
    )
    housed = "RTYPE = '2' and coalesce(PEOPLE, 0) > 0"
    one_householder = f"not ({housed} and householders <> 1)"
    rules = [
        ("an occupied unit must have one householder", f"{housed} and householders <> 1", "householders"),
        ("at most one member may be the householder's spouse or partner", f"{housed} and partners > 1", "partners"),
        ("TEN must be 1 to 4 where people live", f"{housed} and TEN = '0'", "TEN"),
        ("TEN must be 0 where nobody lives, and in group quarters", f"not ({housed}) and TEN <> '0'", "TEN"),
        *(
            (f"{name} must be that of the members", f"{one_householder} and {name} <> D_{name}", name)
            for name in DERIVED_COLUMNS
        ),
    ]
    yield from _tally(database, "units", "compared", rules)


def _tally(database: Engine, name: str, rows: str, rules: Sequence[tuple[str, str, str]]) -> Iterator[Finding]:
    """Count, in one pass, the rows that break each rule, given as its words, SQL, and the value that is an example."""
    counts = ", ".join(f"count(case when {broken} then 1 end) as N{i}" for i, (_, broken, _) in enumerate(rules))
    found = database.fetch(f"select {counts} from {rows}")
    for i, (rule, broken, value) in enumerate(rules):
        if number := int(found[f"N{i}"][0]):
            least = database.fetch(f"select min(cast({value} as string)) as X from {rows} where {broken}")["X"][0]
            plain = value.removeprefix("r.").isidentifier()
            example = f"{value.removeprefix('r.')} {least}" if plain else reprlib.repr(str(least))
            yield Finding(name, rule, number, example)
