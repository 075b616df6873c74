"""GDPC loses epsilon if a person is added, and twice epsilon if one is moved, as between the paper's databases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from algorithms.flaxman import GDPC
from audit import NeighborPair, PureDP
from audit.results.plots import EXACT, PROMISE
from experiments.audits import audited, exact_law, opened
from experiments.drawing import bar, beside, extent, foot, keys, name_rows, page
from experiments.experiment import Check, Checks, Numbers, between, down

COUNTS = [120, 75, 43]
SIZES = {0.1: 4_000_000, 0.5: 400_000, 1.0: 200_000}  # runs by budget
CASES = {
    "added": "one person added:\npromise of $\\epsilon$",
    "moved": "one person moved:\npromise of $\\epsilon$",  # as the paper says
    "moved, as paid for": "one person moved:\npromise of 2 $\\epsilon$",
}


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit GDPC at three budgets (quick: one), each with the three claims."""
    added = NeighborPair.add_people(COUNTS, 0)
    moved = NeighborPair.move_people(COUNTS, 0, 1)
    rows = []
    for stream, epsilon in zip(np.random.SeedSequence(seed).spawn(len(SIZES)), SIZES, strict=True):
        if quick and epsilon < max(SIZES):
            continue
        mechanism = GDPC(epsilon)
        stated = {
            "added": (added, mechanism.claim),
            "moved": (moved, PureDP(epsilon, "replace_one")),
            "moved, as paid for": (moved, mechanism.claim.under("replace_one")),
        }
        for case, rng in zip(stated, stream.spawn(3), strict=True):
            pair, claim = stated[case]
            exact = exact_law(mechanism, pair)
            row = {"epsilon": epsilon, "case": case, "exact": exact.maximum}
            runs = SIZES[epsilon] // (4 if quick else 1)
            rows.append({**row, "audit": audited(mechanism, pair, claim, size=runs, rng=rng, jobs=jobs)})
    return {"rows": rows}


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        result, epsilon = opened(row["audit"]), row["epsilon"]
        verdict = "violated" if row["case"] == "moved" else "not refuted"
        factor = 1 if row["case"] == "added" else 2
        where = f"epsilon {epsilon}, {row['case']}"
        yield Check(f"{where}: {result.verdict}, expected {verdict}", result.verdict == verdict)
        words = f"{where}: exact loss {row['exact']:.4g}, expected {factor} epsilon"
        yield Check(words, math.isclose(row["exact"], factor * epsilon))
        yield between(f"{where}: lower bound / exact loss", result.measured.budget / row["exact"], 0.85, 1.0)


def facts(numbers: Numbers) -> dict[str, Any]:
    shares = {case: _shares(numbers, case) for case in CASES}
    least = {case: min(own.values()) for case, own in shares.items()}
    verdicts = {(row["case"], row["epsilon"]): opened(row["audit"]).verdict for row in numbers["rows"]}
    rows = [
        (
            f"{epsilon:g}",
            *(down(shares[case][epsilon]) for case in ("added", "moved")),
            *(verdicts[case, epsilon] for case in ("moved", "moved, as paid for")),
        )
        for epsilon in shares["added"]
    ]
    return locals()


def _shares(numbers: Numbers, case: str) -> dict[float, float]:
    rows = [row for row in numbers["rows"] if row["case"] == case]
    return {row["epsilon"]: opened(row["audit"]).measured.budget / row["epsilon"] for row in rows}


def draw(numbers: Numbers) -> Figure:
    figure, (ax,) = page(2.7)
    for place, case in enumerate(CASES):
        rows = [row for row in numbers["rows"] if row["case"] == case]
        audits, shares = [opened(row["audit"]) for row in rows], _shares(numbers, case).values()
        bar(ax, place, min(shares), violated=all(audit.verdict == "violated" for audit in audits))
        extent(ax, shares, place)
        ax.plot([audits[0].claim.budget / rows[0]["epsilon"]] * 2, [place - 0.45, place + 0.45], **PROMISE)
        ax.plot([row["exact"] / row["epsilon"] for row in rows], [place] * len(rows), **EXACT, zorder=4)
        beside(ax, place, f"{down(min(shares))} to {down(max(shares))}: {audits[0].verdict}", x=1.02, size=8)
    name_rows(ax, list(CASES.values()))
    ax.set(xlim=(0, 2.15), xticks=[0, 0.5, 1, 1.5, 2], xlabel="privacy loss in units of $\\epsilon$")
    budgets = ", ".join(f"{epsilon:g}" for epsilon in dict.fromkeys(row["epsilon"] for row in numbers["rows"]))
    handles = keys(
        bound="lower bound, confidence 1 - 1e-6",
        violated="the same: violated",
        extent=f"bar: least of $\\epsilon$ = {budgets}; line: to the largest",
        exact="exact loss",
        promise="promise",
    )
    foot(figure, handles, ncols=3)
    return figure
