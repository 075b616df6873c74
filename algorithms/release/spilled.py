"""Whole numbers that do not fit into memory: appended and read in pieces, in Parquet files of a private folder."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.release.duck import DuckDB

__all__ = ["LEAVES", "PIECE", "Spilled", "pieces"]

PIECE = 2**17
"""Numbers of an array that are in memory, 1 MiB, and in a file."""
LEAVES = "leaves"
"""The name of a histogram: counts leaf by leaf, those of an area side by side."""
MEMORY = "256MB"  # of DuckDB, which needs a tenth of it


@dataclass
class _Array:
    """Files of `PIECE` numbers each, and what is behind them."""

    files: list[str] = field(default_factory=list)
    rest: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


class Spilled:
    """Arrays of whole numbers by name, of one axis. Closing removes the folder, which short arrays do not need."""

    def __init__(self) -> None:
        self._arrays: dict[Hashable, _Array] = {}
        self._database: DuckDB | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._database is not None:
            self._database.close()

    def append(self, name: Hashable, values: ArrayLike) -> None:
        """Append numbers, in the order of their axes."""
        array = self._arrays.setdefault(name, _Array())
        rest = np.concatenate([array.rest, np.asarray(values, np.int64).reshape(-1)])
        whole = rest.size - rest.size % PIECE
        for start in range(0, whole, PIECE):
            if self._database is None:
                self._database = DuckDB(memory=MEMORY, threads=1, ordered=True)
            array.files.append(self._database.spill(rest[start : start + PIECE]))
        array.rest = rest[whole:].copy()  # not a view, which would keep all of it

    def read(self, name: Hashable, start: int, stop: int) -> NDArray[np.int64]:
        """Return the numbers from `start` up to `stop`."""
        array = self._arrays[name]
        first, last = start // PIECE, min(-(-stop // PIECE), len(array.files))
        parts = [array.rest] if stop > len(array.files) * PIECE else []
        if self._database is not None and first < last:
            parts.insert(0, self._database.spilled(array.files[first:last]))
        begin = min(first, len(array.files)) * PIECE
        return np.concatenate(parts or [array.rest[:0]])[start - begin : stop - begin]

    def size(self, name: Hashable) -> int:
        """Return how many numbers there are."""
        array = self._arrays.get(name, _Array())
        return len(array.files) * PIECE + array.rest.size

    def drop(self, name: Hashable) -> None:
        """Forget an array, and remove its files."""
        for path in self._arrays.pop(name).files:
            Path(path).unlink()

    def __contains__(self, name: Hashable) -> bool:
        return name in self._arrays


def pieces(rows: int, width: int, most: int = 0) -> Iterator[slice]:
    """Yield slices of rows that have at most so many numbers together, `PIECE` if nothing is said, or one row."""
    step = max(1, (most or PIECE) // width)
    yield from (slice(start, min(start + step, rows)) for start in range(0, rows, step))
