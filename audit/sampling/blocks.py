"""Runs in blocks, each with separate random streams: the only place where runs are parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.sampling.calls import CALLS, Caller
from audit.sampling.checkpoint import BlockStore
from audit.sampling.copies import CHANCE, chance_of_repeat
from audit.sampling.streams import stream

__all__ = ["Reduce", "draw"]

Reduce = Callable[[NDArray[Any]], NDArray[np.float64]]

WAVE = 4  # blocks that each worker may finish before they are consumed


@dataclass(frozen=True)
class _Block:
    """Makes a block of `size` runs, given its number: `together` calls of `each` runs, reduced in the worker."""

    caller: Caller
    size: int
    reduce: Reduce
    seed: np.random.SeedSequence
    each: int
    together: int

    def __call__(self, number: int) -> NDArray[np.float64]:
        calls = range(number * self.together, min((number + 1) * self.together, -(-self.size // self.each)))
        outputs = self._call(calls[0])
        if len(calls) > 1:  # copies: they may be the mechanism's own array
            outputs = np.concatenate([outputs.copy(), *(self._call(one).copy() for one in calls[1:])])
        result = self.reduce(outputs)  # a copy, whatever the mechanism does with its array
        return result.copy() if np.may_share_memory(result, outputs) else result

    def _call(self, number: int) -> NDArray[Any]:
        rng = np.random.default_rng(stream(self.seed, number))
        return self.caller.run(min(self.each, self.size - number * self.each), rng)


def draw(
    caller: Caller,
    size: int,
    *,
    reduce: Reduce,
    seed: np.random.SeedSequence,
    n_jobs: int = 1,
    advance: Callable[[int], None] = lambda runs: None,
    store: BlockStore | None = None,
    calls: int = CALLS,
    least: int = 1,
) -> Iterator[NDArray[np.float64]]:
    """Run a mechanism `size` times and yield the result of `reduce` for each block, in order."""
    # There are at least so many `calls`, unless a call would have fewer runs than `least`. Memory does not grow with
    # `size`. Results do not depend on `n_jobs` or the backend. Blocks of a killed worker process are run again, once.
    each = caller.call_runs(size, calls, least)
    block = _Block(caller, size, reduce, seed, each, caller.block_runs // each)
    runs = each * block.together
    first: NDArray[np.float64] | None = None
    for number, result in _in_order(block, caller, -(-size // runs), n_jobs, store):
        if first is None:
            first = result
        elif np.array_equal(first, result) and chance_of_repeat(result) < CHANCE:
            raise ValueError(f"blocks 0 and {number} are identical under different rngs: the mechanism ignores its rng")
        advance(min(runs, size - number * runs))
        yield result
        del result  # before the next is made: it may be as large as several outputs


def _in_order(
    block: _Block, caller: Caller, blocks: int, n_jobs: int, store: BlockStore | None
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield all blocks in the order of their numbers, from the store or from workers, which run a few blocks ahead."""
    workers = caller.workers(block, n_jobs, blocks)
    wave = WAVE * workers.number
    for start in range(0, blocks, wave):
        numbers = range(start, min(start + wave, blocks))
        done = {} if store is None else store.finished(block.seed, numbers, block)
        missing = [number for number in numbers if number not in done]
        arriving = workers.finished(missing)
        for number in numbers:
            while number not in done:
                place, result = next(arriving)
                done[missing[place]] = result
                if store is not None:
                    store.write(block.seed, missing[place], result)
                del result
            yield number, done.pop(number)
