"""Where every cell of the workbook stands: of each sheet a worksheet that is read, and hidden ones of steps between.

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

from audit.explorer.sheet import Explored, Shown, Table

__all__ = ["Cell", "Layout", "Place", "Worksheet", "cell_value", "lay_out", "resolved"]

Kind = Literal["title", "note", "help", "heading", "name", "head", "label", "beside", "input", "result", "sentence",
               "step", "warning"]  # fmt: skip
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
        from xlsxwriter.utility import xl_rowcol_to_cell  # of the extra `xlsx`

        address: str = xl_rowcol_to_cell(self.row, self.column)
        return address


@dataclass(frozen=True)
class Cell:
    """A cell: what it is, what stands in it, and how a number is written."""

    kind: Kind
    content: Any
    shown: Shown = "text"
    known: Any = None  # of a formula: its value, for programs that compute nothing; of an input: the `Input`


@dataclass
class Worksheet:
    """A worksheet: its cells by row and column, and how many rows and columns stay in sight."""

    name: str
    cells: dict[tuple[int, int], Cell] = field(default_factory=dict)
    frozen: tuple[int, int] = (1, 0)
    row: int = 0
    hidden: bool = False  # at first

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
        self.by_key = {setting.key: setting for setting in self.sheet.inputs}

    def number(self, worksheet: Worksheet, column: int, key: str, shown: Shown) -> None:
        """Set the formula of a result, or where it stands already."""
        value = self.results.get(key)
        value = self.words.get(value, value) if isinstance(value, str) else value
        kind: Kind = "sentence" if shown == "text" else "result"
        if key in self.numbers:
            worksheet.put(column, Cell(kind, f"[{key}]", shown, value))
        elif key in self.formulas:
            self.numbers[key] = worksheet.put(column, Cell(kind, self.formulas[key], shown, value))

    def entry(self, worksheet: Worksheet, column: int, key: str, shown: Shown = "number") -> None:
        """Set an input."""
        self.inputs[key] = worksheet.put(column, Cell("input", cell_value(self.state[key]), shown, self.by_key[key]))

    def help(self, label: str) -> str:
        """Return the sentence beside a term."""
        return self.words.get(f"{label}.help", "")


def cell_value(value: Any) -> Any:
    """Return the value of an input as its cell holds it."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def lay_out(explored: Explored, words: Mapping[str, str]) -> Layout:
    """Return the worksheets of a sheet: one of settings, totals and tables, and hidden ones of steps."""
    layout = Layout(explored, words)
    sheet, name = layout.sheet, TEXT.sub("", words[f"{layout.sheet.title}.short"])
    front = Worksheet(name)
    layout.worksheets.append(front)
    front.put(0, Cell("title", words[sheet.title]))
    if sheet.confidential:
        front.row += 1
        front.put(0, Cell("warning", words["page.confidential"]))
    for label in sheet.about:
        front.row += 1
        front.put(0, Cell("note", words[label]))
    front.row += 1
    front.put(0, Cell("note", " ".join(words[f"workbook.{place}"] for place in range(1, 6))))
    _settings(layout, front)
    _totals(layout, front)
    for table in sheet.tables:
        if table.action:  # lists of totals, which a cell does not take
            continue
        front.row += 1
        front.put(0, Cell("heading", words[table.label]))
        front.row += 1
        if note := layout.help(table.label):
            front.put(0, Cell("note", note))
            front.row += 1
        _table(layout, front, table)
    rest = [key for key in layout.formulas if key not in layout.numbers]
    with_steps = {_place(key) for key in rest if "[" in str(layout.formulas[key])}
    for kind in ("steps", "numbers"):
        if keys := [key for key in rest if (_place(key) in with_steps) is (kind == "steps")]:
            _steps(layout, Worksheet(f"{name} {kind}", hidden=True), words[f"workbook.{kind}"], keys)
    return layout


def resolved(formula: str, layout: Layout, worksheet: str) -> str:
    """Return a formula of a worksheet with addresses in place of keys."""

    def address(match: re.Match[str]) -> str:
        key = match.group(1)
        if key.startswith("words "):
            return '"' + layout.words[key.removeprefix("words ")].replace('"', '""') + '"'
        first, _, last = key.partition(":")
        place = layout.inputs[key.removeprefix("in ")] if key.startswith("in ") else layout.numbers[first]
        end = f":{layout.numbers[last].address}" if last else ""
        return (place.address if place.worksheet == worksheet else str(place)) + end

    return f"={NAME.sub(address, formula)}"


def _settings(layout: Layout, front: Worksheet) -> None:
    """Set all inputs that stand in no table, but for files and for the names of presets, which change no number."""
    front.row += 2
    front.put(0, Cell("heading", layout.words["page.settings"]))
    tables, words, presets = layout.sheet.tables, layout.words, tuple(layout.sheet.presets)
    in_tables = {key for table in tables for group in table.groups for key in group.inputs}
    in_tables |= {f"{row.place}/{column.quantity}" for table in tables for group in table.groups for row in group.rows
                  for column in table.columns if column.entry}  # fmt: skip
    for setting in layout.sheet.inputs:
        if setting.key in in_tables or setting.kind == "codes" or (presets and setting.choices == presets):
            continue
        front.row += 1
        front.put(0, Cell("label", words[setting.label]))
        layout.entry(front, 2, setting.key)
        labels = {name: f"{setting.label}.{name}" for name in setting.choices}
        choices = "; ".join(f"{name}: {words[label]}" for name, label in labels.items() if label in words)
        front.put(3, Cell("help", " ".join(filter(None, (choices and f"{choices}.", layout.help(setting.label))))))
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


def _table(layout: Layout, worksheet: Worksheet, table: Table) -> None:
    """Set heads, and the rows of each group under its name, with what belongs to all of them in its first row."""
    words, places = layout.words, [row.place for group in table.groups for row in group.rows]
    entries = [column for column in table.columns if column.entry]
    results = [column for column in table.columns if not column.entry]
    quantities = {column.quantity for column in results}
    # What may be set is computed where it is not.
    also = [column for column in entries if column.quantity not in quantities
            and any(f"{place}/{column.quantity}" in layout.formulas for place in places)]  # fmt: skip
    heads = [(column, True) for column in entries] + [(column, False) for column in (*also, *results)]
    worksheet.put(0, Cell("name", words[table.names]))
    worksheet.put(1, Cell("name", words[table.rows]))
    for at, (column, entry) in enumerate(heads, 2):
        text = words[column.label]
        worksheet.put(at, Cell("head", f"{text} ({words['workbook.set']})" if entry else text))
    for group in table.groups:
        worksheet.row += 1
        worksheet.put(0, Cell("heading", words[group.label]))
        for at, key in enumerate(group.inputs):
            worksheet.put(2 + 2 * at, Cell("beside", words[layout.by_key[key].label]))
            layout.entry(worksheet, 3 + 2 * at, key)
        totals = [total for total in group.results if total.key in layout.formulas]
        for at, total in enumerate(totals, len(group.inputs)):
            worksheet.put(2 + 2 * at, Cell("beside", words[total.label]))
            layout.number(worksheet, 3 + 2 * at, total.key, total.shown)
        for row in group.rows:
            worksheet.row += 1
            worksheet.put(0, Cell("label", words[group.label]))
            worksheet.put(1, Cell("label", words[row.label]))
            for at, (column, entry) in enumerate(heads, 2):
                key = f"{row.place}/{column.quantity}"
                if entry and key in layout.by_key:
                    layout.entry(worksheet, at, key, column.shown)
                elif not entry:
                    layout.number(worksheet, at, key, column.shown)
    worksheet.row += 1


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
                step = Cell("step", layout.formulas[key], "number", layout.results.get(key))
                layout.numbers[key] = worksheet.put(1 + column, step)
