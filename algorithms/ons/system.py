"""Registers the two methods of the pilot of the Office for National Statistics, on four small areas, and their release.

A release contains ``table_1.csv``, ``table_2.csv``, ...; the top-down method adds ``microdata.csv``, one row a
synthetic person.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import ArrayLike, NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.noise import Rng
from algorithms.ons import IndependentNoise, OnsTopDown
from algorithms.ons.deaths import few_deaths
from algorithms.ons.tables import PILOT_TABLES, Domain, Table
from algorithms.ons.top_down import default_levels
from algorithms.registry import System, register
from algorithms.release import engine
from algorithms.release import options as given
from algorithms.release.intake import check_histogram, read_histogram
from algorithms.release.reading import reading_of
from algorithms.release.recoding import recoded
from algorithms.schema import Schema, read_specification
from audit.neighbors import NeighborPair

__all__ = ["release"]

Method = IndependentNoise | OnsTopDown
MOST = f"a release must have at most {engine.LARGEST_RELEASE:,} people"

FEW = few_deaths()
PAIRS = {
    "among": partial(NeighborPair.add_people, FEW.histogram, (0, 1)),  # adds a person to a cell with people
    "alone": partial(NeighborPair.add_people, FEW.histogram, (0, 0)),  # adds a person to an empty cell
}


def release(
    mechanism: Method,
    histogram: ArrayLike,
    *,
    areas: Sequence[str],
    tables: Sequence[Table] = (),
    out: str | os.PathLike[str] | None = None,
    rng: Rng = "secure",
    listed: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> engine.Published:
    """Run a method of the pilot once, and write it to the new or empty folder `out`.

    `tables` are counted from the synthetic people of the top-down method; independent noise has its own tables. `areas`
    are the names of the levels below the root; `listed` means that areas are from a public list.
    """
    names = engine.level_names(areas, mechanism.tree)
    check_method(mechanism, names, tables, rng)
    measured = mechanism.tables if isinstance(mechanism, IndependentNoise) else mechanism.levels
    spent = list(zip(_words(names, measured), measured, strict=True))
    with engine.publishing(out, rng) as publish:
        people = None
        if isinstance(mechanism, IndependentNoise):
            tables, counts = mechanism.tables, [table[0] for table in mechanism.release(histogram, 1, rng)]
        else:
            people = mechanism(histogram, 1, rng)[0]
            if people.sum() > engine.LARGEST_RELEASE:  # a limit for releases only
                raise ValueError(f"{MOST}, and noise made more: raise epsilon")
            _tell_rare(mechanism, names, np.asarray(histogram), people)
            counts = mechanism.domain.tabulate(people, tables)
        more = "" if people is None else f" and {int(people.sum()):,} synthetic people"
        publication = engine.Published(
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
                **engine.described(mechanism.tree, ("total", *names), mechanism.schema, listed=listed),
            },
            reading=reading,
        )
        return publish(publication)


def check_method(mechanism: Method, areas: Sequence[str], tables: Sequence[Table], rng: Rng) -> None:
    """Refuse bad settings before noise is drawn."""
    check_columns(areas, mechanism.schema)
    engine.check_secure(rng, "law", mechanism.law, "geometric")
    if isinstance(mechanism, IndependentNoise):
        if tables:
            raise ValueError(f"tables of independent noise are its own, got {tables[0]} besides")
        return
    if not mechanism.perturb_zeros:
        raise ValueError("a release must perturb zeros: without that it promises nothing")
    for table in tables:
        mechanism.domain.query(table)
    first = mechanism.noises[0]
    if math.sqrt(first.variance) > engine.LARGEST_RELEASE:
        raise ValueError(f"{MOST}, and noise of epsilon {first.epsilon:.3g} on their number makes more: raise epsilon")


def _words(areas: Sequence[str], tables: Sequence[Table]) -> list[str]:
    return [f"{('total', *areas)[table.level]}: {table.query}" for table in tables]


def _ledger(mechanism: Method, measured: Sequence[tuple[str, Table]], *, listed: bool) -> str:
    """Return the text of the ledger: the budget and noise of each table or level, and the promise of the release."""
    width = max(len(name) for name, _ in measured)
    lines = [f"{'':<{width}}  {'COUNTS':>9}  {'SHARE':>9}  {'EPSILON':>9}  {'VARIANCE':>10}"]  # variance of the noise
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
) -> dict[str, engine.TableFile]:
    """Return the files: tables of areas, attributes and groupings, and one row for each synthetic person."""
    tree, schema, files = mechanism.tree, mechanism.schema, {}
    for number, (table, noisy) in enumerate(zip(tables, counts, strict=True), 1):
        named = _levels(schema, table.query)
        groups = [engine.TableColumn(name, "level or group", codes=levels) for name, levels in named.items()]
        columns = [*engine.code_columns(areas[: table.level]), *groups, engine.COUNT]
        rows = engine.count_rows(tree, table.level, list(product(*named.values())), noisy)
        files[f"table_{number}.csv"] = engine.TableFile(columns, rows)
    if people is not None:
        columns = [*engine.code_columns(areas, noisy=True), *engine.attribute_columns(schema, noisy=True)]
        rows = engine.person_rows(tree, schema, tree.leaves.tolist(), people)
        files["microdata.csv"] = engine.TableFile(columns, rows)
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
    """Warn of attribute values and areas with far more or fewer synthetic people than people."""
    engine.tell_rare(engine.margins(mechanism.schema, histogram.sum(axis=0), people.sum(axis=0)), "synthetic")
    tree = mechanism.tree
    for level, name in enumerate(names, 1):
        nodes = range(*tree.level(level).indices(tree.n_nodes))
        old, new = (tree.totals(cells.sum(axis=1))[nodes.start : nodes.stop] for cells in (histogram, people))
        engine.tell_rare([(name, [" / ".join(tree.codes(node)) for node in nodes], old, new)], "synthetic")


def check_columns(areas: Sequence[str], schema: Schema) -> None:
    """Refuse names of areas that clash with other column names or with ``total``."""
    engine.check_distinct([*areas, *schema.attributes, *schema.groupings, "COUNT"])
    if reserved := [name for name in areas if name.lower() == "total"]:
        raise ValueError(f"areas must not be called total, which is the whole, got {reserved[0]!r}")


def _own(system: System, tree: Hierarchy, schema: Schema, areas: Sequence[str]) -> System:
    """Return the system of either method on the user's persons; independent noise has the pilot's tables."""
    check_columns(areas, schema)
    if not system.stages:
        return replace(system, build=partial(IndependentNoise, tree, schema, epsilon=1.0))
    levels, shares = default_levels(Domain(tree, schema))
    return replace(system, build=partial(OnsTopDown, tree, schema, epsilon=1.0, levels=levels, shares=shares))


@given.releasing
def release_ons(
    rng: Rng,
    data: given.Data,
    areas: given.Areas,
    spec: given.Spec,
    epsilon: given.Epsilon,
    method: Annotated[str, typer.Option(help="independent (noise on each table), or top-down (synthetic people).")],
    table: Annotated[
        list[str] | None,
        typer.Option(
            help="A table, as region:age*sex, or total:age for all areas; repeatable. Independent noise takes a share "
            "of the budget too: region:age*sex=1/4. Default: the pilot's fourteen, if the attributes are the pilot's."
        ),
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            help="For top-down: a level and its share, as total:total=1/10; repeatable, from the total to all "
            "attributes in the finest areas (detailed). Default: the pilot's."
        ),
    ] = None,
    geo: given.Geo = None,
    count: given.Count = None,
    recode: given.Recode = None,
    law: Annotated[
        str, typer.Option(help="geometric; laplace or gaussian for simulations, with --seed.")
    ] = "geometric",
    delta: Annotated[float, typer.Option(help="For gaussian: delta of all tables or levels together.")] = 0.0,
    nonnegative: Annotated[
        bool, typer.Option("--nonnegative", help="Raise negative counts of independent noise to 0: a bias upward.")
    ] = False,
    memory: given.Memory = "4GB",
) -> Callable[[Path], engine.Published]:
    """Release frequency tables by the two methods of the pilot of the Office for National Statistics."""
    schema, columns = read_specification(spec), given.columns_of(areas)
    check_histogram(1, schema)
    persons = recoded("data", data, recode, [*columns, *schema.attributes, count])
    try:
        settings: dict[str, Any] = {"schema": schema, "epsilon": epsilon, "law": law, "delta": delta}
        build, tables = _method(method, columns, table or [], level or [], nonnegative=nonnegative, **settings)
        check_method(build(Hierarchy.regular(1, len(columns))), columns, tables, rng)  # before data are read
    except ValueError as error:
        message = str(error)
        for number, name in enumerate(("total", *columns)):
            message = message.replace(f"level {number}: ", f"{name}: ")  # the user names levels, not numbers
        raise ValueError(message) from error

    def make(out: Path) -> engine.Published:
        tree, histogram = read_histogram(persons, schema, columns, count=count, places=geo, memory=memory)
        about: dict[str, Any] = {"listed": geo is not None, "reading": reading_of(persons, schema)}
        return release(build(tree), histogram, areas=columns, tables=tables, out=out, rng=rng, **about)

    return make


def _method(
    method: str, columns: list[str], table: list[str], level: list[str], *, nonnegative: bool, **settings: Any
) -> tuple[Callable[[Hierarchy], Method], Sequence[Table]]:
    """Return a function that builds the method for a tree, and the tables that are counted from its people."""
    tables, shares = _assigned("--table", table, columns)
    levels, parts = _assigned("--level", level, columns)
    piloted = {"sex", "age", "marital", "month", "cause"} <= set(settings["schema"].attributes) and len(columns) == 2
    if (any(shares) and not all(shares)) or not all(parts):
        raise ValueError("--table must have a share each, or none; --level must have one")
    if method == "independent":
        if levels:
            raise ValueError("--level goes with --method top-down")
        if not tables and not piloted:
            raise ValueError("--table is needed: the pilot's tables are of its attributes and two levels of areas")
        settings |= {"tables": tables or PILOT_TABLES, "shares": shares if any(shares) else ()}
        return partial(IndependentNoise, nonnegative=nonnegative, **settings), ()
    if method != "top-down":
        raise ValueError(f"--method must be one of independent, top-down, got {method!r}")
    if nonnegative or any(shares):
        raise ValueError("--nonnegative and shares of tables go with --method independent")

    def build(tree: Hierarchy) -> OnsTopDown:
        chosen = (levels, parts) if levels else default_levels(Domain(tree, settings["schema"]))
        return OnsTopDown(tree, levels=chosen[0], shares=chosen[1], **settings)

    return build, tables or PILOT_TABLES * piloted


def _assigned(option: str, texts: list[str], columns: list[str]) -> tuple[list[Table], list[str]]:
    """Split options AREA:QUERY or AREA:QUERY=SHARE into tables and shares."""
    parsed, shares = [], []
    for text in texts:
        place, _, rest = text.partition(":")
        query, equals, share = rest.partition("=")
        if equals and not share.strip():
            raise ValueError(f"{option} must have a share after =, or no =, got {text!r}")
        if place.strip() not in ("total", *columns) or not query.strip():
            where = ", ".join(("total", *columns))
            raise ValueError(f"{option} is written as AREA:QUERY, AREA one of {where}, got {text!r}")
        parsed.append(Table(("total", *columns).index(place.strip()), query.strip()))
        shares.append(share.strip())
    return parsed, shares


ONS = System(
    name="ons",
    about="The pilot's top-down method: noisy counts of every level, made into synthetic people.",
    build=partial(OnsTopDown, FEW.tree, FEW.schema, epsilon=1.0),
    pairs=PAIRS,
    cell_name=partial(given.cell_name, FEW.tree, FEW.schema),
    stages=("measurements", "adjusted", "rounded", "tables"),
    commands={"release": release_ons},
)
INDEPENDENT = System(
    name="ons-independent",
    about="The pilot's first method: independent noise on each of fourteen tables.",
    build=partial(IndependentNoise, FEW.tree, FEW.schema, epsilon=1.0),
    pairs=PAIRS,
    cell_name=ONS.cell_name,
)
NAMED = replace(ONS, name="ons-top-down", about="The same as ons, by the name of its method.", commands={})
for system in (ONS, NAMED, INDEPENDENT):
    register(replace(system, own=partial(given.on_persons, partial(_own, system))))
