"""Plans of Gaussian and zero-concentrated promises, interpolated in a table of simulated ones.

`plaudit plan` simulates how an event is chosen, which a page cannot do while somebody types. The table, ``plans.json``,
has for a group's budget and a number of runs the smallest violation that is seen with each of some powers, as the
logarithm of what is lost beyond the promise, over the promise. Between its entries numbers are interpolated: over the
logarithms of budget and runs, and over the normal quantile of the power. ``python -m audit.explorer.plans`` writes the
table anew, in about an hour.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from scipy import special

from audit.claims import parse_claim
from audit.planning import plan_violation
from audit.results.provenance import provenance

__all__ = ["CONFIDENCE", "POWERS", "PlanTable", "plan_tables", "smallest_excesses"]

CONFIDENCE, POWERS, SELECTIONS = 0.95, (0.1, 0.4, 0.8, 0.95, 0.99), (0.0, 0.3)
RUNS = tuple(round(10 ** (2.5 + 0.35 * step)) for step in range(11))
BUDGETS = {  # of rho closer where other likelihood ratios become the best, which bends the curves
    "gaussian": (0.05, 0.0636, 0.08094, 0.131, 0.2121, 0.3433, 0.5558, 0.8997, 1.145, 1.456, 1.853, 2.357),
    "zcdp": (0.01, 0.0186, 0.03461, 0.0644, 0.1198, 0.2229, 0.4147, 0.566, 0.7716, 0.885, 1.0, 1.2, 1.436),
}
PLACES = 3  # of a logarithm: 0.1% of what is lost beyond the promise

Entry = float | None
Line = Sequence[Entry]


@dataclass(frozen=True)
class PlanTable:
    """Simulated plans of one family, at a confidence of `CONFIDENCE` and a share of runs that choose the event."""

    budgets: Sequence[float]  # mu or rho of the group, increasing, shape (b,)
    runs: Sequence[int]  # in all, increasing, shape (r,)
    quantiles: Sequence[float]  # normal quantiles of the powers, shape (p,)
    excess: Sequence[Sequence[Line]]  # log of the smallest violation less 1, shape (b, r, p); None where none is seen

    def line(self, budget: float, runs: float) -> Line | None:
        """Return the entries of every power, of a group's budget and a number of runs; None outside of the table."""
        row, across = _position(self.budgets, budget)
        column, along = _position(self.runs, runs)
        if row is None or column is None:
            return None
        near, far = (self.excess[row + step] for step in (0, 1))
        return [
            _interpolated(_interpolated(near[column][place], near[column + 1][place], along),
                   _interpolated(far[column][place], far[column + 1][place], along), across)
            for place in range(len(self.quantiles))
        ]  # fmt: skip

    def power(self, budget: float, runs: int, violation: float) -> Entry:
        """Return how often so many runs see a violation, at most the largest power of the table; None outside of it."""
        line = self.line(budget, runs)
        if line is None or line[0] is None:
            return None
        excess, entries = math.log(violation - 1), [entry for entry in line if entry is not None]
        if excess < entries[0]:
            return None
        if excess >= entries[-1]:
            return float(special.ndtr(self.quantiles[-1])) if len(entries) == len(line) else None
        place = max(place for place, entry in enumerate(entries) if entry <= excess)
        part = (excess - entries[place]) / (entries[place + 1] - entries[place])
        below, above = self.quantiles[place : place + 2]
        return float(special.ndtr(below + part * (above - below)))

    def violation(self, budget: float, runs: int, power: float) -> Entry:
        """Return the smallest violation that so many runs see so often; None where it is not in the table."""
        excess = self._excess(budget, runs, power)
        return None if excess is None else 1 + math.exp(excess)

    def size(self, budget: float, violation: float, power: float) -> int | None:
        """Return how many runs see a violation so often, rounded up to three digits; None if more than in the table."""
        limit, before = math.log(violation - 1), None
        for place, runs in enumerate(self.runs):
            excess = self._excess(budget, runs, power)
            if excess is not None and excess <= limit:
                part = 1.0 if before is None else (limit - before) / (excess - before)
                last = math.log(self.runs[max(place - 1, 0)])
                size = math.exp(last + part * (math.log(runs) - last))
                digits = int(10 ** (math.floor(math.log10(size)) - 2))
                return math.ceil(size / digits * (1 - 1e-9)) * digits  # not to go up by what is lost in rounding
            before = excess
        return None

    def _excess(self, budget: float, runs: float, power: float) -> Entry:
        """Return the logarithm of the smallest violation less 1 that is seen so often."""
        line, quantile = self.line(budget, runs), float(special.ndtri(power))
        if line is None:
            return None
        place = max(place for place, node in enumerate(self.quantiles[:-1]) if node <= quantile)
        below, above = self.quantiles[place : place + 2]
        return _interpolated(line[place], line[place + 1], (quantile - below) / (above - below))


def _position(nodes: Sequence[float], value: float) -> tuple[int | None, float]:
    """Return the last node before the end that is no larger, and how far the value is from it to the next."""
    if not nodes[0] <= value <= nodes[-1]:
        return None, 0.0
    place = max(place for place, node in enumerate(nodes[:-1]) if node <= value)
    return place, math.log(value / nodes[place]) / math.log(nodes[place + 1] / nodes[place])


def _interpolated(first: Entry, second: Entry, part: float) -> Entry:
    """Return what lies between two entries, of which only those that count must be there."""
    if part == 0 or part == 1:
        return second if part else first
    return None if first is None or second is None else first + part * (second - first)


@cache
def plan_tables() -> dict[tuple[str, float], PlanTable]:
    """Return the tables by family and by the share of runs that choose the event.

    >>> round(plan_tables()["gaussian", 0.3].violation(1.0, 20_000, 0.8), 2)  # the shift over a mu of 1
    1.08
    """
    quantiles = [float(special.ndtri(power)) for power in POWERS]
    return {
        (table["family"], table["selection"]): PlanTable(table["budgets"], table["runs"], quantiles, table["excess"])
        for table in json.loads(_file().read_text("utf-8"))["tables"]
    }


def smallest_excesses(family: str, selection: float, budget: float, runs: int) -> list[Entry]:
    """Return an entry of each power, simulated: the logarithm of the smallest violation less 1."""
    claim = parse_claim(f"{family}:{budget!r}")
    options: dict[str, Any] = {"selection": selection, "confidence": CONFIDENCE}
    violations = [plan_violation(claim, runs, power=power, **options) for power in POWERS]
    return [round(math.log(times - 1), PLACES) if times < math.inf else None for times in violations]


def _file() -> Path:
    return Path(str(resources.files("audit.explorer") / "static" / "plans.json"))


def main() -> None:
    """Write the table anew."""
    tables: list[dict[str, Any]] = [
        {
            "family": family,
            "selection": selection,
            "budgets": budgets,
            "runs": RUNS,
            "excess": [[smallest_excesses(family, selection, budget, runs) for runs in RUNS] for budget in budgets],
        }
        for family, budgets in BUDGETS.items()
        for selection in SELECTIONS
    ]
    content = {"confidence": CONFIDENCE, "powers": POWERS, "provenance": provenance(), "tables": tables}
    _file().write_text(json.dumps(content) + "\n", "utf-8")


if __name__ == "__main__":
    main()
