"""Registers the Census TopDown algorithm, on a small nation: of four cells an area, or by published settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from algorithms.hierarchy import Hierarchy
from algorithms.registry import RUNS, System, register
from algorithms.tables.commands import columns_of
from algorithms.tables.own import cell_name, counted, pairs_of
from algorithms.topdown import TopDown, preset
from algorithms.topdown.presets import PRESETS, Preset, settings_of
from audit.claims import Relation
from audit.neighbors import NeighborPair

__all__: list[str] = []

TREE = Hierarchy.regular(3, 2)
USUAL = "micro"
FEW = {"e2e-1940": 6_000, "pl94-2020": 100, "h1": 10_000}  # runs of a minute, solved area by area


def _people(name: str) -> NDArray[np.int64]:
    """Return 25 to 41 people in each of a few cells, up to two in each of many."""
    cells = PRESETS[name].schema.cells
    pattern = np.arange(TREE.n_leaves * cells).reshape(TREE.n_leaves, cells) * 5 % 17
    return 25 + pattern if cells < 10 else (16 - pattern) // 8


def _topdown(
    settings: str | Preset,
    tree: Hierarchy,
    levels: Sequence[str] | None,
    *,
    epsilon: float | None = None,
    rho: float | None = None,
    relation: Relation = "replace_one",
    shares: Sequence[Fraction] = (),
) -> TopDown:
    """Build TopDown by settings; `shares` of the levels, the outermost first, are others than theirs."""
    made = preset(settings, tree, levels=levels, relation=relation, epsilon=epsilon, rho=rho)
    return replace(made, budget=replace(made.budget, levels=shares)) if shares else made


def _replaced(name: str) -> NeighborPair:
    """Move a person to the other end of the nation; or of the area, where areas keep their totals."""
    people, kept = _people(name), "block" in PRESETS[name].invariants
    return NeighborPair.move_people(people, (0, 0), (0 if kept else TREE.n_leaves - 1, people.shape[1] - 1))


def _added(name: str) -> NeighborPair:
    return NeighborPair.add_people(_people(name), (0, 0))


def _own(
    name: str,
    data: str,
    *,
    areas: str,
    spec: str | None = None,
    geo: str | None = None,
    count: str | None = None,
    recode: str | None = None,
) -> System:
    """Describe TopDown with settings of a name, or of a file, on persons of the user's own."""
    settings = settings_of(name or USUAL * (spec is None), spec)
    levels = settings.levels_of(columns_of(areas))
    tree, histogram = counted(data, settings.schema, areas, geo, count, recode)
    pairs = pairs_of(histogram, [settings.schema.query(query).groups for query in settings.invariants.values()])
    if not pairs:
        raise ValueError(f"a person must be able to have another cell within the invariants of {settings.name}")
    together = settings.solver == "batched" and not (settings.invariants or settings.rounding)  # not area by area
    return replace(
        SYSTEMS[USUAL],
        build=partial(_topdown, settings, tree, levels),
        pairs={key: pairs[key] for key in ("replaced", "added") if key in pairs},
        cell_name=partial(cell_name, tree, settings.schema),
        runs=RUNS if together else FEW.get(settings.name, max(FEW.values())),
    )


def _system(name: str) -> System:
    """Describe TopDown with settings of a name. Where totals are invariant nobody is added."""
    pairs = {"replaced": partial(_replaced, name)}
    if not PRESETS[name].invariants:
        pairs["added"] = partial(_added, name)
    return System(
        name="topdown",
        about="The Census TopDown algorithm: noisy measurements of every level, made into tables that agree. "
        "Presets have the Bureau's settings, not its solver or its optimized areas.",
        build=partial(_topdown, name, TREE, None),
        pairs=pairs,
        cell_name=partial(cell_name, TREE, PRESETS[name].schema),
        stages=("measurements", "estimate", "rounded", "microdata"),
        runs=FEW.get(name, RUNS),
        own=partial(_own, name),
        commands={
            "release": "algorithms.topdown.command:release_topdown",
            "explore": "algorithms.topdown.command:explore_topdown",
        },
        sheet="algorithms.topdown.explorer.sheet:sheet",
        extra="census",
    )


SYSTEMS = {name: _system(name) for name in PRESETS}
register(replace(SYSTEMS[USUAL], own=partial(_own, ""), presets=SYSTEMS))
