"""Outputs as tables of rows: a code of 64 bits for every value; equal values of a column have equal codes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from textwrap import shorten
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.protocol import Exploration
from audit.events import DECIMALS, Side, score_in_words
from audit.neighbors.tables import rows_apart
from audit.values import EXACT, MARK, NAN, value_of
from audit.written import FORM, plain

__all__ = ["ANY", "NO_ROW", "Codes", "Layout", "known_rows", "layout_of"]

Codes = NDArray[np.uint64]

NO_ROW = np.uint64(0x7FF8_0000_0000_0001)  # pads the rows that a shorter table lacks; no value has this code
HALF = np.uint64(32)  # bits by which a float's bits are folded, as the last ones are mostly 0
SHOWN = 80  # letters of a row that reports show
ANY = NO_ROW + np.uint64(1)  # code of an unknown value of a row; no value has it
KEY = r'\[("(?:[^"\\]|\\.)*"|\d+)\]'
PART = re.compile(rf"output(.*){KEY}{KEY}")  # an entry of a list of lists or of mappings, in an output or in its parts


@dataclass(frozen=True)
class Layout:
    """Where the columns of outputs are: under names, as JSON writes them, or in places."""

    width: int
    names: tuple[str, ...] = ()
    words: dict[int, str] = field(default_factory=dict, compare=False)  # seen in outputs, by their codes
    within: tuple[str, ...] = ()  # keys of the part that is the table, if it is not the output itself

    def __call__(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """Return the codes of tables, shape (columns, runs, rows); written ones are padded with `NO_ROW`."""
        if outputs.dtype.kind != "O":
            return _coded(np.moveaxis(outputs, 2, 0))
        texts = [text.partition(FORM)[0] for text in outputs if not text.startswith(MARK)]
        tables = iter([self._columns(value) for value in json.loads(f"[{','.join(texts)}]")])
        several = [() if text.startswith(MARK) else next(tables) for text in outputs]
        rows = np.array([len(table[0]) if table else 0 for table in several], np.intp)
        codes = np.full((self.width, len(outputs), int(rows.max(initial=0)) + 1), NO_ROW)
        there = np.arange(codes.shape[2]) < rows[:, None]
        for place in range(self.width):
            codes[place, there] = _codes_of(list(chain.from_iterable(table[place] for table in several if table)))
        return codes

    def in_words(self, row: Codes) -> str:
        """Return the values of a row."""
        whole, bits = row.view(np.int64), row ^ (row >> HALF)
        numbers = np.where(np.abs(whole) <= EXACT, whole, bits.view(np.float64)).tolist()
        values = [self.words.get(code) or score_in_words(one) for code, one in zip(row.tolist(), numbers, strict=True)]
        return shorten(f"({', '.join(values)})", SHOWN)

    def _columns(self, value: Any) -> Sequence[Sequence[Any]]:
        """Return the columns of an output, all of one length; none if it is not a table."""
        for key in self.within:
            if isinstance(value, list):
                value = dict(zip(map(str, range(len(value))), value, strict=True))
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict):
            columns = [value.get(name) or () for name in self.names]
            return columns if all(isinstance(one, list) for one in columns) and len(set(map(len, columns))) == 1 else ()
        rows = value if isinstance(value, list) else []
        if self.names:
            rows = [[row.get(name) for name in self.names] for row in rows if isinstance(row, dict)]
        else:
            rows = [(row + [None] * self.width)[: self.width] for row in rows if isinstance(row, list)]
        return list(zip(*rows, strict=True))


def layout_of(exploration: Exploration) -> Layout | None:
    """Return the layout of outputs that are tables of rows; None if they are not."""
    if exploration.reading is None:
        shape = exploration.shape
        return Layout(shape[1]) if len(shape) == 2 and shape[0] > 1 else None
    columns = exploration.reading.columns
    parts = [found.groups() for column in columns if (found := PART.fullmatch(column.source))]
    parts = [part for part in parts if any(map(str.isdigit, part[1:]))]  # mappings of mappings hold no rows
    if not parts:
        return None
    # The largest table of an output, and of several the first one.
    table = Counter(part[0] for part in parts).most_common(1)[0][0]
    parts, within = [part[1:] for part in parts if part[0] == table], tuple(re.findall(KEY, table))
    known = {word for column in columns if column.read is str for word in column.words or ()}
    words = {int(code): repr(word) for word, code in zip(known, _codes_of(list(known)), strict=True)}
    names = next((place for place in (0, 1) if all(part[place].startswith('"') for part in parts)), None)
    if names is None:  # a list of lists
        return Layout(1 + max(int(place) if place.isdigit() else 0 for _, place in parts), (), words, within)
    keys = tuple(dict.fromkeys(part[names] for part in parts))
    return Layout(len(keys), keys, words, within)


def known_rows(exploration: Exploration, layout: Layout) -> list[tuple[str, Codes, Side]]:
    """Return the rows that one database has more often, as text and codes; a column that data lack matches anything."""
    pair, rows = exploration.pair, list[tuple[str, Codes, Side]]()
    if isinstance(pair.x, np.ndarray) and pair.unit != "record":  # data are counts, not records
        return []
    for row, in_y in rows_apart(pair.x, pair.y):
        values = list(row.values()) if isinstance(row, Mapping) else list(row)
        if isinstance(row, Mapping) and layout.names:
            named = {json.dumps(str(name)): value for name, value in row.items()}
            values = [named.get(name, Any) for name in layout.names] if named.keys() & set(layout.names) else []
        if len(values) == layout.width:
            some = [None if value is Any else plain(value) for value in values]
            codes = np.where([value is Any for value in values], ANY, _codes_of(some))
            shown = ("any" if value is Any else repr(plain(value)) for value in values)
            rows.append((shorten(f"({', '.join(shown)})", SHOWN), codes, "y" if in_y else "x"))
    return rows


def _codes_of(values: list[Any]) -> Codes:
    """Return the codes of JSON values; those of words are hashes that are the same in every process."""
    kinds = set(map(type, values))
    if kinds <= {int, float, bool}:
        return _coded(np.nan_to_num(np.array(values, np.float64), nan=NAN, posinf=np.inf, neginf=-np.inf))
    if kinds & {list, dict}:
        values = [json.dumps(value) if isinstance(value, list | dict) else value for value in values]
    distinct = list(set(values))
    codes = _coded(np.array([0.0 if isinstance(value, str) else value_of(value) for value in distinct]))
    for place, value in enumerate(distinct):
        if isinstance(value, str):
            codes[place] = np.frombuffer(blake2b(value.encode(), digest_size=8).digest(), np.uint64)[0]
    places = {value: place for place, value in enumerate(distinct)}
    return codes[np.fromiter(map(places.__getitem__, values), np.intp, len(values))]


def _coded(numbers: NDArray[Any]) -> Codes:
    """Return the codes of numbers, rounded as scores are: whole numbers themselves, else the float's folded bits."""
    if numbers.dtype.kind in "biu":
        return np.ascontiguousarray(numbers, np.int64).view(np.uint64)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.round(numbers, DECIMALS) + 0.0
        rounded = np.ascontiguousarray(np.where(np.isfinite(rounded), rounded, numbers))
        whole, bits = rounded.astype(np.int64), rounded.view(np.uint64)
    return np.where((whole == rounded) & (np.abs(rounded) <= EXACT), whole.view(np.uint64), bits ^ (bits >> HALF))
