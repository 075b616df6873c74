"""Which budget shares of levels reproduce the printed tables of the pilot: 48 splits, and the printed one."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import product
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.ons.deaths import Deaths, synthetic_deaths
from algorithms.ons.independent import IndependentNoise
from algorithms.ons.tables import Domain, Table
from algorithms.ons.top_down import OnsTopDown
from algorithms.release.ledger import Share
from audit.results.plots import GRAY
from experiments.audits import repeat, run_all
from experiments.drawing import foot, name_rows, own_keys, page, styles
from experiments.experiment import Check, Checks, Numbers, between
from experiments.ons import printed
from experiments.ons.printed import AREAS, CELLS, EPSILONS, NAMES, PILOT, REGIONS, WITH, WITHOUT, misfit, misfits

RARE = ("NA", "S99999999", "N99999999")
BUDGETS = {6: (5.0, 10.0, 20.0), 7: (0.1, 0.2, 0.3)}  # epsilons of Tables 6 and 7, not printed: for all splits
MORE = {6: (2.0, 5.0, 10.0, 20.0, 50.0), 7: (0.03, 0.1, 0.2, 0.3, 0.5)}  # for two splits
OWN = (0.03, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 1.0)  # epsilons of a table with independent noise
TOTAL = "0.2"  # the share of the total, estimated from printed totals; other tables do not depend on it
STEPS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)  # shares of the nation and of regions; areas get the rest
AGREE = 1.25  # splits within this factor of the least misfit fit equally well
FACTOR = 2.0  # largest ratio of rare regions to the printed counts
TOTALS = (Table(1, "total"), Table(2, "total"))
RUNS, FEW = 201, 5  # releases: of Tables 8 to 11; of 6 and 7
Row = dict[str, Any]  # results of a split


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Release once with 48 splits, then often with the printed and the best split (quick: two splits, areas merged)."""
    deaths, runs = synthetic_deaths(0), 2 if quick else RUNS
    deaths = printed.merged(deaths) if quick else deaths
    pairs = [(0.1, 0.2), (0.3, 0.2)] if quick else [pair for pair in product(STEPS, STEPS) if sum(pair) < 0.79]
    splits = [(TOTAL, f"{nation:g}", f"{regions:g}", f"{0.8 - nation - regions:.2f}") for nation, regions in pairs]
    fitted = _rows(deaths, [PILOT, *splits], BUDGETS, 1, seed, jobs)
    least = min(fitted[1:], key=misfit)["shares"]
    by_print, best = _rows(deaths, [PILOT, least], MORE, runs, seed + 1, jobs)  # new noise: no selection bias
    settings = [*product(CELLS, OWN)][:: 7 if quick else 1]
    tasks = [delayed(_independent)(deaths, *one, min(runs, FEW), np.random.SeedSequence(seed)) for one in settings]
    matrices = run_all(tasks, jobs, "matrices by independent noise", unit="settings")
    (before,) = Domain(deaths.tree, deaths.schema).tabulate(deaths.histogram, TOTALS[:1])
    return {
        "runs": runs,
        "regions": _named(deaths, 1, before[:, 0]),
        "splits": fitted,
        "printed": by_print,
        "best": best,
        "independent": [[*setting, far] for setting, far in zip(settings, matrices, strict=True)],
    }


def _rows(
    deaths: Deaths, splits: Sequence[Sequence[Share]], budgets: dict[int, Any], runs: int, seed: int, jobs: int
) -> list[Row]:
    """Return medians of releases for every split; all splits use the same random numbers."""
    codes = printed.codes_of(deaths)
    inside = {region for region, area in codes if area in AREAS[WITH]}  # other areas do not affect printed numbers
    near = printed.merged(deaths, {area for region, area in codes if region in inside})
    trees = {6: deaths, 7: printed.merged(deaths, ())}
    kinds = [*product((WITH, WITHOUT), EPSILONS)]
    wanted = [(table, epsilon) for table, own in budgets.items() for epsilon in own]
    made = [(near, shares, epsilon, variant == WITH) for shares in splits for variant, epsilon in kinds]
    streams = (np.random.SeedSequence(seed) for _ in made)
    releases = iter(repeat(_released, made, streams, runs, jobs=jobs, words="regions of the pilot", unit="releases"))
    tasks = [
        delayed(_top_down)(trees[number], shares, number, epsilon, min(runs, FEW), np.random.SeedSequence(seed))
        for shares, (number, epsilon) in product(splits, wanted)
    ]
    matrices = iter(run_all(tasks, jobs, "matrices of the pilot", unit="settings"))
    rows = []
    for shares in splits:
        row: Row = {"shares": list(map(str, shares)), WITH: {}, WITHOUT: {}, "6": {}, "7": {}}
        for variant, epsilon in kinds:
            middle = np.median(np.array(next(releases)), axis=0)
            row[variant][f"{epsilon:g}"] = {
                "regions": _named(near, 1, middle[: len(NAMES)]),
                "areas": _named(near, 2, middle[len(NAMES) :], AREAS[WITH]),
            }
        for number, epsilon in wanted:
            row[str(number)][f"{epsilon:g}"] = next(matrices)
        rows.append(row)
    return rows


def _named(deaths: Deaths, level: int, numbers: NDArray[Any], names: Container[str] = NAMES) -> dict[str, Any]:
    codes = (deaths.tree.codes(node)[-1] for node in range(*deaths.tree.level(level).indices(deaths.tree.n_nodes)))
    return {code: number for code, number in zip(codes, numbers.tolist(), strict=True) if code in names}


def _released(deaths: Deaths, shares: Sequence[Share], epsilon: float, zeros: bool, stream: Any) -> NDArray[np.int64]:
    top_down = OnsTopDown(deaths.tree, deaths.schema, epsilon, shares=shares, perturb_zeros=zeros)
    people = top_down(deaths.histogram, 1, np.random.default_rng(stream))[0]
    return np.concatenate([table[:, 0] for table in top_down.domain.tabulate(people, TOTALS)])


def _top_down(deaths: Deaths, shares: Sequence[Share], number: int, epsilon: float, runs: int, stream: Any) -> float:
    """Return the distance of some releases from Table 6 or 7: see `apart`."""
    top_down = OnsTopDown(deaths.tree, deaths.schema, epsilon, shares=shares)
    people = top_down(deaths.histogram, runs, np.random.default_rng(stream))
    before, after = (top_down.domain.tabulate(data, [CELLS[number]])[0] for data in (deaths.histogram, people))
    return printed.apart(number, before, after)


def _independent(deaths: Deaths, number: int, epsilon: float, runs: int, stream: Any) -> float:
    table = CELLS[number]
    options: dict[str, Any] = {"law": "laplace", "nonnegative": True}
    independent = IndependentNoise(deaths.tree, deaths.schema, epsilon, [table], **options)
    (counts,) = independent.release(deaths.histogram, runs, np.random.default_rng(stream))
    (before,) = independent.domain.tabulate(deaths.histogram, [table])
    return printed.apart(number, before, counts)


def check(numbers: Numbers) -> Checks:
    before, full = numbers["regions"], numbers["runs"] == RUNS
    actual = {region: counts[0] for region, counts in REGIONS[WITH].items()}
    yield Check(f"{sum(before.values()):,} deaths, by region those of Table 8", before == actual)
    lack, share, (least, most) = printed.total_share()
    words = (
        f"totals of Tables 8, 10, {lack} added: share {share:.2f}, 95% {least:.2f} to {most:.2f}, printed {PILOT[0]}"
    )
    yield Check(words, float(PILOT[0]) < least and f"{share:.1f}" == TOTAL)
    _, shown, own = printed.beside(numbers["printed"], 8)
    for region, (place, epsilon) in product(RARE, enumerate(EPSILONS)):
        ratio = (own / shown)[list(NAMES).index(region), place]
        yield between(f"epsilon {epsilon:g}: {NAMES[region]} after / printed", ratio, 1 / FACTOR, FACTOR)
    if not full:  # quick: areas are merged
        return
    for number, found in printed.agreement(numbers["printed"]).items():
        words = f"Table {number}, printed shares: {found['words']}: {found['how']}"
        yield Check(words, found["how"] == ("direction" if number == 8 else "differs"))
    (_, top_down), (_, laplace) = nearest(numbers, 6, "printed"), nearest(numbers, 6, "laplace")
    words = f"by independent Laplace noise {laplace:.2f}"
    yield Check(f"Table 6: nearest by top-down, printed shares {top_down:.2f} apart, {words}", laplace < top_down)
    epsilon, far = nearest(numbers, 7, "printed")
    yield between("Table 7: nearest by top-down apart", far, 0, 0.25)
    yield Check(f"Table 7: nearest at epsilon {epsilon:g}, expected at most 0.3", epsilon <= 0.3)
    for left_out in ((), *((number,) for number in misfits(numbers["best"]))):
        ours, theirs = (misfit(numbers[split], left_out) for split in ("best", "printed"))
        words = f"Tables 6 to 11 without {left_out[0]}" if left_out else "Tables 6 to 11"
        yield Check(f"{words}: misfit {ours:.3f} by the best split, {theirs:.3f} by the printed", ours < theirs)


def nearest(numbers: Numbers, number: int, method: str) -> tuple[float, float]:
    """Return the epsilon at which a split or a law is nearest to Table 6 or 7, and the distance."""
    if method in numbers:
        fits = {float(epsilon): far for epsilon, far in numbers[method][str(number)].items()}
    else:
        fits = {epsilon: far for table, epsilon, far in numbers["independent"] if table == number}
    return min(fits.items(), key=lambda item: item[1])


def facts(numbers: Numbers) -> dict[str, Any]:
    by_print, best, splits = numbers["printed"], numbers["best"], numbers["splits"][1:]
    lack, total, (least, most) = printed.total_share()
    own, pilot = misfits(best), misfits(by_print)
    near = [row["shares"] for row in splits if misfit(row) <= AGREE * min(map(misfit, splits))]
    nation, regions, areas = (f"{min(column)} to {max(column)}" for column in list(zip(*near, strict=True))[1:])
    words, actual, shown = ", ".join(best["shares"]), REGIONS[WITH]["N99999999"][0], REGIONS[WITH]["N99999999"][3]
    rows = [(f"Table {number}", f"{pilot[number]:.3f}", f"{own[number]:.3f}") for number in own]
    rows.append(("geometric mean", f"{misfit(by_print):.3f}", f"{misfit(best):.3f}"))
    ireland = [row[WITH]["0.1"]["regions"]["N99999999"] for row in (by_print, best)]
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, (ax,) = page(4.6)
    order = np.argsort([-numbers["regions"][region] for region in NAMES])
    for split, face in (("printed", {"markerfacecolor": "white"}), ("best", {})):
        _, shown, own = printed.beside(numbers[split], 8)
        for place, (epsilon, look) in enumerate(styles(EPSILONS, linestyle="none").items()):
            label = f"epsilon {epsilon:g}, {'printed shares' if face else 'best split'}"
            ratios = (own / shown)[order, place]
            ax.plot(ratios, np.arange(len(order)) + 0.22 * (place - 1), **look | face, label=label)
    ax.axvline(1, color=GRAY, linewidth=0.8)
    ax.set(xscale="log", xlabel="deaths after, here / printed in Table 8 (log scale)")
    ax.set_xticks(ticks := np.arange(9, 16) / 10, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    name_rows(ax, [list(NAMES.values())[region] for region in order])
    foot(figure, own_keys(ax), ncols=3)
    return figure
