"""What is asked of a database about the columns of a source, in SQL: codes, places of levels, and rules of both."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from algorithms.schema import Schema
from audit.io.text import SUMS

__all__ = [
    "COMMA",
    "GROUPS",
    "LARGEST",
    "SHOWN",
    "Column",
    "Count",
    "Rule",
    "are_numbers",
    "code_columns",
    "coded",
    "cut",
    "leveled",
    "place_columns",
]

LARGEST = 2**40  # people in all: sums of noisy answers stay exact in float64
LONGEST_TEXT = 1024  # letters of a code or a level
GROUPS = "given_groups"  # a view: what was given, equal rows added up

WHOLE, NUMBER, COMMA = map(re.compile, (r"-?[0-9]{1,15}", r"-?[0-9.]+", r"-?[0-9]+,[0-9]+"))
SHOWN = 8  # levels in a message


class Rule(NamedTuple):
    """A rule in words; in SQL, which groups break it, how many rows each has, and its value.

    A value of the pattern `sign` has a `way` out.
    """

    words: str
    broken: str
    rows: str
    value: str
    sign: re.Pattern[str] | None = None
    way: str = ""


@dataclass(frozen=True)
class Column:
    """A column of the source and what it is for."""

    title: str  # as asked for, in messages
    given: str  # as the source calls it, quoted for SQL
    kind: str


@dataclass(frozen=True)
class Count:
    """How many persons, in parts of a person, each row stands for: one where no column is named."""

    name: str | None
    number: Callable[[Column], str]  # in SQL; null where a value breaks the rule
    rule: str
    limit: int = LARGEST  # more than all persons together
    total: tuple[str, str] = (" must count", " in all")  # around the limit, in what is said then of the source
    parts: int = 1

    @classmethod
    def whole(cls, name: str | None) -> Count:
        """Return a column of whole numbers."""
        return cls(name, number_of, f"{name} must be a whole number, 0 or more and below 10^15")


def code_columns(columns: dict[str, Column], areas: Sequence[str]) -> list[str]:
    """Return the SQL of the codes a0, ..., null where they are missing."""
    kinds = ("codes as text or whole numbers", "text", "whole")
    return [f"nullif({_text(kinds[0], columns[name], *kinds[1:])}, '') as a{j}" for j, name in enumerate(areas)]


def place_columns(columns: dict[str, Column], schema: Schema) -> list[str]:
    """Return the SQL of what is given, x0, ..., and of the places of levels, p0, ..., null where there is none."""
    parts = []
    for j, (name, levels) in enumerate(schema.attributes.items()):
        if name in schema.edges:
            text = _text("numbers", columns[name], "text", "whole", "real")
            place = _interval(text, schema.edges[name], len(levels))
        else:
            text = _text("levels as text or numbers", columns[name], "text", "whole", "real")
            place = _place(text, schema.codes.get(name, levels), coded=name in schema.codes or are_numbers(levels))
        parts += [f"nullif({text}, '') as x{j}", f"{place} as p{j}"]
    return parts


def leveled(schema: Schema) -> list[Rule]:
    """Return the rules that whatever should be a level is one."""
    rules: list[Rule] = []
    for j, (name, levels) in enumerate(schema.attributes.items()):
        sign, way, more = None, "", ", ..." * (len(levels) > SHOWN)
        if name in schema.edges:
            edges = [repr(edge).removesuffix(".0") for edge in schema.edges[name]]
            until = f"to less than {edges[-1]}" if len(edges) > len(levels) else "on"
            rule = f"must be a number from {edges[0]} {until}"
            sign, way = COMMA, "write a point for a decimal comma"
        elif name in schema.codes:
            pairs = [f"{code} = {label}" for code, label in zip(schema.codes[name], levels, strict=True)]
            rule = f"must be one of the codes {', '.join(pairs[:SHOWN])}{more}"
        elif are_numbers(levels):
            rule = f"must be one of the numbers {', '.join(levels[:SHOWN])}{more}"
        else:
            rule = f"must be one of {', '.join(levels[:SHOWN])}{more}"
            sign, way = (
                NUMBER,
                (
                    f'codes need their meanings in the specification, "{name}": {{"codes": {{CODE: LABEL, ...}}}}, and '
                    f'places in the list, from 0 on, need "{name}": {{"labels": [...], "places": true}}'
                ),
            )
        rules.append(
            Rule(f"{name} {rule}", f"p{j} is null and (x{j} is not null or n > 0)", "size", f"x{j}", sign, way)
        )
    return rules


def coded(areas: Sequence[str], *, listed: bool = False) -> list[Rule]:
    """Return the rules that there are codes, of a length that somebody meant, without spaces that make another area.

    An area has no name of a sum unless it is `listed`.
    """
    rules: list[Rule] = []
    for j, name in enumerate(areas):
        code = f"a{j}"
        too_long = f"strlen({code}) > {LONGEST_TEXT} and length({code}) > {LONGEST_TEXT}"  # as `cut` leaves it
        rules += [
            Rule(f"{name} must have a code", f"{code} is null", "size", "null"),
            Rule(f"codes of {name} must have at most {LONGEST_TEXT:,} letters", too_long, "size", code),
            Rule(f"codes of {name} must not begin or end with a space", f"{code} <> trim({code})", "size", code),
        ]
        if not listed:
            way = "leave such rows out, or list the area with --geo if it is one"
            rule = f"areas of {name} must not be sums of others: {way}"
            rules.append(Rule(rule, f"regexp_full_match({code}, {_quoted(SUMS)})", "size", code))
    return rules


def _text(what: str, column: Column, *kinds: str) -> str:
    if column.kind not in kinds:
        kind = "real numbers" if column.kind == "real" else column.kind
        raise ValueError(f"{column.title} must hold {what}, got {kind}")
    text = f"{column.given}::varchar"
    return cut(text) if column.kind == "text" else text


def cut(text: str) -> str:
    """Return the SQL of text of which no more is kept than shows that it is too long."""
    return f"(case when strlen({text}) > {LONGEST_TEXT} then left({text}, {LONGEST_TEXT + 1}) else {text} end)"


def number_of(column: Column) -> str:
    """Return the SQL of a count, null where it is none."""
    if column.kind not in ("text", "whole", "real"):
        raise ValueError(f"{column.title} must hold whole numbers, got {column.kind}")
    rule = {
        "text": f"regexp_full_match({column.given}, '[0-9]{{1,15}}')",
        "whole": f"{column.given} between 0 and {10**15 - 1}",
        "real": f"{column.given} between 0 and {10**15 - 1} and {column.given} = floor({column.given})",
    }[column.kind]
    return f"case when {rule} then try_cast({column.given} as bigint) end"


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
            texts += f" when {_quoted(name)} then {place}"
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


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
