"""Persons of a user's own as databases to audit: counted as for a release, with a person more or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.release.intake import read_histogram
from algorithms.release.options import columns_of
from algorithms.release.recoding import recoded
from algorithms.schema import Schema, read_specification
from audit.neighbors import NeighborPair

__all__ = ["cell_name", "counted", "on_persons", "pairs_of"]

Counts = NDArray[np.int64]


def counted(
    data: str, schema: Schema, areas: str, geo: str | None, count: str | None, recode: str | None = None
) -> tuple[Hierarchy, Counts]:
    """Count persons by the areas of a public list, or those that the data name, and by the cells of a schema."""
    places, columns = None if geo is None else Path(geo), columns_of(areas)
    persons = recoded("data", data, recode, [*columns, *schema.attributes, count])
    return read_histogram(persons, schema, columns, count=count, places=places)


def on_persons(
    describe: Callable[[Hierarchy, Schema, list[str]], Any],
    data: str,
    *,
    areas: str,
    spec: str,
    geo: str | None = None,
    count: str | None = None,
    recode: str | None = None,
) -> Any:
    """Return the system that `describe` makes of tree, schema and columns of areas, on persons of the user's own."""
    schema = read_specification(Path(spec))
    tree, histogram = counted(data, schema, areas, geo, count, recode)
    described = describe(tree, schema, columns_of(areas))
    return replace(described, pairs=pairs_of(histogram), cell_name=partial(cell_name, tree, schema))


def cell_name(tree: Hierarchy, schema: Schema, leaf: int, cell: int) -> str:
    """Return a cell of a histogram, shape (leaves, cells), in words: its levels and its area."""
    places = zip(schema.attributes.values(), np.unravel_index(cell, schema.shape), strict=True)
    return f"{', '.join(levels[int(place)] for levels, place in places)} in {tree.label(leaf)}"


def pairs_of(histogram: Counts, kept: Sequence[NDArray[np.int64]] = ()) -> dict[str, Callable[[], NeighborPair]]:
    """Return pairs of a histogram, shape (leaves, cells), as far as there are such cells.

    One person is added to the fullest cell of all, to an empty cell of its area, or moved from the one to the emptiest
    other cell of that area: totals of areas stay, which may be invariant. Where groups of cells are `kept`, that is
    their totals in every area, nobody is added, and the other cell is of the same groups.
    """
    leaf, full = (int(place) for place in np.unravel_index(histogram.argmax(), histogram.shape))
    order = [int(cell) for cell in np.argsort(histogram[leaf], kind="stable") if cell != full]
    pairs: dict[str, Callable[[], NeighborPair]] = {}
    if not kept:
        pairs["added"] = lambda: NeighborPair.add_people(histogram, (leaf, full))
        if order and histogram[leaf, order[0]] == 0:
            pairs["alone"] = lambda: NeighborPair.add_people(histogram, (leaf, order[0]))
    order = [cell for cell in order if all(groups[cell] == groups[full] for groups in kept)]
    if order and histogram[leaf, full] > 0:
        pairs["replaced"] = lambda: NeighborPair.move_people(histogram, (leaf, full), (leaf, order[0]))
    return pairs
