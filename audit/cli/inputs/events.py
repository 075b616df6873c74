"""Read an event that the user names, in the words in which reports describe events."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.cli.inputs import EVENTS
from audit.events import CellRule, Event, Side, Statistic, ThresholdRule, cell
from audit.values import MARK, NAMES
from audit.written import titles

__all__ = ["parse_event"]

VALUE = r""" *(?:'[^']*'|"[^"]*"|[^'",{}]+) *"""
VALUES = rf" +in +\{{({VALUE}(?:,{VALUE})*)\}}"
PART = re.compile(rf"(?:([xy]) if )?(.+?)(?: *([<>]=) *([^<>=]+)|{VALUES})")  # side, entry, sign, limit, values
ENTRY = re.compile(r'output(?:\[(\d+(?:, *\d+)*)\]|\["([^"]*)"\])?')
SPAN = re.compile(r"(-?\d{1,15})\.\.(-?\d{1,15})")
MOST = 2**20  # whole numbers in a span
CODES = {word: code for code, word in NAMES.items()}


def parse_event(text: str, columns: Sequence[str] = ()) -> Event:
    """Return the event that a text names; `columns` are the names of the columns of outputs, if these have any."""
    if text.strip() in ("it raises", "y if it raises"):
        return Event.raises()
    split = re.split(r", *(?=[xy] if )", text.strip())
    parts = [part for part in map(PART.fullmatch, split) if part is not None]
    if len(parts) < len(split):
        raise ValueError(f"an event must be written like {EVENTS}, got {text!r}")
    sides, signs = {part[1] or "y": part for part in parts}, {part[3] or "in": part for part in parts}
    of_values = set(signs) == {"in"}
    mixed = not of_values and ("in" in signs or len(signs) < len(parts))
    if mixed or len(sides) < len(parts) or len({part[2] for part in parts}) > 1:
        rule = "read one entry, and guess x once, y once or both, from one >=, one <= or both, or from values only"
        raise ValueError(f"an event must {rule}, got {text!r}")
    statistic = _entry(parts[0][2], columns)
    if of_values:
        return _of_values(statistic, *(_values(sides[side][5]) if side in sides else [] for side in "yx"))
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
    if not all(isinstance(one, dict) or str(one).startswith(MARK) for one in outputs):
        raise ValueError("outputs have no keys: write the place of the entry, such as output[0]")
    return np.array([one[key] if isinstance(one, dict) else one for one in outputs], object)


def _values(text: str) -> list[Any]:
    """Return the values in braces: words in quotes, numbers, and spans of whole numbers."""
    values: list[Any] = []
    for word in map(str.strip, re.findall(VALUE, text)):
        if span := SPAN.fullmatch(word):
            low, high = int(span[1]), int(span[2])
            if not 0 < high - low < MOST:
                raise ValueError(f"a span of an event must go up, and by less than {MOST}, got {word}")
            values += map(float, range(low, high + 1))
        else:
            values.append(word[1:-1] if word[:1] in ("'", '"') else _number(word))
    return values


def _number(text: str) -> float:
    """Return a number, rounded like scores, or the code of a value that is none."""
    if text in CODES:
        return CODES[text]
    with suppress(ValueError):  # also of NaN
        return float(cell()(np.array([float(text)]))[0])
    raise ValueError(f"a value of an event must be a number, NaN, None, or a word in quotes after `in`, got {text!r}")


def _of_values(statistic: Statistic, y: list[Any], x: list[Any]) -> Event:
    """Return the event that guesses by single values of an entry, which are all numbers or all words."""
    words = [value for value in (*y, *x) if isinstance(value, str)]
    if len({*y, *x}) < len(y) + len(x) or len(words) not in (0, len(y) + len(x)):
        raise ValueError(f"values of an event must be all numbers or all words, each once, got {[*y, *x]}")
    if words:
        codes = {word: 2.0 * number for number, word in enumerate(words)}  # no neighbors: reports write these a..b
        read, labels = statistic.function, {code: repr(word) for word, code in codes.items()}

        def coded(outputs: NDArray[Any]) -> NDArray[Any]:
            return np.array([codes.get(one, -2.0) if isinstance(one, str) else -2.0 for one in read(outputs).tolist()])

        statistic = Statistic(statistic.name, coded, labels=labels)
        y, x = ([codes[word] for word in side] for side in (y, x))
    return Event(statistic, CellRule(np.array(sorted(y)), np.array(sorted(x))))
