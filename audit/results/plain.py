"""Values read from JSON, checked against the fields that they are for."""

from __future__ import annotations

import sys
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

__all__ = ["fields_of", "number", "typed"]

LARGEST = sys.float_info.max


def fields_of(cls: type, values: Any, kind: str) -> dict[str, Any]:
    """Return the fields of a saved result, all of them and no others."""
    if not isinstance(values, dict) or values.get("kind") != kind:
        raise ValueError(f"kind must be {kind!r}, got {values.get('kind') if isinstance(values, dict) else values!r}")
    names = {f.name for f in fields(cls)}
    if wrong := names ^ (values.keys() - {"kind"}):
        raise ValueError(f"{kind} fields are missing or unknown: {', '.join(sorted(wrong))}")
    return {name: values[name] for name in names}


def number(value: Any, none: float | None = None) -> float:
    """Return the number that `plain_number` wrote, and `none`, if given, for None."""
    if value is None and none is not None:
        return none
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) > LARGEST:
        raise ValueError(f"{repr(value)[:80]} is no number")
    return float(value)


def typed(cls: type, given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields if each that is given is of its type, down to the entries of lists and dicts."""
    for name, hint in get_type_hints(cls).items():
        if name in given and not _is_of(given[name], hint):
            words = hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")
            raise ValueError(f"{name} must be {words}, got {given[name]!r}")
    return given


def _is_of(value: Any, hint: Any) -> bool:
    """Tell whether a value is of an annotated type; entries of a tuple are of one type here, and keys are text."""
    kind, inside = get_origin(hint) or hint, get_args(hint)
    if kind is Any:
        return True
    if kind is Literal:
        return value in inside
    if kind is UnionType:
        return any(_is_of(value, one) for one in inside)
    if (isinstance(value, bool) and kind is not bool) or not isinstance(value, kind):
        return False
    if kind is dict:
        return all(_is_of(entry, inside[1]) for entry in value.values())
    return kind not in (list, tuple) or all(_is_of(entry, inside[0]) for entry in value)
