"""What the columns of a release hold: declared by each system beside its tables, and written as ``columns.csv``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from algorithms.schema import Schema

__all__ = ["COUNT", "Columns", "TableColumn", "attribute_columns", "code_columns"]


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: what it means, its unit or its codes, and whether it is noisy or made of what is."""

    name: str
    meaning: str
    unit: str = ""
    codes: Iterable[str] = ()
    noisy: bool = False


Columns = Mapping[str, Sequence[TableColumn]]  # of each table, in their order, by its file
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
