"""One word for one thing: no page uses a word of `words.toml`, which names the word to write; messages: test_house."""

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


@pytest.mark.parametrize("one", WORDS, ids=lambda one: one["wrong"])
def test_every_word_is_found_where_it_is_no_code(one: dict[str, str]) -> None:
    assert any(found.endswith(one["write"]) for found in wrong(one["wrong"], "page"))
    assert wrong(f"`{one['wrong']}`", "page") == []
