"""The accuracy of the fourteen tables of the pilot by its two methods, for several budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.ons.deaths import Deaths, brazil_deaths, synthetic_deaths
from algorithms.ons.independent import IndependentNoise
from algorithms.ons.laws import PILOT_DELTA, CountNoise, Law
from algorithms.ons.tables import PILOT_LEVELS, PILOT_TABLES, Domain, Table
from algorithms.ons.top_down import PILOT_SHARES, OnsTopDown, default_levels
from algorithms.ons.utility import utility
from algorithms.release.ledger import Share
from audit.results.plots import BLACK
from experiments.drawing import foot, own_keys, page, styles
from experiments.experiment import Check, Checks, Numbers, between
from experiments.ons.printed import merged

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
LAWS: tuple[Law, ...] = ("laplace", "geometric", "gaussian")
MEASURES = ("on_diagonal", "l1", "l2", "hellinger")
SPLITS: dict[str, tuple[Share, ...]] = {"pilot": PILOT_SHARES, "equal": ("0.01", "0.33", "0.33", "0.33")}
RUNS = 3
STEADY = 0.1  # below it noise dominates, and a step of epsilon may change little
GROUPS = {  # of Table 4
    "areas by three variables": slice(0, 3),
    "areas by two": slice(3, 5),
    "areas by one": slice(5, 10),
    "regions by two": slice(10, 14),
}
STYLES = styles(GROUPS, markersize=3.5)


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Release all tables three times at ten budgets (quick: once at three, most areas merged)."""
    deaths, brazil = synthetic_deaths(0), brazil_deaths()
    runs, epsilons = (1, (0.1, 2.0)) if quick else (RUNS, EPSILONS)
    deaths = merged(deaths) if quick else deaths
    levels, shares = default_levels(Domain(brazil.tree, brazil.schema))
    months = [Table(level, "month") for level in range(1, brazil.tree.depth + 1)]
    kinds: dict[str, Any] = {
        **{f"top-down, {name}": (deaths, PILOT_TABLES, {"shares": split}) for name, split in SPLITS.items()},
        **{law: (deaths, PILOT_TABLES, {"law": law, "delta": PILOT_DELTA * (law == "gaussian")}) for law in LAWS},
        "epsilon a table": (deaths, PILOT_TABLES, {"law": "laplace"}),
        "Brazil, top-down": (brazil, months, {"shares": shares, "levels": levels}),
        "Brazil, laplace": (brazil, months, {"law": "laplace"}),
    }
    settings = [(kind, epsilon) for kind in kinds for epsilon in epsilons]
    streams = np.random.SeedSequence(seed).spawn(len(settings))
    released = Parallel(n_jobs=jobs)(
        delayed(_released)(*kinds[kind], epsilon * (len(PILOT_TABLES) if kind == "epsilon a table" else 1), runs, own)
        for (kind, epsilon), own in zip(settings, streams, strict=True)
    )
    by_kind: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
    for (kind, epsilon), own in zip(settings, released, strict=True):
        by_kind[kind][f"{epsilon:g}"] = own
    return {
        "people": int(deaths.histogram.sum()),
        "runs": runs,
        "kinds": by_kind,
        "brazil": {"deaths": int(brazil.histogram.sum()), "tree": repr(brazil.tree), "shares": [*map(float, shares)]},
    }


def _released(
    deaths: Deaths, tables: Sequence[Table], options: dict[str, Any], epsilon: float, runs: int, stream: Any
) -> dict[str, Any]:
    """Return the median utility of each table; for independent noise, also with negative values raised to 0."""
    domain, rng = Domain(deaths.tree, deaths.schema), np.random.default_rng(stream)
    exact = domain.tabulate(deaths.histogram, tables)
    if "law" not in options:
        top_down = OnsTopDown(deaths.tree, deaths.schema, epsilon, **{"levels": PILOT_LEVELS, **options})
        people = (top_down(deaths.histogram, 1, rng)[0] for _ in range(runs))
        return _medians([_utilities(exact, domain.tabulate(release, tables)) for release in people])
    independent = IndependentNoise(deaths.tree, deaths.schema, epsilon, tables, **options)
    releases = independent.release(deaths.histogram, runs, rng)
    raised = [np.maximum(table, 0) for table in releases]  # like the option `nonnegative`
    gain = np.concatenate([(after - before).ravel() for before, after in zip(exact, raised, strict=True)])
    expected = [_lift(noise, before) for noise, before in zip(independent.noises, exact, strict=True)]
    variance = [noise.noise.variance * before.size for noise, before in zip(independent.noises, exact, strict=True)]
    return {
        **_medians([_utilities(exact, [table[run] for table in releases]) for run in range(runs)]),
        "raised": _medians([_utilities(exact, [table[run] for table in raised]) for run in range(runs)]),
        "lift": float(gain.mean()),
        "expected": float(np.concatenate(expected).mean()),
        "error": math.sqrt(sum(variance) * runs) / gain.size,
    }


def _utilities(exact: Sequence[NDArray[np.int64]], tables: Sequence[NDArray[Any]]) -> list[list[float]]:
    utilities = [utility(before, after) for before, after in zip(exact, tables, strict=True)]
    return [[of_table[measure] for of_table in utilities] for measure in MEASURES]


def _medians(of_runs: Sequence[list[list[float]]]) -> dict[str, list[float | None]]:
    """Return the median over runs of each measure and table; None if Hellinger's distance is undefined."""
    medians = np.median(of_runs, axis=0)
    return {
        measure: [None if math.isnan(value) else float(f"{value:.5g}") for value in row]
        for measure, row in zip(MEASURES, medians, strict=True)
    }


def _lift(noise: CountNoise, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the expected increase of each count by raising negative values to 0, from the law of its noise."""
    # It is the sum over k = 1, 2, ... of the probability that the noisy count is -k or less.
    reach = int(40 * math.sqrt(noise.noise.variance)) + 2
    falls = np.exp(noise.log_below(-np.arange(1.0, reach)))
    lifts = np.append(np.cumsum(falls[::-1])[::-1], 0.0)
    return np.asarray(lifts[np.minimum(counts.ravel(), reach - 1)])


def check(numbers: Numbers) -> Checks:
    kinds = numbers["kinds"]
    for kind in ("top-down, pilot", "laplace", "Brazil, top-down", "Brazil, laplace"):
        yield from _improves(kind, kinds[kind])
    yield from _improves("laplace, raised", {epsilon: row["raised"] for epsilon, row in kinds["laplace"].items()})
    for epsilon, row in kinds["top-down, pilot"].items():
        ratios = np.divide(row["l1"], kinds["laplace"][epsilon]["l1"])
        worse = int((ratios > 1).sum())
        if float(epsilon) >= 1:
            words = f"epsilon {epsilon}: top-down loses more than independent noise in {worse} of {len(ratios)} tables"
            yield Check(f"{words}, expected more than half", worse > len(ratios) / 2)
            for measure in ("l1", "l2"):
                more = np.greater(row[measure], kinds["epsilon a table"][epsilon][measure])
                words = f"epsilon {epsilon}: {measure} above that of independent noise with epsilon a table"
                yield Check(f"{words} in {more.sum()} of {more.size} tables, expected all", bool(more.all()))
        if float(epsilon) >= STEADY:
            shifted = np.divide(kinds["top-down, equal"][epsilon]["l1"], row["l1"])[GROUPS["regions by two"]]
            yield between(f"epsilon {epsilon}: L1 of regions, equal shares / the pilot's", shifted.max(), 0, 1)
    for law in LAWS:
        off = [abs(row["lift"] - row["expected"]) / row["error"] for row in kinds[law].values()]
        yield between(f"{law}: lift of raised counts, most standard errors off its law", max(off), 0, 6)


def _improves(kind: str, rows: dict[str, Any]) -> Checks:
    """Expect that from epsilon 0.1 on every step reduces distances, and puts more cells into their class."""
    steady = [row for epsilon, row in rows.items() if float(epsilon) >= STEADY]
    for measure in MEASURES[1:]:
        pairs = [(a[measure], b[measure]) for a, b in pairwise(steady) if None not in a[measure]]
        if pairs:
            falls = all(x > y or x == y == 0 for a, b in pairs for x, y in zip(a, b, strict=True))
            yield Check(f"{kind}: {measure} falls with every step from {STEADY:g} on in every table", falls)
    shares = [float(np.mean(row["on_diagonal"])) for row in steady]
    words = " -> ".join(f"{share:.2f}" for share in shares)
    yield Check(f"{kind}: cells in their class, mean of tables: {words}", all(a < b for a, b in pairwise(shares)))


def _against(numbers: Numbers, kind: str, other: str, epsilon: str) -> NDArray[np.float64]:
    """Return the L1 error of each table relative to that of another method; NaN if that is 0."""
    mine, theirs = (np.array(numbers["kinds"][name][epsilon]["l1"]) for name in (kind, other))
    return np.asarray(np.divide(mine, theirs, out=np.full(mine.shape, np.nan), where=theirs > 0))


def facts(numbers: Numbers) -> dict[str, Any]:
    epsilons = list(numbers["kinds"]["laplace"])
    at, last = "1" if "1" in epsilons else epsilons[0], epsilons[-1]
    ratios = [
        _against(numbers, "top-down, pilot", "laplace", at),
        _against(numbers, "top-down, pilot", "epsilon a table", at),
        _against(numbers, "top-down, equal", "top-down, pilot", at),
        _against(numbers, "top-down, equal", "top-down, pilot", last),
    ]
    brazil = _against(numbers, "Brazil, top-down", "Brazil, laplace", at)
    worse = (ratios[0] > 1).sum()
    in_regions, in_areas = (_span(ratios[0][GROUPS[group]]) for group in ("regions by two", "areas by three variables"))
    rows = [(words, *(_span(ratio[place]) for ratio in ratios)) for words, place in GROUPS.items()]
    return locals()


def _span(values: NDArray[np.float64]) -> str:
    least, most = (float(f"{one:.2g}") for one in (np.nanmin(values), np.nanmax(values)))
    return f"{least:g} to {most:g}"


def draw(numbers: Numbers) -> Figure:
    figure, (ax,) = page(4.0)
    epsilons = [float(epsilon) for epsilon in numbers["kinds"]["top-down, pilot"]]

    def ratios(kind: str, other: str) -> NDArray[np.float64]:
        return np.array([_against(numbers, kind, other, epsilon) for epsilon in numbers["kinds"][kind]])

    values = ratios("top-down, pilot", "laplace")
    for group, look in STYLES.items():
        label = f"{group} (median of tables)"
        ax.plot(epsilons, np.median(values[:, GROUPS[group]], axis=1), **look, label=label)
    brazil: dict[str, Any] = {"color": BLACK, "linewidth": 0.7, "markersize": 4, "markerfacecolor": "white"}
    for level, marker, column in zip(
        ("regions", "states", "cities"), "os^", ratios("Brazil, top-down", "Brazil, laplace").T, strict=True
    ):
        ax.plot(epsilons, column, **brazil, marker=marker, label=f"Brazil: {level} by month")
    ax.axhline(1, color=BLACK, linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlabel="total epsilon, one person added or removed (log scale)")
    ax.set_ylabel("L1 of top-down / independent (log scale)")
    foot(figure, own_keys(ax), ncols=2)
    return figure
