"""The sheet `audit` of the explorer: what an audit of a promise can detect, beside the budget that it is to check."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import cache
from typing import Any

from audit.claims import Claim, parse_claim
from audit.claims.families import FAMILIES
from audit.events import Event
from audit.explorer.plans import CONFIDENCE, plan_tables
from audit.explorer.sheet import Chart, Column, Group, Input, Result, Row, Sheet, State, Table, Total
from audit.methods.method import method_for
from audit.planning import OutOfReachError, plan_power, plan_size, plan_violation
from audit.planning.plan import Plan
from audit.planning.sizes import SMALLEST_SHARE

__all__ = ["sheet"]

TIMES = {f"{round(100 * times)}%": times for times in (1.01, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5, 2.0)}
TIMES |= {f"{place:02}": round(1 + 0.01 * 100 ** (place / 32), 6) for place in range(1, 32)}
"""True losses of the power curve over the promise, by place: those of the table, and what the drawing has between."""
LEAST_POWER = 1e-12  # a chance that nobody plans with
CLAIM, PLAN = "audit/claim/all", "audit/plan/all"


def compute(state: State) -> dict[str, Result]:
    """Return every number of the sheet by ``audit/PART/PLACE/QUANTITY``, of a state with a value of each input.

    None stands for what no number of runs, or no loss, would do, and for what is not in the table of simulated plans.
    ``known`` and ``refused`` are keys of words: how the numbers came about, and why ``plaudit plan`` refuses the plan.

    >>> results = compute(sheet().published)
    >>> results["audit/plan/all/runs_needed"], round(results["audit/plan/all/detectable"], 3)
    (4733, 1.097)
    """
    values: dict[str, Any] = dict(state)
    claim = _claim(values)
    losses = {f"audit/curve/{place}": times for place, times in TIMES.items()}
    results: dict[str, Result] = dict.fromkeys(
        [f"{PLAN}/{name}" for name in ("detectable", "times", "power_found", "runs_needed", "refused")]
        + [f"{place}/power" for place in losses]
    )
    results |= {f"{place}/times": times for place, times in losses.items()}
    results |= {f"{place}/loss": times * claim.budget for place, times in losses.items()}
    results[f"{PLAN}/loss"] = values[f"{PLAN}/violation"] * claim.budget
    results[f"{CLAIM}/guessed"] = claim.guessed_right
    if _families()[values[f"{CLAIM}/family"]]["computed"]:
        return results | {f"{PLAN}/known": "audit.known.computed"} | _computed(claim, values, losses)
    table = plan_tables().get((values[f"{CLAIM}/family"], values[f"{PLAN}/selection"]))
    group = claim.group(values[f"{PLAN}/distance"]).budget
    if (
        table is None
        or values[f"{PLAN}/confidence"] != CONFIDENCE
        or not table.budgets[0] <= group <= table.budgets[-1]
    ):
        return results | {f"{PLAN}/known": "audit.known.simulated"}
    runs, power, violation = (values[f"{PLAN}/{name}"] for name in ("runs", "power", "violation"))
    results[f"{PLAN}/known"] = "audit.known.interpolated"
    results[f"{PLAN}/power_found"] = table.power(group, runs, violation)
    results |= {f"{place}/power": table.power(group, runs, times) for place, times in losses.items()}
    smallest = table.violation(group, runs, power)
    results |= {f"{PLAN}/times": smallest, f"{PLAN}/detectable": None if smallest is None else smallest * claim.budget}
    return results | {f"{PLAN}/runs_needed": table.size(group, violation, power)}


def _computed(claim: Claim, values: dict[str, Any], losses: dict[str, float]) -> dict[str, Result]:
    """Return what `plaudit plan` computes to every digit, or the key of words that say why it refuses the plan."""
    audit: dict[str, Any] = {name: values[f"{PLAN}/{name}"] for name in ("confidence", "distance", "selection")}
    runs, power, violation = (values[f"{PLAN}/{name}"] for name in ("runs", "power", "violation"))
    if 0 < audit["selection"] < SMALLEST_SHARE:
        return {f"{PLAN}/refused": "audit.refused.selection"}
    if runs < Plan(claim, **audit, share=1.0, design="coins").least:
        return {f"{PLAN}/refused": "audit.refused.few"}

    def power_at(times: float) -> float:
        chance = plan_power(claim, runs, violation=times, **audit)
        return chance if chance >= LEAST_POWER else 0.0

    results: dict[str, Result] = {f"{PLAN}/power_found": power_at(violation)}
    results |= {f"{place}/power": power_at(times) for place, times in losses.items()}
    smallest = plan_violation(claim, runs, power=power, **audit)
    if smallest < math.inf:
        results |= {f"{PLAN}/times": smallest, f"{PLAN}/detectable": smallest * claim.budget}
    try:
        return results | {f"{PLAN}/runs_needed": plan_size(claim, violation=violation, power=power, **audit)}
    except OutOfReachError:
        return results | {f"{PLAN}/refused": "audit.refused.far"}


def _claim(values: dict[str, Any]) -> Claim:
    kind = values[f"{CLAIM}/family"]
    names = ("budget", "delta") if _families()[kind]["delta"] else ("budget",)
    return parse_claim(f"{kind}:{','.join(repr(values[f'{CLAIM}/{name}']) for name in names)}")


def _families() -> dict[str, dict[str, Any]]:
    """Return of each registered family of promises with inputs here what plans and scripts need, the oldest first."""
    families = {}
    for kind, family in FAMILIES.items():
        if {*family.parameter_names()[1:]} <= {"delta"}:
            method = method_for(family(*[0.5] * len(family.parameter_names())), 1, 0.5)
            delta = "delta" in family.parameter_names()
            computed = method.coins and not method.simulated
            families[kind] = {"growth": family.growth, "delta": delta, "computed": computed}
    return families


@cache
def sheet() -> Sheet:
    """Return the sheet; its published state is pure privacy of epsilon 1 and an audit of 5,000 runs."""
    return Sheet(
        name="audit",
        title="audit.title",
        about=("audit.about.1", "audit.about.2"),
        inputs=(
            Input(key=f"{CLAIM}/family", kind="choice", value="pure", choices=tuple(_families()), label="audit.family"),
            Input(key=f"{CLAIM}/budget", kind="number", value=1.0, least=0.01, most=10, label="audit.budget"),
            Input(key=f"{CLAIM}/delta", kind="number", value=1e-6, least=1e-12, most=0.1, label="audit.delta"),
            Input(key=f"{PLAN}/runs", kind="integer", value=5000, least=100, most=10**6, label="audit.runs"),
            Input(
                key=f"{PLAN}/confidence", kind="number", value=0.95, least=0.5, most=0.9999, label="audit.confidence"
            ),
            Input(key=f"{PLAN}/distance", kind="integer", value=1, least=1, most=1000, label="audit.distance"),
            Input(key=f"{PLAN}/selection", kind="number", value=0.3, least=0, most=0.9, label="audit.selection"),
            Input(key=f"{PLAN}/violation", kind="number", value=1.1, least=1.02, most=10, label="audit.violation"),
            Input(key=f"{PLAN}/power", kind="number", value=0.8, least=0.5, most=0.99, label="audit.power"),
        ),
        compute=compute,
        script=("audit.explorer", "audits.js"),
        settings=(
            *(f"{CLAIM}/{name}" for name in ("family", "budget", "delta")),
            *(f"{PLAN}/{name}" for name in ("runs", "violation", "power", "confidence", "distance", "selection")),
        ),
        tables=(
            Table(
                label="audit.curve",
                rows="audit.violation",
                columns=(
                    Column(quantity="loss", label="audit.loss"),
                    Column(quantity="power", label="audit.power_found", shown="share"),
                ),
                groups=(
                    Group(
                        label="audit.curve.rows",
                        rows=tuple(Row(place=f"audit/curve/{at}", label=f"audit.{at}") for at in TIMES if "%" in at),
                    ),
                ),
            ),
        ),
        charts=(
            Chart(
                kind="curve",
                label="audit.chart",
                points=tuple(
                    (f"audit/curve/{place}/loss", f"audit/curve/{place}/power")
                    for place in sorted(TIMES, key=TIMES.__getitem__)
                ),
                axes=(("audit.loss", "number"), ("audit.power_found", "share")),
                current=(f"{PLAN}/loss", f"{PLAN}/power_found"),
            ),
        ),
        totals=(
            Total(key=f"{PLAN}/detectable", label="audit.detectable", main=True),
            Total(key=f"{PLAN}/runs_needed", label="audit.runs_needed", shown="whole", main=True),
            Total(key=f"{PLAN}/power_found", label="audit.power_found", shown="share", main=True),
            Total(key=f"{CLAIM}/guessed", label="audit.guessed", shown="guess", main=True),
            Total(key=f"{PLAN}/times", label="audit.smallest", shown="share"),
            Total(key=f"{PLAN}/known", label="audit.known", shown="text", main=True),
            Total(key=f"{PLAN}/refused", label="audit.refused", shown="text", main=True),
        ),
        formulas="audit.explorer.formulas:cells",
        data={
            "families": _families(),
            "times": TIMES,
            "least_power": LEAST_POWER,
            "main": 1 - Event.share,
            "confidence": CONFIDENCE,
            "tables": [
                {"family": family, "selection": selection, **asdict(table)}
                for (family, selection), table in plan_tables().items()
            ],
        },
    )
