"""How the columns of data were read, for the record, and on stderr in words beside what looks wrong in them."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from algorithms.release.duck import GIVEN, DuckDB
from algorithms.release.expressions import GROUPS, are_numbers
from algorithms.release.recoding import Recoded, in_sql
from algorithms.schema import Schema
from audit.io.text import MISSING, SUMS, printable

__all__ = ["in_words", "reading_of", "tell", "tell_reading", "tell_sums"]

KINDS = ("words", "codes", "numbers", "whole numbers")
LONGEST = 12  # values that a line names
MOST_SUBSETS = 12  # areas of a family of which all sums are looked at
FEW_FAMILIES = 1000  # of which each is looked at so
PRINTS = 2**12  # numbers of cells: with 2**40 people sums stay exact in float64
CHANCE = 1e-3  # about how often areas of a family, if independent, add up to another of it in every cell


def reading_of(source: Any, schema: Schema) -> dict[str, Any]:
    """Return how each attribute is read, and of which column of the file each column is made that a recode makes."""
    reading = {name: dict(how) for name, how in source.columns.items()} if isinstance(source, Recoded) else {}
    for name, levels in schema.attributes.items():
        kind = "numbers" if name in schema.edges else "codes" if name in schema.codes else "words"
        kind = "whole numbers" if kind == "words" and are_numbers(levels) else kind
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


def tell(line: str) -> None:
    """Write a line to stderr."""
    print(printable(line), file=sys.stderr)


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
