"""Calls of a mechanism: a batch of outputs, one a run, in which a run that raises an exception has an output too."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.arguments import whole_number
from audit.io.text import printable
from audit.io.workers import Workers
from audit.mechanism import WRAPPED, Mechanism, in_this_process
from audit.outputs import Kind, as_texts, check_number, listed, read_outputs
from audit.values import MARK, RAISED_WORD, raised_by, raised_word
from audit.written import type_of

__all__ = ["ATTEMPTS", "CALLS", "CELLS", "COUNTING", "RUNNING", "TEXT", "Caller"]

CELLS = 2**21  # numbers that one block holds: 16 MiB of float64, which malloc keeps for the next block
TEXT = 256  # numbers that take as much memory as an output written as a short text
CALLS = 32  # fewest calls of a mechanism on either database
COUNTING = 256  # calls that make counting runs, by default: dependence within a call then matters little
ATTEMPTS = 8  # runs after which a mechanism that always raises is considered faulty
TRIES = 100  # successive calls that all raise, after which the batch, not its runs, is considered faulty
PASSES = 1000  # most attempts at the halves of a batch that raised, until one of them raises, too
FEW = 16  # runs of a call up to which numpy may choose another type by chance
RUNNING: ContextVar[Any] = ContextVar("the database on which a mechanism runs", default=None)


@dataclass(frozen=True)
class Caller:
    """Calls a mechanism on one database, and reads the returned batch as outputs of a kind."""

    mechanism: Mechanism
    data: Any
    kind: Kind = field(default_factory=lambda: Kind(None))
    # Types of batches, and exceptions, in the first calls of an audit: they determine its kind.
    noted: set[tuple[str, str]] | None = None

    @property
    def shareable(self) -> bool:
        """Whether threads may share the mechanism, as it never writes into its arrays again."""
        return bool(getattr(self.mechanism, "threads", False))

    @property
    def block_runs(self) -> int:
        """The number of runs of one block, which depends only on data, mechanism and kind of output."""
        kind, data = self.kind, self.data
        cells = max(TEXT, kind.letters) if kind.shape is None else math.prod(kind.shape)
        cells = max(data.size if isinstance(data, np.ndarray) else 1, cells)
        most = getattr(self.mechanism, "runs_per_block", CELLS)
        return max(1, min(CELLS // max(1, cells), whole_number("runs_per_block", most, least=1)))

    def call_runs(self, size: int, calls: int = CALLS, least: int = 1) -> int:
        """Return the runs of one call, if so many `calls` make `size` runs: `least` or more, but at most a block."""
        return min(self.block_runs, max(least, -(-size // calls)))

    def workers(self, block: Callable[[int], Any], n_jobs: int, blocks: int) -> Workers:
        """Return the workers for the blocks; refuse threads that would share a mechanism that is not thread-safe."""
        workers = Workers(block, n_jobs, threads=self.shareable)
        if workers.shared and workers.number > 1 and blocks > 1 and not self.shareable:
            raise ValueError(
                "threads must not share a mechanism that may write into its own arrays: processes (the default), or "
                "threads = True on one that does not"
            )
        return workers

    def batch(self, size: int, rng: np.random.Generator) -> Any:
        """Return a batch that can be read twice; a mechanism that ends the program counts as one that raises."""
        RUNNING.set(self.data)
        try:
            with in_this_process():
                batch = self.mechanism(self.data, size, rng)
            return listed(batch)
        except SystemExit as left:
            failure = RuntimeError(f"a mechanism must not end the program, got SystemExit: {left}")
            raise failure.with_traceback(left.__traceback__) from left

    def run(self, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return `size` outputs: numbers, shape (size, *kind.shape), or texts, shape (size,)."""
        # They are a copy, unless the mechanism is `shareable`. A run that raises an exception has an output, too, since
        # failures are visible: the word for its class, or the code of that word in every entry.
        attempt = self._attempt(size, rng)
        return np.concatenate(self._halved(size, rng, attempt)) if isinstance(attempt, Exception) else attempt

    def _attempt(self, size: int, rng: np.random.Generator) -> NDArray[Any] | Exception:
        try:
            batch = self.batch(size, rng)
        except MemoryError:  # does not depend on the data
            raise
        except Exception as failure:
            return failure
        types, stated = self.kind.types, "list" if isinstance(batch, list | tuple) else type_of(batch)
        if self.noted is not None:
            self.noted.add(("type", stated))
        elif size > FEW and stated not in (*types, "object") and types and isinstance(batch, np.ndarray):
            raise ValueError(
                f"outputs must have the same type in every call, got {stated} after {', '.join(types)}: "
                "return a list, in which each run has its own"
            )
        outputs = read_outputs(batch, self.kind, own=self.shareable)
        check_number(len(outputs), size)
        return outputs

    def _halved(self, size: int, rng: np.random.Generator, failure: Exception) -> list[NDArray[Any]]:
        """Return runs in parts, given that at least one of them raises an exception."""
        # Batches that raise none keep their outputs: to run them again would make exceptions rarer, by a different
        # factor on each database.
        if size == 1:
            return [self._raised(failure)]
        if self.noted is not None and ("batches", "") not in self.noted:
            self._check_batches(size // 2, rng, failure)
        sizes = size // 2, size - size // 2
        for _ in range(PASSES):
            parts = [self._attempt(half, rng) for half in sizes]
            if any(isinstance(part, Exception) for part in parts):
                break
        else:
            if all(isinstance(self._attempt(size, rng), Exception) for _ in range(ATTEMPTS)):
                raise failure  # only the whole batch raises
            parts[int(rng.random() * size >= sizes[0])] = failure  # too rare to recur: choose a half at random
        outputs: list[NDArray[Any]] = []
        for half, part in zip(sizes, parts, strict=True):
            outputs += self._halved(half, rng, part) if isinstance(part, Exception) else [part]
        return outputs

    def _raised(self, failure: Exception) -> NDArray[Any]:
        word, kind = raised_word(failure), self.kind
        if self.noted is not None:
            self.noted.add(("raised", word))
        word = RAISED_WORD if kind.raises in (None, word) else word
        return as_texts([word]) if kind.shape is None else np.full((1, *kind.shape), raised_by(word))

    def _check_batches(self, half: int, rng: np.random.Generator, failure: Exception) -> None:
        """Refuse a mechanism that raises for a batch but not for its halves: how often one run raises is unknown."""
        # If a half raises with probability r, a batch of both does not raise with probability (1 - r)**2: a sound
        # mechanism is refused with probability below 1e-8.
        word, alone, rng = raised_word(failure), replace(self, noted=None), rng.spawn(1)[0]

        def raises(size: int) -> bool:
            attempt = alone._attempt(size, rng)
            return isinstance(attempt, Exception) and raised_word(attempt) == word

        def seldom(calls: int) -> bool:
            return 2 * sum(raises(half) for _ in range(calls)) <= calls

        if not seldom(ATTEMPTS):
            return
        if all(raises(2 * half) for _ in range(TRIES)) and seldom(TRIES):
            name = f"{word.removeprefix(MARK)[:-1]} ({printable(str(failure))})"
            runs = "single runs" if half == 1 else f"calls for {half}"
            raise ValueError(f"a call for {2 * half} runs always raises {name}, which {runs} do not; {WRAPPED}")
        self.noted.add(("batches", ""))  # type: ignore[union-attr]
