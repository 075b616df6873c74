"""Parse parameters of `--set NAME=VALUE` by their annotations, or else by the types of their defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from inspect import Parameter
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import typer

__all__ = ["described", "read_parameters", "whole_size", "writable"]

DIGITS = 18  # of the largest number that is parsed; other code limits the number of runs

Reader = tuple[str, Callable[[str], Any]]  # description of valid values, for messages, and the parser


def whole_size(text: str) -> int:
    """Parse a number of runs: 200000, 200_000 or 1e6."""
    with suppress(InvalidOperation):
        number = Decimal(text)
        if number.is_finite() and number.adjusted() < DIGITS and number == int(number):
            return int(number)
    raise typer.BadParameter(f"must be a whole number, such as 200000, 200_000 or 1e6, got {text!r}")


READERS: dict[Any, Reader] = {
    int: ("a whole number", whole_size),
    float: ("a number", float),
    Fraction: ("a fraction such as 1/3", Fraction),
    str: ("a word", str),
    bool: ("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
}
SEQUENCES = (tuple, list, Sequence)


def writable(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return the parameters that have a default and a type that can be parsed from text."""
    free = {name: parameter for name, parameter in parameters.items() if parameter.default is not Parameter.empty}
    return {name: parameter for name, parameter in free.items() if _reader(_kind(parameter)) is not None}


def read_parameters(words: Sequence[str], parameters: Mapping[str, Parameter], of: str) -> dict[str, Any]:
    """Parse words NAME=VALUE, each of a known parameter and given only once."""
    values: dict[str, Any] = {}
    for word in words:
        name, _, text = word.partition("=")
        if not text:
            raise ValueError(f"--set must be NAME=VALUE, got {word!r}")
        if name not in parameters:
            raise ValueError(f"{of} has no parameter {name!r}; it has {described(parameters) or 'none'}")
        if name in values:
            raise ValueError(f"--set must give a parameter once, got {name} twice")
        rule, read = _reader(_kind(parameters[name])) or READERS[str]
        try:
            values[name] = read(text)
        except (ValueError, KeyError, ArithmeticError, typer.BadParameter):
            raise ValueError(f"{name} must be {rule}, got {text!r}") from None
    return values


def described(parameters: Mapping[str, Parameter]) -> str:
    """Return parameters with their defaults in one line, for messages."""
    return ", ".join(f"{name}={_written(one.default)}" for name, one in parameters.items())


def _written(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, SEQUENCES) and not isinstance(value, str) else str(value)


def _kind(parameter: Parameter) -> Any:
    return type(parameter.default) if parameter.annotation is parameter.empty else parameter.annotation


def _reader(kind: Any) -> Reader | None:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"one of {', '.join(map(str, parts))}", {str(part): part for part in parts}.__getitem__
    if origin in (Union, UnionType):
        return next(filter(None, map(_reader, parts)), None)
    if origin not in SEQUENCES:
        return READERS.get(kind)
    each = None if get_origin(parts[0]) in SEQUENCES else _reader(parts[0])
    return each and (f"{each[0]}, or several with commas between", lambda text: tuple(map(each[1], text.split(","))))
