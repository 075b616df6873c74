"""Running a mechanism many times: blocks, their random streams, and the only parallelism there is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol

import joblib
import numpy as np
from numpy.typing import NDArray

from audit.arguments import whole_number
from audit.mechanism import Mechanism

__all__ = ["Seed", "draw", "seed_sequence", "stream"]

Seed = int | np.random.Generator | np.random.SeedSequence | None
Reduce = Callable[[NDArray[Any]], NDArray[np.float64]]

CELLS = 2**22  # numbers that one block holds: 32 MiB of float64
POOL = np.random.SeedSequence(0).pool_size
WAVE = 4  # blocks a worker may have finished before anyone has taken them
ATTEMPTS = 8  # runs after which a mechanism that always raises is taken to be in error
PASSES = 1000  # over the halves of a batch that raised an exception, until one of them does
RAISED = "(raised an exception)"  # the output of a run that did, where outputs are words
CHANCE = 1e-12  # below this, chance is out of the question


def seed_sequence(rng: Seed) -> np.random.SeedSequence:
    """Return the root of all random streams of one audit.

    Parameters
    ----------
    rng : None, int, numpy.random.Generator or numpy.random.SeedSequence
        None takes fresh entropy from the operating system; a generator is advanced, so that a second audit with it is
        another one.

    Returns
    -------
    numpy.random.SeedSequence
        Its entropy is one number, which reproduces the audit.

    Raises
    ------
    TypeError
        If `rng` is anything else.
    ValueError
        If it is a negative integer.
    """
    if isinstance(rng, np.random.SeedSequence):
        if isinstance(rng.entropy, int) and not rng.spawn_key and rng.pool_size == POOL:
            return rng
        return np.random.SeedSequence(int.from_bytes(rng.generate_state(4).tobytes(), "little"))
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence(int.from_bytes(rng.bytes(16), "little"))
    if rng is None:
        return np.random.SeedSequence()
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer):
        raise TypeError(f"rng must be None, an integer, a Generator or a SeedSequence, got {rng!r}")
    if rng < 0:
        raise ValueError(f"rng must not be a negative integer, got {rng}")
    return np.random.SeedSequence(int(rng))


def entropy_of(root: np.random.SeedSequence) -> int:
    """Return the number that makes `root` again, as `seed_sequence` guarantees that there is one."""
    assert isinstance(root.entropy, int)
    return root.entropy


def stream(root: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """Return the stream with a number of its own below `root`.

    Parameters
    ----------
    root : numpy.random.SeedSequence
        Seed of the audit, or of a part of it.
    *key : int
        Number of the part, then of the part of that.

    Returns
    -------
    numpy.random.SeedSequence
        Always the same one, whatever else was spawned.
    """
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key), pool_size=root.pool_size)


class Store(Protocol):
    """Where finished blocks are kept: see `audit.sampling.checkpoint.BlockStore`."""

    def read(self, stream: np.random.SeedSequence, number: int, /) -> NDArray[Any] | None:
        """Return what was kept of a block, or None."""

    def check(self, stream: np.random.SeedSequence, kept: NDArray[Any], again: Callable[[], NDArray[Any]], /) -> None:
        """Refuse a store whose blocks come out otherwise when they are run again."""

    def write(self, stream: np.random.SeedSequence, number: int, kept: NDArray[Any], /) -> None:
        """Keep what is left of a block."""


def draw(
    mechanism: Mechanism,
    data: Any,
    size: int,
    *,
    reduce: Reduce,
    seed: np.random.SeedSequence,
    shape: tuple[int, ...] | None = None,
    n_jobs: int = 1,
    advance: Callable[[int], None] | None = None,
    store: Store | None = None,
) -> Iterator[NDArray[np.float64]]:
    """Run a mechanism `size` times and yield what `reduce` keeps of each block, in order.

    Runs come in blocks of ``max(1, 2**22 // cells)``, with as many cells as the data or one output has entries, and of
    ``mechanism.runs_per_block`` at most, where it has one. Each block has a random stream of its own and is reduced
    before it is dropped, so memory does not grow with `size`, and results depend neither on `n_jobs` nor on the
    backend, which ``joblib.parallel_config`` may choose. If a worker process is killed, its blocks are run again.

    Parameters
    ----------
    mechanism : Mechanism
        Called as ``mechanism(data, runs, rng)``.
    data : object
        One database.
    size : int
        Runs in all, 0 or more.
    reduce : callable
        Takes outputs, shape (runs, *output), and returns what is needed of them.
    seed : numpy.random.SeedSequence
        Root of the streams of the blocks.
    shape : tuple of int, optional
        Of one output, where it is known.
    n_jobs : int
        Blocks at work at the same time, as in joblib.
    advance : callable, optional
        Told the number of runs of each finished block.
    store : Store, optional
        Where finished blocks are kept as they arrive, and looked up.

    Yields
    ------
    ndarray
        What `reduce` returned for each block.

    Raises
    ------
    ValueError
        If the mechanism returns another number of runs than asked, outputs of another shape, NaN, or the same varying
        outputs for two streams.
    TypeError
        If it returns anything but numbers.
    OSError
        If a finished block cannot be kept, or a worker process was killed twice over the same runs.
    """
    runs = _block_runs(data, shape, mechanism)
    blocks = -(-size // runs)

    def block(number: int) -> tuple[int, NDArray[np.float64]]:
        rng = np.random.default_rng(stream(seed, number))
        return number, reduce(run(mechanism, data, min(runs, size - number * runs), rng, shape=shape))

    # joblib runs ahead of whoever takes the results, so it is handed a few blocks at a time.
    wave = WAVE * joblib.effective_n_jobs(n_jobs)
    first: NDArray[np.float64] | None = None
    for start in range(0, blocks, wave):
        numbers = range(start, min(start + wave, blocks))
        done = {} if store is None else {n: kept for n in numbers if (kept := store.read(seed, n)) is not None}
        for n, kept in done.items():
            assert store is not None  # or nothing would be done
            store.check(seed, kept, lambda n=n: block(n)[1])  # type: ignore[misc]
            break
        arriving = _surviving(block, [number for number in numbers if number not in done], n_jobs)
        for number in numbers:
            while number not in done:
                arrived, kept = next(arriving)
                done[arrived] = kept
                if store is not None:
                    store.write(seed, arrived, kept)
            kept = done.pop(number)
            if first is None:
                first = kept
            elif np.array_equal(first, kept) and chance_of_repeat(kept) < CHANCE:
                raise ValueError(
                    f"blocks 0 and {number} are identical under different rngs: the mechanism ignores its rng"
                )
            if advance is not None:
                advance(min(runs, size - number * runs))
            yield kept


def _surviving(
    block: Callable[[int], tuple[int, NDArray[np.float64]]], numbers: list[int], n_jobs: int
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield blocks as they are finished, and begin again with those that a killed worker process has taken along."""
    missing, deaths = set(numbers), 0
    while missing:
        try:
            with joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered") as parallel:
                for number, kept in parallel(map(joblib.delayed(block), sorted(missing))):
                    missing.remove(number)
                    deaths = 0
                    yield number, kept
        except BrokenProcessPool:
            deaths += 1
            if deaths > 1:
                raise ChildProcessError(
                    "a worker process was killed twice over the same runs: fewer jobs need less memory"
                ) from None


def _block_runs(data: Any, shape: tuple[int, ...] | None, mechanism: Mechanism | None = None) -> int:
    """Return the runs of one block: a function of pair, mechanism and what one output is, and of nothing else."""
    cells = max(data.size if isinstance(data, np.ndarray) else 1, math.prod(shape or ()))
    most = getattr(mechanism, "runs_per_block", CELLS)
    return max(1, min(CELLS // max(1, cells), whole_number("runs_per_block", most, least=1)))


def run(
    mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator, *, shape: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """Return `size` outputs as an array, shape (size, *shape), or say what is wrong with them.

    A run that raises an exception has an output too, since whoever sees the release sees that it failed: -inf in every
    entry, or `RAISED` where outputs are words. If every run raises and the shape of an output is not known, that is an
    error.
    """
    outputs = _attempt(mechanism, data, size, rng)
    if isinstance(outputs, Exception):
        parts = _with_exceptions(mechanism, data, size, rng, outputs)
        given = [part for part in parts if part is not None]
        if shape is None and not given:
            raise outputs
        like = given[0] if given else np.empty((1, *(shape or ())))
        failed = np.full((1, *like.shape[1:]), RAISED if like.dtype.kind == "U" else -np.inf)
        if unlike := [part.shape[1:] for part in given if part.shape != (len(part), *like.shape[1:])]:
            raise ValueError(f"a mechanism must return outputs of one shape, got {like.shape[1:]} and {unlike[0]}")
        outputs = np.concatenate([failed if part is None else part for part in parts])
    if shape is not None and outputs.shape[1:] != shape:
        raise ValueError(f"a mechanism must return outputs of one shape, got {shape} and {outputs.shape[1:]}")
    return check_outputs(outputs)


def _with_exceptions(
    mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator, failure: Exception
) -> list[NDArray[Any] | None]:
    """Return runs in parts, given that one of them at least raises an exception; None stands for one that does.

    Batches that raise none keep their outputs. Were those that did run again and free to raise none, exceptions would
    be rarer than they are, by another factor on either database.
    """
    if size == 1:
        return [None]
    sizes = size // 2, size - size // 2
    for _ in range(PASSES):
        parts = [_attempt(mechanism, data, half, rng) for half in sizes]
        if any(isinstance(part, Exception) for part in parts):
            break
    else:
        if all(isinstance(_attempt(mechanism, data, size, rng), Exception) for _ in range(ATTEMPTS)):
            raise failure  # it is the batch that cannot be run
        parts[int(rng.random() * size >= sizes[0])] = failure  # so rare that both halves hardly ever raise one
    kept: list[NDArray[Any] | None] = []
    for half, part in zip(sizes, parts, strict=True):
        kept += _with_exceptions(mechanism, data, half, rng, part) if isinstance(part, Exception) else [part]
    return kept


def _attempt(mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any] | Exception:
    """Return a batch of outputs, or the exception that one of them raised."""
    try:
        outputs = np.asarray(mechanism(data, size, rng))
    except MemoryError:  # says nothing of the data
        raise
    except Exception as failure:
        return failure
    if outputs.shape[:1] != (size,):
        raise ValueError(f"a mechanism must return one output a run: asked for {size} runs, got shape {outputs.shape}")
    return outputs


def check_outputs(outputs: NDArray[Any]) -> NDArray[Any]:
    """Return outputs, shape (runs, *output), or say what is wrong with them.

    Raises
    ------
    ValueError
        If they are a single value, have no entries, or hold NaN.
    TypeError
        If they are neither numbers nor words.
    """
    if outputs.dtype.kind not in "biufU":
        raise TypeError(f"outputs must be numbers or words, got dtype {outputs.dtype}")
    if outputs.ndim == 0 or outputs.size == 0:
        raise ValueError(f"outputs must be one a run with at least one entry each, got shape {outputs.shape}")
    if outputs.dtype.kind == "f" and np.isnan(outputs).any():
        raise ValueError(f"outputs must not be NaN, got {np.isnan(outputs).sum()} of {outputs.size} values")
    return outputs


def one_output(mechanism: Mechanism, databases: Sequence[Any], seed: np.random.SeedSequence) -> NDArray[Any]:
    """Return one output, shape (1, *output), after the databases have agreed on what one is.

    Parameters
    ----------
    mechanism : Mechanism
        Called with 1 run at a time.
    databases : sequence
        Each must give an output of the same kind and shape in one of a few runs; one of them may only raise.
    seed : numpy.random.SeedSequence
        Root of the streams of these runs.

    Returns
    -------
    ndarray
        Of the first database that gives one.

    Raises
    ------
    ValueError
        If shapes differ, or outputs are words on one database and numbers on another.
    Exception
        What the mechanism raises, if it does so in every run.
    """
    found: list[NDArray[Any]] = []
    failure: Exception | None = None
    for number, data in enumerate(databases):
        for attempt in range(ATTEMPTS):
            try:
                found.append(run(mechanism, data, 1, np.random.default_rng(stream(seed, number, attempt))))
                break
            except MemoryError:
                raise
            except Exception as error:
                failure = failure or error
    if not found:
        assert failure is not None  # each database was tried
        raise failure
    shapes = [output.shape[1:] for output in found]
    if len(set(shapes)) > 1:
        raise ValueError(f"outputs must have one shape on both databases, got {shapes[0]} and {shapes[1]}")
    if len({output.dtype.kind == "U" for output in found}) > 1:
        kinds = " and ".join(str(output.dtype) for output in found)
        raise ValueError(f"outputs must be numbers or words on both databases, got {kinds}")
    return found[0]


def check_uses_rng(
    mechanism: Mechanism, data: Any, runs: int, seed: np.random.SeedSequence, *, shape: tuple[int, ...]
) -> None:
    """Refuse a mechanism that ignores its generator: two short batches under different streams have proved different.

    Batches may agree by chance: large budgets hardly vary, exact releases not at all. Agreement is an error only
    where the outputs vary and chance is out of the question, or the generator was never asked.

    Raises
    ------
    ValueError
        If the runs are not independent: what comes out does not depend on `rng`.
    """
    generators = [np.random.default_rng(stream(seed, number)) for number in range(2)]
    untouched = generators[0].bit_generator.state
    block = _block_runs(data, shape)
    one, other = (
        [
            hash(output.tobytes())  # outputs may be too large to keep
            for start in range(0, runs, block)
            for output in run(mechanism, data, min(block, runs - start), generator, shape=shape)
        ]
        for generator in generators
    )
    if len(set(one)) == len(set(other)) == 1 and one[0] != other[0] and 4.0**-runs < CHANCE:
        raise ValueError(f"runs must be independent: all {runs} of a batch are the same, and another batch differs")
    if one == other and len(set(one)) > 1:
        asked = generators[0].bit_generator.state != untouched
        if not asked or chance_of_repeat(np.array(one)) < CHANCE:
            raise ValueError("outputs are identical under two different rngs: the mechanism ignores its rng")


def check_not_copied(outputs: NDArray[Any]) -> None:
    """Refuse outputs in which every run stands several times: copies void what a bound assumes.

    Independent runs may repeat values, but the numbers of their repeats have a common divisor only by chance.

    Parameters
    ----------
    outputs : ndarray, shape (runs, *output)
        Of one database.

    Raises
    ------
    ValueError
        If every distinct output occurs a multiple of the same number of times.
    """
    counts = _repeats(outputs)
    copies = int(np.gcd.reduce(counts))
    if copies > 1 and float(copies) ** -(counts.size - 1) < CHANCE:
        raise ValueError(f"runs must be independent: {counts.size} outputs occur {copies} times each, or a multiple")


def chance_of_repeat(outputs: NDArray[Any]) -> float:
    """Estimate the probability that a second, independent batch equals this one, run by run."""
    counts = _repeats(outputs)
    return float(np.sum((counts / len(outputs)) ** 2) ** len(outputs))


def _repeats(outputs: NDArray[Any]) -> NDArray[np.intp]:
    """Return how often each distinct output occurs."""
    flat = outputs.reshape(len(outputs), -1)
    return np.unique(flat, axis=None if flat.shape[1] == 1 else 0, return_counts=True)[1]  # whole rows sort slowly
