"""The 2018 end-to-end test on a population like that of 1940: error, bias and residual estimates, as published."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.topdown import preset
from algorithms.topdown.estimation.family import answer
from algorithms.topdown.population import Population1940, homogeneity, synthetic_1940
from algorithms.topdown.presets import PRESETS
from audit.estimates.residuals import residual_loss
from audit.results.plots import BLACK, ESTIMATE, GRAY
from experiments.drawing import budget_axis, head, line_key, own_keys, page, spread, styles
from experiments.experiment import Check, Checks, Numbers, between, published

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
PUBLISHED = published("TopDown 1940")
SEEDS, RUNS = 24, 4  # runs at each epsilon: pooled for residuals; as many as were published for errors
SETTINGS: dict[str, Any] = {"method": "kde", "bandwidth": 0.1, "percentile": 95, "multiplier": 1.0}  # theirs
MIXED, SAME = 12, 20  # empty strata, of 24: at most, at least


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
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
    vacant = replace(PRESETS["e2e-1940"], persons_a_unit=(0, 99))  # one unit in 15 is, and none was in 1940
    topdown = preset(vacant, town.tree, epsilon=epsilon, facilities=town.facilities, solver="batched", n_jobs=jobs)
    estimates = topdown.estimate(topdown.measure(town.histogram, rng, size=seeds))
    exact, tree = topdown.tables(town.histogram), town.tree
    errors = estimates.tables.sum(axis=-1) - exact.sum(axis=-1)
    districts = errors[:, tree.leaves]
    strata = topdown.schema.query("votingage*hispanic*cenrace").groups
    estimated, true = answer(strata, estimates.tables[:RUNS, tree.leaves]), answer(strata, exact[tree.leaves])
    off = np.abs(estimated - true)[(estimated > 0) | (true > 0)]  # as theirs: strata that are in either table
    row: dict[str, Any] = {
        "median": float(np.median(np.abs(districts[:RUNS]))),
        "p95": float(np.quantile(np.abs(districts[:RUNS]), 0.95)),
        "counties": [float(np.quantile(np.abs(errors[:RUNS, tree.level(2)]), q)) for q in (0.5, 0.95)],
        "states": int(np.abs(errors[:, tree.level(1)]).max()),
        "strata": [float(np.quantile(off, q)) for q in (0.5, 0.95)],
        "residuals": districts.size,
        "failures": len(estimates.failures),
        "routes": estimates.routes,
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
    columns = zip(*(PUBLISHED[name] for name in ("median", "p95", "residual")), strict=True)
    return dict(zip(map("{:g}".format, EPSILONS), columns, strict=True))


def check(numbers: Numbers) -> Checks:
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


def facts(numbers: Numbers) -> dict[str, Any]:
    one, (median, p95, largest) = numbers["rows"]["1"], _published()["1"]
    rows = []
    for epsilon, row in numbers["rows"].items():
        usual, rare, _ = _published()[epsilon]
        rows.append((epsilon, f"{row['median']:.0f}", f"{usual}", f"{row['p95']:.0f}", f"{rare}"))
    return {"one": one, "median": median, "p95": p95, "largest": largest, "lost": -one["mixed"][0], "rows": rows}


def draw(numbers: Numbers) -> Figure:
    figure, axes = page(6.8, 2, 2)
    left, right, below = spread(axes)
    rows = numbers["rows"]
    epsilons = [float(epsilon) for epsilon in rows]
    cited: dict[str, Any] = {"marker": "x", "color": GRAY, "markersize": 7, "linestyle": "none", "zorder": 5}

    def curve(ax: Axes, name: str, words: str, **style: Any) -> None:
        ax.loglog(epsilons, [row[name] for row in rows.values()], label=words, **{"markersize": 4, **style})

    for (name, words), look in styles((("median", "median"), ("p95", "95th percentile"))).items():
        curve(left, name, words, **look)
        left.loglog(EPSILONS, PUBLISHED[name], **cited)
    left.plot([], [], **cited, label="published")
    left.set_ylabel("|error| of a district's total\n(people, log scale)")
    curve(right, "largest", "largest of the curve", **ESTIMATE, marker="o")
    curve(right, "middle", "its median", **ESTIMATE, marker="s", linestyle="--", markerfacecolor="white")
    right.loglog(EPSILONS, PUBLISHED["residual"], **cited, label="published (largest)")
    right.set_ylabel("estimate for one person\n(nats, log scale)")
    for ax, title in ((left, "(a) error"), (right, "(b) estimates from residuals")):
        budget_axis(ax, EPSILONS, "epsilon, one person replaced")
        head(ax, title, own_keys(ax), ncols=2)
    panels = [epsilon for epsilon in ("0.25", "1", "4") if epsilon in rows] or list(rows)
    for epsilon, look in styles(panels).items():
        bias = {int(k): value for k, value in rows[epsilon]["bias"].items() if numbers["index"][k] >= 5}
        heights, spreads = np.array(list(bias.values())).T
        below.errorbar(list(bias), heights, 2 * spreads, **look, label=f"epsilon {epsilon}")
        at = EPSILONS.index(float(epsilon))
        printed = {int(k): values[at] for k, values in PUBLISHED["bias"].items() if at < len(values)}
        below.plot(list(printed), list(printed.values()), **cited | {"color": look["color"]})
    below.axhline(0, color=BLACK, linewidth=0.8)
    below.set_yscale("symlog", linthresh=10)
    below.set_xticks(range(6, 24, 2))
    below.set_xlabel("empty strata, of 24 (homogeneity)")
    below.set_ylabel("mean error of the total (people;\nlinear to 10, then log scale)")
    handles = [*own_keys(below), line_key("published, in the same color", **cited)]
    head(below, "(c) bias of districts (bars: two standard errors)", handles, ncols=4)
    return figure
