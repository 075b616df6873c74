"""Registers the known bugs: first those that show on any counts, then all others with the databases that show them."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from algorithms.bugs.budget import ForgottenLevelRDPC, HalfNoiseGDPC, NotebookGDPC, PublishedTwice, SquareRootShares
from algorithms.bugs.census import EditedToTruth, PublicSize, SilentInvariant
from algorithms.bugs.known import KNOWN
from algorithms.bugs.randomness import ForkedAreas, SeededByData
from algorithms.bugs.sums import LaplaceHoles
from algorithms.registry import System, as_it_is, counting, register
from audit.neighbors import NeighborPair

__all__ = ["NOTES"]

NOTES = {"shown": "the databases that show the bug; a known bug without bug- in its name is the same on any counts"}
ON_COUNTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "gdpc-half-noise": (HalfNoiseGDPC, {}),
    "gdpc-twice": (PublishedTwice, {}),
    "gdpc-forked": (ForkedAreas, {}),
    "gdpc-seeded-by-data": (SeededByData, {}),
    "gdpc-exact-total": (SilentInvariant, {}),
    "gdpc-edited": (EditedToTruth, {}),
    "gdpc-public-size": (PublicSize, {}),
    "laplace-holes": (LaplaceHoles, {}),
    "rdpc-forgotten-level": (ForgottenLevelRDPC, {"output": "all"}),
    "rdpc-square-root-shares": (SquareRootShares, {}),
    "gdpc-notebook": (NotebookGDPC, {}),
}

for name, (kind, settings) in ON_COUNTS.items():
    register(counting(name, kind, group="known bugs", below=getattr(kind, "below", math.inf), **settings))

for name, bug in KNOWN.items():
    register(
        System(
            name=f"bug-{name}",
            group="known bugs",
            about=(bug.mechanism.__doc__ or "").partition("\n")[0],
            build=as_it_is(bug.mechanism),
            below=getattr(bug.mechanism, "below", math.inf),
            pairs={"shown": partial(NeighborPair.declared, bug.x, bug.y, bug.relation, label=bug.event)},
            pair_notes=NOTES,
        )
    )
