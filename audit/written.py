"""Values as text that can be read again: JSON, and types by place; also rows and names of pandas and polars tables."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import json
import re
from collections.abc import ItemsView, Iterable, KeysView, Mapping, Set
from itertools import chain
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.values import EXACT, MARK, NAMES, ODD_NAN, check_exact, is_exact, value_of

__all__ = [
    "all_written",
    "as_given",
    "classes_of",
    "is_frame",
    "names_of",
    "plain",
    "rows_of",
    "titles",
    "type_of",
    "types_in",
    "written",
]

SIMPLE, NUMBERS = frozenset({float, str, bool, type(None)}), frozenset({int, float, bool})  # what JSON holds as it is
TEXT, PLAIN, JSON_TYPES = frozenset({str}), SIMPLE | NUMBERS, frozenset({"int", "float", "bool", "list", "dict"})
DEEP = "an output must not contain itself, or be nested more deeply than JSON can be"
FORM = "\t"  # separates JSON from types in a written output
LONG = "whole number "  # stands before the digits of an integer that no float represents
LONG_WORD = re.compile(f'"{LONG}(-?0x[0-9a-f]+)"')


def is_frame(value: Any) -> bool:
    """Tell whether a value is a table of pandas or polars."""
    return hasattr(type(value), "itertuples") or hasattr(type(value), "iter_rows")


def rows_of(frame: Any) -> Iterable[tuple[Any, ...]]:
    """Return the rows of a table of pandas or polars."""
    rows: Iterable[tuple[Any, ...]] = (
        frame.itertuples(index=False, name=None) if hasattr(frame, "itertuples") else frame.iter_rows()
    )
    return rows


def names_of(batch: Any) -> list[Any]:
    """Return the names of columns, which a table has once for all runs, so that no event can read them."""
    names = batch.columns if is_frame(batch) else getattr(getattr(batch, "dtype", None), "names", None)
    return [] if names is None else list(names)


def titles(names: Iterable[Any]) -> tuple[str, ...]:
    """Return columns as reports name them, like the entries of a mapping with these keys."""
    return tuple(f"output[{json.dumps(name, ensure_ascii=False, default=str)}]" for name in names)


def classes_of(output: Any) -> tuple[Any, ...]:
    """Return the classes of an output and of its entries; for an array its dtype, for a table also its names."""
    if is_frame(output):
        axes: list[Any] = [getattr(output, name, ()) for name in ("columns", "index")]
        # A range is identified by its ends.
        ends = [(one.start, one.stop, one.step) if hasattr(one, "step") else tuple(one) for one in axes]
        names = [(type(axis), end, tuple(getattr(axis, "names", ()))) for axis, end in zip(axes, ends, strict=True)]
        return (type(output), *output.dtypes, *names)
    if isinstance(output, list | tuple):
        return (type(output), *map(type, output))
    return (type(output),) if type(output) in NUMBERS else (type(output), str(getattr(output, "dtype", "")))


def type_of(value: Any) -> str:
    """Return the class of a value and the types that it declares for all entries; for numpy arrays only the types."""
    name, dtype = type(value).__name__, getattr(value, "dtype", None)
    if isinstance(value, np.generic | type):
        return name
    if type(value) is np.ndarray and value.dtype.kind in "biuf":  # its dtype takes microseconds to print
        return _name_of(value.dtype)
    stated = (
        getattr(value, "dtypes", None) if is_frame(value) else getattr(getattr(value, "schema", None), "types", None)
    )
    if dtype is not None:
        stated = [dtype.type.__name__ if getattr(dtype, "kind", "") in ("U", "S") else dtype]  # without their lengths
    types = ", ".join(map(str, stated)) if stated is not None else ""
    return types if type(value) is np.ndarray else f"{name} of {types}" if types else name


_name_of = functools.lru_cache(maxsize=2**10)(str)


def types_in(value: Any) -> dict[str, str]:
    """Return the types in one output by place, except for words, None and usual NaN, which the text itself shows."""
    try:
        return _types_in(value, "output", {})
    except RecursionError:
        raise ValueError(DEEP) from None


def _types_in(value: Any, place: str, types: dict[str, str]) -> dict[str, str]:
    kind = type(value)
    if value is None or kind is str:
        return types
    if (kind in NUMBERS or issubclass(kind, np.generic)) and (not isinstance(value, float) or value == value):
        types[place] = kind.__name__  # most values: no need for the checks below
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
    """Return one output as text from which it can be read again: JSON, and by place the types that JSON lacks."""
    kind = type(output)
    if kind is str:
        return json.dumps(output)
    try:
        text = json.dumps(plain(output))
        parts = [*output, *output.values()] if kind is dict else output if kind in (list, tuple) else [output]
        if PLAIN.issuperset(map(type, parts)) and "NaN" not in text:
            return f'{text}{FORM}{{"output": "tuple"}}' if kind is tuple else text
        types = {place: name for place, name in types_in(output).items() if name not in JSON_TYPES}
    except RecursionError:
        raise ValueError(DEEP) from None
    return text + _form(tuple(types.items()))


@functools.lru_cache(maxsize=2**10)
def _form(types: tuple[tuple[str, str], ...]) -> str:
    """Return types as they stand behind the JSON of an output; cached, as outputs repeat them."""
    return f"{FORM}{json.dumps(dict(types))}" if types else ""


def all_written(outputs: Iterable[Any]) -> list[str]:
    """Return outputs as `written` does, many at once if all are words, or all are lists or tuples of plain values."""
    outputs = list(outputs)
    kind, *others = {*map(type, outputs)} or [None]
    if kind is str and not others:
        return json.dumps(outputs, separators=("\n", ": "))[1:-1].split("\n")  # JSON escapes the line breaks of words
    if kind in (list, tuple) and not others:
        parts = [*chain.from_iterable(outputs)]
        if PLAIN.issuperset(map(type, parts)) and all(-EXACT <= one <= EXACT for one in parts if type(one) is int):
            text = json.dumps(outputs, separators=("\n", ": "))
            if "NaN" not in text:
                end = f'{FORM}{{"output": "tuple"}}' if kind is tuple else ""
                texts = text[2:-2].replace("]\n[", "\f").replace("\n", ", ").split("\f")
                return [f"[{one}]{end}" for one in texts]
    return [*map(written, outputs)]


def _again(text: str) -> Any:
    """Return the value of a written text, with its original keys, tuples and sets included."""
    numbers = LONG_WORD.sub(lambda match: str(int(match[1], 16)), text)
    return json.loads(numbers, object_pairs_hook=lambda pairs: {_key_again(key): value for key, value in pairs})


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
    """Return written outputs as a user's statistic gets them: an array of words, rows of values, or any objects."""
    outputs = [text if text.startswith(MARK) else _again(text.partition(FORM)[0]) for text in texts]
    if all(isinstance(output, str) for output in outputs):
        return np.array(outputs, str)
    width = {
        len(output) if isinstance(output, list) else None
        for output, text in zip(outputs, texts, strict=True)
        if not text.startswith(MARK)
    }
    if len(width) == 1 and None not in width:  # rows: a run that raised has its word in every column
        (columns,) = width
        table = np.empty((len(outputs), columns or 0), object)
        for number, output in enumerate(outputs):
            table[number] = output
        return table
    array = np.empty(len(outputs), object)
    array[:] = outputs
    return array


def plain(value: Any) -> Any:
    """Return a value in types that JSON can hold, or raise TypeError if there are none."""
    if type(value) in SIMPLE:  # most values: no need for the checks below
        return value
    if type(value) is dict and TEXT.issuperset(map(type, value)):
        return dict(zip(_quoted(tuple(value)), _plain_parts(value.values()), strict=True))
    if type(value) in (list, tuple):
        return _plain_parts(value)
    if value is None or isinstance(value, str | bool):
        return value
    if type(value).__name__ == "NAType":  # the missing value of pandas
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
    if isinstance(value, Set) and not isinstance(value, KeysView | ItemsView):  # a view changes with its mapping
        return dict(sorted(_keyed(value, [1] * len(value)).items()))  # a set has no order
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
    """Return values by their keys, written as text; refuse two keys that have the same text."""
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
    """Return keys as text; cached, as outputs repeat them."""
    return tuple(map(json.dumps, keys))


def _key(key: Any) -> str:
    """Return a key of a mapping as text."""
    return json.dumps(plain(key))
