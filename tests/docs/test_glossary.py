"""One word for one thing: pages and messages use no word of `words.toml`, which names the word to write."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT

WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))["words"]
OTHERS = [ROOT / page for page in ("docs/papers.md", "CONTRIBUTING.md", "examples/README.md", "tests/README.md")]
# Blocks of code, comments, code, targets of links, expressions of templates.
NO_PROSE = re.compile(r"^```.*?^```$|<!--.*?-->|`[^`]*`|(?<=\])\([^)]*\)|\{[{%].*?[%}]\}", re.MULTILINE | re.DOTALL)


def wrong(text: str, place: str) -> list[str]:
    text, used = " ".join(NO_PROSE.sub("`", text).split()), [one for one in WORDS if place not in one.get("but", ())]
    return [f"{m[0]}: write {one['write']}" for one in used for m in re.finditer(one["pattern"], text, re.IGNORECASE)]


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_one_word_for_one_thing(page: Path) -> None:
    assert wrong(page.read_text("utf-8"), str(page.relative_to(ROOT))) == []


def messages(path: Path) -> str:
    """Return what a file may show a user: strings with a space that are no docstring and no list of names."""
    if path.suffix != ".py":
        return path.read_text("utf-8")
    nodes = [*ast.walk(ast.parse(path.read_bytes()))]
    apart = [node.value for node in nodes if isinstance(node, ast.Expr) or getattr(node, "attr", "") == "split"]
    shown = [node.value for node in nodes if isinstance(node, ast.Constant) and node not in apart]
    return "\n".join(text for text in shown if isinstance(text, str) and " " in text.strip())


def test_messages_use_one_word_for_one_thing() -> None:  # every string of the source, two seconds
    paths = [path for package in ("audit", "algorithms", "experiments") for path in (ROOT / package).rglob("*.py")]
    paths += [path for kind in ("*.toml", "words.*.json", "*.j2") for path in (ROOT / "audit").rglob(kind)]
    assert {str(path): found for path in paths if (found := wrong(messages(path), "messages"))} == {}


@pytest.mark.parametrize("one", WORDS, ids=lambda one: one["wrong"])
def test_every_word_is_found_where_it_is_no_code(one: dict[str, str]) -> None:
    assert any(found.endswith(one["write"]) for found in wrong(one["wrong"], "page"))
    assert wrong(f"`{one['wrong']}`", "page") == []
