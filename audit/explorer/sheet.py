"""What a sheet of the explorer is: inputs, tables and charts as data, and the function that computes every number."""

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
"""How it is written: in 4 digits, whole, as a percentage, with 6 or 3 decimals, of 100 and rounded up; or a key."""


@dataclass(frozen=True, kw_only=True)
class Input:
    """What a reader may set."""

    key: str  # of its cell, ``system/query/level/quantity``
    kind: Literal["number", "integer", "flag", "choice", "codes", "numbers"]  # the last two are texts with blanks
    # between: codes each once, whole numbers any
    label: str  # key of the words: the name; with ``.help`` behind it, a sentence; with ``.CHOICE``, a choice's name
    value: Value = None  # as published; None, where `optional`: the sheet computes the cell of this key
    least: float = -math.inf
    most: float = math.inf  # included
    choices: tuple[str, ...] = ()  # of a choice; codes that there are
    unit: str = ""  # key of the words
    optional: bool = False  # it may be empty, so that what the sheet computes holds
    clears: tuple[str, ...] = ()  # optional inputs that become empty when this one is set: it says the same otherwise

    def check(self, value: Any) -> Value:
        """Return a value that the input may have; another kind, or one out of range, is a ValueError."""
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
        """What its value must be, in words."""
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
    """A column of a table: cells of one quantity, to be entered or computed."""

    quantity: str
    label: str
    shown: Shown = "number"
    entry: bool = False
    decides: bool = False  # whether it stands on the decision sheet, where scenarios differ in it


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a table: `place` is ``system/query/level``, before the quantity of each column."""

    place: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """Rows under one heading, with inputs and results beside it that belong to all of them."""

    label: str
    rows: tuple[Row, ...]
    inputs: tuple[str, ...] = ()
    results: tuple[Total, ...] = ()
    folded: bool = False  # whether rows are not shown while the results beside the heading are empty


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells in rows and columns. A cell without a result is empty; a column all of whose cells are is not shown."""

    label: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    names: str = "page.item"  # key of the words: what names a group
    rows: str = "page.level"  # key of the words: what names a row
    action: str = ""  # key of the words of a button, which sets what the script's `spend(state, results)` returns; such
    # a table is closed at first, and has rows with a result or an entry only


@dataclass(frozen=True, kw_only=True)
class Total:
    """A result with a name of its own; `main` ones stay in sight."""

    key: str
    label: str
    shown: Shown = "number"
    main: bool = False


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing of cells, with a table of the same numbers."""

    kind: Literal["bars", "curve"]  # bars have one cell a point, a share; a curve two: across and up
    label: str
    points: tuple[tuple[str, ...], ...]  # of bars: key of the words, key of the cell; of a curve: keys of both cells
    axes: tuple[tuple[str, Shown], ...]  # for each number of a point the key of its words, and how it is written
    current: tuple[str, ...] = ()  # of a curve: the cells of the point where the settings are
    inputs: tuple[str, ...] = ()  # above the drawing: what it is of


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One sheet of the page."""

    name: str  # as in ``plaudit explore NAME``
    title: str  # key of the words
    about: tuple[str, ...]  # keys of the words of paragraphs
    inputs: tuple[Input, ...]  # everything that a reader may set: the state of the page
    compute: Callable[[State], dict[str, Result]]  # every result by its key: the truth, which the script must give too
    script: tuple[str, str]  # package and file of the JavaScript: it sets ``sheets.NAME`` to an object with
    # ``compute(state, data)``, and may offer ``read(bytes, data)`` and ``write(state, data)`` of `file`, and ``spend``
    settings: tuple[str, ...] = ()  # keys of inputs that stand above the tables
    answer: Callable[[Mapping[str, Any], Mapping[str, Result], Mapping[str, str]], str] | None = None  # what a state,
    # its results and the words say in one line, above tables that are printed; empty: nothing
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    totals: tuple[Total, ...] = ()
    presets: Mapping[str, State] = field(default_factory=dict)  # published states by name: what differs from the
    # values of the inputs; the input ``NAME/all/all/preset``, a choice of them, says which one the reader started from
    file: str = ""  # name of the file of settings, if there is one
    words: Mapping[str, str] = field(default_factory=dict)  # of its own, in every language: names that a user gave
    data: Mapping[str, Any] = field(default_factory=dict)  # what the script is given besides the state, as JSON
    confidential: bool = False  # whether `data` tells of the data at hand
    workbook: Callable[[Any, Mapping[str, str]], bytes] | None = None  # makes one of what is explored, and the words

    @property
    def published(self) -> dict[str, Value]:
        """The state that the page starts from."""
        return {setting.key: setting.value for setting in self.inputs}

    def checked(self, state: State) -> dict[str, Value]:
        """Return a whole state: what is not given is as published, in the preset if one is given."""
        inputs = {setting.key: setting for setting in self.inputs}
        if unknown := [key for key in state if key not in inputs]:
            raise ValueError(f"{self.name} has no input {unknown[0]!r}")
        preset = self.presets.get(str(state.get(f"{self.name}/all/all/preset")), {})
        return {**self.published, **preset, **{key: inputs[key].check(value) for key, value in state.items()}}

    def command(self) -> Callable[..., int]:
        """Return what ``plaudit explore NAME`` runs, with typed options, for a sheet that has no command of its own."""
        command: Callable[..., int] = plugin("explorer").command(self)
        return command


def check_files(html: Path | None, xlsx: Path | None) -> None:
    """Refuse, before any work, files that a page or a workbook may not replace."""
    plugin("explorer").check_files(html, xlsx)


def explored(sheet: Sheet, state: State) -> Any:
    """Return a sheet at a state, as `audit.explore` does."""
    return plugin("explorer").Explored(sheet, state)
