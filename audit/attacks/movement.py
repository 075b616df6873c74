"""What a few runs tell of every entry of an output: its mean and spread on either database, and whether it moves."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.protocol import Exploration
from audit.neighbors import NeighborPair
from audit.sampling.streams import Phase

__all__ = ["Moments", "changed_entries", "like_outputs", "moments_of", "movers"]

Floats = NDArray[np.float64]

GLANCE = 1 / 10  # share of the selection runs that looks for entries which move although the pair leaves them alone
EXPLORING = 1 / 3  # share of the selection runs that finds what moves, where the pair does not tell
INFINITE = 1e100  # what stands for infinity in a mean, so that its square is finite


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of every entry of the outputs on one database, each of shape (entries,)."""

    runs: int
    mean: Floats
    sd: Floats

    @classmethod
    def of(cls, blocks: Iterable[Floats]) -> Moments:
        """Add up blocks of what `reduce` kept, as they come: each is as large as an output."""
        runs, total, squares = functools.reduce(np.add, blocks)
        mean = total / runs
        return cls(int(runs[0]), mean, np.sqrt(np.maximum(squares / runs - mean**2, 0.0)))

    @staticmethod
    def reducer(center: Floats) -> Callable[[NDArray[Any]], Floats]:
        """Return what keeps the runs, sums and sums of squares about `center` of a block, shape (3, entries)."""

        def reduce(outputs: NDArray[Any]) -> Floats:
            flat = outputs.reshape(len(outputs), -1) - center
            np.clip(flat, -INFINITE, INFINITE, out=flat)
            return np.array([np.full(flat.shape[1], float(len(flat))), flat.sum(axis=0), np.square(flat).sum(axis=0)])

        return reduce


def moments_of(known: Exploration) -> tuple[Floats, Moments, Moments]:
    """Return what moments are about, and those of either database; the runs for them are spent once."""
    if "moments" not in known.shared:
        share = GLANCE if changed_entries(known.pair, known.shape) else EXPLORING
        first = next(iter(known.runs.reduced((1, 0), lambda outputs: outputs, Phase.EXPLORE, 2)[0]))
        flat = first[0].reshape(-1).astype(np.float64)
        center = np.where(np.isfinite(flat), flat, 0.0)  # sums of squares about it keep their digits if means are large
        blocks = known.outputs(max(4, int(known.choosing * share)), Moments.reducer(center), Phase.EXPLORE)
        known.shared["moments"] = (center, *map(Moments.of, blocks))
    return known.shared["moments"]  # type: ignore[no-any-return]


def movers(x: Moments, y: Moments, most: int) -> tuple[Floats, Floats, NDArray[np.intp], Floats]:
    """Return the shift and scale of every entry, which of them move most, and those by how many standard errors."""
    shift = y.mean - x.mean
    scale = np.sqrt((x.sd**2 + y.sd**2) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(shift == 0, 0.0, np.abs(shift) / (scale * math.sqrt(1 / x.runs + 1 / y.runs)))
    best = np.argsort(-moved, kind="stable")[:most]
    return shift, scale, best, moved[best]


def changed_entries(pair: NeighborPair, shape: tuple[int, ...], most: int = 1) -> list[tuple[int, ...]]:
    """Return where the pair changes an output most, largest first; nowhere if outputs are not shaped like counts."""
    if not like_outputs(pair, shape):
        return []
    change = pair.y.astype(float) - pair.x
    largest = np.argsort(-np.abs(change), axis=None, kind="stable")[:most]
    return [tuple(map(int, index)) for index in zip(*np.unravel_index(largest, shape), strict=True) if change[index]]


def like_outputs(pair: NeighborPair, shape: tuple[int, ...]) -> bool:
    """Tell whether both databases are finite numbers in the shape of an output."""
    return all(
        isinstance(data, np.ndarray)
        and data.shape == shape
        and data.dtype.kind in "iuf"
        and bool(np.isfinite(data).all())
        for data in (pair.x, pair.y)
    )
