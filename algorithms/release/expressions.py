"""What is asked of a database about columns that are text, in SQL: places of levels, numbers, and rules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from algorithms.release.duck import DuckDB
from algorithms.release.recoding import MARK, broken_rule, in_sql
from algorithms.schema import Schema
from audit.io.text import SUMS

__all__ = [
    "GROUPS",
    "LARGEST",
    "MOST_AREAS",
    "TEXTS",
    "Count",
    "Rule",
    "are_numbers",
    "check_areas",
    "check_rules",
    "coded",
    "cut",
    "group_rows",
    "leveled",
    "placed",
]

LARGEST = 2**40  # people in all: sums of noisy answers stay exact in float64
LONGEST_TEXT = 1024  # letters of a code or a level
TEXTS = "given_texts"  # a view: codes a0, ..., levels x0, ... and numbers n, as text, null where they are missing
GROUPS = "given_groups"  # a view: what was given, equal rows added up

WHOLE, NUMBER, COMMA = map(re.compile, (r"-?[0-9]{1,15}", r"-?[0-9.]+", r"-?[0-9]+,[0-9]+"))
POINT = "write a point for a decimal comma"
MOST_AREAS = 2**24  # twice the blocks of the 2020 US Census: the code of each is kept as text
SHOWN = 8  # levels in a message


class Rule(NamedTuple):
    """A rule in words; in SQL, which groups break it, and their value, which has a `way` out if it is like `sign`."""

    words: str
    broken: str
    value: str
    rows: str = "size"  # of a group that break it
    sign: re.Pattern[str] | None = None
    way: str = ""


class Count(NamedTuple):
    """How many persons, in parts of a person, each row stands for: one where no column is named."""

    name: str | None
    number: str  # in SQL, of the text in n; null where it breaks the rule
    rule: str
    limit: int = LARGEST  # more than all persons together
    parts: int = 1

    @classmethod
    def whole(cls, name: str | None) -> Count:
        """Return a column of whole numbers."""
        number = "case when regexp_full_match(n, '[0-9]{1,15}([.]0+)?') then n::bigint end"
        return cls(name, number, f"{name} must be a whole number, 0 or more and below 10^15")


def placed(schema: Schema) -> list[str]:
    """Return the SQL of the places of levels, p0, ..., null where what is given, x0, ..., is none."""
    places = []
    for j, (name, levels) in enumerate(schema.attributes.items()):
        if name in schema.edges:
            place = _interval(f"x{j}", schema.edges[name], len(levels))
        else:
            place = _place(f"x{j}", schema.codes.get(name, levels), coded=name in schema.codes or are_numbers(levels))
        places.append(f"{place} as p{j}")
    return places


def leveled(schema: Schema) -> list[Rule]:
    """Return the rules that whatever should be a level is one."""
    rules: list[Rule] = []
    for j, (name, levels) in enumerate(schema.attributes.items()):
        sign, way, kind, known = None, "", "", list(levels)
        if name in schema.codes:
            kind, known = (
                "the codes ",
                [f"{code} = {label}" for code, label in zip(schema.codes[name], levels, strict=True)],
            )
        elif are_numbers(levels):
            kind = "the numbers "
        else:
            sign, way = (
                NUMBER,
                (
                    f'codes need their meanings in the specification, "{name}": {{"codes": {{CODE: LABEL, ...}}}}, and '
                    f'places in the list, from 0 on, need "{name}": {{"labels": [...], "places": true}}'
                ),
            )
        rule = f"must be one of {kind}{', '.join(known[:SHOWN])}{', ...' * (len(known) > SHOWN)}"
        if name in schema.edges:
            edges = [repr(edge).removesuffix(".0") for edge in schema.edges[name]]
            until = f"to less than {edges[-1]}" if len(edges) > len(levels) else "on"
            rule, sign, way = f"must be a number from {edges[0]} {until}", COMMA, POINT
        broken = f"p{j} is null and (x{j} is not null or n > 0)"
        rules.append(Rule(f"{name} {rule}", broken, f"x{j}", sign=sign, way=way))
    return rules


def check_rules(what: str, database: DuckDB, rules: Sequence[Rule]) -> None:
    """Refuse what groups of rows hold, with every rule that they break."""
    broken, way = [], ""
    for rule in rules:
        where = f"from {GROUPS} where {rule.broken}"
        number = int(database.fetch(f"select coalesce(sum({rule.rows}), 0)::bigint as n {where}")["n"][0])
        if number:
            given = f"select distinct ({rule.value})::varchar as value {where} order by value limit {SHOWN}"
            values = list(database.fetch(given)["value"])
            broken.append(broken_rule(rule.words, number, values))
            if not way and rule.sign and any(map(rule.sign.fullmatch, filter(None, values))):
                way = rule.way
    if broken:
        raise ValueError(f"{what}: {'; '.join([*broken, *filter(None, [way])])}")


def group_rows(what: str, database: DuckDB, of_areas: Sequence[Rule], schema: Schema, count: Count) -> None:
    """Add up equal rows, once, for a source may be a stream, with places of levels; refuse those that break a rule."""
    number, text = ("1", "null") if count.name is None else (count.number, "n")
    database.keep(
        GROUPS,
        f"select * exclude (number, odd_number), coalesce(sum(number), 0) as n, count(*) as size, "
        f"count(*) - count(number) as odd, min(odd_number) filter (where number is null) as odd_text "
        f"from (select columns('[ax][0-9]+'), {', '.join(placed(schema))}, {number} as number, {text} as odd_number "
        f"from {TEXTS}) group by all",
    )
    numbers = [] if count.name is None else [Rule(count.rule, "odd > 0", "odd_text", "odd", COMMA, POINT)]
    check_rules(what, database, [*of_areas, *numbers, *leveled(schema)])
    totals = database.fetch(f"select count(*) as groups, coalesce(sum(n), 0)::double as people from {GROUPS}")
    if not totals["groups"][0]:
        raise ValueError(f"{what} must have one row at least, got none")
    if (people := totals["people"][0] / count.parts) >= count.limit:
        most = f"2**{count.limit.bit_length() - 1}"
        raise ValueError(f"{what}: {count.name or 'rows'} must add up to less than {most}, got {people:.0f}")


def check_areas(what: str, database: DuckDB, areas: Sequence[str]) -> int:
    """Return the number of areas, unless they are too many to have their codes in memory."""
    codes = ", ".join(f"a{j}" for j in range(len(areas)))
    number = int(database.fetch(f"select count(*) as n from (select distinct {codes} from {GROUPS})")["n"][0])
    if number > MOST_AREAS:
        raise ValueError(f"{what} must name at most {MOST_AREAS:,} areas, got {number:,}")
    return number


def coded(areas: Sequence[str], *, listed: bool = False) -> list[Rule]:
    """Return the rules that codes are there, not too long, without spaces around, and not sums unless `listed`."""
    rules: list[Rule] = []
    for j, name in enumerate(areas):
        code = f"a{j}"
        too_long = f"strlen({code}) > {LONGEST_TEXT} and length({code}) > {LONGEST_TEXT}"  # as `cut` leaves it
        rules += [
            Rule(f"{name} must have a code", f"{code} is null", "null"),
            Rule(f"codes of {name} must have at most {LONGEST_TEXT:,} letters", too_long, code),
            Rule(f"codes of {name} must not begin or end with a space", f"{code} <> trim({code})", code),
        ]
        if not listed:
            way = "leave such rows out, or list the area with --geo if it is one"
            rule = f"areas of {name} must not be sums of others: {way}"
            rules.append(Rule(rule, f"regexp_full_match({code}, {in_sql(SUMS, MARK)})", code))
    return rules


def cut(text: str) -> str:
    """Return the SQL of text of which no more is kept than shows that it is too long; null where there is none."""
    return (
        f"nullif(case when strlen({text}) > {LONGEST_TEXT} then left({text}, {LONGEST_TEXT + 1}) else {text} end, '')"
    )


def are_numbers(levels: Sequence[str]) -> bool:
    """Return whether all names of levels are whole numbers, none twice, so that 01 is 1."""
    return all(map(WHOLE.fullmatch, levels)) and len(set(map(int, levels))) == len(levels)


def _place(value: str, names: Sequence[str], *, coded: bool) -> str:
    """Return the SQL of the place of a name; if `coded`, whole numbers are compared as numbers where one has them."""
    numbers = Counter(int(name) for name in names if coded and WHOLE.fullmatch(name))
    texts, wholes = "", ""
    for place, name in enumerate(names):
        if coded and WHOLE.fullmatch(name) and numbers[int(name)] == 1:
            wholes += f" when {int(name)} then {place}"
        else:
            texts += f" when {in_sql(name, MARK)} then {place}"
    number = f"case when regexp_full_match({value}, '-?[0-9]{{1,15}}([.]0*)?') then {value}::double::bigint end"
    parts = [f"case {value}{texts} end"] * bool(texts) + [f"case {number}{wholes} end"] * bool(wholes)
    return f"coalesce({', '.join(parts)})"


def _interval(text: str, edges: Sequence[float], levels: int) -> str:
    """Return the SQL of the place of the interval that a number is in; infinities and NaN are in none."""
    number = f"try_cast({text} as double)"
    # An edge without quotes would be a decimal, whose way to float64 may end at another number.
    beyond = f" when {number} >= '{edges[levels]!r}'::double then null" if len(edges) > levels else ""
    whens = " ".join(f"when {number} >= '{edges[place]!r}'::double then {place}" for place in reversed(range(levels)))
    return f"case when not isfinite({number}) then null{beyond} {whens} end"
