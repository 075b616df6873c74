"""What a benchmark is, and the answers to queries that its mechanism reads, checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import TwoTailedGeometric
from algorithms.noise.counts import Pair, PureBudget

__all__ = ["Benchmark", "Promising", "check_answers", "check_generator", "check_outputs", "check_pair", "unique_rows"]


@dataclass(frozen=True)
class Promising(PureBudget):
    """A mechanism that promises pure DP with `epsilon`, the budget in nats, positive and finite."""

    epsilon: float

    def __post_init__(self) -> None:
        _ = TwoTailedGeometric(self.epsilon)  # refuses a bad one


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A mechanism with a `.claim`, two neighboring databases, and what an auditor should find.

    Attributes
    ----------
    x, y : ndarray of int, shape (queries,)
        Answers on the two databases, read-only: the inputs of the literature with the largest loss.
    sound : bool
        Whether the claim holds for this pair.
    note : str
        Which kind of neighbors they are, and what is special.
    at : array_like
        An output with the largest loss.
    """

    mechanism: Any
    x: Any
    y: Any
    sound: bool
    note: str
    at: Any

    def __post_init__(self) -> None:
        for name in ("x", "y"):
            answers = np.array(getattr(self, name))
            answers.flags.writeable = False
            object.__setattr__(self, name, answers)

    @property
    def name(self) -> str:
        """The name of the mechanism in the literature."""
        return type(self.mechanism).__name__

    @cached_property
    def loss(self) -> float:
        """Largest privacy loss in nats between these two databases, in either order; it may be infinite."""
        on_x, on_y = (self.mechanism.log_likelihood(np.array([self.at]), answers)[0] for answers in (self.x, self.y))
        return abs(float(on_x - on_y))


def check_answers(queries: ArrayLike) -> NDArray[np.float64]:
    """Return the answers of one database as floats, shape (queries,), or say what is wrong with them."""
    answers = np.atleast_1d(np.asarray(queries))
    if answers.dtype.kind not in "iuf":
        raise TypeError(f"queries must be answered by real numbers, got dtype {answers.dtype}")
    if answers.ndim != 1 or answers.size == 0:
        raise ValueError(f"queries must be one answer each, at least one, got shape {answers.shape}")
    if not np.isfinite(answers).all():
        raise ValueError(f"queries must have finite answers, got {answers[~np.isfinite(answers)][0]}")
    return answers.astype(np.float64)


def check_pair(pair: Pair) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the answers of both databases, shape (queries,) each, or say what is wrong with them."""
    x, y = check_answers(pair.x), check_answers(pair.y)
    if x.size != y.size:
        raise ValueError(f"the two databases must answer the same queries, got {x.size} and {y.size}")
    return x, y


def check_outputs(outputs: ArrayLike, *shape: int) -> NDArray[Any]:
    """Return outputs as an array, shape (runs, *shape), or say that they are none."""
    array = np.asarray(outputs)
    if array.ndim == 0 or array.shape[1:] != shape:
        raise ValueError(f"outputs must have shape {shape} a run, got shape {array.shape}")
    return array


def check_generator(rng: Any) -> np.random.Generator:
    """Return a numpy Generator, or say that it is none: benchmarks are for audits and have no secure noise."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy Generator, got {rng!r}")
    return rng


def unique_rows(codes: NDArray[np.generic]) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
    """Return the distinct rows, shape (m, n), and which each row is; bytes are compared, twenty times faster."""
    table = np.ascontiguousarray(codes)
    _, first, which = np.unique(
        table.view(f"V{table.itemsize * table.shape[1]}").ravel(), return_index=True, return_inverse=True
    )
    return table[first], which
