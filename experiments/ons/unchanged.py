"""How many counts the pilot's three noise laws leave as they are, and what the scale behind its Gaussian row keeps."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from algorithms.bugs.systems.ons import ClassicalGaussian
from algorithms.hierarchy import Hierarchy
from algorithms.ons import IndependentNoise, unchanged_probability
from algorithms.ons.laws import PILOT_DELTA, CountNoise, Law, classical_scale
from algorithms.ons.tables import Table
from algorithms.schema import Schema
from audit import GaussianDP, NeighborPair, measure_loss
from audit.results.plots import GRAY, PROMISE
from experiments.audits import all_or_none, exact_law, median, repeat
from experiments.drawing import head, line_key, own_keys, page, styles
from experiments.experiment import CONFIDENCE, Check, Checks, Numbers, between, down, near, published

LAWS: tuple[Law, ...] = ("laplace", "gaussian", "geometric")
EPSILONS = (0.1, 1.0, 2.0, 5.0, 10.0)
PRINTED: dict[str, list[float]] = published("ONS tables 1 to 3")
GRID = np.geomspace(0.1, 20.0, 80)
BETWEEN = 7.0  # an epsilon at which rounding does not mend the textbook's scale
RUNS, SIZE, LARGE, AUDITS = 1_000_000, 20_000, 16_000_000, 20
TREE, SCHEMA = Hierarchy.regular(2, 1), Schema({"sex": ("female", "male")})
COUNTS = np.array([[40, 12], [7, 0]])


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Draw a million counts for each law and epsilon (quick: 20,000), and audit both scales 20 times (once)."""
    *draws, audits = np.random.SeedSequence(seed).spawn(len(LAWS) * len(EPSILONS) + 1)
    runs, times = (20_000, 1) if quick else (RUNS, AUDITS)
    rows = []
    for stream, (law, epsilon) in zip(draws, product(LAWS, EPSILONS), strict=True):
        noise = _classical(epsilon).noises[0] if law == "gaussian" else CountNoise(law, epsilon)
        same = int((noise.sample((runs,), np.random.default_rng(stream)) == 0).sum())
        low, high = stats.binomtest(same, runs).proportion_ci(CONFIDENCE)
        loss = None if law == "gaussian" else exact_law(noise, [1]).maximum
        row = {"law": law, "epsilon": epsilon, "formula": unchanged_probability(law, epsilon), "runs": runs}
        rows.append({**row, "same": same, "low": low, "high": high, "loss": loss})
    settings = list(product(("classical", "least"), EPSILONS))
    by_scale = repeat(_audit, settings, audits.spawn(10), times, jobs=jobs, words="scales of Gaussian noise")
    return {
        "rows": rows,
        "curves": {law: [unchanged_probability(law, epsilon) for epsilon in GRID] for law in LAWS},
        "deltas": [deltas(epsilon) for epsilon in GRID],
        "gaussian": [deltas(epsilon) for epsilon in (*EPSILONS, BETWEEN)],
        "audits": [audit for own in by_scale for audit in own],
        "times": times,
    }


def _classical(epsilon: float) -> ClassicalGaussian:
    return ClassicalGaussian(TREE, SCHEMA, epsilon, [Table(1, "sex")], law="gaussian", delta=PILOT_DELTA)


def deltas(epsilon: float) -> dict[str, float]:
    """Return the true delta of the textbook's scale at its epsilon, before and after rounding."""
    rounded = exact_law(_classical(epsilon).noises[0], [1])
    before = GaussianDP(1 / classical_scale(epsilon, PILOT_DELTA)).delta_at(epsilon)
    return {"epsilon": epsilon, "before": before, "after": rounded.delta_at(epsilon)}


def _audit(name: str, epsilon: float, stream: np.random.SeedSequence) -> dict[str, Any]:
    kind = ClassicalGaussian if name == "classical" else IndependentNoise
    mechanism = kind(TREE, SCHEMA, epsilon, [Table(0, "total")], law="gaussian", delta=PILOT_DELTA, rounded=False)
    pair = NeighborPair.add_people(COUNTS, (1, 1))
    # An excess over epsilon 10 takes exp(10) runs and more to detect.
    size = LARGE if name == "classical" and epsilon == EPSILONS[-1] else SIZE
    result = measure_loss(mechanism, pair, mechanism.claim, size=size, confidence=CONFIDENCE, rng=stream)
    return {"scale": name, "epsilon": epsilon, "lower_bound": result.measured.budget, "verdict": result.verdict}


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        what = f"{row['law']}, epsilon {row['epsilon']:g}"
        printed = PRINTED[row["law"]][EPSILONS.index(row["epsilon"])]
        yield near(f"{what}: unchanged, to the printed digits", round(row["formula"], 4), printed, 1e-9)
        yield between(f"{what}: unchanged in {row['runs']:,} runs", row["formula"], row["low"], row["high"])
        if row["loss"] is not None:
            yield near(f"{what}: exact loss", row["loss"], row["epsilon"], 1e-9)
    for row in numbers["gaussian"]:
        epsilon = row["epsilon"]
        for when, above in (("before", epsilon in (BETWEEN, EPSILONS[-1])), ("after", epsilon == BETWEEN)):
            words = f"classical scale, epsilon {epsilon:g}: delta {row[when]:.4f} {when} rounding"
            expected = f"expected {'above' if above else 'at most'} the promised {PILOT_DELTA}"
            yield Check(f"{words}, {expected}", (row[when] > PILOT_DELTA) == above)
    low = [row for row in numbers["deltas"] if row["epsilon"] <= 5]
    most = max(max(row["before"], row["after"]) for row in low)
    yield between(f"classical scale, {len(low)} epsilons up to 5: largest true delta", most, 0, PILOT_DELTA)
    for scale, epsilon in product(("classical", "least"), EPSILONS):
        own = _own(numbers, scale, epsilon)
        assert len(own) == numbers["times"]
        violated = (scale, epsilon) == ("classical", EPSILONS[-1])
        yield all_or_none(f"{scale} scale, epsilon {epsilon:g}", own, violated=violated)


def _own(numbers: Numbers, scale: str, epsilon: float) -> list[dict[str, Any]]:
    return [audit for audit in numbers["audits"] if (audit["scale"], audit["epsilon"]) == (scale, epsilon)]


def facts(numbers: Numbers) -> dict[str, Any]:
    *printed, _ = numbers["gaussian"]
    rounded, last = [row["after"] for row in printed], printed[-1]
    shares = {(row["law"], row["epsilon"]): f"{row['formula']:.4f}" for row in numbers["rows"]}
    rows = [
        (
            f"{row['epsilon']:g}",
            *(shares.get((law, row["epsilon"]), "") for law in ("laplace", "gaussian", "geometric")),
            f"{row['before']:.4f}, {row['after']:.4f}",
        )
        for row in sorted(numbers["gaussian"], key=lambda row: float(row["epsilon"]))
    ]
    largest, own = EPSILONS[-1], _own(numbers, "classical", EPSILONS[-1])
    least = [audit for audit in numbers["audits"] if audit["scale"] == "least"]
    proved = down(median(own), 4)
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, (left, right) = page(4.4, 1, 2)
    names = {"laplace": "Laplace, rounded", "gaussian": "Gaussian, rounded", "geometric": "geometric"}
    for law, look in styles(LAWS, linewidth=1.2, markersize=7).items():
        own, points = [row for row in numbers["rows"] if row["law"] == law], look | {"linestyle": "none"}
        left.semilogx(GRID, numbers["curves"][law], **look | {"marker": ""})
        left.semilogx(EPSILONS, PRINTED[law], **points, fillstyle="none", label=names[law])
        left.semilogx(EPSILONS, [row["same"] / row["runs"] for row in own], **points | {"marker": ".", "markersize": 6})
    left.set_xlabel("epsilon of a count (log scale)\none person added or removed")
    left.set_ylabel("share of counts left as they are")
    gray: dict[str, Any] = {"color": GRAY, "linestyle": "none"}
    handles = [
        *own_keys(left),
        line_key("formula", color=GRAY),
        line_key("runs", **gray, marker="."),
        line_key("printed", **gray, marker="o", fillstyle="none"),
    ]
    head(left, "(a) counts left unchanged", handles, ncols=2)
    for when, look in styles(("before", "after"), marker="").items():
        deltas = [row[when] for row in numbers["deltas"]]
        right.loglog(GRID, deltas, **look, label=f"textbook's scale, {when} rounding")
    right.axhline(PILOT_DELTA, **PROMISE, label="promise")
    right.axvline(1, color=GRAY, linewidth=1.2, linestyle=":", label="the textbook's theorem ends here")
    right.set_ylim(1e-4, 1)
    right.set_xlabel("promised epsilon of a count (log scale)")
    right.set_ylabel("true delta at that epsilon (log scale)")
    head(right, "(b) Gaussian noise: exact law", own_keys(right), ncols=1)
    return figure
