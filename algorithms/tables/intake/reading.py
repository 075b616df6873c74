"""How the columns of data were read, for the record, and on stderr in words beside what looks wrong in them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from algorithms.schema import Schema
from algorithms.tables.duck import DuckDB
from algorithms.tables.intake.expressions import GROUPS
from algorithms.tables.opening import GIVEN, in_sql
from algorithms.tables.recoding import Recoded
from audit.io.text import printable

__all__ = ["in_words", "reading_of", "tell", "tell_reading", "tell_sums"]

LONGEST = 12  # values that a line names


def reading_of(source: Any, schema: Schema) -> dict[str, Any]:
    """Return how each attribute is read: as words, codes or numbers, and of which column of the file it is made."""
    made, reading = source.columns if isinstance(source, Recoded) else {}, {}
    for name, levels in schema.attributes.items():
        kind = "numbers" if name in schema.edges else "codes" if name in schema.codes else "words"
        meant = dict(zip(schema.codes[name], levels, strict=True)) if kind == "codes" else list(levels)
        reading[name] = {**made.get(name, {}), kind: meant}
    return reading


def in_words(how: Mapping[str, Any]) -> str:
    """Return how a column is read or made, as `reading_of` has it, in words."""
    codes = {**how.get("values", {}), **how.get("ranges", {})}
    parts = [f"from {how['from']}"] if "from" in how else []
    parts += [f"+ {how['add']}"] if "add" in how else []
    parts += [f"from the constant {how['constant']}"] if "constant" in how else []
    parts += [f"({_listed(codes)})"] if codes else []
    parts += [f"as {kind}: {_listed(how[kind])}" for kind in ("words", "codes", "numbers") if kind in how]
    return " ".join(parts)


def _listed(values: Mapping[str, Any] | Sequence[str]) -> str:
    pairs = values.items() if isinstance(values, Mapping) else ()
    words = [f"{code or 'empty'} = {label}" for code, label in pairs] or list(values)
    return ", ".join(words if len(words) <= LONGEST else [*words[: LONGEST - 2], "...", words[-1]])


def tell(line: str) -> None:
    """Write a line to stderr."""
    print(printable(line), file=sys.stderr)


def tell_reading(database: DuckDB, source: Any, schema: Schema) -> None:
    """Say how each column was read; of numbers from which to which, for both ends are exact and are not released."""
    for j, (name, how) in enumerate(reading_of(source, schema).items()):
        words = f"{name} read {in_words(how)}"
        if "numbers" in how or "ranges" in how:
            column, rows = (f"x{j}", GROUPS) if "numbers" in how else (in_sql(how["from"]), f"recoded_{GIVEN}")
            number = f"try_cast({column} as double)"
            ends = database.fetch(f"select min({number}) as least, max({number}) as most from {rows}")
            if ends["most"][0] is not None:
                words += f"; from {ends['least'][0]:.15g} to {ends['most'][0]:.15g}"
            levels, met = schema.shape[j], database.fetch(f"select count(distinct p{j}) as n from {GROUPS}")["n"][0]
            if met == 1 < levels:
                words += f", all in one of {levels} intervals: are they codes of these?"
        tell(words)


def tell_sums(database: DuckDB, areas: Sequence[str]) -> None:
    """Warn of an area with as many people as all others of its family, or all whose codes begin with its own.

    They are three at least. The area is not refused: a refusal that depends on counts would give them away.
    """
    for level, name in enumerate(areas):
        codes = ", ".join(f"a{j}" for j in range(level + 1))
        families: dict[tuple[str, ...], dict[str, float]] = {}
        for *around, code, number in database.fetch(
            f"select {codes}, sum(n)::double from {GROUPS} group by all"
        ).rows():
            families.setdefault(tuple(around), {})[code] = number
        for family in families.values():
            parts: dict[str, list[float]] = {}
            for code, number in family.items():
                for begins in {code[:end] for end in range(1, len(code))} & family.keys():
                    parts.setdefault(begins, []).append(number)
            people = sum(family.values())
            for code, number in family.items():
                is_all, inside = len(family) > 3 and 2 * number == people, parts.get(code, [])
                if number and (is_all or (len(inside) > 2 and number == sum(inside))):
                    tell(f"warning: {name} {code} has as many people as others together: is it their sum?")
