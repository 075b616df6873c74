"""Sources of outputs: fresh runs of a mechanism, or outputs that exist already; each output is used once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from audit.arguments import whole_number
from audit.events import Statistic
from audit.mechanism import Mechanism, mechanism_name, plain_parameters
from audit.neighbors import NeighborPair
from audit.outputs import Kind
from audit.sampling.blocks import Reduce, draw
from audit.sampling.calls import CALLS, COUNTING, Caller
from audit.sampling.checkpoint import BlockStore
from audit.sampling.streams import Phase, halves, stream
from audit.written import as_given

__all__ = ["MORE", "GivenRuns", "MechanismRuns", "Runs", "fresh_outputs", "scores"]

Floats = NDArray[np.float64]
FEW = 64  # runs of a block that are also scored without the others
CLOSE = 1e-6  # tolerance for these scores: sums of many numbers may round differently
MORE = 2.5  # ratio of the runs and calls that compare calls to those that count
PIECES = (32, 256)  # numbers of pieces of a file that are compared, as the size of dependent groups is not known
COUNTED = (Phase.COUNT, Phase.COMPARE, Phase.BET)  # phases whose runs count, or compare those that do
Read = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class _ReadRuns:
    """Runs of which outputs are read as they are, or as columns of outputs written as text."""

    pair: NeighborPair
    root: np.random.SeedSequence
    kind: Kind
    read: Read | None = field(default=None, kw_only=True)
    read_shape: tuple[int, ...] = field(default=(), kw_only=True)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of an output, if a table names them for all runs."""
        return self.kind.columns

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one output, or of its columns."""
        return self.read_shape if self.read or self.kind.shape is None else self.kind.shape

    @property
    def written(self) -> bool:
        """Whether outputs are texts that have to be parsed first."""
        return self.kind.shape is None and self.read is None

    def read_by(self, read: Read, *shape: int) -> Self:
        """Return the same runs with `read` applied to outputs, each of that shape."""
        return replace(self, read=read, read_shape=shape)

    def as_given(self) -> Self:
        """Return the same runs with outputs as a user's own statistic gets them."""
        return self.read_by(as_given) if self.written else self

    def _keep(self, reduce: Reduce, *, written: bool) -> Reduce:
        read = None if written else self.read

        def keep(outputs: NDArray[Any]) -> NDArray[Any]:
            with np.errstate(over="ignore", invalid="ignore"):  # for infinities, and values that are not numbers
                return reduce(read(outputs) if read else outputs)

        return keep


@dataclass(frozen=True)
class MechanismRuns(_ReadRuns):
    """Runs of a mechanism, with separate streams for each phase; audits pass these on instead of the mechanism."""

    mechanism: Mechanism
    n_jobs: int = 1
    advance: Callable[[int], None] = lambda runs: None
    store: BlockStore | None = None
    explored: int = 1  # fewest runs of one call in phases that neither choose nor count
    before: tuple[bytes, ...] = ()  # the mechanism pickled before it has seen any data
    made: list[NDArray[Any]] = field(default_factory=list)  # outputs on `x` and on `y`, with which selection begins

    @property
    def name(self) -> str:
        """The name of the mechanism, for reports."""
        return mechanism_name(self.mechanism)

    @property
    def parameters(self) -> dict[str, Any]:
        """The public attributes of the mechanism that are plain values."""
        return plain_parameters(self.mechanism)

    @property
    def callers(self) -> list[Caller]:
        """The mechanism on `x` and on `y`."""
        return [Caller(self.mechanism, data, self.kind) for data in (self.pair.x, self.pair.y)]

    @property
    def counting_calls(self) -> int:
        """The number of calls that make the counting runs of each database."""
        return whole_number("calls_per_side", getattr(self.mechanism, "calls_per_side", COUNTING), least=CALLS)

    def reduced(
        self, sizes: Sequence[int], reduce: Reduce, *phase: int, written: bool = False
    ) -> list[Iterator[NDArray[Any]]]:
        """Return the results of `reduce` for blocks of fresh outputs on each side; if `written`, of unparsed texts."""
        keep, fresh, blocks = self._keep(reduce, written=written), self.to_make(sizes, *phase), []
        for side, (caller, size) in enumerate(zip(self.callers, fresh, strict=True)):
            drawn = draw(
                caller,
                size,
                reduce=keep,
                seed=stream(self.root, *phase, side),
                n_jobs=self.n_jobs,
                advance=self.advance,
                store=self.store,
                calls=self._calls(*phase),
                least=1 if phase[0] in (Phase.SELECT, *COUNTED) else self.explored,
            )
            if used := sizes[side] - size:
                first, self.made[side] = self.made[side][:used], self.made[side][used:]
                drawn = chain([keep(first)], drawn)
            blocks.append(drawn)
        return blocks

    def to_make(self, sizes: Sequence[int], *phase: int) -> Sequence[int]:
        """Return how many runs of a phase are still to be made, as selection begins with those that were."""
        if phase[0] in COUNTED or not self.made:
            return sizes
        return [max(0, size - len(side)) for size, side in zip(sizes, self.made, strict=True)]

    def _calls(self, *phase: int) -> int:
        """Return how many calls make the runs of a phase on either database: more if runs count or compare."""
        if phase[0] not in COUNTED:
            return CALLS
        return round(self.counting_calls * (MORE if phase[0] == Phase.COMPARE else 1))

    def groups(self, sizes: Sequence[int], *phase: int) -> list[list[NDArray[np.intp]]]:
        """Return the sizes of groups of successive runs that may depend on each other, on `x` and on `y`: the calls."""
        calls = []
        for caller, size in zip(self.callers, sizes, strict=True):
            each = caller.call_runs(size, self._calls(*phase))
            calls.append(np.diff(np.arange(0, size + each, each).clip(max=size)))
        return [calls]

    def rest(self, runs: int, spent: int) -> Sequence[int]:
        """Divide the remaining runs between `x` and `y`."""
        return halves(runs - spent)

    def in_writing(self) -> Self:
        """Return fresh runs whose outputs are all read as text."""
        return replace(self, kind=replace(self.kind, shape=None), root=stream(self.root, Phase.WRITTEN), made=[])


@dataclass(frozen=True)
class GivenRuns(_ReadRuns):
    """Outputs that exist already, which are used in random orders."""

    outputs: Sequence[NDArray[Any]]
    orders: Sequence[NDArray[np.intp]]
    used: list[int] = field(default_factory=lambda: [0, 0])
    mechanism: Mechanism | None = None  # that made them, if it is known
    given: Sequence[Any] = ()  # the outputs before they were read, if they may be read anew

    @classmethod
    def shuffled(
        cls, pair: NeighborPair, root: np.random.SeedSequence, kind: Kind, outputs: Sequence[NDArray[Any]]
    ) -> Self:
        """Return outputs on `x` and on `y` in random orders."""
        generators = [np.random.default_rng(stream(root, Phase.SELECT, side)) for side in range(2)]
        orders = [rng.permutation(len(side)) for rng, side in zip(generators, outputs, strict=True)]
        return cls(pair, root, kind, outputs, orders)

    @property
    def left(self) -> list[int]:
        """How many outputs on either database have not been used."""
        return [len(outputs) - used for outputs, used in zip(self.outputs, self.used, strict=True)]

    def reduced(
        self, sizes: Sequence[int], reduce: Reduce, *phase: int, written: bool = False
    ) -> list[Iterator[NDArray[Any]]]:
        """Return the result of `reduce` for the next outputs on each side; counted outputs keep their order."""
        blocks, keep = [], self._keep(reduce, written=written)
        for side, size in enumerate(sizes):
            start = self.used[side]
            self.used[side] += size
            places = self.orders[side][start : start + size]
            places = np.sort(places) if phase[:1] == (Phase.COUNT,) else places
            blocks.append(iter([keep(self.outputs[side][places])] if size else []))
        return blocks

    def scored(self, statistic: Statistic, outputs: Sequence[NDArray[Any]] | None = None) -> list[Floats]:
        """Return the scores of all outputs, in the order in which they were given; or of other outputs."""
        keep = self._keep(
            lambda some: _each(statistic, some, some[: min(len(some) // 2, FEW)]), written=statistic.written
        )
        return [keep(side) if len(side) else np.empty(0) for side in (self.outputs if outputs is None else outputs)]

    def groups(self, sizes: Sequence[int], *phase: int) -> list[list[NDArray[np.intp]]]:
        """Return the sizes of groups of successive outputs that may depend on each other: pieces of all or of a bet."""
        lengths = sizes if phase[:1] == (Phase.BET,) else [len(outputs) for outputs in self.outputs]
        numbers = [[max(1, min(pieces, length // 2)) for length in lengths] for pieces in PIECES]
        return [
            [np.diff(np.arange(one + 1) * length // one) for one, length in zip(number, lengths, strict=True)]
            for number in numbers
        ]

    def rest(self, runs: int, spent: int) -> Sequence[int]:
        """Divide the rest of `runs` so that `x` and `y` have spent equally many: otherwise both would count fewer."""
        return [half - used for half, used in zip(halves(runs), self.used, strict=True)]


Runs = MechanismRuns | GivenRuns  # outputs on both databases, each of them used once


def scores(runs: Runs, sizes: Sequence[int], statistics: Sequence[Statistic], *phase: int) -> list[Floats]:
    """Return the scores of fresh runs on `x` and on `y`, each of shape (runs, k): one column a statistic."""
    none = np.empty((0, len(statistics)))
    read = runs.read

    def reduce(outputs: NDArray[Any]) -> Floats:
        readable = outputs if read is None or all(one.written for one in statistics) else read(outputs)
        few = min(len(outputs) // 2, FEW)
        both = [(readable, readable[:few]), (outputs, outputs[:few])]
        return np.column_stack([_each(one, *both[one.written]) for one in statistics])

    blocks = runs.reduced(sizes, reduce, *phase, written=True)
    return [np.concatenate([none, *part]) for part in blocks]


def fresh_outputs(runs: Runs, sizes: Sequence[int], *phase: int) -> list[NDArray[Any]]:
    """Return fresh outputs on `x` and on `y`."""
    none = np.empty(0, object) if runs.kind.shape is None else np.empty((0, *runs.kind.shape))
    return [np.concatenate([none, *side]) for side in runs.reduced(sizes, lambda outputs: outputs, *phase)]


def _each(statistic: Statistic, outputs: NDArray[Any], first: NDArray[Any]) -> Floats:
    """Return one score a run; refuse a statistic whose scores depend on the other runs of a batch."""
    values = statistic(outputs)
    if len(first) and not np.allclose(values[: len(first)], statistic(first), rtol=CLOSE, atol=CLOSE):
        raise ValueError(f"{statistic.name} must score each run by itself, and depends on the others of a batch")
    return values
