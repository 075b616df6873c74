"""Registers PHSafe on the pairs of households that are known to cost the most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from algorithms.phsafe.budget import Settings, read_config
from algorithms.phsafe.measurement import PHSafe, tabulated
from algorithms.phsafe.neighbors.pairs import Model
from algorithms.phsafe.neighbors.worst import joint_pair
from algorithms.registry import System, register
from audit.neighbors import NeighborPair

__all__: list[str] = []

MODELS: tuple[Model, ...] = ("VAL", "DER", "API")


def _phsafe(settings: str, *, config: Settings = "", only: Sequence[tuple[str, str]] | None = None) -> PHSafe:
    return PHSafe(read_config(config or settings), only)


def _pair(settings: str, model: Model) -> NeighborPair:
    return tabulated(joint_pair(model), read_config(settings))


def _system(settings: str) -> System:
    """Describe PHSafe with the Bureau's settings of a name."""
    return System(
        name="phsafe",
        about="PHSafe: household tables of the 2020 Census, with noise on the cells of nine queries.",
        build=partial(_phsafe, settings),
        pairs={model: partial(_pair, settings, model) for model in MODELS},
        commands={
            "release": "algorithms.phsafe.command:release_phsafe",
            "explore": "algorithms.phsafe.command:explore_phsafe",
        },
        extra="census",
    )


SYSTEMS = {settings: _system(settings) for settings in ("us", "pr")}
register(replace(SYSTEMS["us"], presets=SYSTEMS))
