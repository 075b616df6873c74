"""What is no number, as floats: what a statistic reads of a run that raised, of NaN, None and a word."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ABSENT",
    "ANOTHER",
    "LARGEST",
    "NAMES",
    "NAN",
    "NOTHING",
    "NUMBER",
    "RAISED",
    "RAISED_WORD",
    "SHAPE",
    "WORD",
    "is_value",
    "raised",
    "unlike_numbers",
    "value_of",
]

LARGEST = float(np.finfo(np.float64).max)  # what stands for infinity in scores
# Each is a value of its own, apart from every number that a mechanism could mean: below all of them, above -LARGEST.
RAISED, NAN, NOTHING, WORD, SHAPE, ABSENT, NUMBER, ANOTHER = (-step * 1e305 for step in range(1797, 1789, -1))
NAMES = {
    RAISED: "(raised an exception)",
    NAN: "NaN",
    NOTHING: "None",
    WORD: "(a word)",
    SHAPE: "(another shape)",
    ABSENT: "(absent)",
    NUMBER: "(a number)",
    ANOTHER: "(another word)",
}
RAISED_WORD = NAMES[RAISED]  # the output of a run that raised, where outputs are not numbers


def value_of(given: Any) -> float:
    """Return one scalar as a float: numbers as they are, everything else as the value that stands for it."""
    if type(given) is float:
        return float(given) if given == given else NAN
    if given is None:
        return NOTHING
    if isinstance(given, str):
        return RAISED if given == RAISED_WORD else WORD
    try:
        number = float(given)
    except (TypeError, ValueError):
        return SHAPE
    return NAN if number != number else number


def is_value(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which entries stand for something that is no number."""
    return (numbers >= RAISED) & (numbers <= ANOTHER)


def raised(outputs: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 for every run that raised an exception, else 0, shape (runs,)."""
    flat = outputs.reshape(len(outputs), -1)[:, 0]
    return np.asarray(flat == (RAISED_WORD if flat.dtype.kind in "OU" else RAISED), np.float64)


def unlike_numbers(outputs: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 for every run of numbers in which there is a word, or another shape: no more is known of it."""
    flat = outputs.reshape(len(outputs), -1)
    return np.asarray(
        np.isin(flat, (WORD, SHAPE)).any(axis=1) if flat.dtype.kind == "f" else np.zeros(len(flat)), float
    )
