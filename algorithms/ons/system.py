"""Registers the two methods of the pilot of the Office for National Statistics, on four small areas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from algorithms.hierarchy import Hierarchy
from algorithms.ons import IndependentNoise, OnsTopDown
from algorithms.ons.deaths import few_deaths
from algorithms.ons.release import check_columns, default_levels
from algorithms.ons.tables import Domain
from algorithms.registry import System, register
from algorithms.schema import Schema
from algorithms.tables.own import cell_name, on_persons
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


ONS = System(
    name="ons",
    about="The pilot's top-down method: noisy counts of every level, made into synthetic people.",
    build=partial(OnsTopDown, FEW.tree, FEW.schema, epsilon=1.0),
    pairs=PAIRS,
    cell_name=partial(cell_name, FEW.tree, FEW.schema),
    stages=("measurements", "adjusted", "rounded", "tables"),
    commands={"release": "algorithms.ons.command:release_ons"},
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
