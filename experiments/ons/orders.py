"""The pilot's top-down method in its order and with geography first, with Laplace and with Gaussian noise."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.ons.deaths import Deaths
from algorithms.ons.laws import PILOT_DELTA, Law
from algorithms.ons.tables import GEOGRAPHY_FIRST, PILOT_LEVELS, Domain, Table
from algorithms.ons.top_down import OnsTopDown
from audit.results.plots import GRAY, GREEN, PURPLE
from experiments.audits import repeat
from experiments.drawing import foot, line_key, page
from experiments.experiment import Check, Checks, Numbers, between
from experiments.ons.printed import all_deaths

ORDERS = {"demography first": PILOT_LEVELS, "geography first": GEOGRAPHY_FIRST}
LAWS: tuple[Law, ...] = ("laplace", "gaussian")
EPSILONS = (10.0, 2.0, 0.1)
RUNS, FEW = 5, 1
VARIABLES = ("sex", "age", "marital", "month", "cause")
RARE = 0.001  # of all deaths: a category below it is rare
EPSILON_TOLD = 2.0  # of which the finding speaks


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Release all deaths five times in both orders with both laws at three budgets (quick: once at one, merged)."""
    deaths, epsilons, runs = all_deaths(quick), EPSILONS[1:2] if quick else EPSILONS, FEW if quick else RUNS
    settings = list(product(ORDERS, LAWS, epsilons))
    streams = np.random.SeedSequence(seed).spawn(len(settings))
    tasks = [(*setting, quick) for setting in settings]
    margins = repeat(_released, tasks, streams, runs, jobs=jobs, words="orders of the top-down method", unit="releases")
    rows = [
        {"order": order, "law": law, "epsilon": epsilon, "after": np.median(own, axis=0).tolist()}
        for (order, law, epsilon), own in zip(settings, margins, strict=True)
    ]
    before = _margins(deaths, deaths.histogram).tolist()
    return {"names": _names(deaths), "before": before, "rows": rows, "runs": runs}


def _names(deaths: Deaths) -> list[list[str]]:
    """Return variable and category of every count: regions, then the categories of each variable."""
    nodes = range(*deaths.tree.level(1).indices(deaths.tree.n_nodes))
    regions = [["region", deaths.tree.codes(node)[-1]] for node in nodes]
    return regions + [[name, level] for name in VARIABLES for level in deaths.schema.attributes[name]]


def _margins(deaths: Deaths, people: NDArray[Any]) -> NDArray[np.int64]:
    tables = [Table(1, "total"), *(Table(0, name) for name in VARIABLES)]
    return np.concatenate([table.reshape(-1) for table in Domain(deaths.tree, deaths.schema).tabulate(people, tables)])


def _released(order: str, law: Law, epsilon: float, quick: bool, stream: np.random.SeedSequence) -> NDArray[np.int64]:
    deaths = all_deaths(quick)
    options: dict[str, Any] = {"law": law, "delta": PILOT_DELTA if law == "gaussian" else 0.0}
    top_down = OnsTopDown(deaths.tree, deaths.schema, epsilon, ORDERS[order], **options)
    return _margins(deaths, top_down(deaths.histogram, 1, np.random.default_rng(stream))[0])


def _own(numbers: Numbers, order: str, law: str, epsilon: float) -> NDArray[np.float64]:
    setting = {"order": order, "law": law, "epsilon": epsilon}
    return np.array(next(row["after"] for row in numbers["rows"] if setting.items() <= row.items()), float)


def _parts(numbers: Numbers) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return counts before, which are of regions, and which of rare categories of other variables."""
    before, kinds = np.array(numbers["before"], float), np.array([kind for kind, _ in numbers["names"]])
    people, regions = before[kinds == "region"].sum(), kinds == "region"
    return before, regions, ~regions & (before < RARE * people)


def check(numbers: Numbers) -> Checks:
    before, regions, rare = _parts(numbers)
    for epsilon in sorted({row["epsilon"] for row in numbers["rows"]}, reverse=True):
        for law in LAWS:
            changes = [_own(numbers, order, law, epsilon) - before for order in ORDERS]
            where, (other, first) = (
                f"epsilon {epsilon:g}, {law}",
                [float(np.abs(own)[regions].max()) for own in changes],
            )
            words = f"{where}: regions off by up to {first:,.0f} people with geography first, {other:,.0f} else"
            yield Check(words, first < other)
            if numbers["runs"] < RUNS:
                continue  # areas are merged, and few cells of an area are empty
            other, first = (float(own[rare].sum()) for own in changes)
            words = f"{where}: rare categories gain {first:,.0f} with geography first, {other:,.0f} else"
            yield Check(words, first > other > 0)
        for order in ORDERS:
            laplace, gaussian = (_own(numbers, order, law, epsilon) - before for law in LAWS)
            clear = np.abs(laplace) > 0.05 * before
            same = float(np.mean((laplace * gaussian > 0)[clear])) if clear.any() else 1.0
            yield between(f"epsilon {epsilon:g}, {order}: clear changes in the same direction", same, 0.9, 1)
        lifts = [float((_own(numbers, "demography first", law, epsilon) - before)[rare].sum()) for law in LAWS]
        words = f"epsilon {epsilon:g}: Gaussian noise lifts rare categories {lifts[1] / lifts[0]:.2f} times as much"
        words = f"{words}, expected {'above' if epsilon > 1 else 'below'} 1"
        yield Check(words, (lifts[1] > lifts[0]) == (epsilon > 1))


def facts(numbers: Numbers) -> dict[str, Any]:
    before, regions, rare = _parts(numbers)
    smallest = int(np.flatnonzero(regions)[before[regions].argmin()])
    first, pilots = (_own(numbers, order, "laplace", EPSILON_TOLD) for order in ("geography first", "demography first"))
    rows = []
    for words, place in (("Northern Ireland", [smallest]), ("rare categories", rare)):
        for law in LAWS:
            after = [_own(numbers, order, law, EPSILON_TOLD)[place].sum() for order in reversed(ORDERS)]
            rows.append((words, law.capitalize(), f"{before[place].sum():,.0f}", *(f"{count:,.0f}" for count in after)))
    names = ", ".join(f"{kind} {name}" for (kind, name), one in zip(numbers["names"], rare, strict=True) if one)
    region_before, region_first, region_pilot = (counts[smallest] for counts in (before, first, pilots))
    rare_before, rare_first, rare_pilot = (counts[rare].sum() for counts in (before, first, pilots))
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, axes = page(3.6, 1, 2)
    for ax, letter, order in zip(axes, "ab", ORDERS, strict=True):
        _draw_after(ax, numbers, order, EPSILON_TOLD)
        ax.set(title=f"({letter}) {order}, epsilon {EPSILON_TOLD:g}", xlabel="deaths before (log scale)")
    axes[0].set_ylabel("deaths after / before\n(log scale)")
    handles = [
        line_key("regions, Laplace", **LOOKS["regions"]),
        line_key("regions, Gaussian", **LOOKS["regions"], markerfacecolor="white"),
        line_key("categories of other variables, Laplace", **LOOKS["others"]),
        line_key("the same, Gaussian", **LOOKS["others"], markerfacecolor="white"),
    ]
    foot(figure, handles, ncols=2)
    return figure


LOOKS: dict[str, dict[str, Any]] = {
    "regions": {"color": GREEN, "marker": "o", "linestyle": "none", "markersize": 4},
    "others": {"color": PURPLE, "marker": "s", "linestyle": "none", "markersize": 4},
}


def _draw_after(ax: Axes, numbers: Numbers, order: str, epsilon: float) -> None:
    before, regions, _ = _parts(numbers)
    for law in LAWS:
        ratio = _own(numbers, order, law, epsilon) / np.maximum(before, 1)
        for own, look in ((regions, LOOKS["regions"]), (~regions, LOOKS["others"])):
            face = look["color"] if law == "laplace" else "white"
            ax.plot(np.maximum(before[own], 1), ratio[own], **look, markerfacecolor=face)
    ax.axhline(1, color=GRAY, linewidth=0.8)
    ax.set(xscale="log", yscale="log", ylim=(0.1, 2e4))
