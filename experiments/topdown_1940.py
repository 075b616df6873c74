"""The 2018 end-to-end test on a population like that of 1940: error, bias and residual estimates, as published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.topdown import preset
from algorithms.topdown.estimation.family import answer
from algorithms.topdown.population import Population1940, homogeneity, synthetic_1940
from audit.estimates.residuals import residual_loss
from audit.results.plots import BLACK, BLUE, GRAY, ORANGE, new_figure
from experiments.drawing import budget_axis
from experiments.experiment import Check, MarkdownTable, between

QUESTION = "Does TopDown with the settings of 2018 show the errors, the bias and the loss that were published for 1940?"
EXPECTATION = (
    "Yes for totals of districts: the median error is within 15% (or one person) of that of Petti and Flaxman (2019, "
    "not one of the five papers), the 95th percentile within 10%, the largest residual estimate within 35% with some "
    "30,000 residuals. Bias is positive in homogeneous districts and negative in mixed ones. The population is "
    "synthetic: strata are like 1940 in number only."
)

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
# Petti and Flaxman, "Differential privacy in the 2020 US census: what will it do? Quantifying the accuracy/privacy
# tradeoff", 2019: an evaluation of the Bureau's test, and none of the five papers whose systems are here.
MEDIAN, P95 = (56, 29, 15, 8, 4, 2), (190, 100, 52, 27, 14, 7)  # of total counts of districts
RESIDUAL = (0.017, 0.033, 0.064, 0.116, 0.219, 0.381)  # the largest of the curve, of total counts of districts
BIAS = {8: (-17.2,), 16: (-8.5,), 22: (8.7, 5.4, 3.6, 2.3, 1.5, 0.9)}  # by empty strata; epsilons as far as printed
SEEDS, RUNS = 24, 4  # runs at each epsilon: pooled for residuals; as many as were published for errors
SETTINGS: dict[str, Any] = {"method": "kde", "bandwidth": 0.1, "percentile": 95, "multiplier": 1.0}  # theirs
MIXED, SAME = 12, 20  # empty strata, of 24: at most, at least


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Release a population of 1,200 districts 24 times at each of six budgets (quick: twice at two)."""
    streams = np.random.SeedSequence(seed).spawn(len(EPSILONS) + 2)
    town = synthetic_1940(np.random.default_rng(streams[-1]))
    epsilons, seeds = (EPSILONS[2:4], 2) if quick else (EPSILONS, SEEDS)
    empty = homogeneity(town.histogram)
    numbers: dict[str, Any] = {
        "people": int(town.histogram.sum()),
        "tree": repr(town.tree),
        "index": {str(k): int((empty == k).sum()) for k in np.unique(empty)},
        "rows": {},
    }
    for epsilon, stream in zip(epsilons, streams, strict=False):
        numbers["rows"][f"{epsilon:g}"] = _released(town, epsilon, seeds, np.random.default_rng(stream), jobs)
    return numbers


def _released(town: Population1940, epsilon: float, seeds: int, rng: np.random.Generator, jobs: int) -> dict[str, Any]:
    topdown = preset("e2e-1940", town.tree, epsilon=epsilon, facilities=town.facilities, solver="batched", n_jobs=jobs)
    found = topdown.estimate(topdown.measure(town.histogram, rng, size=seeds))
    exact, tree = topdown.tables(town.histogram), town.tree
    errors = found.tables.sum(axis=-1) - exact.sum(axis=-1)
    districts = errors[:, tree.leaves]
    strata = topdown.schema.query("votingage*hispanic*cenrace").groups
    seen, true = answer(strata, found.tables[:RUNS, tree.leaves]), answer(strata, exact[tree.leaves])
    off = np.abs(seen - true)[(seen > 0) | (true > 0)]  # as theirs: strata that are in either table
    row: dict[str, Any] = {
        "median": float(np.median(np.abs(districts[:RUNS]))),
        "p95": float(np.quantile(np.abs(districts[:RUNS]), 0.95)),
        "counties": [float(np.quantile(np.abs(errors[:RUNS, tree.level(2)]), q)) for q in (0.5, 0.95)],
        "states": int(np.abs(errors[:, tree.level(1)]).max()),
        "strata": [float(np.quantile(off, q)) for q in (0.5, 0.95)],
        "residuals": districts.size,
        "failures": len(found.failures),
        "routes": found.routes,
    }
    curve = residual_loss(districts, **SETTINGS, blocks=tree.ancestors(2), rng=rng)
    row["largest"], row["middle"] = float(np.nanmax(np.abs(curve.loss))), float(curve.value)
    empty = homogeneity(town.histogram)
    row["bias"] = {str(k): _mean(districts[:, empty == k]) for k in np.unique(empty)}
    row["mixed"], row["same"] = _mean(districts[:, empty <= MIXED]), _mean(districts[:, empty >= SAME])
    return row


def _mean(errors: NDArray[np.int64]) -> list[float]:
    """Return the mean error and its standard error, over runs: districts of a run depend on each other."""
    runs = errors.mean(axis=1)
    return [float(runs.mean()), float(runs.std(ddof=1) / np.sqrt(runs.size))]


def _published() -> dict[str, tuple[int, int, float]]:
    """Return the published median, percentile and largest residual estimate, by epsilon."""
    return dict(zip(map("{:g}".format, EPSILONS), zip(MEDIAN, P95, RESIDUAL, strict=True), strict=True))


def check(numbers: dict[str, Any]) -> Iterator[Check]:
    """Hold errors, residual estimates and bias against those of Petti and Flaxman."""
    published = _published()
    for epsilon, row in numbers["rows"].items():
        median, p95, largest = published[epsilon]
        off, where = max(0.15 * median, 1), f"epsilon {epsilon}"
        yield between(f"{where}: median |error| of districts", row["median"], median - off, median + off)
        yield between(f"{where}: its 95th percentile", row["p95"], 0.9 * p95, 1.1 * p95)
        yield Check(f"{where}: states are off by {row['states']}", row["states"] == 0)
        yield Check(f"{where}: {row['failures']} failsafes, expected none", row["failures"] == 0)
        (same, spread), (mixed, wide) = row["same"], row["mixed"]
        words = f"{where}: bias {same:+.2f} (homogeneous), {mixed:+.2f} (mixed)"
        yield Check(words, same > 2 * spread and mixed < -2 * wide)
        if row["residuals"] > 20_000:
            yield between(f"{where}: largest residual estimate / published", row["largest"] / largest, 0.65, 1.35)
    ordered = [row["largest"] for row in numbers["rows"].values()]
    yield Check("residual estimates grow with epsilon", ordered == sorted(ordered))


def finding(numbers: dict[str, Any]) -> str:
    """Return errors, bias and the residual estimate beside the published ones."""
    one, (median, p95, largest) = numbers["rows"]["1"], _published()["1"]
    return (
        f"Yes, as far as they were published: at epsilon 1 (one person replaced) districts have a median |error| of "
        f"{one['median']:.0f} ({median} in 1940), a 95th percentile of {one['p95']:.0f} ({p95}) and a largest residual "
        f"estimate of {one['largest']:.3f} ({largest}). Homogeneous districts gain {one['same'][0]:.1f} people, mixed "
        f"ones lose {-one['mixed'][0]:.1f}."
    )


def table(numbers: dict[str, Any]) -> MarkdownTable:
    """Return errors of districts at every epsilon, beside those published."""
    rows = []
    for epsilon, row in numbers["rows"].items():
        median, p95, _ = _published()[epsilon]
        rows.append((epsilon, f"{row['median']:.0f}", f"{median}", f"{row['p95']:.0f}", f"{p95}"))
    return MarkdownTable(
        ("epsilon", "median error", "published for 1940", "95th percentile", "published for 1940"),
        rows,
        f"There are {numbers['people']:,} synthetic people in 1,200 districts; states are exact. The population's free "
        "assumptions were chosen with the published errors in view: agreement is no independent evidence about 1940.",
    )


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw errors and residual estimates over the budget beside the published ones, and bias by empty strata."""
    figure, (left, middle, right) = new_figure(11.4, 3.6, 1, 3)
    rows = numbers["rows"]
    epsilons = [float(epsilon) for epsilon in rows]

    def curve(ax: Axes, name: str, color: str, marker: str, words: str) -> None:
        ax.loglog(epsilons, [row[name] for row in rows.values()], color=color, marker=marker, label=words)

    def crosses(ax: Axes, published: tuple[float, ...], words: str | None) -> None:
        ax.loglog(EPSILONS, published, "x", color=BLACK, markersize=7, label=words)

    curve(left, "median", BLUE, "o", "median")
    curve(left, "p95", ORANGE, "s", "95th percentile")
    crosses(left, MEDIAN, None)
    crosses(left, P95, "published")
    left.set_ylabel("|error| of a district's total (people)")
    left.set_title("(a) error")
    curve(middle, "largest", BLUE, "o", "largest of the curve")
    crosses(middle, RESIDUAL, "published (largest)")
    curve(middle, "middle", GRAY, ".", "median of the curve")
    middle.set_ylabel("residual estimate (nats for one person)")
    middle.set_title("(b) what residuals suggest: estimates")
    for ax in (left, middle):
        budget_axis(ax, EPSILONS, "epsilon, one person replaced")
        ax.legend(fontsize=8)
    shown = [epsilon for epsilon in ("0.25", "1", "4") if epsilon in rows] or list(rows)
    for epsilon, color, marker in zip(shown, (ORANGE, BLUE, GRAY), "so^", strict=False):
        bias = {int(k): value for k, value in rows[epsilon]["bias"].items() if numbers["index"][k] >= 5}
        heights, spreads = np.array(list(bias.values())).T
        style: dict[str, Any] = {"color": color, "marker": marker, "markersize": 4, "label": f"epsilon {epsilon}"}
        right.errorbar(list(bias), heights, 2 * spreads, **style)
        at = EPSILONS.index(float(epsilon))
        theirs = {k: values[at] for k, values in BIAS.items() if at < len(values)}
        right.plot(list(theirs), list(theirs.values()), "x", color=color, markersize=8)
    right.axhline(0, color=BLACK, linewidth=0.8)
    right.set_yscale("symlog", linthresh=10)
    right.set_xticks(range(6, 24, 2))
    right.set_xlabel("empty strata, of 24 (homogeneity)")
    right.set_ylabel("mean error of the total (people)")
    right.set_title("(c) bias; crosses: published")
    right.legend(fontsize=8)
    return figure
