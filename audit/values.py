"""What a value is: as a float, what a statistic reads of a run that raised, of NaN, None and a word; and as text."""

from __future__ import annotations

import builtins
import dataclasses
import datetime
import functools
import json
import re
import zlib
from collections.abc import ItemsView, Iterable, KeysView, Mapping, Set
from json.encoder import c_make_encoder, encode_basestring_ascii  # type: ignore[attr-defined]
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ABSENT",
    "ANOTHER",
    "EXACT",
    "FORM",
    "LARGEST",
    "MARK",
    "NAMES",
    "NAN",
    "NOTHING",
    "NUMBER",
    "NUMBERS",
    "ODD_NAN",
    "RAISED",
    "RAISED_WORD",
    "SHAPE",
    "TYPE",
    "WORD",
    "as_given",
    "check_exact",
    "is_exact",
    "is_frame",
    "is_value",
    "nan_values",
    "plain",
    "raised",
    "raised_by",
    "raised_word",
    "rows_of",
    "type_of",
    "types_in",
    "unlike_numbers",
    "value_of",
    "written",
]

LARGEST = float(np.finfo(np.float64).max)  # what stands for infinity in scores
# Each is a value of its own, apart from every number that a mechanism could mean: below all of them, above -LARGEST.
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
MARK, CLASS = "(raised ", 2.0**972  # how such a word begins; classes lie two last bits apart, all below NAN
EXACT = 2**53  # float64 holds every whole number up to here
SIMPLE, NUMBERS = frozenset({float, str, bool, type(None)}), frozenset({int, float, bool})  # what JSON holds as it is
TEXT, PLAIN, JSON_TYPES = frozenset({str}), SIMPLE | NUMBERS, frozenset({"int", "float", "bool", "list", "dict"})
DEEP = "an output must not contain itself, or be nested more deeply than JSON can be"
FORM = "\t"  # in a written output, before types
LONG = "whole number "  # before the digits of one that no float holds
LONG_WORD = re.compile(f'"{LONG}(-?0x[0-9a-f]+)"')
ENCODER = c_make_encoder(None, None, encode_basestring_ascii, None, ": ", ", ", False, False, True)
PLAIN_NAN = np.array(np.nan).view(np.int64)


def raised_word(failure: BaseException) -> str:
    """Return the output of a run that raised, by the class of the exception: letters that are ASCII, in one line."""
    kind = type(failure.__cause__ if isinstance(failure.__cause__, SystemExit) else failure)
    home = "" if kind.__module__ in ("builtins", "__main__", "__mp_main__") else f"{kind.__module__}."
    return f"{MARK}{(home + kind.__qualname__).encode('unicode_escape').decode()})"


def raised_by(word: str) -> float:
    """Return the value that stands for the output of a run that raised; its word is known to this process then."""
    value = RAISED if word == RAISED_WORD else RAISED + zlib.crc32(word.encode()) * CLASS
    NAMES.setdefault(value, word)
    return value


for _kind in vars(builtins).values():  # whatever a worker raises: most often one of these
    if isinstance(_kind, type) and issubclass(_kind, Exception | SystemExit):
        raised_by(f"{MARK}{_kind.__name__})")


def nan_values(floats: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what stands for NaN: of the usual bits, or of others, a sign or a payload."""
    return np.where(np.asarray(floats).view(np.int64) == PLAIN_NAN, NAN, ODD_NAN)


def value_of(value: Any) -> float:
    """Return one scalar as a float: numbers as they are, everything else as the value that stands for it."""
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
    """Tell which entries stand for something that is no number."""
    return (numbers >= RAISED) & (numbers <= TYPE)


def raised(outputs: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 for every run that raised an exception, else 0, shape (runs,)."""
    flat = outputs.reshape(len(outputs), -1)[:, 0]
    if flat.dtype.kind in "OU":
        return np.array([str(one).startswith(MARK) for one in flat], np.float64)
    return np.asarray((flat >= RAISED) & (flat < NAN), np.float64)


def unlike_numbers(outputs: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 for every run of numbers in which there is a word, another shape or type: no more is known of it."""
    flat = outputs.reshape(len(outputs), -1)
    return np.asarray(
        np.isin(flat, (WORD, SHAPE, TYPE)).any(axis=1) if flat.dtype.kind == "f" else np.zeros(len(flat)), float
    )


def is_frame(value: Any) -> bool:
    """Tell whether a value is a table of pandas or polars."""
    return hasattr(type(value), "itertuples") or hasattr(type(value), "iter_rows")


def rows_of(frame: Any) -> Iterable[tuple[Any, ...]]:
    """Return the rows of a table of pandas or polars."""
    rows: Iterable[tuple[Any, ...]] = (
        frame.itertuples(index=False, name=None) if hasattr(frame, "itertuples") else frame.iter_rows()
    )
    return rows


def type_of(value: Any) -> str:
    """Return the class of a value, and the types that it states of all its entries; of numpy's arrays these alone."""
    name, dtype = type(value).__name__, getattr(value, "dtype", None)
    if isinstance(value, np.generic | type):
        return name
    stated = (
        getattr(value, "dtypes", None) if is_frame(value) else getattr(getattr(value, "schema", None), "types", None)
    )
    if dtype is not None:
        stated = [dtype.type.__name__ if getattr(dtype, "kind", "") in ("U", "S") else dtype]  # without their lengths
    types = ", ".join(map(str, stated)) if stated is not None else ""
    return types if type(value) is np.ndarray else f"{name} of {types}" if types else name


def types_in(value: Any) -> dict[str, str]:
    """Return the types in one output by their places, but of words, None and NaN of the usual bits, which show."""
    try:
        return _types_in(value, "output", {})
    except RecursionError:
        raise ValueError(DEEP) from None


def _types_in(value: Any, place: str, types: dict[str, str]) -> dict[str, str]:
    if value is None or type(value) is str:
        return types
    if not isinstance(value, float) or value == value:
        types[place] = f"array of {type_of(value)}" if type(value) is np.ndarray else type_of(value)
    elif value_of(value) == ODD_NAN:
        types[place] = NAMES[ODD_NAN]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        value = value.tolist()
    if isinstance(value, Mapping | Set) and (keys := {type_of(key) for key in value if type(key) not in PLAIN}):
        types[place] += f" with keys of {', '.join(sorted(keys))}"
    parts = ((_key(key), one) for key, one in value.items()) if isinstance(value, Mapping) else ()
    for key, one in enumerate(value) if isinstance(value, list | tuple) else parts:
        _types_in(one, f"{place}[{key}]", types)
    return types


def written(output: Any) -> str:
    """Return one output as text from which it can be read again: JSON, and types by place where JSON has others."""
    kind = type(output)
    if kind is str:
        return encode_basestring_ascii(output)
    try:
        text = _encode(plain(output))
        parts = [*output, *output.values()] if kind is dict else output if kind in (list, tuple) else [output]
        if PLAIN.issuperset(map(type, parts)) and "NaN" not in text:
            return f'{text}{FORM}{{"output": "tuple"}}' if kind is tuple else text
        types = {place: name for place, name in types_in(output).items() if name not in JSON_TYPES}
    except RecursionError:
        raise ValueError(DEEP) from None
    return f"{text}{FORM}{_encode(types)}" if types else text


def _digits(match: re.Match[str]) -> str:
    """Return a whole number that was written as a word."""
    return str(int(match[1], 16))


def _again(text: str) -> Any:
    """Return what was written, with keys as they were: tuples and sets, too."""
    return json.loads(LONG_WORD.sub(_digits, text), object_pairs_hook=_with_keys)


def _with_keys(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
    return {_key_again(key): value for key, value in pairs}


@functools.lru_cache(maxsize=2**10)
def _key_again(text: str) -> Any:
    return _hashable(_again(text))


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):  # a set is written as a mapping to 1
        return frozenset(key if one == 1 else (key, _hashable(one)) for key, one in value.items())
    return value


def as_given(texts: NDArray[Any]) -> NDArray[Any]:
    """Return written outputs as a statistic of one's own gets them: words, or rows of values, or whatever they are."""
    outputs = [text if text.startswith(MARK) else _again(text.partition(FORM)[0]) for text in texts]
    if all(isinstance(output, str) for output in outputs):
        return np.array(outputs, str)
    width = {
        len(output) if isinstance(output, list) else None
        for output, text in zip(outputs, texts, strict=True)
        if not text.startswith(MARK)
    }
    if len(width) == 1 and None not in width:  # rows: a run that raised did so in every column
        (columns,) = width
        rows = [[output] * (columns or 0) if isinstance(output, str) else output for output in outputs]
        table = np.empty((len(rows), columns or 0), object)
        for number, row in enumerate(rows):
            table[number] = row
        return table
    array = np.empty(len(outputs), object)
    array[:] = outputs
    return array


def plain(value: Any) -> Any:
    """Return what JSON can hold of a value, or say that it cannot be read."""
    if type(value) in SIMPLE:  # most values, and the longest way below
        return value
    if type(value) is dict and TEXT.issuperset(map(type, value)):
        return dict(zip(_quoted(tuple(value)), _plain_parts(value.values()), strict=True))
    if type(value) in (list, tuple):
        return _plain_parts(value)
    if value is None or isinstance(value, str | bool):
        return value
    if type(value).__name__ == "NAType":  # what pandas writes where there is no value
        return None
    if isinstance(value, np.generic | np.ndarray):
        if value.dtype.kind in "mM":  # times are words
            return value.astype(str).tolist()
        return plain(value.tolist())
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        return value if is_exact(value) else f"{LONG}{value:#x}"  # a word, which keeps all of its digits
    if isinstance(value, Rational) or type(value).__name__ == "Decimal":
        number = float(value)
        check_exact(number != number or type(value)(repr(number)) == value, str(value))
        return number
    if isinstance(value, bytes | datetime.date | datetime.time | datetime.timedelta):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return _keyed(value.keys(), value.values())
    if isinstance(value, Set) and not isinstance(value, KeysView | ItemsView):  # which a mechanism may change later
        return dict(sorted(_keyed(value, [1] * len(value)).items()))  # the order of a set is nobody's
    if isinstance(value, list | tuple):
        return _plain_parts(value)
    counted = type(getattr(value, "index", None)).__name__ == "RangeIndex"  # rows of pandas that have no names
    if is_frame(value):
        frame = value.reset_index(allow_duplicates=True) if hasattr(value, "iloc") and not counted else value
        return _keyed(frame.columns, zip(*rows_of(frame), strict=True) if len(frame) else [()] * len(frame.columns))
    if hasattr(value, "iloc"):
        return plain(value.tolist()) if counted else _keyed(value.index, value.tolist())
    if hasattr(value, "to_pydict"):  # a table of pyarrow
        return plain(value.to_pydict())
    if hasattr(value, "__array__"):
        return plain(np.asarray(value))
    raise TypeError(
        "outputs must be numbers, words, None, or sequences and mappings of them, got "
        f"{type(value).__module__}.{type(value).__qualname__}"
        + (": make a list of it" if isinstance(value, Iterable) else "")
    )


def _keyed(keys: Iterable[Any], values: Iterable[Any]) -> dict[str, Any]:
    """Return values by their keys as text, of any type; refuse keys of which two are written alike."""
    texts = list(map(_key, keys))
    if len(set(texts)) < len(texts):
        raise ValueError(f"keys of an output must be told apart, got {max(texts, key=texts.count)} twice")
    return dict(zip(texts, _plain_parts(values), strict=True))


def _plain_parts(values: Iterable[Any]) -> list[Any]:
    return [
        one if type(one) in SIMPLE or (type(one) is int and -EXACT <= one <= EXACT) else plain(one) for one in values
    ]


@functools.lru_cache(maxsize=2**10)
def _quoted(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return keys as text; outputs have the same ones again and again."""
    return tuple(map(encode_basestring_ascii, keys))


def _key(key: Any) -> str:
    """Return a key of a mapping as text."""
    return json.dumps(plain(key))


def _encode(value: Any) -> str:
    """Return what `json.dumps` does, which makes an encoder for each."""
    return "".join(ENCODER(value, 0))


def is_exact(number: int) -> bool:
    """Tell whether a float holds a whole number."""
    return abs(number) <= EXACT or (number.bit_length() < 1000 and float(number) == number)


def check_exact(exact: bool, text: str) -> None:
    """Refuse a number that a float cannot hold: two outputs must not be taken for one."""
    if not exact:
        raise ValueError(f"outputs must be numbers that float64 tells apart, got {text}: return it as a word")
