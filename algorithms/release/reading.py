"""How columns are read: places of levels, numbers and rules in SQL; for the record, and in words on stderr."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from algorithms.release.duck import GIVEN, DuckDB
from algorithms.release.engine import tell
from algorithms.release.recoding import MARK, Recoded, broken_rule, in_sql
from algorithms.schema import Schema
from audit.io.text import MISSING, SUMS

__all__ = [
    "GROUPS",
    "LARGEST",
    "LONGEST_TEXT",
    "TEXTS",
    "Count",
    "Rule",
    "check_areas",
    "check_rules",
    "coded",
    "group_rows",
    "in_words",
    "leveled",
    "placed",
    "reading_of",
    "tell_reading",
    "tell_sums",
]

LARGEST = 2**40  # people in all: sums of noisy answers stay exact in float64
LONGEST_TEXT = 1024  # letters of a code or a level
TEXTS = "given_texts"  # a view: codes a0, ..., levels x0, ... and numbers n as text, cut if too long, null if missing
GROUPS = "given_groups"  # a view: what was given, equal rows added up

WHOLE, NUMBER, COMMA = map(re.compile, (r"-?[0-9]{1,15}", r"-?[0-9.]+", r"-?[0-9]+,[0-9]+"))
POINT = "write a point for a decimal comma"
MOST_AREAS = 2**24  # twice the blocks of the 2020 US Census: the code of each is kept as text
SHOWN = 8  # levels in a message
KINDS = ("words", "codes", "numbers", "whole numbers")
LONGEST = 12  # values that a line names
MOST_SUBSETS = 12  # areas of a family of which all sums are looked at
FEW_FAMILIES = 1000  # of which each is looked at so
PRINTS = 2**12  # numbers of cells: with 2**40 people sums stay exact in float64
CHANCE = 1e-3  # about how often areas of a family, if independent, add up to another of it in every cell


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


def kind_of(schema: Schema, name: str) -> str:
    """Return how an attribute is read: one of `KINDS`; whole numbers are all its names of levels, none twice."""
    numbers = [int(level) for level in schema.attributes[name] if WHOLE.fullmatch(level)]
    whole = len(set(numbers)) == len(schema.attributes[name])  # so that 01 is 1
    words = "whole numbers" if whole else "words"
    return "numbers" if name in schema.edges else "codes" if name in schema.codes else words


def placed(schema: Schema) -> list[str]:
    """Return the SQL of the places of levels, p0, ..., null where what is given, x0, ..., is none."""
    places = []
    for j, (name, levels) in enumerate(schema.attributes.items()):
        if name in schema.edges:
            place = _interval(f"x{j}", schema.edges[name], len(levels))
        else:
            place = _place(f"x{j}", schema.codes.get(name, levels), coded=kind_of(schema, name) != "words")
        places.append(f"{place} as p{j}")
    return places


def leveled(schema: Schema) -> list[Rule]:
    """Return the rules that whatever should be a level is one."""
    rules: list[Rule] = []
    for j, (name, levels) in enumerate(schema.attributes.items()):
        sign, way, names, kind = None, "", list(levels), kind_of(schema, name)
        if kind == "codes":
            names = [f"{code} = {label}" for code, label in zip(schema.codes[name], levels, strict=True)]
        elif kind == "words":
            sign = NUMBER
            way = (
                f'codes need their meanings in the specification, "{name}": {{"codes": {{CODE: LABEL, ...}}}}, and '
                f'places in the list, from 0 on, need "{name}": {{"labels": [...], "places": true}}'
            )
        of = {"codes": "the codes ", "whole numbers": "the numbers "}.get(kind, "")
        rule = f"must be one of {of}{', '.join(names[:SHOWN])}{', ...' * (len(names) > SHOWN)}"
        if kind == "numbers":
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
        too_long = f"strlen({code}) > {LONGEST_TEXT} and length({code}) > {LONGEST_TEXT}"  # as in `TEXTS`
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


def reading_of(source: Any, schema: Schema) -> dict[str, Any]:
    """Return how each attribute is read, and of which column of the file each column is made that a recode makes."""
    reading = {name: dict(how) for name, how in source.columns.items()} if isinstance(source, Recoded) else {}
    for name, levels in schema.attributes.items():
        kind = kind_of(schema, name)
        meant = dict(zip(schema.codes[name], levels, strict=True)) if kind == "codes" else list(levels)
        reading[name] = {**reading.get(name, {}), kind: meant}
    return reading


def in_words(how: Mapping[str, Any]) -> str:
    """Return how a column is read or made, as `reading_of` has it, in words."""
    codes = {**how.get("values", {}), **how.get("ranges", {})}
    parts = [f"from {how['from']}"] if "from" in how else []
    parts += [f"+ {how['add']}"] if "add" in how else []
    parts += [f"from the constant {how['constant']}"] if "constant" in how else []
    parts += [f"({_listed(codes)})"] if codes else []
    parts += [f"as {kind}: {_listed(how[kind])}" for kind in KINDS if kind in how]
    return " ".join(parts)


def _listed(values: Mapping[str, Any] | Sequence[str]) -> str:
    pairs = values.items() if isinstance(values, Mapping) else ()
    words = [f"{code or 'empty'} = {label}" for code, label in pairs] or list(values)
    return ", ".join(words if len(words) <= LONGEST else [*words[: LONGEST - 2], "...", words[-1]])


def tell_reading(database: DuckDB, source: Any, schema: Schema) -> None:
    """Say how each column was read, and what may be wrong with it: it depends on exact values, which stay on stderr."""
    places = {name: j for j, name in enumerate(schema.attributes)}
    for name, how in reading_of(source, schema).items():
        words, levels = f"{name} read {in_words(how)}", schema.attributes.get(name, ())
        if "numbers" in how or "ranges" in how:
            column, rows = (
                (f"x{places[name]}", GROUPS) if "numbers" in how else (in_sql(how["from"]), f"recoded_{GIVEN}")
            )
            number = f"try_cast({column} as double)"
            odd = f"{number} <> floor({number}) or {number} > {len(levels)} and {number} not in (9, 99, 999, 9999)"
            ends = database.fetch(
                f"select min({number}) as least, max({number}) as most, count_if({odd}) as odd from {rows}"
            )
            if (least := ends["least"][0]) is not None:
                words += f"; from {least + 0.0:.15g} to {ends['most'][0]:.15g}"
                if least >= 0 and not ends["odd"][0] and len(levels) > 1:
                    words += f": are they codes of these {len(levels)}?"
        elif schema.codes.get(name) == tuple(map(str, range(len(levels)))) and not len(
            database.fetch(f"select 1 as one from {GROUPS} where p{places[name]} = 0 limit 1")
        ):
            words += "; no row has 0: are they counted from 1?"
        if sums := [level for level in levels if re.fullmatch(SUMS, level)]:
            words += f"; {sums[0]} may be the sum of others"
        tell(words)


class _Area(NamedTuple):
    """People in an area, a number that adds up as they do in every cell, and in how many cells they are at least."""

    people: float
    print: float
    cells: int


def tell_sums(database: DuckDB, areas: Sequence[str], schema: Schema) -> None:
    """Warn of areas that are others of their family together, and of those that may be missing values.

    No such area is refused: a refusal that depends on counts would give them away. Above, a sum is not counted again.
    """
    codes, places = (
        ", ".join(f"{kind}{j}" for j in range(len(of))) for kind, of in (("a", areas), ("p", schema.shape))
    )
    cells = f"select {codes}, n, hash(concat_ws(',', {places})) % {PRINTS} as cell from {GROUPS} where n > 0"
    sums = "sum(n)::double, sum(n * cell)::double, count(distinct cell)"
    rows = database.fetch(f"select {codes}, {sums} from ({cells}) group by all order by all").rows()
    known = {tuple(row[: len(areas)]): _Area(*row[len(areas) :]) for row in rows}
    for level in reversed(range(len(areas))):
        families: dict[tuple[str, ...], dict[str, _Area]] = {}
        for place, area in known.items():
            families.setdefault(place[:-1], {})[place[-1]] = area
        known = {}
        for around, family in families.items():
            found = {code: _parts(code, family, small=len(families) <= FEW_FAMILIES) for code in family}
            for code, parts in found.items():
                name = f"{areas[level]} {' / '.join((*around, code))}"
                if re.fullmatch(MISSING, code):
                    tell(f"warning: {name} may stand for a missing value, and counts as an area")
                if parts:
                    more = f" and {len(parts) - 5} more" if len(parts) > 5 else ""
                    together = f"{', '.join(parts[:5])}{more} together"
                    tell(f"warning: {name} has as many people as {together}: if it is their sum, leave its rows out")
            if counted := [family[code] for code, parts in found.items() if not parts]:
                people, numbers = (sum(area[k] for area in counted) for k in (0, 1))
                known[around] = _Area(people, numbers, max(area.cells for area in counted))


def _parts(code: str, family: Mapping[str, _Area], *, small: bool) -> list[str]:
    """Return of which others an area is the sum: all, those whose codes begin with its own, or any of a small family.

    In a small family of n a chance agreement must be rarer than `CHANCE`, by the ways to put its people into its cells.
    """
    area, others = family[code], [other for other in family if other != code]
    inside = [other for other in others if other.startswith(code)] if small else []
    for some in (others, inside):
        if len(some) > 2 and all(sum(family[o][k] for o in some) == area[k] for k in (0, 1)):
            return some
    ways = area.cells * math.log(area.people / area.cells + 1)
    if not small or len(others) >= MOST_SUBSETS or ways < math.log(len(family) * 2 ** len(others) / CHANCE):
        return []
    sums = np.zeros((1, 3))
    for other in others:
        sums = np.concatenate([sums, sums + np.array([*family[other][:2], 1])])
    found = np.flatnonzero((sums[:, 0] == area.people) & (sums[:, 1] == area.print) & (sums[:, 2] > 1))
    return [other for j, other in enumerate(others) if found.size and int(found[0]) >> j & 1]
