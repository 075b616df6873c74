"""Registers the Census TopDown algorithm, on a small nation of four cells an area."""

from __future__ import annotations

import numpy as np

from algorithms.hierarchy import Hierarchy
from algorithms.registry import System, register
from algorithms.topdown import TopDown, preset
from audit.claims import Relation
from audit.neighbors import NeighborPair

__all__: list[str] = []

TREE = Hierarchy.regular(3, 2)
PEOPLE = 25 + np.arange(TREE.n_leaves * 4).reshape(TREE.n_leaves, 4) * 5 % 17


def _topdown(*, epsilon: float | None = None, rho: float | None = None, relation: Relation = "replace_one") -> TopDown:
    budget = {"epsilon": 1.0} if epsilon is None and rho is None else {"epsilon": epsilon, "rho": rho}
    return preset("micro", TREE, relation=relation, **budget)


def _replaced() -> NeighborPair:
    return NeighborPair.move_people(PEOPLE, (0, 0), (TREE.n_leaves - 1, 3))


def _added() -> NeighborPair:
    return NeighborPair.add_people(PEOPLE, (0, 0))


register(
    System(
        name="topdown",
        about="The Census TopDown algorithm: noisy measurements of every level, made into tables that agree.",
        build=_topdown,
        pairs={"replaced": _replaced, "added": _added},
        stages=("measurements", "estimate", "rounded", "microdata"),
        commands={"release": "algorithms.topdown.command:release_topdown"},
        extra="census",
    )
)
