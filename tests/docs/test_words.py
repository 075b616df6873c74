"""The README, the tutorials and the how-to guides are easy to read."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT

EASY = 60.0  # Flesch's reading ease: from 60 on it is plain English
GUIDES = [path for room in ("tutorials", "how-to") for path in sorted((DOCS / room).glob("*.md"))]
EASY_PAGES = [ROOT / "README.md", *(path for path in GUIDES if path.stem != "index")]
UNREAD = (  # settings of a page, code, comments, tables and headings, pictures, targets of links, names, numbers
    *(r"(?s)\A---\n.*?\n---\n", r"(?ms)^```.*?^```$", r"(?s)<!--.*?-->", r"(?m)^[|#:].*$"),
    *(r"!\[[^]]*\]\([^)]*\)", r"(?<=\])\([^)]*\)", r"`[^`]*`", r"[^\s()]*\d[^\s.,:;()]*", r"[\[\]*]"),
)


def syllables(word: str) -> int:
    """Return about how many syllables a word has: on README and docs 1% more than the CMU dictionary counts."""
    sounds = re.sub(r"(?<![aeiouyl])e$|(?<=[^aeioulydt])ed$|(?<=[^aeiouylsxzcg])es$", "", word.lower())
    return max(1, len(re.findall("[aeiouy]+", sounds)) + len(re.findall(r"[iu]a|io(?!n)|sm|ea(?=s?$)", sounds)))


def reading_ease(text: str) -> float:
    """Return Flesch's reading ease (1948) of a page. A paragraph or an item of a list also ends a sentence."""
    for what in UNREAD:
        text = re.sub(what, "", text)
    read = [one for one in re.split(r"[.!?](?=\s)|\n\s*\n|\n- ", text) if len(one.split()) > 1]
    words = re.findall(r"[A-Za-z']+", " ".join(read))
    return 206.835 - 1.015 * len(words) / len(read) - 84.6 * sum(map(syllables, words)) / len(words)


@pytest.mark.parametrize("page", EASY_PAGES, ids=lambda page: page.stem)
def test_what_guides_a_user_is_easy_to_read(page: Path) -> None:
    assert reading_ease(page.read_text("utf-8")) >= EASY


def test_a_hard_paragraph_is_hard_to_read() -> None:  # or all pages would pass
    assert (
        reading_ease("""plaudit's methodology facilitates the quantification of empirical privacy degradation by
        instantiating differentially private algorithms on neighboring databases, whereupon statistically rigorous
        lower confidence limits are established and compared with the mathematically guaranteed parameters.""")
        < 0
    )
    assert reading_ease("We run it twice. Then we say how much it lost. `quantification` [so](of_degradation.md)") > 90
