"""Runs whose noise is recorded, or answered from a recording: what `audit.replay` compares."""

from __future__ import annotations

import copy
import functools
import inspect
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from audit.inputs import exhibits

__all__ = ["Call", "Recorder", "Sensitivity", "Trace", "primitive", "run", "seam"]

P = ParamSpec("P")
Answer = TypeVar("Answer")
Declared = float | tuple[float | None, float | None] | None
ADDRESS = re.compile(r"0x[0-9a-fA-F]+")  # in the message of an error: another one in every run


class Sensitivity(NamedTuple):
    """By how much one step between neighbors changes a query at most; None where nothing is said."""

    l1: float | None
    l2: float | None

    def __str__(self) -> str:
        if self.l1 == self.l2 and self.l1 is not None:
            return f"{self.l1:.4g}"
        named = zip(("L1", "L2"), self, strict=True)
        return " and ".join(f"{name} {number:.4g}" for name, number in named if number is not None)


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a noise primitive.

    Attributes
    ----------
    query : str
        What the values are; empty for a draw by itself.
    value : ndarray or None
        What was handed over, exactly; None for a draw by itself.
    law : object
        Of the noise, or its scale; None if the primitive does not tell.
    shape : tuple of int
        Of the draw.
    sensitivity : Sensitivity or None
        As declared.
    state : str
        Of the generator that was handed over, before the draw; empty if none was.
    answer : object
        What came back; None where a replay had none to give.
    """

    query: str
    value: NDArray[Any] | None
    law: Any
    shape: tuple[int, ...]
    sensitivity: Sensitivity | None
    state: str
    answer: Any = None

    def same_draw(self, other: Call) -> bool:
        """Tell whether the other call can take this one's answer."""
        return (self.query, self.shape, self.value is None) == (other.query, other.shape, other.value is None)


@dataclass(frozen=True, eq=False)
class Trace:
    """What a run did.

    Attributes
    ----------
    calls : tuple of Call
        In order; the last one has no answer if the replay ended there.
    output : object
        What it returned.
    error : (str, str) or None
        Kind and message of the exception that it raised instead.
    stopped : bool
        Whether the replay ended at a call that the recording does not have.
    elsewhere : bool
        Whether random numbers were drawn from its generator outside of the primitives.
    nanoseconds : int
        How long it took.
    """

    calls: tuple[Call, ...]
    output: Any
    error: tuple[str, str] | None
    stopped: bool
    elsewhere: bool
    nanoseconds: int


class _Stopped(BaseException):
    """The replay needs an answer that was not recorded. No mechanism should catch it, so it is no `Exception`."""


class _Misused(BaseException):
    """A registered primitive was given what it cannot be: an error of whoever asked for the replay, not a result."""


class Recorder:
    """Stands in for the noise primitives: notes every call, and answers it as a recording has it, if there is one.

    Parameters
    ----------
    given : numpy.random.Generator
        What the mechanism was given; it is watched for numbers that are drawn between the calls.
    recording : sequence of Call, optional
        Whose answers are given again.
    """

    def __init__(self, given: np.random.Generator, recording: Sequence[Call] | None = None) -> None:
        self.recording = recording
        self.calls: list[Call] = []
        self.elsewhere = False
        self._given, self._left, self._busy = given, _state(given), False

    def look(self) -> None:
        """Notice whether anything was drawn since the last call."""
        self.elsewhere |= _state(self._given) != self._left

    def __call__(
        self,
        draw: Callable[[], Any],
        *,
        law: Any,
        shape: tuple[int, ...],
        rng: Any,
        value: Any = None,
        query: str = "",
        sensitivity: Declared = None,
    ) -> Any:
        """Answer a call; see `algorithms.noise.Watcher`."""
        if self._busy or (value is None and 0 in shape):  # a primitive made of others, or a draw of nothing
            return draw()
        self.look()
        exact = None if value is None else np.array(value)
        call = Call(query, exact, law, shape, _sensitivity(sensitivity), _state(rng))
        place = len(self.calls)
        self.calls.append(call)
        self._busy = True
        try:
            # In a replay too, so that what else is drawn from the generator is the same.
            answer = draw()
        finally:
            self._busy, self._left = False, _state(self._given)
        if self.recording is not None:
            if place >= len(self.recording) or not call.same_draw(self.recording[place]):
                raise _Stopped
            answer = self.recording[place].answer
        self.calls[place] = replace(call, answer=_copied(answer))
        return _copied(answer)


_recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


def run(mechanism: Any, data: Any, seed: np.random.SeedSequence, recording: Sequence[Call] | None = None) -> Trace:
    """Run a mechanism once, with its noise recorded or given.

    Parameters
    ----------
    mechanism : Mechanism
        Called as ``mechanism(data, 1, rng)``.
    data : object
        A database.
    seed : numpy.random.SeedSequence
        Of the generator.
    recording : sequence of Call, optional
        Whose answers the primitives give.

    Returns
    -------
    Trace
        With the exception that the mechanism raised, if it did.

    Raises
    ------
    TypeError
        If a registered primitive is not given numbers.
    """
    rng = np.random.default_rng(seed)
    recorder = Recorder(rng, recording)
    output, error, stopped = None, None, False
    with _watching(recorder):
        begun = time.perf_counter_ns()
        try:
            output = mechanism(data, 1, rng)
        except _Stopped:
            stopped = True
        except _Misused as misuse:
            raise TypeError(str(misuse)) from None
        except Exception as raised:
            error = (type(raised).__name__, ADDRESS.sub("0x...", str(raised)))
        taken = time.perf_counter_ns() - begun
    recorder.look()
    return Trace(tuple(recorder.calls), output, error, stopped, recorder.elsewhere, taken)


def primitive(
    value: str,
    *,
    law: str | Callable[..., Any] | None = None,
    sensitivity: str | Declared = None,
    query: str | None = None,
) -> Callable[[Callable[P, Answer]], Callable[P, Answer]]:
    """Make a function of one's own known as a noise primitive: what it returns may be published, what it is given not.

    Parameters
    ----------
    value : str
        Name of the argument with the exact numbers.
    law : str or callable, optional
        Name of the argument that is the law or the scale of the noise; or a function of some of the arguments, by their
        names, that returns it. Only of additive noise with one of the laws of `algorithms.noise` is the exact loss
        known; without a law nobody notices a scale that depends on the data.
    sensitivity : str, float or (float, float), optional
        Name of an argument; or by how much one step between neighbors changes the numbers at most: in L1, and so in L2,
        or in each, of which one may be None.
    query : str, optional
        Name of the argument that says what the numbers are. Default: the name of the function.

    Returns
    -------
    callable
        A decorator. Outside of `audit.replay` the function stays as it is.

    Raises
    ------
    ValueError
        If the function has no argument of such a name.

    Examples
    --------
    >>> from audit import replay
    >>> @replay.primitive("exact", law="scale", sensitivity=1)
    ... def noisy(exact, scale, rng):
    ...     return exact + rng.laplace(scale=scale)
    >>> round(noisy(3.0, 1e-9, np.random.default_rng(0)), 3)
    3.0
    """

    def decorate(function: Callable[P, Answer]) -> Callable[P, Answer]:
        signature = inspect.signature(function)
        needed = [value, *(name for name in (query,) if name is not None)]
        needed += [name for name in (law, sensitivity) if isinstance(name, str)]
        arguments = list(inspect.signature(law).parameters) if callable(law) else []
        for name in needed + arguments:
            if name not in signature.parameters:
                raise ValueError(f"{function.__name__} has no argument {name!r}, it has {_listed(signature)}")

        @functools.wraps(function)
        def watched(*args: P.args, **kwargs: P.kwargs) -> Answer:
            recorder = _recorder.get()
            if recorder is None:
                return function(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments
            exact = np.asarray(given[value])
            if exact.dtype.kind not in "biuf":
                raise _Misused(f"{value} of {function.__name__} must be numbers, got dtype {exact.dtype}")
            generators = [one for one in given.values() if isinstance(one, np.random.Generator)]
            answer: Answer = recorder(
                lambda: function(*args, **kwargs),
                law=law(**{name: given[name] for name in arguments}) if callable(law) else given[law] if law else None,
                shape=exact.shape,
                rng=generators[0] if generators else None,
                value=exact,
                query=str(given[query]) if query else function.__name__,
                sensitivity=given[sensitivity] if isinstance(sensitivity, str) else sensitivity,
            )
            return answer

        return watched

    return decorate


@functools.cache
def seam() -> Any:
    """Return what the exhibits tell of their noise.

    Returns
    -------
    module
        With ``watched(recorder)``, a context whose draws a recorder answers, ``losses_of_change(law, change)`` and
        ``tabulated_exactly(law)``: see `algorithms.additive`.
    """
    return exhibits("noise")


@contextmanager
def _watching(recorder: Recorder) -> Iterator[None]:
    """Hand the draws of the exhibits and of registered primitives to a recorder."""
    token = _recorder.set(recorder)
    try:
        with seam().watched(recorder):
            yield
    finally:
        _recorder.reset(token)


def _sensitivity(declared: Declared) -> Sensitivity | None:
    """One number bounds L1, and L2 is no larger."""
    if declared is None:
        return None
    return Sensitivity(*declared) if isinstance(declared, tuple) else Sensitivity(float(declared), float(declared))


def _state(rng: Any) -> str:
    """Where a generator stands, and how many it has made; nothing of anything else."""
    if not isinstance(rng, np.random.Generator):
        return ""
    made = getattr(rng.bit_generator.seed_seq, "n_children_spawned", 0)
    return f"{rng.bit_generator.state} {made}"


def _copied(answer: Any) -> Any:
    """Mechanisms may go on to work in the array that they were given."""
    return answer.copy() if isinstance(answer, np.ndarray) else copy.deepcopy(answer)


def _listed(signature: inspect.Signature) -> str:
    return ", ".join(signature.parameters) or "none"
