"""What is cited: addresses and numbers of papers have the form they must have, and one work is cited in one way."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from urllib.parse import urlsplit

from tests.docs.pages import ROOT

FOLDERS = ("audit", "algorithms", "experiments", "docs", "figures", "examples")
CITING = [
    *(path for name in FOLDERS for path in sorted((ROOT / name).rglob("*")) if path.suffix in (".py", ".md", ".R")),
    *sorted(ROOT.glob("*.md")),
    ROOT / "CITATION.cff",
    ROOT / "tests/reliability/rows.toml",  # whose sources docs/reliability.md shows
]
ARXIV = r"\d\d(0[1-9]|1[0-2])\.\d{5}"
ADDRESSES = {"arxiv.org": rf"/abs/{ARXIV}", "doi.org": r"/10\.\d{4,9}/\S+", "github.com": r"/[\w.-]+/[\w.-]+(/\S+)?"}


def texts() -> dict[Path, str]:
    """Return what the files say, with strings and comments of several lines put together."""
    read = {path: path.read_text("utf-8") for path in CITING if "generated" not in path.parts}
    return {path: re.sub(r"\s+", " ", re.sub(r"[\"']\s*\n\s*f?[\"']|\n#", " ", text)) for path, text in read.items()}


def wrong_address(url: str) -> bool:
    parts = urlsplit(url)
    form = ADDRESSES.get(parts.netloc.removeprefix("www."), r"(/[\w./+~-]*)?")
    named = re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", parts.netloc)
    return parts.scheme != "https" or named is None or re.fullmatch(form, parts.path) is None


WRONG = [
    "http://doi.org/10.1000/182",
    "https://arxiv.org/abs/2613.17454",
    "https://localhost/a",
    "https://a.example/x y",
]


def test_addresses_have_the_form_of_their_sites() -> None:
    assert all(map(wrong_address, WRONG))
    found = {url for text in texts().values() for url in re.findall(r"https?://[^][ )(>\"'`|,]+", text)}
    outside = {url.rstrip(".;") for url in found if not re.search(r"127\.0\.0\.1|localhost|\.w3\.org/", url)}
    assert len(outside) > 10
    assert [url for url in sorted(outside) if wrong_address(url)] == []


def test_numbers_of_papers_have_their_form() -> None:
    numbers = [found for text in texts().values() for found in re.findall(r"(?i)\barxiv[: ]+(\S*\d\S*)", text)]
    assert len(numbers) > 5
    assert [number for number in numbers if re.fullmatch(rf"{ARXIV}\W*", number) is None] == []


def test_one_work_is_cited_by_one_title_and_year() -> None:
    """Titles are quoted after authors; the year is before the title, or soon after it."""
    years, spelled = defaultdict(set), defaultdict(set)
    for text in texts().values():
        cited = [
            *re.findall(r'[a-z.,]\)?,? "([A-Z][^"]{20,160}?),?",?( [A-Z][^".]{0,40},)?,? ((?:19|20)\d\d)\b', text),
            *((title, "", year) for year, title in re.findall(r'\(((?:19|20)\d\d)\), "([A-Z][^"]{20,160}?),?"', text)),
        ]
        for title, _, year in cited:
            spelled[title.casefold()].add(title)
            years[title.casefold()].add(year)
    assert len(spelled) > 40
    assert {title for title in spelled if len(spelled[title]) > 1 or len(years[title]) > 1} == set()
    assert [(a, b) for a in spelled for b in spelled if a != b and b.startswith(a)] == []  # nor by half of its title
