"""First-pass statistics of each entry: mean, variance and their change from x to y; also the first outputs."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.protocol import Exploration
from audit.attacks.statistics import INFINITE
from audit.neighbors import NeighborPair
from audit.sampling.streams import Phase, halves

__all__ = [
    "EXACT_ATTACKS",
    "Explored",
    "Moments",
    "changed_entries",
    "clearly",
    "explore",
    "index_of",
    "is_number",
    "largest",
    "like_outputs",
    "movers",
]

Floats = NDArray[np.float64]

GLANCE = 1 / 10  # share of the selection runs that explores if changed entries are known: others may move, too
EXPLORING = 1 / 5  # share of the selection runs that explores if no changed entries are known
ENOUGH = 2000  # most exploring runs if an output is one number: only its digits need them
EXACT_ATTACKS = {"likelihood ratio", "paths"}  # attacks that no statistic learned from runs can beat
CLEARLY = 3.0  # standard errors above the largest change expected by chance from which an entry is tried
FAR = 1e30  # standard deviations at which values are clipped, so that eighth powers are finite
GLIMPSE = 2**20  # numbers of either database whose third and fourth moments are compared
CHUNK, ROW = 2**16, 2**8  # numbers processed at a time, which fit the processor's cache; fewest columns at a time
HELD = 2**21  # numbers of either database that are held in memory: 16 MiB
NO_NUMBER = 1e300  # larger values are not numbers: infinity, or the code of a run that gave no number


@dataclass(frozen=True)
class Moments:
    """Mean, standard deviation and standard error of the variance of entries on one database: shape (entries,) each."""

    runs: int
    mean: Floats
    sd: Floats
    error: Floats

    @classmethod
    def of(cls, runs: int, blocks: Iterator[Floats]) -> Moments:
        """Return moments from blocks of sums. Blocks are added into the first, as each is as large as four outputs."""
        added = next(blocks)
        for block in blocks:
            added += block
            del block  # before the next is made
        added /= runs
        mean, second, third, fourth = added
        square = mean**2  # no higher power: numpy computes those by logarithms
        variance = np.maximum(second - square, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            about_mean = fourth - 4 * third * mean + 6 * second * square - 3 * square**2
            error = np.sqrt(np.maximum(about_mean - variance**2, 0.0) / runs)
        return cls(runs, mean.copy(), np.sqrt(variance), error)  # a copy, so that the sums are freed

    @staticmethod
    def reducer(center: Floats) -> Callable[[NDArray[Any]], Floats]:
        """Return a function that sums the first four powers about `center` over a block, shape (4, entries)."""

        def reduce(outputs: NDArray[Any]) -> Floats:
            outputs = outputs.reshape(len(outputs), -1)
            sums = np.empty((4, center.size))
            step = max(ROW, CHUNK // len(outputs))
            for columns in (slice(start, start + step) for start in range(0, center.size, step)):
                flat = np.clip(outputs[:, columns] - center[columns], -INFINITE, INFINITE)
                squares = np.square(flat)
                flat.sum(0, out=sums[0, columns])
                squares.sum(0, out=sums[1, columns])
                np.einsum("re,re->e", squares, flat, out=sums[2, columns])
                np.einsum("re,re->e", squares, squares, out=sums[3, columns])
            return sums

        return reduce


@dataclass(frozen=True)
class Explored:
    """Results of exploring runs: moments of each entry about `center`, and the first outputs, shape (runs, entries)."""

    shape: tuple[int, ...]
    center: Floats
    x: Moments
    y: Moments
    held: tuple[NDArray[Any], NDArray[Any]]

    def first(self, numbers: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the first outputs of each database that hold at most `numbers` numbers; at least one output."""
        runs = max(1, numbers // self.center.size)
        x, y = self.held
        return x[:runs], y[:runs]

    @functools.cached_property
    def changes(self) -> Floats:
        """Largest change of the second to fourth moments of every entry, in standard errors."""
        x, y = self.x, self.y
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            second = np.abs(y.sd**2 - x.sd**2) / np.hypot(x.error, y.error)
            if len(self.first(GLIMPSE)[0]) == 1:  # one run has no third and fourth moments
                return np.asarray(np.nan_to_num(second, copy=False, nan=0.0, posinf=0.0))
            on_x, on_y = (self.standard(side) for side in self.first(GLIMPSE))
            on_x, on_y = on_x - on_x.mean(axis=0), on_y - on_y.mean(axis=0)
            squares_x, squares_y = on_x**2, on_y**2
            others = [
                np.abs(higher_y.mean(axis=0) - higher_x.mean(axis=0))
                / np.hypot(higher_x.std(axis=0) / np.sqrt(len(on_x)), higher_y.std(axis=0) / np.sqrt(len(on_y)))
                for higher_x, higher_y in ((squares_x * on_x, squares_y * on_y), (squares_x**2, squares_y**2))
            ]
        return np.asarray(np.nan_to_num(np.max([second, *others], axis=0), nan=0.0, posinf=0.0))

    def that_spread(self, most: int) -> NDArray[np.intp]:
        """Return the entries whose second to fourth moments clearly change, the most changed first."""
        order = largest(self.changes, most)
        return order[self.changes[order] >= clearly(self.changes.size)]

    def standard(self, values: NDArray[Any], entries: NDArray[np.intp] | slice = slice(None)) -> Floats:
        """Return distances of some entries from their means, in standard deviations; 0 for what is not a number."""
        middle = (self.center + (self.x.mean + self.y.mean) / 2)[entries]
        spread = np.hypot(self.x.sd, self.y.sd)[entries]
        with np.errstate(over="ignore"):
            deviations = np.where(is_number(values), values - middle, 0.0) / np.where(spread > 0, spread, 1.0)
        return np.clip(deviations, -FAR, FAR)


def explore(exploration: Exploration) -> Explored:
    """Return the results of the exploring runs, which are made once, for the first attack that asks."""
    if "explored" not in exploration.shared:
        entries = math.prod(exploration.shape)
        if entries == 1:
            runs = min(max(4, int(exploration.choosing * GLANCE)), ENOUGH)
        else:
            known = exploration.statistics_by_attack.keys() & EXACT_ATTACKS
            clear = known or changed_entries(exploration.pair, exploration.shape)
            runs = max(4, int(exploration.choosing * (GLANCE if clear else EXPLORING)))
        held = min(runs, 2 * max(1, HELD // entries))
        x, y = (
            np.concatenate(list(blocks))
            for blocks in exploration.outputs(held, lambda outputs: outputs.reshape(len(outputs), -1), Phase.EXPLORE, 2)
        )
        numbers = is_number(x)
        with np.errstate(over="ignore"):  # sums about a nearby center lose no digits if means are large
            center = np.where(numbers, x, 0).sum(axis=0, dtype=np.float64) / np.maximum(numbers.sum(axis=0), 1)
        center[~np.isfinite(center)] = 0.0
        reduce = Moments.reducer(center)
        more = exploration.outputs(runs - held, reduce, Phase.EXPLORE) if runs > held else [iter(()), iter(())]
        # One block after the other is added and dropped: each is as large as an output.
        on_x, on_y = (
            Moments.of(len(part) + rest, itertools.chain([reduce(part)], blocks))
            for part, rest, blocks in zip((x, y), halves(runs - held), more, strict=True)
        )
        exploration.shared["explored"] = Explored(exploration.shape, center, on_x, on_y, (x, y))
    return exploration.shared["explored"]  # type: ignore[no-any-return]


def clearly(many: int) -> float:
    """Return the change, in standard errors, that none of `many` entries of equal laws is likely to reach."""
    return float(np.sqrt(2 * np.log(max(2, many)))) + CLEARLY


def is_number(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which values are numbers: not infinite, and not so large that they are codes."""
    return np.ones(values.shape, bool) if values.dtype.kind in "biu" else np.abs(values) < NO_NUMBER


def largest(values: Floats, most: int) -> NDArray[np.intp]:
    """Return the places of the largest values in descending order; ties keep their order, and NaN comes last."""
    if values.size > most:
        bound = np.partition(-values, most - 1)[most - 1]
        some = np.flatnonzero(~(-values > bound))
    else:
        some = np.arange(values.size)
    return some[np.argsort(-values[some], kind="stable")[:most]]


def index_of(entry: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index in an output of an entry of the flattened output."""
    return tuple(map(int, np.unravel_index(entry, shape))) if shape else ()


def movers(x: Moments, y: Moments, most: int) -> tuple[Floats, Floats, NDArray[np.intp], Floats]:
    """Return every entry's shift and scale, the entries that shift most, and their shifts in standard errors."""
    shift = y.mean - x.mean
    scale = np.sqrt((x.sd**2 + y.sd**2) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(shift == 0, 0.0, np.abs(shift) / (scale * math.sqrt(1 / x.runs + 1 / y.runs)))
    best = largest(moved, most)
    return shift, scale, best, moved[best]


def changed_entries(pair: NeighborPair, shape: tuple[int, ...], most: int = 1) -> list[tuple[int, ...]]:
    """Return the entries that the pair changes most, largest first; none if outputs are not shaped like the data."""
    if not shape or not like_outputs(pair, shape):  # a single number needs no search
        return []
    change = pair.y.astype(float) - pair.x
    best = largest(np.abs(change).reshape(-1), most)
    return [tuple(map(int, index)) for index in zip(*np.unravel_index(best, shape), strict=True) if change[index]]


def like_outputs(pair: NeighborPair, shape: tuple[int, ...]) -> bool:
    """Tell whether both databases are finite numbers in the shape of an output."""
    return all(
        isinstance(data, np.ndarray)
        and data.shape == shape
        and data.dtype.kind in "iuf"
        and bool(np.isfinite(data).all())
        for data in (pair.x, pair.y)
    )
