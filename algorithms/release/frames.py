"""Tables of results: named columns of one length, which any data-frame library can read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.release.engine import write_rows

__all__ = ["Frame"]


class Frame:
    """Named columns of one length, read-only, in order; text is stored as Python strings."""

    def __init__(self, columns: Mapping[str, ArrayLike]) -> None:
        self._columns = {name: _column(values) for name, values in columns.items()}
        if len({column.shape for column in self._columns.values()}) > 1:
            lengths = ", ".join(f"{name} {column.size}" for name, column in self._columns.items())
            raise ValueError(f"columns must have one length, got {lengths}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in their order."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return next(iter(self._columns.values())).size if self._columns else 0

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name]

    def __repr__(self) -> str:
        return f"Frame({len(self):,} rows: {', '.join(self.columns)})"

    def where(self, mask: NDArray[np.bool_]) -> Frame:
        """Return the rows that `mask`, shape (rows,), marks."""
        return Frame({name: column[mask] for name, column in self._columns.items()})

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Iterate over the rows as tuples of Python values."""
        return zip(*(column.tolist() for column in self._columns.values()), strict=True)

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name, as input for `pandas.DataFrame` and `polars.DataFrame`."""
        return dict(self._columns)

    def to_csv(self, path: str | os.PathLike[str], *, separator: str = ",") -> None:
        """Write a CSV file with a header, completely or not at all, without cells that are formulas."""
        write_rows(Path(path), self.columns, self.rows(), separator=separator)

    @classmethod
    def from_rows(cls, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Frame:
        """Return the frame of these rows, with `names` as columns."""
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        return cls(dict(zip(names, columns, strict=True)))

    @classmethod
    def concatenate(cls, frames: Sequence[Frame]) -> Frame:
        """Return the rows of several frames that have the same columns, one below the other."""
        return cls({name: np.concatenate([frame[name] for frame in frames]) for name in frames[0].columns})


def _column(values: ArrayLike) -> NDArray[Any]:
    column = np.asarray(values)
    if column.dtype.kind in "US":  # fixed-width text is cut, and loses a NUL at its end
        column = np.asarray(values, dtype=object)
    column = column.view()
    column.flags.writeable = False
    return column
