"""Fields of results as JSON holds them, and read again: each by its type, numbers in the range of their name."""

from __future__ import annotations

import math
import sys
from copy import deepcopy
from dataclasses import MISSING, fields
from functools import cache
from types import UnionType
from typing import Any, Literal, TypedDict, get_args, get_origin, get_type_hints

import numpy as np

from audit.arguments import LARGEST
from audit.claims import Claim, claim_from_dict
from audit.results.formatting import plain_number

__all__ = ["Basis", "check_counts", "check_numbers", "check_other", "number", "plain", "read", "typed"]

FINITE = sys.float_info.max
MOST = LARGEST - 1
Rule = tuple[type, float, float]  # whole or real, from, to
RULES: dict[Rule, str] = {
    (int, 0, MOST): "counts counts_x counts_y runs runs_x runs_y canaries hits rated regions look looks choosing most "
    "draws areas units resamples entries entries_changed entry starts",
    (int, 1, MOST): "size distance pairs components attempt call",
    (int, 0, math.inf): "seed seed_entropy",
    (float, 1, MOST): "inflation",
    (float, 0, 1): "confidence share probability false_alarm false_detection",
    (float, 0, MOST): "selection unseen expected shortfalls order lag change percentile multiplier",
    (float, 0, math.inf): "ceiling detectable rare measured seconds epsilon delta rho mu l1_change l2_change",
    (float, -MOST, MOST): "weights",
}
OF_NAME = {name: rule for rule, names in RULES.items() for name in names.split()}
NAMED_BY_OTHERS = ("mechanism", "software")


def plain(result: Any) -> dict[str, Any]:
    """Return the fields of a result for strict JSON: infinity is the string "inf", NaN is None."""
    return {part.name: _plain(getattr(result, part.name)) for part in fields(result)}


def _plain(value: Any) -> Any:
    if isinstance(value, Claim):
        return value.to_dict()
    if isinstance(value, float):
        return None if math.isnan(value) else plain_number(float(value))
    if isinstance(value, tuple | np.ndarray):
        return [_plain(one) for one in value]
    return deepcopy(value)


def read(cls: type, values: Any, kind: str, *, unknown: float | None = None, optional: bool = False) -> dict[str, Any]:
    """Return the fields of a saved result as its class takes them, all of them and no others."""
    # `unknown` is what a number is that the file does not know. Where fields with a default are `optional`, files of
    # earlier schemas may lack them.
    if not isinstance(values, dict) or values.get("kind") != kind:
        raise ValueError(f"kind must be {kind!r}, got {values.get('kind') if isinstance(values, dict) else values!r}")
    hints, given = _hints(cls), {name: value for name, value in values.items() if name != "kind"}
    added = {one.name for one in fields(cls) if (one.default, one.default_factory) != (MISSING, MISSING)}
    if wrong := (hints.keys() ^ given.keys()) - (added - given.keys() if optional else set()):
        raise ValueError(f"{kind} fields are missing or unknown: {', '.join(sorted(wrong))}")
    for name, value in given.items():
        if get_origin(hints[name]) in (tuple, np.ndarray) and not isinstance(value, list):
            raise ValueError(f"{name} must be a list, got {value!r}")
    check_numbers(given)
    try:
        values = {name: _field(value, hints[name], unknown) for name, value in given.items()}
    except (TypeError, ValueError) as error:
        raise ValueError(f"a field of the {kind} has the wrong type: {error}") from None
    return typed(cls, values)


def _field(value: Any, hint: Any, unknown: float | None) -> Any:
    """Return a field as it was before `plain`, if its type is one that JSON lacks."""
    kind, inside = get_origin(hint) or hint, get_args(hint)
    if Claim in (hint, *inside) and value is not None:
        return claim_from_dict(value)
    if kind is float:
        return number(value, unknown)
    if kind is np.ndarray:
        return np.array([number(one, unknown) for one in value], float)
    return tuple(_field(one, inside[0], unknown) for one in value) if kind is tuple else value


def check_numbers(value: Any, name: str = "", rule: Rule | None = None) -> None:
    """Refuse numbers out of the range of their field; in lists and dicts their own rule holds, or the outer."""
    if value == "-inf":  # as a number is written: no result has one
        value = -math.inf
    if isinstance(value, dict):
        for key, entry in value.items():
            if key not in NAMED_BY_OTHERS:
                check_numbers(entry, key, OF_NAME.get(key, rule))
    elif isinstance(value, list):
        for entry in value:
            check_numbers(entry, name, rule)
    elif rule is not None and isinstance(value, int | float):
        kind, least, most = rule
        if isinstance(value, bool) or not isinstance(value, int | kind) or not least <= value <= most:
            span = f"of {least} or more" if most == math.inf else f"from {least} to {most}"
            raise ValueError(f"{name} must be a{' whole' * (kind is int)} number {span}, got {repr(value)[:80]}")


def number(value: Any, unknown: float | None = None) -> float:
    """Return a number from JSON as `plain_number` wrote it, and what is `unknown`, if given, for None."""
    if value is None and unknown is not None:
        return unknown
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
    if kind is tuple and inside[-1] is not ...:
        return len(value) == len(inside) and all(map(_is_of, value, inside))
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
