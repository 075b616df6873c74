"""The production layout of the noisy tables: laid out, read again, and checked against the settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.phsafe.budget import Config, noise_parameters
from algorithms.phsafe.tables import DERIVED, LEVEL_OF, PUBLISHED, QUERIES, split_level
from algorithms.phsafe.tabulation.tabulate import Tabulation
from algorithms.release.folder import read_rows
from algorithms.release.frames import Frame

__all__ = ["check_release", "lay_out", "read_release", "zeros"]

TOLERANCE = 1e-6  # relative, of a variance: production's


def read_release(folder: str | os.PathLike[str]) -> dict[str, Frame]:
    """Read the tables of a release that was written."""
    tables = {}
    for name in PUBLISHED:
        path = Path(folder, name, f"{name}.csv")
        if path.exists():
            header, *rows = read_rows(path, separator="|")
            texts = dict(zip(header, zip(*rows, strict=True), strict=True))
            counts, variances = np.array(texts["COUNT"], np.int64), np.array(texts["VARIANCE"], np.float64)
            tables[name] = Frame({**texts, "COUNT": counts, "VARIANCE": variances})
    return tables


def check_release(tables: Mapping[str, Frame], config: Config, states: tuple[str, ...]) -> None:
    """Check what was written against what was asked for: tables, columns, rows, states, noise and variances."""
    expected = lay_out(zeros(config, states), config)
    if list(tables) != list(expected):
        raise ValueError(f"a release must hold {', '.join(expected)}, got {', '.join(tables) or 'nothing'}")
    if outside := set(states) - set(config.states):
        raise ValueError(f"states must be in the filter, got {min(outside)}")
    for name, right in expected.items():
        table = tables[name]
        if table.columns != right.columns:
            raise ValueError(f"{name} must have the columns {', '.join(right.columns)}, got {', '.join(table.columns)}")
        keys = [column for column in right.columns if column not in ("COUNT", "VARIANCE")]
        variances, known = (
            dict(zip(zip(*(t[key] for key in keys), strict=True), t["VARIANCE"], strict=True)) for t in (table, right)
        )
        if len(table) != len(right) or variances.keys() != known.keys():
            raise ValueError(f"{name} must have each of {len(right)} cells once, got {len(table)} rows")
        for key, variance in known.items():
            if not abs(variances[key] - variance) <= TOLERANCE * variance:
                raise ValueError(f"{name} {' '.join(key)}: VARIANCE must be {variance}, got {variances[key]}")
    for name, (source, sums) in DERIVED.items():
        if name in tables:
            _check_sums(name, tables[name], source, tables[source], sums)


def _check_sums(name: str, made: Frame, source: str, measured: Frame, sums: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse a numerator that is not the sum of the noisy cells it is made of."""
    places = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE")
    counts = {
        (table, *key): count
        for table, frame in ((name, made), (source, measured))
        for *key, count in zip(*(frame[column] for column in (*places, f"{table}_DATA_CELL", "COUNT")), strict=True)
    }
    for (table, *place, cell), count in counts.items():
        if table == name and count != (total := sum(counts[source, *place, part] for part in sums[cell])):
            raise ValueError(f"{name} {' '.join(place)} {cell}: COUNT must be {total}, as in {source}, got {count}")


def lay_out(noisy: Tabulation, config: Config) -> dict[str, Frame]:
    """Lay out noisy counts, of some queries or all, and the numerators made from them, as production does."""
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
        columns["VARIANCE"] = [  # noise of cells that are added up adds up
            len(sums.get(cell, (cell,))) * noise[source, level][1]
            for cell, level in zip(rows["DATA_CELL"], levels, strict=True)
        ]
        tables[name] = Frame(columns)
    return tables


def zeros(config: Config, states: tuple[str, ...]) -> Tabulation:
    """Return a tabulation of nobody, which has every row that a release must have."""
    counts = {}
    for table, level, _ in config.budgets():
        kind, iterations = split_level(level)
        regions = 1 if kind == "usa" else len(states)
        counts[table, level] = np.zeros((regions, len(iterations), len(QUERIES[table].cells)), np.int64)
    return Tabulation(states, counts)
