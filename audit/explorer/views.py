"""Outputs of a sheet with a state: HTML page, workbook and tables in the terminal; also its default command."""

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
    """Compute the numbers of ``plaudit explore NAME``, starting from the published settings.

    Parameters
    ----------
    name : str
        Name of the sheet: ``"phsafe"``, ``"topdown"`` or ``"counts"``.
    state : mapping of str to number, str, bool or None
        Inputs that differ from the published ones, by their keys ``system/query/level/quantity`` on the page. An
        input that is None is computed.

    Returns
    -------
    Explored
        `results` has all numbers by key; `to_html` writes the page.

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
    """Check before the work that files can be written: a page may replace a page, a workbook nothing."""
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
    """A sheet with a state, which has at least the inputs that differ from the published ones."""

    sheet: Sheet
    state: State = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Value]:
        """The values of all inputs."""
        return self.sheet.checked(self.state)

    @property
    def results(self) -> dict[str, Result]:
        """All numbers by key."""
        return self.sheet.compute(self.values)

    def to_html(self, path: str | Path) -> None:
        """Write the page, opened at this sheet and state, atomically; replace only a page of the explorer."""
        check_files(html=Path(path))
        sheets = [self.sheet if sheet.name == self.sheet.name else sheet for sheet in plugin("systems").sheets()]
        page = build_page(self.sheet, self.state, sheets)
        write_atomically(Path(path), page, PAGE, private=self.sheet.confidential)

    def to_xlsx(self, path: str | Path) -> None:
        """Write the workbook of this sheet and state atomically; the file must not exist."""
        if self.sheet.workbook is None:
            raise ValueError(f"{self.sheet.name} has no workbook: its page computes")
        check_files(xlsx=Path(path))
        content = self.sheet.workbook(self, {**words_in("en"), **self.sheet.words})
        write_atomically(Path(path), content, None, private=self.sheet.confidential)

    def show(self, *, html: Path | None = None, xlsx: Path | None = None, opened: bool = False) -> None:
        """Write the page and open it, write the workbook, or, without files, print the tables."""
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
            number, cells = place >= table.names, [row[place] for row in table.rows]
            parts = [*name.split(), *(part for cell in cells for part in ([cell] if number else cell.split()))]
            widest = max(map(len, parts), default=0)  # neither a number nor a word is broken
            lines.add_column(name, justify="right" if number else "left", min_width=widest)
        for row in table.rows:
            lines.add_row(*row)
        console().print(lines, crop=False)


def command(sheet: Sheet) -> Callable[..., int]:
    """Return the command of a sheet: ``plaudit explore NAME --set budget=0.5``."""

    def explore(
        settings: Annotated[
            list[str] | None,
            typer.Option("--set", help="A setting, as NAME=VALUE; repeatable. An unknown name prints the list."),
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
    """Parse NAME=VALUE, where NAME is a unique suffix of the key of an input, into key and value."""
    name, _, value = text.partition("=")
    matches = [setting for setting in sheet.inputs if f"/{setting.key}".endswith(f"/{name}")]
    if len(matches) != 1:
        keys = ", ".join(setting.key for setting in sheet.inputs)
        raise ValueError(f"--set takes NAME=VALUE, where NAME is the end of one of {keys}, got {text!r}")
    parsed: Value = value
    with suppress(ValueError):  # `check` rejects text that is no number
        parsed = {"integer": int, "number": float}.get(matches[0].kind, str)(value)
    return matches[0].key, matches[0].check(parsed)
