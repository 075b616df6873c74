"""What a release of the pilot's methods publishes: ``table_1.csv``, ``table_2.csv``, ..., and synthetic people.

The top-down method also has ``microdata.csv``, one row a synthetic person.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.noise import Rng
from algorithms.ons.independent import IndependentNoise
from algorithms.ons.tables import Domain, Table
from algorithms.ons.top_down import PILOT_SHARES, OnsTopDown
from algorithms.release.columns import (
    COUNT,
    TableColumn,
    TableFile,
    attribute_columns,
    check_distinct,
    code_columns,
    count_rows,
    person_rows,
)
from algorithms.release.engine import Published, described, level_names, margins, publishing, tell_rare
from algorithms.release.shares import Share
from algorithms.schema import Schema

__all__ = ["LARGEST_RELEASE", "check_columns", "default_levels", "release"]

Method = IndependentNoise | OnsTopDown
LARGEST_RELEASE = 400_000_000  # synthetic persons that are written: noise alone makes more where the budget is tiny


def release(
    mechanism: Method,
    histogram: ArrayLike,
    *,
    areas: Sequence[str],
    tables: Sequence[Table] = (),
    out: str | os.PathLike[str] | None = None,
    rng: Rng = "secure",
    listed: bool = False,
    reading: Mapping[str, Any] = MappingProxyType({}),
) -> Published:
    """Run a method of the pilot once, and write it to the folder `out`, which must not exist or be empty.

    Tables are counted from the synthetic people of the top-down method; independent noise has its own. Areas are the
    names of the levels below the whole, `listed` if they are from a public list.
    """
    names = level_names(areas, mechanism.tree)
    check_method(mechanism, names, tables, rng)
    measured = mechanism.tables if isinstance(mechanism, IndependentNoise) else mechanism.levels
    spent = list(zip(_words(names, measured), measured, strict=True))
    with publishing(out, rng) as publish:
        people = None
        if isinstance(mechanism, IndependentNoise):
            tables, counts = mechanism.tables, [table[0] for table in mechanism.release(histogram, 1, rng)]
        else:
            people = mechanism(histogram, 1, rng)[0]
            if people.sum() > LARGEST_RELEASE:  # how many is for releases only
                raise ValueError(
                    f"a release must have at most {LARGEST_RELEASE:,} people, and noise made more: raise epsilon"
                )
            _tell_rare(mechanism, names, np.asarray(histogram), people)
            counts = mechanism.domain.tabulate(people, tables)
        more = "" if people is None else f" and {int(people.sum()):,} synthetic people"
        return publish(
            Published(
                claim=mechanism.claim,
                files=_files(mechanism, names, tables, counts, people),
                ledger=_ledger(mechanism, spent, listed=listed),
                summary=f"{len(tables)} table{'s' * (len(tables) != 1)}{more}",
                about={
                    "method": "independent" if people is None else "top-down",
                    "law": mechanism.law,
                    "shares": {name: str(share) for (name, _), share in zip(spent, mechanism.shares, strict=True)},
                    "nonnegative": not isinstance(mechanism, IndependentNoise) or mechanism.nonnegative,
                    "tables": _words(names, tables),
                    **described(mechanism.tree, ("total", *names), mechanism.schema, listed=listed),
                },
                reading=reading,
            )
        )


def check_method(mechanism: Method, areas: Sequence[str], tables: Sequence[Table], rng: Rng) -> None:
    """Refuse what can be told before there is noise."""
    check_columns(areas, mechanism.schema)
    if isinstance(rng, str) and mechanism.law != "geometric":
        raise ValueError(
            f"secure noise must be of the geometric law, got {mechanism.law}: others can be simulated, with --seed"
        )
    if isinstance(mechanism, IndependentNoise):
        if tables:
            raise ValueError(f"tables of independent noise are its own, got {tables[0]} besides")
        return
    if not mechanism.perturb_zeros:
        raise ValueError("a release must perturb zeros: without that it promises nothing")
    for table in tables:
        mechanism.domain.query(table)
    first = mechanism.noises[0]
    if math.sqrt(first.variance) > LARGEST_RELEASE:
        raise ValueError(
            f"a release must have at most {LARGEST_RELEASE:,} people, and noise of epsilon {first.epsilon:.3g} on "
            "their number makes more: raise epsilon"
        )


def _words(areas: Sequence[str], tables: Sequence[Table]) -> list[str]:
    return [f"{('total', *areas)[table.level]}: {table.query}" for table in tables]


def _ledger(mechanism: Method, measured: Sequence[tuple[str, Table]], *, listed: bool) -> str:
    """Return what the release spends on what, and promises in the end, in words."""
    width = max(len(name) for name, _ in measured)
    lines = [f"{'':<{width}}  {'COUNTS':>9}  {'SHARE':>9}  {'EPSILON':>9}  {'VARIANCE':>10}"]  # of the noise
    for (name, table), share, noise in zip(measured, mechanism.shares, mechanism.noises, strict=True):
        cells = math.prod(mechanism.domain.shape(table))
        lines.append(f"{name:<{width}}  {cells:>9,}  {share!s:>9}  {noise.epsilon:>9.4g}  {noise.variance:>10.4g}")
    what = "tables" if isinstance(mechanism, IndependentNoise) else "levels"
    source = "read from the data. Which areas exist is taken as public, and no promise covers it"
    lines += [
        f"total of all {what}: {mechanism.claim}, {mechanism.law} noise, one person added or removed",
        f"areas: {'from a public list' if listed else source}",
    ]
    if isinstance(mechanism, OnsTopDown):
        lines.append("Synthetic people and their tables are made from the noisy counts, and spend nothing more.")
        lines.append("VARIANCE is of the noisy counts. People are fitted to them: rare groups are too large.")
    elif mechanism.nonnegative:
        lines.append("Negative counts were raised to 0: counts near 0 are too high on average.")
    return "\n".join(lines)


def _files(
    mechanism: Method,
    areas: Sequence[str],
    tables: Sequence[Table],
    counts: Sequence[NDArray[Any]],
    people: NDArray[np.int64] | None,
) -> dict[str, TableFile]:
    """Return tables of areas, attributes and groupings, and the areas and attributes of each synthetic person."""
    tree, schema, files = mechanism.tree, mechanism.schema, {}
    for number, (table, noisy) in enumerate(zip(tables, counts, strict=True), 1):
        named = _levels(schema, table.query)
        groups = (TableColumn(name, "level or group", codes=levels) for name, levels in named.items())
        rows = count_rows(tree, table.level, list(product(*named.values())), noisy)
        files[f"table_{number}.csv"] = TableFile([*code_columns(areas[: table.level]), *groups, COUNT], rows)
    if people is not None:
        columns = [*code_columns(areas, noisy=True), *attribute_columns(schema, noisy=True)]
        files["microdata.csv"] = TableFile(columns, person_rows(tree, schema, tree.leaves.tolist(), people))
    return files


def _levels(schema: Schema, query: str) -> dict[str, Sequence[str]]:
    """Return the levels of the attributes and groupings of a table, in the order of the schema."""
    names = [word.strip() for word in query.split("*")]
    columns: dict[str, Sequence[str]] = {}
    for attribute, levels in schema.attributes.items():
        if attribute in names or query == "detailed":
            columns[attribute] = levels
        for name, grouping in schema.groupings.items():
            if name in names and grouping.attribute == attribute:
                columns[name] = list(grouping.groups)
    return columns


def _tell_rare(mechanism: OnsTopDown, names: Sequence[str], histogram: NDArray[Any], people: NDArray[Any]) -> None:
    """Name levels of attributes, and areas, of which there are far more or fewer synthetic people than people."""
    tell_rare(margins(mechanism.schema, histogram.sum(axis=0), people.sum(axis=0)), "synthetic")
    tree = mechanism.tree
    for level, name in enumerate(names, 1):
        nodes = range(*tree.level(level).indices(tree.n_nodes))
        old, new = (tree.totals(cells.sum(axis=1))[nodes.start : nodes.stop] for cells in (histogram, people))
        tell_rare([(name, [" / ".join(tree.codes(node)) for node in nodes], old, new)], "synthetic")


def check_columns(areas: Sequence[str], schema: Schema) -> None:
    """Refuse names of areas that a file could not have beside the others."""
    check_distinct([*areas, *schema.attributes, *schema.groupings, "COUNT"])
    if reserved := [name for name in areas if name.lower() == "total"]:
        raise ValueError(f"areas must not be called total, which is the whole, got {reserved[0]!r}")


def default_levels(domain: Domain) -> tuple[tuple[Table, ...], tuple[Share, ...]]:
    """Return levels for any depth of areas, and shares of the budget by the pilot's rule (its section 5)."""
    levels = (Table(0, "total"), *(Table(level, "detailed") for level in range(domain.tree.depth + 1)))
    if domain.tree.depth == 2:
        return levels, PILOT_SHARES
    roots = [Fraction(round(1000 * math.sqrt(math.prod(domain.shape(level))))) for level in levels[1:]]
    rest = [Fraction(99, 100) * root / sum(roots) for root in roots]
    return levels, (Fraction(1, 100), *rest)
