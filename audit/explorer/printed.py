"""Tables of a sheet in words and numbers, for whoever has no script: the terminal, and the page without JavaScript."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from audit.explorer.sheet import Sheet, Shown, State

__all__ = ["Printed", "printed", "words_in"]


@dataclass(frozen=True)
class Printed:
    """A table: its title, what it is of, its head, its rows, and how many columns of them are names."""

    title: str
    caption: str
    head: list[str]
    rows: list[list[str]]
    names: int


def words_in(language: str) -> dict[str, str]:
    """Return the words of the explorer in a language."""
    text = (resources.files("audit.explorer") / "static" / f"words.{language}.json").read_text("utf-8")
    return json.loads(text)  # type: ignore[no-any-return]


def printed(sheet: Sheet, state: State, words: Mapping[str, str]) -> Iterator[Printed]:
    """Yield the tables of a sheet at a whole state, and its totals; rows and columns without results are left out."""
    results = sheet.compute(state)
    cells: dict[str, Any] = {**state, **{key: value for key, value in results.items() if value is not None}}
    for table in sheet.tables:
        rows = {
            row.place: [words[group.label], words[row.label]]
            for group in table.groups
            for row in group.rows
            if any(results.get(f"{row.place}/{column.quantity}") is not None for column in table.columns)
        }
        head = [words[table.names], words[table.rows]]
        for column in table.columns:
            values = {place: cells.get(f"{place}/{column.quantity}") for place in rows}
            if any(value is not None for value in values.values()):
                head.append(words[column.label])
                for place, value in values.items():
                    rows[place].append(_text(value, column.shown, words))
        if rows:
            yield Printed(words[sheet.title], words[table.label], head, [*rows.values()], 2)
    shown = [total for total in sheet.totals if total.key in cells]
    delta = next((f"δ = {cells[key]:g}" for key in sheet.settings if key.endswith("/delta")), "δ")
    totals = [[words[total.label].replace("δ", delta), _text(cells[total.key], total.shown, words)] for total in shown]
    head = [words["page.compared"], words["page.value"]]
    yield Printed(words[sheet.title], words.get(f"{sheet.title}.totals", words["page.totals"]), head, totals, 1)


def _text(value: Any, shown: Shown, words: Mapping[str, str]) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return words["page.yes" if value else "page.no"]
    if isinstance(value, str):
        return words.get(value, value)
    if shown == "guess":
        if 0.999 < value < 1:
            return words["page.guess.nearly"]
        return words["page.guess"].replace("{number}", f"{math.ceil(1000 * value - 1e-9) / 10:.1f}")
    if shown == "share":
        return f"{value:.2%}"
    if shown == "whole":
        return f"{value:,.0f}"
    if shown == "epsilon":
        return f"{value:.3f}"
    return f"{value:.6f}" if shown == "budget" and value >= 1e-6 else f"{value:.5g}"
