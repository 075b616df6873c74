"""Adding a person costs GDPC its epsilon; moving a person, as the paper compares databases, costs twice that."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from algorithms.flaxman import GDPC
from audit.claims import PureDP
from audit.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.results import AuditResult
from audit.results.plots import BLACK, BLUE, ORANGE, new_figure
from experiments.experiment import CONFIDENCE, Check, between

QUESTION = "GDPC adds noise for epsilon: what does it lose when a person is added, and what when a person is moved?"
EXPECTATION = (
    "Added: at most epsilon, and nearly all of it is seen. Moved: the joint event of the two counts costs 2 "
    "epsilon, which violates epsilon under the paper's own definition and meets the 2 epsilon that its noise pays "
    "for."
)

COUNTS = [120, 75, 43]
SIZES = {0.1: 4_000_000, 0.5: 400_000, 1.0: 200_000}
CASES = {
    "added": "one person added: epsilon",
    "moved": "one person moved: epsilon, as the paper says",
    "moved, as paid for": "one person moved: 2 epsilon",
}


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Audit GDPC at three budgets (quick: one), each against the three claims."""
    added = NeighborPair.add_people(COUNTS, 0)
    moved = NeighborPair.move_people(COUNTS, 0, 1)
    rows = []
    for stream, (epsilon, size) in zip(np.random.SeedSequence(seed).spawn(3), SIZES.items(), strict=True):
        if quick and epsilon < 1:
            continue
        mechanism = GDPC(epsilon)
        stated = {
            "added": (added, mechanism.claim),
            "moved": (moved, PureDP(epsilon, "replace_one")),
            "moved, as paid for": (moved, mechanism.claim.under("replace_one")),
        }
        for case, rng in zip(stated, stream.spawn(3), strict=True):
            pair, claim = stated[case]
            runs = size // 4 if quick else size
            result = measure_loss(
                mechanism, pair, claim, size=runs, confidence=CONFIDENCE, rng=rng, n_jobs=jobs, progress=True
            )
            exact = mechanism.exact_loss(pair)
            assert exact is not None  # one person or two is a small table
            rows.append(
                {
                    "epsilon": epsilon,
                    "case": case,
                    "exact": exact.maximum,
                    "chance": float(exact.probability[-1]),
                    "audit": result.to_dict(),
                }
            )
    return {"rows": rows}


def check(numbers: dict[str, Any]) -> list[Check]:
    """Hold verdicts and bounds against the exact losses."""
    found = []
    for row in numbers["rows"]:
        result, epsilon = AuditResult.from_dict(row["audit"]), row["epsilon"]
        verdict = "violated" if row["case"] == "moved" else "not refuted"
        factor = 1 if row["case"] == "added" else 2
        where = f"epsilon {epsilon}, {row['case']}"
        found.append(Check(f"{where}: {result.verdict}, expected {verdict}", result.verdict == verdict))
        found.append(
            Check(
                f"{where}: exact loss {row['exact']:.4g}, expected {factor} epsilon",
                math.isclose(row["exact"], factor * epsilon),
            )
        )
        found.append(between(f"{where}: forced / exact", result.measured.budget / row["exact"], 0.85, 1.0))
    return found


def finding(numbers: dict[str, Any]) -> str:
    """Return the forced losses in units of epsilon."""
    forced: dict[str, list[str]] = {case: [] for case in CASES}
    for row in numbers["rows"]:
        forced[row["case"]].append(f"{AuditResult.from_dict(row['audit']).measured.budget / row['epsilon']:.2f}")
    budgets = ", ".join(f"{epsilon:g}" for epsilon in dict.fromkeys(row["epsilon"] for row in numbers["rows"]))
    return (
        f"At epsilon {budgets}, one person added forces {', '.join(forced['added'])} epsilon, one person moved "
        f"{', '.join(forced['moved'])}: the paper's definition compares databases in which somebody moved, and under "
        "it GDPC is 2 epsilon-DP."
    )


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw what the runs force beside the exact loss and the claim, in units of epsilon."""
    rows = numbers["rows"]
    figure, (ax,) = new_figure(7.2, 1.5 + 0.36 * len(rows))
    for place, row in enumerate(rows):
        result, epsilon = AuditResult.from_dict(row["audit"]), row["epsilon"]
        color, hatch = (ORANGE, "//") if result.verdict == "violated" else (BLUE, "")
        ax.barh(
            place,
            result.measured.budget / epsilon,
            height=0.55,
            color=color,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
        )
        ax.plot(row["exact"] / epsilon, place, marker="D", color=BLACK, markersize=4, linestyle="none")
        ax.plot([result.claim.budget / epsilon] * 2, [place - 0.38, place + 0.38], color=BLACK, linewidth=1.6)
        ax.text(2.08, place, result.verdict, va="center", fontsize=8)
    ax.set_title("GDPC with noise for $\\epsilon$: one person added, or moved", pad=26)
    ax.set_yticks(range(len(rows)), [f"$\\epsilon$ = {row['epsilon']:g}, {row['case']}" for row in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0, 2.45)
    ax.set_xticks([0, 0.5, 1, 1.5, 2])
    ax.set_xlabel("privacy loss in units of $\\epsilon$ (bars: forced, confidence $1 - 10^{-6}$)")
    ax.plot([], [], color=BLACK, linewidth=1.6, label="claim")
    ax.plot([], [], marker="D", color=BLACK, markersize=4, linestyle="none", label="exact loss")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
    return figure
