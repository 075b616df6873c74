"""Which shares of its levels give the pilot's printed tables: 48 splits, and the printed one."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import spearmanr

from algorithms.ons.deaths import Deaths
from algorithms.ons.independent import IndependentNoise
from algorithms.ons.tables import Domain, Table
from algorithms.ons.top_down import OnsTopDown
from algorithms.tables.shares import Share
from audit.results.plots import BLACK, BLUE, GRAY
from experiments.audits import repeat, run_all
from experiments.drawing import foot, head, name_rows, own_keys, page, spread, styles
from experiments.experiment import Check, Checks, Numbers, between
from experiments.ons import printed
from experiments.ons.printed import AREAS, CELLS, EPSILONS, NAMES, PILOT, REGIONS, WITH, WITHOUT, misfit, misfits

RARE = ("NA", "S99999999", "N99999999")
BUDGETS = {6: (5.0, 10.0, 20.0), 7: (0.1, 0.2, 0.3)}  # by table, neither's is printed: for all splits
MORE = {6: (2.0, 5.0, 10.0, 20.0, 50.0), 7: (0.03, 0.1, 0.2, 0.3, 0.5)}  # for two
OWN = (0.03, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 1.0)  # of the table, if noise is independent
LAWS = ("laplace", "geometric")
SPREAD = "laplace, fifteen causes added up"  # each cell the sum of as many noisy ones, raised to 0 before
TOTAL = "0.2"  # the share of the total that fits the printed totals; other tables do not show it
STEPS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)  # shares of the nation and of regions; areas get the rest
AGREE = 1.25  # splits with at most so many times the least misfit are not told apart
MARGIN, FACTOR, NEAR = 0.01, 2.0, 1.5
TOTALS = (Table(1, "total"), Table(2, "total"))
RUNS, FEW = 201, 5  # releases of Tables 8 to 11, of 6 and 7
FAR = 25.0  # scales of Laplace noise: exceeded once in 7e10 draws
Row = dict[str, Any]  # what a split gives


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Release once by 48 splits, then anew and often by the printed and the best ones (quick: two, areas merged)."""
    deaths, runs = printed.all_deaths(quick), 2 if quick else RUNS
    pairs = [(0.1, 0.2), (0.3, 0.2)] if quick else [pair for pair in product(STEPS, STEPS) if sum(pair) < 0.79]
    splits = [(TOTAL, f"{nation:g}", f"{regions:g}", f"{0.8 - nation - regions:.2f}") for nation, regions in pairs]
    fitted = _rows(deaths, [PILOT, *splits], BUDGETS, 1, seed, jobs)
    least = [min(fitted[1:], key=far)["shares"] for far in (misfit, lambda row: misfits(row)[6])]
    by_print, best, of_6 = _rows(deaths, [PILOT, *least], MORE, runs, seed + 1, jobs)  # which did not choose
    settings = [*product((*LAWS, SPREAD), CELLS, OWN)][:: 7 if quick else 1]
    tasks = [delayed(_independent)(deaths, *one, min(runs, FEW), np.random.SeedSequence(seed)) for one in settings]
    matrices = run_all(tasks, jobs, "matrices by independent noise", unit="settings")
    (before,) = Domain(deaths.tree, deaths.schema).tabulate(deaths.histogram, TOTALS[:1])
    return {
        "runs": runs,
        "regions": _named(deaths, 1, before[:, 0]),
        "splits": fitted,
        "printed": by_print,
        "best": best,
        "best of Table 6": of_6,
        "independent": [[*setting, *matrix] for setting, matrix in zip(settings, matrices, strict=True)],
    }


def _rows(
    deaths: Deaths, splits: Sequence[Sequence[Share]], budgets: dict[int, Any], runs: int, seed: int, jobs: int
) -> list[Row]:
    """Return what every split gives: medians of releases, with random numbers that are the same for all splits."""
    codes = printed.codes_of(deaths)
    inside = {region for region, area in codes if area in AREAS[WITH]}  # areas elsewhere change nothing that is printed
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
            known = [area for area, counts in AREAS[variant].items() if all(counts[1:])]
            own = np.array(next(releases))
            middle = np.median(own, axis=0)
            noise = np.abs(np.log(np.maximum(own, 1) / np.maximum(middle, 1))).mean(axis=0)
            row[variant][f"{epsilon:g}"] = {
                "regions": _named(near, 1, middle[: len(NAMES)]),
                "areas": _named(near, 2, middle[len(NAMES) :], AREAS[WITH]),
                "noise": {
                    "regions": float(noise[: len(NAMES)].mean()),
                    "areas": float(np.mean([*_named(near, 2, noise[len(NAMES) :], known).values()])),
                },
                "totals": own[:, : len(NAMES)].sum(axis=1).tolist(),
            }
        for number, epsilon in wanted:
            row[str(number)][f"{epsilon:g}"] = next(matrices)
        rows.append(row)
    return rows


def _named(deaths: Deaths, level: int, numbers: NDArray[Any], names: Container[str] = NAMES) -> dict[str, Any]:
    """Return the numbers of a level's areas by their codes, of those that are wanted."""
    codes = (deaths.tree.codes(node)[-1] for node in range(*deaths.tree.level(level).indices(deaths.tree.n_nodes)))
    return {code: number for code, number in zip(codes, numbers.tolist(), strict=True) if code in names}


def _released(deaths: Deaths, shares: Sequence[Share], epsilon: float, zeros: bool, stream: Any) -> NDArray[np.int64]:
    """Return the deaths of all regions, then of all areas, after one release."""
    top_down = OnsTopDown(deaths.tree, deaths.schema, epsilon, shares=shares, perturb_zeros=zeros)
    people = top_down(deaths.histogram, 1, np.random.default_rng(stream))[0]
    return np.concatenate([table[:, 0] for table in top_down.domain.tabulate(people, TOTALS)])


def _top_down(
    deaths: Deaths, shares: Sequence[Share], number: int, epsilon: float, runs: int, stream: Any
) -> list[float]:
    """Compare Table 6 or 7 with some releases: see `apart`."""
    top_down = OnsTopDown(deaths.tree, deaths.schema, epsilon, shares=shares)
    people = top_down(deaths.histogram, runs, np.random.default_rng(stream))
    before, after = (top_down.domain.tabulate(data, [CELLS[number]])[0] for data in (deaths.histogram, people))
    return printed.apart(number, before, after)


def _independent(deaths: Deaths, method: str, number: int, epsilon: float, runs: int, stream: Any) -> list[float]:
    """Do the same with independent noise, negative values raised to 0."""
    table, schema = CELLS[number], deaths.schema
    noisy = Table(table.level, f"cause*{table.query}") if method == SPREAD else table
    options: dict[str, Any] = {"law": "laplace" if method == SPREAD else method, "nonnegative": True}
    independent = IndependentNoise(deaths.tree, schema, epsilon, [noisy], **options)
    (counts,) = independent.release(deaths.histogram, runs, np.random.default_rng(stream))
    if method == SPREAD:  # attributes of a table run in the order of the schema
        own = [name for name in schema.attributes if name in noisy.query.split("*")]
        counts = counts.reshape(*counts.shape[:2], *(len(schema.attributes[name]) for name in own))
        counts = counts.sum(axis=2 + own.index("cause")).reshape(*counts.shape[:2], -1)
    (before,) = independent.domain.tabulate(deaths.histogram, [table])
    return printed.apart(number, before, counts)


def check(numbers: Numbers) -> Checks:
    before, row, full = numbers["regions"], numbers["printed"], numbers["runs"] == RUNS
    actual = {region: counts[0] for region, counts in REGIONS[WITH].items()}
    yield Check(f"{sum(before.values()):,} deaths, by region those of Table 8", before == actual)
    yield from _check_regions(row)
    yield from _check_areas(row) if full else ()  # else areas are merged
    for variant, epsilon in product((WITH, WITHOUT), EPSILONS):
        off = np.max(np.abs(np.subtract(row[variant][f"{epsilon:g}"]["totals"], sum(before.values()))))
        scales = float(off) * float(PILOT[0]) * epsilon
        yield between(f"{variant}, epsilon {epsilon:g}: total, most off in scales", scales, 0, FAR)
    lack, share, (least, most) = printed.total_share()
    words = (
        f"totals of Tables 8, 10, {lack} added: share {share:.2f}, 95% {least:.2f} to {most:.2f}, printed {PILOT[0]}"
    )
    yield Check(words, float(PILOT[0]) < least and f"{share:.1f}" == TOTAL)
    yield from _check_fit(numbers) if full else ()


def _check_regions(row: Row) -> Checks:
    names, (actual, shown, own), (_, _, kept) = list(NAMES), printed.beside(row, 8), printed.beside(row, 10)
    before, (_, shown_areas, areas) = actual[:, 0], printed.beside(row, 9)
    for place, epsilon in enumerate(EPSILONS):
        where, change, wanted = f"epsilon {epsilon:g}", own[:, place] - before, shown[:, place] - before
        clear = np.abs(wanted) > MARGIN * before
        same = (change * wanted > 0)[clear]
        words = f"{where}: {same.sum()} of {same.size} regions with a clear printed change go the same way"
        yield Check(words, bool(same.all() and same.size))
        rank = float(spearmanr(change, wanted).statistic)
        yield between(f"{where}: rank correlation of changes with Table 8", rank, printed.RANKED, 1)
        for region in RARE:
            at = names.index(region)
            ratio = own[at, place] / shown[at, place]
            yield between(f"{where}: {NAMES[region]} after / printed", ratio, 1 / FACTOR, FACTOR)
            gain = (kept[at, place] - before[at]) / change[at]
            words = f"{where}: {NAMES[region]}, gain without noise on zeros / with it: {gain:.2g}, expected at most 0.5"
            yield Check(words, bool(change[at] > 0 and gain <= 0.5))
        ratios = (areas / shown_areas)[[area.startswith("ZC") for area in AREAS[WITH]], place]
        words = f"{ratios.min():.2f} to {ratios.max():.2f} of the printed, expected {1 / FACTOR:g} to {FACTOR:g}"
        inside = bool((np.abs(np.log(ratios)) <= np.log(FACTOR)).all())
        yield Check(f"{where}: five areas of Northern Ireland after, {words}", inside)
    for region in RARE:
        after = [before[names.index(region)], *own[names.index(region)]]
        words = " -> ".join(f"{count:,.0f}" for count in after)
        yield Check(f"{NAMES[region]} grows as epsilon falls: {words}", all(a < b for a, b in pairwise(after)))


def _check_areas(row: Row) -> Checks:
    english = np.array([area.startswith("E") for area in AREAS[WITH]])
    for number, (place, epsilon) in product((9, 11), enumerate(EPSILONS)):
        _, shown, own = printed.beside(row, number)
        ratios, where = (own / shown)[english, place], f"{printed.COUNTS[number][1]}, epsilon {epsilon:g}"
        for what, ratio in (("least", ratios.min()), ("most", ratios.max())):
            yield between(f"{where}: {ratios.size} areas of England, {what} after / printed", ratio, 1 / NEAR, NEAR)
        if number == 11:
            most = own[~english, place].max()
            yield between(f"{where}: largest area of Northern Ireland (printed: 37)", most, 0, 50)


def _check_fit(numbers: Numbers) -> Checks:
    (_, top_down), (_, laplace) = nearest(numbers, 6, "printed"), nearest(numbers, 6, "laplace")
    words = f"by independent Laplace noise {laplace:.2f}"
    yield Check(f"Table 6: nearest by top-down, printed shares {top_down:.2f} apart, {words}", laplace < top_down)
    _, least = nearest(numbers, 6, "best of Table 6")
    own = ", ".join(numbers["best of Table 6"]["shares"])
    yield Check(f"Table 6: nearest by top-down, shares {own}, {least:.2f} apart, {words}", least < laplace)
    yield between("Table 6: nearest independent noise apart", laplace, 0, 0.25)
    epsilon, far = nearest(numbers, 7, "printed")
    yield between("Table 7: nearest by top-down apart", far, 0, 0.25)
    yield Check(f"Table 7: nearest at epsilon {epsilon:g}, expected at most 0.3", epsilon <= 0.3)
    others = min(nearest(numbers, 7, method)[1] for method in (*LAWS, SPREAD))
    yield Check(f"Table 7: nearest by independent noise {others:.2f} apart", far < others)
    for number, found in printed.agreement(numbers["printed"]).items():
        words = f"Table {number}, printed shares: {found['words']}: {found['how']}"
        yield Check(words, found["how"] == ("direction" if number == 8 else "differs"))
    for left_out in ((), *((number,) for number in misfits(numbers["best"]))):
        ours, theirs = (misfit(numbers[split], left_out) for split in ("best", "printed"))
        words = f"Tables 6 to 11 without {left_out[0]}" if left_out else "Tables 6 to 11"
        yield Check(f"{words}: misfit {ours:.3f} by the best split, {theirs:.3f} by the printed", ours < theirs)


def nearest(numbers: Numbers, number: int, method: str) -> tuple[float, float]:
    """Return the epsilon at which a split or a law comes nearest to Table 6 or 7, and how far that is."""
    if method in numbers:
        fits = {float(epsilon): matrix[0] for epsilon, matrix in numbers[method][str(number)].items()}
    else:
        fits = {row[2]: row[3] for row in numbers["independent"] if row[:2] == [method, number]}
    return min(fits.items(), key=lambda item: item[1])


def facts(numbers: Numbers) -> dict[str, Any]:
    by_print, best, splits = numbers["printed"], numbers["best"], numbers["splits"][1:]
    lack, total, (least, most) = printed.total_share()
    own, pilot, noise = misfits(best), misfits(by_print), printed.noise_of(by_print)
    near = [row["shares"] for row in splits if misfit(row) <= AGREE * min(map(misfit, splits))]
    nation, regions, areas = (f"{min(column)} to {max(column)}" for column in list(zip(*near, strict=True))[1:])
    alike = ", ".join(str(table) for table, one in printed.agreement(best).items() if one["how"] == "direction")
    words, actual, shown = ", ".join(best["shares"]), REGIONS[WITH]["N99999999"][0], REGIONS[WITH]["N99999999"][3]
    rows = []
    for number in own:
        without = min(splits, key=lambda row: misfit(row, [number]))["shares"]
        rows.append((f"Table {number}", *(f"{far[number]:.3f}" for far in (pilot, own, noise)), ", ".join(without)))
    rows.append(("geometric mean", f"{misfit(by_print):.3f}", f"{misfit(best):.3f}", "", words))
    units = [sum(far / noise[table] for table, far in misfits(row).items()) for row in (by_print, best, *splits)]
    in_noise = splits[int(np.argmin(units[2:]))]["shares"]
    rows.append(("sum, in units of noise", f"{units[0]:.0f}", f"{units[1]:.0f}", "", ", ".join(in_noise)))
    ireland = [row[WITH]["0.1"]["regions"]["N99999999"] for row in (by_print, best)]
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, axes = page(7.4, 2, 2, heights=(3, 4))
    tables, profile, regions = spread(axes)
    splits, pale = numbers["splits"][1:], {"markerfacecolor": "white"}
    pilot, best = misfits(numbers["printed"]), misfits(numbers["best"])
    dots: dict[str, Any] = {"marker": "o", "linestyle": "none"}
    looks = {"printed shares": dots | pale | {"color": BLACK}, "best split": dots | {"color": BLUE}}
    looks["noise of a release"] = dots | {"marker": "|", "color": GRAY, "markersize": 11}
    for (label, look), far in zip(looks.items(), (pilot, best, printed.noise_of(numbers["printed"])), strict=True):
        tables.plot([far[number] for number in pilot], range(len(pilot)), **look, label=label)
    tables.set(xscale="log", xlabel="misfit (log scale)", xlim=(0.002, 1))
    name_rows(tables, [f"Table {number}" for number in pilot])
    tables.set_title(f"(a) the best split is nearer\nin {sum(best[one] < pilot[one] for one in pilot)} of 6 tables")
    for level, (words, look) in enumerate(styles(("nation", "regions", "areas")).items(), 1):
        at = sorted({row["shares"][level] for row in splits}, key=float)
        least = [min(misfit(row) for row in splits if row["shares"][level] == share) for share in at]
        profile.plot(list(map(float, at)), least, **look, label=words)
        profile.plot(float(PILOT[level]), misfit(numbers["splits"][0]), **look | pale)
    profile.axhline(AGREE * min(map(misfit, splits)), color=GRAY, linestyle=":")
    words = f"share of a level; open: printed\n(dotted: {AGREE:g} times the least)"
    profile.set(xlabel=words, ylabel="least mean misfit")
    head(profile, "(b) many splits do nearly as well", own_keys(profile))
    order = np.argsort([-numbers["regions"][region] for region in NAMES])
    for split, face in (("printed", pale), ("best", {})):
        _, shown, own = printed.beside(numbers[split], 8)
        for place, (epsilon, look) in enumerate(styles(EPSILONS, linestyle="none").items()):
            label = f"epsilon {epsilon:g}, {'printed shares' if face else 'best split'}"
            ratios = (own / shown)[order, place]
            regions.plot(ratios, np.arange(len(order)) + 0.22 * (place - 1), **look | face, label=label)
    regions.axvline(1, color=GRAY, linewidth=0.8)
    regions.set(xscale="log", xlabel="deaths after, here / printed in Table 8 (log scale)")
    regions.set_xticks(ticks := np.arange(9, 16) / 10, [f"{tick:g}" for tick in ticks])
    regions.minorticks_off()
    name_rows(regions, [list(NAMES.values())[region] for region in order], size=8)
    regions.set_title("(c) with the printed shares small regions gain too much")
    foot(figure, [*own_keys(tables), *own_keys(regions)], ncols=3)
    return figure
