"""Registers the bottom-up mechanism, with either sampler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from algorithms.bottom_up import BottomUp
from algorithms.bottom_up.mechanism import Noise
from algorithms.hierarchy import Hierarchy
from algorithms.registry import System, counting, register
from algorithms.schema import Schema
from algorithms.tables.own import on_persons

__all__: list[str] = []

COMMANDS = {"release": "algorithms.bottom_up.command:release_bottom_up"}


def _own(system: System, noise: Noise, tree: Hierarchy, schema: Schema, _: Sequence[str]) -> System:
    """Describe the mechanism on persons of the user's own."""
    build = partial(BottomUp, epsilon=1.0, tree=tree, schema=schema, noise=noise)
    return replace(system, build=build, of_counts=False)


EXACT = counting("bottom-up", BottomUp, commands=COMMANDS)
INVERSE = counting("bottom-up-inverse-cdf", BottomUp, noise="inverse_cdf")
register(replace(EXACT, own=partial(on_persons, partial(_own, EXACT, "exact"))))
register(replace(INVERSE, own=partial(on_persons, partial(_own, INVERSE, "inverse_cdf"))))
