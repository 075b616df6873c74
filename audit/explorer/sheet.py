"""What a sheet of the explorer is: inputs, tables and charts as data, and the function that computes every number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from audit.installed import offered

__all__ = [
    "Chart",
    "Column",
    "Explored",
    "Group",
    "Input",
    "Result",
    "Row",
    "Sheet",
    "State",
    "Table",
    "Total",
    "Value",
]

Value = float | int | str | bool | None
Result = float | int | str | None
State = Mapping[str, Value]
Shown = Literal["number", "whole", "share", "budget", "epsilon", "text"]
"""How it is written: in 4 digits, whole, as a percentage, with 6 or 3 decimals; text is a key of the words."""


@dataclass(frozen=True, kw_only=True)
class Input:
    """What a reader may set.

    Attributes
    ----------
    key : str
        Of its cell, ``system/query/level/quantity``.
    kind : {"number", "integer", "flag", "choice", "codes"}
        What its value is; codes are a text of them with blanks between, each once.
    value : Value
        The published one. None, where `optional`: the sheet computes the cell of this key.
    label : str
        Key of the words: the name. With ``.help`` behind it, a sentence; with ``.CHOICE``, the name of a choice.
    least, most : float
        Range of a number, both included.
    choices : tuple of str
        Of a choice; codes that there are.
    unit : str
        Key of the words, or empty.
    optional : bool
        Whether it may be empty, so that what the sheet computes holds.
    clears : tuple of str
        Optional inputs that become empty when this one is set, because it says the same in another way.
    """

    key: str
    kind: Literal["number", "integer", "flag", "choice", "codes"]
    value: Value
    label: str
    least: float = -math.inf
    most: float = math.inf
    choices: tuple[str, ...] = ()
    unit: str = ""
    optional: bool = False
    clears: tuple[str, ...] = ()

    def check(self, value: Any) -> Value:
        """Return a value that the input may have.

        Raises
        ------
        ValueError
            If it is of another kind, or out of range.
        """
        if value is None and self.optional:
            return None
        if self.kind == "flag":
            fits = isinstance(value, bool)
        elif self.kind == "choice":
            fits = value in self.choices
        elif self.kind == "codes":
            codes = value.split(" ") if isinstance(value, str) else []
            fits = bool(codes) and len({*codes} & {*self.choices}) == len(codes)
        else:
            kinds = int if self.kind == "integer" else (int, float)
            fits = isinstance(value, kinds) and not isinstance(value, bool) and self.least <= value <= self.most
        if not fits:
            raise ValueError(f"{self.key} must be {self.rule}, got {value!r}")
        return value  # type: ignore[no-any-return]

    @property
    def rule(self) -> str:
        """What its value must be, in words."""
        if self.kind == "flag":
            return "true or false"
        if self.kind == "choice":
            return f"one of {', '.join(self.choices)}"
        if self.kind == "codes":
            return f"of the codes {' '.join(self.choices)}, each once"
        return f"a {'whole ' * (self.kind == 'integer')}number from {self.least:g} to {self.most:g}"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table: cells of one quantity, to be entered or computed."""

    quantity: str
    label: str
    shown: Shown = "number"
    entry: bool = False


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a table: `place` is ``system/query/level``, before the quantity of each column."""

    place: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """Rows under one heading, with inputs and results beside it that belong to all of them.

    The rows of a `folded` group are not shown while the results beside the heading are empty.
    """

    label: str
    rows: tuple[Row, ...]
    inputs: tuple[str, ...] = ()
    results: tuple[Total, ...] = ()
    folded: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells in rows and columns. A cell without a result is empty; a column all of whose cells are is not shown.

    `rows` is the key of the words of what names a row.
    """

    label: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    rows: str = "page.level"


@dataclass(frozen=True, kw_only=True)
class Total:
    """A result with a name of its own; `main` ones stay in sight."""

    key: str
    label: str
    shown: Shown = "number"
    main: bool = False


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing of cells, with a table of the same numbers.

    Attributes
    ----------
    kind : {"bars", "curve"}
        Bars have one cell a point, a share; a curve two: across and up.
    label : str
        Key of the words.
    points : tuple of tuple of str
        Of bars: key of the words, key of the cell. Of a curve: keys of the cells across and up, in order.
    axes : tuple of (str, Shown)
        For each number of a point the key of its words, and how it is written.
    current : tuple of str
        Of a curve: the cells of the point where the settings are.
    inputs : tuple of str
        Inputs above the drawing, that say what it is of.
    """

    kind: Literal["bars", "curve"]
    label: str
    points: tuple[tuple[str, ...], ...]
    axes: tuple[tuple[str, Shown], ...]
    current: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One sheet of the page.

    Attributes
    ----------
    name : str
        As in ``plaudit explore NAME``.
    title, about : str
        Keys of the words; about is of one or more paragraphs, ``about.1`` and so on.
    inputs : tuple of Input
        Everything that a reader may set: the state of the page.
    compute : callable
        Returns every result of a state by its key. It alone says what is true; the script must give the same.
    script : tuple of str
        Package and file of the JavaScript: it sets ``sheets.NAME`` to an object with ``compute(state, data)``, and may
        offer ``read(bytes, data)`` and ``write(state, data)``, of a file of settings named `file`.
    settings : tuple of str
        Keys of inputs that stand above the tables.
    tables, charts, totals : tuple
        What is shown.
    presets : mapping of str to mapping of str to Value
        Published states by name: what differs in them from the values of the inputs. The input ``NAME/all/all/preset``,
        a choice of them, says which one the reader started from, and so what is marked as changed.
    file : str
        Name of the file of settings, if there is one.
    data : mapping
        What the script is given besides the state, as JSON.
    formulas : str
        Module and function, as ``"module:function"``, that returns for the workbook a formula of each result and the
        steps to it, by key; see `audit.explorer.layout`.
    confidential : bool
        Whether `data` tells of the data at hand.
    """

    name: str
    title: str
    about: tuple[str, ...]
    inputs: tuple[Input, ...]
    compute: Callable[[State], dict[str, Result]]
    script: tuple[str, str]
    formulas: str
    settings: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    totals: tuple[Total, ...] = ()
    presets: Mapping[str, State] = field(default_factory=dict)
    file: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    confidential: bool = False

    @property
    def published(self) -> dict[str, Value]:
        """The state that the page starts from."""
        return {one.key: one.value for one in self.inputs}

    def checked(self, state: State) -> dict[str, Value]:
        """Return a whole state: what is not given is as published, in the preset if one is given.

        Raises
        ------
        ValueError
            If there is no such input, or a value breaks its rule.
        """
        known = {one.key: one for one in self.inputs}
        if unknown := [key for key in state if key not in known]:
            raise ValueError(f"{self.name} has no input {unknown[0]!r}")
        preset = self.presets.get(str(state.get(f"{self.name}/all/all/preset")), {})
        return {**self.published, **preset, **{key: known[key].check(value) for key, value in state.items()}}

    def command(self) -> Callable[..., int]:
        """Return what ``plaudit explore NAME`` runs, with typed options, for a sheet that has no command of its own."""
        made: Callable[..., int] = offered("explorer").command(self)
        return made


@dataclass(frozen=True)
class Explored:
    """A sheet at a state: what a command or a call of `explore` gives.

    Attributes
    ----------
    sheet : Sheet
        The sheet.
    state : mapping of str to Value
        Inputs that differ from the published ones, at least.
    """

    sheet: Sheet
    state: State = field(default_factory=dict)

    @property
    def whole(self) -> dict[str, Value]:
        """A value of every input."""
        return self.sheet.checked(self.state)

    @property
    def results(self) -> dict[str, Result]:
        """Every number by its key."""
        return self.sheet.compute(self.whole)

    def to_html(self, path: str | Path) -> None:
        """Write the page, opened at this sheet and state, whole or not at all; over a page of the explorer only.

        Raises
        ------
        ValueError
            If something else is there, the name does not end in ``.html``, or an input breaks its rule.
        OSError
            If it cannot be written.
        """
        offered("explorer").write_page(self, Path(path))

    def to_xlsx(self, path: str | Path) -> None:
        """Write the workbook of all sheets, with this one at its state, whole or not at all, where nothing is.

        Raises
        ------
        ValueError
            If something is there, the name does not end in ``.xlsx``, an input breaks its rule, or the extra `xlsx` is
            not installed.
        OSError
            If it cannot be written.
        """
        offered("explorer").write_workbook(self, Path(path))

    def show(self, *, html: Path | None = None, xlsx: Path | None = None, opened: bool = False) -> None:
        """Do what a command was asked for: write the page, and open it, and the workbook; or else print the tables.

        Raises
        ------
        ValueError
            If a page is to be opened that is not written, or as of `to_html` and `to_xlsx`.
        """
        if opened and html is None:
            raise ValueError("--open goes with --html FILE")
        if html is None and xlsx is None:
            offered("explorer").print_tables(self)
        if xlsx is not None:
            offered("explorer").check_workbook(xlsx)  # before the page is written
        if html is not None:
            self.to_html(html)
            print(f"Wrote {html}.")
        if xlsx is not None:
            self.to_xlsx(xlsx)
            print(f"Wrote {xlsx}.")
        if html is not None and opened:
            import webbrowser

            webbrowser.open(html.resolve().as_uri())
