"""An item of a paper, and the page that lists all of them."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from experiments.experiment import NAMES

Status = Literal["same", "close", "direction", "shown", "differs", "not to be had"]
Saved = Callable[[str], dict[str, Any]]  # name of an experiment -> its saved numbers

MEANS: dict[Status, str] = {
    "same": "the printed number, table, formula or rule, to its last digit",
    "close": "a printed number, within what is said",
    "direction": "the same signs, order and growth; the data behind the printed numbers are not public",
    "shown": "done, drawn or tested here; no number is printed",
    "differs": "measured or proved to be otherwise, or to hold only with a condition that is not printed",
    "not to be had": "and why",
}


@dataclass(frozen=True)
class Item:
    """A table, figure, equation or claim: what the paper says, where it is here, what comes out, how close."""

    place: str
    says: str
    where: str  # experiments by name, and "module:object" of functions and tests, with commas between
    how: Status
    ours: str | Callable[[Saved], str] = ""  # made from saved numbers where there are any
    printed: str = ""
    why: str = ""

    @property
    def names(self) -> list[str]:
        """What `where` names."""
        return [name.strip() for name in self.where.split(",") if name.strip()]

    @property
    def experiments(self) -> list[str]:
        """Experiments among them."""
        return [name for name in self.names if ":" not in name]

    def check(self) -> None:
        """Refuse an item without a status or a place here, and names that do not exist."""
        if self.how not in get_args(Status):
            raise ValueError(f"how must be one of {', '.join(get_args(Status))}, got {self.how!r} of {self.place}")
        if self.how == "not to be had" and not self.why:
            raise ValueError(f"what is not to be had must say why, got nothing of {self.place}")
        if self.how != "not to be had" and not self.names:
            raise ValueError(f"an item must be somewhere, got nothing of {self.place}")
        if self.experiments and isinstance(self.ours, str) and self.how in ("same", "close", "direction", "differs"):
            raise ValueError(f"numbers of an experiment must come from its file, got a text of {self.place}")
        for name in self.names:
            if ":" not in name and name not in NAMES:
                raise ValueError(f"experiments must be among those of `list`, got {name!r} of {self.place}")
            if ":" in name:
                found: Any = importlib.import_module(name.partition(":")[0])
                for part in name.partition(":")[2].split("."):
                    found = getattr(found, part)

    def line(self, saved: Saved) -> str:
        """Return the item as a row in Markdown."""
        ours = self.ours if isinstance(self.ours, str) else self.ours(saved)
        where = [f"[{name}](../figures/README.md)" if ":" not in name else f"`{_short(name)}`" for name in self.names]
        how = f"{self.how}: {self.why}" if self.why else self.how
        return f"| {' | '.join([self.place, self.says, ', '.join(where), self.printed, ours, how])} |"


def _short(name: str) -> str:
    """Return a function by its name, a test by its file and name."""
    module, _, inside = name.partition(":")
    return f"{module.rpartition('.')[2]}: {inside}" if module.startswith("tests.") else f"{module}.{inside}"


@dataclass(frozen=True)
class Paper:
    """A paper and its items, in its order."""

    title: str
    items: Sequence[Item]


def page(papers: Iterable[Paper], saved: Saved) -> str:
    """Return the page: every item of every paper, and how many of each status there are."""
    known = list(papers)
    counts = Counter(item.how for paper in known for item in paper.items)
    parts = [
        "# The five papers, item by item",
        "Written by `python -m experiments papers`; do not edit. Every table, figure, equation and claim of the five "
        "papers, with the function, experiment or test that has it here, what is printed, what comes out here, and how "
        "close that is. Numbers of ours are those of the saved files in [figures/](../figures/README.md). TopDown is "
        "in none of the five: what is held against its own publications is in the same folder.",
        "\n".join(
            ["| how close | means | items |", "|---|---|---|"]
            + [f"| {how} | {words} | {counts[how]} |" for how, words in MEANS.items()]
        ),
    ]
    for paper in known:
        lines = ["| where | what it says | here | printed | ours | how close |", "|---" * 6 + "|"]
        parts += [f"## {paper.title}", "\n".join([*lines, *(item.line(saved) for item in paper.items)])]
    return "\n\n".join(parts) + "\n"
