"""One release of any system: noise is drawn and counted once, and one folder holds all that is published, or nothing.

Every folder has the tables of the system, ``columns.csv`` (what they hold), ``ledger.txt`` (what was spent on what,
and the promise in words) and ``release.json`` (what was run). All but what is said to be exact are functions of noisy
counts and of what is public. Every area is named, so which areas there are must be public. Time, and what is said of
data that break a rule, depend on the data and are outside every promise.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.noise import DiscreteGaussian, Draws, Rng, counted
from algorithms.release.columns import TableFile
from algorithms.release.folder import CELLS, RECORD, whole_folder, write_rows, write_texts
from algorithms.release.reading import tell
from algorithms.schema import Schema
from audit.claims import Claim
from audit.io.files import make_folder

__all__ = ["Group", "Published", "described", "level_names", "margins", "publishing", "tell_rare"]

DESCRIBED = ("FILE", "COLUMN", "MEANING", "UNIT", "CODES", "VALUES")
Group = tuple[str, Sequence[str], NDArray[Any], NDArray[Any]]  # name, levels, and people of each in the data and made
RARE = 10  # people by which a fitted group is off at least where it is named
MOST_NAMED = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class Published:
    """What a run of some system publishes, and says of itself; the data are not in it.

    `claim` is what the release promises to lose at most. `files` are the tables by their paths, `texts` other files;
    `ledger`, as text, says what is spent on what; `summary` is what the folder holds, in words, and `about` what was
    run, for the record; `reading` says how columns were read, without any value. `drawn` is what the mechanism
    returned. Noise is that of `draws`: of a release that `publishing` did not make nothing is claimed of it.
    """

    claim: Claim
    files: Mapping[str, TableFile]
    ledger: Any
    summary: str
    about: Mapping[str, Any]
    drawn: Any = None
    texts: Mapping[str, str] = field(default_factory=dict)
    separator: str = ","  # of the tables
    reading: Mapping[str, Any] = field(default_factory=dict)
    draws: Draws = field(default_factory=Draws, init=False, repr=False)

    @property
    def record(self) -> dict[str, Any]:
        """What made the release, the version included."""
        return {
            "noise": self.draws.source,
            "promise": self.claim.to_dict(),
            "relation": self.claim.relation,
            **self.about,
            **({"reading": dict(self.reading)} if self.reading else {}),
            "csv": CELLS,
            "software": f"plaudit {metadata.version('plaudit')}",
        }

    def write(self, staged: Path) -> None:
        """Write all that is published into a folder."""
        described: list[tuple[str, ...]] = []
        for name, table in self.files.items():
            make_folder((staged / name).parent)
            names = [one.name for one in table.columns]
            write_rows(staged / name, names, table.rows, separator=self.separator)
            described += [
                (name, one.name, one.meaning, one.unit, "; ".join(one.codes), "noisy" if one.noisy else "exact")
                for one in table.columns
            ]
        write_rows(staged / "columns.csv", DESCRIBED, described)
        record = json.dumps(self.record, indent=4)
        write_texts(staged, {**self.texts, "ledger.txt": f"{self.ledger}\n", RECORD: f"{record}\n"})


Made = TypeVar("Made", bound=Published)


@contextmanager
def publishing(out: str | os.PathLike[str] | None, rng: Rng) -> Iterator[Callable[[Made], Made]]:
    """Count the draws of a release; lend what writes it to the new or empty folder `out`, if one is given, or nothing.

    Whatever can be told of the folder, and of a source of noise that is missing, is told before the work.
    """
    with ExitStack() as opened:
        staged = None if out is None else opened.enter_context(whole_folder(out))
        DiscreteGaussian(1.0).sample(0, rng)
        draws = opened.enter_context(counted())

        def publish(made: Made) -> Made:
            object.__setattr__(made, "draws", draws)
            if staged is not None:
                made.write(staged)
            return made

        yield publish


def described(tree: Hierarchy, names: Sequence[str], schema: Schema, *, listed: bool) -> dict[str, Any]:
    """Return for the record where areas came from, how many each level has, and the levels of each attribute."""
    return {
        "areas": "from a public list" if listed else "read from the data, and taken as public",
        "levels": dict(zip(names, np.diff(tree.offsets).tolist(), strict=True)),
        "attributes": {name: list(levels) for name, levels in schema.attributes.items()},
    }


def level_names(areas: Sequence[str] | None, tree: Hierarchy) -> tuple[str, ...]:
    """Return the names of the levels below the root, by default ``level 1``, ``level 2``, ..."""
    names = tuple(f"level {j}" for j in range(1, tree.depth + 1)) if areas is None else tuple(areas)
    if len(names) != tree.depth:
        raise ValueError(f"areas must name each of {tree.depth} levels below the root, got {', '.join(names)}")
    return names


def tell_rare(groups: Iterable[Group], made: str) -> None:
    """Name on stderr the levels of which fits to noisy counts have twice as many people as the data, or half."""
    off = [
        f"{level} of {name} ({new:,} {made}, {old:,} in the data)"
        for name, levels, exact, fitted in groups
        for level, old, new in zip(levels, exact.tolist(), fitted.tolist(), strict=True)
        if abs(new - old) >= RARE and max(new, old) > 2 * max(0, min(new, old))
    ]
    if off:
        more = f", and {len(off) - MOST_NAMED} more" if len(off) > MOST_NAMED else ""
        tell(f"warning: rare groups are far off: {'; '.join(off[:MOST_NAMED])}{more}")


def margins(schema: Schema, exact: NDArray[Any], fitted: NDArray[Any]) -> Iterator[Group]:
    """Yield the people by level of each attribute, of people by cell, shape (cells,)."""
    for axis, (name, levels) in enumerate(schema.attributes.items()):
        others = tuple(other for other in range(len(schema.shape)) if other != axis)
        yield name, levels, *(cells.reshape(schema.shape).sum(axis=others) for cells in (exact, fitted))
