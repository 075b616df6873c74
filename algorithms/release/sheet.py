"""What sheets of the explorer share: accuracy beside totals that users know, and the total promise in several terms."""

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
ASIDE: dict[str, Shown] = {"epsilon_simple": "epsilon", "epsilon_gaussian": "epsilon"}
NUMBERS = SHOWN | ASIDE


@dataclass(frozen=True)
class PlaceAccuracy:
    """Counts of one place: their noise and its exact margin, what they cost, and totals as a text with blanks."""

    law: Tail
    margin: int
    budget: float
    sensitivity: float
    totals: Value

    @property
    def numbers(self) -> list[int]:
        """The totals."""
        return [int(number) for number in str(self.totals or "").split()]


def accuracy(kind: str, places: Mapping[str, PlaceAccuracy]) -> dict[str, Result]:
    """Return accuracy by place: from which count on an error of 10% is beyond the margin, and beside totals.

    ``relative`` is the margin over the median total, ``off`` the expected share of the totals whose error is above 10%,
    and ``even`` the budget that gives every place with totals the same relative error, for what they spend together:
    noise is as large as ``sensitivity / sqrt(rho)``, or about as ``sensitivity / epsilon``.
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
    """Return the box for totals of a place."""
    return Input(key=f"{place}/totals", kind="numbers", optional=True, label="accuracy.totals")


def accuracy_table(groups: Mapping[str, tuple[Row, ...]]) -> Table:
    """Return the table of places, in rows by the label of their group, with boxes for totals."""
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
    """Return every number of `totals`: of each claim, by the prefix of its keys, budget, risk, and epsilon at delta."""
    results: dict[str, Result] = {}
    for prefix, claim in claims.items():
        numbers = {claim.parameter: claim.budget, "guessed": claim.guessed_right}
        numbers |= {f"epsilon_{way.lower()}": epsilon for way, epsilon in conversions(claim, delta).items()}
        results |= {f"{system}/total/all/{prefix}{name}": numbers.get(name) for name in NUMBERS}
    return results


def totals(system: str, prefixes: Sequence[str]) -> tuple[Total, ...]:
    """Return what a sheet shows of its promises; the simple and the Gaussian conversion are beside the tight one."""
    return tuple(
        Total(
            key=f"{system}/total/all/{prefix}{name}",
            label=f"{system}.total.{prefix}{name}",
            shown=shown,
            main=name in SHOWN if prefix == prefixes[0] else name == "guessed",
        )
        for prefix in prefixes
        for name, shown in NUMBERS.items()
    )
