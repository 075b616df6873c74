"""Readers of input that only bottom-up has: the weights of a sample, and totals that were published before."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.bottom_up.calibration import PublishedTotals
from algorithms.bottom_up.weighted import MOST, UNITS, check_largest_weight
from algorithms.hierarchy import Hierarchy
from algorithms.release.duck import GIVEN, open_source
from algorithms.release.intake import MEMORY, lost_zeros, read_histogram
from algorithms.release.reading import Count
from algorithms.release.recoding import in_sql
from algorithms.schema import Schema

__all__ = ["read_published", "read_units"]


def read_units(
    source: Any, schema: Schema, areas: Sequence[str], *, weight: str, largest: float, **options: Any
) -> tuple[Hierarchy, NDArray[np.int64]]:
    """Add up persons' weights by area and cell, exactly; return the tree and units of weight, shape (leaves, cells).

    Arguments are those of `read_histogram`, with the column of weights and the largest allowed; see `round_units`.
    """
    check_largest_weight(largest)

    weight_of = "try_cast(n as double)"
    valid = f"{weight_of} > 0 and {weight_of} <= {float(largest)!r}"
    number = f"case when {valid} then floor({weight_of} * {UNITS} + 0.5)::bigint end"
    rule = f"{weight} must be a number above 0 and at most the largest weight {largest:g}"
    count = Count(weight, number, rule, MOST, UNITS)
    return read_histogram(source, schema, areas, count=count, **options)


def read_published(
    source: Any, areas: Sequence[str], tree: Hierarchy, *, count: str = "count", tolerance: int = 0
) -> PublishedTotals:
    """Read published totals: a row has an area's codes, from the outermost on, and its total; areas may be missing."""
    with open_source("totals", source, [count], memory=MEMORY) as (database, types):
        known = {name.upper(): in_sql(name) for name in types}
        present = [name for name in areas if name.upper() in known]
        if not present and len(types) > 1:
            raise ValueError(
                f"totals must have columns of areas ({', '.join(areas)}), or {count} alone for all together, "
                f"got {reprlib.repr(list(types))}"
            )
        if present != list(areas[: len(present)]):
            raise ValueError(f"totals must have the columns of outer areas too, got {', '.join(present)}")
        columns = [*present, count]
        texts = ", ".join(f"{known[name.upper()]}::varchar as c{place}" for place, name in enumerate(columns))
        rows = list(database.fetch(f"select {texts} from {GIVEN}").rows())
    level = len(present)
    nodes = tree.level(level)
    place = {tree.name(node): node - nodes.start for node in range(nodes.start, nodes.stop)}
    totals = np.full(len(place), np.nan)
    for *codes, total in rows:
        if not all(codes):
            raise ValueError(f"totals must have a code in {', '.join(columns[:-1])} in every row, got a missing one")
        area = " / ".join(codes) or tree.name(0)
        if area not in place:
            zeros = lost_zeros(codes, (tree.codes(node) for node in range(nodes.start, nodes.stop)))
            raise ValueError(f"totals must be of areas of the data or of the list of areas, got {area!r}{zeros}")
        if not np.isnan(totals[place[area]]):
            raise ValueError(f"totals must have one row for each area, got {area!r} twice")
        if total is None or not re.fullmatch(r"\d{1,15}(\.0+)?", total):
            raise ValueError(f"totals must be whole numbers of 0 or more, got {total!r} of {area!r}")
        totals[place[area]] = float(total)
    if not rows:
        raise ValueError("totals must have one row at least, got none")
    return PublishedTotals(level, totals, tolerance)
