"""Registers the two methods of the pilot of the Office for National Statistics, on four small areas; their release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from algorithms.hierarchy import Hierarchy
from algorithms.noise import Rng
from algorithms.ons import IndependentNoise, OnsTopDown
from algorithms.ons.deaths import few_deaths
from algorithms.ons.release import check_columns, check_method, default_levels, release
from algorithms.ons.tables import PILOT_TABLES, Domain, Table
from algorithms.registry import System, register
from algorithms.release import options as given
from algorithms.release.engine import Published
from algorithms.release.intake import check_histogram, read_histogram
from algorithms.release.own import cell_name, on_persons
from algorithms.release.reading import reading_of
from algorithms.release.recoding import recoded
from algorithms.schema import Schema, read_specification
from audit.neighbors import NeighborPair

__all__: list[str] = []

FEW = few_deaths()
PAIRS = {
    "among": partial(NeighborPair.add_people, FEW.histogram, (0, 1)),  # to a cell with people
    "alone": partial(NeighborPair.add_people, FEW.histogram, (0, 0)),  # to an empty cell
}


def _own(system: System, tree: Hierarchy, schema: Schema, areas: Sequence[str]) -> System:
    """Describe either method on persons of the user's own; the tables of independent noise are the pilot's."""
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
) -> Callable[[Path], Published]:
    """Release frequency tables by the two methods of the pilot of the Office for National Statistics."""
    schema, columns = read_specification(spec), given.columns_of(areas)
    check_columns(columns, schema)
    check_histogram(1, schema)
    persons = recoded("data", data, recode, [*columns, *schema.attributes, count])
    try:
        settings: dict[str, Any] = {"schema": schema, "epsilon": epsilon, "law": law, "delta": delta}
        build, tables = _method(method, columns, table or [], level or [], nonnegative=nonnegative, **settings)
        check_method(build(Hierarchy.regular(1, len(columns))), columns, tables, rng)  # before data are read
    except ValueError as error:
        raise ValueError(_in_words(str(error), columns)) from error

    def make(out: Path) -> Published:
        tree, histogram = read_histogram(persons, schema, columns, count=count, places=geo, memory=memory)
        about: dict[str, Any] = {"listed": geo is not None, "reading": reading_of(persons, schema)}
        return release(build(tree), histogram, areas=columns, tables=tables, out=out, rng=rng, **about)

    return make


def _method(
    method: str, columns: list[str], table: list[str], level: list[str], *, nonnegative: bool, **settings: Any
) -> tuple[Callable[[Hierarchy], IndependentNoise | OnsTopDown], Sequence[Table]]:
    """Return what builds a method for the areas that there are, and the tables that are counted from its people."""
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
        settings |= {
            "tables": tables or PILOT_TABLES,
            "shares": shares if any(shares) else (),
            "nonnegative": nonnegative,
        }
        return partial(IndependentNoise, **settings), ()
    if method != "top-down":
        raise ValueError(f"--method must be one of independent, top-down, got {method!r}")
    if nonnegative or any(shares):
        raise ValueError("--nonnegative and shares of tables go with --method independent")
    return partial(_top_down, levels=levels, shares=parts, **settings), tables or PILOT_TABLES * piloted


def _top_down(
    tree: Hierarchy, schema: Schema, *, levels: Sequence[Table], shares: Sequence[str], epsilon: float, **options: Any
) -> OnsTopDown:
    """Build the top-down method with some levels, or the pilot's."""
    chosen = (levels, shares) if levels else default_levels(Domain(tree, schema))
    return OnsTopDown(tree, schema, epsilon, *chosen, **options)


def _in_words(message: str, columns: list[str]) -> str:
    """Name the levels of tables as the user does: ``region: sex`` for ``level 1: sex``."""
    for number, name in enumerate(("total", *columns)):
        message = message.replace(f"level {number}: ", f"{name}: ")
    return message


def _assigned(option: str, texts: list[str], columns: list[str]) -> tuple[list[Table], list[str]]:
    """Split AREA:QUERY or AREA:QUERY=SHARE."""
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
    cell_name=partial(cell_name, FEW.tree, FEW.schema),
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
    register(replace(system, own=partial(on_persons, partial(_own, system))))
