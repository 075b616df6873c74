"""What is made of a sheet at a state: the page, tables in the terminal, and a command where it has none of its own."""

from __future__ import annotations

from pathlib import Path

from audit.explorer.command import command
from audit.explorer.page import SIGNATURE, build_page
from audit.explorer.printed import printed, words_in
from audit.explorer.sheet import Explored
from audit.installed import offered
from audit.io.files import check_levels, replacing
from audit.io.terminal import console

__all__ = ["command", "print_tables", "write_page"]

HEAD = 4096  # bytes in which a page says that it is one


def write_page(explored: Explored, path: Path) -> None:
    """Write the page, whole or not at all, over nothing but a page of the explorer.

    Raises
    ------
    ValueError
        If something else is there, or an input breaks its rule.
    OSError
        If it cannot be written.
    """
    if (path.is_symlink() or path.exists()) and not _is_page(path):
        raise ValueError(f"--html must name a new file, or a page of plaudit explore, got {path}")
    known = offered("systems").sheets()
    page = build_page(explored, [explored.sheet if one.name == explored.sheet.name else one for one in known])
    check_levels(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, private=explored.sheet.confidential) as file:
        file.write(page.encode())


def _is_page(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return SIGNATURE.encode() in file.read(HEAD)


def print_tables(explored: Explored) -> None:
    """Print what the page shows, without what it explains."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    for table in printed(explored.sheet, explored.whole, words_in("en")):
        shown = Table(box=SIMPLE_HEAD, title=table.caption, title_justify="left")
        for place, name in enumerate(table.head):
            shown.add_column(name, justify="left" if place < table.names else "right")
        for row in table.rows:
            shown.add_row(*row)
        console().print(shown)
