"""Household columns from the members: type, family size, race and ethnicity of the householder."""

from __future__ import annotations

from typing import Any

import numpy as np

from algorithms.phsafe.schema import HOUSEHOLDER, OWN_CHILDREN, PARTNERS, RELATIVES, UNDERIVED, UNITS
from algorithms.phsafe.tables import among
from algorithms.phsafe.tabulation.intake import Types, each_part
from algorithms.tables.duck import DuckDB
from algorithms.tables.frames import Frame
from algorithms.tables.opening import Engine, opened

__all__ = ["DERIVED_COLUMNS", "derive_units", "household_columns", "members"]

DERIVED_COLUMNS = ("FINAL_POP", "NPF", "HHSPAN", "HHRACE", "HHT", "HHT2", "CPLT")


def _number(condition: str) -> str:
    return f"count(case when {condition} then 1 end)"


def members(persons: str, *, sex: bool) -> str:
    """Return the query that describes the members of every unit, one row a ``MAFID``; without `sex` none is known."""
    householder = f"RELSHIP = '{HOUSEHOLDER}'"
    return f"""
        select MAFID, count(*) as PEOPLE, {_number(householder)} as HOUSEHOLDERS,
            max(case when {householder} then try_cast(cast(CENRACE as string) as int) end) as RACE,
            max(case when {householder} then CENHISP end) as HISPANIC,
            {f"max(case when {householder} then cast(QSEX as string) end)" if sex else "cast(null as string)"} as SEX,
            min(case when RELSHIP = '21' then 1 when RELSHIP = '23' then 2
                when RELSHIP = '22' then 3 when RELSHIP = '24' then 4 end) as COUPLE,
            {_number(among("RELSHIP", PARTNERS))} as PARTNERS,
            {_number(among("RELSHIP", (HOUSEHOLDER, "21", "23", *RELATIVES)))} as FAMILY,
            {_number(among("RELSHIP", RELATIVES))} as RELATIVES,
            {_number(f"{among('RELSHIP', OWN_CHILDREN)} and QAGE < 18")} as CHILDREN,
            {_number("RTYPE = '3'")} as IN_HOUSEHOLD
        from {persons} group by MAFID"""


def household_columns(sex: str) -> dict[str, str]:
    """Return the SQL of every derived column, over a unit ``u`` left-joined with its members ``m``."""
    occupied = "u.RTYPE = '2' and m.PEOPLE > 0"
    married, partnered = "m.COUPLE <= 2", "m.COUPLE is not null"
    alone, male = "m.PEOPLE = 1", f"{sex} = '1'"
    children = "m.CHILDREN > 0"
    by_company = f"case when {alone} then 0 when {children} then 1 when m.RELATIVES > 0 then 2 else 3 end"
    household = f"case when {male} then 9 else 5 end + {by_company}"
    return {
        "FINAL_POP": "coalesce(m.PEOPLE, 0)",
        "NPF": f"case when {occupied} and m.FAMILY > 1 then m.FAMILY else 0 end",
        "HHSPAN": f"case when {occupied} then m.HISPANIC else 0 end",
        "HHRACE": f"case when {occupied} then lpad(cast(m.RACE as string), 2, '0') else '00' end",
        "HHT": f"""case when not coalesce({occupied}, false) then '0' when {married} then '1'
            when m.RELATIVES > 0 then case when {male} then '2' else '3' end
            when {male} then case when {alone} then '4' else '5' end
            else case when {alone} then '6' else '7' end end""",
        "HHT2": f"""case when not coalesce({occupied}, false) then '00'
            when {partnered} then case when {married} and {children} then '01' when {married} then '02'
                when {children} then '03' else '04' end
            else lpad(cast({household} as string), 2, '0') end""",
        "CPLT": f"case when not coalesce({occupied}, false) then '0' else coalesce(cast(m.COUPLE as string), '5') end",
    }


def derive_units(persons: Any, units: Any, *, engine: str | Engine = "duckdb") -> Frame:
    """Derive household type, couple type, family size, population, race and ethnicity of every unit, by ``MAFID``.

    Persons need a column ``QSEX`` (``"1"`` male, ``"2"`` female), which the production layout lacks; units have
    ``RTYPE``, ``MAFID`` and ``TEN``. Where several partners are recorded, the spouse goes before the unmarried partner.
    Units without persons, and group quarters, get the codes for "not in universe".
    """
    with opened(engine, [persons, units]) as opened_engine:
        parts = list(each_part(opened_engine, {"persons": persons, "units": units}, UNDERIVED, _derive))
    for frame, column in (("persons", "QSEX"), ("units", "MAFID")):
        if rows := sum(unknown[column] for unknown, _ in parts):
            raise ValueError(f"{frame}: {column} must be {UNDERIVED[frame][column]}; {rows:,} rows broke it")
    derived = Frame.concatenate([part for _, part in parts])
    order = np.argsort(derived["MAFID"], kind="stable")
    return Frame({name: values[order] for name, values in derived.to_dict().items()})


def _derive(database: DuckDB, types: Types) -> tuple[dict[str, int], Frame]:
    """Return how many persons have no sex and units no number, and the units."""
    unknown = {
        column: int(database.fetch(f"select count(*) as N from {frame} where {column} is null")["N"][0])
        for frame, column in (("persons", "QSEX"), ("units", "MAFID"))
    }
    stated = {"RTYPE": "cast(u.RTYPE as string)", "MAFID": "u.MAFID", "TEN": "cast(u.TEN as string)"}
    columns = {**household_columns("m.SEX"), **stated}
    chosen = ", ".join(f"{columns[name]} as {name}" for name in UNITS)
    return unknown, database.fetch(
        f"with m as ({members('persons', sex=True)}) select {chosen} from units u left join m on m.MAFID = u.MAFID"
    )
