"""Runs in blocks, each with a random stream of its own: the only parallelism there is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.arguments import whole_number
from audit.io.workers import Workers
from audit.mechanism import Mechanism
from audit.outputs import Kind
from audit.sampling.calls import run
from audit.sampling.checkpoint import BlockStore
from audit.sampling.copies import CHANCE, chance_of_repeat
from audit.sampling.streams import stream

__all__ = ["CALLS", "CELLS", "COUNTING", "Reduce", "block_runs", "call_runs", "counting_calls", "draw", "workers_on"]

Reduce = Callable[[NDArray[Any]], NDArray[np.float64]]

CELLS = 2**21  # numbers that one block holds: 16 MiB of float64, which malloc keeps for the next block
TEXT = 256  # numbers that an output which is written as a short text takes as much memory as
CALLS = 32  # of a mechanism on either database, at least
COUNTING = 256  # and of the runs that count: what runs of one call share says little then
WAVE = 4  # blocks a worker may have finished before anyone has taken them


def draw(
    mechanism: Mechanism,
    data: Any,
    size: int,
    *,
    reduce: Reduce,
    seed: np.random.SeedSequence,
    kind: Kind,
    n_jobs: int = 1,
    advance: Callable[[int], None] | None = None,
    store: BlockStore | None = None,
    repeats: bool = True,
    calls: int = CALLS,
    least: int = 1,
) -> Iterator[NDArray[np.float64]]:
    """Run a mechanism `size` times and yield what `reduce` keeps of each block, in order.

    All runs are made in so many `calls` at least, unless these had fewer runs than `least`. Each call has a random
    stream of its own, and each block is reduced before it is dropped: memory does not grow with `size`, and results
    depend neither on `n_jobs` nor on the backend of joblib. If a worker process is killed, its blocks are run again,
    once. `repeats` says whether the same stream gives the same outputs again.
    """
    each = call_runs(size, data, kind, mechanism, calls, least)
    together = block_runs(data, kind, mechanism) // each
    runs = together * each
    blocks = -(-size // runs)

    def call(number: int) -> NDArray[Any]:
        rng = np.random.default_rng(stream(seed, number))
        return run(mechanism, data, min(each, size - number * each), rng, kind)

    def block(number: int) -> NDArray[np.float64]:
        first, *others = range(number * together, min((number + 1) * together, -(-size // each)))
        outputs = call(first)
        if others:  # copies: they may be the mechanism's own array
            outputs = np.concatenate([outputs.copy(), *(call(one).copy() for one in others)])
        result = reduce(outputs)  # a copy, whatever the mechanism does with its array
        return result.copy() if np.may_share_memory(result, outputs) else result

    workers = workers_on(mechanism, block, n_jobs, blocks)
    wave = WAVE * workers.number  # workers run ahead of whoever takes the results
    first: NDArray[np.float64] | None = None
    for start in range(0, blocks, wave):
        numbers = range(start, min(start + wave, blocks))
        done = {} if store is None else {n: result for n in numbers if (result := store.read(seed, n)) is not None}
        for n, result in done.items():
            assert store is not None  # or nothing would be done
            if repeats:
                store.check(seed, result, lambda n=n: block(n))  # type: ignore[misc]
            break
        missing = [number for number in numbers if number not in done]
        arriving = workers.finished(missing)
        for number in numbers:
            while number not in done:
                place, result = next(arriving)
                arrived = missing[place]
                done[arrived] = result
                if store is not None:
                    store.write(seed, arrived, result)
            result = done.pop(number)
            if first is None:
                first = result
            elif np.array_equal(first, result) and chance_of_repeat(result) < CHANCE:
                raise ValueError(
                    f"blocks 0 and {number} are identical under different rngs: the mechanism ignores its rng"
                )
            if advance is not None:
                advance(min(runs, size - number * runs))
            yield result
            del result  # before the next is made: it may be as large as several outputs


def workers_on(mechanism: Mechanism, block: Callable[[int], Any], n_jobs: int, blocks: int) -> Workers:
    """Return who works on the blocks of a mechanism; refuse threads that would share one that is not made for them."""
    shareable = bool(getattr(mechanism, "threads", False))
    workers = Workers(block, n_jobs, threads=shareable)
    if workers.shared and workers.number > 1 and blocks > 1 and not shareable:
        raise ValueError(
            "threads must not share a mechanism that may write into its own arrays: processes (the default), or "
            "threads = True on one that does not"
        )
    return workers


def block_runs(data: Any, kind: Kind, mechanism: Mechanism | None = None) -> int:
    """Return the runs of one block: a function of pair, mechanism and what one output is, and of nothing else."""
    cells = max(TEXT, kind.letters) if kind.shape is None else math.prod(kind.shape)
    cells = max(data.size if isinstance(data, np.ndarray) else 1, cells)
    most = getattr(mechanism, "runs_per_block", CELLS)
    return max(1, min(CELLS // max(1, cells), whole_number("runs_per_block", most, least=1)))


def call_runs(size: int, data: Any, kind: Kind, mechanism: Mechanism, calls: int = CALLS, least: int = 1) -> int:
    """Return the runs of one call, so that calls can be compared: `least` of `size`, and no more than a block."""
    return min(block_runs(data, kind, mechanism), max(least, -(-size // calls)))


def counting_calls(mechanism: Mechanism) -> int:
    """Return in how many calls the runs that count are made on either database."""
    return whole_number("calls_per_side", getattr(mechanism, "calls_per_side", COUNTING), least=CALLS)
