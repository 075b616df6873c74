"""What an output may be: an array of numbers, or anything that can be written down; a run that raises has one too."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py

from audit.mechanism import Mechanism
from audit.values import NAN, NOTHING, RAISED, RAISED_WORD, SHAPE, is_value, value_of

__all__ = [
    "ATTEMPTS",
    "CHANCE",
    "Kind",
    "as_given",
    "as_numbers",
    "chance_of_repeat",
    "check_not_copied",
    "kind_of",
    "read_outputs",
    "run",
    "taken",
    "written",
]

ATTEMPTS = 8  # runs after which a mechanism that always raises is taken to be in error
PASSES = 1000  # over the halves of a batch that raised an exception, until one of them does
COPIES = 16  # of an output that are told from chance, at most
COPIED = 1e-11  # probability below which they are
CHANCE = 1e-12  # below this, chance is out of the question
EXACT = 2**53  # float64 holds every whole number up to here
SIMPLE = frozenset({float, str, bool, type(None)})  # what JSON holds as it is


@dataclasses.dataclass(frozen=True)
class Kind:
    """What one output is, settled once for a whole audit.

    Attributes
    ----------
    shape : tuple of int or None
        Of one output, if outputs are arrays of numbers. None: each is written down as text, whatever it holds.
    letters : int
        Of such a text, about: the next power of four.
    """

    shape: tuple[int, ...] | None
    letters: int = 1


def kind_of(batches: Iterable[Any]) -> Kind:
    """Return the kind of some batches as mechanisms return them: numbers if all are arrays of numbers of one shape.

    Raises
    ------
    ValueError
        If they differ in what is said of all their runs at once: that would tell the databases apart, or be lost.
    """
    batches = list(batches)
    for what, of in (("columns", _columns), ("type", _width), ("type", _spelling)):
        if len(said := {text for batch in batches if (text := of(batch))}) > 1:
            raise ValueError(f"outputs must have the same {what} on both databases, got {' and '.join(sorted(said))}")
    arrays = [as_numbers(batch) for batch in batches]
    shapes = {None if array is None else array.shape[1:] for array in arrays}
    sizes = {-1 if shape is None else math.prod(shape) for shape in shapes}
    if len(shapes) > len(sizes) == 1 and all(hasattr(batch, "shape") for batch in batches):  # a vector beside a column
        raise ValueError(f"outputs must have one shape on both databases, got {' and '.join(sorted(map(str, shapes)))}")
    return Kind(shapes.pop() if len(shapes) == 1 else None)


def _columns(batch: Any) -> str:
    """Return the names of columns, which a table says once of all its runs and no audit looks at."""
    names = batch.columns if _is_frame(batch) else getattr(batch, "column_names", None)
    names = getattr(getattr(batch, "dtype", None), "names", None) if names is None else names
    return ", ".join(map(repr, names)) if names is not None else ""


def _width(batch: Any) -> str:
    """Return the type of an array of floats: those of half the width have other last bits."""
    return str(batch.dtype) if isinstance(batch, np.ndarray) and batch.dtype.kind == "f" else ""


def _spelling(batch: Any) -> str:
    """Return whether a batch is all numbers, or all words that say numbers, as a reader of files may have left them."""
    try:
        given = np.asarray(batch)
    except Exception:  # rows of varying length, or an object that is not made for numpy
        return ""
    if given.dtype.kind in "biuf":
        return "numbers"
    words = given.dtype.kind == "U" and (isinstance(batch, np.ndarray) or all(isinstance(one, str) for one in batch))
    try:
        return "words that say numbers" if words and given.astype(np.float64).size else ""
    except ValueError:  # other words
        return ""


def taken(mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator) -> Any:
    """Return a batch of outputs as the mechanism gives it, one that can be read twice.

    A mechanism that ends the program fails as one that raises an exception does: nobody else's program ends.
    """
    try:
        batch = mechanism(data, size, rng)
        return list(batch) if isinstance(batch, Iterator | deque) else batch
    except SystemExit as left:
        failure = RuntimeError(f"a mechanism must not end the program, got SystemExit: {left}")
        raise failure.with_traceback(left.__traceback__) from left


def run(mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator, kind: Kind) -> NDArray[Any]:
    """Return `size` outputs: numbers, shape (size, *kind.shape), or texts, shape (size,).

    They are a copy, as the mechanism may write into its own array again; of a mechanism that says it never does so, by
    ``threads``, they may be its own array, which is not to be written into. A run that raises an exception has an
    output too, since whoever sees the release sees that it failed: `RAISED` in every entry, or `RAISED_WORD`.
    """
    attempt = _attempt(mechanism, data, size, rng, kind)
    if isinstance(attempt, Exception):
        return np.concatenate(_with_exceptions(mechanism, data, size, rng, kind, attempt))
    return attempt


def read_outputs(batch: Any, kind: Kind, *, own: bool = False) -> NDArray[Any]:
    """Return a batch, as a mechanism returns it or somebody gives it, as outputs of a kind; `own`: see `as_numbers`."""
    if kind.shape is None:
        return _texts([written(one) for one in _rows(batch)])
    numbers = as_numbers(batch, own=own)
    if numbers is not None and numbers.shape[1:] == kind.shape:
        return numbers
    return np.array([_row(one, kind.shape) for one in _rows(batch)], np.float64)


def _attempt(
    mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator, kind: Kind
) -> NDArray[Any] | Exception:
    """Return a batch of outputs, or the exception that one of them raised."""
    try:
        batch = taken(mechanism, data, size, rng)
    except MemoryError:  # says nothing of the data
        raise
    except Exception as failure:
        return failure
    outputs = read_outputs(batch, kind, own=bool(getattr(mechanism, "threads", False)))
    if len(outputs) != size:
        raise ValueError(f"a mechanism must return one output a run: asked for {size} runs, got {len(outputs)}")
    return outputs


def _rows(batch: Any) -> Iterable[Any]:
    """Return the outputs of a batch one by one; of a data frame, its rows."""
    if _is_frame(batch):
        rows: Iterable[Any] = (
            batch.itertuples(index=False, name=None) if hasattr(batch, "itertuples") else batch.iter_rows()
        )
        return rows
    whole = isinstance(batch, str | bytes | Mapping | Set) or (isinstance(batch, np.ndarray) and batch.ndim == 0)
    if whole or not isinstance(batch, Iterable):
        raise ValueError(f"outputs must be a sequence, one a run, got {type(batch).__name__}")
    return batch


def _is_frame(value: Any) -> bool:
    """Tell whether a value is a table of pandas or polars."""
    return hasattr(type(value), "itertuples") or hasattr(type(value), "iter_rows")


def _row(output: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return one output that should be numbers of a shape: what is none of them has a value of its own.

    It is read as it would be among others, so that none depends on the others of its batch.
    """
    if shape == () and isinstance(output, float | str | None):
        return np.array(value_of(output))
    numbers = as_numbers([output])
    if numbers is not None and numbers.shape[1:] == shape:
        return np.asarray(numbers[0], np.float64)
    entries = np.array(_plain(output), object)
    values = np.array([value_of(entry) for entry in entries.flat], np.float64).reshape(entries.shape)
    if values.shape == shape:
        return values
    alone = values.shape == () and is_value(values)
    return np.full(shape, values if alone else SHAPE)


def as_numbers(batch: Any, *, own: bool = False) -> NDArray[Any] | None:
    """Return a batch if it is an array of numbers, shape (runs, *output); None if it is anything else.

    It is a copy, or, where the batch is `own`, an array that is not to be written into and may be the batch's.
    """
    mask = np.ma.getmaskarray(batch) if isinstance(batch, np.ma.MaskedArray) and batch.dtype.kind in "biuf" else None
    try:
        if isinstance(batch, list | tuple) and _hides(batch):
            return None
        given = batch if mask is None else batch.filled(0)
        numbers = np.asarray(given) if own else np.array(given)
    except MemoryError:  # says nothing of outputs
        raise
    except Exception:  # rows of varying length, or an object that is not made for numpy
        return None
    if numbers.dtype.kind not in "biuf" or numbers.ndim == 0 or numbers.size == 0:
        return None
    if numbers.dtype.kind == "f":
        whole = not isinstance(batch, np.ndarray) and bool((np.abs(numbers[np.isfinite(numbers)]) >= EXACT).any())
        for number in np.array(batch, object).flat if whole else ():  # whole numbers, which numpy has made floats
            _check_exact(not isinstance(number, int | np.integer) or int(float(number)) == int(number), f"{number}")
        if numbers.dtype.itemsize > 8:
            _check_exact(np.array_equal(numbers, numbers.astype(np.float64), equal_nan=True), str(numbers.dtype))
        numbers = numbers.astype(np.float64, copy=False)
        if (nan := np.isnan(numbers)).any():
            numbers = np.where(nan, NAN, numbers)
    elif numbers.dtype.itemsize == 8 and not -EXACT <= int(numbers.min()) <= int(numbers.max()) <= EXACT:
        for number in map(int, numbers[(numbers < -EXACT) | (numbers > EXACT)]):
            _check_exact(int(float(number)) == number, f"{number}")
    if own:
        numbers = numbers.view()
        numbers.flags.writeable = False
    return numbers if mask is None else np.where(mask, NOTHING, numbers)


def _hides(value: Any) -> bool:
    """Tell whether numpy would drop what says which numbers count, or what they are about: a mask, an index, names."""
    if isinstance(value, list | tuple):
        return any(map(_hides, value))
    named = hasattr(value, "iloc") or hasattr(value, "to_pydict") or _is_frame(value)
    return named or isinstance(value, np.ma.MaskedArray)


def written(output: Any) -> str:
    """Return one output as text from which it can be read again, types included: JSON, mappings with written keys."""
    try:
        return json.dumps(_plain(output))
    except RecursionError:
        raise ValueError("an output must not contain itself, or be nested more deeply than JSON can be") from None


def as_given(texts: NDArray[Any]) -> NDArray[Any]:
    """Return written outputs as a statistic of one's own gets them: words, or rows of values, or whatever they are."""
    outputs = [RAISED_WORD if text == RAISED_WORD else json.loads(text) for text in texts]
    if all(isinstance(one, str) for one in outputs):
        return np.array(outputs, str)
    width = {len(one) if isinstance(one, list) else None for one in outputs if one != RAISED_WORD}
    if len(width) == 1 and None not in width:  # rows: a run that raised did so in every column
        (columns,) = width
        rows = [[one] * (columns or 0) if isinstance(one, str) else one for one in outputs]
        found = np.empty((len(rows), columns or 0), object)
        for number, row in enumerate(rows):
            found[number] = row
        return found
    kept = np.empty(len(outputs), object)
    kept[:] = outputs
    return kept


def _plain(value: Any) -> Any:
    """Return what JSON can hold of a value, or say that it cannot be read."""
    if type(value) in SIMPLE:  # most values, and the longest way below
        return value
    if value is None or isinstance(value, str | bool):
        return value
    if type(value).__name__ == "NAType":  # what pandas writes where there is no value
        return None
    if isinstance(value, np.generic | np.ndarray):
        if value.dtype.kind in "mM":  # times are words
            return value.astype(str).tolist()
        return _plain(value.tolist())
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        _check_exact(abs(value) <= EXACT or (value.bit_length() < 1000 and float(value) == value), f"{value:#x}"[:40])
        return value
    if isinstance(value, Rational) or type(value).__name__ == "Decimal":
        number = float(value)
        _check_exact(number != number or type(value)(repr(number)) == value, str(value))
        return number
    if isinstance(value, bytes | datetime.date | datetime.time | datetime.timedelta):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return _keyed(value.keys(), value.values())
    if isinstance(value, Set):
        return _keyed(value, [1] * len(value))
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    counted = type(getattr(value, "index", None)).__name__ == "RangeIndex"  # rows of pandas that have no names
    if _is_frame(value):
        frame = value.reset_index(allow_duplicates=True) if hasattr(value, "iloc") and not counted else value
        return _keyed(frame.columns, zip(*_rows(frame), strict=True) if len(frame) else [()] * len(frame.columns))
    if hasattr(value, "iloc"):
        return _plain(value.tolist()) if counted else _keyed(value.index, value.tolist())
    if hasattr(value, "to_pydict"):  # a table of pyarrow
        return _plain(value.to_pydict())
    if hasattr(value, "__array__"):
        return _plain(np.asarray(value))
    raise TypeError(
        "outputs must be numbers, words, None, or sequences and mappings of them, got "
        f"{type(value).__module__}.{type(value).__qualname__}"
    )


def _keyed(keys: Iterable[Any], values: Iterable[Any]) -> dict[str, Any]:
    """Return values by their keys as text, of any type; refuse keys of which two are written alike."""
    texts = [_quoted(key) if type(key) is str else json.dumps(_plain(key)) for key in keys]
    if len(set(texts)) < len(texts):
        raise ValueError(f"keys of an output must be told apart, got {max(texts, key=texts.count)} twice")
    return dict(zip(texts, map(_plain, values), strict=True))


@functools.lru_cache(maxsize=2**14)
def _quoted(key: str) -> str:
    """Return a key as JSON; releases have the same ones again and again."""
    return json.dumps(key)


def _check_exact(exact: bool, given: str) -> None:
    """Refuse a number that a float cannot hold: two outputs must not be taken for one."""
    if not exact:
        raise ValueError(f"outputs must be numbers that float64 tells apart, got {given}: return it as a word")


def _texts(texts: list[str]) -> NDArray[Any]:
    kept = np.empty(len(texts), object)
    kept[:] = texts
    return kept


def _with_exceptions(
    mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator, kind: Kind, failure: Exception
) -> list[NDArray[Any]]:
    """Return runs in parts, given that one of them at least raises an exception.

    Batches that raise none keep their outputs. Were those that did run again and free to raise none, exceptions would
    be rarer than they are, by another factor on either database.
    """
    if size == 1:
        return [_texts([RAISED_WORD]) if kind.shape is None else np.full((1, *kind.shape), RAISED)]
    sizes = size // 2, size - size // 2
    for _ in range(PASSES):
        parts = [_attempt(mechanism, data, half, rng, kind) for half in sizes]
        if any(isinstance(part, Exception) for part in parts):
            break
    else:
        if all(isinstance(_attempt(mechanism, data, size, rng, kind), Exception) for _ in range(ATTEMPTS)):
            raise failure  # it is the batch that cannot be run
        parts[int(rng.random() * size >= sizes[0])] = failure  # so rare that both halves hardly ever raise one
    kept: list[NDArray[Any]] = []
    for half, part in zip(sizes, parts, strict=True):
        kept += _with_exceptions(mechanism, data, half, rng, kind, part) if isinstance(part, Exception) else [part]
    return kept


def check_not_copied(outputs: NDArray[Any]) -> None:
    """Refuse outputs of one database that stand several times more often than chance repeats any.

    Whatever their law, independent outputs that stand k times come with others that stand once less or once more often.
    Let a Poisson number of runs be made: an output then stands k times with a chance of ``exp(-r) * r**k / k!``. Take a
    product of weights, one for each output, of ``1 - b`` for those that stand k - 1 times, ``1 - c`` for k + 1 times
    and ``1 + 2 * sqrt(b * c * k / (k + 1))`` for k times. Its mean is at most 1 at every r, by completing the square,
    and at most ``sqrt(2 * pi * runs) * exp(1 / 12)`` times as much for just so many runs. By Markov's inequality it is
    1 / p times that with probability p at most; a share of that p is for every k and every pair of weights.
    """
    often = np.bincount(_repeats(outputs), minlength=COPIES + 2)[: COPIES + 2]
    k = np.arange(2, COPIES + 1)[:, None]
    b, c = np.repeat(4.0 ** -np.arange(10), 2), np.tile([1.0, 0.5], 10)
    evidence = often[k] * np.log1p(2 * np.sqrt(b * c * k / (k + 1))) + xlog1py(often[k - 1], -b)
    evidence += xlog1py(often[k + 1], -c) - np.log(b.size * k * (k - 1))
    if evidence.max() > math.log(2 * math.pi * len(outputs)) / 2 + 1 / 12 - math.log(COPIED):
        times = 2 + int(evidence.max(axis=1).argmax())
        raise ValueError(
            f"runs must be independent: {often[times]} outputs occur {times} times each, more than chance explains"
        )


def chance_of_repeat(outputs: NDArray[Any]) -> float:
    """Estimate the probability that a second, independent batch equals this one, run by run."""
    counts = _repeats(outputs)
    return float(np.sum((counts / len(outputs)) ** 2) ** len(outputs))


def _repeats(outputs: NDArray[Any]) -> NDArray[np.intp]:
    """Return how often each distinct output occurs."""
    flat = outputs.reshape(len(outputs), -1)
    return np.unique(flat, axis=None if flat.shape[1] == 1 else 0, return_counts=True)[1]  # whole rows sort slowly
