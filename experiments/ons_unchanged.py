"""How many counts the pilot's three noise laws leave as they are, and what the scale behind its Gaussian row keeps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.figure import Figure
from scipy import stats

from algorithms.bugs.systems.ons import ClassicalGaussian
from algorithms.hierarchy import Hierarchy
from algorithms.ons import IndependentNoise, unchanged_probability
from algorithms.ons.laws import PILOT_DELTA, CountNoise, Law, classical_scale
from algorithms.ons.tables import Table
from algorithms.schema import Schema
from audit.claims import GaussianDP
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.results.plots import GRAY, PROMISE, SERIES
from experiments.audits import all_or_none, down, median, run_all, violations
from experiments.drawing import head, line_key, page
from experiments.experiment import CONFIDENCE, Check, MarkdownTable, between, near

QUESTION = "How many counts do the pilot's noise laws leave as they are, and what would their scales promise?"
EXPECTATION = (
    "The formulas give Tables 1 to 3 to the printed digits, Gaussian noise with the textbook's scale at delta 0.05, "
    "and runs agree with them. Laplace and geometric noise spend their epsilon exactly. The pilot prints neither "
    "scale nor delta of its Gaussian noise: both are inferred. By its exact law that scale keeps epsilon and delta up "
    "to epsilon 5, and with rounding, which the pilot applies, at all five epsilons of Table 2. Before rounding it "
    "does not at 10, and 20 of 20 audits find that; rounded it does not at 7. No audit reports a violation of the "
    "smallest scale that keeps the promise."
)

LAWS: tuple[Law, ...] = ("laplace", "gaussian", "geometric")
EPSILONS = (0.1, 1.0, 2.0, 5.0, 10.0)
PRINTED = {
    "laplace": (0.0488, 0.3935, 0.6321, 0.9179, 0.9933),
    "gaussian": (0.0157, 0.1562, 0.3065, 0.6755, 0.9512),
    "geometric": (0.05, 0.4621, 0.7616, 0.9866, 0.9999),
}  # Tables 1, 2 and 3 of the pilot
GRID = np.geomspace(0.1, 20.0, 80)
BETWEEN = 7.0  # an epsilon at which rounding does not mend the textbook's scale
RUNS, SIZE, LARGE, AUDITS = 1_000_000, 20_000, 16_000_000, 20
TREE, SCHEMA = Hierarchy.regular(2, 1), Schema({"sex": ("female", "male")})
COUNTS = np.array([[40, 12], [7, 0]])


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Draw a million counts for each law and epsilon (quick: 20,000), and audit both scales 20 times (once)."""
    *draws, audits = np.random.SeedSequence(seed).spawn(len(LAWS) * len(EPSILONS) + 1)
    runs, times = (20_000, 1) if quick else (RUNS, AUDITS)
    rows = []
    for stream, (law, epsilon) in zip(draws, product(LAWS, EPSILONS), strict=True):
        noise = _classical(epsilon).noises[0] if law == "gaussian" else CountNoise(law, epsilon)
        same = int((noise.sample((runs,), np.random.default_rng(stream)) == 0).sum())
        low, high = stats.binomtest(same, runs).proportion_ci(CONFIDENCE)
        exact = None if law == "gaussian" else noise.exact_loss([1])
        row = {"law": law, "epsilon": epsilon, "formula": unchanged_probability(law, epsilon), "runs": runs}
        rows.append({**row, "same": same, "low": low, "high": high, "loss": None if exact is None else exact.maximum})
    settings = product(("classical", "least"), EPSILONS)
    tasks = [
        delayed(_audit)(name, epsilon, stream)
        for (name, epsilon), own in zip(settings, audits.spawn(10), strict=True)
        for stream in own.spawn(times)
    ]
    return {
        "rows": rows,
        "curves": {law: [unchanged_probability(law, epsilon) for epsilon in GRID] for law in LAWS},
        "deltas": [deltas(epsilon) for epsilon in GRID],
        "gaussian": [deltas(epsilon) for epsilon in (*EPSILONS, BETWEEN)],
        "audits": run_all(tasks, jobs, "scales of Gaussian noise"),
        "times": times,
    }


def _classical(epsilon: float) -> ClassicalGaussian:
    return ClassicalGaussian(TREE, SCHEMA, epsilon, [Table(1, "sex")], law="gaussian", delta=PILOT_DELTA)


def deltas(epsilon: float) -> dict[str, float]:
    """Return the true delta of the textbook's scale at its epsilon, before and after rounding."""
    rounded = _classical(epsilon).noises[0].exact_loss([1])
    assert rounded is not None
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


def check(numbers: dict[str, Any]) -> Iterator[Check]:
    """Hold formulas against the printed rows, runs against the formulas, and verdicts against the exact delta."""
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


def _own(numbers: dict[str, Any], scale: str, epsilon: float) -> list[dict[str, Any]]:
    """Return the audits of one scale at one epsilon."""
    return [audit for audit in numbers["audits"] if (audit["scale"], audit["epsilon"]) == (scale, epsilon)]


def finding(numbers: dict[str, Any]) -> str:
    """Return the calibration behind Table 2, and what it promises."""
    *printed, _ = numbers["gaussian"]
    rounded, last = [row["after"] for row in printed], printed[-1]
    return (
        "The laws leave unchanged as many counts as Tables 1 to 3 print, if Gaussian noise has the textbook's scale at "
        f"delta {PILOT_DELTA:g}, which is inferred. Laplace and geometric noise spend epsilon (one person added or "
        f"removed). Rounded Gaussian noise keeps that delta, with {max(rounded):.4f} at most; before rounding it does "
        f"not at epsilon {last['epsilon']:g}: the true delta is {last['before']:.3f}."
    )


def table(numbers: dict[str, Any]) -> MarkdownTable:
    """Return the shares that each law leaves unchanged, and the true delta of the Gaussian scale."""
    shares = {(row["law"], row["epsilon"]): f"{row['formula']:.4f}" for row in numbers["rows"]}
    rows = [
        (
            f"{row['epsilon']:g}",
            *(shares.get((law, row["epsilon"]), "") for law in ("laplace", "gaussian", "geometric")),
            f"{row['before']:.4f}, {row['after']:.4f}",
        )
        for row in sorted(numbers["gaussian"], key=lambda row: float(row["epsilon"]))
    ]
    own = _own(numbers, "classical", EPSILONS[-1])
    least = [audit for audit in numbers["audits"] if audit["scale"] == "least"]
    return MarkdownTable(
        ("epsilon", "unchanged, Laplace", "Gaussian", "geometric", "true delta before and after rounding"),
        rows,
        f"At epsilon {EPSILONS[-1]:g} before rounding, {LARGE:,} runs prove epsilon {down(median(own), 4)} at delta "
        f"{PILOT_DELTA:g} (median of {len(own)}, confidence 1 - 1e-6). {violations(least)} of {len(least)} audits of "
        "the smallest scale that keeps the promise report a violation.",
    )


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw unchanged counts over epsilon, and what the classical scale loses in units of its promise."""
    figure, (left, right) = page(4.4, 1, 2)
    names = {"laplace": "Laplace, rounded", "gaussian": "Gaussian, rounded", "geometric": "geometric"}
    for law, (color, dashes, marker) in zip(LAWS, SERIES, strict=False):
        style: dict[str, Any] = {"color": color, "linestyle": "none"}
        left.semilogx(GRID, numbers["curves"][law], color=color, linestyle=dashes, linewidth=1.2)
        hollow = {"marker": marker, "markersize": 7, "fillstyle": "none", "label": names[law]}
        left.semilogx(EPSILONS, PRINTED[law], **style, **hollow)
        own = [row for row in numbers["rows"] if row["law"] == law]
        left.semilogx(EPSILONS, [row["same"] / row["runs"] for row in own], marker=".", **style)
    left.set_xlabel("epsilon of a count (log scale)\none person added or removed")
    left.set_ylabel("share of counts left as they are")
    gray: dict[str, Any] = {"color": GRAY, "linestyle": "none"}
    handles = [
        *left.get_legend_handles_labels()[0],
        line_key("formula", color=GRAY),
        line_key("runs", **gray, marker="."),
        line_key("printed", **gray, marker="o", fillstyle="none"),
    ]
    head(left, "(a) counts left unchanged", handles, ncols=2)
    for when, (color, dashes, _) in zip(("before", "after"), SERIES, strict=False):
        deltas = [row[when] for row in numbers["deltas"]]
        right.loglog(GRID, deltas, color=color, linestyle=dashes, label=f"textbook's scale, {when} rounding")
    right.axhline(PILOT_DELTA, **PROMISE, label="promise")
    right.axvline(1, color=GRAY, linewidth=1.2, linestyle=":", label="the textbook's theorem ends here")
    right.set_ylim(1e-4, 1)
    right.set_xlabel("promised epsilon of a count (log scale)")
    right.set_ylabel("true delta at that epsilon (log scale)")
    head(right, "(b) Gaussian noise: exact law", right.get_legend_handles_labels()[0], ncols=1)
    return figure
