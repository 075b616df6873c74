"""A TopDown release; estimated tables are on disk, with some areas in memory at a time.

The folder has

- ``noisy_measurements.csv`` and ``invariants.csv``: noisy answers, and exactly published answers;
- ``tables.csv``: every level; cells without people are left out;
- ``microdata.csv``: one row a person, in the order of the tables.

Files have a column for each level of areas, the outermost first; in an area's row, columns below its level are empty.
All files except the invariants are functions of the noisy measurements and public data.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product, tee
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import Rng
from algorithms.release import engine
from algorithms.release.spilled import Spilled, pieces
from algorithms.schema import CROSS, DETAILED
from algorithms.topdown.estimate import estimated
from algorithms.topdown.ledger import Ledger
from algorithms.topdown.measure import Key, Measured
from algorithms.topdown.mechanism import TopDown
from algorithms.topdown.plan import Plan
from algorithms.topdown.presets import PRESETS
from algorithms.topdown.stored import StoredTables, store, stored, whole_table

__all__ = ["release"]

Row = Sequence[Any]


def release(
    topdown: TopDown,
    histogram: ArrayLike | Spilled,
    *,
    out: str | os.PathLike[str],
    rng: Rng = "secure",
    areas: Sequence[str] | None = None,
    preset: str = "",
    listed: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> engine.Published:
    """Run TopDown once on people by leaf and cell, level by level, and write the release to a new folder.

    The same seed gives the same tables as `TopDown.measure` and `TopDown.estimate`, which have all tables in memory.
    `areas` are the names of the levels below the root; `listed` means that areas are from a public list; `preset` is
    the name of the settings, or of their file. `drawn` of the result is a `StoredTables`.
    """
    names = engine.level_names(areas, topdown.tree)
    _check_names(topdown, names)
    with engine.publishing(out, rng) as publish, Spilled() as own:
        spilled = store(topdown, histogram, own)
        known, levels = stored(topdown, spilled, rng)
        levels, measured = tee(levels)
        tables = StoredTables(topdown, known, spilled)
        for part in estimated(topdown, known, levels, spilled=spilled):
            tables.add(part)
            if part.level == 0 and tables.people > engine.LARGEST_RELEASE:
                raise ValueError(
                    f"a release must have at most {engine.LARGEST_RELEASE:,} records, got {tables.people:,}; where the "
                    "noise made them, take a larger budget, or hold the total as an invariant"
                )
        engine.tell_rare(engine.margins(topdown.schema, whole_table(topdown, spilled), tables.root), "in the tables")
        settings = f"Settings {preset}: {PRESETS[preset].about}." if preset in PRESETS else ""
        outcome = tables.outcome
        residuals = (("primal", outcome.primal), ("dual", outcome.dual))
        publication = engine.Published(
            claim=topdown.claim,
            files=_files(topdown, names, measured, tables),
            ledger=Ledger(topdown, listed=listed, settings=settings),
            summary=_summary(names, tables),
            about={
                "preset": preset,
                "invariants": [str(invariant) for invariant in topdown.invariants],
                "bounds": [str(bounds) for bounds in topdown.bounds],
                **engine.described(topdown.tree, ("root", *names), topdown.schema, listed=listed),
                "solver": topdown.solver,
                "routes": outcome.routes,
                "failsafes": [{"area": failure.area, "reason": failure.reason} for failure in outcome.failures],
                "residuals": {name: value if math.isfinite(value) else str(value) for name, value in residuals},
            },
            reading=reading,
            drawn=tables,
        )
        return publish(publication)


def _summary(areas: Sequence[str], tables: StoredTables) -> str:
    """Return a summary of levels, failsafes, areas and records."""
    failures, families = tables.outcome.failures, sum(tables.outcome.routes.values())
    lines = [
        "\nLevels: " + ", ".join(f"{level} {name}" for level, name in enumerate(("root", *areas))) + ".",
        f"Failsafe: {len(failures):,} of {families:,} families{':' * bool(failures)}",
        *(f"  {failure.area}: {failure.reason}" for failure in failures[:5]),
    ]
    return "\n".join([*lines, f"Tables of {tables.plan.tree.n_nodes:,} areas and {tables.people:,} records"])


def _files(
    plan: Plan, names: Sequence[str], measured: Iterable[Mapping[Key, Measured]], tables: StoredTables
) -> dict[str, engine.TableFile]:
    """Return the files of measurements, invariants, tables and microdata."""
    schema, invariants = plan.schema, plan.invariants
    held = max((one.level for one in invariants), default=0)  # levels of areas with exact totals
    queries = [one.query for one in invariants]
    parted = list(schema.attributes) if DETAILED in queries else CROSS.join(queries).split(CROSS)
    sums = "; sums are exact where invariants.csv has them" if invariants else ""
    codes = [f"{depth} = {name}" for depth, name in enumerate(("root", *names))]
    level = engine.TableColumn("LEVEL", "level of the area", codes=codes)
    areas = engine.code_columns(names, more="; empty for areas of the levels above")
    query = engine.TableColumn("QUERY", "what was measured")
    group = engine.TableColumn("GROUP", "group of the query's partition")
    variance = engine.TableColumn("VARIANCE", "variance of the noise", "records squared")
    invariant = engine.TableColumn("INVARIANT", "what is published exactly")
    known = engine.TableColumn("GROUP", "group of the query's partition, or of areas of the level")
    exact = engine.TableColumn("COUNT", "number of records", "records")
    noisy = (row for depth, of_level in enumerate(measured) for row in _noisy_rows(plan, depth, of_level))
    counts = (
        (depth, *words, people)
        for depth, nodes, part in tables.parts(checked=True)
        for words, people in engine.cell_rows(plan.tree, schema, range(nodes.start, nodes.stop), part)
    )
    persons = (row for _, nodes, part in tables.parts() for row in _leaf_rows(plan, nodes, part))
    people = [
        *engine.code_columns(names, noisy=True, exact=names[:held]),
        *engine.attribute_columns(schema, noisy=True, exact=list(map(str.strip, parted))),
    ]
    fitted = replace(engine.COUNT, meaning=engine.COUNT.meaning + sums)
    return {
        "noisy_measurements.csv": engine.TableFile([level, *areas, query, group, engine.COUNT, variance], noisy),
        "invariants.csv": engine.TableFile([invariant, level, *areas, known, exact], _exact_rows(tables)),
        "tables.csv": engine.TableFile([level, *areas, *engine.attribute_columns(schema), fitted], counts),
        "microdata.csv": engine.TableFile(people, persons),
    }


def _check_names(plan: Plan, areas: tuple[str, ...]) -> None:
    """Refuse a file with two columns of the same name, and areas with the same codes."""
    engine.check_distinct((*areas, "LEVEL", "INVARIANT", "QUERY", "GROUP", "COUNT", "VARIANCE"))
    engine.check_distinct(("LEVEL", *areas, *plan.schema.attributes, "COUNT"))
    tree, names = plan.tree, set[str]()
    for node in range(1, tree.n_nodes):
        if tree.parent[node] != tree.parent[node - 1]:
            names.clear()
        if (name := tree.labels[node]) in names:
            raise ValueError(
                f"areas must have codes of their own in the area around them, got {tree.name(node)!r} twice"
            )
        names.add(name)


def _noisy_rows(plan: Plan, level: int, noisy: Mapping[Key, Measured]) -> Iterator[Row]:
    first = plan.tree.level(level).start
    for query in plan.queries[level]:
        measured = noisy[level, query.name]
        for piece in pieces(measured.variance.size, query.size):
            variances = measured.variance[piece].tolist()
            for area, (variance, answers) in enumerate(zip(variances, measured.of(piece).tolist(), strict=True)):
                if math.isfinite(variance):
                    codes = engine.area_codes(plan.tree, first + piece.start + area)
                    for label, count in zip(query.labels, answers, strict=True):
                        yield level, *codes, query.name, label, count, variance


def _leaf_rows(plan: Plan, nodes: slice, tables: NDArray[np.int64]) -> Iterator[Row]:
    tree, found = plan.tree, np.arange(nodes.start, nodes.stop)
    leaves = tree.starts[found] == tree.starts[found + 1]
    return engine.person_rows(tree, plan.schema, found[leaves].tolist(), tables[leaves])


def _exact_rows(tables: StoredTables) -> Iterator[Row]:
    """Yield the answers of every invariant, area by area."""
    tree, schema = tables.plan.tree, tables.plan.schema
    for invariant in tables.plan.invariants:
        areas, labels = tree.cut(invariant.level).tolist(), schema.query(invariant.query).labels
        answers = tables.known[str(invariant)].ravel().tolist()
        for (area, label), count in zip(product(areas, labels), answers, strict=True):
            yield str(invariant), invariant.level, *engine.area_codes(tree, area), label, count
