"""Common code of the explorer's sheets: accuracy relative to totals that users know, and the total promise."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from algorithms.noise.margins import Tail, beyond
from algorithms.release.ledger import conversions
from audit.claims import ZCDP, PureDP
from audit.explorer.sheet import Column, Group, Input, Result, Row, Shown, Table, Total, Value

__all__ = ["QUANTITIES", "TENTH", "PlaceAccuracy", "accuracy", "accuracy_table", "promised", "totals", "totals_input"]

QUANTITIES = ("tenth", "relative", "off", "even")
TENTH = Column(quantity="tenth", label="accuracy.tenth", shown="whole")

SHOWN: dict[str, Shown] = {"rho": "budget", "epsilon": "budget", "guessed": "guess", "epsilon_tight": "epsilon"}
NUMBERS: dict[str, Shown] = SHOWN | {"epsilon_simple": "epsilon", "epsilon_gaussian": "epsilon"}
SIDES = {"": "added_", "bounded_": "replaced_"}  # prefixes of PHSafe, and those of the same neighbors


@dataclass(frozen=True)
class PlaceAccuracy:
    """Counts of one query and level: noise, exact margin, budget, sensitivity, and the user's totals (with spaces)."""

    law: Tail
    margin: int
    budget: float
    sensitivity: float
    totals: Value

    @property
    def numbers(self) -> list[int]:
        """The user's totals as numbers."""
        return [int(number) for number in str(self.totals or "").split()]


def accuracy(kind: str, places: Mapping[str, PlaceAccuracy]) -> dict[str, Result]:
    """Return accuracy by place: ``tenth``, the smallest count with a margin of at most 10%, and results for totals.

    ``relative`` is the margin over the median total; ``off`` is the expected share of the totals whose error is above
    10%. ``even`` is the budget that gives every place with totals the same relative error, for the same sum of budgets:
    noise is proportional to ``sensitivity / sqrt(rho)``, or about to ``sensitivity / epsilon``.
    """
    results: dict[str, Result] = {f"{place}/tenth": 10 * one.margin for place, one in places.items()}
    known = {place: one for place, one in places.items() if one.numbers}
    medians = {place: statistics.median(one.numbers) for place, one in known.items()}
    parts = {place: (one.sensitivity / medians[place]) ** (2 if kind == "zcdp" else 1) for place, one in known.items()}
    spent, whole = sum(one.budget for one in known.values()), sum(parts.values())
    for place, one in known.items():
        results[f"{place}/relative"] = one.margin / medians[place]
        results[f"{place}/off"] = statistics.fmean(beyond(one.law, total / 10) for total in one.numbers)
        results[f"{place}/even"] = spent * parts[place] / whole
    return results


def totals_input(place: str) -> Input:
    """Return the input field for totals of a place."""
    return Input(key=f"{place}/totals", kind="numbers", optional=True, label="accuracy.totals")


def accuracy_table(groups: Mapping[str, tuple[Row, ...]]) -> Table:
    """Return the table of places, grouped by label, with input fields for totals."""
    return Table(
        label="accuracy.table",
        columns=(
            Column(quantity="totals", label="accuracy.totals", entry=True),
            Column(quantity="relative", label="accuracy.relative", shown="share", decides=True),
            Column(quantity="off", label="accuracy.off", shown="share", decides=True),
            Column(quantity="even", label="accuracy.even", shown="budget"),
        ),
        groups=tuple(Group(label=label, rows=rows) for label, rows in groups.items()),
        action="accuracy.spend",
    )


def promised(system: str, claims: Mapping[str, PureDP | ZCDP], delta: float) -> dict[str, Result]:
    """Return every number of `totals`: budget, risk and epsilon at delta of each claim; `claims` are by key prefix."""
    results: dict[str, Result] = {}
    for prefix, claim in claims.items():
        numbers = {claim.parameter: claim.budget, "guessed": claim.guessed_right}
        numbers |= {f"epsilon_{way.lower()}": epsilon for way, epsilon in conversions(claim, delta).items()}
        results |= {f"{system}/total/all/{prefix}{name}": numbers.get(name) for name in NUMBERS}
    return results


def totals(system: str, prefixes: Sequence[str]) -> tuple[Total, ...]:
    """Return the promises that a sheet shows; the simple and Gaussian conversions are notes to the tight one."""
    return tuple(
        Total(
            key=f"{system}/total/all/{prefix}{name}",
            label=f"{system}.total.{prefix}{name}" if name in SHOWN else f"total.{SIDES.get(prefix, prefix)}{name}",
            shown=shown,
            main=name in SHOWN if prefix == prefixes[0] else name == "guessed",
        )
        for prefix in prefixes
        for name, shown in NUMBERS.items()
    )
