"""Small handwritten or generated households, as databases in the production layout.

A household is a list of members: all columns of its unit's row except the tenure are derived from them. So databases
are valid by construction (model VAL of `algorithms.phsafe.neighbors.pairs`). If a unit's row may be any function of the
members, or unrelated to them (models DER and API), the caller gives the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from algorithms.phsafe.schema import GEO, PERSONS, SEX, UNITS
from algorithms.phsafe.tables import IN_HOUSEHOLD
from algorithms.phsafe.tabulation.cubes import truncation_query
from algorithms.phsafe.tabulation.derive import derive_units
from algorithms.phsafe.tabulation.intake import read_frame
from algorithms.release.duck import DuckDB
from algorithms.release.frames import Frame

__all__ = [
    "FIRST_MAFID",
    "Household",
    "Order",
    "Person",
    "Unit",
    "database",
    "derived",
    "joined",
    "placed",
    "placements",
    "without",
]

FIRST_MAFID = 100_000_001
TRIED, AT_ONCE = 1_000, 100  # MAFIDs tried to find an order of truncation, and at a time

FrameDatabase = tuple[Frame, Frame, Frame]
Order = Sequence[tuple[str, int]]


class Person(NamedTuple):
    """One record. No table reads the sex (``"1"`` male, ``"2"`` female), but household types depend on it."""

    relship: str
    age: int = 40
    race: str = "02"
    hispanic: int = 2
    sex: str = "1"


class Unit(NamedTuple):
    """Columns of a unit's row that the tables read."""

    hht: str
    hht2: str
    cplt: str
    race: str = "02"
    hispanic: int = 2
    tenure: str = "1"


class Household(NamedTuple):
    """Members and where they live; `units` are rows that are given, not derived: none, one or several."""

    mafid: int
    members: tuple[Person, ...] = ()
    tenure: str = "1"
    state: str = "01"
    units: tuple[Unit, ...] = ()


def derived(households: Sequence[Household]) -> FrameDatabase:
    """Return households as a database whose unit rows are derived from the members; empty households are vacant."""
    rows = [("2", home.mafid, home.tenure if home.members else "0") for home in households]
    persons = _persons(households)
    return _layout(persons), derive_units(persons, Frame.from_rows(("RTYPE", "MAFID", "TEN"), rows)), _geo(households)


def database(households: Sequence[Household]) -> FrameDatabase:
    """Return households as a database with the given rows of units; it need not be valid."""
    rows = [
        ("2", home.mafid, 0, 0, unit.hispanic, unit.race, unit.tenure, unit.hht, unit.hht2, unit.cplt)
        for home in households
        for unit in home.units
    ]
    return _layout(_persons(households)), Frame.from_rows([*UNITS], rows), _geo(households)


def without(home: Household, person: Person) -> Household:
    """Return the household without one person equal to `person`."""
    place = home.members.index(person)
    return home._replace(members=home.members[:place] + home.members[place + 1 :])


def joined(home: Household, person: Person) -> Household:
    """Return the household with a person added."""
    return home._replace(members=(*home.members, person))


def placements(home: Household, tau: int, condition: str = IN_HOUSEHOLD) -> Iterator[tuple[Household, Order]]:
    """Yield a household under successive ``MAFID``, and its truncation order (empty up to `tau` members)."""
    order = f"({truncation_query(condition, tau)}) r order by MAFID, RANK"
    query = f"select MAFID, cast(RELSHIP as varchar) as RELSHIP, QAGE from {order}"  # an enum would need pandas
    for start in range(0, TRIED, AT_ONCE):
        homes = [home._replace(mafid=home.mafid + step) for step in range(start, start + AT_ONCE)]
        with closing(DuckDB()) as engine:
            read_frame(engine, "persons", _layout(_persons(homes)), PERSONS)
            rows = engine.fetch(query)
        orders: dict[int, list[tuple[str, int]]] = {place.mafid: [] for place in homes}
        for mafid, relship, age in rows.rows():
            orders[mafid].append((relship, age))
        yield from ((place, orders[place.mafid]) for place in homes)


def placed(home: Household, tau: int, accepts: Callable[[Order], bool], condition: str = IN_HOUSEHOLD) -> Household:
    """Return a household under the first ``MAFID`` whose truncation order is accepted."""
    for place, order in placements(home, tau, condition):
        if accepts(order):
            return place
    raise ValueError(f"one of {TRIED} MAFIDs must give the order that is wanted, got none")


def _persons(households: Sequence[Household]) -> Frame:
    rows = [
        ("3", home.mafid, person.age, person.hispanic, person.race, person.relship, person.sex)
        for home in households
        for person in home.members
    ]
    return Frame.from_rows((*PERSONS, *SEX), rows)


def _layout(persons: Frame) -> Frame:
    return Frame({name: persons[name] for name in PERSONS})


def _geo(households: Sequence[Household]) -> Frame:
    elsewhere = dict.fromkeys(GEO, "0") | {"RTYPE": "2"}
    places = (elsewhere | {"MAFID": home.mafid, "TABBLKST": home.state} for home in households)
    return Frame.from_rows([*GEO], [tuple(place.values()) for place in places])
