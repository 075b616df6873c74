"""What an output may be: an array of numbers, or anything that can be written down; a run that raises has one too."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Set, ValuesView
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.frames import classes_of, names_of, stacked, titles
from audit.io.text import printable
from audit.mechanism import WRAPPED, Mechanism, in_this_process
from audit.values import (
    EXACT,
    MARK,
    NOTHING,
    NUMBERS,
    RAISED_WORD,
    SHAPE,
    TYPE,
    as_given,
    check_exact,
    is_exact,
    is_frame,
    is_value,
    nan_values,
    plain,
    raised_by,
    raised_word,
    rows_of,
    type_of,
    types_in,
    value_of,
    written,
)

__all__ = [
    "ATTEMPTS",
    "RUNNING",
    "Kind",
    "as_given",
    "as_numbers",
    "batch_of",
    "check_number",
    "kind_of",
    "listed",
    "read_outputs",
    "run",
    "settle",
    "written",
]

ATTEMPTS = 8  # runs after which a mechanism that always raises is taken to be in error
TRIES = 100  # calls in a row that raise, from which a batch is taken to raise what its runs do not
PASSES = 1000  # over the halves of a batch that raised an exception, until one of them does
FEW = 16  # runs of a call up to which numpy may take it for another type by chance
RUNNING: ContextVar[Any] = ContextVar("the database on which a mechanism runs", default=None)


@dataclasses.dataclass(frozen=True)
class Kind:
    """What one output is, settled once for a whole audit."""

    shape: tuple[int, ...] | None  # of one output of numbers; None: each is written down as text, whatever it holds
    letters: int = 1  # of such a text, about: the next power of four
    form: tuple[Any, ...] = ()  # types in an output of a sequence, where each run has its own; empty: of an array
    types: tuple[str, ...] = dataclasses.field(default=(), compare=False)  # that a batch may have
    columns: tuple[str, ...] = dataclasses.field(default=(), compare=False)  # as reports name them, if they have names
    # Word of the exception that needs no class, as the first runs raised no other; None: all need none.
    raises: str | None = dataclasses.field(default=None, compare=False)
    # Types and exceptions, until they are settled.
    noted: set[tuple[str, str]] | None = dataclasses.field(default=None, compare=False)


def kind_of(batches: Iterable[Any]) -> Kind:
    """Return the kind of some batches as mechanisms return them: numbers if all are arrays of numbers of one shape.

    What is said of all runs of a batch at once must not differ: it would tell the databases apart, or be lost.
    """
    batches = list(batches)
    for batch in batches:
        _check_sequence(batch)
    names = [names_of(batch) for batch in batches]
    said = {"columns": {", ".join(map(repr, one)) for one in names}, "type": set(map(_spelling, batches))}
    for what, texts in said.items():
        if len(texts - {""}) > 1:
            got = " and ".join(sorted(texts - {""}))
            raise ValueError(f"outputs must have the same {what} on both databases, got {got}")
    arrays = [as_numbers(batch) for batch in batches]
    shapes = {None if array is None else array.shape[1:] for array in arrays}
    sizes = {-1 if shape is None else math.prod(shape) for shape in shapes}
    if len(shapes) > len(sizes) == 1 and all(hasattr(batch, "shape") for batch in batches):  # a vector beside a column
        raise ValueError(f"outputs must have one shape on both databases, got {' and '.join(sorted(map(str, shapes)))}")
    types = sorted({type_of(batch) for batch in batches if len(batch) > 1})
    if len(types) > len(shapes) == 1:  # of a single run, what numpy takes for its type may be another by chance
        raise ValueError(f"outputs must have the same type on both databases, got {' and '.join(types)}")
    rows = [output for batch in batches if isinstance(batch, list | tuple) and len(shapes) == 1 for output in batch]
    like = next((output for output in rows if "output" in types_in(output)), None)  # no NaN
    form = () if like is None else (classes_of(like), types_in(like))
    mixed = bool(form) and _others(rows, form).any()
    shape = None if mixed or len(shapes) > 1 else shapes.pop()
    names += [] if shape is None else map(names_of, rows[:1])  # else those are part of each output
    return Kind(shape, form=form, columns=titles(next(filter(None, names), [])))


def settle(kind: Kind, noted: Iterable[set[tuple[str, str]]]) -> Kind:
    """Return a kind with the types of batches, and the exception, that were noted in a few calls on either database.

    Raises ValueError if no type was noted on both: what is said of a whole call cannot be told of its runs.
    """
    sides = list(noted)
    types = [{name for what, name in side if what == "type"} for side in sides]
    if all(types) and not set.intersection(*types):
        got = " and ".join(", ".join(sorted(side)) for side in types)
        raise ValueError(f"outputs must have the same type on both databases, got {got}")
    classes = [name for what, name in set.union(*sides) if what == "raised"]
    raises = classes[0] if len(classes) == 1 else ""
    return dataclasses.replace(kind, types=tuple(sorted(set.union(*types))), raises=raises, noted=None)


def _spelling(batch: Any) -> str:
    """Return whether a batch is all numbers, or all words that say numbers, as a reader of files may have left them.

    A single run does not tell: it may be either by chance.
    """
    try:
        array = np.asarray(batch)
    except Exception:  # rows of varying length, or an object that is not made for numpy
        return ""
    if array.ndim == 0 or len(array) == 1:
        return ""
    if array.dtype.kind in "biuf":
        return "numbers"
    words = array.dtype.kind == "U" and (isinstance(batch, np.ndarray) or all(isinstance(one, str) for one in batch))
    try:
        return "words that say numbers" if words and array.astype(np.float64).size else ""
    except ValueError:  # other words
        return ""


def batch_of(mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator) -> Any:
    """Return a batch of outputs as the mechanism gives it, one that can be read twice.

    A mechanism that ends the program fails as one that raises an exception does: nobody else's program ends.
    """
    RUNNING.set(data)
    try:
        with in_this_process():
            batch = mechanism(data, size, rng)
        return listed(batch)
    except SystemExit as left:
        failure = RuntimeError(f"a mechanism must not end the program, got SystemExit: {left}")
        raise failure.with_traceback(left.__traceback__) from left


def listed(batch: Any) -> Any:
    """Return a batch that can be read twice, and copied."""
    return list(batch) if isinstance(batch, Iterator | KeysView | ValuesView | ItemsView | deque) else batch


def run(mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator, kind: Kind) -> NDArray[Any]:
    """Return `size` outputs: numbers, shape (size, *kind.shape), or texts, shape (size,).

    They are a copy, as the mechanism may write into its own array again; of a mechanism that says it never does so, by
    ``threads``, they may be its own array, which is not to be written into. A run that raises an exception has an
    output too, since whoever sees the release sees that it failed: the word for its class, or that word's value in
    every entry.
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
    listed = isinstance(batch, list | tuple)
    alike = 1 if listed and numbers is not None and is_frame(batch[0]) else None  # tables of one form: see `stacked`
    if numbers is None or numbers.shape[1:] != kind.shape:
        numbers = np.array([_row(one, kind.shape) for one in _rows(batch)], np.float64)
    if kind.form and listed and (others := _others(batch[:alike], kind.form)).any():
        numbers = np.where(others.reshape(-1, *(1,) * len(kind.shape)), TYPE, numbers)
    return numbers


def _others(batch: Iterable[Any], form: tuple[Any, ...]) -> NDArray[np.bool_]:
    """Tell which outputs hold numbers of other types; words, None, NaN and another shape show without."""
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
    """Return whole numbers as floats, in lists too, but those that a float does not hold."""
    if type(value) is list:
        return [_floats(one) for one in value]
    return float(value) if type(value) is int and is_exact(value) else value


def _attempt(
    mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator, kind: Kind
) -> NDArray[Any] | Exception:
    """Return a batch of outputs, or the exception that one of them raised."""
    try:
        batch = batch_of(mechanism, data, size, rng)
    except MemoryError:  # says nothing of the data
        raise
    except Exception as failure:
        return failure
    stated = "list" if isinstance(batch, list | tuple) else type_of(batch)
    if kind.noted is not None:
        kind.noted.add(("type", stated))
    elif size > FEW and stated not in (*kind.types, "object") and kind.types and isinstance(batch, np.ndarray):
        raise ValueError(
            f"outputs must have the same type in every call, got {stated} after {', '.join(kind.types)}: "
            "return a list, in which each run has its own"
        )
    outputs = read_outputs(batch, kind, own=bool(getattr(mechanism, "threads", False)))
    check_number(len(outputs), size)
    return outputs


def check_number(outputs: int, size: int) -> None:
    """Refuse more or fewer outputs than runs."""
    if outputs != size:
        runs = "1 run" if size == 1 else f"{size} runs"
        raise ValueError(f"a mechanism must return one output a run: asked for {runs}, got {outputs}; {WRAPPED}")


def _rows(batch: Any) -> Iterable[Any]:
    """Return the outputs of a batch one by one; of a data frame, its rows.

    Whole numbers of an array or a column become floats: which they are is said of all, as one that is missing changes.
    """
    if is_frame(batch):
        typed = [str(dtype).lower() != "object" for dtype in batch.dtypes]
        return ([_floats(one) if t else one for one, t in zip(row, typed, strict=True)] for row in rows_of(batch))
    if isinstance(batch, np.ndarray) and batch.ndim:
        rows: list[Any] = (batch.astype(str) if batch.dtype.kind in "mM" else batch).tolist()
        return rows if batch.dtype.kind == "O" else list(map(_floats, rows))
    _check_sequence(batch)
    return batch  # type: ignore[no-any-return]


def _check_sequence(batch: Any) -> None:
    """Refuse one value for all runs, whatever it is."""
    try:
        several = isinstance(batch, Iterable) and len(batch) >= 0  # type: ignore[arg-type]
    except TypeError:  # an array of no dimension, a matrix whose length is ambiguous
        several = False
    if not several or isinstance(batch, str | bytes | Mapping | Set):
        raise ValueError(f"outputs must be a sequence, one a run, got {type(batch).__name__}")


def _row(output: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return one output that should be numbers of a shape: what is none of them has a value of its own.

    It is read as it would be among others, so that none depends on the others of its batch.
    """
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
    """Return a batch if it is an array of numbers that floats hold, shape (runs, *output); None if it is anything else.

    It is a copy, or, where the batch is `own`, an array that is not to be written into and may be the batch's.
    """
    mask = np.ma.getmaskarray(batch) if isinstance(batch, np.ma.MaskedArray) and batch.dtype.kind in "biuf" else None
    original = batch
    try:
        if isinstance(batch, list | tuple) and len(batch) and is_frame(batch[0]):
            batch = stacked(batch)
        if isinstance(batch, list | tuple) and _hides(batch):
            return None
        array = batch if mask is None else batch.filled(0)
        numbers = np.array(array) if batch is original and not own else np.asarray(array)
    except MemoryError:  # says nothing of outputs
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


def _hides(value: Any) -> bool:
    """Tell whether numpy would drop what says which numbers count, or what they are about: a mask, an index, names."""
    if isinstance(value, list | tuple):
        return not NUMBERS.issuperset(map(type, value)) and any(map(_hides, value))
    named = hasattr(value, "iloc") or hasattr(value, "to_pydict") or is_frame(value)
    return named or isinstance(value, np.ma.MaskedArray)


def _texts(texts: list[str]) -> NDArray[Any]:
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def _with_exceptions(
    mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator, kind: Kind, failure: Exception
) -> list[NDArray[Any]]:
    """Return runs in parts, given that one of them at least raises an exception.

    Batches that raise none keep their outputs. Were those that did run again and free to raise none, exceptions would
    be rarer than they are, by another factor on either database.
    """
    if kind.noted is not None and size > 1:
        _check_batches(mechanism, data, size // 2, rng.spawn(1)[0], kind, failure)
    if size == 1:
        word = raised_word(failure)
        if kind.noted is not None:
            kind.noted.add(("raised", word))
        word = RAISED_WORD if kind.raises in (None, word) else word
        return [_texts([word]) if kind.shape is None else np.full((1, *kind.shape), raised_by(word))]
    sizes = size // 2, size - size // 2
    for _ in range(PASSES):
        parts = [_attempt(mechanism, data, half, rng, kind) for half in sizes]
        if any(isinstance(part, Exception) for part in parts):
            break
    else:
        if all(isinstance(_attempt(mechanism, data, size, rng, kind), Exception) for _ in range(ATTEMPTS)):
            raise failure  # it is the batch that cannot be run
        parts[int(rng.random() * size >= sizes[0])] = failure  # so rare that both halves hardly ever raise one
    outputs: list[NDArray[Any]] = []
    for half, part in zip(sizes, parts, strict=True):
        outputs += _with_exceptions(mechanism, data, half, rng, kind, part) if isinstance(part, Exception) else [part]
    return outputs


def _check_batches(
    mechanism: Mechanism, data: Any, half: int, rng: np.random.Generator, kind: Kind, failure: Exception
) -> None:
    """Refuse a mechanism that raises for a batch what its halves by themselves do not: nothing tells how often runs do.

    Where halves raise it with probability r, both together do not with (1 - r) ** 2: a sound mechanism is refused with
    probability below 1e-8.
    """
    word, alone = raised_word(failure), dataclasses.replace(kind, noted=None)

    def raises(size: int) -> bool:
        attempt = _attempt(mechanism, data, size, rng, alone)
        return isinstance(attempt, Exception) and raised_word(attempt) == word

    def seldom(calls: int) -> bool:
        return 2 * sum(raises(half) for _ in range(calls)) <= calls

    assert kind.noted is not None
    if ("batches", "") in kind.noted or not seldom(ATTEMPTS):
        return
    if all(raises(2 * half) for _ in range(TRIES)) and seldom(TRIES):
        name = f"{word.removeprefix(MARK)[:-1]} ({printable(str(failure))})"
        runs = "single runs" if half == 1 else f"calls for {half}"
        raise ValueError(f"a call for {2 * half} runs always raises {name}, which {runs} do not; {WRAPPED}")
    kind.noted.add(("batches", ""))
