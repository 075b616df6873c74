"""The first and last runs of an audit: they show the kind of output, and test whether runs use rng and change."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from audit.mechanism import copied
from audit.outputs import Kind, check_number, kind_of, read_outputs, resolve_types
from audit.sampling.calls import ATTEMPTS, Caller
from audit.sampling.copies import CHANCE, chance_of_repeat
from audit.sampling.independence import DEPENDENT, UNSTEADY
from audit.sampling.streams import stream
from audit.values import unlike_numbers

__all__ = ["LEAST", "Probes", "probe", "probe_runs"]

LEAST = 20  # runs of an audit: 12 to 16 look at the mechanism
MOST_CALLS, FEWEST_CALLS = 8, 2  # calls of a mechanism on either database, each with a separate stream
PER_CALL = 40  # runs of an audit for each of these calls
MOST_EACH = 16  # runs of one call
SHARE = 1 / 10  # most probes, as a share of the runs of an audit
ENTRIES = 8  # entries of an output in which runs are compared
IGNORED = (
    "outputs are identical under two different rngs: the mechanism ignores its rng. If its noise is seeded by the data "
    "in the release, too, that is a violation: whoever has the program can tell the databases apart for sure"
)


@dataclass(frozen=True)
class Probes:
    """The results of the first runs, and the test whether later ones are like them."""

    kind: Kind  # what one output is, for the whole audit
    first: NDArray[Any]  # the first output, shape (1, *output)
    seedable: bool  # whether the same generator gives the same outputs again
    callers: list[Caller]  # on either database
    calls: list[list[_Call]]  # their first short calls
    size: int  # runs of the audit
    seed: np.random.SeedSequence
    outputs: list[NDArray[Any]]  # of the first runs, unless they take too much memory
    made: int  # runs so far

    @property
    def to_come(self) -> int:
        """How many runs `check_steady` makes, unless outputs are no longer those of the same generator."""
        return sum(len(call.marks) for side in self.calls for call in (side[:1] if self.seedable else side))

    def check_steady(self) -> None:
        """Refuse a mechanism whose runs change during an audit, for example if it spends a budget over all runs."""
        # Runs on one database come before those on the other, so such a change looks like a loss. A sound mechanism is
        # refused with probability below 1e-8.
        if self.seedable:
            again = [
                _calls(one, self.size, stream(self.seed, 1, side), first=True) for side, one in enumerate(self.callers)
            ]
            if all(now[0].marks == then[0].marks for now, then in zip(again, self.calls, strict=True)):
                return
        later = [_calls(one, self.size, stream(self.seed, 2, side)) for side, one in enumerate(self.callers)]
        entries = self.calls[0][0].entries.shape[1]
        for entry in range(entries):
            # Quarters: the differences of finite numbers are finite.
            sides = [
                [np.concatenate([call.entries[:, entry] for call in calls]) / 4 for calls in side]
                for side in zip(self.calls, later, strict=True)
            ]
            middles = [float(np.median(np.concatenate(side))) for side in sides]
            spreads = [[np.abs(part - middle) for part in side] for side, middle in zip(sides, middles, strict=True)]
            for scores in (sides, spreads):
                varying = [side for side in scores if np.ptp(np.concatenate(side)) > 0]
                distance = sum(_kruskal(side) for side in varying)
                if special.chdtrc(len(varying), distance) < DEPENDENT / (2 * entries):
                    raise ValueError(UNSTEADY)


def _kruskal(parts: Sequence[NDArray[np.float64]]) -> float:
    """Return the statistic of the rank test of Kruskal and Wallis (1952), corrected for ties."""
    _, places, ties = np.unique(np.concatenate(parts), return_inverse=True, return_counts=True)
    ranks, number = (np.cumsum(ties) - (ties - 1) / 2)[places], places.size
    sums = np.add.reduceat(ranks, np.cumsum([0, *map(len, parts[:-1])]))
    apart = 12 / (number * (number + 1)) * np.sum(sums**2 / [len(part) for part in parts]) - 3 * (number + 1)
    return float(apart / (1 - np.sum(ties**3 - ties) / (number**3 - number)))


def probe(callers: Sequence[Caller], size: int, seed: np.random.SeedSequence, *, few: bool = False) -> Probes:
    """Determine the kind of outputs, and refuse a mechanism that ignores its generator, with more runs unless `few`."""
    size = 0 if few else size
    first, made = _first_outputs(callers, stream(seed, 0))
    kind = kind_of(first.values())
    if kind.shape is None:
        kind = _of_texts(kind, first.values())

    def calls_of(kind: Kind) -> list[list[_Call]]:
        noting = [replace(caller, kind=kind) for caller in callers]
        return [_calls(one, size, stream(seed, 1, side)) for side, one in enumerate(noting)]

    callers = [replace(caller, noted=set()) for caller in callers]
    calls = calls_of(kind)
    made += sum(len(call.marks) for side in calls for call in side)
    if any(call.mixed for side in calls for call in side):  # numbers and other values: written as text
        kind = _of_texts(kind, first.values())
        calls = calls_of(kind)
        made += sum(len(call.marks) for side in calls for call in side)
    for database in calls:
        _check_uses_rng(database)
    resolved = resolve_types(kind, [caller.noted or set() for caller in callers])
    callers = [replace(caller, kind=kind, noted=None) for caller in callers]
    again = _calls(callers[0], size, stream(seed, 1, 0), first=True)[0].marks
    kept = [[call.outputs for call in side] for side in calls]
    for side, batch in first.items():
        kept[side].append(read_outputs(batch, kind))
    outputs = [np.concatenate(side) for side in kept]
    one = read_outputs(next(iter(first.values())), kind)
    return Probes(resolved, one, again == calls[0][0].marks, callers, calls, size, seed, outputs, made + len(again))


def probe_runs(size: ArrayLike) -> NDArray[np.int64]:
    """Return how many of the runs of an audit are probes, if a seed repeats the mechanism and no run raises."""
    number_of_calls, each = _short_calls(size)
    return 2 + (2 * number_of_calls + 3) * each


def _short_calls(size: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of short calls on either database, and the runs of each."""
    sizes = np.asarray(size, np.int64)
    each = np.clip((sizes * SHARE / (2 * MOST_CALLS)).astype(np.int64), 2, MOST_EACH)
    return np.clip(sizes // PER_CALL, FEWEST_CALLS, MOST_CALLS), each


def _of_texts(kind: Kind, first: Iterable[Any]) -> Kind:
    """Return the kind of outputs that are texts, with their approximate length."""
    longest = max(len(text) for batch in first for text in read_outputs(batch, Kind(None)))
    return Kind(None, 4 ** math.ceil(math.log(longest, 4)), columns=kind.columns)


def _first_outputs(callers: Sequence[Caller], seed: np.random.SeedSequence) -> tuple[dict[int, Any], int]:
    """Return one output of each database, and how many runs were made; if every run on both raises, raise that."""
    batches: dict[int, Any] = {}
    failures: list[Exception] = []
    for number, caller in enumerate(callers):
        for attempt in range(ATTEMPTS):
            try:
                batch = caller.batch(1, np.random.default_rng(stream(seed, number, attempt)))
            except MemoryError:
                raise
            except Exception as error:
                failures.append(error)
            else:
                check_number(len(read_outputs(batch, kind_of([batch]))), 1)
                batches[number] = copied(batch)
                break
    if not batches:
        raise failures[0]
    return batches, len(batches) + len(failures)


@dataclass(frozen=True)
class _Call:
    """Some runs of one call: a hash and a few entries of each, and whether the generator was used."""

    marks: list[int]
    entries: NDArray[np.float64]
    used_rng: bool  # whether the generator was used
    mixed: bool  # whether an output is not of the kind that was determined
    outputs: NDArray[Any]  # empty, if they take too much memory


def _calls(caller: Caller, size: int, seed: np.random.SeedSequence, *, first: bool = False) -> list[_Call]:
    """Make short calls, or the first of them, each with a separate stream; keep outputs that all fit into one block."""
    number_of_calls, each = (int(number) for number in _short_calls(size))
    each = min(each, max(2, caller.block_runs))
    keeps = size == 0 or each * number_of_calls <= caller.block_runs
    calls = []
    for number in range(1 if first else number_of_calls):
        rng = np.random.default_rng(stream(seed, number))
        before = rng.bit_generator.state
        outputs = caller.run(each, rng)
        if outputs.dtype.kind == "O":
            marks = [zlib.crc32(text.encode()) for text in outputs]
            entries, mixed = np.array(marks, np.float64)[:, None], False
        else:
            flat = outputs.reshape(len(outputs), -1)
            marks = [hash(row.tobytes()) for row in flat]
            entries = flat[:, np.unique(np.linspace(0, flat.shape[1] - 1, ENTRIES).astype(np.intp))].astype(np.float64)
            mixed = bool(unlike_numbers(flat).any())
        kept = outputs.copy() if keeps else outputs[:0]
        calls.append(_Call(marks, entries, rng.bit_generator.state != before, mixed, kept))
    return calls


def _check_uses_rng(calls: Sequence[_Call]) -> None:
    """Refuse a mechanism that ignores its generator: calls under different streams are all the same."""
    # They may agree by chance: large budgets hardly vary, exact releases not at all. Agreement is an error only where
    # outputs vary and chance is out of the question, or where the generator was never used.
    first, *others = calls
    same = all(call.marks == first.marks for call in others) and len(set(first.marks)) > 1
    if same and (not first.used_rng or chance_of_repeat(np.array(first.marks)) ** len(others) < CHANCE):
        raise ValueError(IGNORED)
