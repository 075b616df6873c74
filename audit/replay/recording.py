"""Run a mechanism while its noise is recorded, or replayed from a recording; also of functions marked `primitive`."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import math
import re
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from audit.installed import plugin
from audit.io.text import printable
from audit.mechanism import in_this_process

__all__ = ["Call", "Recorder", "Sensitivity", "Trace", "primitive", "run"]

Declared = float | tuple[float | None, float | None] | None
P = ParamSpec("P")
Answer = TypeVar("Answer")
ADDRESS = re.compile(r"0x[0-9a-fA-F]+")  # in error messages: differs in every run


class Sensitivity(NamedTuple):
    """Largest change of a query by one step between neighbors, in L1 and L2; None if not declared."""

    l1: float | None
    l2: float | None

    def __str__(self) -> str:
        if self.l1 == self.l2 and self.l1 is not None:
            return f"{self.l1:.4g}"
        named = zip(("L1", "L2"), self, strict=True)
        return " and ".join(f"{name} {number:.4g}" for name, number in named if number is not None)


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a noise primitive."""

    query: str  # name of the values; empty for noise drawn without a value
    value: NDArray[Any] | None  # exact input; None for noise drawn without a value
    law: Any  # of the noise, or its scale; None if unknown
    shape: tuple[int, ...]  # of the draw
    sensitivity: Sensitivity | None  # as declared
    state: str  # of the generator argument before the draw; empty without one
    answer: Any = None  # returned value; None if the recording had no answer
    raised: Exception | None = None  # exception instead of an answer

    def same_draw(self, other: Call) -> bool:
        """Return whether the answer of this call fits the other call."""
        return (self.query, self.shape, self.value is None) == (other.query, other.shape, other.value is None)


@dataclass(frozen=True, eq=False)
class Trace:
    """The record of a run."""

    calls: tuple[Call, ...]  # in order; the last one has no answer if the replay ended there
    output: Any
    error: tuple[str, str] | None  # type and message of the exception that it raised
    stopped: bool  # the replay ended at a call without a recorded answer
    elsewhere: bool  # random numbers were drawn from its generator outside of the primitives
    nanoseconds: int


class _Stopped(BaseException):
    """The replay needs an answer that was not recorded. Not an `Exception`, so that mechanisms do not catch it."""


class _Misused(BaseException):
    """A primitive was called with wrong arguments; `run` raises the error in `args[0]`."""


class Recorder:
    """Replaces the noise primitives: records every call, and takes answers from a recording if there is one."""

    def __init__(self, rng: np.random.Generator, recording: Sequence[Call] | None = None) -> None:
        self.recording = recording
        self.calls: list[Call] = []
        self.elsewhere = False
        self._rng, self._left, self._busy = rng, _state(rng), False

    def look(self) -> None:
        """Check whether the mechanism drew from its generator since the last call."""
        self.elsewhere |= _state(self._rng) != self._left

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
        if self._busy or (value is None and 0 in shape):  # a primitive that calls others, or an empty draw
            return draw()
        self.look()
        exact = None if value is None else np.array(value)
        name = printable(query)
        if exact is not None and exact.dtype.kind not in "biuf":
            raise _Misused(TypeError(f"values of {name!r} must be real numbers, got dtype {exact.dtype}"))
        call = Call(query, exact, _kept(law), shape, _sensitivity(name, sensitivity), _state(rng))
        place = len(self.calls)
        self.calls.append(call)
        self._busy, raised, answer = True, None, None
        try:
            # Also draw in a replay, so that the generator is in the same state afterwards.
            answer = draw()
        except Exception as error:
            raised = error
        finally:
            self._busy, self._left = False, _state(self._rng)
        if self.recording is not None:
            if place >= len(self.recording) or not call.same_draw(self.recording[place]):
                raise _Stopped
            answer, raised = self.recording[place].answer, self.recording[place].raised
        try:
            self.calls[place] = replace(call, answer=copy.deepcopy(answer), raised=raised)
        except Exception as error:
            kind = type(answer).__name__
            raise _Misused(TypeError(f"answers of {name!r} must be what can be copied, got {kind}")) from error
        if raised is not None:  # an exception is also an answer
            raise raised.with_traceback(None)
        return copy.deepcopy(answer)  # the mechanism may modify it


_recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


def run(mechanism: Any, data: Any, seed: np.random.SeedSequence, recording: Sequence[Call] | None = None) -> Trace:
    """Run a mechanism once while its noise is recorded, or taken from `recording`."""
    rng = np.random.default_rng(seed)
    recorder = Recorder(rng, recording)
    output, error, stopped = None, None, False
    watching = plugin("noise").watched(recorder)  # outside of `try`: its errors are not the mechanism's
    token = _recorder.set(recorder)
    begun = time.perf_counter_ns()
    try:
        with watching, in_this_process():
            output = mechanism(data, 1, rng)
    except _Stopped:
        stopped = True
    except _Misused as misuse:
        raise misuse.args[0] from None
    except (Exception, SystemExit) as raised:
        error = (type(raised).__name__, ADDRESS.sub("0x...", str(raised)))
    finally:
        _recorder.reset(token)
    nanoseconds = time.perf_counter_ns() - begun
    recorder.look()
    return Trace(tuple(recorder.calls), output, error, stopped, recorder.elsewhere, nanoseconds)


def _sensitivity(name: str, declared: Declared) -> Sensitivity | None:
    """Return a declared sensitivity; one number bounds L1, and so also L2."""
    if declared is None:
        return None
    pair: tuple[Any, ...] = tuple(declared) if isinstance(declared, tuple | list) else (declared, declared)
    if len(pair) != 2 or not all(one is None or (isinstance(one, Real) and 0 <= float(one) < math.inf) for one in pair):
        rule = "must be one number or two, finite and not negative"
        raise _Misused(ValueError(f"the sensitivity of {name!r} {rule}, got {declared!r}"))
    return Sensitivity(*(None if one is None else float(one) for one in pair))


def _state(rng: Any) -> str:
    """Return the state of a generator and its number of spawned children; empty for other objects."""
    if not isinstance(rng, np.random.Generator):
        return ""
    children = getattr(rng.bit_generator.seed_seq, "n_children_spawned", 0)
    return f"{rng.bit_generator.state} {children}"


def _kept(law: Any) -> Any:
    """Copy a law if it contains mutable data, which the mechanism may modify later."""
    parts = [getattr(law, field.name) for field in dataclasses.fields(law)] if dataclasses.is_dataclass(law) else [law]
    return copy.deepcopy(law) if any(isinstance(part, np.ndarray | list | dict) for part in parts) else law


def primitive(
    value: str,
    *,
    law: str | Callable[..., Any] | None = None,
    sensitivity: str | Declared = None,
    query: str | None = None,
) -> Callable[[Callable[P, Answer]], Callable[P, Answer]]:
    """Register your own function as a noise primitive, whose output may be published, but not its input.

    Outside of `audit.replay` the function is unchanged. Its exceptions count as answers.

    Parameters
    ----------
    value : str
        Name of the argument with the exact numbers.
    law : str or callable, optional
        Name of the argument that is the law or the scale of the noise, or a function of some of the arguments that
        returns it. Without a law, replay does not detect a scale that depends on the data.
    sensitivity : str, float or (float, float), optional
        Name of an argument, or the largest change of the numbers by one step between neighbors: in L1 (which also
        bounds L2), or a pair for L1 and L2, one of which may be None.
    query : str, optional
        Name of the argument with the name of the query. Default: the name of the function.

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
        of_law = list(inspect.signature(law).parameters) if callable(law) else []
        for name in [*(name for name in (value, query, law, sensitivity) if isinstance(name, str)), *of_law]:
            if name not in signature.parameters:
                has = ", ".join(signature.parameters) or "none"
                raise ValueError(f"{function.__name__} has no argument {name!r}, it has {has}")

        @functools.wraps(function)
        def watched(*args: P.args, **kwargs: P.kwargs) -> Answer:
            recorder = _recorder.get()
            if recorder is None:
                return function(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            values = bound.arguments
            exact = np.asarray(values[value])
            answer: Answer = recorder(
                lambda: function(*args, **kwargs),
                law=law(**{name: values[name] for name in of_law}) if callable(law) else values[law] if law else None,
                shape=exact.shape,
                rng=next((part for part in values.values() if isinstance(part, np.random.Generator)), None),
                value=exact,
                query=str(values[query]) if query else function.__name__,
                sensitivity=values[sensitivity] if isinstance(sensitivity, str) else sensitivity,
            )
            return answer

        return watched

    return decorate
