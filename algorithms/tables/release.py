"""What the releases of all systems share: one folder, whole or absent, with a ledger and a record of what was run."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from importlib import metadata
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.noise import Draws, counted
from algorithms.schema import Schema
from algorithms.tables.columns import Columns
from algorithms.tables.files import CELLS, RECORD, check_folder, whole_folder, write_rows, write_texts
from algorithms.tables.intake.reading import tell

__all__ = ["Published", "Recorded", "check_distinct", "described", "level_names", "margins", "published", "tell_rare"]

RARE = 10  # people by which a fitted group is off at least where it is named
MOST_NAMED = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class Recorded(ABC):
    """What a release of some system says of itself: its ledger, and a record of what was run.

    `listed` is whether the areas are from a public list, not read from the data, and `reading` how columns were read,
    without any value. Noise is that of `draws`: a release that was not made `of` any claims nothing of its noise.
    """

    listed: bool = False
    reading: Mapping[str, Any] = field(default_factory=dict)
    draws: Draws = field(default_factory=Draws, init=False, repr=False)

    def of(self, draws: Draws) -> Self:
        """Return the release as made of draws that were counted: whether its noise is secure is theirs to say."""
        object.__setattr__(self, "draws", draws)
        return self

    @property
    @abstractmethod
    def ledger(self) -> Any:
        """What the release promises to lose at most; its text is written."""

    @property
    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What was run, for the record."""

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """What the tables hold, for ``columns.csv``."""

    @property
    def provenance(self) -> dict[str, Any]:
        """What made the release, the version included."""
        return {
            **self.about,
            **({"reading": dict(self.reading)} if self.reading else {}),
            "csv": CELLS,
            "software": f"plaudit {metadata.version('plaudit')}",
        }

    def write_record(self, staged: Path) -> None:
        """Write ledger, record and what the columns hold into a folder."""
        rows = (
            (file, one.name, one.meaning, one.unit, "; ".join(one.codes), "noisy" if one.noisy else "exact")
            for file, columns in self.columns.items()
            for one in columns
        )
        write_rows(staged / "columns.csv", ("FILE", "COLUMN", "MEANING", "UNIT", "CODES", "VALUES"), rows)
        about = json.dumps(self.provenance, indent=4)
        write_texts(staged, {"ledger.txt": str(self.ledger), RECORD: about})

    @property
    def noise(self) -> str:
        """Where the noise came from, in words."""
        return self.draws.source

    @property
    def areas_from(self) -> str:
        """Where the list of areas came from, in words."""
        return "from a public list" if self.listed else "read from the data, and taken as public"


@dataclass(frozen=True, eq=False, kw_only=True)
class Published(Recorded):
    """A release of some system, to be written: the data are not in it."""

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write all that is published, or nothing."""
        self.check()
        with whole_folder(folder) as staged:
            self.write_tables(staged)
            self.write_record(staged)

    def check(self) -> None:
        """Refuse what is too large to be written; by default nothing."""

    @abstractmethod
    def write_tables(self, staged: Path) -> None:
        """Write the tables into a folder."""


Options = ParamSpec("Options")
Made = TypeVar("Made", bound=Published)


def published(make: Callable[Options, Made]) -> Callable[Options, Made]:
    """Decorate what makes a release with an option `out`: draws are counted, and a new folder is written."""

    @wraps(make)
    def run(*arguments: Options.args, **options: Options.kwargs) -> Made:
        out: Any = options.get("out")
        if out is not None:
            check_folder(out)
        with counted() as draws:
            made = make(*arguments, **options)
        made.of(draws)
        if out is not None:
            made.write(out)
        return made

    return run


def described(tree: Hierarchy, names: Sequence[str], schema: Schema) -> dict[str, Any]:
    """Return how many areas each level has, and the levels of each attribute, for the record."""
    return {
        "levels": dict(zip(names, np.diff(tree.offsets).tolist(), strict=True)),
        "attributes": {name: list(levels) for name, levels in schema.attributes.items()},
    }


def level_names(areas: Sequence[str] | None, tree: Hierarchy) -> tuple[str, ...]:
    """Return the names of the levels below the root, by default ``level 1``, ``level 2``, ..."""
    names = tuple(f"level {j}" for j in range(1, tree.depth + 1)) if areas is None else tuple(areas)
    if len(names) != tree.depth:
        raise ValueError(f"areas must name each of {tree.depth} levels below the root, got {', '.join(names)}")
    return names


def check_distinct(columns: Sequence[str]) -> None:
    """Refuse columns of a file with the same name, whatever its case."""
    if twice := [name for name in columns if [other.upper() for other in columns].count(name.upper()) > 1]:
        raise ValueError(f"columns of a file must have different names, got {twice[0]!r} twice")


def tell_rare(schema: Schema, exact: Sequence[NDArray[Any]], fitted: Sequence[NDArray[Any]], made: str) -> None:
    """Name on stderr the levels of which what was fitted to noisy counts has twice as many people as the data, or half.

    Each has the people by level of each attribute. Both numbers are shown to whoever may see the data.
    """
    off = [
        f"{level} of {name} ({new:,} {made}, {old:,} in the data)"
        for (name, levels), olds, news in zip(schema.attributes.items(), exact, fitted, strict=True)
        for level, old, new in zip(levels, olds.tolist(), news.tolist(), strict=True)
        if abs(new - old) >= RARE and max(new, old) > 2 * max(0, min(new, old))
    ]
    if off:
        more = f", and {len(off) - MOST_NAMED} more" if len(off) > MOST_NAMED else ""
        tell(f"warning: rare groups are far off: {'; '.join(off[:MOST_NAMED])}{more}")


def margins(schema: Schema, cells: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the people by level of each attribute, of people by cell, shape (cells,)."""
    table, axes = cells.reshape(schema.shape), range(len(schema.shape))
    return [table.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]
