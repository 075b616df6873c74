"""One word for one thing: pages and messages use no word of `words.toml`, which names the word to write."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import PAGES, ROOT

WORDS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))["words"]
OTHERS = ("docs/papers.md", "CONTRIBUTING.md", "examples/README.md", "tests/README.md")
# Blocks of code, comments, code, targets of links, expressions of templates.
NO_PROSE = re.compile(r"^```.*?^```$|<!--.*?-->|`[^`]*`|(?<=\])\([^)]*\)|\{[{%].*?[%}]\}", re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    return " ".join(NO_PROSE.sub("`", text).split())


def strings(tree: ast.AST) -> Iterator[str]:
    """Return texts with a space, without docstrings and lists of names that are split."""
    apart = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    apart |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "split"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            yield prose(node.value) if " " in node.value.strip() else ""


def wrong(text: str, kind: str, page: str = "") -> list[str]:
    used = [one for one in WORDS if one.get(kind, True) and one.get("but") != page]
    return [f"{m[0]}: write {one['write']}" for one in used for m in re.finditer(one["pattern"], text, re.IGNORECASE)]


def test_pages_use_one_word_for_one_thing() -> None:
    pages = [*(str(page.relative_to(ROOT)) for page in PAGES), *OTHERS]
    texts = {page: prose((ROOT / page).read_text("utf-8")) for page in pages}
    assert {page: found for page, text in texts.items() if (found := wrong(text, "pages", page))} == {}


def test_messages_use_one_word_for_one_thing() -> None:  # every string of the source, a second
    source = [path for name in ("audit", "algorithms", "experiments") for path in (ROOT / name).rglob("*.py")]
    texts = {path: "\n".join(strings(ast.parse(path.read_bytes()))) for path in source}
    for kind in ("*.toml", "words.*.json", "*.j2"):
        texts |= {path: prose(path.read_text("utf-8")) for path in (ROOT / "audit").rglob(kind)}
    assert {str(path): found for path, text in texts.items() if (found := wrong(text, "messages"))} == {}


@pytest.mark.parametrize("one", WORDS, ids=lambda one: one["wrong"])
def test_every_word_is_found(one: dict[str, Any]) -> None:
    kind = "pages" if one.get("pages", True) else "messages"
    assert any(found.endswith(one["write"]) for found in wrong(prose(one["wrong"]), kind))
    assert wrong(prose(f"`{one['wrong']}`"), kind) == []
