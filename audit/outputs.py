"""What an output may be: numbers or words, one a run; a run that raises an exception has an output too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.mechanism import Mechanism

__all__ = ["ATTEMPTS", "CHANCE", "RAISED", "chance_of_repeat", "check_not_copied", "check_outputs", "run"]

ATTEMPTS = 8  # runs after which a mechanism that always raises is taken to be in error
PASSES = 1000  # over the halves of a batch that raised an exception, until one of them does
RAISED = "(raised an exception)"  # the output of a run that did, where outputs are words
CHANCE = 1e-12  # below this, chance is out of the question


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
    """Return outputs, shape (runs, *output), or say what is wrong with them."""
    if outputs.dtype.kind not in "biufU":
        raise TypeError(f"outputs must be numbers or words, got dtype {outputs.dtype}")
    if outputs.ndim == 0 or outputs.size == 0:
        raise ValueError(f"outputs must be one a run with at least one entry each, got shape {outputs.shape}")
    if outputs.dtype.kind == "f" and np.isnan(outputs).any():
        raise ValueError(f"outputs must not be NaN, got {np.isnan(outputs).sum()} of {outputs.size} values")
    return outputs


def check_not_copied(outputs: NDArray[Any]) -> None:
    """Refuse outputs of one database in which every run stands several times: copies void what a bound assumes.

    Independent runs may repeat values, but the numbers of their repeats have a common divisor only by chance.
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
