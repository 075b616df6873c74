"""One release of any system: noise is drawn and counted once, and one folder holds all that is published, or nothing.

Every folder has the tables of the system, ``columns.csv`` (what they hold), ``ledger.txt`` (what was spent on what,
and the promise in words) and ``release.json`` (what was run). All but what is said to be exact are functions of noisy
counts and of what is public. Every area is named, so which areas there are must be public. Time, and what is said of
data that break a rule, depend on the data and are outside every promise.

Files and folders are whole or absent: they are written under a temporary name, and renamed when they are on the disk.
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
Group = tuple[str, Sequence[str], NDArray[Any], NDArray[Any]]  # name, levels, and people of each in the data and made

CELLS = "text that a spreadsheet would compute, or that begins with an apostrophe, has an apostrophe before it"
"""The rule of all CSV files that are written here, for the record; `audit.io.text.from_cell` gives back the text."""
BOTH = "\r\n"  # a reader takes either for the end of a line: both are quoted inside of a field
RECORD = "release.json"  # every release has one
DESCRIBED = ("FILE", "COLUMN", "MEANING", "UNIT", "CODES", "VALUES")
VALUES = ("exact", "noisy")
LARGEST_RELEASE = 400_000_000
"""Most people that are written: more than those of all nations but two. Noise alone makes more where the budget is tiny
and no total is held, and each is a row, so that they would fill the disk."""
RARE = 10  # people by which a fitted group is off at least where it is named
MOST_NAMED = 5


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: what it means, its unit or its codes, and whether it is noisy or made of what is."""

    name: str
    meaning: str
    unit: str = ""
    codes: Iterable[str] = ()
    noisy: bool = False


@dataclass(frozen=True)
class TableFile:
    """A file of a release: its columns, in their order, and its rows, which may be read once."""

    columns: Sequence[TableColumn]
    rows: Iterable[Row]


COUNT = TableColumn("COUNT", "number of records, with noise", "records", noisy=True)


def attribute_columns(
    schema: Schema, *, noisy: bool = False, exact: Collection[str] = (), more: str = ""
) -> list[TableColumn]:
    """Return the columns of all attributes, which hold names of levels; those in `exact` are not noisy."""
    return [
        TableColumn(name, f"level of the attribute{more}", codes=levels, noisy=noisy and name not in exact)
        for name, levels in schema.attributes.items()
    ]


def code_columns(
    areas: Sequence[str], *, noisy: bool = False, exact: Collection[str] = (), more: str = ""
) -> list[TableColumn]:
    """Return a column of codes for each level of areas; those in `exact` are not noisy."""
    meaning = f"code of the area, unique within the area around it{more}"
    return [TableColumn(name, meaning, noisy=noisy and name not in exact) for name in areas]


def check_distinct(columns: Sequence[str]) -> None:
    """Refuse columns of a file with the same name, whatever its case."""
    if twice := [name for name in columns if [other.upper() for other in columns].count(name.upper()) > 1]:
        raise ValueError(
            f"areas, attributes and other columns of a file must have different names, got {twice[0]!r} twice"
        )


def area_codes(tree: Hierarchy, node: int) -> tuple[str, ...]:
    """Return what an area has in the columns of all levels: nothing below its own."""
    codes = tree.codes(node)
    return (*codes, *[""] * (tree.depth - len(codes)))


def count_rows(tree: Hierarchy, level: int, groups: Sequence[Row], counts: NDArray[Any]) -> Iterator[Row]:
    """Yield codes, group and count, of counts of the areas of a level, shape (areas, groups)."""
    for node, row in enumerate(counts.tolist(), tree.level(level).start):
        codes = tree.codes(node)
        for group, count in zip(groups, row, strict=True):
            yield *codes, *group, count


def cell_rows(tree: Hierarchy, schema: Schema, nodes: Iterable[int], tables: NDArray[Any]) -> Iterator[tuple[Row, int]]:
    """Yield codes and levels of each cell with people in it, and how many, of people in some areas, (areas, cells)."""
    cells = list(product(*schema.attributes.values()))
    for node, table in zip(nodes, tables, strict=True):
        codes = area_codes(tree, node)
        for cell in np.flatnonzero(table):
            yield (*codes, *cells[cell]), int(table[cell])


def person_rows(tree: Hierarchy, schema: Schema, nodes: Iterable[int], tables: NDArray[Any]) -> Iterator[Row]:
    """Yield codes and levels of each person, of people as `cell_rows` takes them."""
    for words, people in cell_rows(tree, schema, nodes, tables):
        yield from repeat(words, people)


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
    reading: Mapping[str, Any] | None = None
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
        """Write all that is published into a folder; texts are for whoever shows them on a terminal."""
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
    """Count the draws of a release; lend what writes it to the new or empty folder `out`, if one is given, or nothing.

    Whatever can be told of the folder, and of a source of noise that is missing, is told before the work.
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
    """Refuse a secure release whose noise no exact sampler draws."""
    if isinstance(rng, str) and value != exact:
        raise ValueError(
            f'a secure release needs {setting}="{exact}", got {value!r}, which can be simulated with a seed'
        )


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


def tell(line: str) -> None:
    """Write a line to stderr."""
    print(printable(line), file=sys.stderr)


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Open a text file that appears where nothing is when the block ends without an error."""
    with writing(path, None) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
        yield text


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Row], *, separator: str = ",") -> None:
    """Write a CSV file row by row, whole or not at all, and no formula to a spreadsheet; see `CELLS`."""
    cell = lru_cache(2**12)(in_cell)  # a file has millions of rows, and few words side by side
    with whole_file(path) as file:
        writer = csv.writer(_Lines(file), delimiter=separator, lineterminator=BOTH)
        for row in chain([columns], rows):
            writer.writerow([cell(value) if isinstance(value, str) else value for value in row])


def read_rows(path: Path, *, separator: str) -> list[list[str]]:
    """Return the fields of each row of a file that `write_rows` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        return [list(map(from_cell, row)) for row in csv.reader(file, delimiter=separator)]


class _Lines:
    """Lines with one letter at their end, of a writer that would quote only what ends its own."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(f"{line.removesuffix(BOTH)}\n")


@contextmanager
def whole_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Lend a temporary folder that takes the place of another when the block ends without an error, in one step."""
    target = check_folder(folder)
    above = [parent for parent in target.parents if not parent.exists()]
    try:
        make_folder(target.parent)
        with temporary_folder(STAGED, target.parent) as staged:
            yield staged
            os.umask(mask := os.umask(0))  # which leaves a usual folder more permissions than a temporary one has
            staged.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o777 & ~mask)
            os.replace(staged, target)
            sync(target.parent)
    except BaseException:
        for parent in above:
            with suppress(OSError):  # not there, or others have put something into it meanwhile
                parent.rmdir()
        raise


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Return the path of a folder that does not exist or is empty, or refuse it."""
    check_levels(Path(folder))
    find_leftovers(Path(folder))
    target = Path(os.path.realpath(folder))
    if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):  # a file, or a link to itself
        raise ValueError(f"out must be a new or an empty folder, got {folder}")
    if target == Path.cwd() or target.is_mount():  # could not be replaced in one step
        raise ValueError(f"out must not be the current folder or a mount, got {folder}")
    return target
