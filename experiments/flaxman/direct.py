"""The direct estimate of Flaxman (2019) for both of its events, with 500 + 500 runs, compared with audits."""

from __future__ import annotations

import time
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure

from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.population import uniform_population
from audit import Attack, NeighborPair, direct_loss
from audit.events import cell
from audit.results.plots import BLACK, PROMISE
from experiments.audits import audited, opened, share
from experiments.drawing import CIRCLE, bar, bar_key, beside, head, line_key, name_rows, own_keys, page, promise, styles
from experiments.experiment import Check, Checks, Numbers, between, down

EPSILON, AREA, OTHER = 0.1, 0, 1001
ERRORS = np.arange(-8, 9)
EVENTS: tuple[Literal["equal", "at_least"], ...] = ("equal", "at_least")
RUNS, REPETITIONS = 500, 20  # the paper's runs on each database; repetitions
SIZES = {"GDPC": 4_000_000, "RDPC": 1_200_000, "ADPC": 4_000_000}
GROUPS = {"GDPC": 20, "RDPC": 80, "ADPC": 47}  # people moved at once: about two standard deviations of the error
STYLES = styles(("GDPC", "RDPC", "ADPC"), markersize=3, linewidth=0.7)


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Repeat the paper's runs 20 times; audit with millions of runs, and groups with 1,000 runs (quick: fewer)."""
    # GDPC and ADPC add independent noise to every area, so it is enough to run the one area.
    streams = np.random.SeedSequence(seed).spawn(5)
    rng = np.random.default_rng(streams[0])
    tree, counts = uniform_population(1_000_000, 3, 100, rng)
    mechanisms: dict[str, Any] = {"GDPC": GDPC(EPSILON), "RDPC": RDPC(EPSILON, tree), "ADPC": ADPC(EPSILON)}
    moved = NeighborPair.move_people(counts, AREA, OTHER)
    attack = Attack(statistics=(cell(AREA),), families=("threshold",))

    begun = time.perf_counter()
    paper: dict[str, Any] = {name: {event: {"largest": []} for event in EVENTS} for name in mechanisms}
    repetitions = 2 if quick else REPETITIONS
    for repetition in range(repetitions):
        for name, mechanism in mechanisms.items():
            x, y = (mechanism(data, RUNS, rng)[:, AREA] for data in (moved.x, moved.y))
            for event, own in paper[name].items():
                estimate = direct_loss(x, y, counts[AREA], at=ERRORS, event=event)
                own["largest"].append(estimate.value)
                if repetition == 0:
                    own["curve"] = estimate.to_dict()
    seconds = (time.perf_counter() - begun) / repetitions

    one, groups = {}, {}
    options: dict[str, Any] = {"attack": attack, "jobs": jobs}
    for stream, (name, mechanism) in zip(streams[1:4], mechanisms.items(), strict=True):
        first, *others = stream.spawn(1 + (3 if quick else 25))
        pair = NeighborPair.add_people(counts if name == "RDPC" else counts[[AREA]], AREA)
        size = 4_000 if quick else SIZES[name]
        one[name] = audited(mechanism, pair, mechanism.claim, size=size, confidence=0.999, rng=first, **options)
        pair = NeighborPair.add_people(counts, AREA, GROUPS[name])
        groups[name] = [
            audited(mechanism, pair, mechanism.claim, size=1000, confidence=0.95, rng=other, **options)
            for other in others
        ]
    return {"paper": paper, "paper_seconds": seconds, "one_person": one, "groups": groups}


def check(numbers: Numbers) -> Checks:
    for name, events in numbers["paper"].items():
        largest = {event: float(np.median(own["largest"])) / EPSILON for event, own in events.items()}
        yield between(f"{name}: largest log-ratio of errors of exactly k / budget", largest["equal"], 4, 30)
        yield between(f"{name}: largest log-ratio of errors of k or more / budget", largest["at_least"], 0, 4)
        curve = events["at_least"]["curve"]
        low, high = (np.array(curve[end], float) for end in ("low", "high"))
        inside = bool(((low <= EPSILON) & (high >= -EPSILON)).all())
        yield Check(f"{name}: no interval of errors of k or more lies beyond the budget", inside)
        words = f"{name}, 500 + 500 runs: narrowest 95% interval is {_narrowest(curve):.2g} budgets wide"
        yield Check(f"{words}, expected above 2", _narrowest(curve) > 2)
    enough = opened(numbers["one_person"]["GDPC"]).size > 100_000
    expected = {"GDPC": (0.87, 1.0), "RDPC": (0.1, 0.27), "ADPC": (0.35, 0.66)}
    for name, saved in numbers["one_person"].items():
        words = f"{name}, one person, {opened(saved).size:,} runs: lower bound / budget"
        yield between(words, share(saved), *(expected[name] if enough else (0.0, 1.0)))
    expected = {"GDPC": (0.72, 1.0), "RDPC": (0.17, 0.27), "ADPC": (0.35, 0.75)}
    for name, saves in numbers["groups"].items():
        words = f"{name}, groups of {GROUPS[name]}, 1,000 runs: lower bound / budget, median of {len(saves)}"
        yield between(words, float(np.median(list(map(share, saves)))), *expected[name])


def _narrowest(curve: dict[str, Any]) -> float:
    return float(np.nanmin(np.array(curve["high"], float) - np.array(curve["low"], float))) / EPSILON


def facts(numbers: Numbers) -> dict[str, Any]:
    one = ", ".join(f"{down(share(saved))} of {name}'s" for name, saved in numbers["one_person"].items())
    sizes = [opened(saved).size for saved in numbers["one_person"].values()]
    rows = [
        (
            name,
            *(f"{np.median(events[event]['largest']) / EPSILON:.1f}" for event in EVENTS),
            down(share(numbers["one_person"][name])),
            down(np.median(list(map(share, numbers["groups"][name])))),
        )
        for name, events in numbers["paper"].items()
    ]
    narrowest = _narrowest(numbers["paper"]["GDPC"]["at_least"]["curve"])
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, (top, below) = page(5.0, 2, 1)
    for shift, (name, events) in zip((-0.22, 0.0, 0.22), numbers["paper"].items(), strict=True):
        curve = events["at_least"]["curve"]
        k, loss, low, high = (np.array(curve[key], float) for key in ("at", "loss", "low", "high"))
        top.errorbar(k + shift, loss, [loss - low, high - loss], label=name, **STYLES[name] | {"linestyle": "none"})
    for level in (-EPSILON, EPSILON):
        top.axhline(level, **PROMISE)
    top.set(xticks=ERRORS[::2], xlabel="k (people), errors of area 0", ylabel="log-ratio (nats)")
    title = f"(a) error of k or more: estimates of {RUNS} + {RUNS} runs (lines: 95%)"
    head(top, title, [*own_keys(top), line_key("$\\pm\\epsilon$, promised", **PROMISE)], ncols=4)
    names: list[str] = []
    for name in STYLES:
        one, groups = numbers["one_person"][name], [share(saved) for saved in numbers["groups"][name]]
        middle, at = float(np.median(groups)), len(names)
        bar(below, at, share(one))
        beside(below, at, down(share(one), 2), x=0.01, color="white")
        below.plot(groups, at + 1 + np.linspace(-0.25, 0.25, len(groups)), **CIRCLE, markersize=2.5)
        below.plot([middle] * 2, [at + 0.67, at + 1.33], color=BLACK, linewidth=1.8)
        beside(below, at + 1, down(middle, 2), x=1.01)
        names += [f"{name}: one person, {opened(one).size:,} runs", f"{name}: {GROUPS[name]} people, 1,000 runs"]
    promise(below)
    name_rows(below, names)
    below.set(xlim=(0, 1.1), xlabel="lower bound for one person, in units of $\\epsilon$")
    handles = [
        bar_key("one person: confidence 99.9%"),
        line_key(f"a group: {len(groups)} audits at 95%", **CIRCLE, markersize=3),
        line_key("their median, written beside", color=BLACK, linewidth=1.8),
        line_key("promise", **PROMISE),
    ]
    head(below, "(b) what answers the question: audits", handles, ncols=2)
    return figure
