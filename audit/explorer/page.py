"""Build the page: all sheets in one self-contained HTML file, with their tables for browsers without scripts."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib import metadata, resources
from typing import Any

import jinja2
from markupsafe import Markup

from audit.explorer.sheet import Input, Sheet, Shown, State, Table
from audit.io.files import Kind

__all__ = ["PAGE", "Printed", "build_page", "printed", "words_in"]

SIGNATURE = '<meta name="generator" content="plaudit explore">'
PAGE = Kind("a page of plaudit explore", b"<!doctype html>", SIGNATURE.encode())
POLICY = "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'"
SCRIPTS = ("laws.js", "files.js", "state.js", "charts.js", "page.js")  # scripts of sheets come before the last
LANGUAGES = ("en", "de")
ASIDE = re.compile(r"^ +(//.*\n)?|^(//.*)?\n| +// .*$", re.MULTILINE)  # removed: indentation, comments, empty lines


def build_page(opened: Sheet, state: State, sheets: Sequence[Sheet]) -> str:
    """Return the HTML page of all sheets, opened at one sheet and state; the same settings give the same page."""
    words = {language: {**words_in(language), **opened.words} for language in LANGUAGES}
    first = words[LANGUAGES[0]]
    style = _static("page.css")
    *shared, last = (_static(name) for name in SCRIPTS)
    own = [resources.files(sheet.script[0]).joinpath(sheet.script[1]).read_text("utf-8") for sheet in sheets]
    script = ASIDE.sub("", "\n".join(['"use strict";', *shared, *own, last]))
    book = {
        "opened": opened.name,
        "start": {key: value for key, value in opened.checked(state).items() if value != opened.published[key]},
        "sheets": [_description(sheet) for sheet in sheets],
        "words": words,
    }
    content = json.dumps(book, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _environment.get_template("page.html.j2").render(
        signature=Markup(SIGNATURE),
        policy=POLICY.format(_digest(script), _digest(style)),
        style=Markup(style),
        script=Markup(script),
        # Escaped, so that it cannot end the script element.
        book=Markup(content.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")),
        words=first,
        languages={language: texts["page.language"] for language, texts in words.items()},
        sheets=sheets,
        drawn=[_sheet_html(sheet, first) for sheet in sheets],
        printed=[table for sheet in sheets for table in printed(sheet, sheet.published, first)],
        confidential=any(sheet.confidential for sheet in sheets),
        version=metadata.version("plaudit"),
    )


def _static(name: str) -> str:
    return (resources.files("audit.explorer") / "static" / name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _description(sheet: Sheet) -> dict[str, Any]:
    description = {name: getattr(sheet, name) for name in ("name", "title", "presets", "file", "data")}
    description["charts"] = [asdict(part) for part in sheet.charts]
    description["inputs"] = [
        {
            part.name: value
            for part in fields(setting)
            if part.name not in ("label", "unit") and (value := getattr(setting, part.name)) != part.default
        }
        for setting in sheet.inputs
    ]
    return description


def _sheet_html(sheet: Sheet, words: Mapping[str, str]) -> Markup:
    """Return the HTML of a sheet without its numbers, which the script fills in."""

    def named(setting: Input, choice: str) -> str:
        if f"{setting.label}.{choice}" in words:
            return f"{setting.label}.{choice}"
        return " ".join(key if (key := f"{sheet.name}.{part}") in words else part for part in choice.split("/"))

    def terms(table: Table) -> dict[str, str]:
        """Return the terms to explain, of columns, inputs and totals, with the keys of the totals."""
        columns = [column.label for column in table.columns]
        terms = dict.fromkeys([*columns, *(inputs[key].label for group in table.groups for key in group.inputs)], "")
        for total in (total for group in table.groups for total in group.results if total.label not in columns):
            terms[total.label] = f"{terms.get(total.label, '')} {total.key}".strip()
        return terms

    inputs = {setting.key: setting for setting in sheet.inputs}
    text = _environment.get_template("sheet.html.j2").render(
        sheet=sheet,
        inputs=inputs,
        results=sheet.compute(sheet.published).keys(),
        tabled={
            f"{row.place}/{column.quantity}"
            for table in sheet.tables
            for column in table.columns
            if not column.entry
            for group in table.groups
            for row in group.rows
        },
        preset=f"{sheet.name}/all/all/preset",
        known=words.__contains__,
        named=named,
        terms=terms,
    )
    return Markup(text)


@dataclass(frozen=True)
class Printed:
    """A table: title of its sheet, caption, head, rows, and the number of leading columns that are names."""

    title: str
    caption: str
    head: list[str]
    rows: list[list[str]]
    names: int


def words_in(language: str) -> dict[str, str]:
    """Return the texts of the explorer in a language, by key."""
    return json.loads(_static(f"words.{language}.json"))  # type: ignore[no-any-return]


def printed(sheet: Sheet, state: State, words: Mapping[str, str]) -> Iterator[Printed]:
    """Yield the tables of a sheet at a complete state, and its totals, without empty rows and columns."""
    results = sheet.compute(state)
    cells: dict[str, Any] = {**state, **{key: value for key, value in results.items() if value is not None}}
    for table in sheet.tables:
        rows = {
            row.place: [words[group.label], words[row.label]]
            for group in table.groups
            for row in group.rows
            if any(results.get(f"{row.place}/{column.quantity}") is not None for column in table.columns)
        }
        head = [words[table.names], words[table.rows]]
        for column in table.columns:
            values = {place: cells.get(f"{place}/{column.quantity}") for place in rows}
            if any(value is not None for value in values.values()):
                head.append(words[column.label])
                for place, value in values.items():
                    rows[place].append(_text(value, column.shown, words))
        if rows:
            yield Printed(words[sheet.title], words[table.label], head, [*rows.values()], 2)
    shown = [total for total in sheet.totals if total.key in cells]
    delta = next((f"δ = {cells[key]:g}" for key in sheet.settings if key.endswith("/delta")), "δ")
    totals = [[words[total.label].replace("δ", delta), _text(cells[total.key], total.shown, words)] for total in shown]
    head = [words["page.compared"], words["page.value"]]
    yield Printed(words[sheet.title], words.get(f"{sheet.title}.totals", words["page.totals"]), head, totals, 1)


def _text(value: Any, shown: Shown, words: Mapping[str, str]) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return words["page.yes" if value else "page.no"]
    if isinstance(value, str):
        return words.get(value, value)
    if shown == "guess":
        if 0.999 < value < 1:
            return words["page.guess.nearly"]
        return words["page.guess"].replace("{number}", f"{math.ceil(1000 * value - 1e-9) / 10:.1f}")
    if shown == "share":
        return f"{value:.2%}"
    if shown == "whole":
        return f"{value:,.0f}"
    if shown == "epsilon":
        return f"{value:.3f}"
    return f"{value:.6f}" if shown == "budget" and value >= 1e-6 else f"{value:.5g}"


_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("audit.explorer", "static"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
