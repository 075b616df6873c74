"""Differences between two runs with the same answers: in calls, laws, outputs and exceptions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from audit.io.text import printable
from audit.replay.recording import Call, Trace
from audit.replay.sameness import same

__all__ = ["Kind", "Violation", "law_in_words", "same_law"]

Kind = Literal["number", "order", "shape", "law", "sensitivity", "nan", "output", "exception", "seed", "loss", "time"]
PLAIN = (int, float, complex, str, bytes, np.generic, np.ndarray)
CAMEL = str.maketrans({letter: f" {letter.lower()}" for letter in map(chr, range(ord("A"), ord("Z") + 1))})


@dataclass(frozen=True)
class Violation:
    """A violation that a pair of runs shows.

    `kind` is number, order, shape, law or seed of the draws; sensitivity or nan of the values; output, exception or
    time of the run; or the joint loss of all queries. `sentence` describes the observation.
    """

    kind: Kind
    sentence: str
    confidential: bool = False

    def __str__(self) -> str:
        return f"{'CONFIDENTIAL: ' * self.confidential}{self.kind}: {self.sentence}"


def violations_between(first: Trace, second: Trace) -> Iterator[tuple[float, Violation]]:
    """Yield each difference between two runs with the same answers, with the number of its draw, from 1."""
    # Consequences of another violation are left out: calls after the first mismatch, the output of an unfinished run.
    parted = False
    for place, (one, other) in enumerate(zip(first.calls, second.calls, strict=False), start=1):
        if not one.same_draw(other):
            parted = True
            if one.query != other.query or (one.value is None) != (other.value is None):
                yield place, Violation("order", f"draw {place} is of {_name(one)} on x and of {_name(other)} on y")
            else:
                yield place, Violation("shape", f"{_name(one)} has shape {one.shape} on x and {other.shape} on y")
            break
        if not same_law(one.law, other.law):
            words = f"{law_in_words(one.law)} on x and {law_in_words(other.law)} on y"
            yield place, Violation("law", f"{'law' if one.value is None else 'noise'} of {_name(one)}: {words}")
    if first.error != second.error:
        if not parted or second.error:
            yield math.inf, Violation("exception", _errors(first, second))
    elif not parted and len(first.calls) != len(second.calls):
        shared = min(len(first.calls), len(second.calls))
        beyond = _name(max(first.calls, second.calls, key=len)[shared])
        on_y = f"{'at least ' * second.stopped}{len(second.calls)}"
        words = f"x makes {len(first.calls)} draws and y {on_y}: {beyond} is on one of them alone"
        yield shared + 1, Violation("number", words)
    elif not (parted or first.error or same(first.output, second.output)):
        words = f"all answers are the same, and yet {_apart(first.output, second.output)}"
        yield math.inf, Violation("output", f"{words}: more than noisy values is released")


def same_law(one: Any, other: Any) -> bool:
    """Return whether two laws or scales are the same; numbers are compared by value, whatever their type."""
    if isinstance(one, Real) and isinstance(other, Real):
        return one == other or (one != one and other != other)
    return same(one, other)


def law_in_words(law: Any) -> str:
    """Describe a law or a scale."""
    if law is None:
        return "unknown"
    if dataclasses.is_dataclass(law):
        parts = [f"{field.name} {_short(getattr(law, field.name))}" for field in dataclasses.fields(law)]
        return ", ".join([type(law).__name__.translate(CAMEL).strip(), *parts])
    return f"of scale {_short(law)}" if isinstance(law, int | float | np.number) else printable(str(law))


def _name(call: Call) -> str:
    return "noise by itself" if call.value is None else repr(printable(call.query))


def _errors(first: Trace, second: Trace) -> str:
    if first.error and second.error and first.error[0] == second.error[0]:
        name, on_x, on_y = map(printable, (*first.error, second.error[1]))
        return f"both raise {name}, with other messages: {on_x!r} on x, {on_y!r} on y"
    on_x, on_y = (
        "raises {} ({})".format(*map(printable, trace.error)) if trace.error else "does not raise anything"
        for trace in (first, second)
    )
    return f"x {on_x}, y {on_y}"


def _apart(one: Any, other: Any) -> str:
    if not (isinstance(one, PLAIN) and isinstance(other, PLAIN)):
        return "the outputs differ"
    a, b = np.asarray(one), np.asarray(other)
    if a.dtype != b.dtype or a.shape != b.shape or a.dtype.kind == "O":
        return f"the output is {a.dtype} of shape {a.shape} on x and {b.dtype} of shape {b.shape} on y"
    for at in np.argwhere((a != b) & ((a == a) | (b == b)))[:1]:
        words = f"{_short(a[tuple(at)])} on x and {_short(b[tuple(at)])} on y"
        return f"entry {tuple(map(int, at))} of the output is {words}"
    return "the outputs differ"


def _short(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return repr(printable(value)) if isinstance(value, str) else printable(str(value))
