"""Read an event that the user names, in the words in which reports describe events."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.cli.inputs import EVENTS
from audit.events import CellRule, Event, Side, Statistic, ThresholdRule, cell
from audit.values import MARK, NAMES
from audit.written import titles

__all__ = ["parse_event"]

Floats = NDArray[np.float64]

RAISES = re.compile(r"(?:([xy]) if )?it raises")
PART = re.compile(r"(?:([xy]) if )?(.+?)(?: *([<>]=) *([^<>=]+)| +in +\{(.+)\})")  # side, entry, sign, limit, values
ENTRY = re.compile(r'output(?:\[(\d+(?:, *\d+)*)\]|\["([^"]*)"\])?')
VALUE = re.compile(r""" *('[^']*'|"[^"]*"|[^'",]+?) *(?:,|$)""")
SPAN = re.compile(r"(-?\d{1,15})\.\.(-?\d{1,15})")
MOST = 2**20  # whole numbers in a span
CODES = {word: code for code, word in NAMES.items()}


def parse_event(text: str, columns: Sequence[str] = ()) -> Event:
    """Return the event that a text names; `columns` are the names of the columns of outputs, if these have any."""
    if raises := RAISES.fullmatch(text.strip()):
        yes, no = np.array([1.0]), np.array([])
        return replace(Event.raises(), rule=CellRule(no, yes) if raises[1] == "x" else CellRule(yes, no))
    split = re.split(r", *(?=[xy] if )", text.strip())
    parts = [part for part in map(PART.fullmatch, split) if part is not None]
    if len(parts) < len(split):
        raise ValueError(f"an event must be written like {EVENTS}, got {text!r}")
    sides, signs = {part[1] or "y": part for part in parts}, {part[3] or "in": part for part in parts}
    if len(sides) < len(parts) or len({part[2] for part in parts}) > 1:
        raise ValueError(f"an event must name x once, y once, or both with the same entry, got {text!r}")
    statistic = _entry(parts[0][2], columns)
    if set(signs) == {"in"}:
        return _of_values(statistic, *(_values(sides[side][5]) if side in sides else [] for side in "yx"))
    if "in" in signs or len(signs) < len(parts):
        raise ValueError(f"an event with thresholds must have one <=, one >=, or both, got {text!r}")
    low, high = (_number(signs[sign][4]) if sign in signs else None for sign in ("<=", ">="))
    above: Side = "x" if (signs[">="][1] == "x" if high is not None else signs["<="][1] != "x") else "y"
    return Event(statistic, ThresholdRule(-math.inf if low is None else low, math.inf if high is None else high, above))


def _entry(name: str, columns: Sequence[str]) -> Statistic:
    """Return the statistic that reads an entry: `output`, `output[3]`, `output["a name"]`, or the name of a column."""
    names = [*columns, *titles(columns)]
    if names.count(name) == 1:
        return cell(names.index(name) % len(columns))
    match = ENTRY.fullmatch(name)
    if match is None or (match[2] is not None and columns):
        known = f"a column ({', '.join(columns)})" if columns else "output"
        raise ValueError(f"an event must read {known}, or an entry by its place, such as output[0], got {name!r}")
    if match[2] is not None:
        return Statistic(name, partial(_at_key, match[2]))
    return cell(*map(int, match[1].split(","))) if match[1] else cell()


def _at_key(key: str, outputs: NDArray[Any]) -> NDArray[Any]:
    """Return what each output, a mapping, has at a key; the word of a run that raised stays."""
    values = np.empty(len(outputs), object)
    for number, output in enumerate(outputs):
        if not isinstance(output, dict) and not str(output).startswith(MARK):
            raise ValueError("outputs have no keys: write the place of the entry, such as output[0]")
        values[number] = output[key] if isinstance(output, dict) else output
    return values


def _values(text: str) -> list[Any]:
    """Return the values in braces: words in quotes, numbers, and spans of whole numbers."""
    if rest := VALUE.sub("", text).strip():
        raise ValueError(f"values of an event must stand between commas, got {rest!r} in {text!r}")
    values: list[Any] = []
    for found in VALUE.finditer(text):
        if span := SPAN.fullmatch(found[1]):
            low, high = int(span[1]), int(span[2])
            if not 0 < high - low < MOST:
                raise ValueError(f"a span of an event must go up, and by less than {MOST}, got {found[1]}")
            values += map(float, range(low, high + 1))
        else:
            values.append(found[1][1:-1] if found[1][0] in "'\"" else _number(found[1]))
    return values


def _number(text: str) -> float:
    """Return a number, rounded like scores, or the code of a value that is none."""
    with suppress(ValueError):
        if text in CODES or not math.isnan(float(text)):
            return CODES[text] if text in CODES else float(cell()(np.array([float(text)]))[0])
    raise ValueError(f"a value of an event must be a number, NaN, None, or a word in quotes after `in`, got {text!r}")


def _of_values(statistic: Statistic, y: list[Any], x: list[Any]) -> Event:
    """Return the event that guesses by single values of an entry, which are all numbers or all words."""
    words = [value for value in (*y, *x) if isinstance(value, str)]
    if len({*y, *x}) < len(y) + len(x) or len(words) not in (0, len(y) + len(x)):
        raise ValueError(f"values of an event must be all numbers or all words, each once, got {[*y, *x]}")
    if words:
        codes = {word: 2.0 * number for number, word in enumerate(words)}  # no neighbors: reports write these a..b
        labels = {code: repr(word) for word, code in codes.items()}
        statistic = replace(statistic, function=partial(_coded, statistic.function, codes), labels=labels)
        y, x = ([codes[word] for word in side] for side in (y, x))
    return Event(statistic, CellRule(np.array(sorted(y)), np.array(sorted(x))))


def _coded(read: Callable[[NDArray[Any]], NDArray[Any]], codes: dict[str, float], outputs: NDArray[Any]) -> Floats:
    """Return the codes of words; -2 for all others."""
    return np.array([codes.get(value, -2.0) if isinstance(value, str) else -2.0 for value in read(outputs).tolist()])
