"""The direct estimate of Flaxman (2019): why 500 + 500 runs said nothing, and what does say something."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.population import uniform_population
from audit.attacks import Attack
from audit.estimates.direct import direct_loss
from audit.events import cell
from audit.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.results import AuditResult
from audit.results.plots import BLACK, BLUE, GREEN, ORANGE, new_figure
from experiments.experiment import Check, between

QUESTION = "Why was the direct estimate of 500 + 500 runs uninterpretable, and what answers the same question?"
EXPECTATION = (
    "With the paper's runs the interval of every log-ratio is wider than the budget itself. Enough runs, or as "
    "few as the paper's on databases that differ by a group, force most of GDPC's 0.1 in one area; of RDPC they "
    "show its leaf level's quarter, of ADPC about half."
)

EPSILON, AREA, OTHER = 0.1, 0, 1001
ERRORS = np.arange(-8, 9)
SIZES = {"GDPC": 4_000_000, "RDPC": 1_200_000, "ADPC": 4_000_000}
GROUPS = {"GDPC": 20, "RDPC": 80, "ADPC": 47}  # people moved at once: about two standard deviations of the error
STYLES = {"GDPC": (BLUE, "o"), "RDPC": (ORANGE, "s"), "ADPC": (GREEN, "^")}
EVENT_CLASS = "thresholds on the count of one area"


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Repeat the paper's runs, then ask with millions of runs (quick: 4,000), and with groups and 1,000 runs.

    GDPC and ADPC treat every area by itself, so that millions of runs of the one area are as good as those of all.
    """
    streams = np.random.SeedSequence(seed).spawn(5)
    rng = np.random.default_rng(streams[0])
    tree, counts = uniform_population(1_000_000, 3, 100, rng)
    mechanisms: dict[str, GDPC | RDPC | ADPC] = {
        "GDPC": GDPC(EPSILON),
        "RDPC": RDPC(EPSILON, tree),
        "ADPC": ADPC(EPSILON),
    }
    moved = NeighborPair.move_people(counts, AREA, OTHER)
    attack = Attack(statistics=(cell(AREA),), families=("threshold",))

    begun = time.perf_counter()
    paper = {}
    for name, mechanism in mechanisms.items():
        x, y = (mechanism(data, 500, rng)[:, AREA] for data in (moved.x, moved.y))
        paper[name] = direct_loss(x, y, counts[AREA], at=ERRORS).to_dict()
    seconds = time.perf_counter() - begun

    one, groups = {}, {}
    for stream, (name, mechanism) in zip(streams[1:4], mechanisms.items(), strict=True):
        first, *others = stream.spawn(1 + (3 if quick else 25))
        pair = NeighborPair.add_people(counts if name == "RDPC" else counts[[AREA]], AREA)
        size = 4_000 if quick else SIZES[name]
        one[name] = measure_loss(
            mechanism,
            pair,
            mechanism.claim,
            attack=attack,
            size=size,
            confidence=0.999,
            rng=first,
            n_jobs=jobs,
            progress=True,
        ).to_dict()
        group = NeighborPair.add_people(counts, AREA, GROUPS[name])
        groups[name] = [
            measure_loss(
                mechanism, group, mechanism.claim, attack=attack, size=1000, rng=other, n_jobs=jobs, progress=True
            ).to_dict()
            for other in others
        ]
    return {"paper": paper, "paper_seconds": seconds, "one_person": one, "groups": groups, "event_class": EVENT_CLASS}


def check(numbers: dict[str, Any]) -> list[Check]:
    """Hold interval widths and bounds against the budget."""
    found = []
    for name, curve in numbers["paper"].items():
        width = np.array(curve["high"], float) - np.array(curve["low"], float)
        narrowest = float(np.nanmin(width)) / EPSILON
        found.append(
            Check(
                f"{name}, 500 + 500 runs: narrowest 95% interval is {narrowest:.2g} budgets wide, expected above 2",
                narrowest > 2,
            )
        )
    enough = AuditResult.from_dict(numbers["one_person"]["GDPC"]).size > 100_000
    expected = {"GDPC": (0.87, 1.0), "RDPC": (0.1, 0.27), "ADPC": (0.35, 0.66)}
    for name, saved in numbers["one_person"].items():
        result = AuditResult.from_dict(saved)
        low, high = expected[name] if enough else (0.0, 1.0)
        found.append(
            between(
                f"{name}, one person, {result.size:,} runs: forced / budget",
                result.measured.budget / EPSILON,
                low,
                high,
            )
        )
    expected = {"GDPC": (0.72, 1.0), "RDPC": (0.17, 0.27), "ADPC": (0.35, 0.75)}
    for name, saves in numbers["groups"].items():
        forced = float(np.median([AuditResult.from_dict(saved).measured.budget for saved in saves]))
        what = f"{name}, groups of {GROUPS[name]}, 1,000 runs: forced / budget, median of {len(saves)}"
        found.append(between(what, forced / EPSILON, *expected[name]))
    return found


def finding(numbers: dict[str, Any]) -> str:
    """Return the width of the paper's intervals and what was forced instead."""
    curve = numbers["paper"]["GDPC"]
    narrowest = np.nanmin(np.array(curve["high"], float) - np.array(curve["low"], float)) / EPSILON
    one = {name: AuditResult.from_dict(saved) for name, saved in numbers["one_person"].items()}
    groups = {
        name: float(np.median([AuditResult.from_dict(saved).measured.budget for saved in saves])) / EPSILON
        for name, saves in numbers["groups"].items()
    }
    return (
        f"With 500 + 500 runs the narrowest 95% interval for GDPC is {narrowest:.1f} budgets wide (all three in "
        f"{numbers['paper_seconds']:.1f} s; the author's notebook of 2019: 1 h 51 min). "
        "From one area, one person forces "
        + ", ".join(
            f"{result.measured.budget / EPSILON:.2f} of {name}'s budget with {result.size:,} runs"
            for name, result in one.items()
        )
        + " at 99.9%; 1,000 runs on groups force "
        + ", ".join(f"{groups[name]:.2f} of {name}'s" for name in groups)
        + " at 95% (medians)."
    )


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw the paper's log-ratios with their intervals, and what answers the question instead."""
    figure, (left, right) = new_figure(9.0, 3.8, 1, 2)
    for shift, (name, curve) in zip((-0.22, 0.0, 0.22), numbers["paper"].items(), strict=True):
        color, marker = STYLES[name]
        at, loss, low, high = (np.array(curve[key], float) for key in ("at", "loss", "low", "high"))
        left.errorbar(
            at + shift,
            loss,
            [loss - low, high - loss],
            color=color,
            marker=marker,
            markersize=3,
            linewidth=0.7,
            linestyle="none",
            label=name,
        )
    for level in (-EPSILON, EPSILON):
        left.axhline(level, color=BLACK, linewidth=1, linestyle="--")
    for level, words in ((-EPSILON, "$-\\epsilon$"), (EPSILON, "$\\epsilon$")):
        left.text(1.01, level, words, va="center", transform=left.get_yaxis_transform())
    left.set_xticks(ERRORS[::2])
    left.set_title("(a) 500 + 500 runs: point estimates, pointwise 95%")
    left.set_xlabel("event: error of area 0 at least k (people)")
    left.set_ylabel("log-ratio of frequencies (nats)")
    left.legend(loc="upper left", ncols=3)
    left.set_ylim(-0.62, 0.75)

    for place, name in enumerate(STYLES):
        color, marker = STYLES[name]
        one = AuditResult.from_dict(numbers["one_person"][name])
        forced = [AuditResult.from_dict(saved).measured.budget / EPSILON for saved in numbers["groups"][name]]
        right.bar(place - 0.2, one.measured.budget / EPSILON, width=0.36, color=color)
        right.text(
            place - 0.2,
            one.measured.budget / EPSILON - 0.015,
            f"{one.measured.budget / EPSILON:.2f}",
            ha="center",
            va="top",
            fontsize=8,
            color="white" if color == BLUE else BLACK,
        )
        right.plot(
            np.linspace(place + 0.08, place + 0.36, len(forced)),
            forced,
            marker=marker,
            markersize=2.5,
            color=color,
            linestyle="none",
        )
        right.plot([place + 0.04, place + 0.4], [np.median(forced)] * 2, color=BLACK, linewidth=1.4)
        right.text(place + 0.22, min(forced) - 0.02, f"{np.median(forced):.2f}", ha="center", va="top", fontsize=8)
    right.axhline(1, color=BLACK, linewidth=1, linestyle="--")
    sizes = {name: AuditResult.from_dict(saved).size for name, saved in numbers["one_person"].items()}
    right.set_xticks(range(len(STYLES)), [f"{name}\n{sizes[name]:,} runs\ngroups of {GROUPS[name]}" for name in STYLES])
    right.set_xlim(-0.6, 2.75)
    right.set_ylim(0, 1.15)
    right.set_ylabel("forced loss / $\\epsilon$ (at least)")
    right.set_title("(b) bars: one person, many runs, 99.9%;\npoints: groups, 1,000 runs each, 95% (line: median)")
    return figure
