"""One release of any system: noise is drawn and counted once, and one folder has the complete release, or nothing.

Every folder has the tables of the system, ``columns.csv`` (descriptions of their columns), ``ledger.txt`` (the spent
budget, and the promise in words) and ``release.json`` (the settings of the run). All columns except those marked as
exact are functions of noisy counts and public data. Every area is named, so the list of areas must be public. Running
time and messages about bad data depend on the data; no promise covers them.

Files and folders are complete or absent: they are written under a temporary name, and renamed when they are on disk.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from itertools import chain, product, repeat
from pathlib import Path
from typing import Any, TextIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.noise import DiscreteGaussian, Draws, Rng, counted
from algorithms.schema import Schema
from audit.claims import Claim
from audit.io.files import check_levels, make_folder, sync, writing
from audit.io.temporary import STAGED, find_leftovers, temporary_folder
from audit.io.text import from_cell, in_cell, printable, shown

__all__ = [
    "COUNT",
    "LARGEST_RELEASE",
    "RECORD",
    "Published",
    "TableColumn",
    "TableFile",
    "area_codes",
    "attribute_columns",
    "cell_rows",
    "check_distinct",
    "check_folder",
    "check_secure",
    "code_columns",
    "count_rows",
    "described",
    "level_names",
    "person_rows",
    "publishing",
    "read_rows",
    "tell",
    "tell_rare",
    "whole_file",
    "whole_folder",
    "write_rows",
]

Row = Sequence[Any]
Group = tuple[str, Sequence[str], NDArray[Any], NDArray[Any]]  # name, levels, people by level: data, and made

CELLS = "text that a spreadsheet would compute, or that begins with an apostrophe, has an apostrophe before it"
"""Rule of all CSV files written here, for the record; `audit.io.text.from_cell` restores the text."""
BOTH = "\r\n"  # either letter may end a line for a reader, so fields with either are quoted
RECORD = "release.json"  # file name of the record of every release
DESCRIBED = ("FILE", "COLUMN", "MEANING", "UNIT", "CODES", "VALUES")
VALUES = ("exact", "noisy")
LARGEST_RELEASE = 400_000_000
"""Largest number of people in microdata, one row a person: more than any nation but two has. With a tiny budget and no
invariant total, noise alone would give more and fill the disk."""
RARE = 10  # smallest error, in people, of a fitted group that is listed
MOST_NAMED = 5


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: its meaning, its unit or codes, and whether it is noisy or computed from noisy values."""

    name: str
    meaning: str
    unit: str = ""
    codes: Iterable[str] = ()
    noisy: bool = False


@dataclass(frozen=True)
class TableFile:
    """A file of a release: its columns in order, and its rows, which may be an iterator."""

    columns: Sequence[TableColumn]
    rows: Iterable[Row]


COUNT = TableColumn("COUNT", "number of records, with noise", "records", noisy=True)


def attribute_columns(
    schema: Schema, *, noisy: bool = False, exact: Collection[str] = (), more: str = ""
) -> list[TableColumn]:
    """Return a column for each attribute, which has names of levels; attributes in `exact` are not noisy."""
    return [
        TableColumn(name, f"value of the attribute{more}", codes=levels, noisy=noisy and name not in exact)
        for name, levels in schema.attributes.items()
    ]


def code_columns(
    areas: Sequence[str], *, noisy: bool = False, exact: Collection[str] = (), more: str = ""
) -> list[TableColumn]:
    """Return a column of codes for each level of areas; levels in `exact` are not noisy."""
    meaning = f"code of the area, unique within the area around it{more}"
    return [TableColumn(name, meaning, noisy=noisy and name not in exact) for name in areas]


def check_distinct(columns: Sequence[str]) -> None:
    """Refuse columns of a file with the same name (case does not matter)."""
    if twice := [name for name in columns if [other.upper() for other in columns].count(name.upper()) > 1]:
        raise ValueError(
            f"areas, attributes and other columns of a file must have different names, got {twice[0]!r} twice"
        )


def area_codes(tree: Hierarchy, node: int) -> tuple[str, ...]:
    """Return the codes of an area in the columns of all levels, empty for levels below its own."""
    codes = tree.codes(node)
    return (*codes, *[""] * (tree.depth - len(codes)))


def count_rows(tree: Hierarchy, level: int, groups: Sequence[Row], counts: NDArray[Any]) -> Iterator[Row]:
    """Yield rows with codes, group and count from the counts of a level's areas, shape (areas, groups)."""
    for node, row in enumerate(counts.tolist(), tree.level(level).start):
        codes = tree.codes(node)
        for group, count in zip(groups, row, strict=True):
            yield *codes, *group, count


def cell_rows(tree: Hierarchy, schema: Schema, nodes: Iterable[int], tables: NDArray[Any]) -> Iterator[tuple[Row, int]]:
    """Yield codes and levels of each cell that is not empty, and its people; `tables` has shape (areas, cells)."""
    cells = list(product(*schema.attributes.values()))
    for node, table in zip(nodes, tables, strict=True):
        codes = area_codes(tree, node)
        for cell in np.flatnonzero(table):
            yield (*codes, *cells[cell]), int(table[cell])


def person_rows(tree: Hierarchy, schema: Schema, nodes: Iterable[int], tables: NDArray[Any]) -> Iterator[Row]:
    """Yield codes and levels of each person; arguments are those of `cell_rows`."""
    for words, people in cell_rows(tree, schema, nodes, tables):
        yield from repeat(words, people)


@dataclass(frozen=True, eq=False, kw_only=True)
class Published:
    """The publication of a run of a system; it has no confidential data.

    `claim` is the promise of the release. `files` are the tables by path, `texts` other files. `ledger`, as text,
    describes the spent budget; `summary` describes the folder; `about` has the settings of the run, for the record;
    `reading` describes how columns were read, without any value. `drawn` is the output of the mechanism. `draws` counts
    the noise; without `publishing` it is empty, and the record calls the source of the noise unknown.
    """

    claim: Claim
    files: Mapping[str, TableFile]
    ledger: Any
    summary: str
    about: Mapping[str, Any]
    drawn: Any = None
    texts: Mapping[str, str] = field(default_factory=dict)
    separator: str = ","  # separator of the tables
    reading: Mapping[str, Any] | None = None
    draws: Draws = field(default_factory=Draws, init=False, repr=False)

    @property
    def record(self) -> dict[str, Any]:
        """Record of the run that made the release, with noise, promise, settings and software version."""
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
        """Write all files into a folder; texts are made safe to show on a terminal."""
        rows: list[tuple[str, ...]] = []
        for name, table in self.files.items():
            make_folder((staged / name).parent)
            write_rows(staged / name, [column.name for column in table.columns], table.rows, separator=self.separator)
            rows += [
                (name, column.name, column.meaning, column.unit, "; ".join(column.codes), VALUES[column.noisy])
                for column in table.columns
            ]
        write_rows(staged / "columns.csv", DESCRIBED, rows)
        texts = {**self.texts, "ledger.txt": f"{self.ledger}\n", RECORD: f"{json.dumps(self.record, indent=4)}\n"}
        for name, text in texts.items():
            with whole_file(staged / name) as file:
                file.write(shown(text))


Publication = TypeVar("Publication", bound=Published)


@contextmanager
def publishing(out: str | os.PathLike[str] | None, rng: Rng) -> Iterator[Callable[[Publication], Publication]]:
    """Count the draws of a release; yield a function that writes it to the new or empty folder `out`, if given.

    Errors about the folder, or about a missing source of noise, are raised before the work starts.
    """
    with nullcontext() if out is None else whole_folder(out) as staged:
        DiscreteGaussian(1.0).sample(0, rng)
        with counted() as draws:

            def publish(publication: Publication) -> Publication:
                object.__setattr__(publication, "draws", draws)
                if staged is not None:
                    publication.write(staged)
                return publication

            yield publish


def check_secure(rng: Rng, setting: str, value: str, exact: str) -> None:
    """Refuse a secure release whose noise has no exact sampler."""
    if isinstance(rng, str) and value != exact:
        raise ValueError(
            f'a secure release needs {setting}="{exact}", got {value!r}, which can be simulated with a seed'
        )


def described(tree: Hierarchy, names: Sequence[str], schema: Schema, *, listed: bool) -> dict[str, Any]:
    """Return, for the record, the source of areas, their number at each level, and the levels of each attribute."""
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
    """Warn on stderr of levels that have twice as many people, or half, in fits to noisy counts as in the data."""
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
    """Yield for each attribute the people by level, from two arrays of people by cell, shape (cells,)."""
    for axis, (name, levels) in enumerate(schema.attributes.items()):
        others = tuple(other for other in range(len(schema.shape)) if other != axis)
        yield name, levels, *(cells.reshape(schema.shape).sum(axis=others) for cells in (exact, fitted))


def tell(line: str) -> None:
    """Write a line to stderr."""
    print(printable(line), file=sys.stderr)


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Open a new text file that appears only when the block ends without an error."""
    with writing(path, None) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
        yield text


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Row], *, separator: str = ",") -> None:
    """Write a CSV file row by row, completely or not at all, without cells that are formulas; see `CELLS`."""
    cell = lru_cache(2**12)(in_cell)  # a file has millions of rows, but few different words
    with whole_file(path) as file:
        writer = csv.writer(_Lines(file), delimiter=separator, lineterminator=BOTH)
        for row in chain([columns], rows):
            writer.writerow([cell(value) if isinstance(value, str) else value for value in row])


def read_rows(path: Path, *, separator: str) -> list[list[str]]:
    """Return the fields of each row of a file that `write_rows` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        return [list(map(from_cell, row)) for row in csv.reader(file, delimiter=separator)]


class _Lines:
    """File for a CSV writer: lines end with a newline only, although the writer quotes fields with either of `BOTH`."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(f"{line.removesuffix(BOTH)}\n")


@contextmanager
def whole_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder, which replaces `folder` in one step when the block ends without an error."""
    target = check_folder(folder)
    above = [parent for parent in target.parents if not parent.exists()]
    try:
        make_folder(target.parent)
        with temporary_folder(STAGED, target.parent) as staged:
            yield staged
            os.umask(mask := os.umask(0))  # a new folder gets the usual permissions, not those of a temporary one
            staged.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o777 & ~mask)
            os.replace(staged, target)
            sync(target.parent)
    except BaseException:
        for parent in above:
            with suppress(OSError):  # it does not exist, or others use it
                parent.rmdir()
        raise


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Return the path of a folder that is new or empty; refuse others."""
    check_levels(Path(folder))
    find_leftovers(Path(folder))
    target = Path(os.path.realpath(folder))
    if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):  # a file, or a link to itself
        raise ValueError(f"out must be a new or an empty folder, got {folder}")
    if target == Path.cwd() or target.is_mount():  # cannot be replaced in one step
        raise ValueError(f"out must not be the current folder or a mount, got {folder}")
    return target
