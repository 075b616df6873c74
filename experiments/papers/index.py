"""Items of papers, read from `papers.toml`, and the page that lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from experiments.experiment import MarkdownTable, load_data, worded
from experiments.papers.values import Saved, values

PAPERS = load_data("papers/papers.toml")
STATUSES: dict[str, str] = PAPERS["statuses"]


@dataclass(frozen=True)
class Item:
    """A table, figure, equation or claim of a paper, where it is reproduced, with which result, and how close."""

    place: str
    says: str
    how: str  # a status, or a template for `statuses` that gives one
    where: tuple[str, ...] = ()  # experiments by name, and "module:object" of functions and tests
    ours: str = ""  # a template for `values`, like `printed`
    printed: str = ""
    why: str = ""

    def status(self, named: dict[str, Any]) -> str:
        return worded(self.how, named)

    def line(self, named: dict[str, Any]) -> str:
        status, printed, words = self.status(named), worded(self.printed, named), self.says
        if printed and status != "same":
            words += f": {printed}"
        if here := "; ".join(part for part in (worded(self.ours, named), self.why) if part):
            words += f"{'. **Here:** ' if self.ours or status == 'differs' else '; '}{here}"
        how = "" if status in ("differs", "same") else f" ({status})"
        return f"- **{self.place}**{how}: {words}. {self._links}".rstrip()

    @property
    def _links(self) -> str:
        return ", ".join(dict.fromkeys(map(_link, self.where)))


def _link(name: str) -> str:
    module, _, inside = name.partition(":")
    if not inside:
        return f"[{name}](../figures/README.md#{name})"
    if module.startswith("tests."):
        return f"[{module.rpartition('.')[2]}](../{module.replace('.', '/')}.py)"
    return f"`{module}.{inside}`"


@dataclass(frozen=True)
class Paper:
    """A paper and its items, in the order of the paper."""

    title: str
    items: tuple[Item, ...]


def load_papers() -> list[Paper]:
    return [
        Paper(paper["title"], tuple(Item(**row | {"where": tuple(row.get("where", ()))}) for row in paper["items"]))
        for paper in PAPERS["papers"]
    ]


def page(papers: Iterable[Paper], saved: Saved) -> str:
    papers, named = list(papers), values(saved)
    counts = Counter(item.status(named) for paper in papers for item in paper.items)
    statuses = [(how, words, str(counts[how])) for how, words in STATUSES.items()]
    parts = [
        "<!-- python -m experiments papers writes this page: edits are lost -->",
        "# The five papers, item by item",
        "Every table, figure, equation and statement of each paper: first what differs, then the rest, which is the "
        "same if nothing else is said. [The figures](../figures/README.md) have the numbers, and compare TopDown, in "
        "none of the five, with its own publications.",
        str(MarkdownTable(("status", "what it means", "items"), statuses)),
    ]
    for paper in papers:
        parts.append(f"## {paper.title}")
        for title, differ in (("What differs", True), ("The rest", False)):
            items = [item.line(named) for item in paper.items if (item.status(named) == "differs") == differ]
            parts += [f"### {title}", "\n".join(items)] if items else []
    return "\n\n".join(parts) + "\n"
