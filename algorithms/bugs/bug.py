"""What a known bug is: a mechanism with a promise that it does not keep, and a pair of databases that shows it."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from algorithms.noise import TwoTailedGeometric
from algorithms.noise.counts import Pair
from audit.claims import PureDP, Relation
from audit.exact import LossDistribution

__all__ = ["Bug", "Found", "KnownBug", "UnboundedBug", "check_integer"]

Found = Literal["counts", "witness", "refused"]


@dataclass(frozen=True)
class Bug:
    """What the known bugs share: a budget, the noise that it should buy, and a promise.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    """

    epsilon: float

    def __post_init__(self) -> None:
        _ = self.noise  # refuses a bad epsilon

    @cached_property
    def noise(self) -> TwoTailedGeometric:
        """The law of the error that the promise asks for, per unit of sensitivity."""
        return TwoTailedGeometric(self.epsilon)

    @property
    def claim(self) -> PureDP:
        """What the algorithm promises."""
        return PureDP(self.epsilon)


@dataclass(frozen=True)
class UnboundedBug(Bug):
    """A known bug that keeps no promise at all.

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    """

    @property
    def true_loss(self) -> float:
        """Loss in nats of the worst pair of neighbors: infinite."""
        return math.inf


class _BrokenMechanism(Protocol):
    @property
    def claim(self) -> PureDP: ...
    def __call__(self, data: Any, size: int, rng: np.random.Generator, /) -> NDArray[Any]: ...
    def exact_loss(self, pair: Pair, /) -> LossDistribution | None: ...


@dataclass(frozen=True, eq=False)
class KnownBug:
    """A known bug, ready for an audit. It has an `x` and a `y`, and so is a pair that `exact_loss` understands.

    Attributes
    ----------
    mechanism : Mechanism
        With the promise that it does not keep.
    x, y : ndarray
        Two neighboring databases that show the bug, read-only.
    relation : {"add_remove", "replace_one"}
        How they differ: one step.
    loss : float
        Pure-DP loss of this pair in nats, in the worse order; infinite where none is finite.
    size : int
        Runs, selection included, with which an audit at confidence ``1 - 1e-6`` should find it, where it can.
    event : str
        What to look for, in words.
    found : {"counts", "witness", "refused"}
        By counting runs; only by the exact law, as no event of thresholds shows it; or refused, as its runs are not
        independent.
    source : str
        Where it comes from.
    """

    mechanism: _BrokenMechanism
    x: NDArray[Any]
    y: NDArray[Any]
    _: KW_ONLY
    relation: Relation = "add_remove"
    loss: float
    size: int
    event: str
    found: Found = "counts"
    source: str

    def __post_init__(self) -> None:
        for name in ("x", "y"):
            data = np.array(getattr(self, name))
            data.flags.writeable = False
            object.__setattr__(self, name, data)


def check_integer(name: str, value: object, *, least: int) -> None:
    """Refuse anything but an integer from a limit on.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
        As given.
    least : int
        Smallest that is allowed.

    Raises
    ------
    TypeError
        If it is not an integer.
    ValueError
        If it is below the limit.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
