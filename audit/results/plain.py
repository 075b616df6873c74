"""Values read from JSON, checked: fields by their types, counts that runs give, numbers that methods write."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, Literal, TypedDict, get_args, get_origin, get_type_hints

from audit.claims import claim_from_dict
from audit.results.numbers import check_numbers

__all__ = ["Basis", "check_counts", "check_other", "fields_of", "number", "read", "typed"]

FINITE = sys.float_info.max


def fields_of(cls: type, values: Any, kind: str, *, lists: Sequence[str] = ()) -> dict[str, Any]:
    """Return the fields of a saved result, all of them and no others; `lists` are those that JSON holds as lists."""
    if not isinstance(values, dict) or values.get("kind") != kind:
        raise ValueError(f"kind must be {kind!r}, got {values.get('kind') if isinstance(values, dict) else values!r}")
    names = {f.name for f in fields(cls)}
    if wrong := names ^ (values.keys() - {"kind"}):
        raise ValueError(f"{kind} fields are missing or unknown: {', '.join(sorted(wrong))}")
    for name in lists:
        if not isinstance(values[name], list):
            raise ValueError(f"{name} must be a list, got {values[name]!r}")
    check_numbers(values)
    return {name: values[name] for name in names}


def read(
    cls: type, values: Any, kind: str, *, claims: Sequence[str], numbers: Sequence[str], lists: Sequence[str]
) -> dict[str, Any]:
    """Return the fields of a saved result as it takes them: claims, numbers that may be infinite, tuples for lists."""
    result = fields_of(cls, values, kind, lists=lists)
    try:
        result |= {name: claim_from_dict(result[name]) for name in claims if result[name] is not None}
        result |= {name: number(result[name]) for name in numbers} | {name: tuple(result[name]) for name in lists}
    except (TypeError, ValueError) as error:
        article = "an" if kind[0] in "ae" else "a"
        raise ValueError(f"{article} {kind} has a field of the wrong type: {error}") from None
    return typed(cls, result)


def number(value: Any, none: float | None = None) -> float:
    """Return a number from JSON as `plain_number` wrote it, and `none`, if given, for None."""
    if value is None and none is not None:
        return none
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) > FINITE:
        raise ValueError(f"{repr(value)[:80]} is no number")
    return float(value)


def typed(cls: type, values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields if each that is given is of its type, down to the entries of lists and dicts."""
    for name, hint in _hints(cls).items():
        if name in values and not _is_of(values[name], hint):
            words = hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")
            raise ValueError(f"{name} must be {words}, got {values[name]!r}")
    return values


_hints = cache(get_type_hints)  # a third of the time to read a result, if each asked anew


def _is_of(value: Any, hint: Any) -> bool:
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


class Basis(TypedDict, total=False):
    """What bounds read besides the counts of an event, as JSON holds it; each method says which of these it reads."""

    share: int | float  # of the error probability; all of it if absent
    inflation: int | float  # how many times as much the counts vary as those of independent runs; else 1
    unseen: int | float  # share of the counted runs unlike all that selection saw
    regions: int  # databases that the rule may name
    weights: list[int | float]  # of the bins of a likelihood ratio, in nats
    order: int | float  # of the Renyi divergence that they bound
    toward: Literal["x", "y"]  # the database whose law stands first in it
    look: int  # number of the look of an audit that may stop early, from 1; 0 where there is only one
    looks: int | None  # how many there can be, if they share the error equally
    choosing: int  # runs that chose the event of the last stage
    expected: list[int | float] | None  # guesses by the last look, and the share of them to be right
    shortfalls: list[int | float]  # of the bounds of events that other runs might have chosen, in nats
    hits: int  # selection runs that must show an outcome of one database alone, to be chosen instead
    rated: int  # selection runs that chose the event
    most: int  # canaries of one run that the rule could guess
    detects: bool  # of several events, whether it gave the minimum detectable loss


class _Other(TypedDict):
    """What is kept of an event that proved less."""

    event: str
    attack: str
    counts: dict[str, dict[str, int]]
    basis: dict[str, Any]
    notes: list[str]
    measured: int | float


def check_counts(counts: dict[str, dict[str, int]]) -> None:
    """Refuse counts that no runs can give: they must be for x and y, and guesses and bins parts of the runs."""
    if counts.keys() != {"x", "y"}:
        raise ValueError(f"counts must be of x and of y, got {', '.join(map(repr, counts)) or 'none'}")
    for name, side in counts.items():
        parts = [count for kind, count in side.items() if kind != "runs"]
        if min([side.get("runs", -1), *parts]) < 0 or sum(parts) > side["runs"]:
            raise ValueError(f"counts on {name} must be parts of its runs, got {str(side)[:80]}")


def check_other(other: dict[str, Any]) -> None:
    """Refuse an event of `others` that lacks something, or that no method can have written."""
    typed(_Other, other)
    if missing := _Other.__required_keys__ - other.keys():
        raise ValueError(f"each of others must have {', '.join(sorted(missing))}")
    typed(Basis, other["basis"])
    check_counts(other["counts"])
