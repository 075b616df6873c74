"""Every known bug and every broken classic must be caught, and no sound algorithm accused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from algorithms import benchmarks as classics
from algorithms import bugs as broken
from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.flaxman.gaussian import GaussianCounts
from algorithms.hierarchy import Hierarchy
from algorithms.population import load
from audit.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.results import plain_number
from audit.results.plots import BLACK, BLUE, ORANGE, new_figure
from audit.sampling.progress import progress_bar
from experiments.experiment import CONFIDENCE, Check

QUESTION = "Does the audit catch every known bug, and does it accuse a sound algorithm?"
EXPECTATION = (
    "Every bug and every broken classic is caught in every audit: by counting runs, by a witness in the exact law, or "
    "refused because its runs are not independent. No sound algorithm is accused, and no bound exceeds a true loss."
)

BUGS, CLASSICS, SOUND = "known bugs", "broken classics", "sound"
SOUND_SIZE, SMALL = 400_000, 100_000  # the quick form leaves out what takes more runs
# Of the classics' rare events, groups of ten show more than ten times as many runs would.
CLASSIC_SIZES = {
    "TruncatedGeometric": (4_000_000, 1),
    "NoisyHist2": (20_000, 1),
    "ReportNoisyMax3": (600_000, 1),
    "ReportNoisyMax4": (100_000, 1),
    "SVT3": (100_000, 10),
    "SVT4": (200_000, 10),
    "SVT5": (20_000, 1),
    "SVT6": (600_000, 1),
    "SVT34Parallel": (400_000, 10),
    "PrefixSum": (100_000, 1),
}
COUNTS = np.arange(20, 29)


@dataclass(frozen=True)
class Case:
    """What is audited, on which pair, with how many runs, and what is known of it.

    Attributes
    ----------
    loss : float
        For one step, in the unit of the claim; NaN where the exact law gives none.
    found : str
        ``"counts"``, ``"witness"`` or ``"refused"``; ``"never"`` of what is sound.
    """

    group: str
    name: str
    mechanism: Any
    pair: NeighborPair
    loss: float
    size: int
    found: str


def cases() -> list[Case]:
    """Return all that is audited: the bugs, the broken classics, and what is sound."""
    found = [
        Case(
            BUGS, name, bug.mechanism, NeighborPair.declared(bug.x, bug.y, bug.relation), bug.loss, bug.size, bug.found
        )
        for name, bug in broken.known_bugs().items()
    ]
    known = classics.benchmarks()
    for name, (size, people) in CLASSIC_SIZES.items():
        one = known[name]
        pair = NeighborPair.declared(one.x, one.x + people * (one.y - one.x), "add_remove", distance=people)
        how = "witness" if name == "ReportNoisyMax4" else "counts"
        found.append(Case(CLASSICS, name, one.mechanism, pair, one.loss, size, how))
    tree, (communes, people_of) = Hierarchy.regular(3, 2), load("morocco")
    small, large = NeighborPair.add_people(COUNTS, 0), NeighborPair.add_people(people_of, 0)
    for name, mechanism, pair, loss, size in (
        ("GDPC", GDPC(1.0), small, 1.0, SMALL),
        ("RDPC, tree of 3 x 3", RDPC(1.0, tree, output="all"), small, 1.0, SMALL),
        ("RDPC, communes of Morocco", RDPC(1.0, communes, output="all"), large, 1.0, SMALL // 5),
        ("ADPC", ADPC(1.0), small, 1.0, SMALL),
        ("GaussianCounts", GaussianCounts(0.5), small, 0.5, SMALL),
    ):
        found.append(Case(SOUND, name, mechanism, pair, loss, size, "never"))
    for name, one in known.items():
        if one.sound:
            pair = NeighborPair.declared(one.x, one.y, "add_remove")
            found.append(Case(SOUND, name, one.mechanism, pair, one.loss, SOUND_SIZE, "never"))
    return found


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Audit what is broken 5 times and what is sound 20 times (quick: once, and without the large ones)."""
    tasks = []
    for case, stream in zip(cases(), np.random.SeedSequence(seed).spawn(len(cases())), strict=True):
        if not quick or case.size <= SMALL:
            audits = 1 if quick else 20 if case.group == SOUND else 5
            tasks.append(delayed(_row)(case, stream.spawn(audits)))
    rows = []
    with progress_bar("known bugs", len(tasks), unit="exhibits") as advance:
        for row in Parallel(n_jobs=jobs, return_as="generator")(tasks):
            rows.append(row)
            advance(1)
    return {"rows": rows, "confidence": CONFIDENCE}


def _row(case: Case, streams: list[np.random.SeedSequence]) -> dict[str, Any]:
    return {
        "group": case.group,
        "name": case.name,
        "claim": case.mechanism.claim.budget,
        "parameter": case.mechanism.claim.parameter,
        "loss": plain_number(case.loss),
        "expected": case.found,
        "size": case.size,
        "distance": case.pair.distance,
        "audits": [_audit(case, stream) for stream in streams],
    }


def _audit(case: Case, stream: np.random.SeedSequence) -> dict[str, Any]:
    """Return what one audit says; a refusal is told in its own words."""
    try:
        result = measure_loss(
            case.mechanism, case.pair, case.mechanism.claim, size=case.size, confidence=CONFIDENCE, rng=stream
        )
    except ValueError as error:
        return {"verdict": "refused", "forced": None, "witness": None, "event": str(error)}
    return {
        "verdict": result.verdict,
        "forced": plain_number(result.measured.budget),
        "witness": None if result.support is None else result.support["probability"],
        "event": result.event,
    }


def caught(row: dict[str, Any], audit: dict[str, Any]) -> bool:
    """Tell whether an audit caught a bug, in the way that is expected of it."""
    if audit["verdict"] == "refused":
        return row["expected"] == "refused" and ("rng" in audit["event"] or "independent" in audit["event"])
    if audit["verdict"] != "violated":
        return False
    # A clock that ticks while the audit looks for it hides a seed of seconds: then the witness is left.
    return float(audit["forced"]) > row["claim"] if row["expected"] == "counts" else audit["witness"] is not None


def forced(row: dict[str, Any]) -> list[float]:
    """Return what the audits forced, without those that were refused."""
    return [float(audit["forced"]) for audit in row["audits"] if audit["forced"] is not None]


def check(numbers: dict[str, Any]) -> list[Check]:
    """Hold every verdict against what is known, and every bound against the true loss."""
    found = []
    for row in numbers["rows"]:
        audits, what = row["audits"], f"{row['group']}, {row['name']}"
        if row["group"] == SOUND:
            verdicts = sorted({audit["verdict"] for audit in audits})
            words = f"{what}: {len(audits)} audits say {', '.join(verdicts)}; expected not refuted"
            found.append(Check(words, verdicts == ["not refuted"]))
        else:
            times = sum(caught(row, audit) for audit in audits)
            words = f"{what}: {times} of {len(audits)} audits catch it ({row['expected']}), expected all"
            found.append(Check(words, times == len(audits)))
        largest, loss = max(forced(row), default=0.0), float(row["loss"])
        words = f"{what}: at most {largest:.4g} forced, expected no more than the true loss of {loss:.4g}"
        found.append(Check(words, largest <= loss))
    return found


def finding(numbers: dict[str, Any]) -> str:
    """Return how many were caught, how, and how often a sound algorithm was accused."""
    rows = numbers["rows"]
    bad = [row for row in rows if row["group"] != SOUND]
    good = [audit for row in rows if row["group"] == SOUND for audit in row["audits"]]
    always = [row for row in bad if all(caught(row, audit) for audit in row["audits"])]
    by = {how: sum(row["expected"] == how for row in always) for how in ("counts", "witness", "refused")}
    closest = min((row for row in bad if row["expected"] == "counts"), key=lambda row: min(forced(row)) / row["claim"])
    audits = sum(len(row["audits"]) for row in bad)
    return (
        f"{len(always)} of {len(bad)} broken algorithms are caught in every one of {audits} audits at confidence "
        f"1 - 1e-6: {by['counts']} by counting runs, {by['witness']} by a witness in the exact law alone, "
        f"{by['refused']} refused because their runs are not independent. The narrowest is {closest['name']}, of "
        f"which {closest['size']:,} runs force {min(forced(closest)) / closest['claim']:.2f} of its promise. Of "
        f"{len(good)} audits of sound algorithms {sum(audit['verdict'] == 'violated' for audit in good)} accuse."
    )


HEADINGS = {BUGS: "a", CLASSICS: "b", SOUND: "c"}
END, INFINITY = 150.0, 330.0  # in units of the promise: where finite losses end on the axis, and where infinity is


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw what is forced and what is true in units of the promise: one row an algorithm."""
    columns = [(BUGS,), (CLASSICS, SOUND)]
    figure, axes = new_figure(11.4, 7.6, 1, 2)
    tallest = 0.0
    for ax, groups in zip(axes, columns, strict=True):
        place, ticks = -0.4, {}
        for group in groups:
            place += 1.4
            words = f"({HEADINGS[group]}) {group}"
            ax.text(-0.02, place, words, ha="right", va="center", weight="bold", transform=ax.get_yaxis_transform())
            for row in numbers["rows"]:
                if row["group"] == group:
                    place += 1
                    ticks[place] = row["name"] + (f", {row['distance']} at once" if row["distance"] > 1 else "")
                    _draw_row(ax, row, place)
        tallest = max(tallest, place)
        ax.set_yticks(list(ticks), list(ticks.values()), fontsize=8)
    for ax in axes:
        _draw_scale(ax, tallest + 0.7)
    figure.legend(handles=_legend(), loc="outside lower center", ncols=3, fontsize=8.5, columnspacing=1.6)
    return figure


def _draw_row(ax: Axes, row: dict[str, Any], at: float) -> None:
    values, claim, loss = [value / row["claim"] for value in forced(row)], row["claim"], float(row["loss"])
    sound = row["group"] == SOUND
    if values:
        color, hatch = (BLUE, "") if sound else (ORANGE, "//")
        style: dict[str, Any] = {"color": color, "height": 0.62, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
        ax.barh(at, float(np.median(values)), **style)
        ax.plot([min(values), max(values)], [at, at], color=BLACK, linewidth=1.1, zorder=3)
    else:
        box = {"facecolor": "white", "linewidth": 0, "pad": 1.0}
        ax.text(0.03, at, "refused: the runs are not independent", va="center", fontsize=7.5, bbox=box, zorder=3)
    witness = any(audit["witness"] is not None for audit in row["audits"])
    shown = INFINITY if math.isinf(loss) else min(loss / claim, END)
    ax.plot(
        shown,
        at,
        marker="D",
        color=BLACK,
        markerfacecolor=BLACK if witness or math.isfinite(loss) else "white",
        markersize=4.2,
        linestyle="none",
        zorder=4,
        clip_on=False,
    )
    if shown == END:
        ax.text(END / 1.25, at, f"{loss / claim:,.0f}", ha="right", va="center", fontsize=7.5)
    ax.text(1.16, at, f"{row['size']:,}", ha="right", va="center", fontsize=7.5, transform=ax.get_yaxis_transform())


def _draw_scale(ax: Axes, bottom: float) -> None:
    """Draw an axis that is linear up to the promise and logarithmic beyond, with infinity at its end."""
    ax.axvline(1, color=BLACK, linewidth=1.3, zorder=2)
    ax.axvline(INFINITY, color=BLACK, linewidth=0.5, linestyle=":", zorder=0)
    ax.set_xscale("function", functions=(_stretched, _restored))
    ticks = {0.0: "0", 0.5: "0.5", 1.0: "1", 2.0: "2", 5.0: "5", 10.0: "10", 30.0: "30", 100.0: "100"}
    ax.set_xticks([*ticks, INFINITY], [*ticks.values(), "$\\infty$"])
    ax.minorticks_off()
    ax.set_xlim(0, INFINITY * 1.02)
    ax.set_ylim(bottom, 0.2)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("privacy loss in units of the promise")
    ax.text(1.16, 0.9, "runs", ha="right", va="center", fontsize=7.5, transform=ax.get_yaxis_transform())


def _stretched(loss: Any) -> Any:
    return np.where(loss <= 1, loss, 1 + np.log(np.maximum(loss, 1)))


def _restored(place: Any) -> Any:
    return np.where(place <= 1, place, np.exp(np.maximum(place, 1) - 1))


def _legend() -> list[Any]:
    diamond: dict[str, Any] = {"marker": "D", "color": BLACK, "markersize": 4.2, "linestyle": "none"}
    confidence = "confidence $1 - 10^{-6}$"
    return [
        Patch(
            facecolor=ORANGE, hatch="//", edgecolor="white", linewidth=0, label=f"forced of the broken, {confidence}"
        ),
        Patch(facecolor=BLUE, label=f"forced of the sound, {confidence}"),
        Line2D([], [], color=BLACK, linewidth=1.1, label="lowest to highest of the audits (bar: median)"),
        Line2D([], [], color=BLACK, linewidth=1.3, label="promise"),
        Line2D([], [], **diamond, label="true loss; where infinite: the audit has a witness"),
        Line2D([], [], **diamond, markerfacecolor="white", label="infinite, and the audit has no witness"),
    ]
