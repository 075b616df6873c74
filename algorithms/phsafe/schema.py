"""The three input frames: their columns, in the production order, and the allowed values of each column.

Codes are text with leading zeros, because the truncation order hashes this text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "FRAMES",
    "GEO",
    "GROUP_QUARTERS",
    "HOUSEHOLDER",
    "LARGEST_FAMILY",
    "MEANINGS",
    "OWN_CHILDREN",
    "PARTNERS",
    "PERSONS",
    "PUERTO_RICO",
    "RECODED",
    "RELATIVES",
    "SEX",
    "STATES",
    "UNDERIVED",
    "UNITS",
    "Codes",
    "Digits",
    "Domain",
    "Whole",
]


@dataclass(frozen=True)
class Codes:
    """Domain of a text column: one of these codes."""

    codes: tuple[str, ...]

    def __str__(self) -> str:
        few = len(self.codes) <= 4
        return ", ".join(self.codes) if few else f"{self.codes[0]} to {self.codes[-1]} ({len(self.codes)} codes)"


@dataclass(frozen=True)
class Whole:
    """Domain of a numeric column: whole numbers from `least` to `most`, except those in `without`."""

    least: int
    most: int
    without: tuple[int, ...] = ()

    def __str__(self) -> str:
        without = f", without {', '.join(map(str, self.without))}" if self.without else ""
        return f"a whole number of {self.least} to {self.most}{without}"


@dataclass(frozen=True)
class Digits:
    """Domain of a text column of digits, which no table reads."""

    def __str__(self) -> str:
        return "digits"


Domain = Codes | Whole | Digits


def _numbered(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"{code:02}" for code in range(first, last + 1))


PUERTO_RICO = "72"
STATES = tuple(code for code in _numbered(1, 56) if code not in {"03", "07", "14", "43", "52"})
"""FIPS codes of the fifty states and the District of Columbia."""

RACES = _numbered(1, 63)
MAFID = Whole(100_000_001, 899_999_999)

LARGEST_FAMILY = 97  # people

PERSONS: Mapping[str, Domain] = {
    "RTYPE": Codes(("3", "5")),  # in a housing unit, in group quarters
    "MAFID": MAFID,
    "QAGE": Whole(0, 115),
    "CENHISP": Whole(1, 2),  # not Hispanic, Hispanic
    "CENRACE": Codes(RACES),  # one race 01 to 06, two or more from 07 on
    "RELSHIP": Codes(_numbered(20, 38)),
}
UNITS: Mapping[str, Domain] = {
    "RTYPE": Codes(("2", "4")),  # housing unit, group quarters
    "MAFID": MAFID,
    "FINAL_POP": Whole(0, 99_999),
    "NPF": Whole(0, LARGEST_FAMILY, without=(1,)),  # people in the family
    "HHSPAN": Whole(0, 2),
    "HHRACE": Codes(("00", *RACES)),
    "TEN": Codes(tuple("01234")),
    "HHT": Codes(tuple("01234567")),
    "HHT2": Codes(_numbered(0, 12)),
    "CPLT": Codes(tuple("012345")),
}
GEO: Mapping[str, Domain] = {
    "RTYPE": Codes(tuple("2345")),  # 4 and 5, group quarters, are not tabulated
    "MAFID": MAFID,
    "TABBLKST": Codes((*STATES, PUERTO_RICO)),
    **dict.fromkeys(
        (*("TABBLKCOU", "TABTRACTCE", "TABBLK", "TABBLKGRPCE"), *("REGIONCE", "DIVISIONCE", "PLACEFP", "AIANNHCE")),
        Digits(),
    ),
}
FRAMES: Mapping[str, Mapping[str, Domain]] = {"persons": PERSONS, "units": UNITS, "geo": GEO}

SEX: Mapping[str, Domain] = {"QSEX": Codes(("1", "2"))}
"""Male, female: not in the production layout, but household types cannot be derived without it."""
RECODED: Mapping[str, Mapping[str, Domain]] = {**FRAMES, "persons": {**PERSONS, **SEX}}  # for recodes
UNDERIVED: Mapping[str, Mapping[str, Domain]] = {
    **RECODED,
    "units": {name: UNITS[name] for name in ("RTYPE", "MAFID", "TEN")},
}
"""Columns that are read if the units' other columns are derived from the persons."""

MEANINGS = {
    ("persons", "QSEX"): {"1": "male", "2": "female"},
    ("persons", "CENHISP"): {"1": "not Hispanic", "2": "Hispanic"},
    ("units", "TEN"): {"0": "vacant", "1": "owned, mortgage", "2": "owned", "3": "rented", "4": "no rent"},
}
"""Meanings of short codes; other offices may use other numbers."""
HOUSEHOLDER = "20"
OWN_CHILDREN = ("25", "26", "27")  # biological, adopted, step
RELATIVES = (*OWN_CHILDREN, "28", "29", "30", "31", "32", "33")
PARTNERS = ("21", "22", "23", "24")  # spouse and unmarried partner, of the opposite and of the same sex
GROUP_QUARTERS = ("37", "38")
