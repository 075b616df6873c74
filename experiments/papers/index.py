"""An item of a paper, and the page that lists all of them: `papers.toml` has the items."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from experiments.experiment import NAMES, MarkdownTable, load_data, worded
from experiments.papers.values import Saved, values

STATUSES = {
    "same": "the printed number, table, formula or rule, to its last digit",
    "close": "a printed number, within what is said",
    "direction": "the same signs, growth and order (rank correlation 0.8 or more); the data behind are not public",
    "shown": "done, drawn or tested here; no number is printed",
    "differs": "measured or proved to be otherwise, or to hold only with a condition that is not printed",
    "not to be had": "and why",
}


@dataclass(frozen=True)
class Item:
    """A table, figure, equation or claim: what the paper says, where it is here, what comes out, how close."""

    place: str
    says: str
    how: str  # a status, or a template for `statuses` that gives one
    where: tuple[str, ...] = ()  # experiments by name, and "module:object" of functions and tests
    ours: str = ""  # a template for `values`, as is the next
    printed: str = ""
    why: str = ""

    def check(self) -> None:
        """Refuse an item without a status or a place here, and names that do not exist."""
        if "{" not in self.how and self.how not in STATUSES:
            raise ValueError(f"how must be one of {', '.join(STATUSES)}, got {self.how!r} of {self.place}")
        if self.how == "not to be had" and not self.why:
            raise ValueError(f"what is not to be had must say why, got nothing of {self.place}")
        if self.how != "not to be had" and not self.where:
            raise ValueError(f"an item must be somewhere, got nothing of {self.place}")
        experiments = [name for name in self.where if ":" not in name]
        if self.how in ("close", "direction") or (experiments and self.how == "same"):
            raise ValueError(f"how must be computed from saved numbers, got {self.how!r} of {self.place}")
        if self.how == "same" and self.why:
            raise ValueError(f"what is the same must have no condition, got {self.why!r} of {self.place}")
        if experiments and "{" not in self.ours and self.how not in ("shown", "not to be had"):
            raise ValueError(f"numbers of an experiment must come from its file, got a text of {self.place}")
        for name in self.where:
            if ":" not in name and name not in NAMES:
                raise ValueError(f"experiments must be among those of `list`, got {name!r} of {self.place}")
            if ":" in name:
                module, _, inside = name.partition(":")
                attrgetter(inside)(importlib.import_module(module))

    def status(self, named: dict[str, Any]) -> str:
        """Return how close it is."""
        return worded(self.how, named)

    def cells(self, named: dict[str, Any]) -> list[str]:
        """Return the item as a row of the page."""
        where = [
            f"[{name}](../figures/README.md#{name})" if ":" not in name else f"`{_short(name)}`" for name in self.where
        ]
        how, printed, ours = (worded(template, named) for template in (self.how, self.printed, self.ours))
        how += f": {self.why}" * bool(self.why)
        return [self.place, self.says, ", ".join(where), printed, ours, how]


def _short(name: str) -> str:
    """Return a function by its name, a test by its file and name."""
    module, _, inside = name.partition(":")
    return f"{module.rpartition('.')[2]}: {inside}" if module.startswith("tests.") else f"{module}.{inside}"


@dataclass(frozen=True)
class Paper:
    """A paper and its items, in its order."""

    title: str
    items: tuple[Item, ...]


def load_papers() -> list[Paper]:
    """Return the five papers."""
    return [
        Paper(paper["title"], tuple(Item(**row | {"where": tuple(row.get("where", ()))}) for row in paper["items"]))
        for paper in load_data("papers/papers.toml")["papers"]
    ]


def page(papers: Iterable[Paper], saved: Saved) -> str:
    """Return the page: every item of every paper, and how many of each status there are."""
    papers, named = list(papers), values(saved)
    counts = Counter(item.status(named) for paper in papers for item in paper.items)
    statuses = [(how, words, str(counts[how])) for how, words in STATUSES.items()]
    parts = [
        "# The five papers, item by item",
        "Written by `python -m experiments papers`; do not edit. Every table, figure, equation and claim of the five "
        "papers, with the function, experiment or test that has it here, what is printed, what comes out here, and how "
        "close that is; first what differs. Numbers of ours, and the statuses that follow from them, are those of the "
        "saved files in [figures/](../figures/README.md). TopDown is in none of the five: what is compared with its "
        "own publications is in the same folder.",
        str(MarkdownTable(("how close", "means", "items"), statuses)),
    ]
    heads = ("where", "what it says", "here", "printed", "ours", "how close")
    for paper in papers:
        parts.append(f"## {paper.title}")
        for title, differ in (("### What differs", True), ("### The rest", False)):
            items = [item for item in paper.items if (item.status(named) == "differs") == differ]
            parts += [title, str(MarkdownTable(heads, [item.cells(named) for item in items]))] if items else []
    return "\n\n".join(parts) + "\n"
