"""Registers the benchmark mechanisms of the auditing literature, each with its pair, and the offices' cell keys."""

from __future__ import annotations

from functools import partial

from algorithms.benchmarks import benchmarks
from algorithms.benchmarks.cell_key import CellKey
from algorithms.registry import System, as_it_is, register
from audit.neighbors import NeighborPair

__all__: list[str] = []

for name, known in benchmarks().items():
    register(
        System(
            name=name,
            group="benchmarks",
            about=(known.mechanism.__doc__ or "").partition("\n")[0],
            build=as_it_is(known.mechanism),
            pairs={"literature": partial(NeighborPair.declared, known.x, known.y, "add_remove", label=known.note)},
        )
    )

COUNTS = [0, 1, 20]
register(
    System(
        name="CellKey",
        group="benchmarks",
        about=(CellKey.__doc__ or "").partition("\n")[0],
        build=as_it_is(CellKey()),
        pairs={
            "alone": partial(NeighborPair.add_people, COUNTS, 0),
            "among": partial(NeighborPair.add_people, COUNTS, 2),
        },
    )
)
