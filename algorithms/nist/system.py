"""Registers NistDp3, on one half of bundled survey records; the other half is public and groups the fields."""

from __future__ import annotations

from functools import cache

from algorithms.nist import Groups, NistDp3, choose_groups
from algorithms.population import halves, load_income
from algorithms.registry import System, register
from audit.neighbors import NeighborPair

__all__: list[str] = []

PEOPLE, ROWS = 500, 200  # protected records, and synthetic rows of a run


@cache
def _groups() -> Groups:
    schema, records = load_income()
    return choose_groups(halves(records)[0], schema)


def _nist(*, epsilon: float = 1.0, rows: int = ROWS) -> NistDp3:
    return NistDp3(load_income()[0], _groups(), epsilon, rows=rows)


def _joined() -> NeighborPair:
    _, protected = halves(load_income()[1])
    return NeighborPair.add_record(protected[:PEOPLE], protected[PEOPLE], label="one person added")


register(
    System(
        name="nist",
        about="NistDp3: correlated fields grouped on public data, noisy histograms of the groups, synthetic rows.",
        build=_nist,
        pairs={"joined": _joined},
        stages=("measurements", "thresholded", "counted"),
        commands={"release": "algorithms.nist.command:release_nist"},
    )
)
