"""Registers the known bugs: first bugs that show on any counts, then all others with databases that show them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from algorithms.bottom_up import PublishedTotals
from algorithms.bugs import budget, census, randomness, sums
from algorithms.bugs.known import KNOWN
from algorithms.bugs.systems import bottom_up, households, nist, ons, topdown
from algorithms.hierarchy import Hierarchy
from algorithms.ons.laws import PILOT_DELTA
from algorithms.ons.system import PAIRS
from algorithms.ons.tables import Table
from algorithms.phsafe.budget import Config, read_config
from algorithms.phsafe.measurement import tabulated
from algorithms.phsafe.neighbors.worst import worst_pair
from algorithms.population import halves, load_income
from algorithms.registry import REGISTERED, RUNS, System, as_it_is, counting, register
from audit.neighbors import NeighborPair

__all__: list[str] = []

NOTES = {"shown": "the databases that show the bug; a known bug without bug- in its name is the same on any counts"}
ON_COUNTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "gdpc-half-noise": (budget.HalfNoiseGDPC, {}),
    "gdpc-twice": (budget.PublishedTwice, {}),
    "gdpc-forked": (randomness.ForkedAreas, {}),
    "gdpc-seeded-by-data": (randomness.SeededByData, {}),
    "gdpc-exact-total": (census.SilentInvariant, {}),
    "gdpc-edited": (census.EditedToTruth, {}),
    "gdpc-public-size": (census.PublicSize, {}),
    "laplace-holes": (sums.LaplaceHoles, {}),
    "rdpc-forgotten-level": (budget.ForgottenLevelRDPC, {"output": "all"}),
    "rdpc-square-root-shares": (budget.SquareRootShares, {}),
    "gdpc-notebook": (budget.NotebookGDPC, {}),
}

FEW = 5_000  # runs for slow mechanisms whose bugs need few runs
HEAVIEST = 6.0  # largest weight of a record of a sample
SAMPLE = np.array([[0, 2.5], [0, 3.25], [1, 4.0], [2, 2.75]])  # cell and weight
COUNTS, PUBLISHED = [50, 30, 20], PublishedTotals(1, [80, np.nan])  # counts of 3 areas, and totals of their 2 states
TREE = Hierarchy.from_codes(["a", "a", "b"], ["1", "2", "1"])
RHO = 0.5  # rho of one household query: with that of 2020, a million runs show little
PH1, PH8 = ("PH1_num", "state_A-G"), ("PH8_denom", "state_A-G")
LEVELS = (("PH1_num", "usa_*"), ("PH1_num", "usa_A-G"))
OBSERVED = "state_of_previous_residence"  # the field whose values are read from the data
STAGES = ("measurements", "estimate", "rounded", "microdata")


def _topdown(kind: Any, *, epsilon: float = 1.0) -> Any:
    sound = REGISTERED["topdown"].mechanism(epsilon=epsilon)
    return kind(sound.schema, sound.tree, sound.budget, solver="batched")


def _moved() -> NeighborPair:
    return REGISTERED["topdown"].pair("replaced")


def _rare() -> NeighborPair:
    """Return a pair in which the only person in a cell of the histogram moves to another area."""
    counts = np.array(_moved().x)
    counts[:, -1] = 0
    counts[0, -1] = 1
    last = counts.shape[1] - 1
    return NeighborPair.move_people(counts, (0, last), (len(counts) - 1, last), label="the only person of a kind moves")


def _config() -> Config:
    us = read_config("us")
    raised = {table: dict.fromkeys(us.privacy_budget[table], RHO) for table, _ in (PH1, PH8)}
    return replace(us, privacy_budget={**us.privacy_budget, **raised})


def _phsafe(kind: Any, queries: Any) -> Any:
    return kind(_config(), queries)


def _households(query: tuple[str, str], model: Any, queries: Any) -> NeighborPair:
    return tabulated(worst_pair(*query, model), _config(), queries)


def _undeclared() -> bottom_up.UndeclaredTotals:
    return bottom_up.UndeclaredTotals(1.0, TREE, published=PUBLISHED)


def _observed() -> nist.DomainFromData:
    return nist.DomainFromData(REGISTERED["nist"].mechanism(), OBSERVED)


def _from_another_state() -> NeighborPair:
    schema, records = load_income()
    known, column = REGISTERED["nist"].pair().x, list(schema.attributes).index(OBSERVED)
    protected = halves(records)[1]
    new = protected[~np.isin(protected[:, column], known[:, column])][0]
    return NeighborPair.add_record(known, new, label="the only person from a state added")


def _classical() -> ons.ClassicalGaussian:
    sound = REGISTERED["ons-independent"].mechanism()
    options: dict[str, Any] = {"law": "gaussian", "delta": PILOT_DELTA, "rounded": False}
    return ons.ClassicalGaussian(sound.tree, sound.schema, 10.0, [Table(0, "total")], **options)


def _register(
    name: str, kind: type, build: Callable[..., Any], shown: Callable[[], NeighborPair], **options: Any
) -> None:
    """Register a known bug on databases that show it; the first docstring line of `kind` is its description."""
    about = (kind.__doc__ or "").partition("\n")[0]
    described: dict[str, Any] = {"about": about, "group": "known bugs", "pair_notes": NOTES, **options}
    register(System(name=f"bug-{name}", build=build, pairs={"shown": shown}, **described))


for name, (kind, settings) in ON_COUNTS.items():
    register(counting(name, kind, group="known bugs", below=getattr(kind, "below", math.inf), **settings))

for name, bug in KNOWN.items():
    shown = partial(NeighborPair.declared, bug.x, bug.y, bug.relation, label=bug.event)
    below = getattr(bug.mechanism, "below", math.inf)
    _register(name, type(bug.mechanism), as_it_is(bug.mechanism), shown, below=below)

for name, kind, pair, runs in (
    ("topdown-factor-two", topdown.MissingFactorTwo, _moved, RUNS),
    ("topdown-level-shares", topdown.WrongLevelShare, _moved, RUNS),
    ("topdown-pruned", topdown.PrunedByTruth, _rare, RUNS),
    ("topdown-silent-totals", topdown.SilentTotals, _moved, FEW),
):
    _register(name, kind, partial(_topdown, kind), pair, extra="census", stages=STAGES, runs=runs)

HOUSEHOLDS: tuple[tuple[str, type, tuple[str, str], Any, Any], ...] = (
    ("phsafe-two-tau", households.TwoTauStability, PH1, "API", (PH1,)),
    ("phsafe-units-twice", households.UnitCountedTwice, PH8, "DER", (PH8,)),
    ("phsafe-shared-noise", households.SharedNoise, LEVELS[1], "VAL", LEVELS),
)
for name, kind, query, model, queries in HOUSEHOLDS:
    shown = partial(_households, query, model, queries)
    _register(name, kind, partial(_phsafe, kind, queries), shown, extra="census")

_register("ons-classical-gaussian", ons.ClassicalGaussian, _classical, PAIRS["among"])
for name, kind, record, words in (
    ("bottom-up-weights", bottom_up.WeightsIgnored, [1, HEAVIEST], "a record of the largest weight added"),
    ("bottom-up-fractions", bottom_up.FractionalCounts, [1, 4.25], "a record of weight 4.25 added"),
):
    shown = partial(NeighborPair.add_record, SAMPLE, record, label=words)
    _register(name, kind, partial(kind, 1.0, HEAVIEST, (3,)), shown)
shown = partial(NeighborPair.add_people, COUNTS, 0, label="a person added where a total is published")
_register("bottom-up-undeclared-totals", bottom_up.UndeclaredTotals, _undeclared, shown)
_register("nist-domain", nist.DomainFromData, _observed, _from_another_state, runs=FEW)
