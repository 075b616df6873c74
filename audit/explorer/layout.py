"""Where every cell of the workbook stands: worksheets of settings and totals, of long tables, and of steps between.

A sheet's formulas name cells by their keys in brackets: ``[KEY]`` a result or a step, ``[in KEY]`` an input,
``[KEY:KEY]`` all from one to the other; ``[words KEY]`` is a text. What is no result of the sheet is a step, which
stands on a worksheet of steps, or of numbers if its row refers to no cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import groupby
from typing import Any, Literal

from audit.explorer.sheet import Explored, Input, Shown, Table

__all__ = ["Cell", "Place", "Worksheet", "lay_out", "resolved"]

Kind = Literal["title", "note", "help", "heading", "name", "head", "label", "beside", "input", "result", "sentence",
               "step"]  # fmt: skip
LONG = 20  # rows of a table that has a worksheet of its own
NAME, TEXT = re.compile(r"\[([^\]]+)\]"), re.compile(r"[^\w ]+")


@dataclass(frozen=True)
class Place:
    """Where a cell is: its worksheet, its row and its column, from 0 on."""

    worksheet: str
    row: int
    column: int

    def __str__(self) -> str:
        return f"'{self.worksheet}'!{self.address}"

    @property
    def address(self) -> str:
        """Such as C5."""
        letters, left = "", self.column + 1
        while left:
            left, digit = divmod(left - 1, 26)
            letters = chr(65 + digit) + letters
        return f"{letters}{self.row + 1}"

    @property
    def fixed(self) -> str:
        """The same where a formula is not of one cell alone, such as $C$5."""
        return re.sub(r"([A-Z]+)(\d+)", r"$\1$\2", self.address)


@dataclass(frozen=True)
class Cell:
    """A cell: what it is, what stands in it, and how a number is written."""

    kind: Kind
    content: Any
    shown: Shown = "text"
    known: Any = None  # of a formula: its value, for programs that compute nothing


@dataclass
class Worksheet:
    """A worksheet: its cells by row and column, and how many rows and columns stay in sight."""

    name: str
    cells: dict[tuple[int, int], Cell] = field(default_factory=dict)
    frozen: tuple[int, int] = (1, 0)
    row: int = 0

    def put(self, column: int, cell: Cell, *, row: int | None = None) -> Place:
        """Set a cell of the current row, or of another."""
        at = self.row if row is None else row
        self.cells[at, column] = cell
        return Place(self.name, at, column)


@dataclass
class Layout:
    """Worksheets of one sheet of the explorer, and where its inputs and numbers stand."""

    explored: Explored
    words: Mapping[str, str]
    worksheets: list[Worksheet] = field(default_factory=list)
    inputs: dict[str, Place] = field(default_factory=dict)
    numbers: dict[str, Place] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sheet = self.explored.sheet
        self.state, self.results = self.explored.values, self.explored.results
        module, _, function = self.sheet.formulas.partition(":")
        self.formulas: Mapping[str, str | float] = getattr(import_module(module), function)(self.sheet)
        self.by_key = {one.key: one for one in self.sheet.inputs}

    def number(self, worksheet: Worksheet, column: int, key: str, shown: Shown) -> None:
        """Set the formula of a result, or where it stands already."""
        known = self.results.get(key)
        known = self.words.get(known, known) if isinstance(known, str) else known
        kind: Kind = "sentence" if shown == "text" else "result"
        if key in self.numbers:
            worksheet.put(column, Cell(kind, f"[{key}]", shown, known))
        elif key in self.formulas:
            self.numbers[key] = worksheet.put(column, Cell(kind, self.formulas[key], shown, known))

    def entry(self, worksheet: Worksheet, column: int, one: Input, shown: Shown = "number") -> None:
        """Set an input."""
        value = self.state[one.key]
        content = {True: "yes", False: "no"}[value] if one.kind == "flag" else value  # type: ignore[index]
        self.inputs[one.key] = worksheet.put(column, Cell("input", content, shown, one))

    def help(self, label: str) -> str:
        """Return the sentence beside a term, and the choices that there are."""
        return self.words.get(f"{label}.help", "")


def lay_out(explored: Explored, words: Mapping[str, str]) -> Layout:
    """Return the worksheets of a sheet: what may be set and the totals first, then its tables, then its steps."""
    layout = Layout(explored, words)
    sheet, name = layout.sheet, TEXT.sub("", words[f"{layout.sheet.title}.short"])
    front = Worksheet(name)
    layout.worksheets.append(front)
    _heading(layout, front)
    longer = [table for table in sheet.tables if sum(len(group.rows) for group in table.groups) > LONG]
    for table in longer:
        _long_table(layout, Worksheet(f"{name} table"), table)
    _settings(layout, front)
    _totals(layout, front)
    for table in sheet.tables:
        if table not in longer:
            front.row += 1
            front.put(0, Cell("heading", words[table.label]))
            front.row += 1
            _note(front, layout.help(table.label))
            _table(layout, front, table)
    left = [key for key in layout.formulas if key not in layout.numbers]
    computed = {_place(key) for key in left if "[" in str(layout.formulas[key])}
    steps, numbers = ([key for key in left if (_place(key) in computed) is kind] for kind in (True, False))
    for kind, keys in {"steps": steps, "numbers": numbers}.items():
        if keys:
            _steps(layout, Worksheet(f"{name} {kind}"), words[f"workbook.{kind}"], keys)
    return layout


def resolved(formula: str, layout: Layout, worksheet: str) -> str:
    """Return a formula of a worksheet with addresses in place of keys."""

    def address(match: re.Match[str]) -> str:
        key = match.group(1)
        if key.startswith("words "):
            return '"' + layout.words[key.removeprefix("words ")].replace('"', '""') + '"'
        if key.startswith("in "):
            place = layout.inputs[key.removeprefix("in ")]
            last = ""
        else:
            first, _, last = key.partition(":")
            place = layout.numbers[first]
        end = f":{layout.numbers[last].address}" if last else ""
        return (place.address if place.worksheet == worksheet else str(place)) + end

    return f"={NAME.sub(address, formula)}"


def _heading(layout: Layout, front: Worksheet) -> None:
    front.put(0, Cell("title", layout.words[layout.sheet.title]))
    for label in layout.sheet.about:
        front.row += 1
        _note(front, layout.words[label], now=True)


def _note(worksheet: Worksheet, text: str, *, now: bool = False) -> None:
    """Set a sentence that runs over the columns, if there is one."""
    if text:
        worksheet.put(0, Cell("note", text))
        if not now:
            worksheet.row += 1


def _settings(layout: Layout, front: Worksheet) -> None:
    """Set all inputs that stand in no table, but for files and for the names of presets, which change no number."""
    front.row += 2
    front.put(0, Cell("heading", layout.words["page.settings"]))
    tables = layout.sheet.tables
    beside = {key for table in tables for group in table.groups for key in group.inputs}
    inside = {f"{row.place}/{one.quantity}" for table in tables for group in table.groups for row in group.rows
              for one in table.columns if one.entry}  # fmt: skip
    named = tuple(layout.sheet.presets)
    for one in layout.sheet.inputs:
        if one.key in beside | inside or one.kind == "codes" or (named and one.choices == named):
            continue
        front.row += 1
        front.put(0, Cell("label", layout.words[one.label]))
        layout.entry(front, 2, one)
        choices = "; ".join(f"{name}: {layout.words[f'{one.label}.{name}']}" for name in one.choices
                            if f"{one.label}.{name}" in layout.words)  # fmt: skip
        front.put(
            3, Cell("help", " ".join(text for text in (choices and f"{choices}.", layout.help(one.label)) if text))
        )
    front.row += 1


def _totals(layout: Layout, front: Worksheet) -> None:
    if not layout.sheet.totals:
        return
    front.row += 1
    front.put(0, Cell("heading", layout.words.get(f"{layout.sheet.title}.totals", layout.words["page.totals"])))
    for total in layout.sheet.totals:
        front.row += 1
        front.put(0, Cell("label", layout.words[total.label]))
        layout.number(front, 1 if total.shown == "text" else 2, total.key, total.shown)
        front.put(3, Cell("help", layout.help(total.label)))
    front.row += 1


def _long_table(layout: Layout, worksheet: Worksheet, table: Table) -> None:
    """Set a table on a worksheet of its own, with the main totals above the heads, which stay in sight."""
    layout.worksheets.append(worksheet)
    worksheet.put(0, Cell("title", layout.words[table.label]))
    worksheet.row += 1
    main = [total for total in layout.sheet.totals if total.main]
    for place, total in enumerate(main):
        worksheet.put(2 + place, Cell("head", layout.words[total.label]))
    worksheet.row += 1
    for place, total in enumerate(main):
        layout.number(worksheet, 2 + place, total.key, total.shown)
    worksheet.row += 1
    _table(layout, worksheet, table)
    worksheet.frozen = (4, 2)


def _table(layout: Layout, worksheet: Worksheet, table: Table) -> None:
    """Set heads, and the rows of each group under its name, with what belongs to all of them in its first row."""
    words = layout.words
    entered = [one for one in table.columns if one.entry]
    results = [one for one in table.columns if not one.entry]
    also = [one for one in entered if one.quantity not in {other.quantity for other in results}]
    heads = [(one, True) for one in entered]
    heads += [(one, False) for one in also if _computed(layout, table, one.quantity)]
    heads += [(one, False) for one in results]
    worksheet.put(0, Cell("name", words["page.item"]))
    worksheet.put(1, Cell("name", words[table.rows]))
    for place, (one, entry) in enumerate(heads):
        text = words[one.label]
        worksheet.put(2 + place, Cell("head", f"{text} ({words['workbook.set']})" if entry else text))
    for group in table.groups:
        worksheet.row += 1
        worksheet.put(0, Cell("heading", words[group.label]))
        at = 2
        for key in group.inputs:
            worksheet.put(at, Cell("beside", words[layout.by_key[key].label]))
            layout.entry(worksheet, at + 1, layout.by_key[key])
            at += 2
        for total in group.results:
            if total.key not in layout.formulas:
                continue
            worksheet.put(at, Cell("beside", words[total.label]))
            layout.number(worksheet, at + 1, total.key, total.shown)
            at += 2
        for row in group.rows:
            worksheet.row += 1
            worksheet.put(0, Cell("label", words[group.label]))
            worksheet.put(1, Cell("label", words[row.label]))
            for place, (one, entry) in enumerate(heads):
                key = f"{row.place}/{one.quantity}"
                if entry and key in layout.by_key:
                    layout.entry(worksheet, 2 + place, layout.by_key[key], one.shown)
                elif not entry:
                    layout.number(worksheet, 2 + place, key, one.shown)
    worksheet.row += 1


def _computed(layout: Layout, table: Table, quantity: str) -> bool:
    """Tell whether what may be set is a result, too, where it is not."""
    return any(f"{row.place}/{quantity}" in layout.formulas for group in table.groups for row in group.rows)


def _place(key: str) -> str:
    return key.rpartition("/")[0]


def _steps(layout: Layout, worksheet: Worksheet, title: str, keys: Sequence[str]) -> None:
    """Set formulas that have no place yet: a row for each part of their keys but the last, which is the column."""
    layout.worksheets.append(worksheet)
    worksheet.put(0, Cell("title", title))
    rows: dict[str, list[str]] = {}
    for key in keys:
        rows.setdefault(_place(key), []).append(key.rpartition("/")[2])
    for quantities, places in groupby(rows, key=lambda place: rows[place]):
        worksheet.row += 2
        worksheet.put(0, Cell("name", layout.words["workbook.step"]))
        for column, quantity in enumerate(quantities):
            worksheet.put(1 + column, Cell("head", quantity))
        for place in places:
            worksheet.row += 1
            worksheet.put(0, Cell("label", place))
            for column, quantity in enumerate(quantities):
                key = f"{place}/{quantity}"
                content, known = layout.formulas[key], layout.results.get(key)
                layout.numbers[key] = worksheet.put(1 + column, Cell("step", content, "number", known))
