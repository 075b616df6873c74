"""Registers PHSafe on the pairs of households that are known to cost the most, alone or among the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

from algorithms.phsafe.budget import PRESETS, Settings, read_config
from algorithms.phsafe.measurement import PHSafe, joined_to, tabulated
from algorithms.phsafe.neighbors.pairs import Model
from algorithms.phsafe.neighbors.worst import joint_pair
from algorithms.phsafe.postprocessing.published import PublishedTables
from algorithms.phsafe.schema import LARGEST_FAMILY
from algorithms.phsafe.tabulation.derive import own_households
from algorithms.phsafe.tabulation.tabulate import tabulation
from algorithms.registry import System, register
from audit.neighbors import NeighborPair

__all__: list[str] = []

USUAL = "us"
FEW = 300  # runs of published tables
MODELS: tuple[Model, ...] = ("VAL", "DER", "API")
NOTES = {
    "VAL": "both databases are valid",
    "DER": "the model of the paper: the row of a unit may be any function of its members",
    "API": "neighbors as the code declares them: one row of persons and any two rows of units",
}


def _phsafe(
    settings: Settings, *, config: Settings = "", only: Sequence[tuple[str, str]] | None = None, times: float = 1.0
) -> PHSafe:
    """Build PHSafe by settings, with `times` as much of every budget."""
    chosen = read_config(config or settings)
    budgets = {table: {level: times * one for level, one in of.items()} for table, of in chosen.privacy_budget.items()}
    return PHSafe(replace(chosen, privacy_budget=budgets), only)


def _published(settings: Settings, *, config: Settings = "") -> PublishedTables:
    return PublishedTables(_phsafe(settings, config=config))


@cache
def _pair(settings: str, model: Model) -> NeighborPair:
    return tabulated(joint_pair(model), read_config(settings))


def _own(
    preset: str, data: str, *, units: str, geo: str, config: str = "", derive: bool = False, recode: str | None = None
) -> System:
    """Describe PHSafe on households of the user's own, to which those of a pair are added."""
    if preset and config:
        raise ValueError(f"preset and config exclude each other, got {preset} and {config}")
    chosen = read_config(config or preset or USUAL)
    with own_households((data, units, geo), recode, derive=derive) as (engine, frames):
        own = tabulation(*frames, config=chosen, engine=engine)
    if not own.states:
        raise ValueError(f"units must have a housing unit at least, got none in {units}")
    there = replace(chosen, state_filter=own.states)

    def pair(model: Model) -> NeighborPair:
        return joined_to(own, tabulated(joint_pair(model, config=there), there))

    models = MODELS if max(there.tau.values()) <= LARGEST_FAMILY - 2 else MODELS[1:]  # no valid family is larger
    pairs: dict[str, Callable[[], NeighborPair]] = {model: cache(partial(pair, model)) for model in models}
    return replace(_system(preset or USUAL), build=partial(_phsafe, chosen), pairs=pairs)


def _system(settings: str) -> System:
    """Describe PHSafe with the Bureau's settings of a name."""
    return System(
        name="phsafe",
        about="PHSafe: household tables of the 2020 Census, with noise on the cells of nine queries.",
        build=partial(_phsafe, settings),
        pairs={model: partial(_pair, settings, model) for model in MODELS},
        pair_notes=NOTES,
        no_budget="--set times=2 doubles its budgets, and --set config=FILE, with --data, sets each",
        commands={
            "release": "algorithms.phsafe.command:release_phsafe",
            "explore": "algorithms.phsafe.command:explore_phsafe",
        },
        sheet="algorithms.phsafe.explore:sheet",
        extra="census",
    )


SYSTEMS = {settings: replace(_system(settings), own=partial(_own, settings)) for settings in PRESETS}
register(replace(SYSTEMS[USUAL], own=partial(_own, ""), presets=SYSTEMS))
register(
    System(
        name="phsafe-published",
        about="PHSafe's tables PH1 to PH8 after post-processing: slow, and so few runs by default.",
        build=partial(_published, USUAL),
        pairs=SYSTEMS[USUAL].pairs,
        pair_notes=NOTES,
        runs=FEW,
        extra="census",
    )
)
