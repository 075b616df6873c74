"""Cell keys, an alternative to the pilot: how often their bounded noise reveals a person."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from algorithms.benchmarks.cell_key import CellKey
from algorithms.flaxman import GDPC
from algorithms.noise import TwoTailedGeometric
from audit import LossDistribution, NeighborPair, measure_loss
from audit.bounds.limits import clopper_pearson_lower, clopper_pearson_upper
from audit.results.plots import EXACT
from experiments.audits import exact_law, kept, repeat
from experiments.drawing import CIRCLE, head, line_key, name_rows, page
from experiments.experiment import CONFIDENCE, Check, Checks, Numbers, near, published, violations

SETTINGS = {  # largest change, variance: changes as many counts as Census 2021; examples of the package ptable
    "census": (2, 0.14),
    "first example": (2, 1.0),
    "second example": (5, 3.0),
}
PAIRS = {"alone": 0, "among": 20}  # other people in the cell
GEOMETRIC = "geometric noise"
SIZES, AUDITS, RELEASES = (300, 1_000, 3_000, 10_000, 30_000, 100_000), 100, 200_000
SURE = 1 - 1e-5  # confidence of each limit of measured probabilities
SHOWN = "first example"
AUDITED = [(SHOWN, "alone"), (SHOWN, "among"), ("second example", "among"), (SHOWN, GEOMETRIC)]
CENSUS_CHANGED = published("Cell keys in Census 2021")["changed"]


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Count outputs of 200,000 releases that reveal, and audit 100 times with six sizes (quick: 3 times with three)."""
    sizes, times, releases = (SIZES[1:4], 3, RELEASES // 10) if quick else (SIZES, AUDITS, RELEASES)
    cases = [(setting, pair) for setting in SETTINGS for pair in PAIRS]
    *streams, other = np.random.SeedSequence(seed).spawn(len(cases) + 1)
    rows = [_about(*case, releases, np.random.default_rng(one)) for case, one in zip(cases, streams, strict=True)]
    tasks = [(*case, size) for case in AUDITED for size in sizes]
    results = repeat(_audit, tasks, other.spawn(len(tasks)), times, jobs=jobs, words="cell keys")
    audits = [
        {"setting": setting, "pair": pair, "size": size, "audits": times, "count": violations(own)}
        for (setting, pair, size), own in zip(tasks, results, strict=True)
    ]
    keys, first = CellKey(*SETTINGS[SHOWN]), np.random.SeedSequence(seed)
    options: dict[str, Any] = {"size": SIZES[0], "confidence": CONFIDENCE, "rng": first}
    witness = {pair: kept(measure_loss(keys, databases(pair), keys.claim, **options)) for pair in PAIRS}
    return {"rows": rows, "audits": audits, "witness": witness, "releases": releases}


def databases(pair: str) -> NeighborPair:
    return NeighborPair.add_people([PAIRS[pair]], 0)


def _about(setting: str, pair: str, releases: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return exact losses of a pair, and how many releases are impossible without the person."""
    mechanism, two = CellKey(*SETTINGS[setting]), databases(pair)
    law = exact_law(mechanism, two).reverse()  # law with the person over law without
    impossible = int(np.isneginf(mechanism.log_likelihood(mechanism(two.y, releases, rng), two.x)).sum())
    private = as_private(law)
    return {
        "setting": setting,
        "pair": pair,
        "proof": law.infinite_mass,
        "count": impossible,
        "unchanged": float(np.exp(mechanism.log_likelihood([[int(two.y[0])]], two.y))[0]),
        "same": mechanism.claim.epsilon,
        "private": private,
        "ratio": math.sqrt(TwoTailedGeometric(private).variance / mechanism.variance),
        "above": excess(law, private),
    }


def as_private(law: LossDistribution) -> float:
    """Return the largest epsilon of geometric noise whose delta is nowhere above that of a law."""
    # Over exp(epsilon), the delta of geometric noise is linear down to 0, and that of a law is convex and piecewise
    # linear, with corners at its losses. So it is enough to compare both at the corners.
    corners = [0.0, *np.abs(law.loss).tolist()]
    deltas = map(_delta, [law] * len(corners), corners)
    return min(math.log((math.exp(at) + delta) / (1 - delta)) for at, delta in zip(corners, deltas, strict=True))


def _delta(law: LossDistribution, epsilon: float) -> float:
    """Return the larger delta of both orders of the databases."""
    return max(law.delta_at(epsilon), law.reverse().delta_at(epsilon))


def excess(law: LossDistribution, epsilon: float) -> float:
    """Return the largest excess of the delta of geometric noise over that of a law."""
    geometric = exact_law(GDPC(epsilon), databases("alone"))
    return max(_delta(geometric, at) - _delta(law, at) for at in np.linspace(0, epsilon, 200))


def _audit(setting: str, pair: str, size: int, stream: np.random.SeedSequence) -> dict[str, Any]:
    """Audit only the outputs, of cell keys or of geometric noise with the same variance."""
    keys = CellKey(*SETTINGS[setting])
    mechanism = GDPC(keys.claim.epsilon) if pair == GEOMETRIC else keys
    two = databases("alone" if pair == GEOMETRIC else pair)
    options: dict[str, Any] = {"size": size, "confidence": CONFIDENCE, "rng": stream}
    return kept(measure_loss(partial(mechanism), two, keys.claim, **options))  # `partial` hides the law


def limits(row: dict[str, Any], of: int) -> tuple[float, float]:
    low = clopper_pearson_lower(row["count"], of, confidence=SURE)
    return float(low), float(clopper_pearson_upper(row["count"], of, confidence=SURE))


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        what, (low, high) = _label(row), limits(row, numbers["releases"])
        words = f"{what}: revealed with probability {row['proof']:.3g}, measured from {low:.3g} to {high:.3g}"
        yield Check(words, row["proof"] > 0 and low <= row["proof"] <= high)
        words = f"{what}: delta of geometric noise with epsilon {row['private']:.3g} is nowhere above that of cell keys"
        yield Check(words, row["above"] <= 1e-12)
        if row["pair"] == "among":
            yield Check(f"{what}: {row['ratio']:.2f} times the error of cell keys, expected more", row["ratio"] > 1)
        if row["setting"] == "census":
            yield near(f"{what}: counts that change", 1 - row["unchanged"], CENSUS_CHANGED, 0.01)
        if row["setting"] == SHOWN:
            saved = numbers["witness"][row["pair"]]
            yield near(f"{what}: probability of the witness of an audit", float(saved["witness"]), row["proof"], 1e-12)
            yield Check(f"{what}: with the law {SIZES[0]} runs are enough", saved["verdict"] == "violated")
    for row in numbers["audits"]:
        least = {"alone": SIZES[1], "among": SIZES[-1], GEOMETRIC: math.inf}[row["pair"]]
        if row["size"] >= least or row["pair"] == GEOMETRIC:
            expected = row["audits"] if row["size"] >= least else 0
            words = f"{_label(row)}: {row['count']} of {row['audits']} audits of {row['size']:,} outputs find it"
            yield Check(f"{words}, expected {expected}", row["count"] == expected)


def facts(numbers: Numbers) -> dict[str, Any]:
    rows = []
    for setting, (most, variance) in SETTINGS.items():
        both = [row for row in numbers["rows"] if row["setting"] == setting]
        changed, same = 1 - both[1]["unchanged"], both[1]["same"]
        proofs = ", ".join(f"{row['proof']:.2g}" for row in both)
        private = ", ".join(f"{row['private']:.2f} ({row['ratio']:.2f})" for row in both)
        rows.append((f"{most}, {variance:g}", f"{changed:.0%}", proofs, f"{same:.2f}", private))
    alone, among = (row for row in numbers["rows"] if row["setting"] == SHOWN)
    control = [row for row in numbers["audits"] if row["pair"] == GEOMETRIC]
    never, audits = sum(row["count"] for row in control), sum(row["audits"] for row in control)
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, (ax,) = page(3.2)
    names = []
    for at, row in enumerate(numbers["rows"]):
        low, high = limits(row, numbers["releases"])
        ax.plot([low, high], [at, at], color=CIRCLE["color"], linewidth=2.5)
        ax.plot(row["count"] / numbers["releases"], at, **CIRCLE)
        ax.plot(row["proof"], at, **EXACT | {"markersize": 4}, zorder=4)
        names.append(_label(row))
    name_rows(ax, names)
    words = "share of outputs that are impossible without the person (log scale;\nD: largest change, V: variance)"
    ax.set(xscale="log", xlim=(3e-6, 1.3), xlabel=words)
    measured = line_key(f"measured, {numbers['releases']:,} outputs (line: limits)", **CIRCLE)
    handles = [measured, line_key("exact", **EXACT)]
    head(ax, "how often an output reveals the person", handles, x=-0.3)
    return figure


def _label(row: dict[str, Any]) -> str:
    most, variance = SETTINGS[row["setting"]]
    who = {"among": f"among {PAIRS['among']}"}.get(row["pair"], row["pair"])
    return f"D = {most}, V = {variance:g}: {who}"
