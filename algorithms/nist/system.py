"""Registers NistDp3, on one half of bundled survey records; the other half is public and groups the fields."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import Any

from algorithms.nist import Groups, NistDp3, choose_groups, read_groups
from algorithms.nist.groups import check_one_source
from algorithms.population import halves, load_income
from algorithms.registry import System, register
from algorithms.schema import read_specification
from algorithms.tables.intake import read_records
from algorithms.tables.recoding import recoded
from audit.neighbors import NeighborPair

__all__: list[str] = []

PEOPLE, ROWS = 500, 200  # protected records, and synthetic rows of a run
USUAL = partial(NistDp3, epsilon=1.0, rows=ROWS)


@cache
def _groups() -> Groups:
    schema, records = load_income()
    return choose_groups(halves(records)[0], schema)


def _nist(**settings: Any) -> NistDp3:
    return USUAL(load_income()[0], _groups(), **settings)


_nist.__signature__ = signature(partial(USUAL, None, None), eval_str=True)  # type: ignore[attr-defined]


def _joined() -> NeighborPair:
    _, protected = halves(load_income()[1])
    return NeighborPair.add_record(protected[:PEOPLE], protected[PEOPLE], label="one person added")


def _own(
    data: str, *, spec: str, public: str | None = None, groups: str | None = None, recode: str | None = None
) -> System:
    """Describe the algorithm on records of the user's own, the last of which joins; fields grouped as for a release."""
    check_one_source(public, groups)
    schema = read_specification(Path(spec))
    if groups is not None:
        chosen = read_groups(groups)
        chosen.check(schema)
    else:
        chosen = choose_groups(read_records(public, schema, what="public records"), schema)
    records = read_records(recoded("data", data, recode, schema.attributes), schema)

    def joined() -> NeighborPair:
        return NeighborPair.add_record(records[:-1], records[-1], label="the last person of the file added")

    return replace(NIST, build=partial(USUAL, schema, chosen), pairs={"joined": joined})


NIST = System(
    name="nist",
    about="NistDp3: correlated fields grouped on public data, noisy histograms of the groups, synthetic rows.",
    build=_nist,
    pairs={"joined": _joined},
    stages=("measurements", "thresholded", "counted"),
    commands={"release": "algorithms.nist.command:release_nist"},
)
register(replace(NIST, own=_own))
