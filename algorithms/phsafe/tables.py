"""The nine queries of the S-DHC as data: conditions on counted rows, cells, and population groups.

Conditions are SQL on a person ``p`` and a household ``h`` (a housing unit with its state). Source: Sexton et al., 2024,
section 2.4 and tables 1 to 8; cell codes are those of the production release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from algorithms.phsafe.schema import HOUSEHOLDER, OWN_CHILDREN, RELATIVES

__all__ = [
    "DERIVED",
    "ITERATIONS",
    "LEVELS",
    "LEVEL_OF",
    "NONPRIVATE",
    "PUBLISHED",
    "QUERIES",
    "TAU",
    "UNATTRIBUTED",
    "Query",
    "named",
    "split_level",
    "sql_in",
]

ITERATIONS: Mapping[str, tuple[str, ...]] = {"*": ("*",), "A-G": tuple("ABCDEFG"), "H,I": ("H", "I")}
LEVELS = tuple(f"{region}_{iterations}" for region in ("usa", "state") for iterations in ("*", "A-G", "H,I"))
UNATTRIBUTED = ("usa_*", "state_*")


@dataclass(frozen=True)
class Query:
    """One noisy query: it counts `persons` that meet a condition, applied before truncation, or households if None.

    `cells` has the code and the condition of each basis cell; a row belongs to the first cell whose condition holds.
    `race` selects the householder or the person, whose race and ethnicity define the population groups. `totals` are
    sums of basis cells, not measured. `weight` is the column that is added up; None counts rows.
    """

    name: str
    cells: Mapping[str, str]
    persons: str | None = None
    units: str = "true"
    race: Literal["householder", "person"] | None = "householder"
    totals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weight: str | None = None

    @property
    def truncated(self) -> bool:
        """Whether the query counts persons, at most tau of a household."""
        return self.persons is not None

    @property
    def levels(self) -> tuple[str, ...]:
        """Population group levels of the query."""
        return UNATTRIBUTED if self.race is None else LEVELS

    def stability(self, tau: int | None) -> int:
        """Return the noise's stability factor: 2 tau + 2 for persons, 2 for households, which have no tau (lemma 6)."""
        return 2 if tau is None else 2 * tau + 2


def named(tables: str | Sequence[str], known: Iterable[str]) -> list[str]:
    """Return the names of the requested tables; ``"all"`` means every known table."""
    known = list(known)
    names = known if tables == "all" else [tables] if isinstance(tables, str) else list(tables)
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"tables must be among {', '.join(known)}, got {unknown[0]!r}")
    return names


def split_level(level: str) -> tuple[str, tuple[str, ...]]:
    """Return the type of region of a level, ``"usa"`` or ``"state"``, and its iterations."""
    region, iterations = level.split("_")
    return region, ITERATIONS[iterations]


LEVEL_OF = {
    (region.upper(), code): f"{region}_{iterations}"
    for region in ("usa", "state")
    for iterations, codes in {**ITERATIONS, "*": ("*", "")}.items()
    for code in codes
}
"""Level by type of region and iteration code as in files; an empty code also means the total population."""


def sql_in(column: str, codes: Sequence[str]) -> str:
    """Return the SQL condition that a column has one of some codes."""
    return f"{column} in ({', '.join(repr(code) for code in codes)})"


CHILD = "p.QAGE < 18"
IN_HOUSEHOLD = "p.RTYPE = '3'"
OWN_CHILD = sql_in("p.RELSHIP", OWN_CHILDREN)
IN_FAMILY = sql_in("p.RELSHIP", (HOUSEHOLDER, "21", "23", *RELATIVES))
OCCUPIED = "h.RTYPE = '2' and h.HHT <> '0'"
BY_AGE = {"2": CHILD, "3": "true"}
AGES = ("p.QAGE < 4", "p.QAGE < 6", "p.QAGE < 12", "true")
WITH_CHILDREN = {"01": 3, "03": 8, "10": 13, "06": 18}  # household type: its first cell in PH6, children under 4

QUERIES: Mapping[str, Query] = {
    query.name: query
    for query in (
        Query("PH1_num", BY_AGE, persons=IN_HOUSEHOLD, totals={"1": ("2", "3")}),
        Query("PH1_denom", {"1": "true"}, units=OCCUPIED),
        Query(
            "PH2",
            {
                "3": "h.HHT2 in ('01', '02') and h.CPLT = '1'",
                "4": "h.HHT2 in ('01', '02') and h.CPLT = '2'",
                "6": "h.HHT2 in ('03', '04') and h.CPLT = '3'",
                "7": "h.HHT2 in ('03', '04') and h.CPLT = '4'",
                "9": "h.HHT2 = '09'",
                "10": "h.HHT2 in ('10', '11', '12')",
                "12": "h.HHT2 = '05'",
                "13": "h.HHT2 in ('06', '07', '08')",
            },
            persons=IN_HOUSEHOLD,
            race=None,
            totals={
                "1": ("3", "4", "6", "7", "9", "10", "12", "13"),
                "2": ("3", "4"),
                "5": ("6", "7"),
                "8": ("9", "10"),
                "11": ("12", "13"),
            },
        ),
        Query(
            "PH3",
            {
                "2": "p.RELSHIP in ('20', '21', '22', '23', '24', '34', '35', '36')",
                "4": f"{OWN_CHILD} and h.HHT2 = '01'",
                "5": f"{OWN_CHILD} and h.HHT2 = '03'",
                "6": f"{OWN_CHILD} and h.HHT2 = '10'",
                "7": f"{OWN_CHILD} and h.HHT2 = '06'",
                "9": "p.RELSHIP = '30'",
                "10": "p.RELSHIP in ('28', '29', '31', '32', '33')",
            },
            persons=f"{IN_HOUSEHOLD} and {CHILD}",
            race="person",
            totals={"1": ("2", "4", "5", "6", "7", "9", "10"), "3": ("4", "5", "6", "7"), "8": ("9", "10")},
        ),
        Query("PH4", BY_AGE, persons=IN_FAMILY, units="h.HHT <= '3'", totals={"1": ("2", "3")}),
        Query("PH5_denom", {"1": "true"}, units="h.HHT in ('1', '2', '3')"),
        Query(
            "PH6",
            {
                str(first + band): f"h.HHT2 = '{household}' and {ages}"
                for household, first in WITH_CHILDREN.items()
                for band, ages in enumerate(AGES)
            },
            persons=f"{CHILD} and {OWN_CHILD}",
            race=None,
            totals={
                "1": tuple(str(first + band) for first in WITH_CHILDREN.values() for band in range(len(AGES))),
                **{
                    str(first - 1): tuple(str(first + band) for band in range(len(AGES)))
                    for first in WITH_CHILDREN.values()
                },
            },
        ),
        Query(
            "PH7",
            {"2": "h.TEN = '1'", "3": "h.TEN = '2'", "4": "h.TEN in ('3', '4')"},
            persons=IN_HOUSEHOLD,
            totals={"1": ("2", "3", "4")},
        ),
        Query(
            "PH8_denom",
            {"2": "h.TEN in ('1', '2')", "3": "h.TEN in ('3', '4')"},
            units=OCCUPIED,
            totals={"1": ("2", "3")},
        ),
    )
}

NONPRIVATE: Mapping[str, Query] = {
    **QUERIES,
    "PH1_num": replace(QUERIES["PH1_num"], units=OCCUPIED),
    "PH1_denom": replace(QUERIES["PH1_denom"], totals={"2": ("1",), "3": ("1",)}),
    "PH5_denom": replace(QUERIES["PH5_denom"], totals={"2": ("1",), "3": ("1",)}),
    "PH5_num": replace(QUERIES["PH4"], name="PH5_num"),
    "PH8_num": replace(QUERIES["PH8_denom"], name="PH8_num", weight="h.FINAL_POP"),
}
"""The eleven tables as the production code counts them without noise, with totals and subtotals."""

DERIVED: Mapping[str, tuple[str, Mapping[str, tuple[str, ...]]]] = {
    "PH5_num": ("PH4", {"2": ("2",), "3": ("3",)}),
    "PH8_num": ("PH7", {"2": ("2", "3"), "3": ("4",)}),
}
"""Numerators that are not measured: the noisy table that each is derived from, and the cells that are added up."""

PUBLISHED = (
    *("PH1_num", "PH1_denom", "PH2", "PH3", "PH4", "PH5_num", "PH5_denom"),
    *("PH6", "PH7", "PH8_num", "PH8_denom"),
)
"""The eleven tables of a release, in the production order."""

TAU: Mapping[str, int] = {"PH1_num": 10, "PH2": 10, "PH3": 6, "PH4": 10, "PH6": 6, "PH7": 10}
"""Truncation thresholds of the 2020 Census (table 10 of the paper)."""
