"""Where the pilot's top-down method moves people, by region and area, with and without noise on zeros."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import spearmanr

from algorithms.hierarchy import Hierarchy
from algorithms.ons.deaths import Deaths, synthetic_deaths
from algorithms.ons.tables import Domain, Table
from algorithms.ons.top_down import PILOT_SHARES, OnsTopDown
from audit.results.plots import BLACK, GRAY
from experiments.audits import repeat
from experiments.drawing import foot, page, styles
from experiments.experiment import Check, Checks, Numbers, between, published

WITH, WITHOUT = "zeros perturbed", "zeros left alone"
EPSILONS = (10.0, 2.0, 0.1)
RARE = ("NA", "S99999999", "N99999999")
NAMES: dict[str, str] = published("ONS names of regions")
PRINTED_REGIONS: dict[str, dict[str, list[int]]] = published("ONS regions")
PRINTED_AREAS: dict[str, dict[str, list[int | None]]] = published("ONS areas")
MARGIN, FACTOR, NEAR, RANKED = 0.01, 2.0, 1.5, 0.8
TOTALS = (Table(1, "total"), Table(2, "total"))
RUNS = 201
TICKS = (0, 2000, 10_000, 20_000, 40_000, 80_000)
FAR = 25.0  # scales of Laplace noise: exceeded once in 7e10 draws


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Release all deaths 201 times at each budget, in both variants (quick: once, with most areas merged)."""
    deaths, runs = all_deaths(quick), 1 if quick else RUNS
    settings = [(variant, epsilon) for variant in (WITH, WITHOUT) for epsilon in EPSILONS]
    streams = np.random.SeedSequence(seed).spawn(len(settings))
    made = [(deaths, epsilon, variant == WITH) for variant, epsilon in settings]
    releases = repeat(_released, made, streams, runs, jobs=jobs, words="regions of the pilot", unit="releases")
    domain = Domain(deaths.tree, deaths.schema)
    cells, regions, areas = domain.tabulate(deaths.histogram, [Table(1, "detailed"), *TOTALS])
    rows: dict[str, dict[str, Any]] = {WITH: {}, WITHOUT: {}}
    for (variant, epsilon), own in zip(settings, releases, strict=True):
        by_region, by_area = np.split(np.array(own), [len(regions)], axis=1)
        rows[variant][f"{epsilon:g}"] = {
            "regions": _named(deaths, 1, np.median(by_region, axis=0)),
            "spread": _named(deaths, 1, by_region.std(axis=0).round(1)),
            "areas": _named(deaths, 2, np.median(by_area, axis=0)),
            "totals": by_region.sum(axis=1).tolist(),
        }
    return {
        "runs": runs,
        "regions": _named(deaths, 1, regions[:, 0]),
        "areas": _named(deaths, 2, areas[:, 0]),
        "rows": rows,
        "zeros": _named(deaths, 1, (cells == 0).sum(axis=1)),
        "lift": {f"{epsilon:g}": _named(deaths, 1, _lift(cells, epsilon).sum(axis=1)) for epsilon in EPSILONS},
    }


def all_deaths(quick: bool) -> Deaths:
    """Return the deaths; of the quick form with most areas merged."""
    return merged(synthetic_deaths(0)) if quick else synthetic_deaths(0)


def merged(deaths: Deaths) -> Deaths:
    """Return the same deaths with the areas of a region that Table 9 does not name made one."""
    codes = [deaths.tree.codes(int(leaf)) for leaf in deaths.tree.leaves]
    kept = [(region, area if area in PRINTED_AREAS[WITH] else "rest") for region, area in codes]
    areas = sorted(set(kept))
    histogram = np.zeros((len(areas), deaths.schema.cells), np.int32)
    np.add.at(histogram, [areas.index(area) for area in kept], deaths.histogram)
    return Deaths(Hierarchy.from_codes(*map(list, zip(*areas, strict=True))), deaths.schema, histogram)


def _named(deaths: Deaths, level: int, numbers: NDArray[Any]) -> dict[str, Any]:
    """Return the numbers of a level's areas by their codes."""
    nodes = range(*deaths.tree.level(level).indices(deaths.tree.n_nodes))
    return dict(zip((deaths.tree.codes(node)[-1] for node in nodes), numbers.tolist(), strict=True))


def _released(deaths: Deaths, epsilon: float, zeros: bool, stream: np.random.SeedSequence) -> NDArray[np.int64]:
    """Return the deaths of all regions, then of all areas, after one release."""
    top_down = OnsTopDown(deaths.tree, deaths.schema, epsilon, perturb_zeros=zeros)
    people = top_down(deaths.histogram, 1, np.random.default_rng(stream))[0]
    return np.concatenate([table[:, 0] for table in top_down.domain.tabulate(people, TOTALS)])


def _lift(cells: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    """Return what raising negative values adds to cells of regions on average, before they are adjusted to the nation.

    Laplace noise of scale b lifts a count n, raised to 0 where it falls below, by b exp(-n / b) / 2 on average.
    """
    scale = 1 / (float(PILOT_SHARES[2]) * epsilon)
    return scale / 2 * np.exp(-cells / scale)


def check(numbers: Numbers) -> Checks:
    before, rows = numbers["regions"], numbers["rows"]
    printed = {region: row[0] for region, row in PRINTED_REGIONS[WITH].items()}
    yield Check(f"{sum(before.values()):,} deaths, by region those of Table 8", before == printed)
    for epsilon, row in rows[WITH].items():
        where, (change, shown) = f"epsilon {epsilon}", _changes(numbers, WITH, epsilon)
        clear = [region for region in before if abs(shown[region]) > MARGIN * before[region]]
        same = [region for region in clear if change[region] * shown[region] > 0]
        words = f"{where}: {len(same)} of {len(clear)} regions with a clear printed change go the same way"
        yield Check(words, len(same) == len(clear) > 0)
        rank = _rank(numbers, WITH, epsilon)
        yield between(f"{where}: rank correlation of changes with Table 8", rank, RANKED, 1)
        for region in RARE:
            ratio = row["regions"][region] / _shown(PRINTED_REGIONS[WITH], region, epsilon)
            yield between(f"{where}: {NAMES[region]} after / printed", ratio, 1 / FACTOR, FACTOR)
            gain = (rows[WITHOUT][epsilon]["regions"][region] - before[region]) / change[region]
            words = f"{where}: {NAMES[region]}, gain without noise on zeros / with it: {gain:.2g}, expected at most 0.5"
            yield Check(words, change[region] > 0 and gain <= 0.5)
        areas = [name for name in PRINTED_AREAS[WITH] if name.startswith("ZC")]
        ratios = [row["areas"][area] / _shown(PRINTED_AREAS[WITH], area, epsilon) for area in areas]
        words = f"{min(ratios):.2f} to {max(ratios):.2f} of the printed, expected {1 / FACTOR:g} to {FACTOR:g}"
        inside = min(ratios) >= 1 / FACTOR and max(ratios) <= FACTOR
        yield Check(f"{where}: five areas of Northern Ireland after, {words}", inside)
    for variant, table in PRINTED_AREAS.items() if numbers["runs"] == RUNS else ():  # else areas are merged
        for epsilon, row in rows[variant].items():
            named = {area: (row["areas"][area], _place(table, area, epsilon)) for area in table}
            ratios = [here / shown for area, (here, shown) in named.items() if area.startswith("E") and shown]
            where = f"{variant}, epsilon {epsilon}"
            for what, ratio in (("least", min(ratios)), ("most", max(ratios))):
                yield between(f"{where}: {len(ratios)} areas of England, {what} after / printed", ratio, 1 / NEAR, NEAR)
            if variant == WITHOUT:
                most = max(here for area, (here, _) in named.items() if area.startswith("ZC"))
                yield between(f"{where}: largest area of Northern Ireland (printed: 37)", most, 0, 50)
    for region in RARE:
        after = [before[region], *(row["regions"][region] for row in rows[WITH].values())]
        words = " -> ".join(f"{count:,.0f}" for count in after)
        yield Check(f"{NAMES[region]} grows as epsilon falls: {words}", all(a < b for a, b in pairwise(after)))
    for variant, own in rows.items():
        for epsilon, row in own.items():
            off = max(abs(total - sum(before.values())) for total in row["totals"])
            scale = 1 / (float(PILOT_SHARES[0]) * float(epsilon))
            yield between(f"{variant}, epsilon {epsilon}: total, most off in scales", off / scale, 0, FAR)


def _place(table: dict[str, Any], name: str, epsilon: str) -> float | None:
    """Return what is printed of a region or area; None for less than 10."""
    count: float | None = table[name][1 + EPSILONS.index(float(epsilon))]
    return count


def _shown(table: dict[str, Any], name: str, epsilon: str) -> float:
    return float(_place(table, name, epsilon) or np.nan)


def _changes(numbers: Numbers, variant: str, epsilon: str) -> tuple[dict[str, float], dict[str, float]]:
    before, after = numbers["regions"], numbers["rows"][variant][epsilon]["regions"]
    return (
        {region: after[region] - before[region] for region in before},
        {region: _shown(PRINTED_REGIONS[variant], region, epsilon) - before[region] for region in before},
    )


def _rank(numbers: Numbers, variant: str, epsilon: str) -> float:
    change, shown = _changes(numbers, variant, epsilon)
    return float(spearmanr([change[region] for region in shown], list(shown.values())).statistic)


def facts(numbers: Numbers) -> dict[str, Any]:
    before, epsilons = numbers["regions"], list(numbers["rows"][WITH])
    last = epsilons[-1]
    after, kept = (numbers["rows"][variant][last]["regions"] for variant in (WITH, WITHOUT))
    code = min(before, key=lambda region: float(after[region] - before[region]))
    loser, loser_before, loser_after = NAMES[code], before[code], after[code]
    share = 100 * (1 - (kept["NA"] - before["NA"]) / (after["NA"] - before["NA"]))
    ranks, rows = [_rank(numbers, WITH, epsilon) for epsilon in epsilons], []
    for kind, printed in (("regions", PRINTED_REGIONS), ("areas", PRINTED_AREAS)):
        for name in (*RARE, code) if kind == "regions" else PRINTED_AREAS[WITH]:
            cells = [NAMES.get(name, name), f"{printed[WITH][name][0] or '<10'} / {numbers[kind][name]}"]
            for variant in (WITH, WITHOUT):
                for epsilon in epsilons:
                    here = numbers["rows"][variant][epsilon][kind][name]
                    cells.append(f"{_place(printed[variant], name, epsilon) or '<10'} / {here:.0f}")
            rows.append(cells)
    variants, odd_totals = ("noise on zeros", "zeros kept"), _odd_totals(sum(before.values()))
    heads = " | ".join(f"{words}, epsilon {epsilon}" for words in variants for epsilon in epsilons)
    return locals()


def _odd_totals(people: int) -> str:
    """Say how likely the noise of the printed totals is, if it is that of the share that they are said to have."""
    off = {
        epsilon: [sum(row[place] for row in table.values()) - people for table in PRINTED_REGIONS.values()]
        for place, epsilon in enumerate(EPSILONS, 1)
    }
    scale = {epsilon: 1 / (float(PILOT_SHARES[0]) * epsilon) for epsilon in EPSILONS}
    far = math.exp(-sum(map(abs, off[10.0])) / scale[10.0])
    close = math.prod(-math.expm1(-abs(error) / scale[0.1]) for error in off[0.1])
    return (
        "The printed totals had other noise than their share says: noise is as large as theirs at epsilon 10 with "
        f"probability {far:.0e}, and as small as theirs at 0.1 with {close:.0e}."
    )


def draw(numbers: Numbers) -> Figure:
    figure, axes = page(6.0, 1, 2)
    for ax, variant in zip(axes, (WITH, WITHOUT), strict=True):
        _draw_regions(ax, numbers, variant)
    axes[0].set_title("(a) zeros perturbed")
    axes[1].set_title("(b) zeros left alone: promises nothing")
    axes[1].tick_params(labelleft=False)
    handles, _ = axes[0].get_legend_handles_labels()
    foot(figure, handles, words="one person added or removed; here: median of releases")
    return figure


def _draw_regions(ax: Axes, numbers: Numbers, variant: str) -> None:
    before, rows = numbers["regions"], numbers["rows"][variant]
    order = sorted(before, key=lambda region: before[region])
    places = np.arange(len(order))
    ends = [[row["regions"][region] for region in order] for row in rows.values()]
    actual = [before[region] for region in order]
    ax.hlines(places, np.min([actual, *ends], axis=0), np.max([actual, *ends], axis=0), color=GRAY, linewidth=0.8)
    ax.plot(actual, places, "|", color=BLACK, markersize=12, markeredgewidth=1.6, label="actual (Table 8)")
    ax.plot([], [], " ", label=" ")  # below "actual" in the legend
    for (epsilon, look), end in zip(styles(rows, markersize=5, linestyle="none").items(), ends, strict=True):
        shown = [_shown(PRINTED_REGIONS[variant], region, epsilon) for region in order]
        ax.plot(end, places, **look, label=f"epsilon {epsilon}, here")
        ax.plot(shown, places - 0.3, **look, fillstyle="none", label=f"epsilon {epsilon}, printed")
    ax.set_xscale("function", functions=(np.sqrt, np.square))  # rare and frequent regions are both told apart
    ax.set_xlim(0, 90_000)
    ax.set_xticks(TICKS, [f"{tick / 1000:g}" for tick in TICKS])
    ax.set_yticks(places, [NAMES[region] for region in order], fontsize=8)
    ax.set_xlabel("deaths (thousands, square-root scale)")
    ax.grid(axis="x", color="0.92", linewidth=0.6)
