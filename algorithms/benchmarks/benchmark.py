"""What a benchmark is: a mechanism of the literature, two neighboring databases, and what an auditor should find."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from algorithms.noise import TwoTailedGeometric
from algorithms.noise.counts import PureBudget

__all__ = ["Benchmark", "Promising"]


@dataclass(frozen=True)
class Promising(PureBudget):
    """A mechanism that promises pure DP with `epsilon`, the budget in nats, positive and finite."""

    epsilon: float

    def __post_init__(self) -> None:
        _ = TwoTailedGeometric(self.epsilon)  # refuses a bad one


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A mechanism, two neighboring databases, and what an auditor should find.

    Attributes
    ----------
    mechanism : object
        Callable, with a `.claim`.
    x, y : ndarray of int, shape (queries,)
        Answers on the two databases, read-only: the inputs of the literature with the largest loss.
    sound : bool
        Whether the claim holds for this pair.
    note : str
        Which kind of neighbors they are, and what is special.
    at : array_like, optional
        An output with the largest loss, where the law of the loss is continuous.
    """

    mechanism: Any
    x: Any
    y: Any
    sound: bool
    note: str
    at: Any = None

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
        if self.at is None:
            law = self.mechanism.exact_loss(self)
            return float(max(law.maximum, law.reverse().maximum))
        on_x, on_y = (self.mechanism.log_likelihood(np.array([self.at]), answers)[0] for answers in (self.x, self.y))
        return abs(float(on_x - on_y))
