"""Our lower bounds beside the truth, and beside what other auditors have published of the same mechanisms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.benchmarks import benchmarks
from algorithms.benchmarks.noisy_answers import Laplace
from algorithms.bugs.budget import HalfNoiseGDPC
from algorithms.flaxman import GDPC
from audit import Attack, NeighborPair, measure_loss
from audit.results import plain_number
from audit.results.plots import BLACK, BLUE, GRAY, PURPLE
from experiments.audits import all_or_none, bounds, group_pair, kept, median, repeat
from experiments.drawing import BOX, bare_rows, beside, column, extent, foot, line_key, name_rows, page
from experiments.experiment import Check, Checks, Numbers, between, down, few_misses, published

CONFIDENCE = 0.95
LAWS = Attack.without("precision")  # published algorithms are audited here, not the floats that their noise is made of
COUNTING = 1_200_000  # expected counting runs over both databases, as the others have
SCALAR_SIZE = round(COUNTING / 0.7)
SIZE = 1_000_000
SIZES = {"TruncatedGeometric": 500_000, "NoisyHist2": 4_000_000}
GROUP = 40
TOLD, OUTPUTS = "told the likelihood", "outputs only"
QUICK = 20  # the quick form makes as many times fewer runs

# Bounds of others are cited, not measured here. By auditor and count: two numbers are a range or two repeats.
SCALAR_PEERS: dict[str, dict[str, list[float]]] = published("auditors of one count")
# By benchmark: DP-Sniper's bounds with the logistic classifier and with the network, StatDP's events, and seconds.
CLASSIC_PEERS: dict[str, tuple[float, float, list[float], list[int | None]]] = published("auditors of benchmarks")
GROUPED = f"LaplaceParallel, {GROUP} at once"

# What a median of many audits must reach: one of a few is let off by 4 of its standard errors.
TARGETS = {
    "geometric 0.1": 0.0966,
    "geometric 1": 0.9961,
    "Laplace 0.1": 0.0955,
    "Laplace 1": 0.993,
    "NoisyHist2": 9.5,
    GROUPED: 0.058,
    "PrefixSum": 0.85,
}
FOUND = ("bug 0.1", "bug 1", "TruncatedGeometric")
UNBOUNDED = ("SVT5", "ReportNoisyMax4")


@dataclass(frozen=True)
class Case:
    """A mechanism on a pair, and what it loses there for one step, in nats."""

    name: str
    mechanism: Any
    pair: NeighborPair
    loss: float
    size: int


def scalars() -> list[Case]:
    """Return one noisy count, 1 against 0, with the noise it needs and with half of it."""
    pair = NeighborPair.add_people([0], 0)
    return [
        Case(f"{name} {epsilon:g}", kind(epsilon), pair, factor * epsilon, SCALAR_SIZE)
        for name, kind, factor in (("geometric", GDPC, 1), ("Laplace", Laplace, 1), ("bug", HalfNoiseGDPC, 2))
        for epsilon in (0.1, 1.0)
    ]


def known_classics() -> list[Case]:
    """Return the benchmark mechanisms of the literature, and one of them on a group."""
    cases = []
    for name, known in benchmarks().items():
        cases.append(Case(name, known.mechanism, group_pair(known), known.loss, SIZES.get(name, SIZE)))
        if name == "LaplaceParallel":
            cases.append(Case(GROUPED, known.mechanism, group_pair(known, GROUP), known.loss, SIZE))
    return cases


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit a noisy count 100 times, and benchmarks 20 times or 5 (quick: 3 and 1, with fewer runs).

    Where a mechanism offers its likelihood, it is audited without it too, as the others had to: benchmarks once.
    """
    streams = iter(np.random.SeedSequence(seed).spawn(4))
    rows, tasks = [], []
    for panel, cases in (("scalar", scalars()), ("classic", known_classics())):
        for mode, chosen in ((TOLD, [c for c in cases if hasattr(c.mechanism, "log_likelihood")]), (OUTPUTS, cases)):
            once = panel == "classic" and mode == OUTPUTS
            for case, stream in zip(chosen, next(streams).spawn(len(chosen)), strict=True):
                if quick and once:
                    continue
                size = case.size // QUICK if quick else min(case.size, SIZE) if once else case.size
                row = {"panel": panel, "name": case.name, "mode": mode, "claim": case.mechanism.claim.budget}
                rows.append({**row, "loss": plain_number(case.loss), "size": size})
                tasks.append(((mode, case, size), stream, _audits(panel, mode, case.name, quick)))
    audits = repeat(_audit, *zip(*tasks, strict=True), jobs=jobs, words="scoreboard")
    return {"rows": [{**row, "audits": own} for row, own in zip(rows, audits, strict=True)], "quick": quick}


def _audits(panel: str, mode: str, name: str, quick: bool) -> int:
    """Return how many audits of a case there are: many where a median is held against a target."""
    if panel == "scalar":
        return 3 if quick else 100
    if mode == OUTPUTS or quick:
        return 1
    return 20 if name in TARGETS else 5


def _audit(mode: str, case: Case, size: int, stream: np.random.SeedSequence) -> dict[str, Any]:
    mechanism, claim = case.mechanism, case.mechanism.claim
    if mode == OUTPUTS:
        mechanism = partial(mechanism)  # which has no likelihood
    result = measure_loss(mechanism, case.pair, claim, attack=LAWS, size=size, confidence=CONFIDENCE, rng=stream)
    return {**kept(result), "seconds": result.seconds}


def ours(numbers: Numbers, name: str) -> dict[str, Any]:
    """Return our row of a mechanism: with its likelihood, where it offers one."""
    return min((row for row in numbers["rows"] if row["name"] == name), key=lambda row: row["mode"] != TOLD)


def check(numbers: Numbers) -> Checks:
    for name, target in () if numbers["quick"] else TARGETS.items():
        values = bounds(ours(numbers, name)["audits"])
        error = 1.2533 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
        what = f"{name}: median of {len(values)}, standard error {error:.2g}; many must reach {target:g}"
        yield between(what, float(np.median(values)), target - 4 * error, float(ours(numbers, name)["loss"]))
    for name in FOUND[:2] if numbers["quick"] else FOUND:
        yield all_or_none(name, ours(numbers, name)["audits"], violated=True)
    for name in UNBOUNDED:
        audits = ours(numbers, name)["audits"]
        holds = all(
            a["verdict"] == "violated" and a["witness"] and math.isfinite(float(a["lower_bound"])) for a in audits
        )
        yield Check(f"{name}: unbounded by the exact law; lower bound by counting {down(median(audits))}", holds)
    yield few_misses("all audits", *_misses(numbers), CONFIDENCE)


def _misses(numbers: Numbers) -> tuple[int, int]:
    above = [value > float(row["loss"]) for row in numbers["rows"] for value in bounds(row["audits"])]
    return sum(above), len(above)


def facts(numbers: Numbers) -> dict[str, Any]:
    misses, audits = _misses(numbers)
    geometric = ("geometric 0.1", "geometric 1")
    proved, theirs = [_proved(numbers, name) for name in geometric], [_best(name) for name in geometric]
    words = {
        "geometric 0.1": "geometric noise",
        "geometric 1": "geometric noise",
        "Laplace 0.1": "Laplace noise",
        "Laplace 1": "Laplace noise",
        "PrefixSum": "prefix sums",
        "LaplaceParallel": "parallel Laplace noise, one person",
        GROUPED: f"parallel Laplace noise, {GROUP} people",
    }
    rows = []
    for name, what in words.items():
        loss, size = (ours(numbers, name)[key] for key in ("loss", "size"))
        rows.append((what, f"{float(loss):g}", f"{size:,}", _proved(numbers, name), _best(name.partition(",")[0])))
    finite = [name for name in CLASSIC_PEERS if name not in UNBOUNDED]
    more = sum(median(ours(numbers, name)["audits"]) > float(_best(name)) for name in finite)
    bugs = [audit for name in FOUND[:2] for audit in ours(numbers, name)["audits"]]
    proved_of_sums, best_of_sums = _proved(numbers, "PrefixSum"), _best("PrefixSum")
    return locals()


def _proved(numbers: Numbers, name: str, digits: int = 4) -> str:
    return down(median(ours(numbers, name)["audits"]), digits)


def _best(name: str) -> str:
    bounds_of_peers = [bound for bounds_ in _cited(name).values() for bound in bounds_]
    return f"{max(bounds_of_peers):g}" if bounds_of_peers else ""


MARKER: dict[str, Any] = {"markersize": 6, "linestyle": "none", "clip_on": False, "zorder": 3}
STYLES: dict[str, dict[str, Any]] = {
    TOLD: {"marker": "o", "color": BLUE, "markersize": 6.5, "zorder": 5},
    OUTPUTS: {"marker": "o", "color": BLUE, "markerfacecolor": "white", "markersize": 6.5, "zorder": 4},
}
LABELS = {TOLD: "plaudit, with the likelihood", OUTPUTS: "plaudit, outputs only"}
THEIRS: dict[str, Any] = {"marker": "D", "color": PURPLE, "markersize": 5}
TICKS = (0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 1)
END = 1.006  # of the axis: what is farther above the truth is drawn there
NEAREST = 1.02  # where the stretched scale would end
COLUMNS = {"plaudit": 36, "logistic": 74, "network": 115, "StatDP": 150}  # points right of the axes


def draw(numbers: Numbers) -> Figure:
    panels = {panel: _names(numbers, panel) for panel in ("scalar", "classic")}
    figure, axes = page(
        2.6 + 0.28 * sum(map(len, panels.values())), 2, 1, heights=[len(names) + 0.3 for names in panels.values()]
    )
    for ax, names in zip(axes, panels.values(), strict=True):
        for place, name in enumerate(names):
            _draw_row(ax, numbers, name, place)
        name_rows(ax, [_label(numbers, name) for name in names], top=-0.7, size=8)
        ax.set_xscale("function", functions=(_stretched, _restored))
        ax.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS], fontsize=8)
        ax.minorticks_off()
        ax.set_xlim(-0.01, END)
        ax.axvline(1, color=BLACK, linewidth=0.8, zorder=0)
        ax.grid(axis="y", color=GRAY, alpha=0.25, linewidth=0.6)
        bare_rows(ax)
    top, below = axes
    for ax, named in ((top, ["plaudit"]), (below, list(COLUMNS))):
        for name in named:
            column(ax, -0.8, name, COLUMNS[name], style="italic")
        column(ax, -1.7, "seconds", COLUMNS[named[-1]], style="italic")
    size, many = ours(numbers, "geometric 0.1")["size"], ours(numbers, "Laplace")["size"]
    top.set_title(f"(a) one noisy count (true loss)\n{size:,} runs, 95%; cited: about as many, 95%", pad=14, x=-0.4)
    below.set_title(f"(b) benchmarks (true loss)\n{many:,} runs, 95%; cited: 200 million or more, 90%", pad=14, x=-0.4)
    below.set_xlabel(
        "lower bound / true loss (vertical line: all of it)\nmedian of audits; log scale of what is missing"
    )
    handles = [line_key(LABELS[mode], **(MARKER | style)) for mode, style in STYLES.items()]
    handles.append(line_key("best that others published", **(MARKER | THEIRS)))
    handles.append(line_key("from their least to their best", color=PURPLE, linewidth=1.1))
    words = "others: DP-Sniper, StatDP, Delta-Siege, DP-Auditorium, jax_privacy, privacy-estimates"
    foot(figure, handles, ncols=2, words=words)
    return figure


def _names(numbers: Numbers, panel: str) -> list[str]:
    return list(dict.fromkeys(row["name"] for row in numbers["rows"] if row["panel"] == panel))


def _label(numbers: Numbers, name: str) -> str:
    row, usual = ours(numbers, name), ours(numbers, "Laplace")["size"]
    loss = "$\\infty$" if math.isinf(float(row["loss"])) else f"{float(row['loss']):.3g}"
    other = row["panel"] == "classic" and row["size"] != usual
    return f"{name} ({loss})" + (f"\n{row['size']:,} runs" if other else "")


def _draw_row(ax: Axes, numbers: Numbers, name: str, at: int) -> None:
    rows = [row for row in numbers["rows"] if row["name"] == name]
    loss = float(rows[0]["loss"])
    cited = [bound for bounds_ in _cited(name).values() for bound in bounds_]
    if math.isinf(loss):
        words = f"from runs alone {_proved(numbers, name, 3)} (cited: {min(cited):.3g} to {max(cited):.3g})"
        beside(ax, at, f"unbounded; {words}", x=0.01, size=8, bbox=BOX)
    else:
        if cited:
            extent(ax, [min(bound / loss, END) for bound in cited], at, PURPLE)
            ax.plot(min(max(cited) / loss, END), at, **(MARKER | THEIRS))
        for row in rows:
            ax.plot(median(row["audits"]) / loss, at, **(MARKER | STYLES[row["mode"]]))
    seconds = float(np.median([audit["seconds"] for audit in ours(numbers, name)["audits"]]))
    column(ax, at, f"{seconds:.1f}", COLUMNS["plaudit"])
    if name in CLASSIC_PEERS:
        for who, other in zip(list(COLUMNS)[1:], CLASSIC_PEERS[name][3], strict=True):
            column(ax, at, "" if other is None else f"{other:,}", COLUMNS[who])


def _cited(name: str) -> dict[str, list[float]]:
    if name not in CLASSIC_PEERS:
        return {who: of_counts[name] for who, of_counts in SCALAR_PEERS.items() if name in of_counts}
    logistic, network, verified, _ = CLASSIC_PEERS[name]
    return {"DP-Sniper": [logistic], "network": [network]} | ({"StatDP": verified} if verified else {})


def _stretched(share: Any) -> Any:
    return -np.log(NEAREST - np.minimum(share, NEAREST - 1e-4))


def _restored(place: Any) -> Any:
    return NEAREST - np.exp(-place)
