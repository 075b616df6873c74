"""Intake of data: persons, or groups of persons with a count, are read from a file or frame to a histogram or codes."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.release import reading
from algorithms.release.duck import GIVEN, DuckDB, check_renamed, open_source
from algorithms.release.engine import tell
from algorithms.release.recoding import Recoded, in_sql
from algorithms.release.spilled import LEAVES, Spilled, pieces
from algorithms.schema import Schema

__all__ = [
    "LARGEST_HISTOGRAM",
    "LARGEST_RECORDS",
    "MEMORY",
    "check_histogram",
    "lost_zeros",
    "read_facilities",
    "read_histogram",
    "read_records",
    "store_histogram",
]

LARGEST_HISTOGRAM = 2**30
"""Most counts of a histogram: 8 GiB. Larger requests are mistakes: an attribute has too many levels."""

LARGEST_STORED = 2**35
"""Most counts of a histogram on disk: twice those of the 2020 US Census's blocks in the redistricting data."""

LARGEST_RECORDS = 2**27
"""Most values of records, rows x attributes: 1 GB while read. A Parquet file of a kilobyte can have as many rows."""

SMALLEST = {1: "utinyint", 2: "usmallint", 4: "uinteger"}  # DuckDB's types, by bytes
MEMORY = "4GB"
"""Default memory of DuckDB: larger data are moved to disk, which is slower."""

PERSONS, LIST = "data", "the list of areas"  # names of sources in messages
RANKED = "ranked_groups"  # name of a table: number of the leaf, indices of levels, count

Leaf = tuple[str, ...]  # codes, the outermost first


def read_histogram(
    source: Any,
    schema: Schema,
    areas: Sequence[str],
    *,
    count: str | reading.Count | None = None,
    places: Any = None,
    memory: str = MEMORY,
) -> tuple[Hierarchy, NDArray[np.int64]]:
    """Count persons by area and cell: one level of the tree for each column of areas, shape (leaves, cells).

    A source is a .csv or .parquet file, or a frame that DuckDB can scan: one row a person, or with `count` one row a
    group of persons. Columns are found by name (case does not matter). Messages on stderr list columns that are not
    read and so not released, how each column is read by the schema, smallest and largest numbers, and areas that equal
    the sum of others. Columns of areas have the outermost first; a code needs to be unique only within its parent. Rows
    with a count of 0 name empty areas; their attributes may be missing. Too large histograms are refused.

    Guarantee: with `places`, a public list of every area of the finest level, the tree is a function of the list alone.
    Without, it depends on the persons: one record can add or remove an area, and a release names every area, so no
    promise covers the list of areas.
    """
    with _counting(PERSONS, source, schema, areas, LARGEST_HISTOGRAM, count, places, memory) as (leaves, counts_of):
        return Hierarchy.from_codes(*zip(*leaves, strict=True)), counts_of(slice(0, len(leaves)))


def store_histogram(spilled: Spilled, source: Any, schema: Schema, areas: Sequence[str], **options: Any) -> Hierarchy:
    """Count persons like `read_histogram`, into the array `LEAVES` of a store, piece by piece, with leaves in order."""
    check_histogram(1, schema)
    with _counting(PERSONS, source, schema, areas, LARGEST_STORED, **options) as (leaves, counts_of):
        for piece in pieces(len(leaves), schema.cells):
            spilled.append(LEAVES, counts_of(piece))
    return Hierarchy.from_codes(*zip(*leaves, strict=True))


def check_histogram(leaves: int, schema: Schema, most: int = 0) -> None:
    """Refuse, before it is made, a histogram of more than `most` counts; the default is the limit for memory."""
    limit = most or LARGEST_HISTOGRAM
    if leaves * schema.cells > limit:
        got = f"{leaves:,} x {schema.cells:,}"
        raise ValueError(f"a histogram must have at most {limit:,} counts, areas x cells, got {got}")


def read_facilities(source: Any, schema: Schema, areas: Sequence[str], tree: Hierarchy) -> NDArray[np.int64]:
    """Count housing units and facilities by area and type, shape (leaves, types): public bounds on their residents.

    The source is like that of `read_histogram`; hhgq has the types of the attribute, and count the number of units.
    """
    if "hhgq" not in schema.attributes:
        raise ValueError(f"facilities must be of an attribute of the schema, {', '.join(schema.attributes)}, not hhgq")
    kinds = schema.only("hhgq")
    known = {tuple(tree.codes(node)): place for place, node in enumerate(tree.leaves.tolist())}
    rule = "facilities must be in areas of the data, or of a list of areas (--geo), which has those without persons too"
    listed = sorted(known)
    with _counting("facilities", source, kinds, areas, LARGEST_HISTOGRAM, "count", listed=listed, rule=rule) as (
        _,
        units_of,
    ):
        units = np.empty((len(listed), kinds.cells), np.int64)
        units[[known[leaf] for leaf in listed]] = units_of(slice(0, len(listed)))
    return units


def read_records(source: Any, schema: Schema, *, what: str = PERSONS, memory: str = MEMORY) -> NDArray[Any]:
    """Read persons, one a row, as indices of their levels, shape (rows, attributes), of the smallest type."""
    with _read(what, source, memory, schema=schema) as database:
        number, widest = len(schema.shape), np.min_scalar_type(max(schema.shape) - 1)
        most = LARGEST_RECORDS // number

        def check_number(rows: str) -> None:
            if database.fetch(f"select count(*) as n from {rows}")["n"][0] > most:
                raise ValueError(f"{what} must have at most {most:,} rows of {number} attributes, got more")

        if isinstance(source, str | os.PathLike) and str(source).endswith(".parquet"):  # metadata has the number
            check_number(GIVEN)
        # Smallest types; the input text is kept only if it is no level, for messages.
        odd = [
            f"x{j}" if name in schema.edges else f"if(p{j} is null, x{j}, null)"
            for j, name in enumerate(schema.attributes)
        ]
        selected = ", ".join(f"p{j}::{SMALLEST[widest.itemsize]} as p{j}, {odd[j]} as x{j}" for j in range(number))
        database.keep(
            reading.GROUPS,
            f"select {selected}, 1::utinyint as n, 1::utinyint as size "
            f"from (select *, {', '.join(reading.placed(schema))} from {reading.TEXTS} limit {most + 1})",
        )
        check_number(reading.GROUPS)
        reading.check_rules(what, database, reading.leveled(schema))
        frame = database.fetch(f"select {', '.join(f'p{j}' for j in range(number))} from {reading.GROUPS}")
        if not len(frame):
            raise ValueError(f"{what} must have one row at least, got none")
        if what == PERSONS:
            reading.tell_reading(database, source, schema)
    return np.stack([frame[name].astype(widest) for name in frame.columns], axis=1)


def lost_zeros(leaf: Sequence[str], known: Iterable[Sequence[str]]) -> str:
    """Return advice for an unknown area whose codes differ from a known area's only in leading zeros, or nothing."""
    bare = [code.lstrip("0") for code in leaf]
    near = next((other for other in known if [code.lstrip("0") for code in other] == bare), None)
    if near is None:
        return ""
    return f", where {reprlib.repr(' / '.join(near))} is known: one file lost zeros, so save its codes as text"


def _listed(source: Any, areas: Sequence[str], memory: str) -> list[Leaf]:
    """Return the sorted codes of the areas of a list."""
    with _read(LIST, source, memory, areas) as database:
        database.keep(reading.GROUPS, f"select *, count(*) as size from {reading.TEXTS} group by all")
        reading.check_areas(LIST, database, areas)
        codes = ", ".join(f"a{j}" for j in range(len(areas)))
        once = reading.Rule("an area must have one row", "size > 1", f"concat_ws(' / ', {codes})")
        reading.check_rules(LIST, database, [*reading.coded(areas, listed=True), once])
        if not (leaves := list(database.fetch(f"select {codes} from {reading.GROUPS} order by all").rows())):
            raise ValueError(f"{LIST} must have one row at least, got none")
    return leaves


@contextmanager
def _counting(
    what: str,
    source: Any,
    schema: Schema,
    areas: Sequence[str],
    most: int,
    count: str | reading.Count | None = None,
    places: Any = None,
    memory: str = MEMORY,
    *,
    listed: Sequence[Leaf] | None = None,
    rule: str = f"{PERSONS} must be in areas of {LIST}",
) -> Iterator[tuple[Sequence[Leaf], Callable[[slice], NDArray[np.int64]]]]:
    """Yield the codes of the leaves, and a function that counts a slice of them by cell; at most `most` counts.

    A leaf that is not `listed`, or not in the list `places`, which is checked first, breaks the `rule`.
    """
    check_histogram(1, schema, most)
    if places is not None:
        listed = _listed(places, areas, memory)
        check_histogram(len(listed), schema, most)
    number = count if isinstance(count, reading.Count) else reading.Count.whole(count)
    with _read(what, source, memory, areas, schema, number.name) as database:
        reading.group_rows(what, database, reading.coded(areas, listed=listed is not None), schema, number)
        check_histogram(reading.check_areas(what, database, areas), schema, most)
        if what == PERSONS:
            kind = "the number of persons" if number.parts == 1 else "the weight of a person"
            each = "each row as one person" if number.name is None else f"{number.name} as {kind}"
            tell(f"{', '.join(areas)} read as areas, {each}")
            reading.tell_reading(database, source, schema)
            reading.tell_sums(database, areas, schema)
        codes = ", ".join(f"a{j}" for j in range(len(areas)))
        own_leaves = list(database.fetch(f"select distinct {codes} from {reading.GROUPS} order by all").rows())
        leaves = own_leaves if listed is None else listed
        place = {leaf: number for number, leaf in enumerate(leaves)}
        if unknown := [leaf for leaf in own_leaves if leaf not in place]:
            others = f"{len(unknown):,} other{'s' * (len(unknown) > 1)}, such as {reprlib.repr(' / '.join(unknown[0]))}"
            raise ValueError(f"{rule}; got {others}{lost_zeros(unknown[0], leaves)}")
        ranks = np.array([place[leaf] for leaf in own_leaves])
        levels = ", ".join(f"coalesce(p{j}, 0) as p{j}" for j in range(len(schema.shape)))  # null in empty areas
        ranked = (
            f"select dense_rank() over (order by {codes}) - 1 as leaf, {levels}, n::bigint as n from {reading.GROUPS}"
        )
        database.keep(RANKED, f"{ranked} order by leaf")

        def counts_of(piece: slice) -> NDArray[np.int64]:
            first, stop = np.searchsorted(ranks, (piece.start, piece.stop)).tolist()
            rows = database.fetch(f"select * from {RANKED} where leaf >= {first} and leaf < {stop}")
            cells = np.ravel_multi_index([rows[f"p{j}"] for j in range(len(schema.shape))], schema.shape)
            counts = np.zeros((piece.stop - piece.start, schema.cells), np.int64)
            np.add.at(counts, (ranks[rows["leaf"]] - piece.start, cells), rows["n"])
            return counts

        yield leaves, counts_of


@contextmanager
def _read(
    what: str,
    source: Any,
    memory: str,
    areas: Sequence[str] | None = None,
    schema: Schema | None = None,
    count: str | None = None,
) -> Iterator[DuckDB]:
    """Open a source, and make the view `reading.TEXTS` of its columns of areas, attributes and numbers."""
    if isinstance(areas, str) or (areas is not None and not areas):
        raise ValueError(f"areas must name one column at least, the outermost first, got {areas!r}")
    attributes, edges = ((), ()) if schema is None else (schema.attributes, schema.edges)
    levels = [("numbers" if name in edges else "levels as text or numbers", name) for name in attributes]
    columns = {f"a{j}": ("codes as text or whole numbers", name) for j, name in enumerate(areas or ())}
    columns |= {f"x{j}": column for j, column in enumerate(levels)}
    columns |= {} if count is None else {"n": ("numbers", count)}
    names = [name for _, name in columns.values()]
    if len({name.upper() for name in names}) < len(names):
        raise ValueError(f"areas, attributes and count must be different columns, got {', '.join(names)}")
    with open_source(what, source, names, memory=memory) as (database, types):
        if not (isinstance(source, str | os.PathLike) and Path(source).suffix.lower() == ".csv"):  # CSV was checked
            check_renamed(what, types, names)
        used = {name.upper() for name in (*names, *(source.made_of if isinstance(source, Recoded) else ()))}
        if what == PERSONS and (rest := [column for column in types if column.upper() not in used]):
            tell(f"not released: {', '.join(rest)}")
        given, texts = {column.upper(): column for column in types}, []
        for short, (kinds, name) in columns.items():
            column = given[name.upper()]
            if types[column] not in ("text", "whole", "real")[: 2 if short[0] == "a" else 3]:
                got = "real numbers" if types[column] == "real" else types[column]
                raise ValueError(f"{name} must hold {kinds}, got {got}")
            text, most = f"{in_sql(column)}::varchar", reading.LONGEST_TEXT  # 1 more marks too long texts
            texts.append(f"nullif(if(strlen({text}) > {most}, left({text}, {most + 1}), {text}), '') as {short}")
        database.view(reading.TEXTS, f"select {', '.join(texts)} from {GIVEN}")
        yield database
