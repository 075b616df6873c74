"""Columns of a release, and meanings of the production codes of cells, regions and groups."""

from __future__ import annotations

from collections.abc import Mapping

from algorithms.phsafe.tables import WITH_CHILDREN
from algorithms.release.engine import TableColumn
from algorithms.release.frames import Frame

__all__ = ["GROUPS", "TITLES", "columns_of"]

GROUPS = {
    "*": "all",
    **{"A": "White", "B": "Black", "C": "American Indian or Alaska Native", "D": "Asian"},
    **{"E": "Native Hawaiian or Pacific Islander", "F": "some other race", "G": "two or more races"},
    **{"H": "Hispanic", "I": "White, not Hispanic"},
}
TITLES: Mapping[str, str] = {  # titles of the noisy tables, and of tables after post-processing
    **{"PH1_num": "persons in households by age", "PH1_denom": "households", "PH1": "average household size by age"},
    "PH2": "persons in households by type of household",
    "PH3": "persons under 18 in households by relationship and type of household",
    "PH4": "persons in families by age",
    **{"PH5_num": "persons in families by age", "PH5_denom": "families", "PH5": "average family size by age"},
    "PH6": "own children under 18 by type of family and age",
    "PH7": "persons in households by tenure",
    **{"PH8_num": "persons in households by tenure", "PH8_denom": "households by tenure"},
    "PH8": "average household size by tenure",
}
BY_AGE = {"1": "all", "2": "under 18 years", "3": "18 years and over"}
AGES = ("under 4 years", "4 and 5 years", "6 to 11 years", "12 to 17 years")
COUPLE, COHABITING = "married couple", "cohabiting couple"
MALE, FEMALE = (f"{sex} householder without partner" for sex in ("male", "female"))
WHOSE = dict(zip(WITH_CHILDREN.values(), (COUPLE, COHABITING, MALE, FEMALE), strict=True))  # by first cell in PH6
CELLS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("PH1", "PH4", "PH5"), BY_AGE),
    "PH2": {
        **{"1": "all", "2": COUPLE, "3": "opposite-sex married couple", "4": "same-sex married couple"},
        **{"5": COHABITING, "6": "opposite-sex cohabiting couple", "7": "same-sex cohabiting couple"},
        **{"8": MALE, "9": "man living alone", "10": f"{MALE}, with others"},
        **{"11": FEMALE, "12": "woman living alone", "13": f"{FEMALE}, with others"},
    },
    "PH3": {
        **{"1": "all", "2": "householder, spouse, partner or nonrelative", "3": "own child of the householder"},
        **{str(cell): f"own child, {household}" for cell, household in enumerate(WHOSE.values(), 4)},
        **{"8": "other relative", "9": "grandchild", "10": "relative who is neither own child nor grandchild"},
    },
    "PH6": {
        "1": "all",
        **{str(first - 1): household for first, household in WHOSE.items()},
        **{str(first + band): f"{home}, {ages}" for first, home in WHOSE.items() for band, ages in enumerate(AGES)},
    },
    "PH7": {"1": "all", "2": "owned with a mortgage", "3": "owned free and clear", "4": "rented, or without rent"},
    "PH8": {"1": "all", "2": "owned", "3": "rented, or without rent"},
}
UNITS = {"PH5_denom": "families", "PH5": "persons a family", **dict.fromkeys(("PH1", "PH8"), "persons a household")}

LARGE = "holds the true average in 90% of releases where the group is large beside the noise"


def columns_of(name: str, table: Frame, coverage: str | None = None) -> list[TableColumn]:
    """Describe the columns of a noisy or a published table; `coverage` is a text on the intervals of its counts."""
    cell, words = f"{name}_DATA_CELL", CELLS[name.split("_")[0]]
    unit = UNITS.get(name, "households" if name.endswith("denom") else "persons")
    columns = (
        TableColumn("REGION_ID", "1 for the nation, or the FIPS code of a state"),
        TableColumn("REGION_TYPE", "kind of region", codes=("USA", "STATE")),
        TableColumn("ITERATION_CODE", "population group", codes=[f"{code} = {GROUPS[code]}" for code in GROUPS]),
        TableColumn(cell, "cell", codes=[f"{code} = {words[code]}" for code in dict.fromkeys(table[cell])]),
        TableColumn("COUNT", f"{TITLES[name]}: count, with noise", unit, noisy=True),
        TableColumn("NOISE_DISTRIBUTION", "law of the noise"),
        TableColumn("VARIANCE", "variance of the noise", f"{unit} squared"),
        TableColumn("ESTIMATE", f"{TITLES[name]}: estimate after post-processing", unit, noisy=True),
        *(
            TableColumn(end.upper(), f"{end} end of the 90% interval, which {coverage or LARGE}", unit, noisy=True)
            for end in ("lower", "upper")
        ),
    )
    return [column for column in columns if column.name in table.columns]
