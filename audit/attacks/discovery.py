"""What the runs of an audit are, and what of their outputs the first of them find worth looking at."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from audit.attacks import Attack
from audit.attacks.classifiers import pick, trained_scores
from audit.attacks.entries import (
    Moments,
    changed_cells,
    entries_to_learn,
    likelihood_ratio,
    moved_cells,
    other_moved_cells,
)
from audit.attacks.paths import path_statistics
from audit.attacks.words import Categories
from audit.events import Statistic
from audit.mechanism import Mechanism
from audit.neighbors import NeighborPair
from audit.sampling import CELLS, Reduce, Store, draw, stream

__all__ = ["GivenRuns", "MechanismRuns", "Phase", "Runs", "find_statistics", "halves", "learn_words", "scores"]

Floats = NDArray[np.float64]

GLANCE = 1 / 10  # share of the selection runs that looks for entries which move although the pair leaves them alone
EXPLORING = 1 / 3  # share of the selection runs that finds what moves, where the pair does not tell
LEARNING = 1 / 3  # share of the selection runs that teaches classifiers
FEWEST_TO_LEARN, MOST_TO_LEARN = 400, 20_000  # runs that do


class Phase(enum.IntEnum):
    """Numbers of the independent random streams of one audit."""

    SHAPE, PROBE, EXPLORE, LEARN, SELECT, COUNT, COINS = range(7)


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

    def numbered(self, categories: Categories) -> Self:
        """Return the same runs with the numbers of words for outputs."""


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
    categories: Categories | None = None

    def reduced(self, sizes: Sequence[int], reduce: Reduce, *phase: int) -> list[Iterator[NDArray[Any]]]:
        """Return blocks of what `reduce` keeps of fresh outputs on `x` and on `y`, as they come."""
        number = self.categories.number if self.categories else None

        def keep(outputs: NDArray[Any]) -> NDArray[Any]:
            return reduce(number(outputs) if number else outputs)

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

    def numbered(self, categories: Categories) -> Self:
        """Return the same runs with the numbers of words for outputs."""
        return replace(self, categories=categories)


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

    def numbered(self, categories: Categories) -> Self:
        """Return the same runs with the numbers of words for outputs."""
        x, y = map(categories.number, self.outputs)
        return replace(self, outputs=(x, y))


def scores(runs: Runs, sizes: Sequence[int], statistics: Sequence[Statistic], *phase: int) -> list[Floats]:
    """Score fresh runs.

    Parameters
    ----------
    runs : Runs
        Where they come from.
    sizes : sequence of int
        How many on `x` and on `y`.
    statistics : sequence of Statistic, length k
        What is looked at.
    *phase : int
        Number of their random stream.

    Returns
    -------
    list of ndarray of float, shape (runs, k)
        On `x` and on `y`.
    """
    none = np.empty((0, len(statistics)))
    blocks = runs.reduced(
        sizes, lambda outputs: np.column_stack([statistic(outputs) for statistic in statistics]), *phase
    )
    return [np.concatenate([none, *part]) for part in blocks]


def learn_words(runs: Runs, choosing: int) -> tuple[Categories, int]:
    """Find out which words outputs are.

    Parameters
    ----------
    runs : Runs
        Their outputs are words.
    choosing : int
        Runs that choose the event.

    Returns
    -------
    categories : Categories
        What was seen.
    spent : int
        Runs that it took.
    """
    spent = max(2, min(int(choosing * GLANCE), CELLS // max(1, math.prod(runs.shape))))
    seen = runs.reduced(halves(spent), lambda outputs: outputs, Phase.SHAPE, 2)  # repeats too: the frequent are kept
    return Categories.seen(block for blocks in seen for block in blocks), spent


def find_statistics(
    runs: Runs, attack: Attack, choosing: int, mechanism: Mechanism | None = None
) -> tuple[tuple[Statistic, ...], int]:
    """Find out what of an output is worth looking at.

    Parameters
    ----------
    runs : Runs
        Where outputs come from.
    attack : Attack
        What may be tried.
    choosing : int
        Runs that choose the event, a part of which may be spent here.
    mechanism : Mechanism, optional
        Asked for its likelihood and its tree.

    Returns
    -------
    statistics : tuple of Statistic
        At least one.
    spent : int
        Runs that it took.

    Raises
    ------
    ValueError
        If the attack finds nothing to look at.
    """
    if attack.statistics is not None:
        return attack.statistics, 0
    found: list[Statistic] = []
    log_likelihood, areas = (getattr(mechanism, name, None) for name in ("log_likelihood", "areas"))
    if "likelihood ratio" in attack.looks and callable(log_likelihood):
        apart = bool(getattr(mechanism, "entrywise", False)) and isinstance(runs.pair.x, np.ndarray)
        found.append(likelihood_ratio(log_likelihood, runs.pair, entrywise=apart))
    if "paths" in attack.looks and areas is not None:
        parent, released, leaves = areas
        found.extend(path_statistics(runs.pair, parent, released, leaves=leaves))
    several = math.prod(runs.shape) > 1
    learning = min(int(choosing * LEARNING), MOST_TO_LEARN)
    teach = "trained" in attack.looks and several and not found and learning >= FEWEST_TO_LEARN
    spent = 0
    changed = changed_cells(runs.pair, runs.shape)
    if several and (teach or "entries" in attack.looks):
        spent = max(4, int(choosing * (EXPLORING if changed is None else GLANCE)))
        center, x, y = _moments(runs, spent)
        if "entries" in attack.looks:
            found += (
                moved_cells(runs.shape, center, x, y)
                if changed is None
                else changed + other_moved_cells(runs.shape, x, y, changed)
            )
        if teach:
            entries = entries_to_learn(runs.pair, runs.shape, x, y)
            taught = runs.reduced(halves(learning), lambda outputs: pick(outputs, entries), Phase.LEARN)
            on_x, on_y = (np.concatenate(list(blocks)) for blocks in taught)
            found += trained_scores(on_x, on_y, entries, seed=int(stream(runs.root, Phase.LEARN).generate_state(1)[0]))
            spent += learning
    elif changed is not None and "entries" in attack.looks:
        found += changed
    if not found:
        raise ValueError(
            f"an attack must find something to look at: {', '.join(attack.looks)} of outputs of shape {runs.shape} "
            "gives nothing"
        )
    return tuple(found), spent


def halves(runs: int) -> tuple[int, int]:
    """Share runs equally.

    Parameters
    ----------
    runs : int
        In all.

    Returns
    -------
    tuple of int
        On `x` and on `y`: as many, or one more.
    """
    return runs - runs // 2, runs // 2


def _moments(runs: Runs, size: int) -> tuple[Floats, Moments, Moments]:
    """Return what moments are about, and those of either database."""
    first = next(iter(runs.reduced((1, 0), lambda outputs: outputs, Phase.EXPLORE, 2)[0]))
    flat = first[0].reshape(-1).astype(np.float64)
    center = np.where(np.isfinite(flat), flat, 0.0)  # sums of squares about it keep their digits where means are large
    x, y = map(Moments.of, runs.reduced(halves(size), Moments.reducer(center), Phase.EXPLORE))
    return center, x, y
