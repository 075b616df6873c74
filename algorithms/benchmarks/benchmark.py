"""The class of benchmarks, and checks of the query answers that their mechanisms read."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import TwoTailedGeometric
from algorithms.noise.counts import Pair, PureBudget, chunks

__all__ = [
    *("Benchmark", "Floats", "PureQueryMechanism", "QueryMechanism", "check_answers", "check_pair", "unique_rows")
]

Floats = NDArray[np.float64]


class QueryMechanism(ABC):
    """A mechanism on answers to queries: subclasses define a block of runs and the law of the outputs."""

    blocks: ClassVar[bool] = True  # whether many runs are made block by block

    def __call__(self, queries: ArrayLike, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Release `queries`, shape (queries,), `size` times over: one output a run."""
        if not isinstance(rng, np.random.Generator):  # these mechanisms are for audits only, and have no secure noise
            raise TypeError(f"rng must be a numpy Generator, got {rng!r}")
        answers = self._answers(queries)
        cells = max(answers.size, math.prod(self._shape(answers.size)))
        pieces = chunks(size, cells) if self.blocks and size else [slice(0, size)]
        return np.concatenate([self._run(answers, piece.stop - piece.start, rng) for piece in pieces])

    def log_likelihood(self, outputs: ArrayLike, queries: ArrayLike) -> Floats:
        """Return the log-probability or log-density of each output on a database with these answers, shape (runs,)."""
        answers, released = self._answers(queries), np.asarray(outputs)
        shape = self._shape(answers.size)
        if released.ndim == 0 or released.shape[1:] != shape:
            raise ValueError(f"outputs must have shape {shape} a run, got shape {released.shape}")
        return np.asarray(self._log_law(released, answers))

    def _answers(self, queries: ArrayLike) -> NDArray[Any]:
        return check_answers(queries)

    def _shape(self, queries: int) -> tuple[int, ...]:
        """Shape of one output."""
        return (queries,)

    @abstractmethod
    def _run(self, answers: NDArray[Any], runs: int, rng: np.random.Generator) -> NDArray[Any]: ...

    @abstractmethod
    def _log_law(self, outputs: NDArray[Any], answers: NDArray[Any]) -> Floats: ...


@dataclass(frozen=True)
class PureQueryMechanism(PureBudget, QueryMechanism):
    """A mechanism that promises pure DP with `epsilon`, the budget in nats, positive and finite."""

    epsilon: float

    def __post_init__(self) -> None:
        _ = TwoTailedGeometric(self.epsilon)  # refuses a bad epsilon


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
        How the two databases differ, and what is special about the pair.
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
    """Return the answers of one database as floats, shape (queries,); refuse answers that are not finite numbers."""
    answers = np.atleast_1d(np.asarray(queries))
    if answers.dtype.kind not in "iuf":
        raise TypeError(f"queries must be answered by real numbers, got dtype {answers.dtype}")
    if answers.ndim != 1 or answers.size == 0:
        raise ValueError(f"queries must be one answer each, at least one, got shape {answers.shape}")
    if not np.isfinite(answers).all():
        raise ValueError(f"queries must have finite answers, got {answers[~np.isfinite(answers)][0]}")
    return answers.astype(np.float64)


def check_pair(pair: Pair) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the answers of both databases, shape (queries,) each; refuse bad answers and different lengths."""
    x, y = check_answers(pair.x), check_answers(pair.y)
    if x.size != y.size:
        raise ValueError(f"the two databases must answer the same queries, got {x.size} and {y.size}")
    return x, y


def unique_rows(codes: NDArray[np.generic]) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
    """Return the distinct rows, shape (m, n), and the index of each row in them; comparing bytes is 20 times faster."""
    table = np.ascontiguousarray(codes)
    rows = table.view(f"V{table.itemsize * table.shape[1]}").ravel()
    _, first, which = np.unique(rows, return_index=True, return_inverse=True)
    return table[first], which
