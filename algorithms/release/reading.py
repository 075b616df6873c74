"""Reading of columns: indices of levels, numbers and rules in SQL, and descriptions for the record and for stderr."""

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

LARGEST = 2**40  # limit of the number of people: sums of noisy answers are exact in float64
LONGEST_TEXT = 1024  # most letters of a code or a level
TEXTS = "given_texts"  # a view: codes a0, ..., levels x0, ... and numbers n as text, cut if too long, null if missing
GROUPS = "given_groups"  # a table: equal rows of `TEXTS` merged, with their number and sum

WHOLE, NUMBER, COMMA = map(re.compile, (r"-?[0-9]{1,15}", r"-?[0-9.]+", r"-?[0-9]+,[0-9]+"))
POINT = "write a point for a decimal comma"
MOST_AREAS = 2**24  # twice the blocks of the 2020 US Census; codes of areas are kept in memory
SHOWN = 8  # most levels in a message
KINDS = ("words", "codes", "numbers", "whole numbers")
LONGEST = 12  # most values listed in a line
MOST_SUBSETS = 12  # all subsets of a family with fewer other areas than this are tried as sums
FEW_FAMILIES = 1000  # subsets are tried only if a level has at most so many families
PRINTS = 2**12  # number of hash values of cells: with 2**40 people, sums are exact in float64
CHANCE = 1e-3  # rough error probability, for independent areas of a family, of finding an area that is a sum of others


class Rule(NamedTuple):
    """A rule in words, with SQL of the groups that break it and of their value; if it matches `sign`, advise `way`."""

    words: str
    broken: str
    value: str
    rows: str = "size"  # SQL of the number of rows in a group that break it
    sign: re.Pattern[str] | None = None
    way: str = ""


class Count(NamedTuple):
    """The column with the number of persons, in parts of a person, of each row; each row is one person if None."""

    name: str | None
    number: str  # SQL from the text n to a number; null if it breaks the rule
    rule: str
    limit: int = LARGEST  # the total must be below this
    parts: int = 1

    @classmethod
    def whole(cls, name: str | None) -> Count:
        """Return the count that reads a column of whole numbers."""
        number = "case when regexp_full_match(n, '[0-9]{1,15}([.]0+)?') then n::bigint end"
        return cls(name, number, f"{name} must be a whole number, 0 or more and below 10^15")


def kind_of(schema: Schema, name: str) -> str:
    """Return how an attribute is read, one of `KINDS`; "whole numbers" if all its levels are distinct whole numbers."""
    numbers = [int(level) for level in schema.attributes[name] if WHOLE.fullmatch(level)]
    whole = len(set(numbers)) == len(schema.attributes[name])  # so that 01 is 1
    words = "whole numbers" if whole else "words"
    return "numbers" if name in schema.edges else "codes" if name in schema.codes else words


def placed(schema: Schema) -> list[str]:
    """Return the SQL of the indices of levels, p0, ...; an index is null if the text, x0, ..., is no level."""
    places = []
    for j, (name, levels) in enumerate(schema.attributes.items()):
        if name in schema.edges:
            place = _interval(f"x{j}", schema.edges[name], len(levels))
        else:
            place = _place(f"x{j}", schema.codes.get(name, levels), coded=kind_of(schema, name) != "words")
        places.append(f"{place} as p{j}")
    return places


def leveled(schema: Schema) -> list[Rule]:
    """Return the rules that every attribute has a level; rows of 0 persons may have missing attributes."""
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
    """Refuse groups of rows that break a rule; the message lists every broken rule."""
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
    """Merge equal rows to `GROUPS`, in one pass, as a source may be a stream; refuse rows that break a rule."""
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
    """Return the number of areas; refuse too many for their codes to fit into memory."""
    codes = ", ".join(f"a{j}" for j in range(len(areas)))
    number = int(database.fetch(f"select count(*) as n from (select distinct {codes} from {GROUPS})")["n"][0])
    if number > MOST_AREAS:
        raise ValueError(f"{what} must name at most {MOST_AREAS:,} areas, got {number:,}")
    return number


def coded(areas: Sequence[str], *, listed: bool = False) -> list[Rule]:
    """Return the rules that codes are not missing, too long, padded with spaces or, unless `listed`, named as sums."""
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
    """Return the SQL of the index of a name; if `coded`, whole numbers in unique names are compared as numbers."""
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
    """Return the SQL of the index of the interval that contains a number, null for infinities and NaN."""
    number = f"try_cast({text} as double)"
    # An edge without quotes would be a decimal, whose conversion to double may round to another number.
    beyond = f" when {number} >= '{edges[levels]!r}'::double then null" if len(edges) > levels else ""
    whens = " ".join(f"when {number} >= '{edges[place]!r}'::double then {place}" for place in reversed(range(levels)))
    return f"case when not isfinite({number}) then null{beyond} {whens} end"


def reading_of(source: Any, schema: Schema) -> dict[str, Any]:
    """Return, for the record, how each attribute is read, and how each recoded column is made from the file's."""
    reading = {name: dict(how) for name, how in source.columns.items()} if isinstance(source, Recoded) else {}
    for name, levels in schema.attributes.items():
        kind = kind_of(schema, name)
        meant = dict(zip(schema.codes[name], levels, strict=True)) if kind == "codes" else list(levels)
        reading[name] = {**reading.get(name, {}), kind: meant}
    return reading


def in_words(how: Mapping[str, Any]) -> str:
    """Return in words how a column is read or made, from an entry of `reading_of`."""
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
    """Print on stderr how each column was read, with warnings; they depend on exact values and are not published."""
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
    """People in an area, their hash sum (adds up if every cell does), and a lower bound on its nonempty cells."""

    people: float
    print: float
    cells: int


def tell_sums(database: DuckDB, areas: Sequence[str], schema: Schema) -> None:
    """Warn of areas that may be sums of siblings, and of areas that may be missing values.

    No such area is refused: a refusal that depends on counts would reveal them. Levels above do not count sums twice.
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
    """Return the siblings whose sum an area is: all, those whose codes begin with its code, or any subset if few.

    Subsets are tried only if a random agreement is less likely than `CHANCE`, estimated by the number of ways to
    distribute the area's people over its cells.
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
