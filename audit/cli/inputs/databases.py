"""Pairs of neighboring databases that a shell can name: counts with people added or moved, records with one changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from audit.cli.inputs.records import read_records, record_of
from audit.cli.inputs.tables import read_counts
from audit.installed import offered
from audit.neighbors import NeighborPair
from audit.neighbors.counts import check_counts

__all__ = ["Asked", "Named", "bundled", "pairs_of"]

WAYS = ("smallest", "largest", "empty")  # to choose a cell by its count


class Asked(NamedTuple):
    """What the options say of the two databases; a command need not have all of them."""

    data: str = "morocco"
    cell: Sequence[int] = ()
    cells: str = ""
    people: int = 1
    move_to: int | None = None
    add_row: str | None = None
    replace_row: tuple[int, str] | None = None
    relation: str = ""
    public_data: bool = False


class Named(NamedTuple):
    """A pair, what tells it from others in the name of a result, and the options that ask for it alone."""

    words: str
    pair: NeighborPair
    options: dict[str, Any]


def bundled() -> set[str]:
    """Return the names of the bundled data."""
    return set(offered("systems").EXTRACTS)


def pairs_of(asked: Asked) -> list[Named]:
    """Return the pairs that options ask for, each once."""
    rows = asked.add_row is not None or asked.replace_row is not None
    found = [_of_records(asked)] if rows else _of_counts(asked)
    return [named._replace(pair=_marked(named.pair, asked)) for named in found]


def _marked(pair: NeighborPair, asked: Asked) -> NeighborPair:
    """Return a pair under the relation that was asked for, confidential unless its data are public."""
    if asked.relation:
        pair = pair.under(asked.relation)  # type: ignore[arg-type]
    return pair if asked.data in bundled() or asked.public_data else pair.as_confidential()


def _of_counts(asked: Asked) -> list[Named]:
    """Return counts and the same with some people added or moved, for every cell that is asked for."""
    if asked.relation == "replace_one" and asked.move_to is None:
        raise ValueError("--relation replace_one needs --move-to: people who are added are not replaced")
    if Path(asked.data).suffix == ".parquet":
        raise ValueError(f"{asked.data} must come with --add-row or --replace-row: Parquet holds records, not counts")
    counts, label = _counts(asked.data)
    ways = [way.strip() for way in asked.cells.split(",")] if asked.cells else []
    chosen = [*asked.cell, *(_cell_by(way, counts) for way in ways)]
    said = bool(chosen) or asked.people != 1 or asked.move_to is not None
    return [_of_cell(asked, cell, counts, label, said=said) for cell in dict.fromkeys(chosen or [0])]


def _of_cell(asked: Asked, cell: int, counts: NDArray[Any], label: Callable[[int], str], *, said: bool) -> Named:
    people, target = asked.people, asked.move_to
    number = "1 person" if people == 1 else f"{people} people"
    if target is None:
        pair, words = NeighborPair.add_people(counts, cell, people), f"{number} added to {label(cell)}"
    else:
        pair = NeighborPair.move_people(counts, cell, target, people)
        words = f"{number} moved from {label(cell)} to {label(target)}"
    short = f"cell {cell}" + ("" if target is None else f" to {target}") + ("" if people == 1 else f" people {people}")
    return Named(short if said else "", replace(pair, label=words), {"cell": [cell], "cells": None} if said else {})


def _cell_by(way: str, counts: NDArray[Any]) -> int:
    """Return the first cell with the fewest people, but any at all; with the most; or with none."""
    if way not in WAYS:
        raise ValueError(f"cells must be of {', '.join(WAYS)}, got {way!r}")
    people = check_counts(counts)
    if way == "largest":
        return int(people.argmax())
    there = np.flatnonzero((people == 0) == (way == "empty"))
    if not there.size:
        raise ValueError(
            f"counts must have {'an empty' if way == 'empty' else 'a filled'} cell for --cells {way}, got none"
        )
    return int(there[people[there].argmin()])


def _counts(data: str) -> tuple[NDArray[Any], Callable[[int], str]]:
    """Return counts, and how to name their cells."""
    if data in bundled():
        tree, counts = offered("systems").load(data)
        return counts, tree.label
    if Path(data).suffix not in (".csv", ".npy"):
        names = " or ".join(sorted(bundled()))
        raise ValueError(f"data must be {names}, or a .csv or .npy file of counts, got {data!r}")
    return read_counts(Path(data)), lambda index: f"cell {index}"


def _of_records(asked: Asked) -> Named:
    """Return records, and the same with one added or replaced."""
    if Path(asked.data).suffix not in (".csv", ".parquet"):
        raise ValueError(f"data must be a .csv or .parquet file of records for --add-row, got {asked.data!r}")
    if asked.add_row is not None and asked.replace_row is not None:
        raise ValueError("--add-row and --replace-row exclude each other: a pair differs in one of them")
    frame = read_records(Path(asked.data))
    if asked.replace_row is None:
        return Named("added row", NeighborPair.add_row(frame, record_of(frame, asked.add_row or "")), {})
    index, text = asked.replace_row
    return Named(f"replaced row {index}", NeighborPair.replace_row(frame, index, record_of(frame, text)), {})
