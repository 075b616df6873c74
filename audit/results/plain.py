"""Convert fields of results to JSON and back, with checks of their types and of the ranges of numbers."""

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
Rule = tuple[type, float, float]  # int or float, smallest, largest
RULES: dict[Rule, str] = {
    (int, 0, MOST): "counts counts_x counts_y runs runs_x runs_y canaries hits rated regions look looks choosing most "
    "draws areas units resamples entries entries_changed entry starts right wrong runs_other runs_likely lots",
    (int, 1, MOST): "size distance pairs components attempt call",
    (int, 0, math.inf): "seed seed_entropy",
    (float, 1, MOST): "inflation",
    (float, 0, 1): "confidence share probability false_alarm false_detection "
    "right_share wrong_share share_other share_likely",
    (float, 0, MOST): "selection unseen expected shortfalls order lag change percentile multiplier",
    (float, 0, math.inf): "ceiling detectable rare measured seconds epsilon delta rho mu l1_change l2_change",
    (float, -MOST, MOST): "weights",
    (float, -700, 700): "score",
}
OF_NAME = {name: rule for rule, names in RULES.items() for name in names.split()}
NAMED_BY_OTHERS = ("mechanism", "software")


def plain(result: Any) -> dict[str, Any]:
    """Return the fields of a result for strict JSON; infinity becomes the string "inf", and NaN None."""
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
    """Return the fields of a saved result, converted for its class; missing or unknown fields are an error."""
    # A number that is None becomes `unknown`. If `optional`, fields with a default may be missing: schemas had fewer.
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
    """Undo `plain` for a field whose type JSON lacks."""
    kind, inside = get_origin(hint) or hint, get_args(hint)
    if Claim in (hint, *inside) and value is not None:
        return claim_from_dict(value)
    if kind is float:
        return number(value, unknown)
    if kind is np.ndarray:
        return np.array([number(one, unknown) for one in value], float)
    return tuple(_field(one, inside[0], unknown) for one in value) if kind is tuple else value


def check_numbers(value: Any, name: str = "", rule: Rule | None = None) -> None:
    """Raise an error for numbers outside of the range of their field; nested ones without a rule inherit it."""
    if value == "-inf":  # JSON form of minus infinity, which no result has
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
    """Undo `plain_number`; None becomes `unknown` if that is given."""
    if value is None and unknown is not None:
        return unknown
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) > FINITE:
        raise ValueError(f"{repr(value)[:80]} is no number")
    return float(value)


def typed(cls: type, values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields after a check of their types, including entries of lists and dicts."""
    for name, hint in _hints(cls).items():
        if name in values and not _is_of(values[name], hint):
            words = hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")
            raise ValueError(f"{name} must be {words}, got {values[name]!r}")
    return values


_hints = cache(get_type_hints)  # cached: it would take a third of the time of reading a result


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
    """Inputs of bounds besides the counts of an event, as JSON values; each method documents which it uses."""

    share: int | float  # of the error probability; 1 if absent
    inflation: int | float  # variance of the counts relative to independent runs; 1 if absent
    unseen: int | float  # share of counted runs whose output differs from all selection runs
    regions: int  # regions of the rule, one for each database that it may guess
    bets: list[dict[str, int | float | list[int | float]]]  # in turn: what was expected, and what came
    weights: list[int | float]  # of bins of a likelihood ratio, in nats
    order: int | float  # of the Renyi divergence that the weights bound
    toward: Literal["x", "y"]  # the database whose law is the first argument of the divergence
    lots: int  # seed of the lots that put runs with such weights in blocks; 0 if absent
    shortfalls: list[int | float]  # in bound, in nats, of events that other selection runs could choose
    look: int  # number of the look at which an earlier version stopped; 0 without early stopping
    hits: int  # selection runs that an outcome of only one database needs in order to be chosen
    rated: int  # selection runs that chose the event
    most: int  # most canaries of one run that the rule can guess
    detects: bool  # whether this event, of several, gave the minimum detectable loss


class _Other(TypedDict):
    """An event of `others`, whose lower bound was smaller."""

    event: str
    attack: str
    counts: dict[str, dict[str, int]]
    basis: dict[str, Any]
    notes: list[str]
    measured: int | float


def check_counts(counts: dict[str, dict[str, int]]) -> None:
    """Raise an error for impossible counts: they must be for x and y, with at most `runs` guesses or bins in total."""
    if counts.keys() != {"x", "y"}:
        raise ValueError(f"counts must be of x and of y, got {', '.join(map(repr, counts)) or 'none'}")
    for name, side in counts.items():
        parts = [count for kind, count in side.items() if kind != "runs"]
        if min([side.get("runs", -1), *parts]) < 0 or sum(parts) > side["runs"]:
            raise ValueError(f"counts on {name} must be parts of its runs, got {str(side)[:80]}")


def check_other(other: dict[str, Any]) -> None:
    """Raise an error if an event of `others` lacks a field or has a wrong one."""
    typed(_Other, other)
    if missing := _Other.__required_keys__ - other.keys():
        raise ValueError(f"each of others must have {', '.join(sorted(missing))}")
    typed(Basis, other["basis"])
    check_counts(other["counts"])
