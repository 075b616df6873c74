"""The page: all sheets in one HTML file that needs nothing but itself, opened at one of them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from importlib import metadata, resources
from typing import Any

import jinja2
from markupsafe import Markup

from audit.explorer.printed import printed, words_in
from audit.explorer.sheet import Explored, Sheet

__all__ = ["SIGNATURE", "build_page"]

SIGNATURE = '<meta name="generator" content="plaudit explore">'  # by which a page of ours is known
POLICY = "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'"
SCRIPTS = ("laws.js", "files.js", "state.js", "charts.js", "page.js")  # those of the sheets stand before the last
LANGUAGES = ("en", "de")


def build_page(explored: Explored, sheets: Sequence[Sheet]) -> str:
    """Return the page of all sheets as HTML, opened at one and its state: the same for the same settings."""
    words = {language: words_in(language) for language in LANGUAGES}
    style = _static("page.css")
    parts = [_static(name) for name in SCRIPTS]
    parts[-1:-1] = [resources.files(sheet.script[0]).joinpath(sheet.script[1]).read_text("utf-8") for sheet in sheets]
    script = '"use strict";\n' + "\n".join(parts)
    book = {
        "opened": explored.sheet.name,
        "start": {key: value for key, value in explored.whole.items() if value != explored.sheet.published[key]},
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
        printed=[table for sheet in sheets for table in printed(sheet, sheet.published, words[LANGUAGES[0]])],
        confidential=any(sheet.confidential for sheet in sheets),
        version=metadata.version("plaudit"),
    )


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


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("audit.explorer", "static"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")
