"""The production layout of the noisy tables, and checks of tables and files against the settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.phsafe.budget import Config, noise_parameters
from algorithms.phsafe.tables import DERIVED, LEVEL_OF, QUERIES, split_level
from algorithms.phsafe.tabulation.tabulate import Tabulation
from algorithms.release.engine import read_rows
from algorithms.release.frames import Frame

__all__ = ["check_release", "lay_out", "zeros"]


def check_release(
    folder: str | os.PathLike[str], tables: Mapping[str, Frame], config: Config, states: tuple[str, ...]
) -> None:
    """Compare noisy tables, except their counts, with settings and states, and written files with the tables."""
    expected = lay_out(zeros(config, states), config)
    if list(tables) != list(expected):
        raise ValueError(f"a release must hold {', '.join(expected)}, got {', '.join(tables) or 'nothing'}")
    for name, table in tables.items():
        if _without_counts(table) != _without_counts(expected[name]):
            raise ValueError(f"{name} must have each of {len(expected[name])} cells once, and the noise of its budget")
        written = read_rows(Path(folder, name, f"{name}.csv"), separator="|")
        if written != [list(map(str, row)) for row in (table.columns, *table.rows())]:
            raise ValueError(f"{name}.csv must hold the noisy table")


def _without_counts(table: Frame) -> list[tuple[str, list[Any]]]:
    return [(name, [] if name == "COUNT" else values.tolist()) for name, values in table.to_dict().items()]


def lay_out(noisy: Tabulation, config: Config) -> dict[str, Frame]:
    """Lay out noisy counts of all or some queries, and numerators derived from them, in the production format."""
    noise = {(table, level): (law, variance) for table, level, _, _, variance, law in noise_parameters(config).rows()}
    frame, tables = noisy.frame(), {}
    for name in dict.fromkeys(frame["TABLE"]):
        rows = frame.where(frame["TABLE"] == name)
        source, sums = DERIVED.get(name, (name, {}))
        levels = [LEVEL_OF[place] for place in zip(rows["REGION_TYPE"], rows["ITERATION_CODE"], strict=True)]
        columns: dict[str, Any] = {column: rows[column] for column in ("REGION_ID", "REGION_TYPE", "ITERATION_CODE")}
        if QUERIES[source].race is None:
            del columns["ITERATION_CODE"]
        columns[f"{name}_DATA_CELL"] = rows["DATA_CELL"]
        columns["COUNT"] = rows["COUNT"]
        columns["NOISE_DISTRIBUTION"] = [noise[source, level][0] for level in levels]
        columns["VARIANCE"] = [  # a sum of cells has the sum of their variances
            len(sums.get(cell, (cell,))) * noise[source, level][1]
            for cell, level in zip(rows["DATA_CELL"], levels, strict=True)
        ]
        tables[name] = Frame(columns)
    return tables


def zeros(config: Config, states: tuple[str, ...]) -> Tabulation:
    """Return a tabulation of an empty population, which has every row that a release must have."""
    counts = {}
    for table, level, _ in config.budgets():
        kind, iterations = split_level(level)
        regions = 1 if kind == "usa" else len(states)
        counts[table, level] = np.zeros((regions, len(iterations), len(QUERIES[table].cells)), np.int64)
    return Tabulation(states, counts)
