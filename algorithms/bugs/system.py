"""Registers the known bugs: first those that show on any counts, then all others with the databases that show them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from algorithms.bugs.budget import ForgottenLevelRDPC, HalfNoiseGDPC, NotebookGDPC, PublishedTwice, SquareRootShares
from algorithms.bugs.census import EditedToTruth, PublicSize, SilentInvariant
from algorithms.bugs.known import KNOWN
from algorithms.bugs.randomness import ForkedAreas, SeededByData
from algorithms.bugs.sums import LaplaceHoles
from algorithms.registry import System, as_it_is, counting, register
from audit.neighbors import NeighborPair

__all__ = ["register_bug"]

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


def register_bug(
    name: str, kind: type, build: Callable[..., Any], shown: Callable[[], NeighborPair], **options: Any
) -> None:
    """Register a known bug on databases that show it; the first line of the docstring of `kind` says what it is."""
    about = (kind.__doc__ or "").partition("\n")[0]
    described: dict[str, Any] = {"about": about, "group": "known bugs", "pair_notes": NOTES, **options}
    register(System(name=f"bug-{name}", build=build, pairs={"shown": shown}, **described))


for name, (kind, settings) in ON_COUNTS.items():
    register(counting(name, kind, group="known bugs", below=getattr(kind, "below", math.inf), **settings))

for name, bug in KNOWN.items():
    shown = partial(NeighborPair.declared, bug.x, bug.y, bug.relation, label=bug.event)
    below = getattr(bug.mechanism, "below", math.inf)
    register_bug(name, type(bug.mechanism), as_it_is(bug.mechanism), shown, below=below)
