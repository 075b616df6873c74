"""Household columns derived from the members: type, family size, race and ethnicity of the householder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from algorithms.phsafe.schema import (
    FRAMES,
    HOUSEHOLDER,
    MEANINGS,
    OWN_CHILDREN,
    PARTNERS,
    RELATIVES,
    SEX,
    UNDERIVED,
    UNITS,
)
from algorithms.phsafe.tables import sql_in
from algorithms.phsafe.tabulation.intake import Types, each_part, name_unused, recoded_frames
from algorithms.phsafe.tabulation.rules import Finding, InvalidHouseholds, Rule, check_report, domains, merged, tally
from algorithms.release.duck import DuckDB
from algorithms.release.engine import tell
from algorithms.release.frames import Frame
from algorithms.release.reading import in_words
from algorithms.release.recoding import Recoded
from algorithms.release.spark import Engine, opened

__all__ = ["DERIVED_COLUMNS", "derive_units", "household_columns", "members", "own_households"]

DERIVED_COLUMNS = ("FINAL_POP", "NPF", "HHSPAN", "HHRACE", "HHT", "HHT2", "CPLT")
COUPLES = {
    "21": "opposite-sex spouse",
    "22": "opposite-sex unmarried partner",
    "23": "same-sex spouse",
    "24": "same-sex unmarried partner",
}


def _number(condition: str) -> str:
    return f"count(case when {condition} then 1 end)"


def members(persons: str, *, sex: bool) -> str:
    """Return the query that summarizes the members of every unit, one row a ``MAFID``; without `sex`, SEX is null."""
    householder = f"RELSHIP = '{HOUSEHOLDER}'"
    return f"""
        select MAFID, count(*) as PEOPLE, {_number(householder)} as HOUSEHOLDERS,
            max(case when {householder} then try_cast(cast(CENRACE as string) as int) end) as RACE,
            max(case when {householder} then CENHISP end) as HISPANIC,
            {f"max(case when {householder} then cast(QSEX as string) end)" if sex else "cast(null as string)"} as SEX,
            min(case when RELSHIP = '21' then 1 when RELSHIP = '23' then 2
                when RELSHIP = '22' then 3 when RELSHIP = '24' then 4 end) as COUPLE,
            {_number(sql_in("RELSHIP", PARTNERS))} as PARTNERS,
            {_number(sql_in("RELSHIP", (HOUSEHOLDER, "21", "23", *RELATIVES)))} as FAMILY,
            {_number(sql_in("RELSHIP", RELATIVES))} as RELATIVES,
            {_number(f"{sql_in('RELSHIP', OWN_CHILDREN)} and QAGE < 18")} as CHILDREN,
            {_number("RTYPE = '3'")} as IN_HOUSEHOLD
        from {persons} group by MAFID"""


def household_columns(sex: str) -> dict[str, str]:
    """Return the SQL of every derived column, for a unit ``u`` left-joined with the summary ``m`` of its members."""
    occupied = "u.RTYPE = '2' and m.PEOPLE > 0"
    married, partnered = "m.COUPLE <= 2", "m.COUPLE is not null"
    alone, male = "m.PEOPLE = 1", f"{sex} = '1'"
    children = "m.CHILDREN > 0"
    by_company = f"case when {alone} then 0 when {children} then 1 when m.RELATIVES > 0 then 2 else 3 end"
    household = f"case when {male} then 9 else 5 end + {by_company}"
    return {
        "FINAL_POP": "coalesce(m.PEOPLE, 0)",
        "NPF": f"case when {occupied} and m.FAMILY > 1 then m.FAMILY else 0 end",
        "HHSPAN": f"case when {occupied} then coalesce(m.HISPANIC, 0) else 0 end",
        "HHRACE": f"case when {occupied} then lpad(cast(coalesce(m.RACE, 0) as string), 2, '0') else '00' end",
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
    """Derive household and couple type, family size, population, race and ethnicity of every unit, by ``MAFID``.

    Persons need a column ``QSEX`` (``"1"`` male, ``"2"`` female). If there are several partners, the spouse counts.
    """
    with opened(engine, [persons, units]) as opened_engine:
        return _derived(opened_engine, persons, units)[0]


def _derived(engine: Engine, persons: Any, units: Any) -> tuple[Frame, list[Finding]]:
    """Return the units, and the couples whose sexes contradict their relationship."""
    parts = list(each_part(engine, {"persons": persons, "units": units}, UNDERIVED, _derive))
    check_report(fault for faults, _, _ in parts for fault in faults)
    derived = Frame.concatenate([part for _, _, part in parts])
    order = np.argsort(derived["MAFID"], kind="stable")
    couples = merged(couple for _, couples, _ in parts for couple in couples)
    return Frame({name: values[order] for name, values in derived.to_dict().items()}), couples


def _derive(database: DuckDB, types: Types) -> tuple[list[Finding], list[Finding], Frame]:
    """Return faults of QSEX and of the units' MAFID, couples whose sexes contradict their relationship, and units."""
    needed = {"persons": SEX, "units": {"MAFID": UNITS["MAFID"]}}
    faults = tally(database, [rule for name in needed for rule in domains(name, needed[name], types[name])])
    stated = {"RTYPE": "cast(u.RTYPE as string)", "MAFID": "u.MAFID", "TEN": "cast(u.TEN as string)"}
    columns = {**household_columns("m.SEX"), **stated}
    chosen = ", ".join(f"{columns[name]} as {name}" for name in UNITS)
    units = database.fetch(
        f"with m as ({members('persons', sex=True)}) select {chosen} from units u left join m on m.MAFID = u.MAFID"
    )
    return faults, tally(database, _couples()), units


def _couples() -> list[Rule]:
    """Return rules that find couples whose RELSHIP and QSEX contradict each other."""
    couples = f"""(select p.MAFID, p.RELSHIP, p.QSEX = h.QSEX as SAME from persons p
        join persons h on h.MAFID = p.MAFID and h.RELSHIP = '{HOUSEHOLDER}' where {sql_in("p.RELSHIP", PARTNERS)}) c"""
    sexes = {True: ("different sexes", "not SAME"), False: ("the same sex", "SAME")}
    rules = []
    for code, couple in COUPLES.items():
        words, broken = sexes[couple.startswith("same")]
        rule = f"RELSHIP says {couple}, QSEX says {words}"
        rules.append(Rule("persons", rule, couples, f"RELSHIP = '{code}' and {broken}", "MAFID"))
    return rules


@contextmanager
def own_households(
    files: Sequence[Any],
    recode: str | os.PathLike[str] | None,
    *,
    derive: bool,
    unused: bool = False,
    engine: str | Engine = "duckdb",
    memory: str = "",
    master: str = "",
) -> Iterator[tuple[Engine, tuple[Any, Any, Any]]]:
    """Open the user's persons, units and geo, and yield the engine and them; print on stderr how columns are read."""
    persons, units, geo = recoded_frames(files, recode)
    sources = {"persons": persons, "units": units, "geo": geo}
    made = {(n, c): how for n, s in sources.items() if isinstance(s, Recoded) for c, how in s.columns.items()}
    codes = {one: {"codes": meant} for one, meant in MEANINGS.items() if unused and (derive or one[1] != "QSEX")}
    for (name, column), how in {**made, **codes}.items():
        tell(f"{name}.{column} read {in_words({**made.get((name, column), {}), **how})}")
    try:
        with opened(engine, list(sources.values()), memory=memory, master=master) as database:
            if unused:
                if isinstance(database, DuckDB) and "QAGE" in map(str.upper, database.read("given_persons", persons)):
                    age = "try_cast(QAGE::varchar as double)"
                    ages = database.fetch(f"select min({age}) as least, max({age}) as most from given_persons")
                    if (least := ages["least"][0]) is not None:  # None is refused below
                        tell(f"persons.QAGE read as numbers: from {least:.15g} to {ages['most'][0]:.15g}")
                name_unused(database, list(sources.values()), UNDERIVED if derive else FRAMES)
            if derive:
                units, couples = _derived(database, persons, units)
                if couples:
                    tell(f"warning: {'; '.join(_couple_message(couple, sources) for couple in couples)}")
            yield database, (persons, units, geo)
    except InvalidHouseholds as error:
        raise InvalidHouseholds(error.findings, sources) from error


def _couple_message(couple: Finding, sources: Mapping[str, Any]) -> str:
    rule, example = couple.parts(sources)
    number = "1 household" if couple.rows == 1 else f"{couple.rows:,} households"
    return f"{number}: {rule}, such as {example}"
