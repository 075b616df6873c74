"""Compare outputs, laws and values exactly, and compute the change of values."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["change_of", "norms", "numbers_in", "same"]

CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)  # may have hidden state
LABELS = ("name", "names", "attrs", "index", "columns")  # of data frames, which ``equals`` ignores
FITS = 2**62  # differences of integers below it fit into int64

Known = dict[tuple[int, int], tuple[Any, Any]]  # pairs under comparison; references keep their ids unique


def same(one: Any, other: Any, *, known: Known | None = None) -> bool:
    """Return whether two values are the same: arrays, numbers, text, and containers of them."""
    # NaN equals itself. 1 and 1.0 differ, and so do 0.0 and -0.0, data types, masks, and orders of dictionaries.
    # `known` has the enclosing pairs, for values that contain themselves.
    if one is other:
        return True
    if isinstance(one, CODE) or isinstance(other, CODE):
        raise TypeError(_refusal(one if isinstance(one, CODE) else other))
    if type(one) is not type(other):
        return False
    known = {} if known is None else known
    if (id(one), id(other)) in known:
        return True
    known[id(one), id(other)] = one, other
    match one:
        case np.ndarray() | np.generic() | float() | complex():
            equal = _same_arrays(np.asarray(one), np.asarray(other), known)
        case int() | str() | bytes():
            equal = bool(one == other)
        case Mapping():
            equal = same(list(one), list(other), known=known) and all(
                same(one[key], other[key], known=known) for key in one
            )
        case list() | tuple():
            equal = len(one) == len(other) and all(same(*both, known=known) for both in zip(one, other, strict=True))
        case _:
            return _same_objects(one, other, known)
    if not equal or type(one).__module__ in ("builtins", "numpy"):
        return equal
    # A subclass of an array, list or dictionary may have further attributes.
    return same(_attributes(one), _attributes(other), known=known)


def _same_arrays(a: NDArray[Any], b: NDArray[Any], known: Known) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "O":
        return all(same(*both, known=known) for both in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True))
    if a.dtype.kind == "c":
        return _same_arrays(a.real, b.real, known) and _same_arrays(a.imag, b.imag, known)
    equal = a == b
    if a.dtype.kind == "f":
        equal &= np.signbit(a) == np.signbit(b)
    return bool((equal | ((a != a) & (b != b))).all())


def _same_objects(one: Any, other: Any, known: Known) -> bool:
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return all(same(getattr(one, name), getattr(other, name), known=known) for name in names)
    if callable(triples := getattr(one, "tocoo", None)):  # a sparse matrix
        a, b = triples(), other.tocoo()
        return all(same(getattr(a, name), getattr(b, name), known=known) for name in ("shape", "row", "col", "data"))
    if callable(equals := getattr(one, "equals", None)):  # a data frame
        names = [name for name in LABELS if not callable(getattr(one, name, None))]
        labels = (same(getattr(one, name, None), getattr(other, name, None), known=known) for name in names)
        return bool(equals(other)) and all(labels)
    if any("__eq__" in vars(kind) for kind in type(one).__mro__[:-1]):  # all classes except `object`
        return bool(one == other)
    if not hasattr(one, "__dict__") and not _slots(one):
        raise TypeError(_refusal(one))
    return same(_attributes(one), _attributes(other), known=known)


def _attributes(value: Any) -> dict[str, Any]:
    return {**getattr(value, "__dict__", {}), **{name: getattr(value, name) for name in _slots(value)}}


def _slots(value: Any) -> list[str]:
    listed = [vars(kind).get("__slots__", ()) for kind in type(value).__mro__]
    names = [name for slots in listed for name in ([slots] if isinstance(slots, str) else slots)]
    return [name for name in names if not name.startswith("__") and hasattr(value, name)]


def _refusal(value: Any) -> str:
    return f"outputs must be arrays, numbers, words or made of them, got {type(value).__name__}"


def numbers_in(value: Any) -> NDArray[np.float64]:
    """Return all numbers in a value, in order; booleans are not numbers."""
    return np.concatenate([np.zeros(0), *_numbers(value, set())])


def _numbers(value: Any, within: set[int]) -> Iterator[NDArray[np.float64]]:
    if isinstance(value, int | float | np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind in "iuf":
            yield array.astype(np.float64).ravel()
            return
        held: Any = array.ravel().tolist() if array.dtype.kind == "O" and array.ndim else ()
    elif isinstance(value, Mapping):
        held = value.values()
    elif isinstance(value, list | tuple):
        held = value
    elif callable(table := getattr(value, "to_numpy", None)):  # a data frame
        held = (table(),)
    elif dataclasses.is_dataclass(value):
        held = [getattr(value, field.name) for field in dataclasses.fields(value)]
    else:
        held = list(getattr(value, "__dict__", {}).values())
    if id(value) not in within:
        for part in held:
            yield from _numbers(part, within | {id(value)})


def change_of(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """Return the difference of values, entry by entry; it is 0 if both are NaN or the same infinity."""
    if one.dtype.kind in "biu" and other.dtype.kind in "biu":
        small = all(
            -FITS < int(edge) < FITS for array in (one, other) if array.size for edge in (array.min(), array.max())
        )
        kind = np.int64 if small else object
        return np.asarray(other.astype(kind) - one.astype(kind))
    a, b = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, b - a)


def norms(change: NDArray[Any]) -> tuple[float, float]:
    """Return the L1 and L2 norm of a change."""
    if change.dtype.kind == "O":
        integers = [abs(int(step)) for step in change.ravel()]
        return float(sum(integers)), math.hypot(*map(float, integers))
    steps = np.abs(change).astype(np.float64)
    return float(steps.sum()), float(np.linalg.norm(steps.ravel()))
