"""What is asked of tables of pandas and polars, and of columns with names: names, types, and numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from audit.values import EXACT, NUMBERS, is_frame

__all__ = ["classes_of", "names_of", "stacked", "titles"]


def names_of(batch: Any) -> list[Any]:
    """Return the names of columns, which a table says once of all its runs and no event looks at."""
    names = batch.columns if is_frame(batch) else getattr(getattr(batch, "dtype", None), "names", None)
    return [] if names is None else list(names)


def titles(names: Iterable[Any]) -> tuple[str, ...]:
    """Return columns as reports name them, like the entries of a mapping with these keys."""
    return tuple(f"output[{json.dumps(name, ensure_ascii=False, default=str)}]" for name in names)


def classes_of(output: Any) -> tuple[Any, ...]:
    """Return the classes of an output and of its entries; of an array, what it holds; of a table, its names as well."""
    if is_frame(output):
        axes = [getattr(output, name, ()) for name in ("columns", "index")]
        names = [  # a range is told by its ends
            (type(axis), _ends(axis) if hasattr(axis, "step") else tuple(axis), tuple(getattr(axis, "names", ())))
            for axis in axes
        ]
        return (type(output), *output.dtypes, *names)
    if isinstance(output, list | tuple):
        return (type(output), *map(type, output))
    return (type(output),) if type(output) in NUMBERS else (type(output), str(getattr(output, "dtype", "")))


def _ends(axis: Any) -> tuple[int, int, int]:
    return axis.start, axis.stop, axis.step


def stacked(frames: Sequence[Any]) -> Any:
    """Return the numbers of tables, shape (runs, rows, columns), or the tables if their names or types differ."""
    kinds = {classes_of(one) if is_frame(one) else () for one in frames}
    numbers = np.stack([one.to_numpy() for one in frames]) if len(kinds) == 1 else None
    mixed = len(set(frames[0].dtypes)) > 1  # then whole numbers became floats
    return frames if numbers is None or (mixed and bool((np.abs(numbers) >= EXACT).any())) else numbers
