"""Kinds of outputs: arrays of numbers, or anything that can be written as text; a run that raises has one, too."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, Set, ValuesView
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.mechanism import WRAPPED
from audit.values import EXACT, NOTHING, SHAPE, TYPE, check_exact, is_exact, is_value, nan_values, value_of
from audit.written import (
    NUMBERS,
    all_written,
    classes_of,
    is_frame,
    names_of,
    plain,
    rows_of,
    titles,
    type_of,
    types_in,
)

__all__ = ["Kind", "as_numbers", "as_texts", "check_number", "kind_of", "listed", "read_outputs", "resolve_types"]


@dataclasses.dataclass(frozen=True)
class Kind:
    """The type of one output, determined once for a whole audit."""

    shape: tuple[int, ...] | None  # of one output of numbers; None: each output is written as text
    letters: int = 1  # approximate length of such a text: the next power of four
    form: tuple[Any, ...] = ()  # classes and types in an output, if each run has its own; empty for arrays
    types: tuple[str, ...] = dataclasses.field(default=(), compare=False)  # types that a batch may have
    columns: tuple[str, ...] = dataclasses.field(default=(), compare=False)  # names of columns in reports, if any
    # Word of the exception that is coded without its class, as the first runs raised no other; None: all are.
    raises: str | None = dataclasses.field(default=None, compare=False)


def kind_of(batches: Iterable[Any]) -> Kind:
    """Return the kind of some batches as mechanisms return them: numbers if all are arrays of numbers of one shape."""
    # Properties of a whole batch must not differ: they would reveal the database, or be lost.
    batches = list(batches)
    for batch in batches:
        _check_sequence(batch)
    names = [names_of(batch) for batch in batches]
    differing = {"columns": {", ".join(map(repr, one)) for one in names}, "type": set(map(_spelling, batches))}
    for what, texts in differing.items():
        if len(texts - {""}) > 1:
            got = " and ".join(sorted(texts - {""}))
            raise ValueError(f"outputs must have the same {what} on both databases, got {got}")
    arrays = [as_numbers(batch) for batch in batches]
    shapes = {None if array is None else array.shape[1:] for array in arrays}
    sizes = {-1 if shape is None else math.prod(shape) for shape in shapes}
    if len(shapes) > len(sizes) == 1 and all(hasattr(batch, "shape") for batch in batches):  # a vector beside a column
        raise ValueError(f"outputs must have one shape on both databases, got {' and '.join(sorted(map(str, shapes)))}")
    types = sorted({type_of(batch) for batch in batches if len(batch) > 1})
    if len(types) > len(shapes) == 1:  # for a single run, numpy may choose another type by chance
        raise ValueError(f"outputs must have the same type on both databases, got {' and '.join(types)}")
    rows = [output for batch in batches if isinstance(batch, list | tuple) and len(shapes) == 1 for output in batch]
    like = next((output for output in rows if "output" in types_in(output)), None)  # NaN has no type there
    form = () if like is None else (classes_of(like), types_in(like))
    mixed = bool(form) and _others(rows, form).any()
    shape = None if mixed or len(shapes) > 1 else shapes.pop()
    names += [] if shape is None else map(names_of, rows[:1])  # otherwise names are part of each output
    return Kind(shape, form=form, columns=titles(next(filter(None, names), [])))


def resolve_types(kind: Kind, noted: Iterable[set[tuple[str, str]]]) -> Kind:
    """Return a kind with the types of batches, and the exception, that were seen in a few calls on either database."""
    sides = list(noted)
    types = [{name for what, name in side if what == "type"} for side in sides]
    if all(types) and not set.intersection(*types):  # the type of a whole call is no part of a run's output
        got = " and ".join(", ".join(sorted(side)) for side in types)
        raise ValueError(f"outputs must have the same type on both databases, got {got}")
    classes = [name for what, name in set.union(*sides) if what == "raised"]
    raises = classes[0] if len(classes) == 1 else ""
    return dataclasses.replace(kind, types=tuple(sorted(set.union(*types))), raises=raises)


def _spelling(batch: Any) -> str:
    """Return whether a batch is all numbers, or all words that say numbers (as a file reader may give); else empty."""
    try:
        array = np.asarray(batch)
    except Exception:  # rows of varying length, or an object that is not made for numpy
        return ""
    if array.ndim == 0 or len(array) == 1:  # a single run may be either by chance
        return ""
    if array.dtype.kind in "biuf":
        return "numbers"
    words = array.dtype.kind == "U" and (isinstance(batch, np.ndarray) or all(isinstance(one, str) for one in batch))
    try:
        return "words that say numbers" if words and array.astype(np.float64).size else ""
    except ValueError:  # other words
        return ""


def listed(batch: Any) -> Any:
    """Return a batch that can be read twice and copied: iterators and views become lists."""
    return list(batch) if isinstance(batch, Iterator | KeysView | ValuesView | ItemsView | deque) else batch


def read_outputs(batch: Any, kind: Kind, *, own: bool = False) -> NDArray[Any]:
    """Return a batch, from a mechanism or given, as outputs of a kind; `own` as in `as_numbers`."""
    if kind.shape is None:
        return as_texts(all_written(_rows(batch)))
    numbers = as_numbers(batch, own=own)
    listed = isinstance(batch, list | tuple)
    alike = 1 if listed and numbers is not None and is_frame(batch[0]) else None  # tables of one form: see `_stacked`
    if numbers is None or numbers.shape[1:] != kind.shape:
        numbers = np.array([_row(one, kind.shape) for one in _rows(batch)], np.float64)
    if kind.form and listed and (others := _others(batch[:alike], kind.form)).any():
        numbers = np.where(others.reshape(-1, *(1,) * len(kind.shape)), TYPE, numbers)
    return numbers


def _others(batch: Iterable[Any], form: tuple[Any, ...]) -> NDArray[np.bool_]:
    """Tell which outputs hold numbers of other types; words, None, NaN and other shapes have codes anyway."""
    classes, types = form
    flat = all(issubclass(one, int | float | np.generic) for one in classes[1:] if isinstance(one, type))
    return np.array(
        [
            classes_of(one) != classes
            if is_frame(one)
            else not (flat and classes_of(one) == classes)
            and any(types.get(place, name) != name for place, name in types_in(one).items())
            for one in batch
        ],
        bool,
    )


def _floats(value: Any) -> Any:
    """Return whole numbers as floats, also in lists, except those that a float cannot represent."""
    if type(value) is list:
        return [_floats(one) for one in value]
    return float(value) if type(value) is int and is_exact(value) else value


def check_number(outputs: int, size: int) -> None:
    """Refuse more or fewer outputs than runs."""
    if outputs != size:
        runs = "1 run" if size == 1 else f"{size} runs"
        raise ValueError(f"a mechanism must return one output a run: asked for {runs}, got {outputs}; {WRAPPED}")


def _rows(batch: Any) -> Iterable[Any]:
    """Return the outputs of a batch one by one; of a data frame, its rows."""
    # Whole numbers of an array or a column become floats: their type is a property of the whole batch, which a single
    # missing value changes.
    if is_frame(batch):
        typed = [str(dtype).lower() != "object" for dtype in batch.dtypes]
        return ([_floats(one) if t else one for one, t in zip(row, typed, strict=True)] for row in rows_of(batch))
    if isinstance(batch, np.ndarray) and batch.ndim:
        rows: list[Any] = (batch.astype(str) if batch.dtype.kind in "mM" else batch).tolist()
        return rows if batch.dtype.kind == "O" else list(map(_floats, rows))
    _check_sequence(batch)
    return batch  # type: ignore[no-any-return]


def _check_sequence(batch: Any) -> None:
    """Refuse a batch that is one value instead of one output per run."""
    try:
        several = isinstance(batch, Iterable) and len(batch) >= 0  # type: ignore[arg-type]
    except TypeError:  # an array of no dimension, a matrix whose length is ambiguous
        several = False
    if not several or isinstance(batch, str | bytes | Mapping | Set):
        raise ValueError(f"outputs must be a sequence, one a run, got {type(batch).__name__}")


def _row(output: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return one output as numbers of a shape; anything else becomes a code."""
    # It is read as it would be in any batch, so that no output depends on others of its batch.
    if shape == () and isinstance(output, float | str | None):
        return np.array(value_of(output))
    numbers = as_numbers([output])
    if numbers is not None and numbers.shape[1:] == shape:
        return np.asarray(numbers[0], np.float64)
    entries = np.array(plain(output), object)
    values = np.array([value_of(entry) for entry in entries.flat], np.float64).reshape(entries.shape)
    if values.shape == shape:
        return values
    alone = values.shape == () and is_value(values)
    return np.full(shape, values if alone else SHAPE)


def as_numbers(batch: Any, *, own: bool = False) -> NDArray[Any] | None:
    """Return a batch if it is an array of numbers that floats hold, shape (runs, *output); else None."""
    # It is a copy; if the batch is `own`, it is a read-only array that may share the batch's memory.
    mask = np.ma.getmaskarray(batch) if isinstance(batch, np.ma.MaskedArray) and batch.dtype.kind in "biuf" else None
    original = batch
    try:
        if isinstance(batch, list | tuple) and len(batch) and is_frame(batch[0]):
            batch = _stacked(batch)
        if isinstance(batch, list | tuple) and _hides(batch):
            return None
        array = batch if mask is None else batch.filled(0)
        numbers = np.array(array) if batch is original and not own else np.asarray(array)
    except MemoryError:  # not a property of outputs
        raise
    except Exception:  # rows of varying length, or an object that is not made for numpy
        return None
    if numbers.dtype.kind not in "biuf" or numbers.ndim == 0 or numbers.size == 0:
        return None
    if numbers.dtype.kind == "f":
        inexact = not isinstance(batch, np.ndarray) and bool((np.abs(numbers[np.isfinite(numbers)]) >= EXACT).any())
        entries = np.array(batch, object).flat if inexact else ()  # whole numbers, which numpy has made floats
        if not all(is_exact(int(number)) for number in entries if isinstance(number, int | np.integer)):
            return None
        if numbers.dtype.itemsize > 8:
            check_exact(np.array_equal(numbers, numbers.astype(np.float64), equal_nan=True), str(numbers.dtype))
        numbers = numbers.astype(np.float64, copy=False)
        if (nan := np.isnan(numbers)).any():
            numbers = np.where(nan, nan_values(numbers), numbers)
    elif max(-int(numbers.min()), int(numbers.max())) > EXACT and not all(
        map(is_exact, numbers[(numbers < -EXACT) | (numbers > EXACT)].tolist())
    ):
        return None
    if own:
        numbers = numbers.view()
        numbers.flags.writeable = False
    return numbers if mask is None else np.where(mask, NOTHING, numbers)


def _stacked(frames: Sequence[Any]) -> Any:
    """Return the numbers of tables, shape (runs, rows, columns), or the tables if their names or types differ."""
    kinds = {classes_of(one) if is_frame(one) else () for one in frames}
    numbers = np.stack([one.to_numpy() for one in frames]) if len(kinds) == 1 else None
    mixed = len(set(frames[0].dtypes)) > 1  # then whole numbers became floats
    return frames if numbers is None or (mixed and bool((np.abs(numbers) >= EXACT).any())) else numbers


def _hides(value: Any) -> bool:
    """Tell whether numpy would drop a mask, an index or names, which say what numbers mean and which count."""
    if isinstance(value, list | tuple):
        return not NUMBERS.issuperset(map(type, value)) and any(map(_hides, value))
    named = hasattr(value, "iloc") or hasattr(value, "to_pydict") or is_frame(value)
    return named or isinstance(value, np.ma.MaskedArray)


def as_texts(texts: list[str]) -> NDArray[Any]:
    """Return texts as an array of objects, shape (runs,)."""
    array = np.empty(len(texts), object)
    array[:] = texts
    return array
