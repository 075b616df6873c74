"""Writes the files of a TopDown release while it is estimated, and reads its measurements again."""

from __future__ import annotations

import csv
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, product, repeat, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.schema import Query
from algorithms.tables.files import row_writer, whole_file, write_rows, writing_rows
from algorithms.topdown.estimate import Outcome, check_kept, estimated, settle
from algorithms.topdown.estimation.constraints import Invariant
from algorithms.topdown.measure import Key, Measurement, Measurements
from algorithms.topdown.plan import Known, Plan
from audit.io.text import from_cell, printable

__all__ = ["LARGEST_RELEASE", "read_measurements", "write_levels"]

LARGEST_RELEASE = 400_000_000
"""Most records that are written: more than the people of all nations but two. Noise alone makes more of them where the
budget is tiny and no total is held, and each is a row of the microdata, so that they would fill the disk."""

NOISY = ("LEVEL", "AREA", "QUERY", "GROUP", "COUNT", "VARIANCE")
EXACT = ("INVARIANT", "LEVEL", "AREA", "GROUP", "COUNT")
TOLERANCE = 1e-6  # relative, of a variance
LONGEST = 200  # letters of a row that are told

Row = Sequence[Any]
Words = tuple[str, ...]


def write_levels(
    folder: Path, plan: Plan, known: Known, levels: Iterable[Mapping[Key, Measurement]], areas: Sequence[str]
) -> tuple[int, Outcome]:
    """Estimate level by level and write the four files of counts meanwhile; return the number of records, and how.

    `known` and `levels` are those of `algorithms.topdown.measure.measured`, and `areas` the names of the levels below
    the root. What is written of a level is dropped, but for the tables above the finest one: a failsafe below changes
    them to the end.
    """
    tree, cells, people = plan.tree, plan.schema.cells, 0
    attributes, constraints = tuple(plan.schema.attributes), plan.constraints(known)
    upper, outcome = np.zeros((1, int(tree.offsets[tree.depth]), cells), np.int64), Outcome(routes={})
    write_rows(folder / "invariants.csv", EXACT, _exact_rows(plan, known))
    with (
        writing_rows(folder / "noisy_measurements.csv", NOISY) as measurements,
        writing_rows(folder / "microdata.csv", (*areas, *attributes)) as records,
        tempfile.TemporaryFile("w+", encoding="utf-8", newline="", dir=folder) as finest,  # rows below those of `upper`
    ):
        tables = row_writer(finest)
        for part in estimated(plan, known, _told(plan, levels, measurements)):
            outcome = outcome.and_of(part)
            if part.level == 0:
                people = _checked(int(part.tables.sum()))
            if part.level < tree.depth:
                upper[:, part.nodes] = part.tables
            else:
                check_kept(plan, constraints, part.tables, part.nodes)
                tables(_table_rows(plan, part.level, part.nodes, part.tables[0]))
            settle(tree, upper, part)
            records(_record_rows(plan, part.nodes, part.tables[0]))
        check_kept(plan, constraints, upper, slice(0, upper.shape[1]))
        with whole_file(folder / "tables.csv") as file:
            tables = row_writer(file)
            tables([("LEVEL", "AREA", *attributes, "COUNT")])
            for level in range(tree.depth):
                nodes = tree.level(level)
                tables(_table_rows(plan, level, nodes, upper[0, nodes]))
            finest.seek(0)
            shutil.copyfileobj(finest, file)
    return people, outcome


def read_measurements(folder: str | os.PathLike[str], plan: Plan) -> Measurements:
    """Read the noisy measurements and invariants of a release that was written, and check the rows of the plan."""
    noisy, known = {}, {}
    every = range(plan.tree.depth + 1)
    keys = chain.from_iterable(_noisy_keys(plan, level) for level in every)
    values = _values(Path(folder) / "noisy_measurements.csv", NOISY, keys)
    for level, query, variance in chain.from_iterable(_measured(plan, level) for level in every):
        answers = np.zeros((variance.size, query.size), np.int64)
        for area in np.flatnonzero(np.isfinite(variance)):
            for group in range(query.size):
                where, (count, told) = next(values)
                answers[area, group] = _whole(where, count)
                _check_variance(where, told, float(variance[area]))
        noisy[level, query.name] = Measurement(answers, variance)
    next(values, None)  # refuses rows that are too many
    values = _values(Path(folder) / "invariants.csv", EXACT, (key for _, _, keys in _invariants(plan) for key in keys))
    for name, shape, asked in _invariants(plan):
        counts = [_whole(where, count) for where, (count,) in islice(values, len(asked))]
        known[name] = np.array(counts, np.int64).reshape(shape)
    next(values, None)
    return Measurements(noisy, known)


def _told(
    plan: Plan, levels: Iterable[Mapping[Key, Measurement]], write: Callable[[Iterable[Row]], None]
) -> Iterator[Mapping[Key, Measurement]]:
    """Write the measurements of each level before they are estimated from."""
    for level, noisy in enumerate(levels):
        write(_noisy_rows(plan, level, noisy))
        yield noisy


def _checked(people: int) -> int:
    if people > LARGEST_RELEASE:
        raise ValueError(
            f"a release must have at most {LARGEST_RELEASE:,} records, got {people:,}; where the noise made them, take "
            "a larger budget, or hold the total as an invariant"
        )
    return people


def _noisy_rows(plan: Plan, level: int, noisy: Mapping[Key, Measurement]) -> Iterator[Row]:
    keys = _noisy_keys(plan, level)
    for _, query, variance in _measured(plan, level):
        answers = noisy[level, query.name].answers
        for area in np.flatnonzero(np.isfinite(variance)):
            for count in answers[area].tolist():
                yield *next(keys), count, float(variance[area])


def _exact_rows(plan: Plan, known: Known) -> Iterator[Row]:
    for name, _, keys in _invariants(plan):
        for key, count in zip(keys, known[name].ravel().tolist(), strict=True):
            yield *key, count


def _table_rows(plan: Plan, level: int, nodes: slice, tables: NDArray[np.int64]) -> Iterator[Row]:
    cells = list(product(*plan.schema.attributes.values()))
    for node, table in enumerate(tables, nodes.start):
        name = plan.tree.name(node)
        for cell in np.flatnonzero(table):
            yield level, name, *cells[cell], int(table[cell])


def _record_rows(plan: Plan, nodes: slice, tables: NDArray[np.int64]) -> Iterator[Row]:
    tree, cells = plan.tree, list(product(*plan.schema.attributes.values()))
    for node, table in enumerate(tables, nodes.start):
        if tree.starts[node] < tree.starts[node + 1]:
            continue
        codes = tree.codes(node)
        codes += [""] * (tree.depth - len(codes))  # of a leaf above the finest level
        for cell in np.flatnonzero(table):
            yield from repeat((*codes, *cells[cell]), int(table[cell]))


def _measured(plan: Plan, level: int) -> Iterator[tuple[int, Query, NDArray[np.float64]]]:
    """Yield what is measured at a level: level, query, and the variance in every area, infinite where nothing is."""
    for query in plan.queries[level]:
        yield level, query, plan.variances(level, query.name)


def _noisy_keys(plan: Plan, level: int) -> Iterator[Words]:
    for _, query, variance in _measured(plan, level):
        for area in np.flatnonzero(np.isfinite(variance)) + plan.tree.level(level).start:
            path = plan.tree.name(int(area))
            yield from ((str(level), path, query.name, label) for label in query.labels)


def _invariants(plan: Plan) -> Iterator[tuple[str, tuple[int, ...], list[Words]]]:
    """Yield every invariant: its name, the shape of its answers, and what each is of."""
    for invariant in plan.invariants:
        name, level = str(invariant), str(invariant.level)
        if isinstance(invariant, Invariant):
            areas, labels = plan.tree.cut(invariant.level), plan.schema.query(invariant.query).labels
            keys: list[Words] = [
                (name, level, path, label) for path in map(plan.tree.name, areas.tolist()) for label in labels
            ]
            yield name, (areas.size, len(labels)), keys
        else:
            groups = int(np.max(invariant.groups)) + 1
            yield name, (groups,), [(name, level, f"group {group}", "total") for group in range(groups)]


def _values(path: Path, columns: Row, keys: Iterable[Words]) -> Iterator[tuple[str, list[str]]]:
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
