"""Arrays of whole numbers that do not fit into memory, in compressed files of a private folder."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audit.io.temporary import SPILLED, temporary_folder

__all__ = ["LEAVES", "PIECE", "Spilled", "pieces"]

PIECE = 2**17
"""Numbers of an array in a file, and at most in memory: 1 MiB."""
LEAVES = "leaves"
"""The name of a histogram: counts leaf by leaf, with the leaves of an area side by side."""


@dataclass
class _Array:
    """Files of `PIECE` numbers each, and the remaining numbers in memory."""

    files: list[Path] = field(default_factory=list)
    rest: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


class Spilled(ExitStack):
    """One-dimensional arrays of whole numbers by name. Closing removes the folder, which is made when it is needed."""

    def __init__(self) -> None:
        super().__init__()
        self._arrays: dict[Hashable, _Array] = {}
        self._folder: Path | None = None
        self._number = count()  # names of files

    def append(self, name: Hashable, values: ArrayLike) -> None:
        """Append numbers in row-major order."""
        array = self._arrays.setdefault(name, _Array())
        rest = np.concatenate([array.rest, np.asarray(values, np.int64).reshape(-1)])
        whole = rest.size - rest.size % PIECE
        for start in range(0, whole, PIECE):
            if self._folder is None:
                self._folder = self.enter_context(temporary_folder(SPILLED))
            array.files.append(self._folder / str(next(self._number)))
            array.files[-1].write_bytes(zlib.compress(rest[start : start + PIECE].tobytes(), 1))
        array.rest = rest[whole:].copy()  # a view would keep the whole array in memory

    def read(self, name: Hashable, start: int, stop: int) -> NDArray[np.int64]:
        """Return the numbers from `start` up to `stop`."""
        array = self._arrays[name]
        first = min(start // PIECE, len(array.files))
        files = array.files[first : -(-stop // PIECE)]
        parts = [np.frombuffer(zlib.decompress(path.read_bytes()), np.int64) for path in files]
        if stop > len(array.files) * PIECE:
            parts.append(array.rest)
        begin = first * PIECE
        return np.concatenate([*parts, array.rest[:0]])[start - begin : stop - begin]

    def size(self, name: Hashable) -> int:
        """Return the length of an array."""
        array = self._arrays.get(name, _Array())
        return len(array.files) * PIECE + array.rest.size

    def drop(self, name: Hashable) -> None:
        """Delete an array and its files."""
        for path in self._arrays.pop(name).files:
            path.unlink()


def pieces(rows: int, width: int, most: int = 0) -> Iterator[slice]:
    """Yield slices of rows with at most `most` numbers (default `PIECE`), but at least one row."""
    step = max(1, (most or PIECE) // width)
    yield from (slice(start, min(start + step, rows)) for start in range(0, rows, step))
