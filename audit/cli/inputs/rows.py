"""Pairs of records: a row added to those of a file, or put in the place of one, and rows like it that may lose more."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count, islice, zip_longest
from pathlib import Path
from typing import Any

from audit.cli.inputs.options import DatabaseOptions
from audit.cli.inputs.records import column_of, read_records, record_of
from audit.neighbors import NeighborPair
from audit.neighbors.counts import is_missing, place_of, where

__all__ = ["Row", "read_rows"]

CODES, LARGEST_CODE, REPEATS = 12, 20, 3  # of a column that seems to hold codes: how many at most, and rows of each
MOST, SHOWN = 12, 4  # rows without a value, or with an unknown one, that a search tries, and that one command does


@dataclass(frozen=True)
class Row:
    """A row as text, to be added to the records of a file at a place, or to replace the one there."""

    path: Path
    records: Any
    text: str
    place: int
    replaces: bool
    number: str = ""  # among several

    @property
    def name(self) -> str:
        """The words for the pair in the name of a result."""
        there = where(self.place, len(self.records))
        return f"replaced row {self.place}" if self.replaces else f"added row{self.number}{there}"

    def pair(self, text: str, place: int, records: Any, words: str = "") -> NeighborPair:
        """Return the pair of such a row and records; words are added to its label."""
        record = self._record(text)
        if self.replaces:
            return NeighborPair.replace_row(records, place, record, label=f"row {place} replaced{words}")
        added = f"added row{self.number}" if self.number else "1 row added"
        return NeighborPair.add_row(records, record, at=place, label=f"{added}{where(place, len(records))}{words}")

    def alike(self) -> Iterator[NeighborPair]:
        """Yield pairs of the row elsewhere, beside one record fewer, and of rows with other values."""
        rows, (larger, others) = len(self.records), self._variants()
        places = [0] if self.replaces else [0, place_of("random", rows), rows]
        elsewhere = [(self.text, one, self.records, "") for one in dict.fromkeys(places) if one != self.place]
        fewer = [(self.text, min(self.place, rows - 1), self.records[:-1], ", one row fewer")] if rows > 1 else []
        front = self.place if self.replaces else 0
        both = [(words, text, place) for words, text in larger for place in dict.fromkeys([front, self.place])]
        changed = [*both, *((words, text, front) for words, text in islice(others, MOST))]
        values = [(text, place, self.records, f", {words}") for words, text, place in changed]
        for one in (*elsewhere[:1], *fewer, *values, *elsewhere[1:]):
            try:
                yield self.pair(*one)
            except ValueError:  # the row that would be replaced, or has gone
                continue

    def next_commands(self) -> list[tuple[str, dict[str, Any]]]:
        """Return commands with options for pairs that may lose more, the most useful first: four at most."""
        if self.number:  # with others
            return [("search", {})]
        larger, others = ([text for _, text in islice(rows, SHOWN)] for rows in self._variants())
        if self.replaces:
            return [("search", {}), *(("audit", {"replace_row": (self.place, one)}) for one in (*larger, *others)[:3])]
        front = [("audit", {"at": "first"})] if self.place else []
        return [("search", {}), *front, *(("audit", {"add_row": rows}) for rows in (larger, others) if rows)]

    def _record(self, text: str) -> dict[str, Any]:
        """Return the row as a record; a missing value in a column of words of a CSV file is empty text."""
        record = record_of(self.records, text)
        names = self.records[0] if isinstance(self.records, list) else self.records
        gaps = [name for name in names if self.path.suffix == ".csv" and record.get(name, "") is None]
        return record | {name: "" for name in gaps if type(column_of(self.records, name)[0]) is str}

    def _variants(self) -> tuple[Iterator[tuple[str, str]], Iterator[tuple[str, str]]]:
        """Return rows like this in JSON with what is new in them: larger numbers, which may not be clipped, and others.

        Others are missing values and values that the data lack. A column that seems to hold codes has no larger
        numbers. What the command would refuse is left out.
        """
        record = self._record(self.text)
        larger: dict[str, Any] = {}
        missing: dict[str, dict[str, Any]] = {}
        unknown: dict[str, dict[str, Any]] = {}
        for name, value in sorted(record.items(), key=lambda item: type(item[1]) is str):  # numbers first
            known, number = set(column_of(self.records, name)), type(value) in (int, float)
            sizes = {abs(one) for one in known if number and type(one) in (int, float) and abs(one) < math.inf}
            missing[f"no {name}"] = {name: None}
            if type(value) is str or (number and _are_codes(sizes, len(self.records))):
                new = next(one for one in _others(value) if one not in known)
                unknown |= {f"an unknown {name}": {name: new}} if value in known else {}
            elif number:
                larger[name] = max(10 * max(sizes, default=1), 10, abs(value))
        signs = (("larger numbers", 1), ("numbers far below 0", -1))
        numbers = {words: {name: sign * most for name, most in larger.items()} for words, sign in signs}
        others = filter(None, chain.from_iterable(zip_longest(missing.items(), unknown.items())))
        return self._written(record, numbers.items()), self._written(record, others)

    def _written(
        self, record: dict[str, Any], changes: Iterable[tuple[str, dict[str, Any]]]
    ) -> Iterator[tuple[str, str]]:
        """Yield a record in JSON with other values, as far as these fit, unless it is the same or the one replaced."""
        old = {name: column_of(self.records, name)[self.place] for name in record} if self.replaces else {}
        for words, change in changes:
            if not self._fits(record, change):
                change = {name: one for name, one in change.items() if self._fits(record, {name: one})}
            if _plain(record | change) not in (_plain(record), _plain(old)):
                yield words, json.dumps(record | change)

    def _fits(self, record: dict[str, Any], change: dict[str, Any]) -> bool:
        """Tell whether JSON, and the columns, can hold other values of a record."""
        whole = self.records
        few = [{name: whole[0][name] for name in change}] if isinstance(whole, list) else whole[[*change]][:1]
        try:
            json.dumps(record | change, allow_nan=False)
            NeighborPair.add_row(few, change)
        except ValueError:
            return False
        return True


def _are_codes(sizes: set[Any], rows: int) -> bool:
    """Tell whether the numbers of a column seem to be codes: few whole ones, each repeated."""
    return 1 < len(sizes) <= CODES and rows >= REPEATS * len(sizes) and sizes <= set(range(LARGEST_CODE + 1))


def _others(value: Any) -> Iterator[Any]:
    if type(value) is not str:
        return count(1)
    if value.isdecimal():
        return (str(number).zfill(len(value)) for number in count(1))
    return chain(["other"], (f"other {number}" for number in count(2)))


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value == "" or is_missing(value) else value for name, value in row.items()}


def read_rows(data: str, databases: DatabaseOptions) -> list[Row]:
    """Return the requested rows."""
    path = Path(data)
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"data must be a .csv or .parquet file of records for --add-row, got {data!r}")
    if databases.add_row and databases.replace_row:
        raise ValueError("--add-row and --replace-row exclude each other: a pair differs in one of them")
    records = read_records(path)
    if databases.replace_row is not None:
        index, text = databases.replace_row
        return [Row(path, records, text, index, True)]
    place = place_of(int(databases.at) if databases.at.isdecimal() else databases.at, len(records))
    texts = databases.add_row or []
    numbers = [f" {number}" if len(texts) > 1 else "" for number in range(1, len(texts) + 1)]
    return [Row(path, records, text, place, False, number) for text, number in zip(texts, numbers, strict=True)]
