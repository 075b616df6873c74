"""Tables of a release as data: rows below columns that say what they hold, as ``columns.csv`` has it for readers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.schema import Schema

__all__ = [
    "COUNT",
    "TableColumn",
    "TableFile",
    "area_codes",
    "attribute_columns",
    "cell_rows",
    "check_distinct",
    "code_columns",
    "count_rows",
    "person_rows",
]

Row = Sequence[Any]


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
        raise ValueError(f"columns of a file must have different names, got {twice[0]!r} twice")


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
