"""Registers the benchmark mechanisms of the auditing literature, each with the pair on which it is tested."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from algorithms import benchmarks
from algorithms.registry import System, register
from audit.neighbors import NeighborPair

__all__: list[str] = []

known = cache(benchmarks.benchmarks)


def _mechanism(name: str) -> Any:
    return known()[name].mechanism


def _pair(name: str) -> NeighborPair:
    return NeighborPair.declared(known()[name].x, known()[name].y, "add_remove", label=known()[name].note)


KINDS = [getattr(benchmarks, name) for name in benchmarks.__all__ if name not in ("Benchmark", "benchmarks")]

for kind in KINDS:
    register(
        System(
            name=kind.__name__,
            about=(kind.__doc__ or "").partition("\n")[0],
            build=partial(_mechanism, kind.__name__),
            pairs={"literature": partial(_pair, kind.__name__)},
        )
    )
