"""The page: all sheets in one HTML file that needs nothing but itself, opened at one of them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from audit.explorer.sheet import Explored, Result, Sheet, Shown, Value
from audit.installed import offered
from audit.io.files import check_levels, replacing

__all__ = ["SIGNATURE", "build_page", "write_page"]

SIGNATURE = '<meta name="generator" content="plaudit explore">'  # by which a page of ours is known
POLICY = "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'"
SCRIPTS = ("laws.js", "files.js", "state.js", "charts.js", "page.js")  # those of the sheets stand before the last
LANGUAGES = ("en", "de")
HEAD = 4096  # bytes in which a page says that it is one


def build_page(explored: Explored, sheets: Sequence[Sheet]) -> str:
    """Return the page of all sheets as HTML, opened at one and its state: the same for the same settings."""
    words = {language: json.loads(_static(f"words.{language}.json")) for language in LANGUAGES}
    style = _static("page.css")
    parts = [_static(name) for name in SCRIPTS]
    parts[-1:-1] = [resources.files(sheet.script[0]).joinpath(sheet.script[1]).read_text("utf-8") for sheet in sheets]
    script = '"use strict";\n' + "\n".join(parts)
    book = {
        "opened": explored.sheet.name,
        "start": explored.state,
        "sheets": [_described(sheet) for sheet in sheets],
        "words": words,
    }
    return _template().render(
        signature=Markup(SIGNATURE),
        policy=POLICY.format(_digest(script), _digest(style)),
        style=Markup(style),
        script=Markup(script),
        book=Markup(_json(book)),
        words=words[LANGUAGES[0]],
        printed=[table for sheet in sheets for table in _printed(sheet, words[LANGUAGES[0]])],
        version=metadata.version("plaudit"),
    )


def write_page(explored: Explored, path: Path) -> None:
    """Write the page, whole or not at all, over nothing but a page of the explorer.

    Raises
    ------
    ValueError
        If something else is there, or an input breaks its rule.
    OSError
        If it cannot be written.
    """
    if path.is_symlink() or path.exists():
        head = path.open("rb").read(HEAD) if path.is_file() and not path.is_symlink() else b""
        if SIGNATURE.encode() not in head:
            raise ValueError(f"--html must name a new file, or a page of plaudit explore, got {path}")
    explored.sheet.checked(explored.state)
    known = offered("systems").sheets()
    sheets = [explored.sheet if one.name == explored.sheet.name else one for one in known]
    page = build_page(explored, sheets)
    check_levels(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, private=explored.sheet.confidential) as file:
        file.write(page.encode())


def _static(name: str) -> str:
    return (resources.files("audit.explorer") / "static" / name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _json(value: Any) -> str:
    """Return JSON that no HTML can end."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _described(sheet: Sheet) -> dict[str, Any]:
    """Return what the page must know of a sheet; what says nothing is left out of inputs."""
    told = {
        name: getattr(sheet, name)
        for name in ("name", "title", "about", "settings", "presets", "file", "data", "confidential")
    }
    told |= {name: [asdict(part) for part in getattr(sheet, name)] for name in ("tables", "charts", "totals")}
    told["inputs"] = [
        {part.name: value for part in fields(one) if (value := getattr(one, part.name)) != part.default}
        for one in sheet.inputs
    ]
    return told


@dataclass(frozen=True)
class Printed:
    """A table for readers without JavaScript: what is published, and what it means."""

    title: str
    caption: str
    head: list[str]
    rows: list[list[str]]
    names: int


def _printed(sheet: Sheet, words: dict[str, str]) -> Iterable[Printed]:
    state = sheet.published
    cells: dict[str, Any] = state | {key: value for key, value in sheet.compute(state).items() if value is not None}
    title = words[sheet.title]
    for table in sheet.tables:
        columns = [
            column
            for column in table.columns
            if any(
                cells.get(f"{row.place}/{column.quantity}") is not None for group in table.groups for row in group.rows
            )
        ]
        rows = [
            [words[group.label], words[row.label]]
            + [_text(cells.get(f"{row.place}/{column.quantity}"), column.shown, words) for column in columns]
            for group in table.groups
            for row in group.rows
        ]
        head = [words["page.item"], words["page.level"], *(words[column.label] for column in columns)]
        yield Printed(title, words[table.label], head, rows, 2)
    totals = [[words[one.label], _text(cells[one.key], one.shown, words)] for one in sheet.totals if one.key in cells]
    yield Printed(title, words["page.totals"], [words["page.item"], words["page.value"]], totals, 1)


def _text(value: Value | Result, shown: Shown, words: dict[str, str]) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return words["page.yes" if value else "page.no"]
    if isinstance(value, str):
        return words.get(value, value) if shown == "text" else value
    if shown == "share":
        return f"{value:.2%}"
    if shown == "whole":
        return f"{value:,.0f}"
    return f"{value:.6f}".rstrip("0").rstrip(".") if shown == "budget" else f"{value:.5g}"


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("audit.explorer", "static"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")
