"""Registers the known bugs: first those that show on any counts, then all others with the databases that show them."""

from __future__ import annotations

from functools import partial

from algorithms.bugs import known_bugs
from algorithms.bugs.arithmetic import LaplaceHoles
from algorithms.bugs.budget import ForgottenLevelRDPC, HalfNoiseGDPC, NotebookGDPC, PublishedTwice, SquareRootShares
from algorithms.bugs.census import EditedToTruth, PublicSize, SilentInvariant
from algorithms.bugs.randomness import ForkedAreas, SeededByData
from algorithms.registry import System, as_it_is, counting, register
from audit.neighbors import NeighborPair

__all__: list[str] = []

register(counting("gdpc-half-noise", HalfNoiseGDPC))
register(counting("gdpc-twice", PublishedTwice))
register(counting("gdpc-forked", ForkedAreas))
register(counting("gdpc-seeded-by-data", SeededByData))
register(counting("gdpc-exact-total", SilentInvariant))
register(counting("gdpc-edited", EditedToTruth))
register(counting("gdpc-public-size", PublicSize))
register(counting("laplace-holes", LaplaceHoles))
register(counting("rdpc-forgotten-level", ForgottenLevelRDPC, on_tree=True, output="all"))
register(counting("rdpc-square-root-shares", SquareRootShares, on_tree=True))
register(counting("gdpc-notebook", NotebookGDPC, below=1.0))

for name, bug in known_bugs().items():
    register(
        System(
            name=f"bug-{name}",
            about=(bug.mechanism.__doc__ or "").partition("\n")[0],
            build=as_it_is(bug.mechanism),
            pairs={"shown": partial(NeighborPair.declared, bug.x, bug.y, bug.relation, label=bug.event)},
        )
    )
