"""Writes and reads the files of a TopDown release."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, product, repeat, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.schema import Query
from algorithms.tables.files import write_rows
from algorithms.topdown.estimation.constraints import Invariant
from algorithms.topdown.measure import Measurement, Measurements
from algorithms.topdown.plan import Plan
from audit.io.text import from_cell, printable

__all__ = ["read_measurements", "write_tables"]

NOISY = ("LEVEL", "AREA", "QUERY", "GROUP", "COUNT", "VARIANCE")
EXACT = ("INVARIANT", "LEVEL", "AREA", "GROUP", "COUNT")
TOLERANCE = 1e-6  # relative, of a variance
LONGEST = 200  # letters of a row that are told

Row = Sequence[Any]
Key = tuple[str, ...]


def write_tables(
    folder: Path, plan: Plan, measurements: Measurements, tables: NDArray[np.int64], areas: Sequence[str]
) -> None:
    """Write the four files of counts, row by row; `areas` are the names of the levels below the root."""
    attributes = tuple(plan.schema.attributes)
    write_rows(folder / "noisy_measurements.csv", NOISY, _noisy_rows(plan, measurements))
    write_rows(folder / "invariants.csv", EXACT, _exact_rows(plan, measurements))
    write_rows(folder / "tables.csv", ("LEVEL", "AREA", *attributes, "COUNT"), _table_rows(plan, tables))
    write_rows(folder / "microdata.csv", (*areas, *attributes), _record_rows(plan, tables[plan.tree.leaves]))


def read_measurements(folder: str | os.PathLike[str], plan: Plan) -> Measurements:
    """Read the noisy measurements and invariants of a release that was written, and check the rows of the plan."""
    noisy, known = {}, {}
    values = _values(Path(folder) / "noisy_measurements.csv", NOISY, _noisy_keys(plan))
    for level, query, variance in _measured(plan):
        answers = np.zeros((variance.size, query.size), np.int64)
        for area in np.flatnonzero(np.isfinite(variance)):
            for group in range(query.size):
                where, (count, told) = next(values)
                answers[area, group] = _whole(where, count)
                _check_variance(where, told, float(variance[area]))
        noisy[level, query.name] = Measurement(answers, variance)
    next(values, None)  # refuses rows that are too many
    values = _values(Path(folder) / "invariants.csv", EXACT, (key for _, _, keys in _invariants(plan) for key in keys))
    for name, shape, keys in _invariants(plan):
        counts = [_whole(where, count) for where, (count,) in islice(values, len(keys))]
        known[name] = np.array(counts, np.int64).reshape(shape)
    next(values, None)
    return Measurements(noisy, known)


def _noisy_rows(plan: Plan, measurements: Measurements) -> Iterator[Row]:
    keys = _noisy_keys(plan)
    for level, query, variance in _measured(plan):
        answers = measurements.noisy[level, query.name].answers
        for area in np.flatnonzero(np.isfinite(variance)):
            for count in answers[area].tolist():
                yield *next(keys), count, float(variance[area])


def _exact_rows(plan: Plan, measurements: Measurements) -> Iterator[Row]:
    for name, _, keys in _invariants(plan):
        for key, count in zip(keys, measurements.known[name].ravel().tolist(), strict=True):
            yield *key, count


def _table_rows(plan: Plan, tables: NDArray[np.int64]) -> Iterator[Row]:
    paths, cells = (
        [plan.tree.name(node) for node in range(plan.tree.n_nodes)],
        list(product(*plan.schema.attributes.values())),
    )
    for level in range(plan.tree.depth + 1):
        for node in range(*plan.tree.level(level).indices(plan.tree.n_nodes)):
            for cell in np.flatnonzero(tables[node]):
                yield level, paths[node], *cells[cell], int(tables[node, cell])


def _record_rows(plan: Plan, leaves: NDArray[np.int64]) -> Iterator[Row]:
    tree, cells = plan.tree, list(product(*plan.schema.attributes.values()))
    for leaf in range(tree.n_leaves):
        codes = tree.codes(int(tree.leaves[leaf]))
        codes += [""] * (tree.depth - len(codes))  # of a leaf above the finest level
        for cell in np.flatnonzero(leaves[leaf]):
            yield from repeat((*codes, *cells[cell]), int(leaves[leaf, cell]))


def _measured(plan: Plan) -> Iterator[tuple[int, Query, NDArray[np.float64]]]:
    """Yield what is measured: level, query, and the variance in every area, infinite where nothing is."""
    for level, queries in enumerate(plan.queries):
        for query in queries:
            yield level, query, plan.variances(level, query.name)


def _noisy_keys(plan: Plan) -> Iterator[Key]:
    paths = [plan.tree.name(node) for node in range(plan.tree.n_nodes)]
    for level, query, variance in _measured(plan):
        for area in np.flatnonzero(np.isfinite(variance)) + plan.tree.level(level).start:
            yield from ((str(level), paths[area], query.name, label) for label in query.labels)


def _invariants(plan: Plan) -> Iterator[tuple[str, tuple[int, ...], list[Key]]]:
    """Yield every invariant: its name, the shape of its answers, and what each is of."""
    paths = [plan.tree.name(node) for node in range(plan.tree.n_nodes)]
    for invariant in plan.invariants:
        name, level = str(invariant), str(invariant.level)
        if isinstance(invariant, Invariant):
            areas, labels = plan.tree.cut(invariant.level), plan.schema.query(invariant.query).labels
            keys: list[Key] = [(name, level, paths[area], label) for area in areas for label in labels]
            yield name, (areas.size, len(labels)), keys
        else:
            groups = int(np.max(invariant.groups)) + 1
            yield name, (groups,), [(name, level, f"group {group}", "total") for group in range(groups)]


def _values(path: Path, columns: Row, keys: Iterable[Key]) -> Iterator[tuple[str, list[str]]]:
    """Yield where each row is, and its values behind the key; rows are those of the keys, in their order."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        try:
            for key, row in zip_longest(chain([tuple(columns)], keys), rows):
                where = f"{path.name} line {rows.line_num}"
                if (
                    row is None
                    or key is None
                    or tuple(map(from_cell, row[: len(key)])) != key
                    or len(row) != len(columns)
                ):
                    wanted, got = (
                        printable(", ".join(words))[:LONGEST] if words else "nothing" for words in (key, row)
                    )
                    raise ValueError(f"{where} must hold {wanted} in {len(columns)} values, got {got}")
                if len(key) < len(row):
                    yield where, row[len(key) :]
        except csv.Error as error:
            raise ValueError(f"{path.name} must be a CSV file: {error}") from error
        except UnicodeDecodeError as error:
            got = f"the byte {error.object[error.start]:#04x} after line {rows.line_num}"
            raise ValueError(f"{path.name} must be text in UTF-8, got {got}") from None


def _whole(where: str, text: str) -> int:
    if not re.fullmatch("-?[0-9]{1,18}", text):
        raise ValueError(f"{where}: COUNT must be a whole number, got {text!r}")
    return int(text)


def _check_variance(where: str, text: str, wanted: float) -> None:
    try:
        close = abs(float(text) - wanted) <= TOLERANCE * wanted
    except ValueError:
        close = False
    if not close:
        raise ValueError(f"{where}: VARIANCE must be {wanted}, got {text!r}")
