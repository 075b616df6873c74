"""Codes: floats that stand for a run that raised, for NaN, None, words and other values that are not numbers."""

from __future__ import annotations

import builtins
import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LARGEST",
    "NAMES",
    "check_exact",
    "is_exact",
    "is_value",
    "nan_values",
    "raised",
    "raised_by",
    "raised_word",
    "unlike_numbers",
    "value_of",
]

LARGEST = float(np.finfo(np.float64).max)  # stands for infinity in scores
# Each code differs from every number that a mechanism could mean: it is below all of them, and above -LARGEST.
RAISED, NAN, NOTHING, WORD, SHAPE, ABSENT, NUMBER, ANOTHER, ODD_NAN, TYPE = (
    -step * 1e305 for step in range(1797, 1787, -1)
)
NAMES = {
    RAISED: "(raised an exception)",
    NAN: "NaN",
    NOTHING: "None",
    WORD: "(a word)",
    SHAPE: "(another shape)",
    ABSENT: "(absent)",
    NUMBER: "(a number)",
    ANOTHER: "(another word)",
    ODD_NAN: "NaN of other bits",
    TYPE: "(another type)",
}
RAISED_WORD = NAMES[RAISED]  # the output of a run that raised, where outputs are not numbers
MARK, CLASS = "(raised ", 2.0**972  # start of such a word; codes of classes are two last bits apart, all below NAN
EXACT = 2**53  # float64 holds every whole number up to here
PLAIN_NAN = np.array(np.nan).view(np.int64)


def raised_word(failure: BaseException) -> str:
    """Return the output of a run that raised: the class of the exception, in ASCII letters and one line."""
    kind = type(failure.__cause__ if isinstance(failure.__cause__, SystemExit) else failure)
    home = "" if kind.__module__ in ("builtins", "__main__", "__mp_main__") else f"{kind.__module__}."
    return f"{MARK}{(home + kind.__qualname__).encode('unicode_escape').decode()})"


def raised_by(word: str) -> float:
    """Return the code of the output of a run that raised, and register its word in `NAMES` of this process."""
    value = RAISED if word == RAISED_WORD else RAISED + zlib.crc32(word.encode()) * CLASS
    NAMES.setdefault(value, word)
    return value


for _kind in vars(builtins).values():  # workers raise mostly these: every process must know them
    if isinstance(_kind, type) and issubclass(_kind, Exception | SystemExit):
        raised_by(f"{MARK}{_kind.__name__})")


def nan_values(floats: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the codes of NaNs: `NAN` for the usual bits, `ODD_NAN` for others (a sign or a payload)."""
    return np.where(np.asarray(floats).view(np.int64) == PLAIN_NAN, NAN, ODD_NAN)


def value_of(value: Any) -> float:
    """Return one scalar as a float: numbers as they are, everything else as its code."""
    if type(value) is float:
        return float(value) if value == value else float(nan_values(np.array(value)))
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return raised_by(value) if value.startswith(MARK) else WORD
    try:
        number = float(value)
    except (TypeError, ValueError):
        return SHAPE
    return value_of(number)


def is_value(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which entries are codes of values that are not numbers."""
    return (numbers >= RAISED) & (numbers <= TYPE)


def raised(outputs: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 for every run that raised an exception, else 0, shape (runs,)."""
    flat = outputs.reshape(len(outputs), -1)[:, 0]
    if flat.dtype.kind in "OU":
        return np.array([str(one).startswith(MARK) for one in flat], np.float64)
    return np.asarray((flat >= RAISED) & (flat < NAN), np.float64)


def unlike_numbers(outputs: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 for every run of numbers that has the code of a word, another shape or another type, else 0."""
    flat = outputs.reshape(len(outputs), math.prod(outputs.shape[1:]))
    return np.asarray(
        np.isin(flat, (WORD, SHAPE, TYPE)).any(axis=1) if flat.dtype.kind == "f" else np.zeros(len(flat)), float
    )


def is_exact(number: int) -> bool:
    """Tell whether a float represents a whole number exactly."""
    return abs(number) <= EXACT or (number.bit_length() < 1000 and float(number) == number)


def check_exact(exact: bool, text: str) -> None:
    """Refuse a number that a float cannot represent: two different outputs must not become one."""
    if not exact:
        raise ValueError(f"outputs must be numbers that float64 tells apart, got {text}: return it as a word")
