"""The command of a sheet that has none of its own: its settings are typed by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from audit.explorer.printed import words_in
from audit.explorer.sheet import Explored, Input, Sheet, Value
from audit.io.terminal import console

__all__ = ["command"]


def command(sheet: Sheet) -> Callable[..., int]:
    """Return the command of a sheet: ``plaudit explore NAME --set budget=0.5``."""

    def explore(
        given: Annotated[
            list[str] | None,
            typer.Option("--set", help="A setting, as NAME=VALUE; several times. A wrong name lists them."),
        ] = None,
        html: Annotated[
            Path | None,
            typer.Option(help="File for the explorer, a page that needs nothing but itself; print no table."),
        ] = None,
        xlsx: Annotated[
            Path | None, typer.Option(help="File for the workbook of the same sheets, in formulas.")
        ] = None,
        opened: Annotated[bool, typer.Option("--open", help="Show the page of --html in the browser.")] = False,
    ) -> int:
        Explored(sheet, dict(_setting(sheet, text) for text in given or [])).show(html=html, xlsx=xlsx, opened=opened)
        if html is None and xlsx is None:
            console().print(words_in("en")[sheet.about[-1]])  # the neighbor relation
        return 0

    explore.__doc__ = f"{words_in('en')[sheet.title]}."
    return explore


def _setting(sheet: Sheet, text: str) -> tuple[str, Value]:
    """Return the key and value of an input; its name is as much of the end of its key as tells it from others."""
    name, _, typed = text.partition("=")
    found = [one for one in sheet.inputs if f"/{one.key}".endswith(f"/{name}")]
    if len(found) != 1:
        names = ", ".join(_name(one, sheet.inputs) for one in sheet.inputs)
        raise ValueError(f"--set takes NAME=VALUE with one of the names {names}, got {text!r}")
    return found[0].key, found[0].check(_read(found[0], typed))


def _name(one: Input, inputs: Sequence[Input]) -> str:
    """Return the end of a key that no other input has."""
    parts = one.key.split("/")
    ends = ("/".join(parts[-length:]) for length in range(1, len(parts) + 1))
    return next(end for end in ends if sum(f"/{other.key}".endswith(f"/{end}") for other in inputs) == 1)


def _read(one: Input, typed: str) -> Any:
    """Return what was typed as the kind of value that an input has; text where it is none, which is refused."""
    if one.kind not in ("number", "integer"):
        return typed
    try:
        return int(typed) if one.kind == "integer" else float(typed)
    except ValueError:
        return typed
