"""Arithmetic of the laws with full relative precision in the tails, for scalars and arrays."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from algorithms.noise.drawing import Floats
from audit.arguments import positive_number

__all__ = ["OnIntegers", "OnReals", "minus_half_square", "on_integers", "parameter", "pick", "standardize"]


def parameter(name: str, value: Any, *, at_least: float, at_most: float = math.inf) -> float:
    """Return a parameter of a law as a float; refuse numbers out of its range."""
    number = positive_number(name, value)
    if not at_least <= number <= at_most:
        raise ValueError(f"{name} must be from {at_least} to {at_most}, got {number}")
    return number


def standardize(x: ArrayLike, scale: float) -> Floats:
    """Divide by the scale; an overflow gives infinity, which is the correct limit."""
    with np.errstate(over="ignore"):
        return np.asarray(x, dtype=np.float64) / scale


def minus_half_square(z: Floats) -> Floats:
    """Return ``-z**2 / 2``."""
    with np.errstate(over="ignore"):
        return -0.5 * np.square(z)


def pick(condition: Any, yes: Floats, no: Any) -> Floats:
    """Choose entry by entry; return a scalar for a scalar."""
    picked: Floats = np.where(condition, yes, no)[()]
    return picked


def on_integers(k: Floats, log_mass: Floats) -> Floats:
    """Return the log mass on integers, and minus infinity on other numbers."""
    # NaN stays NaN: minus infinity would mean an impossible output.
    return pick((k == np.floor(k)) | np.isnan(k), log_mass, -np.inf)


class OnIntegers(ABC):
    """A law on the integers that is symmetric about 0; subclasses define its tail."""

    def cdf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise <= x``."""
        return self.sf(-np.floor(np.asarray(x, dtype=np.float64)) - 1)

    def sf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise > x``."""
        k = np.floor(np.asarray(x, dtype=np.float64))
        beyond = self._tail(np.where(k >= 0, k + 1, -k))
        return pick(k >= 0, beyond, 1 - beyond)

    @abstractmethod
    def _tail(self, m: Floats) -> Floats:
        """Return the probability of ``noise >= m`` for m of 1 and more."""


@dataclass(frozen=True)
class OnReals(ABC):
    """A law on the real line that is symmetric about 0; its scale is in units of the noise, from 1e-150 to 1e150."""

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", parameter("scale", self.scale, at_least=1e-150, at_most=1e150))

    @abstractmethod
    def cdf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise <= x``."""

    def sf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise > x``."""
        return self.cdf(-np.asarray(x, dtype=np.float64))
