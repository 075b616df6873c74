"""Tables of a release as data: rows below columns that say what they hold, as ``columns.csv`` has it for readers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from algorithms.schema import Schema

__all__ = ["COUNT", "TableColumn", "TableFile", "attribute_columns", "check_distinct", "code_columns"]


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
    rows: Iterable[Sequence[Any]]


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
