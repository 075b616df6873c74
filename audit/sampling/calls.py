"""Calls of a mechanism: a batch of outputs, one a run, in which a run that raises an exception has an output too."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.io.text import printable
from audit.mechanism import WRAPPED, Mechanism, in_this_process
from audit.outputs import Kind, as_texts, check_number, listed, read_outputs
from audit.values import MARK, RAISED_WORD, raised_by, raised_word
from audit.written import type_of

__all__ = ["ATTEMPTS", "RUNNING", "Noted", "batch_of", "run"]

ATTEMPTS = 8  # runs after which a mechanism that always raises is taken to be in error
TRIES = 100  # calls in a row that raise, from which a batch is taken to raise what its runs do not
PASSES = 1000  # over the halves of a batch that raised an exception, until one of them does
FEW = 16  # runs of a call up to which numpy may take it for another type by chance
RUNNING: ContextVar[Any] = ContextVar("the database on which a mechanism runs", default=None)
Noted = set[tuple[str, str]]  # types of batches, and exceptions, that calls show before the kind is settled


def batch_of(mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator) -> Any:
    """Return a batch that can be read twice; a mechanism that ends the program counts as one that raises."""
    RUNNING.set(data)
    try:
        with in_this_process():
            batch = mechanism(data, size, rng)
        return listed(batch)
    except SystemExit as left:
        failure = RuntimeError(f"a mechanism must not end the program, got SystemExit: {left}")
        raise failure.with_traceback(left.__traceback__) from left


def run(
    mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator, kind: Kind, noted: Noted | None = None
) -> NDArray[Any]:
    """Return `size` outputs: numbers, shape (size, *kind.shape), or texts, shape (size,).

    They are a copy, unless the mechanism has ``threads`` and so never writes into its arrays again. A run that raises
    an exception has an output too, since a failure can be seen: the word for its class, or that word's value in every
    entry. The first calls of an audit, which settle its kind, collect what they show in `noted`.
    """
    parts = _Caller(mechanism, data, rng, kind, noted).parts(size)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@dataclass(frozen=True)
class _Caller:
    """Calls a mechanism on one database, and reads what it returns as outputs of a kind."""

    mechanism: Mechanism
    data: Any
    rng: np.random.Generator
    kind: Kind
    noted: Noted | None

    def parts(self, size: int) -> list[NDArray[Any]]:
        """Return outputs in one part, or in several if some run raises an exception."""
        attempt = self._attempt(size)
        return self._halved(size, attempt) if isinstance(attempt, Exception) else [attempt]

    def _attempt(self, size: int) -> NDArray[Any] | Exception:
        try:
            batch = batch_of(self.mechanism, self.data, size, self.rng)
        except MemoryError:  # says nothing of the data
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
        outputs = read_outputs(batch, self.kind, own=bool(getattr(self.mechanism, "threads", False)))
        check_number(len(outputs), size)
        return outputs

    def _halved(self, size: int, failure: Exception) -> list[NDArray[Any]]:
        """Return runs in parts, given that one of them at least raises an exception.

        Batches that raise none keep their outputs: to run them again would make exceptions rarer, by another factor on
        either database.
        """
        if self.noted is not None and size > 1:
            self._check_batches(size // 2, failure, self.noted)
        if size == 1:
            return [self._raised(failure)]
        sizes = size // 2, size - size // 2
        for _ in range(PASSES):
            parts = [self._attempt(half) for half in sizes]
            if any(isinstance(part, Exception) for part in parts):
                break
        else:
            if all(isinstance(self._attempt(size), Exception) for _ in range(ATTEMPTS)):
                raise failure  # it is the batch that cannot be run
            parts[int(self.rng.random() * size >= sizes[0])] = failure  # so rare that both halves hardly ever raise one
        outputs: list[NDArray[Any]] = []
        for half, part in zip(sizes, parts, strict=True):
            outputs += self._halved(half, part) if isinstance(part, Exception) else [part]
        return outputs

    def _raised(self, failure: Exception) -> NDArray[Any]:
        word, kind = raised_word(failure), self.kind
        if self.noted is not None:
            self.noted.add(("raised", word))
        word = RAISED_WORD if kind.raises in (None, word) else word
        return as_texts([word]) if kind.shape is None else np.full((1, *kind.shape), raised_by(word))

    def _check_batches(self, half: int, failure: Exception, noted: Noted) -> None:
        """Refuse a mechanism that raises for a batch but not for its halves: nothing tells how often single runs raise.

        If halves raise with probability r, both together do not with (1 - r) ** 2: a sound mechanism is refused with
        probability below 1e-8.
        """
        word, alone = raised_word(failure), replace(self, rng=self.rng.spawn(1)[0], noted=None)

        def raises(size: int) -> bool:
            attempt = alone._attempt(size)
            return isinstance(attempt, Exception) and raised_word(attempt) == word

        def seldom(calls: int) -> bool:
            return 2 * sum(raises(half) for _ in range(calls)) <= calls

        if ("batches", "") in noted or not seldom(ATTEMPTS):
            return
        if all(raises(2 * half) for _ in range(TRIES)) and seldom(TRIES):
            name = f"{word.removeprefix(MARK)[:-1]} ({printable(str(failure))})"
            runs = "single runs" if half == 1 else f"calls for {half}"
            raise ValueError(f"a call for {2 * half} runs always raises {name}, which {runs} do not; {WRAPPED}")
        noted.add(("batches", ""))
