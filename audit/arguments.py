"""Checks of numeric arguments; an error is one line with the name and the value received."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["fraction", "positive_number", "real_number", "real_numbers", "whole_number"]

LARGEST = 2**53  # float64 represents every smaller whole number exactly


def whole_number(name: str, value: object, *, least: int) -> int:
    """Return an integer of at least `least` and below 2**53."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    if value >= LARGEST:
        raise ValueError(f"{name} must be below 2**53, got {value}")
    return int(value)


def real_number(name: str, value: object) -> float:
    """Return a real number as a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return float(value)


def positive_number(name: str, value: object) -> float:
    """Return a positive finite number as a float."""
    number = real_number(name, value)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {number}")
    return number


def fraction(name: str, value: object, *, zero: bool = False, one: bool = False) -> float:
    """Return a number between 0 and 1 as a float; `zero` and `one` say whether it may be either."""
    number = real_number(name, value)
    if not (0 < number < 1 or (zero and number == 0) or (one and number == 1)):
        raise ValueError(f"{name} must be in {'[' if zero else '('}0, 1{']' if one else ')'}, got {value}")
    return number


def real_numbers(name: str, values: ArrayLike, *, ndim: tuple[int, ...]) -> NDArray[np.float64]:
    """Return finite floats of the stated dimensions, below 2**53, so that counts of people are exact."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be real numbers, got dtype {array.dtype}")
    if array.ndim not in ndim or array.size == 0:
        dims = " or ".join(map(str, ndim))
        raise ValueError(f"{name} must be a filled array of {dims} dimensions, got shape {array.shape}")
    numbers = array.astype(float)
    wrong = ~(np.abs(numbers) < LARGEST)
    if wrong.any():
        raise ValueError(f"{name} must be finite and below 2**53 in size, got {numbers[wrong][0]}")
    return numbers
