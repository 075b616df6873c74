"""A plan as a table: several violations, and the runs that each needs or the power that each has."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audit.claims import Claim
from audit.io.html import as_html
from audit.methods.method import method_for
from audit.planning.plan import Design
from audit.planning.sizes import OutOfReachError, plan_early, plan_power, plan_size, plan_violation
from audit.results.formatting import percent
from audit.results.notebook import frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SHOWN", "PlanTable", "plan_table"]

SHOWN = (1.05, 1.1, 1.2, 1.5, 2.0)  # violations
EARLY = {"early_median": "early: half within", "early_80": "early: 80% within"}  # columns of audits that may stop early


@dataclass(frozen=True)
class PlanTable:
    """How many runs detect each of several violations; or how often a given number of runs detects each."""

    claim: Claim  # the promise for one step
    power: float  # the power asked for: the runs detect `smallest` with it
    runs: int | None  # the given number of runs, if the question was what they detect
    smallest: float | None  # in this case the smallest violation that they detect: true loss divided by the promise
    audit: dict[str, Any]  # confidence, distance, selection, share and design, as of `plan_size`
    # One per violation: ``violation``, the true loss by its parameter, ``runs`` (None: out of reach) or ``power``; of
    # audits with coins also within how many runs half, and 80%, of those that may stop early find it.
    rows: tuple[dict[str, Any], ...]

    @property
    def what(self) -> str:
        """What is counted: runs, or canaries."""
        return "canaries" if self.audit["design"] == "one_run" else "runs"

    @property
    def assumes(self) -> str:
        """The mechanism that the plan is for, in words."""
        law = method_for(self.claim, 1, 0.5).assumed(self.audit["share"])
        return f"Assumes {law}. A loss that is hidden in rare events, or in one entry of many, needs more."

    def to_frame(self) -> Any:
        """Return a data frame with one row per violation."""
        return frame(list(self.rows))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the runs needed; see `audit.results.plots.plot_plan`. A plan for given runs has no such curve."""
        from audit.results.plots import house_style, plot_plan  # matplotlib is slow to import

        if self.runs is not None:
            raise ValueError(f"a plan of what {self.runs} runs detect has no curve of runs needed")
        rows = [(row["violation"], math.inf if row["runs"] is None else row["runs"]) for row in self.rows]
        violations, sizes = zip(*rows, strict=True)
        with house_style():
            return plot_plan([(str(self.claim), violations, sizes)], ax, what=self.what)

    def _repr_html_(self) -> str:
        name = self.claim.parameter
        rows = [(f"{row[name]:.4g}", f"{row['violation']:.6g}", *self.answers(row)) for row in self.rows]
        question = f"with power {self.power:g}" if self.runs is None else f"with {self.runs:,} {self.what}"
        title = f"To detect a violation of {self.claim} {question}, at {percent(self.audit['confidence'])} confidence"
        return as_html(title, rows, head=(f"true {name}", "times the promise", *self.titles), notes=[self.assumes])

    @property
    def titles(self) -> tuple[str, ...]:
        """Titles of the answers to the question."""
        if self.runs is not None:
            return ("called violated",)
        return f"{self.what} needed", *(EARLY.values() if self.audit["design"] == "coins" else ())

    def answers(self, row: dict[str, Any]) -> tuple[str, ...]:
        """Return the answers for a violation in words."""
        if self.runs is not None:
            return (f"{100 * row['power']:.1f}%",)
        sizes = [row[name] for name in ("runs", *EARLY) if name in row]
        return tuple("out of reach" if size is None else f"{size:,}" for size in sizes)


def plan_table(
    claim: Claim,
    *,
    violations: Sequence[float] = SHOWN,
    runs: int | None = None,
    power: float = 0.8,
    confidence: float = 0.95,
    distance: int = 1,
    selection: float = 0.3,
    share: float = 1.0,
    design: Design = "coins",
    done: Callable[[int], None] = lambda _: None,
) -> PlanTable:
    """Return how many runs detect each of several violations, or how often a given number of runs detects each.

    Parameters
    ----------
    claim, power, confidence, distance, selection, share, design
        As in `plan_size`.
    violations : sequence of float
        True losses divided by the promise, each more than 1.
    runs : int, optional
        Ask the reverse: what this many runs detect.
    done : callable
        Called with 1 after each violation.

    Returns
    -------
    PlanTable
        The violations in increasing order, each once.
    """
    audit: dict[str, Any] = {"confidence": confidence, "distance": distance, "selection": selection}
    audit |= {"share": share, "design": design}
    smallest = None if runs is None else plan_violation(claim, runs, power=power, **audit)
    rows = []
    for times in dict.fromkeys(violations):
        row: dict[str, Any] = {"violation": times, claim.parameter: times * claim.budget}
        if runs is not None:
            row["power"] = plan_power(claim, runs, violation=times, **audit)
        else:
            try:
                row["runs"] = plan_size(claim, violation=times, power=power, **audit)
            except OutOfReachError:
                row["runs"] = None
            if design == "coins":
                early: tuple[int | None, int | None] = None, None
                with suppress(OutOfReachError):
                    early = plan_early(claim, violation=times, confidence=confidence, distance=distance, share=share)
                row |= dict(zip(EARLY, early, strict=True))
        rows.append(row)
        done(1)
    return PlanTable(claim, power, runs, smallest, audit, tuple(sorted(rows, key=lambda row: float(row["violation"]))))
