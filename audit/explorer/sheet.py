"""Define sheets of the explorer: inputs, tables and charts as data, and the function that computes all numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from audit.installed import plugin

__all__ = [
    "Chart",
    "Column",
    "Group",
    "Input",
    "Result",
    "Row",
    "Sheet",
    "State",
    "Table",
    "Total",
    "Value",
    "check_files",
    "explored",
]

MOST_NUMBERS = 1000  # of one input

Value = float | int | str | bool | None
Result = float | int | str | None
State = Mapping[str, Value]
Shown = Literal["number", "whole", "share", "budget", "epsilon", "guess", "text"]
"""Formats: rounded, whole, percentage, 6 decimals, 3 decimals, times in 100 (rounded up), or the key of a text."""


@dataclass(frozen=True, kw_only=True)
class Input:
    """A setting that the reader can change."""

    key: str  # of its cell, ``system/query/level/quantity``
    # "codes" are a text of distinct codes separated by blanks, and "numbers" one of whole numbers.
    kind: Literal["number", "integer", "flag", "choice", "codes", "numbers"]
    label: str  # key of the text of its name; LABEL.help is the key of a sentence, LABEL.CHOICE of a choice's name
    value: Value = None  # published value; None if `optional`: the sheet computes the cell of this key
    least: float = -math.inf
    most: float = math.inf  # included
    choices: tuple[str, ...] = ()  # allowed choices or codes
    unit: str = ""  # key of its text
    optional: bool = False  # it may be empty; then the sheet computes the value
    clears: tuple[str, ...] = ()  # optional inputs that become empty when this one is set, as they express the same

    def check(self, value: Any) -> Value:
        """Return the value if it is valid, else raise a ValueError."""
        parts = value.split(" ") if isinstance(value, str) else []
        if self.kind == "flag":
            fits = isinstance(value, bool)
        elif self.kind == "choice":
            fits = value in self.choices
        elif self.kind == "codes":
            fits = bool(parts) and len({*parts} & {*self.choices}) == len(parts)
        elif self.kind == "numbers":
            fits = 0 < len(parts) <= MOST_NUMBERS and all(re.fullmatch("[1-9][0-9]{0,8}", part) for part in parts)
        else:
            kinds = int if self.kind == "integer" else (int, float)
            fits = isinstance(value, kinds) and not isinstance(value, bool) and self.least <= value <= self.most
        if not fits and not (self.optional and value is None):
            raise ValueError(f"{self.key} must be {self.rule}, got {value!r:.60}")
        return value  # type: ignore[no-any-return]

    @property
    def rule(self) -> str:
        """Description of valid values."""
        return {
            "flag": "true or false",
            "choice": f"one of {', '.join(self.choices)}",
            "codes": f"of the codes {' '.join(self.choices)}, each once",
            "numbers": f"up to {MOST_NUMBERS} whole numbers from 1 to 999999999, with blanks between",
            "integer": f"a whole number from {self.least:g} to {self.most:g}",
            "number": f"a number from {self.least:g} to {self.most:g}",
        }[self.kind]


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table with cells of one quantity, entered or computed."""

    quantity: str
    label: str
    shown: Shown = "number"
    entry: bool = False
    decides: bool = False  # whether the decision sheet shows it if scenarios differ in it


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a table. `place` is ``system/query/level``; with a quantity it forms the key of a cell."""

    place: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """Rows under one heading, which shows inputs and results for all of them."""

    label: str
    rows: tuple[Row, ...]
    inputs: tuple[str, ...] = ()
    results: tuple[Total, ...] = ()
    folded: bool = False  # whether rows are hidden while the results of the heading are empty


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells in rows and columns. A cell without a result is empty; empty columns are hidden."""

    label: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    names: str = "page.item"  # key of the heading above names of groups
    rows: str = "page.level"  # key of the heading above names of rows
    action: str = ""  # key of the text of a button, which sets the inputs that the script's `spend(state, results)`
    # returns; such a table is closed at first, and has only rows with a result or an entry


@dataclass(frozen=True, kw_only=True)
class Total:
    """A named result outside of the tables; `main` ones are always visible."""

    key: str
    label: str
    shown: Shown = "number"
    main: bool = False


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing of cells, with a table of the same numbers."""

    kind: Literal["bars", "curve"]  # a point of bars is one cell, a share; of a curve, two: x and y
    label: str
    points: tuple[tuple[str, ...], ...]  # of bars: keys of text and cell; of a curve: keys of both cells
    axes: tuple[tuple[str, Shown], ...]  # for each number of a point: key of its label, and its format
    current: tuple[str, ...] = ()  # of a curve: cells of the point of the current settings
    inputs: tuple[str, ...] = ()  # keys of inputs above the drawing, which choose its subject


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One sheet of the page."""

    name: str  # as in ``plaudit explore NAME``
    title: str  # key of its text
    about: tuple[str, ...]  # keys of the texts of paragraphs
    inputs: tuple[Input, ...]  # all settings of the reader; their values are the state of the page
    compute: Callable[[State], dict[str, Result]]  # returns every result by key; the script must give the same
    script: tuple[str, str]  # package and file of the JavaScript, which sets ``sheets.NAME`` to an object with
    # ``compute(state, data)``; optional: ``read(bytes, data)`` and ``write(state, data)`` of `file`, and ``spend``
    settings: tuple[str, ...] = ()  # keys of inputs above the tables
    answer: Callable[[Mapping[str, Any], Mapping[str, Result], Mapping[str, str]], str] | None = None  # maps state,
    # results and texts to a line above printed tables; an empty line is not printed
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    totals: tuple[Total, ...] = ()
    presets: Mapping[str, State] = field(default_factory=dict)  # published states by name, as differences from the
    # values of the inputs; the input ``NAME/all/all/preset`` has the name of the preset with which the reader started
    file: str = ""  # name of the file of settings, if there is one
    words: Mapping[str, str] = field(default_factory=dict)  # further texts in any language: names that a user gave
    data: Mapping[str, Any] = field(default_factory=dict)  # further input of the script, as JSON
    confidential: bool = False  # whether `data` discloses confidential data
    workbook: Callable[[Any, Mapping[str, str]], bytes] | None = None  # writes a workbook of (Explored, texts)

    @property
    def published(self) -> dict[str, Value]:
        """The state with which the page starts."""
        return {setting.key: setting.value for setting in self.inputs}

    def checked(self, state: State) -> dict[str, Value]:
        """Return a complete, checked state; missing values are those of the preset, else the published ones."""
        inputs = {setting.key: setting for setting in self.inputs}
        if unknown := [key for key in state if key not in inputs]:
            raise ValueError(f"{self.name} has no input {unknown[0]!r}")
        preset = self.presets.get(str(state.get(f"{self.name}/all/all/preset")), {})
        return {**self.published, **preset, **{key: inputs[key].check(value) for key, value in state.items()}}

    def command(self) -> Callable[..., int]:
        """Return the function of ``plaudit explore NAME`` for a sheet whose system does not define one."""
        command: Callable[..., int] = plugin("explorer").command(self)
        return command


def check_files(html: Path | None, xlsx: Path | None) -> None:
    """Check before the work that a page and a workbook can be written to these files."""
    plugin("explorer").check_files(html, xlsx)


def explored(sheet: Sheet, state: State) -> Any:
    """Return a sheet with a state, like `audit.explore`."""
    return plugin("explorer").Explored(sheet, state)
