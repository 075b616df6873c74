"""Columns that a recode makes from columns of the file, in SQL: new names, and codes for words and for numbers."""

from __future__ import annotations

import math
import os
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from itertools import pairwise
from typing import Any

from algorithms.release.frames import Frame
from algorithms.schema import read_named

__all__ = ["Recoded", "broken_rule", "in_sql", "recoded"]

WITH: tuple[set[str], ...] = (set(), {"add"}, {"values"}, {"ranges"}, {"values", "ranges"})  # keys allowed with "from"
KINDS = {"from": str, "add": int, "values": dict, "ranges": dict}
FORM = '{"constant": CODE}, or {"from": COLUMN} alone, with "add": NUMBER, or with "values", "ranges": {WORD: CODE}'
MARK = "'"  # quote of text in SQL
NUMBER = r"-?\d+(\.\d+)?"
RANGE = re.compile(r"(-?\d+(?:\.\d+)?)?-(-?\d+(?:\.\d+)?)?")


@dataclass(frozen=True, eq=False)
class Recoded:
    """A file of `what`, which DuckDB reads with recoded columns; other columns are unchanged.

    A recoded column is a constant, or another column: renamed, with a whole number added, or with codes for words (""
    is a missing value) and for ranges of numbers, both ends included. `known` are the columns that may be made.
    """

    what: str
    path: str
    columns: Mapping[str, Mapping[str, Any]]
    known: InitVar[Iterable[str]]

    def __post_init__(self, known: Iterable[str]) -> None:
        if not isinstance(self.columns, dict):
            raise ValueError(f"recode of {self.what} must be an object of columns, got {reprlib.repr(self.columns)}")
        for name, how in self.columns.items():
            where = f"recode of {self.what}, {name}"
            if name not in known:
                raise ValueError(f"recode of {self.what} must make columns among {', '.join(known)}, got {name!r}")
            keys = how.keys() if isinstance(how, dict) else set()
            whole = keys == {"constant"} or ("from" in keys and keys - {"from"} in WITH)
            if not whole or any(type(how[key]) is not kind for key, kind in KINDS.items() if key in keys):
                raise ValueError(f"{where}: must be {FORM}, got {reprlib.repr(how)}")
            for code in (how.get("constant", ""), *how.get("values", {}).values(), *how.get("ranges", {}).values()):
                if type(code) not in (str, int):
                    raise ValueError(f"{where}: codes must be text or whole numbers, got {reprlib.repr(code)}")
            ranges = sorted((_bounds(text, where), text) for text in how.get("ranges", {}))
            for ((_, end), text), ((start, _), other) in pairwise(ranges):
                if start <= end:
                    raise ValueError(f"{where}: ranges must not overlap, got {text} and {other}")

    def __fspath__(self) -> str:
        return self.path

    __str__ = __fspath__

    @property
    def made_of(self) -> set[str]:
        """Columns of the file from which recoded columns are made."""
        return {how["from"] for how in self.columns.values() if "from" in how}

    def selected(self, given: Iterable[str]) -> str:
        """Return the SQL of all columns, null if a value has no code; refuse a file that lacks a source column."""
        columns, made = list(given), {name.upper() for name in self.columns}
        for name, how in self.columns.items():
            if "from" in how and how["from"].upper() not in map(str.upper, columns):
                have = f"the columns of {self.path}: {', '.join(columns)}"
                raise ValueError(f"recode of {self.what}, {name}: must be from one of {have}; got {how['from']!r}")
        kept = [in_sql(column) for column in columns if column.upper() not in made]
        return ", ".join([*(f"{_expression(how)} as {in_sql(name)}" for name, how in self.columns.items()), *kept])

    def check(self, rows: str, fetch: Callable[[str], Frame]) -> None:
        """Refuse columns in which a value has no code; one pass over the rows checks all columns."""
        coded = [(name, how) for name, how in self.columns.items() if "from" in how and len(how) > 1]
        missing = [(in_sql(how["from"]), f"filter (where {_expression(how)} is null)") for _, how in coded]
        parts = (
            f"count(*) {null} as n{j}, min({given}::varchar) {null} as v{j}" for j, (given, null) in enumerate(missing)
        )
        tally = fetch(f"select {', '.join(parts)} from {rows}") if coded else Frame({})
        broken = []
        for j, (name, how) in enumerate(coded):
            if number := int(tally[f"n{j}"][0]):
                rule = f"must be a whole number, for {name}" if "add" in how else f"must have a code for {name}"
                broken.append(broken_rule(f"{how['from']} {rule}", number, [tally[f"v{j}"][0]]))
        if broken:
            raise ValueError(f"{self.what}: {'; '.join(broken)}")


def broken_rule(rule: str, rows: int, values: Sequence[str | None]) -> str:
    """Return the message about a broken rule: the number of rows that break it, and examples of values."""
    examples = ", ".join("a missing value" if value is None else reprlib.repr(value) for value in values)
    return f"{rule}; {rows:,} {'row' if rows == 1 else 'rows'} broke it, such as {examples}"


def recoded(what: str, source: str | os.PathLike[str], recode: Any, known: Iterable[str | None]) -> Any:
    """Return a file with columns recoded by a .json file if there is one."""
    if recode is None:
        return source
    return Recoded(what, os.fspath(source), read_named(recode, "recode"), [name for name in known if name])


def in_sql(name: str, mark: str = '"') -> str:
    """Return the quoted name of a column in SQL, or with another `mark` a quoted text."""
    return mark + name.replace(mark, 2 * mark) + mark


def _bounds(text: str, where: str = "") -> tuple[float, float]:
    match = RANGE.fullmatch(text)
    low, high = (float(match[1] or -math.inf), float(match[2] or math.inf)) if match else (1, 0)
    if low > high:
        raise ValueError(f'{where}: a range must be written as "0-17", "85-" or "-17", got {text!r}')
    return low, high


def _expression(how: Mapping[str, Any]) -> str:
    """Return the SQL of a recoded column, null if a value has no code."""
    if "constant" in how:
        return in_sql(str(how["constant"]), MARK)
    given = in_sql(how["from"])
    if len(how) == 1:
        return given
    text = f"coalesce({given}::varchar, '')"
    if "add" in how:
        whole = f"regexp_full_match({text}, '-?[0-9]{{1,15}}')"
        return f"case when {whole} then try_cast({text} as hugeint) + {how['add']} end"
    number = f"try_cast({text} as double)"
    conditions = []
    for word, code in how.get("values", {}).items():
        condition = f"{text} = {in_sql(word, MARK)}"
        if "ranges" in how and re.fullmatch(NUMBER, word):  # so that 999.0 is 999, not in a range
            condition += f" or {number} = '{word}'::double"
        conditions.append((condition, code))
    for low, high, code in ((*_bounds(written), code) for written, code in how.get("ranges", {}).items()):
        inside = f"{number} between '{low!r}'::double and '{high!r}'::double"
        conditions.append((f"isfinite({number}) and {inside}", code))
    whens = " ".join(f"when {condition} then {in_sql(str(code), MARK)}" for condition, code in conditions)
    return f"case when false then '' {whens} end"  # valid SQL even without codes
