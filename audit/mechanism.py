"""Mechanisms, which can be audited: any callable that turns data into a batch of independent outputs."""

from __future__ import annotations

import copy
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from audit.io.files import recorded

__all__ = [
    "WRAPPED",
    "Mechanism",
    "check_mechanism",
    "copied",
    "in_this_process",
    "mechanism_name",
    "per_run",
    "plain_parameters",
]

SLOW = 256  # runs of one block, if each run is a separate call
WRAPPED = "per_run makes one of a function (data, rng) that returns one output"


class Mechanism(Protocol):
    """A callable ``(data, size, rng)`` that returns `size` independent outputs: an array, or a list of anything.

    All randomness must come from `rng`, a `numpy.random.Generator`. A plain function qualifies. An object may also have

    ``claim``
        Its promise, for example a `PureDP`.
    ``exact_loss(pair)``
        The exact `LossDistribution` of a pair of neighbors, or None if it is not known.
    ``support_masses(pair)``
        For laws without a table: the probability of outputs possible on `x` only, and of those possible on `y` only.
    ``log_likelihood(outputs, data)``
        Log-probability or log-density of each output on a database, shape (runs,), -inf if the output is impossible.
    ``exact(data)``
        One output without noise, an array of the same shape; estimates subtract it.
    ``components()``
        Independent mechanisms, each with one law of noise, whose outputs together are the output.
    ``entrywise``
        True if each entry of an output depends only on the same entry of the data.
    ``runs_per_block``
        Most runs that it makes at a time: few for a slow mechanism. Another number gives another result.
    ``calls_per_side``
        Number of calls that make the counting runs of each database: 256 by default, 32 at least. Fewer calls detect
        less dependence between the runs of a call, and the result says so. Another number gives another result.
    ``threads``
        True if threads may share it, since a call never writes into the object's arrays.
    ``areas``
        For releases over a tree: the parent of every area (-1: root), the area of each entry of an output, and the
        area of each count in the data.
    """

    def __call__(self, data: Any, size: int, rng: np.random.Generator, /) -> Any:
        """Run `size` times on `data`."""
        ...


def per_run(
    function: Callable[[Any, np.random.Generator], Any] | None = None,
    factory: Callable[[], Callable[[Any, np.random.Generator], Any]] | None = None,
    seedable: bool = True,
) -> Mechanism:
    """Make a mechanism from a function that returns one output: ``function(data, rng)``.

    It calls the function once per run, 256 runs per block; making a batch of outputs at a time is a hundred times
    faster.

    Parameters
    ----------
    function : callable, optional
        Takes a database and a `numpy.random.Generator`; returns one output: a number, an array, a word, or a row or
        mapping of such.
    factory : callable, optional
        Instead of `function`: takes nothing and returns such a function. Every process calls it once, as some objects
        cannot be pickled.
    seedable : bool
        False for libraries that take randomness from the operating system: the function then gets only the database.

    Returns
    -------
    Mechanism
        See `Mechanism`.

    Raises
    ------
    TypeError
        If neither or both of the two are given, or the given one cannot be called.
    """
    target = function if factory is None else factory
    if (function is None) == (factory is None) or not callable(target):
        raise TypeError(f"per_run takes a function or a factory, got {function!r} and {factory!r}")
    return _PerRun(target, is_built=factory is None, seedable=seedable)


class _PerRun:
    """Calls a function once a run; see `per_run`."""

    runs_per_block = SLOW

    def __init__(self, target: Callable[..., Any], *, is_built: bool, seedable: bool) -> None:
        self._target, self._is_built, self._built = target, is_built, target if is_built else None
        self.__name__ = mechanism_name(target)
        self._seedable = seedable

    def __call__(self, data: Any, size: int, rng: np.random.Generator, /) -> list[Any]:
        if self._built is None:
            self._built = self._target()
        arguments = (data, rng) if self._seedable else (data,)
        return [copied(self._built(*arguments)) for _ in range(size)]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_built": self._target if self._is_built else None}


def copied(output: Any) -> Any:
    """Return a copy of an output, as a mechanism may reuse its array; one that cannot be copied is refused later."""
    try:
        return copy.deepcopy(output)
    except Exception:
        return output


def check_mechanism(mechanism: Any) -> None:
    """Refuse an object that cannot be called with a database, a number of runs and a generator."""
    got = repr(mechanism)
    if callable(mechanism):
        try:
            signature = inspect.signature(mechanism, follow_wrapped=False)
        except Exception:  # compiled code, or unresolved annotations: the first call shows an error
            return
        try:
            signature.bind(None, 1, None)
            return
        except TypeError:
            got = f"{mechanism_name(mechanism)}{signature}; {WRAPPED}"
    raise TypeError(f"mechanism must be callable as (data, size, rng), got {got}")


@contextmanager
def in_this_process() -> Iterator[None]:
    """Guard a call of foreign code: if it forks, the child exits here, or it would run the audit a second time."""
    process = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != process:
            os._exit(0)


def mechanism_name(mechanism: Callable[..., Any]) -> str:
    """Return a name for reports: that of the function, or of the object's class."""
    return str(getattr(mechanism, "__name__", type(mechanism).__name__))


def plain_parameters(mechanism: Mechanism) -> dict[str, Any]:
    """Return the public attributes of a mechanism that are plain JSON values, with absolute paths shortened."""
    return {
        key: _unplaced(value) if isinstance(value, str) or abs(value) <= sys.float_info.max else str(value)
        for key, value in getattr(mechanism, "__dict__", {}).items()
        if isinstance(value, int | float | str) and not key.startswith("_")
    }


def _unplaced(value: Any) -> Any:
    """Return a value; of an absolute path, only the part that a record may contain."""
    return recorded(value) if isinstance(value, str) and os.path.isabs(value) else value
