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

    def cells(self, named: dict[str, Any]) -> list[str]:
        return [self.place, self._there(named), "; ".join(self._here(named)), self._links]

    def line(self, named: dict[str, Any]) -> str:
        words = self._there(named)
        if here := "; ".join(self._here(named)):
            words += f"{'. Here: ' if self.ours else '; '}{here}"
        return f"- **{self.place}** ({self.status(named)}): {words}. {self._links}".rstrip()

    def _there(self, named: dict[str, Any]) -> str:
        printed = worded(self.printed, named)
        return f"{self.says}: {printed}" if printed and self.status(named) != "same" else self.says

    def _here(self, named: dict[str, Any]) -> list[str]:
        return [words for words in (worded(self.ours, named), self.why) if words]

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
        "Every table, figure, equation and claim of the five papers, by paper: first what differs, then the rest. The "
        "numbers come from [figures/](../figures/README.md), which also compares TopDown, in none of the five, with "
        "its own publications.",
        str(MarkdownTable(("status", "what it means", "items"), statuses)),
    ]
    heads = ("where", "what the paper says", "what comes out here", "shown by")
    for paper in papers:
        parts.append(f"## {paper.title}")
        differ = [item for item in paper.items if item.status(named) == "differs"]
        rest = [item for item in paper.items if item.status(named) != "differs"]
        if differ:
            parts += ["### What differs", str(MarkdownTable(heads, [item.cells(named) for item in differ]))]
        if rest:
            parts += ["### The rest", "\n".join(item.line(named) for item in rest)]
    return "\n\n".join(parts) + "\n"
