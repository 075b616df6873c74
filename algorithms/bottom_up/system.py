"""Registers the bottom-up mechanism, with either sampler, and its release: noisy cells, and tables that add them up.

A release contains ``level_0.csv``, ``level_1.csv``, ... with every area of the level (0 is the root), and a column for
each level down to that one. Noisy counts may be negative.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import ArrayLike, NDArray

from algorithms.bottom_up import BottomUp, WeightedBottomUp
from algorithms.bottom_up.calibration import agreement, check_totals, whole_cells
from algorithms.bottom_up.intake import read_published, read_units
from algorithms.bottom_up.inverse_cdf import InverseCdf
from algorithms.bottom_up.mechanism import MOST_ATTRIBUTES, Noise
from algorithms.bottom_up.weighted import UNITS, round_units
from algorithms.hierarchy import Hierarchy
from algorithms.noise import Rng, TwoTailedGeometric
from algorithms.registry import System, counting, register
from algorithms.release import engine
from algorithms.release import options as given
from algorithms.release.intake import read_histogram
from algorithms.release.reading import reading_of
from algorithms.release.recoding import recoded
from algorithms.schema import CROSS, DETAILED, TOTAL, Schema, read_specification

__all__ = ["LARGEST_RELEASE", "release"]

Mechanism = BottomUp | WeightedBottomUp
LARGEST_RELEASE = 50_000_000
"""Largest number of rows that a release writes: a few gigabytes."""


def _files(
    mechanism: Mechanism, tree: Hierarchy, schema: Schema, areas: Sequence[str], cells: NDArray[Any]
) -> dict[str, engine.TableFile]:
    """Return the description of each level's file: area columns down to the level, then the same columns at each."""
    count = engine.COUNT
    if isinstance(mechanism, WeightedBottomUp):
        count = replace(count, meaning="weighted number of people, with noise", unit="people")
    attributes = engine.attribute_columns(schema, more="; empty where all values are added up")
    kept = replace(count, meaning=f"{count.meaning}; of all levels of all attributes, as published before")
    totals, margins = mechanism.published, mechanism.of_counts.margins(cells)

    def rows(level: int) -> Iterator[Sequence[Any]]:
        for query, table in margins.items():
            names = {DETAILED: list(schema.attributes), TOTAL: []}.get(query, query.split(CROSS))
            groups = product(*(words if name in names else ("",) for name, words in schema.attributes.items()))
            yield from engine.count_rows(tree, level, list(groups), table[tree.level(level)])

    files = {}
    for level in range(tree.depth + 1):
        last = count if totals is None or level > totals.level else kept
        columns = (*engine.code_columns(areas[:level]), *attributes, last)
        files[f"level_{level}.csv"] = engine.TableFile(columns, rows(level))
    return files


def _ledger(mechanism: Mechanism, tree: Hierarchy, schema: Schema, areas: Sequence[str], *, listed: bool) -> str:
    """Return the text of the ledger: the promised loss and the error of the counts."""
    law = mechanism.of_counts.law
    sampler = "exact" if not isinstance(law, InverseCdf) else f"inverse distribution function, {law.bits} bits"
    deviation = math.sqrt(TwoTailedGeometric(law.epsilon).variance)
    lines = [
        f"{'promise':<24} {mechanism.claim}: {_covered(mechanism, tree)}",
        f"{'sensitivity':<24} {mechanism.sensitivity:,} in one of {tree.n_leaves * schema.cells:,} cells",
        f"{'noise of a cell':<24} two-tailed geometric, epsilon {law.epsilon:g} a person ({sampler})",
        "",
        f"{'level':<24} {'areas':>9} {'deviation of a cell':>20} {'of the total':>14}",
    ]
    leaves = tree.totals(np.ones(tree.n_leaves, np.int64))
    for j, name in enumerate(("root", *areas)):
        most = int(leaves[tree.level(j)].max())
        cell, total = deviation * math.sqrt(most), deviation * math.sqrt(most * schema.cells)
        lines.append(f"{name:<24} {tree.level(j).stop - tree.level(j).start:>9,} {cell:>20.4g} {total:>14.4g}")
    return "\n".join([*lines, "", *_warnings(mechanism, listed=listed)])


def _covered(mechanism: Mechanism, tree: Hierarchy) -> str:
    unit = "person" if isinstance(mechanism, BottomUp) else f"record of weight {mechanism.largest_weight:g} or less"
    totals = mechanism.published
    if totals is None:
        return f"one {unit} added or removed"
    if not totals.everywhere(tree):
        return f"one {unit} added or removed, relative to the published totals"
    return (
        "covers nobody who is added or removed, for every area has a published total; "
        f"one {unit} moved within an area costs up to {2 * mechanism.epsilon:g}"
    )


def _warnings(mechanism: Mechanism, *, listed: bool) -> list[str]:
    law, warnings = mechanism.of_counts.law, []
    if isinstance(law, InverseCdf):
        probability = "" if not law.tabulated else f" with probability {law.exact_loss(1).infinite_mass:.1e}"
        warnings.append(
            f"The sampler does not keep the promise: no noise beyond {law.reach:,} occurs, so that a count "
            f"tells{probability} that a person is there for certain."
        )
    if isinstance(mechanism, WeightedBottomUp):
        warnings.append("Weighted counts were rounded to whole people before noise.")
    if mechanism.published is not None:
        warnings.append(
            "The promise is relative to the published totals: it covers no record whose presence changes one. "
            "Counts were calibrated to them and rounded to whole people, which the deviations above leave out."
        )
    if not listed:
        warnings.append("Which areas there are was read from the data, and is taken as public.")
    return warnings or ["The promise is relative to no invariant: no count is published exactly."]


def check_size(areas: int, schema: Schema) -> None:
    """Refuse, before data are read, more attributes or rows than a release can have."""
    if (number := len(schema.shape)) > MOST_ATTRIBUTES:
        raise ValueError(f"a release must be of at most {MOST_ATTRIBUTES} attributes, got {number}")
    if (rows := areas * math.prod(side + 1 for side in schema.shape)) > LARGEST_RELEASE:
        raise ValueError(f"a release must have at most {LARGEST_RELEASE:,} rows, got {rows:,} or more")


def release(
    mechanism: Mechanism,
    counts: ArrayLike,
    *,
    out: str | os.PathLike[str] | None = None,
    rng: Rng = "secure",
    areas: Sequence[str] | None = None,
    listed: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> engine.Published:
    """Run the bottom-up mechanism once, publish all its tables, and write them to the new or empty folder `out`.

    Counts are people, shape (leaves, cells), of a weighted sample rounded as `mechanism.counts` does. Areas are the
    levels below the root, `listed` if they are from a public list. The noisy cells are whole numbers.
    """
    schema, tree, totals, of_counts = mechanism.schema, mechanism.tree, mechanism.published, mechanism.of_counts
    if schema is None or tree is None:
        raise ValueError("a release needs a tree and a schema, so that its tables have names")
    names = engine.level_names(areas, tree)
    check_size(tree.n_nodes, schema)
    engine.check_distinct((*names, *schema.attributes, "COUNT"))
    engine.check_secure(rng, "noise", mechanism.noise, "exact")  # noise of the other sampler is bounded
    exact = of_counts.counts(counts)
    if totals is not None:
        check_totals(totals, tree, exact)
    with engine.publishing(out, rng) as publish:
        cells = of_counts(exact, 1, rng)[0]
        if totals is not None:
            chance = np.random.default_rng() if isinstance(rng, str) else rng  # only rounds noisy cells
            cells = whole_cells(cells, totals, agreement(totals, tree, exact), chance)
            engine.tell_rare(engine.margins(schema, exact.sum(axis=0), cells.sum(axis=0)), "in the tables")
        rows = tree.n_nodes * math.prod(side + 1 for side in schema.shape)
        relative = {} if totals is None else {"relative_to": "published totals"}
        publication = engine.Published(
            claim=mechanism.claim,
            files=_files(mechanism, tree, schema, names, cells),
            ledger=_ledger(mechanism, tree, schema, names, listed=listed),
            summary=f"\n{rows:,} rows in {tree.depth + 1} levels",
            about={
                "promise": mechanism.claim.to_dict() | relative,
                "sampler": mechanism.noise,
                "sensitivity": mechanism.sensitivity,
                "noise_epsilon": of_counts.law.epsilon,
                "largest_weight": None if isinstance(mechanism, BottomUp) else float(mechanism.largest_weight),
                "published_totals": totals and {"level": totals.level, "tolerance": totals.tolerance},
                **engine.described(tree, ("root", *names), schema, listed=listed),
            },
            reading=reading,
            drawn=cells,
        )
        return publish(publication)


@given.releasing
def release_bottom_up(
    rng: Rng,
    data: given.Data,
    areas: given.Areas,
    spec: given.Spec,
    epsilon: given.Epsilon,
    geo: given.Geo = None,
    count: given.Count = None,
    recode: given.Recode = None,
    weight: Annotated[str | None, typer.Option(help="For a sample: column of the weights.")] = None,
    largest_weight: Annotated[
        float | None, typer.Option(help="Largest weight that the design allows: public, never taken from the data.")
    ] = None,
    totals: Annotated[
        Path | None,
        typer.Option(
            help="Published totals: columns of areas down to one level, and count. A file with count alone has the "
            "total of all areas. Noisy counts are calibrated to them. A total that the data do not have is refused. No "
            "promise covers either."
        ),
    ] = None,
    tolerance: Annotated[int, typer.Option(help="People by which the data may differ from a published total.")] = 0,
    noise: Annotated[
        str, typer.Option(help="exact, or inverse-cdf with --seed: the authors' sampler, which breaks the promise.")
    ] = "exact",
    memory: given.Memory = "4GB",
) -> Callable[[Path], engine.Published]:
    """Release all marginals of a histogram with two-tailed geometric noise on every cell."""
    if (weight is None) != (largest_weight is None):
        raise ValueError("--weight and --largest-weight go together")
    if weight is not None and count is not None:
        raise ValueError("--weight goes without --count: a record of a sample is one person")
    if tolerance and totals is None:
        raise ValueError("--tolerance goes with --totals")
    columns, schema = given.columns_of(areas), read_specification(spec)
    check_size(1, schema)
    engine.check_distinct((*columns, *schema.attributes, "COUNT"))
    settings: dict[str, Any] = {"noise": noise.replace("-", "_")}

    def build(shape: tuple[int, ...], **known: Any) -> Mechanism:
        if largest_weight is None:
            return BottomUp(epsilon, **settings, **known)
        return WeightedBottomUp(epsilon, largest_weight, shape, **settings, **known)

    engine.check_secure(rng, "noise", build((1,)).noise, "exact")  # refuses bad settings before data are read
    persons = recoded("data", data, recode, [*columns, *schema.attributes, count, weight])

    def make(out: Path) -> engine.Published:
        read: dict[str, Any] = {"places": geo, "memory": memory}
        if weight is None or largest_weight is None:
            tree, counts = read_histogram(persons, schema, columns, count=count, **read)
        else:
            tree, units = read_units(persons, schema, columns, weight=weight, largest=largest_weight, **read)
            counts = round_units(units)
            engine.tell(f"weights add up to {units.sum() / UNITS:.3f} people, and rounded counts to {counts.sum()}")
        published = None if totals is None else read_published(totals, columns, tree, tolerance=tolerance)
        about: dict[str, Any] = {"listed": geo is not None, "reading": reading_of(persons, schema)}
        mechanism = build(counts.shape, tree=tree, schema=schema, published=published)
        return release(mechanism, counts, out=out, rng=rng, areas=columns, **about)

    return make


def _own(system: System, noise: Noise, tree: Hierarchy, schema: Schema, _: Sequence[str]) -> System:
    build = partial(BottomUp, epsilon=1.0, tree=tree, schema=schema, noise=noise)
    return replace(system, build=build, of_counts=False)


EXACT = counting("bottom-up", BottomUp, commands={"release": release_bottom_up})
INVERSE = counting("bottom-up-inverse-cdf", BottomUp, noise="inverse_cdf")
register(replace(EXACT, own=partial(given.on_persons, partial(_own, EXACT, "exact"))))
register(replace(INVERSE, own=partial(given.on_persons, partial(_own, INVERSE, "inverse_cdf"))))
