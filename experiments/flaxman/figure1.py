"""Figure 1 of Flaxman (2019): the distribution of errors, and the privacy loss that its shape suggests."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.population import uniform_population
from audit.estimates.residuals import residual_loss
from audit.results.plots import BLACK, GRAY
from experiments.drawing import head, own_keys, page, styles
from experiments.experiment import Check, Checks, Numbers, between, near

BUDGETS = {"GDPC": 0.025, "RDPC": 0.1, "ADPC": 0.05}  # the paper chose them so that the errors look alike
STYLES = styles(("GDPC", "RDPC", "ADPC"), marker="none")
PEOPLE, LEVELS, PEOPLE_PER_LEAF = 1_000_000, 3, 100


def run(
    *,
    quick: bool,
    seed: int,
    jobs: int,
    populations: int = 20,
    people: int = PEOPLE,
    levels: int = LEVELS,
    people_per_leaf: float = PEOPLE_PER_LEAF,
    gdpc: float = BUDGETS["GDPC"],
    rdpc: float = BUDGETS["RDPC"],
    adpc: float = BUDGETS["ADPC"],
    parts: int = 4,
    bandwidth: float = 0.15,
) -> Numbers:
    """Estimate the loss of every algorithm on 20 synthetic populations (quick: 2); keep the curves of the first."""
    medians, largest = ({name: list[float]() for name in BUDGETS} for _ in range(2))
    curves, errors, fitting = dict[str, Any](), dict[str, Any](), 0.0
    for number, stream in enumerate(np.random.SeedSequence(seed).spawn(min(2, populations) if quick else populations)):
        rng = np.random.default_rng(stream)
        tree, counts = uniform_population(people, levels, people_per_leaf, rng)
        mechanisms: tuple[Any, ...] = (GDPC(gdpc), RDPC(rdpc, tree), ADPC(adpc, parts))
        for name, mechanism in zip(BUDGETS, mechanisms, strict=True):
            residuals = mechanism(counts, 1, rng)[0] - counts
            begun = time.perf_counter()
            blocks = tree.ancestors(1)
            estimate = residual_loss(residuals, method="kde", bandwidth=bandwidth, blocks=blocks, rng=rng)
            fitting += time.perf_counter() - begun
            medians[name].append(estimate.value)
            largest[name].append(float(np.nanmax(np.abs(estimate.loss))))
            if number == 0:
                curves[name] = estimate.to_dict()
                edges = np.arange(-250, 251)
                errors[name] = np.histogram(residuals, np.append(edges, 251) - 0.5)[0].tolist()
    exact, sums = ADPC(adpc, parts), np.rint(np.array(curves["ADPC"]["at"]) * parts)
    return {
        "areas": int(counts.size),
        "medians": medians,
        "largest": largest,
        "curves": curves,
        "errors": {"from": -250, "counts": errors},
        "exact_adpc": (exact.logpmf_sum(sums) - exact.logpmf_sum(sums + parts)).tolist(),
        "seconds_a_fit": fitting / (len(BUDGETS) * len(medians["GDPC"])),
    }


def check(numbers: Numbers) -> Checks:
    for name, values in numbers["medians"].items():
        words = f"{name} at {BUDGETS[name]}: median |loss|, median of {len(values)} populations"
        yield near(words, float(np.median(values)), 0.025, 0.002)
        words = f"{name}: largest of a curve, median of {len(values)} populations / 0.025"
        yield between(words, float(np.median(numbers["largest"][name])) / 0.025, 1.4, 3)
    curve = numbers["curves"]["ADPC"]
    at, exact, low, high = (
        np.array(v, float) for v in (curve["at"], numbers["exact_adpc"], curve["low"], curve["high"])
    )
    share = float(np.mean((exact >= low) & (exact <= high), where=np.abs(at) < 100))
    words = f"ADPC: exact loss inside the pointwise 95% interval at {share:.0%} of errors to 100, expected over 70%"
    yield Check(words, share >= 0.7)
    rise = float(np.interp(100, at, exact) / np.interp(25, at, exact))
    words = f"ADPC: exact loss at an error of 100 people is {rise:.2f} times that at 25, expected above 2: no plateau"
    yield Check(words, rise > 2)


def facts(numbers: Numbers) -> dict[str, Any]:
    middle = ", ".join(f"{np.median(values):.4f} ({name})" for name, values in numbers["medians"].items())
    larger = [np.median(numbers["largest"][name]) / np.median(values) for name, values in numbers["medians"].items()]
    at, exact = numbers["curves"]["ADPC"]["at"], numbers["exact_adpc"]
    rows = [
        (name, f"{BUDGETS[name]}", f"{np.median(medians):.4f}", f"{np.median(numbers['largest'][name]):.4f}")
        for name, medians in numbers["medians"].items()
    ]
    near, far = (np.interp(people, at, exact) for people in (25, 100))
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, (left, right) = page(3.9, 1, 2, stacked=True)
    start = numbers["errors"]["from"]
    for name, counts in numbers["errors"]["counts"].items():
        ten = np.array(counts[: len(counts) // 10 * 10]).reshape(-1, 10).sum(axis=1)
        label = f"{name} ($\\epsilon$ = {BUDGETS[name]})"
        left.step(start + 10 * np.arange(ten.size), ten, where="post", **STYLES[name], label=label)
    left.set(xlabel="released minus exact count (people)", ylabel="areas per 10 people of error", ylim=(0, None))

    for name, curve in numbers["curves"].items():
        at, low, high = (np.array(curve[key], float) for key in ("at", "low", "high"))
        right.fill_between(at, low, high, color=STYLES[name]["color"], alpha=0.15, linewidth=0)
        median = float(np.median(numbers["medians"][name]))
        right.plot(at, curve["loss"], **STYLES[name], label=f"{name}: median |loss| {median:.4f}")
    exact: dict[str, Any] = {"color": BLACK, "linewidth": 1.2, "label": "ADPC: exact loss"}
    right.plot(numbers["curves"]["ADPC"]["at"], numbers["exact_adpc"], **exact)
    for level in (-0.05, -0.025, 0.025, 0.05):
        right.axhline(level, color=GRAY, linewidth=0.4, zorder=0)
    right.set(xlabel="error of a count (people)", ylabel="log p(error) / p(error + 1) (nats)")
    right.set(yticks=[-0.05, -0.025, 0, 0.025, 0.05], ylim=(-0.085, 0.085))
    for ax, title in ((left, "(a) errors of one release"), (right, "(b) residual estimates (band: 95%)")):
        ax.set_xlim(-200, 200)
        head(ax, title, own_keys(ax), ncols=1)
    return figure
