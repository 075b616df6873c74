"""Registers the two methods of the pilot of the Office for National Statistics, on four small areas."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from algorithms.hierarchy import Hierarchy
from algorithms.ons import IndependentNoise, OnsTopDown
from algorithms.registry import System, register
from algorithms.schema import Schema
from audit.neighbors import NeighborPair

__all__: list[str] = []

TREE = Hierarchy.from_codes(["north", "north", "south", "south"], ["1", "2", "3", "4"])
SCHEMA = Schema({name: ("a", "b") for name in ("sex", "age", "marital", "month", "cause")})
PEOPLE = np.maximum(np.arange(TREE.n_leaves * SCHEMA.cells).reshape(TREE.n_leaves, -1) * 7 % 12 - 3, 0)
PAIRS = {
    "among": partial(NeighborPair.add_people, PEOPLE, (0, 1)),  # to a cell with people
    "alone": partial(NeighborPair.add_people, PEOPLE, (0, 0)),  # to an empty cell
}


def _independent(*, epsilon: float = 1.0) -> IndependentNoise:
    return IndependentNoise(TREE, SCHEMA, epsilon)


def _top_down(*, epsilon: float = 1.0, perturb_zeros: bool = True) -> OnsTopDown:
    return OnsTopDown(TREE, SCHEMA, epsilon, perturb_zeros=perturb_zeros)


ONS = System(
    name="ons",
    about="The pilot's top-down method: noisy counts of every level, made into synthetic people.",
    build=_top_down,
    pairs=PAIRS,
    stages=("measurements", "adjusted", "rounded", "tables"),
    commands={"release": "algorithms.ons.command:release_ons"},
)
register(ONS)
register(replace(ONS, name="ons-top-down", about="The same as ons, by the name of its method.", commands={}))
register(
    System(
        name="ons-independent",
        about="The pilot's first method: independent noise on each of fourteen tables.",
        build=_independent,
        pairs=PAIRS,
    )
)
