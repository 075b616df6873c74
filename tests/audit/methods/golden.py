"""What audits and plans say of every family of promises; ``python -m tests.audit.methods.golden`` writes it anew.

That bounds hold and that announced power is reached is simulated for hours (rows 1 and 4 of docs/reliability.md).
Whoever changes one of these numbers has to simulate again.
"""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from audit.claims import Claim
from audit.events import Event
from audit.measure.loss import measure_loss, measure_loss_from_outputs
from audit.measure.one_run import Canaries, measure_loss_one_run
from audit.methods.method import method_for
from audit.neighbors import NeighborPair
from audit.planning import plan_power, plan_size, plan_violation
from audit.results import AuditResult
from tests.audit.audits import TIGHT

FILE = Path(__file__).with_name("golden.json")
PAIR, GROUP = NeighborPair.add_people([4, 9], 0), NeighborPair.add_people([4, 9], 0, people=3)
TIES = ", after ratings"  # which libraries add up in one order or another, so that other events may be best
Rows = dict[str, list[Any]]


def noisy(counts: Any, size: int, rng: np.random.Generator) -> Any:
    """Return one count with normal noise, rounded, and one with geometric noise."""
    normal, whole = rng.normal(size=(size, 1)).round(6), rng.geometric(0.6, (size, 2))
    return counts + np.hstack([normal, np.diff(whole)])


def numbers(name: str, result: AuditResult) -> Rows:
    """Return the words and numbers of a result that a method says; what ties in its ratings may change by itself."""
    counts = [result.counts[side][key] for side in "xy" for key in sorted(result.counts[side])]
    basis = [np.ravel(result.basis[key]) for key in sorted(result.basis) if key != "bets"]
    row = [result.verdict, result.bound, result.event, result.measured.budget, result.ceiling, *few(counts)]
    return {name: row, name + TIES: [result.detectable, *chain.from_iterable(few(values.tolist()) for values in basis)]}


def few(values: list[Any]) -> list[Any]:
    """Return numbers, or where they are many how many they are and their sum, weighted by their places."""
    return values if len(values) < 9 else [len(values), sum(place * value for place, value in enumerate(values, 1))]


def audits(claim: Claim, tight: Any, whole: bool) -> Rows:
    """Return what audits of a family say, asked in every way."""
    results = {}
    ways = ((PAIR, 6000, "fixed"), (GROUP, 1000, "early"), (GROUP, 6000, "fixed"), (PAIR, 3000, "early"))
    for pair, size, stop in ways[: 4 if whole else 2]:
        result = measure_loss(noisy, pair, claim, size=size, stop=stop, rng=1)
        results[f"distance {pair.distance}, {size}, {stop}"] = result
    results["coin"] = measure_loss(tight, NeighborPair.declared(0, 1, "add_remove"), claim, size=6000, rng=1)
    if "threshold" in method_for(claim, 1, 0.95).rules:
        results["registered"] = measure_loss(noisy, PAIR, claim, event=Event.at_least(0, 5.5), size=4000, rng=1)
    for runs in ((20, 30), (30, 500), (700, 600)):
        rng = np.random.default_rng(1)
        given = [noisy(np.array([4 + side, 9]), number, rng) for side, number in enumerate(runs)]
        results[f"given {runs}"] = measure_loss_from_outputs(*given, claim, relation="add_remove", rng=1)
    if claim.budget != claim.forgiven:
        for people, share in ((1, None), (3, 0.1)):
            canaries = Canaries([20] * 500, people=people)
            results[f"one run, {people}"] = measure_loss_one_run(one_run, canaries, claim, share=share, rng=1)
    return {key: row for name, result in results.items() for key, row in numbers(name, result).items()}


def one_run(counts: Any, size: int, rng: np.random.Generator) -> Any:
    """Return counts with geometric noise."""
    return counts + np.subtract(*rng.geometric(0.6, (2, size, counts.size)))


def plans(claim: Claim, whole: bool) -> Rows:
    """Return what plans of a family say, and their words."""
    method, rows = method_for(claim, 1, 0.95), {}
    kinds: list[dict[str, Any]] = [{}, {"selection": 0.0}, {"selection": 0.5, "distance": 3}]
    if not method.simulated:
        kinds += [{"selection": 0.0, "share": 0.2}]
    if claim.budget != claim.forgiven:
        kinds += [{"design": "one_run", "selection": 0.0}]
    for options in kinds:
        for size in (100_000, 2000)[: 2 if whole else 1]:
            violations = (1.02, 1.1, 1.3, 2, 3)[: 5 if whole else 2]
            rows[f"plan {size}, {options}"] = [plan_power(claim, size, violation=v, **options) for v in violations]
    for options in kinds[: 3 if whole else 2]:
        rows[f"plan, {options}"] = [plan_violation(claim, 5000, **options), plan_size(claim, violation=1.3, **options)]
    shares = (1.0,) if method.simulated else (1.0, 0.2)
    return rows | {"assumed": [method.assumed(share) for share in shares]}


def golden_rows(name: str, whole: bool = True) -> Rows:
    """Return what is said of a family: all, or the beginning of it, which takes a third of the time."""
    tight, claim, _ = TIGHT[name]
    return audits(claim, tight, whole) | plans(claim, whole)


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: golden_rows(name) for name in TIGHT}, indent=1) + "\n", "utf-8")
