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
from algorithms.tables.own import on_persons
from audit.neighbors import NeighborPair

__all__: list[str] = []

FEW = few_deaths()
PAIRS = {
    "among": partial(NeighborPair.add_people, FEW.histogram, (0, 1)),  # to a cell with people
    "alone": partial(NeighborPair.add_people, FEW.histogram, (0, 0)),  # to an empty cell
}


def _independent(*, epsilon: float = 1.0) -> IndependentNoise:
    return IndependentNoise(FEW.tree, FEW.schema, epsilon)


def _top_down(*, epsilon: float = 1.0, perturb_zeros: bool = True) -> OnsTopDown:
    return OnsTopDown(FEW.tree, FEW.schema, epsilon, perturb_zeros=perturb_zeros)


def _own(system: System, tree: Hierarchy, schema: Schema, areas: Sequence[str]) -> System:
    """Describe either method on persons of the user's own; the tables of independent noise are the pilot's."""
    check_columns(areas, schema)

    def independent(*, epsilon: float = 1.0) -> IndependentNoise:
        return IndependentNoise(tree, schema, epsilon)

    def top_down(*, epsilon: float = 1.0, perturb_zeros: bool = True) -> OnsTopDown:
        return OnsTopDown(tree, schema, epsilon, *default_levels(Domain(tree, schema)), perturb_zeros=perturb_zeros)

    return replace(system, build=top_down if system.stages else independent)


ONS = System(
    name="ons",
    about="The pilot's top-down method: noisy counts of every level, made into synthetic people.",
    build=_top_down,
    pairs=PAIRS,
    stages=("measurements", "adjusted", "rounded", "tables"),
    commands={"release": "algorithms.ons.command:release_ons"},
)
INDEPENDENT = System(
    name="ons-independent",
    about="The pilot's first method: independent noise on each of fourteen tables.",
    build=_independent,
    pairs=PAIRS,
)
NAMED = replace(ONS, name="ons-top-down", about="The same as ons, by the name of its method.", commands={})
for system in (ONS, NAMED, INDEPENDENT):
    register(replace(system, own=partial(on_persons, partial(_own, system))))
