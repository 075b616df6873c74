"""Registers the benchmark mechanisms of the auditing literature, each with the pair on which it is tested."""

from __future__ import annotations

from functools import partial

from algorithms.benchmarks import benchmarks
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
