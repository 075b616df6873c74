"""Registers the bottom-up mechanism, with either sampler."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from algorithms.bottom_up import BottomUp
from algorithms.bottom_up.mechanism import Noise
from algorithms.registry import System, counting, register
from algorithms.schema import read_specification
from algorithms.tables.own import counted, pairs_of

__all__: list[str] = []

COMMANDS = {"release": "algorithms.bottom_up.command:release_bottom_up"}


def _own(
    system: System,
    noise: Noise,
    data: str,
    *,
    areas: str,
    spec: str,
    geo: str | None = None,
    count: str | None = None,
    recode: str | None = None,
) -> System:
    """Describe the mechanism on persons of the user's own."""
    schema = read_specification(Path(spec))
    tree, histogram = counted(data, schema, areas, geo, count, recode)

    def build(*, epsilon: float = 1.0) -> BottomUp:
        return BottomUp(epsilon, tree, schema, noise=noise)

    return replace(system, build=build, pairs=pairs_of(histogram), of_counts=False)


EXACT = counting("bottom-up", BottomUp, on_tree=True, commands=COMMANDS)
INVERSE = counting("bottom-up-inverse-cdf", BottomUp, on_tree=True, noise="inverse_cdf")
register(replace(EXACT, own=partial(_own, EXACT, "exact")))
register(replace(INVERSE, own=partial(_own, INVERSE, "inverse_cdf")))
