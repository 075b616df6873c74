"""What is asked of a database about the columns of a source, in SQL: codes, places of levels, and rules of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from algorithms.schema import Schema

__all__ = ["GROUPS", "LARGEST", "Column", "Count", "Rule", "code_columns", "coded", "cut", "leveled", "place_columns"]

LARGEST = 2**40  # people in all: sums of noisy answers stay exact in float64
LONGEST_TEXT = 1024  # letters of a code or a level
GROUPS = "given_groups"  # a view: what was given, equal rows added up

Rule = tuple[str, str, str, str]  # in words; and in SQL: which groups break it, how many rows each is, an example


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
        return cls(name, number_of, f"{name} must be a whole number, 0 or more")


def code_columns(columns: dict[str, Column], areas: Sequence[str]) -> list[str]:
    """Return the SQL of the codes a0, ..., null where they are missing."""
    kinds = ("codes as text or whole numbers", "text", "whole")
    return [f"nullif({_text(kinds[0], columns[name], *kinds[1:])}, '') as a{j}" for j, name in enumerate(areas)]


def place_columns(columns: dict[str, Column], schema: Schema) -> list[str]:
    """Return the SQL of what is given, x0, ..., and of the places of levels, p0, ..., null where there is none.

    A code for a level, which is its place, is told from its name: it is counted on behind the places of names.
    """
    parts = []
    for j, (name, levels) in enumerate(schema.attributes.items()):
        if name in schema.edges:
            text = _text("numbers", columns[name], "text", "whole", "real")
            place = _interval(text, schema.edges[name])
        else:
            text = _text("levels as text or whole numbers", columns[name], "text", "whole")
            place = _place(text, levels)
        parts += [f"nullif({text}, '') as x{j}", f"{place} as p{j}"]
    return parts


def leveled(schema: Schema) -> list[Rule]:
    """Return the rules that whatever should be a level is one, and that a column holds names or codes, not both."""
    rules: list[Rule] = []
    for j, (name, levels) in enumerate(schema.attributes.items()):
        number, shown = len(levels), f"one of {', '.join(levels[:8])}{', ...' * (len(levels) > 8)}"
        none = (f"p{j} is null and (x{j} is not null or n > 0)", "size", f"x{j}")
        if name in schema.edges:
            first = repr(schema.edges[name][0]).removesuffix(".0")
            rules.append((f"{name} must be a number from {first} on", *none))
        elif _numbered(levels):
            rules.append((f"{name} must be {shown}", *none))
        else:
            both = f"p{j} >= {number} and (select min(p{j}) from {GROUPS}) < {number}"
            rule = f"{name} must be names of levels in every row, or codes 0 to {number - 1} in every row"
            rules.append((f"{name} must be {shown}, or 0 to {number - 1}", *none))
            rules.append((rule, both, "size", f"p{j} - {number}"))
    return rules


def coded(areas: Sequence[str]) -> list[Rule]:
    """Return the rules that there are codes, of a length that somebody meant, without spaces that make another area."""
    rules = []
    for j, name in enumerate(areas):
        code = f"a{j}"
        rules += [
            (f"{name} must have a code", f"{code} is null", "size", "null"),
            (f"codes of {name} must have at most {LONGEST_TEXT:,} letters", _is_long(code), "size", code),
            (f"codes of {name} must not begin or end with a space", f"{code} <> trim({code})", "size", code),
        ]
    return rules


def _is_long(text: str) -> str:
    """Return the SQL of whether text is what `cut` leaves of a longer one."""
    return f"strlen({text}) > {LONGEST_TEXT} and length({text}) > {LONGEST_TEXT}"


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
        "whole": f"{column.given} between 0 and {2**53}",
        "real": f"{column.given} between 0 and {10**15} and {column.given} = floor({column.given})",
    }[column.kind]
    return f"case when {rule} then try_cast({column.given} as bigint) end"


def _numbered(levels: Sequence[str]) -> bool:
    """Return whether a name is a number, which a place could be taken for."""
    return any(_isnumber(level) for level in levels)


def _isnumber(level: str) -> bool:
    try:
        float(level)
    except ValueError:
        return False
    return True


def _place(value: str, levels: Sequence[str]) -> str:
    """Return the SQL of the place of a level, by its name or its code."""
    places = {level: place for place, level in enumerate(levels)}
    if not _numbered(levels):
        places |= {str(place): len(levels) + place for place in range(len(levels))}
    whens = " ".join(f"when {_quoted(name)} then {place}" for name, place in places.items())
    return f"case {value} {whens} end"


def _interval(text: str, edges: Sequence[float]) -> str:
    """Return the SQL of the place of the interval that a number is in; infinities and NaN are in none."""
    number = f"try_cast({text} as double)"
    # An edge without quotes would be a decimal, whose way to float64 may end at another number.
    whens = " ".join(
        f"when {number} >= '{edges[place]!r}'::double then {place}" for place in reversed(range(len(edges)))
    )
    return f"case when not isfinite({number}) then null {whens} end"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
