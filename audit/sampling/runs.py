"""Where outputs come from: fresh runs of a mechanism, or outputs that exist already; each is used once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from audit.events import Statistic
from audit.mechanism import Mechanism
from audit.neighbors import NeighborPair
from audit.sampling.blocks import Reduce, Store, draw
from audit.sampling.streams import stream

__all__ = ["GivenRuns", "MechanismRuns", "Runs", "scores"]

Floats = NDArray[np.float64]
Read = Callable[[NDArray[Any]], NDArray[Any]]


class Runs(Protocol):
    """Outputs on both databases, each of them used once."""

    @property
    def pair(self) -> NeighborPair:
        """The two databases."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one output."""

    @property
    def root(self) -> np.random.SeedSequence:
        """Of all random streams of the audit."""

    def reduced(self, sizes: Sequence[int], reduce: Reduce, *phase: int) -> list[Iterator[NDArray[Any]]]:
        """Return blocks of what `reduce` keeps of fresh outputs on `x` and on `y`, as they come."""

    def read_by(self, read: Read) -> Self:
        """Return the same runs with what `read` makes of outputs in their place."""


@dataclass(frozen=True)
class MechanismRuns:
    """Runs of a mechanism, every phase with streams of its own."""

    mechanism: Mechanism
    pair: NeighborPair
    shape: tuple[int, ...]
    root: np.random.SeedSequence
    n_jobs: int
    advance: Callable[[int], None]
    store: Store | None = None
    read: Read | None = None

    def reduced(self, sizes: Sequence[int], reduce: Reduce, *phase: int) -> list[Iterator[NDArray[Any]]]:
        """Return blocks of what `reduce` keeps of fresh outputs on `x` and on `y`, as they come."""
        read = self.read

        def keep(outputs: NDArray[Any]) -> NDArray[Any]:
            return reduce(read(outputs) if read else outputs)

        return [
            draw(
                self.mechanism,
                data,
                size,
                reduce=keep,
                seed=stream(self.root, *phase, side),
                shape=self.shape,
                n_jobs=self.n_jobs,
                advance=self.advance,
                store=self.store,
            )
            for side, (data, size) in enumerate(zip((self.pair.x, self.pair.y), sizes, strict=True))
        ]

    def read_by(self, read: Read) -> Self:
        """Return the same runs with what `read` makes of outputs in their place."""
        return replace(self, read=read)


@dataclass(frozen=True)
class GivenRuns:
    """Outputs that exist already, in random order."""

    outputs: tuple[NDArray[Any], NDArray[Any]]
    pair: NeighborPair
    root: np.random.SeedSequence
    used: list[int] = field(default_factory=lambda: [0, 0])

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one output."""
        return self.outputs[0].shape[1:]

    @property
    def left(self) -> list[int]:
        """How many outputs on either database have not been used."""
        return [len(outputs) - used for outputs, used in zip(self.outputs, self.used, strict=True)]

    def reduced(self, sizes: Sequence[int], reduce: Reduce, *phase: int) -> list[Iterator[NDArray[Any]]]:
        """Return one block of what `reduce` keeps of the next outputs on `x` and on `y`."""
        blocks = []
        for side, size in enumerate(sizes):
            start = self.used[side]
            self.used[side] += size
            blocks.append(iter([reduce(self.outputs[side][start : start + size])] if size else []))
        return blocks

    def read_by(self, read: Read) -> Self:
        """Return the same runs with what `read` makes of outputs in their place."""
        x, y = map(read, self.outputs)
        return replace(self, outputs=(x, y))


def scores(runs: Runs, sizes: Sequence[int], statistics: Sequence[Statistic], *phase: int) -> list[Floats]:
    """Return the scores of fresh runs on `x` and on `y`, each of shape (runs, k): one column a statistic."""
    none = np.empty((0, len(statistics)))
    blocks = runs.reduced(
        sizes, lambda outputs: np.column_stack([statistic(outputs) for statistic in statistics]), *phase
    )
    return [np.concatenate([none, *part]) for part in blocks]
