"""Registers the benchmark mechanisms of the auditing literature, each with its pair, and the offices' cell keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from algorithms.benchmarks import benchmarks
from algorithms.benchmarks.cell_key import CellKey
from algorithms.registry import System, as_it_is, register
from audit.neighbors import NeighborPair

__all__: list[str] = []


def _register(name: str, mechanism: Any, pairs: dict[str, Callable[[], NeighborPair]]) -> None:
    about = (mechanism.__doc__ or "").partition("\n")[0]
    register(System(name=name, group="benchmarks", about=about, build=as_it_is(mechanism), pairs=pairs))


for name, known in benchmarks().items():
    shown = partial(NeighborPair.declared, known.x, known.y, "add_remove", label=known.note)
    _register(name, known.mechanism, {"literature": shown})
places = {"alone": 0, "among": 2}
_register("CellKey", CellKey(), {pair: partial(NeighborPair.add_people, [0, 1, 20], at) for pair, at in places.items()})
