"""A release: measure once, post-process, and write one folder with all that is published, or nothing.

The folder holds

- ``noisy_measurements.csv`` and ``invariants.csv``: what was measured, and what is published exactly;
- ``tables.csv``: every level; cells without people are left out;
- ``microdata.csv``: one row a person, in the order of the tables;
- ``columns.csv`` and ``ledger.txt``: what the columns hold; the noise of every query and the promise in words;
- ``release.json``: what was run and how the post-processing went.

Files have a column for each level of areas, the outermost first; in a row of an area those below its level are empty.

All but the invariants are functions of the noisy measurements and of what is public: `read_measurements` and
``topdown.estimate`` make the same tables again, and the same reasons of failsafes. Every area is named, so which areas
there are must be public; `algorithms.tables.intake.read_histogram` takes them from a list. Time, and what is said of
data that break a rule, depend on the data and are outside every promise.
"""

from __future__ import annotations

import csv
import math
import os
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, product, repeat, zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.noise import DiscreteGaussian, Rng, counted
from algorithms.schema import CROSS, DETAILED
from algorithms.tables.columns import COUNT, Columns, TableColumn, attribute_columns, code_columns
from algorithms.tables.files import (
    check_folder,
    in_file,
    row_writer,
    whole_file,
    whole_folder,
    write_rows,
    writing_rows,
)
from algorithms.tables.release import Recorded, check_distinct, described, level_names, margins, tell_rare
from algorithms.tables.spilled import Spilled, pieces
from algorithms.topdown.estimate import Outcome, apply_failsafe_gaps, check_kept, estimated, stored_tables
from algorithms.topdown.estimation.constraints import GroupedTotal, Invariant
from algorithms.topdown.ledger import Ledger
from algorithms.topdown.measure import Key, Measured, Measurement, Measurements
from algorithms.topdown.mechanism import TopDown
from algorithms.topdown.plan import Known, Plan
from algorithms.topdown.presets import PRESETS
from algorithms.topdown.stored import store, stored, whole_table
from audit.io.text import from_cell, printable

__all__ = ["LARGEST_RELEASE", "Release", "read_measurements", "release"]

LARGEST_RELEASE = 400_000_000
"""Most records that are written: more than the people of all nations but two. Noise alone makes more of them where the
budget is tiny and no total is held, and each is a row of the microdata, so that they would fill the disk."""

NOISY = (("LEVEL",), ("QUERY", "GROUP", "COUNT", "VARIANCE"))  # before and behind the columns of areas
EXACT = (("INVARIANT", "LEVEL"), ("GROUP", "COUNT"))
TOLERANCE = 1e-6  # relative, of a variance
LONGEST = 200  # letters of a row in a message

Row = Sequence[Any]
Words = tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(Recorded):
    """What a release that was written says of itself; counts are in its folder only."""

    topdown: TopDown
    outcome: Outcome  # how its tables came about
    people: int  # records in the microdata
    areas: tuple[str, ...]  # names of the levels below the root
    preset: str  # name of the settings, or of their file, if they have one

    @property
    def ledger(self) -> Ledger:
        """What the release promises to lose at most."""
        settings = f"Settings {self.preset}: {PRESETS[self.preset].about}." if self.preset in PRESETS else ""
        return Ledger(self.topdown, listed=self.listed, settings=settings)

    @property
    def columns(self) -> Columns:
        """Of measurements and invariants, as `NOISY` and `EXACT` name them, of the tables, and of a person."""
        schema, names, invariants = self.topdown.schema, enumerate(("root", *self.areas)), self.topdown.invariants
        held = max((one.level - isinstance(one, GroupedTotal) for one in invariants), default=0)  # by exact totals
        queries = [one.query for one in invariants if isinstance(one, Invariant)]
        parted = list(schema.attributes) if DETAILED in queries else CROSS.join(queries).split(CROSS)
        sums = "; sums are exact where invariants.csv has them" if invariants else ""
        level = TableColumn("LEVEL", "level of the area", codes=[f"{number} = {name}" for number, name in names])
        areas = code_columns(self.areas, more="; empty for areas of the levels above")
        query, group = TableColumn("QUERY", "what was measured"), TableColumn("GROUP", "group of the query's partition")
        variance = TableColumn("VARIANCE", "variance of the noise", "records squared")
        invariant = TableColumn("INVARIANT", "what is published exactly")
        known = TableColumn("GROUP", "group of the query's partition, or of areas of the level")
        exact = TableColumn("COUNT", "number of records", "records")
        return {
            "noisy_measurements.csv": [level, *areas, query, group, COUNT, variance],
            "invariants.csv": [invariant, level, *areas, known, exact],
            "tables.csv": [level, *areas, *attribute_columns(schema), replace(COUNT, meaning=COUNT.meaning + sums)],
            "microdata.csv": [
                *code_columns(self.areas, noisy=True, exact=self.areas[:held]),
                *attribute_columns(schema, noisy=True, exact=list(map(str.strip, parted))),
            ],
        }

    @property
    def about(self) -> dict[str, Any]:
        """What made the release, and how its post-processing went."""
        plan, outcome = self.topdown, self.outcome
        residuals = {"primal": outcome.primal, "dual": outcome.dual}
        return {
            "preset": self.preset,
            "noise": self.noise,
            "promise": plan.claim.to_dict(),
            "relation": plan.claim.relation,
            "invariants": [str(invariant) for invariant in plan.invariants],
            "bounds": [str(bounds) for bounds in plan.bounds],
            "areas": self.areas_from,
            **described(plan.tree, ("root", *self.areas), plan.schema),
            "solver": plan.solver,
            "routes": outcome.routes,
            "failsafes": [{"area": failure.area, "reason": failure.reason} for failure in outcome.failures],
            "residuals": {name: value if math.isfinite(value) else str(value) for name, value in residuals.items()},
        }


def release(
    topdown: TopDown,
    histogram: ArrayLike | Spilled,
    *,
    out: str | os.PathLike[str],
    rng: Rng = "secure",
    areas: Sequence[str] | None = None,
    preset: str = "",
    listed: bool = False,
    reading: Mapping[str, Any] = MappingProxyType({}),
) -> Release:
    """Run TopDown once on people by leaf and cell, and write each level to a new folder while its parts are estimated.

    Measurements and tables are in memory some areas at a time, and on disk meanwhile, as the histogram may be
    (`algorithms.tables.intake.read_histogram`); `TopDown.measure` and `TopDown.estimate` return all of them. The same
    seed gives the same tables there and here; what is published takes the default, the operating system's entropy.
    `areas` names the levels below the root; `listed` says that the tree is from a public list of areas, and was not
    read from the data.
    """
    check_folder(out)
    names = level_names(areas, topdown.tree)
    _check_names(topdown, names)
    with counted() as draws, whole_folder(out) as staged, Spilled() as own:
        DiscreteGaussian(1.0).sample(0, rng)  # a source of noise that is missing is told before the work, not after it
        spilled = store(topdown, histogram, own)
        fitted, outcome = _write_levels(staged, topdown, *stored(topdown, spilled, rng), names, spilled)
        exact = whole_table(topdown, spilled)
        tell_rare(topdown.schema, margins(topdown.schema, exact), margins(topdown.schema, fitted), "in the tables")
        about: dict[str, Any] = {"areas": names, "preset": preset, "listed": listed, "reading": reading}
        record = Release(topdown=topdown, outcome=outcome, people=int(fitted.sum()), **about)
        record.of(draws).write_record(staged)
    return record


def _check_names(plan: Plan, areas: tuple[str, ...]) -> None:
    """Refuse a file with two columns of one name, and areas with the same codes."""
    for form in (NOISY, EXACT, (("LEVEL",), (*plan.schema.attributes, "COUNT"))):
        check_distinct(_around(areas, form))
    tree, names = plan.tree, set[str]()
    for node in range(1, tree.n_nodes):
        if tree.parent[node] != tree.parent[node - 1]:
            names.clear()
        if (name := tree.labels[node]) in names:
            raise ValueError(
                f"areas must have codes of their own in the area around them, got {tree.name(node)!r} twice"
            )
        names.add(name)


def _around(areas: Sequence[str], form: tuple[Words, Words]) -> Words:
    """Return columns of areas, or codes in them, between what stands before and behind them."""
    before, behind = form
    return (*before, *areas, *behind)


def _codes(tree: Hierarchy, node: int) -> Words:
    """Return what an area has in the columns of areas."""
    codes = tree.codes(node)
    return (*codes, *[""] * (tree.depth - len(codes)))


def _write_levels(
    folder: Path,
    plan: Plan,
    known: Known,
    levels: Iterable[Mapping[Key, Measured]],
    areas: Sequence[str],
    spilled: Spilled,
) -> tuple[NDArray[np.int64], Outcome]:
    """Estimate level by level and write the four files of counts meanwhile; return the people by cell, and how.

    `known` and `levels` are those of `algorithms.topdown.stored.stored`, and `areas` the names of the levels below the
    root. Tables above the finest level are on disk to the end, and what failsafes below change of them in memory.
    """
    tree, cells = plan.tree, plan.schema.cells
    root = np.zeros(cells, np.int64)
    attributes, constraints = tuple(plan.schema.attributes), plan.constraints(known)
    outcome = Outcome(routes={})
    changes: dict[tuple[int, int], NDArray[np.int64]] = defaultdict(lambda: np.zeros(cells, np.int64))
    exact = (
        (*key, count)
        for name, _, keys in _invariants(plan)
        for key, count in zip(keys, known[name].ravel().tolist(), strict=True)
    )
    write_rows(folder / "invariants.csv", _around(areas, EXACT), exact)
    with (
        whole_file(folder / "noisy_measurements.csv") as measurements,
        writing_rows(folder / "microdata.csv", (*areas, *attributes)) as records,
        tempfile.TemporaryFile("w+", encoding="utf-8", newline="", dir=folder) as finest,  # rows below all others
    ):
        tables = row_writer(finest)
        row_writer(measurements)([_around(areas, NOISY)])
        for part in estimated(plan, known, _recorded(plan, levels, measurements.write), spilled=spilled):
            outcome = outcome.and_of(part)
            if part.level == 0:
                root = part.tables[0].sum(axis=0)
                if (people := int(root.sum())) > LARGEST_RELEASE:
                    raise ValueError(
                        f"a release must have at most {LARGEST_RELEASE:,} records, got {people:,}; where the noise "
                        "made them, take a larger budget, or hold the total as an invariant"
                    )
            if part.level == tree.depth:
                check_kept(plan, constraints, part.tables, part.nodes)
                tables(_table_rows(plan, part.level, part.nodes, part.tables[0]))
            apply_failsafe_gaps(tree, changes, part)
            records(_record_rows(plan, part.nodes, part.tables[0]))
        with whole_file(folder / "tables.csv") as file:
            tables = row_writer(file)
            tables([("LEVEL", *areas, *attributes, "COUNT")])
            for level in range(tree.depth):
                first, stop = tree.offsets[level : level + 2].tolist()
                for piece in pieces(stop - first, cells):
                    nodes = slice(first + piece.start, first + piece.stop)
                    counts = stored_tables(plan, spilled, level, piece)
                    for node in range(nodes.start, nodes.stop):
                        counts[0, node - nodes.start] += changes.get((0, node), 0)
                    check_kept(plan, constraints, counts, nodes)
                    tables(_table_rows(plan, level, nodes, counts[0]))
            finest.seek(0)
            shutil.copyfileobj(finest, file)
    return root + changes.get((0, 0), 0), outcome


def read_measurements(
    folder: str | os.PathLike[str], plan: Plan, *, areas: Sequence[str] | None = None
) -> Measurements:
    """Read the noisy measurements and invariants of a release that was written, and check the rows of the plan.

    `areas` names the levels below the root, as for `release`.
    """
    every, known, names = range(plan.tree.depth + 1), {}, level_names(areas, plan.tree)
    noisy = {
        (level, query.name): Measurement(np.zeros((len(variances), query.size), np.int64), variances)
        for level in every
        for query in plan.queries[level]
        for variances in [plan.variances(level, query.name)]
    }
    for_keys, measured_areas = (chain.from_iterable(_noisy_areas(plan, level) for level in every) for _ in range(2))
    keys = ((*words, label) for words, _, _, labels, _ in for_keys for label in labels)
    values = _values(Path(folder) / "noisy_measurements.csv", _around(names, NOISY), keys)
    for _, key, area, labels, variance in measured_areas:
        for group in range(len(labels)):
            where, (count, text) = next(values)
            noisy[key].answers[area, group] = _whole(where, count)
            _check_variance(where, text, variance)
    next(values, None)  # refuses rows that are too many
    exact = (key for _, _, keys in _invariants(plan) for key in keys)
    values = _values(Path(folder) / "invariants.csv", _around(names, EXACT), exact)
    for name, shape, keys_of_one in _invariants(plan):
        counts = [_whole(where, count) for where, (count,) in islice(values, len(keys_of_one))]
        known[name] = np.array(counts, np.int64).reshape(shape)
    next(values, None)
    return Measurements(noisy, known)


def _recorded(
    plan: Plan, levels: Iterable[Mapping[Key, Measured]], write: Callable[[str], Any]
) -> Iterator[Mapping[Key, Measured]]:
    """Write the measurements of each level before they are estimated from: the lines of `write_rows`, made faster."""
    for level, noisy in enumerate(levels):
        fields = {query.name: [in_file(label, "") for label in query.labels] for query in plan.queries[level]}
        of, piece = None, slice(0)
        for words, key, area, labels, variance in _noisy_areas(plan, level):
            if key != of or area >= piece.stop:
                number = next(pieces(noisy[key].variance.size - area, len(labels))).stop
                of, piece = key, slice(area, area + number)
                answers = noisy[key].of(piece)
            head, tail = in_file(*words, ""), f",{variance}\n"
            counts = zip(fields[key[1]], answers[area - piece.start].tolist(), strict=True)
            write("".join([f"{head}{label}{count}{tail}" for label, count in counts]))
        yield noisy


def _table_rows(plan: Plan, level: int, nodes: slice, tables: NDArray[np.int64]) -> Iterator[Row]:
    cells = list(product(*plan.schema.attributes.values()))
    for node, table in enumerate(tables, nodes.start):
        codes = _codes(plan.tree, node)
        for cell in np.flatnonzero(table):
            yield level, *codes, *cells[cell], int(table[cell])


def _record_rows(plan: Plan, nodes: slice, tables: NDArray[np.int64]) -> Iterator[Row]:
    tree, cells = plan.tree, list(product(*plan.schema.attributes.values()))
    for node, table in enumerate(tables, nodes.start):
        if tree.starts[node] < tree.starts[node + 1]:
            continue
        codes = _codes(tree, node)
        for cell in np.flatnonzero(table):
            yield from repeat((*codes, *cells[cell]), int(table[cell]))


def _noisy_areas(plan: Plan, level: int) -> Iterator[tuple[Words, Key, int, Words, float]]:
    """Yield what is measured at a level: first words of the rows, their query, area, groups and variance."""
    first = plan.tree.level(level).start
    for query in plan.queries[level]:
        variances = plan.variances(level, query.name)
        for area in np.flatnonzero(np.isfinite(variances)).tolist():
            words = str(level), *_codes(plan.tree, first + area), query.name
            yield words, (level, query.name), area, query.labels, float(variances[area])


def _invariants(plan: Plan) -> Iterator[tuple[str, tuple[int, ...], list[Words]]]:
    """Yield every invariant: its name, the shape of its answers, and what each is of."""
    for invariant in plan.invariants:
        name, level = str(invariant), str(invariant.level)
        if isinstance(invariant, Invariant):
            areas, labels = plan.tree.cut(invariant.level), plan.schema.query(invariant.query).labels
            keys: list[Words] = [
                (name, level, *_codes(plan.tree, area), label) for area in areas.tolist() for label in labels
            ]
            yield name, (areas.size, len(labels)), keys
        else:
            areas, first = plan.tree.cut(invariant.level), np.unique(invariant.groups, return_index=True)[1]
            parents = plan.tree.parent[areas[first]].tolist()
            keys = [(name, level, *_codes(plan.tree, node), f"group {group}") for group, node in enumerate(parents)]
            yield name, (first.size,), keys


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
