"""Validation rules of the frames: number of rows that break a rule, and one example in the user's column names."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from algorithms.phsafe.schema import Codes, Digits, Domain, Whole
from algorithms.phsafe.tables import sql_in
from algorithms.phsafe.tabulation.intake import typed, unread
from algorithms.release.duck import DuckDB
from algorithms.release.recoding import Recoded

__all__ = ["Finding", "InvalidHouseholds", "Rule", "check_report", "domains", "merged", "tally"]

COLUMN, NUMBER = re.compile(r"\b[A-Z][A-Z0-9]+\b"), re.compile("[0-9]{1,18}")


@dataclass(frozen=True)
class Finding:
    """A broken rule: the frame, the rule, the number of rows that break it, and an example value and ``MAFID``."""

    frame: str
    rule: str
    rows: int
    example: str
    home: str = ""

    def __str__(self) -> str:
        return self.words({})

    def words(self, sources: Mapping[str, Any]) -> str:
        """Return the finding in one line; a recoded column is followed by the user's column in parentheses."""
        rule, example = self.parts(sources)
        number = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        return f"{self.frame}: {rule}; {number} broke it, such as {example}"

    def parts(self, sources: Mapping[str, Any]) -> tuple[str, str]:
        """Return the rule and the example with the user's column names."""
        source = sources.get(self.frame)
        made = source.columns if isinstance(source, Recoded) else {}
        own = {name: how["from"] for name, how in made.items() if how.get("from", name) != name}
        rule = COLUMN.sub(lambda name: f"{name[0]} ({own[name[0]]})" if name[0] in own else name[0], self.rule)
        home = f"MAFID {self.home}" if self.home else ""
        how = made.get("MAFID", {})
        if home and "from" in how and how.keys() <= {"from", "add"}:
            home = f"{how['from']} {int(self.home) - how.get('add', 0)}"
        return rule, " in ".join(filter(None, (self.example, home)))


class InvalidHouseholds(ValueError):
    """Error about frames that break rules; `findings` has every broken rule and its number of rows."""

    def __init__(self, findings: Sequence[Finding], sources: Mapping[str, Any] | None = None) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(finding.words(sources or {}) for finding in findings))


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Merge the findings of several parts: add up the rows of the same rule."""
    sums: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        if same := sums.get((finding.frame, finding.rule)):
            example, home = min((finding.example, finding.home), (same.example, same.home))
            finding = replace(finding, rows=finding.rows + same.rows, example=example, home=home)
        sums[finding.frame, finding.rule] = finding
    return list(sums.values())


def check_report(findings: Iterable[Finding]) -> None:
    """Raise an error if there are findings; those of the same rule in several parts are merged."""
    if found := merged(findings):
        raise InvalidHouseholds(found)


@dataclass(frozen=True)
class Rule:
    """A rule: its frame and words, and SQL of the rows, of the condition that breaks it, of an example and a weight."""

    frame: str
    words: str
    rows: str
    broken: str
    value: str
    weight: str = ""


def domains(name: str, columns: Mapping[str, Domain], types: Mapping[str, str]) -> list[Rule]:
    """Return the rules that values of a frame's columns are in their domains; `types` are those of the input."""
    return [
        Rule(
            name,
            f"{column} must be {domain}",
            unread(name),
            f"not coalesce({_inside(column, domain, types[column])}, false)",
            column,
        )
        for column, domain in columns.items()
        if column in types
    ]


def _inside(column: str, domain: Domain, kind: str) -> str:
    value = typed(column, domain, kind)
    match domain:
        case Codes(codes):
            return sql_in(value, codes)
        case Digits():
            return f"regexp_matches({value}, '^[0-9]+$')"
        case Whole(least, most, without):
            gap = f" and {value} not in ({', '.join(map(str, without))})" if without else ""
            return f"{value} between {least} and {most}{gap}"


def tally(database: DuckDB, rules: Sequence[Rule]) -> list[Finding]:
    """Count the rows that break each rule, in one query; rules on the same rows share one pass."""
    passes: dict[str, list[str]] = {}
    for number, rule in enumerate(rules):
        broken = f"case when {rule.broken} then {rule.weight or 1} end"
        counted = f"coalesce(cast(sum({broken}) as bigint), 0)" if rule.weight else f"count({broken})"
        passes.setdefault(rule.rows, []).append(f"{counted} as N{number}")
    counts = (f"(select {', '.join(sums)} from {rows}) p{place}" for place, (rows, sums) in enumerate(passes.items()))
    numbers = database.fetch(f"select * from {' cross join '.join(counts)}")
    findings = []
    for place, rule in enumerate(rules):
        if number := int(numbers[f"N{place}"][0]):
            row = database.fetch(
                f"select cast({rule.value} as string) as X, cast(MAFID as string) as HOME from {rule.rows} "
                f"where {rule.broken} order by 1 nulls last, 2 limit 1"
            )
            findings.append(Finding(rule.frame, rule.words, number, *_example(rule, row["X"][0], row["HOME"][0])))
    return findings


def _example(rule: Rule, value: str | None, home: str | None) -> tuple[str, str]:
    """Return a value that breaks a rule, in words, and the number of its unit, or "" if it has no valid number."""
    number = home if home is not None and NUMBER.fullmatch(home) else ""
    if rule.value == "MAFID" and number:
        return "", number
    if value is None:
        return "a missing value", number
    return f"{value} {rule.value}" if rule.value.islower() else reprlib.repr(value), number
