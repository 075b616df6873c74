"""Pairs of neighboring databases from options: counts with people added or moved, records with one changed."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from audit.cli.inputs.groups import DatabaseOptions, TargetOptions
from audit.cli.inputs.options import suggestion
from audit.cli.inputs.records import column_of, read_records, read_rows
from audit.cli.inputs.tables import read_counts
from audit.installed import plugin
from audit.io.text import SUMS, quoted
from audit.neighbors import NeighborPair
from audit.neighbors.counts import check_counts

__all__ = ["BUNDLED", "Named", "Population", "bundled", "pairs_of", "population_of", "varied"]

BUNDLED = "morocco"  # the default of --data
WAYS = ("smallest", "largest", "empty")  # of choosing a cell by its count


class Named(NamedTuple):
    """A pair, the words for it in the name of a result, and the options that select only this pair."""

    # `next_command` is the command to suggest after a pass: its options select pairs that may lose more.

    words: str
    pair: NeighborPair
    options: dict[str, Any]
    next_command: tuple[str, dict[str, Any]] | None = None


Population = tuple[NDArray[Any], Any]  # counts of people, and the tree of their areas, or None


def bundled() -> set[str]:
    """Return the names of the data that the systems provide: bundled, or simulated."""
    return {*plugin("systems").EXTRACTS, *plugin("systems").DRAWN}


def pairs_of(options: TargetOptions, databases: DatabaseOptions, population: Population | None) -> list[Named]:
    """Return the requested pairs without repeats: pairs of records if `population` is None."""
    if population is None:
        rows = read_rows(options.data or BUNDLED, databases)
        selecting = ({"add_row": [row.text]} if row.number else {} for row in rows)
        pairs = [Named(row.name, row.pair(), own, ("search", {})) for row, own in zip(rows, selecting, strict=True)]
    else:
        pairs = _of_counts(population, options, databases)
    return [named._replace(pair=_as_requested(named.pair, options)) for named in pairs]


def varied(options: TargetOptions, databases: DatabaseOptions, most: int) -> list[NeighborPair]:
    """Return the requested pairs of records, then pairs of similar rows, one for each requested row in turn."""
    rows = read_rows(options.data or BUNDLED, databases)
    turns = chain.from_iterable(zip_longest(*(row.alike() for row in rows)))
    pairs = chain((row.pair() for row in rows), filter(None, turns))
    return [_as_requested(pair, options) for pair in islice(pairs, most)]


def _as_requested(pair: NeighborPair, options: TargetOptions) -> NeighborPair:
    pair = pair.under(options.relation) if options.relation else pair  # type: ignore[arg-type]
    public = (options.data or BUNDLED) in bundled() or options.public_data
    return pair if public else pair.as_confidential()


def _of_counts(population: Population, options: TargetOptions, databases: DatabaseOptions) -> list[Named]:
    people, target = databases.people, databases.move_to
    if options.relation == "replace_one" and target is None:
        raise ValueError("--relation replace_one needs --move-to: people who are added are not replaced")
    counts, tree = population
    label = tree.label if tree is not None else "cell {}".format
    ways = [way.strip() for way in databases.cells.split(",")] if databases.cells else []
    cells = [*(options.cell or ()), *(_cell_by(way, counts) for way in ways)]
    if target in (cells or [0]):
        raise ValueError(f"--move-to must differ from --cell, got {target} for both")
    named = bool(cells) or people != 1 or target is not None
    number = "1 person" if people == 1 else f"{people} people"
    pairs = []
    for cell in dict.fromkeys(cells or [0]):
        if target is None:
            pair, words = NeighborPair.add_people(counts, cell, people), f"{number} added to {label(cell)}"
        else:
            pair = NeighborPair.move_people(counts, cell, target, people)
            words = f"{number} moved from {label(cell)} to {label(target)}"
        short = f"cell {cell}{'' if target is None else f' to {target}'}{'' if people == 1 else f' people {people}'}"
        own_options = {"cell": [cell], "cells": None}
        pairs.append(Named(short if named else "", replace(pair, label=words), own_options if named else {}))
    if len(pairs) == 1 and target is None and not databases.cells and counts.any():
        extreme = {"cell": None, "cells": ",".join(WAYS if 0 in counts else WAYS[:2])}
        pairs = [pairs[0]._replace(next_command=("audit", extreme))]
    return pairs


def _cell_by(way: str, counts: NDArray[Any]) -> int:
    if way not in WAYS:
        raise ValueError(f"cells must be of {', '.join(WAYS)}, got {way!r}")
    people = check_counts(counts)
    if way == "largest":
        return int(people.argmax())
    cells = np.flatnonzero((people == 0) == (way == "empty"))
    if not cells.size:
        kind = "an empty" if way == "empty" else "a filled"
        raise ValueError(f"counts must have {kind} cell for --cells {way}, got none")
    return int(cells[people[cells].argmin()])


def population_of(options: TargetOptions, parameters: dict[str, Any]) -> Population:
    """Return the requested counts and their tree; `parameters` are for simulated counts."""
    data, systems = options.data or BUNDLED, plugin("systems")
    if options.areas is not None:
        tree, counts = _of_areas(Path(data), options.areas, options.count)
    elif data in bundled():
        tree, counts = systems.DRAWN[data](**parameters) if data in systems.DRAWN else systems.load(data)
    elif Path(data).suffix == ".parquet":
        raise ValueError(f"{data} must come with --add-row or --replace-row: Parquet holds records, not counts")
    elif Path(data).suffix not in (".csv", ".npy"):
        names, near = " or ".join(sorted(bundled())), suggestion(data, bundled())
        raise ValueError(f"data must be {names}, or a .csv or .npy file of counts, got {data!r}{near}")
    else:
        tree, counts = None, read_counts(Path(data))
    return counts, tree


def _of_areas(path: Path, areas: str, count: str | None) -> tuple[Any, NDArray[Any]]:
    records, names = read_records(path, count), [name.strip() for name in areas.split(",")]
    header = list(records[0]) if isinstance(records, list) else list(records.columns)
    if missing := [name for name in (*names, *filter(None, [count])) if name not in header]:
        raise ValueError(f"{path} must have the column {missing[0]!r}, got {', '.join(header)}")
    columns = [column_of(records, name) for name in names]
    for name, column in zip(names, columns, strict=True):
        if any(code in ("", None) or code != code for code in column):
            raise ValueError(f"{path} must have a code of {name} in every row, got a missing value")
        if sums := [code for code in column if re.fullmatch(SUMS, str(code), re.ASCII)]:
            way_out = "leave such rows out, or rename the area if it is one"
            raise ValueError(f"{path} must have no sums of areas in {name}, got {quoted(str(sums[0]))}: {way_out}")
    try:
        numbers = check_counts(np.array([1] * len(records) if count is None else column_of(records, count)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: column {count!r}: {error}") from None
    people: dict[tuple[str, ...], int] = {}
    for *codes, number in zip(*columns, numbers.tolist(), strict=True):
        area = tuple(map(str, codes))
        people[area] = people.get(area, 0) + number
    return plugin("systems").Hierarchy.from_codes(*zip(*people, strict=True)), np.array(list(people.values()))
