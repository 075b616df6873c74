"""What is made of a sheet at a state: the page, the workbook, tables in the terminal, a command if it has none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from audit.explorer.page import PAGE, build_page, printed, words_in
from audit.explorer.sheet import Result, Sheet, State, Value
from audit.installed import plugin
from audit.io.files import check_replaceable, write_atomically
from audit.io.terminal import console

__all__ = ["Explored", "check_files", "command", "explore"]


def explore(name: str, state: State = MappingProxyType({})) -> Explored:
    """Compute what ``plaudit explore NAME`` shows, starting from the published settings.

    Parameters
    ----------
    name : str
        The sheet: ``"phsafe"``, ``"topdown"`` or ``"counts"``.
    state : mapping of str to number, str, bool or None
        Inputs that differ from the published ones, by the keys of the page: ``system/query/level/quantity``. None
        empties an input, which is then computed.

    Returns
    -------
    Explored
        Its `results` are all numbers by their keys; `to_html` writes the page.

    Raises
    ------
    ValueError
        If there is no such sheet or input, or a value breaks its rule.

    Examples
    --------
    >>> place = "phsafe/PH3/state_A-G"  # what does half the margin of PH3 by state and race cost?
    >>> half = explore("phsafe", {f"{place}/margin": 10, f"{place}/rho": None})
    >>> round(explore("phsafe").results["phsafe/total/all/rho"], 6), round(half.results["phsafe/total/all/rho"], 6)
    (1.257281, 3.246209)
    """
    sheets = {sheet.name: sheet for sheet in plugin("systems").sheets()}
    if name not in sheets:
        raise ValueError(f"sheet must be one of {', '.join(sheets)}, got {name!r}")
    return Explored(sheets[name], sheets[name].checked(state))


def check_files(html: Path | None = None, xlsx: Path | None = None) -> None:
    """Refuse, before any work, files that cannot be written: a page replaces pages, a workbook nothing."""
    if html is not None:
        if html.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"--html must name a file that ends in .html, got {html}")
        check_replaceable(html, PAGE)
    if xlsx is not None:
        if xlsx.suffix.lower() != ".xlsx":
            raise ValueError(f"--xlsx must name a file that ends in .xlsx, got {xlsx}")
        if find_spec("xlsxwriter") is None:
            raise ValueError("a workbook needs the extra xlsx: pip install 'plaudit[xlsx]'")
        check_replaceable(xlsx)


@dataclass(frozen=True)
class Explored:
    """A sheet at a state, which has at least the inputs that differ from the published ones."""

    sheet: Sheet
    state: State = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Value]:
        """A value of every input."""
        return self.sheet.checked(self.state)

    @property
    def results(self) -> dict[str, Result]:
        """Every number by its key."""
        return self.sheet.compute(self.values)

    def to_html(self, path: str | Path) -> None:
        """Write the page, opened at this sheet and state, whole or not at all; over a page of the explorer only."""
        check_files(html=Path(path))
        sheets = [self.sheet if sheet.name == self.sheet.name else sheet for sheet in plugin("systems").sheets()]
        page = build_page(self.sheet, self.state, sheets)
        write_atomically(Path(path), page, PAGE, private=self.sheet.confidential)

    def to_xlsx(self, path: str | Path) -> None:
        """Write the workbook of this sheet at this state, whole or not at all, where nothing is."""
        if self.sheet.workbook is None:
            raise ValueError(f"{self.sheet.name} has no workbook: its page computes")
        check_files(xlsx=Path(path))
        content = self.sheet.workbook(self, {**words_in("en"), **self.sheet.words})
        write_atomically(Path(path), content, None, private=self.sheet.confidential)

    def show(self, *, html: Path | None = None, xlsx: Path | None = None, opened: bool = False) -> None:
        """Do what a command asks for: write the page and open it, write the workbook, or print the tables."""
        if opened and html is None:
            raise ValueError("--open goes with --html FILE")
        check_files(html, xlsx)
        if html is None and xlsx is None:
            _print_tables(self)
        for write, path in ((self.to_html, html), (self.to_xlsx, xlsx)):
            if path is not None:
                write(path)
                print(f"Wrote {path}.")
        if html is not None and opened:
            import webbrowser

            webbrowser.open(html.resolve().as_uri())


def _print_tables(explored: Explored) -> None:
    """Print the tables of the page, without its explanations."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    sheet, words = explored.sheet, {**words_in("en"), **explored.sheet.words}
    if sheet.answer is not None and (line := sheet.answer(explored.values, explored.results, words)):
        console().print(line, markup=False, highlight=False)
    for table in printed(sheet, explored.values, words):
        lines = Table(box=SIMPLE_HEAD, title=table.caption, title_justify="left")
        for place, name in enumerate(table.head):
            lines.add_column(name, justify="left" if place < table.names else "right")
        for row in table.rows:
            lines.add_row(*row)
        console().print(lines)


def command(sheet: Sheet) -> Callable[..., int]:
    """Return the command of a sheet: ``plaudit explore NAME --set budget=0.5``."""

    def explore(
        settings: Annotated[
            list[str] | None,
            typer.Option("--set", help="A setting, as NAME=VALUE; repeatable. A wrong name lists all."),
        ] = None,
        html: Annotated[
            Path | None, typer.Option(help="File for the explorer's page, instead of printed tables.")
        ] = None,
        opened: Annotated[bool, typer.Option("--open", help="Show the page of --html in the browser.")] = False,
    ) -> int:
        Explored(sheet, dict(_setting(sheet, text) for text in settings or [])).show(html=html, opened=opened)
        if html is None:
            console().print(words_in("en")[sheet.about[-1]])  # the neighbor relation
        return 0

    explore.__doc__ = f"{words_in('en')[sheet.title]}."
    return explore


def _setting(sheet: Sheet, text: str) -> tuple[str, Value]:
    """Return the key and value of an input; its name is an end of its key that no other input has."""
    name, _, value = text.partition("=")
    matches = [setting for setting in sheet.inputs if f"/{setting.key}".endswith(f"/{name}")]
    if len(matches) != 1:
        keys = ", ".join(setting.key for setting in sheet.inputs)
        raise ValueError(f"--set takes NAME=VALUE, where NAME is the end of one of {keys}, got {text!r}")
    parsed: Value = value
    with suppress(ValueError):  # what is no number is refused
        parsed = {"integer": int, "number": float}.get(matches[0].kind, str)(value)
    return matches[0].key, matches[0].check(parsed)
