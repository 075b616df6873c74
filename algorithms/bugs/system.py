"""Registers the known bugs: first those that show on any counts, then all others with the databases that show them."""

from __future__ import annotations

from functools import partial

from algorithms.bugs import known_bugs
from algorithms.bugs.arithmetic import LaplaceHoles
from algorithms.bugs.budget import ForgottenLevelRDPC, HalfNoiseGDPC, NotebookGDPC, PublishedTwice, SquareRootShares
from algorithms.bugs.census import EditedToTruth, PublicSize, SilentInvariant
from algorithms.bugs.randomness import ForkedAreas, SeededByData
from algorithms.registry import Group, System, as_it_is, counting, register
from audit.neighbors import NeighborPair

__all__: list[str] = []

BUGS: Group = "known bugs"

register(counting("gdpc-half-noise", HalfNoiseGDPC, group=BUGS))
register(counting("gdpc-twice", PublishedTwice, group=BUGS))
register(counting("gdpc-forked", ForkedAreas, group=BUGS))
register(counting("gdpc-seeded-by-data", SeededByData, group=BUGS))
register(counting("gdpc-exact-total", SilentInvariant, group=BUGS))
register(counting("gdpc-edited", EditedToTruth, group=BUGS))
register(counting("gdpc-public-size", PublicSize, group=BUGS))
register(counting("laplace-holes", LaplaceHoles, group=BUGS))
register(counting("rdpc-forgotten-level", ForgottenLevelRDPC, on_tree=True, output="all", group=BUGS))
register(counting("rdpc-square-root-shares", SquareRootShares, on_tree=True, group=BUGS))
register(counting("gdpc-notebook", NotebookGDPC, below=1.0, group=BUGS))

for name, bug in known_bugs().items():
    register(
        System(
            name=f"bug-{name}",
            group=BUGS,
            about=(bug.mechanism.__doc__ or "").partition("\n")[0],
            build=as_it_is(bug.mechanism),
            pairs={"shown": partial(NeighborPair.declared, bug.x, bug.y, bug.relation, label=bug.event)},
        )
    )
