"""The pilot's two transition matrices, Tables 6 and 7, beside those that its methods give on deaths like its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from algorithms.ons.deaths import Deaths
from algorithms.ons.independent import IndependentNoise
from algorithms.ons.laws import Law
from algorithms.ons.tables import Domain, Table
from algorithms.ons.top_down import OnsTopDown
from algorithms.ons.utility import CLASSES, transition_matrix
from experiments.audits import run_all
from experiments.drawing import foot, own_keys, page, styles
from experiments.experiment import Check, Checks, Numbers, between, published
from experiments.ons.bias import all_deaths

GOOD, POOR = Table(2, "age*sex"), Table(1, "month*age*sex")  # 5,020 and 3,120 cells; one less is printed of each
# Epsilons of all levels of the top-down method; of the table, if noise is independent.
BUDGETS: tuple[float, ...] = (0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
OWN: tuple[float, ...] = (0.03, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 1.0)
LAWS: tuple[Law, ...] = ("laplace", "geometric")
RUNS = 5
SPREAD = "laplace, fifteen causes added up"  # each cell the sum of as many noisy ones, raised to 0 before


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Release both tables five times by each method at each budget (quick: once at three, most areas merged)."""
    runs, part = (1, slice(1, None, 4)) if quick else (RUNS, slice(None))
    settings: list[tuple[str, float]] = [("top-down", epsilon) for epsilon in BUDGETS[part]]
    settings += [(method, epsilon) for method in (*LAWS, SPREAD) for epsilon in OWN[part]]
    streams = np.random.SeedSequence(seed).spawn(len(settings))
    tasks = [delayed(_matrices)(*setting, runs, quick, own) for setting, own in zip(settings, streams, strict=True)]
    both = run_all(tasks, jobs, "matrices of the pilot", unit="settings")
    rows = [
        {"method": method, "epsilon": epsilon, **own} for (method, epsilon), own in zip(settings, both, strict=True)
    ]
    return {"rows": rows, "runs": runs, "people": int(all_deaths(quick).histogram.sum())}


def _matrices(method: str, epsilon: float, runs: int, quick: bool, stream: np.random.SeedSequence) -> dict[str, Any]:
    """Return the mean transition matrices of both tables, negative values raised to 0."""
    deaths, rng = all_deaths(quick), np.random.default_rng(stream)
    domain = Domain(deaths.tree, deaths.schema)
    exact = domain.tabulate(deaths.histogram, [GOOD, POOR])
    sums = [np.zeros((len(CLASSES), len(CLASSES))) for _ in exact]
    for _ in range(runs):
        for total, before, after in zip(sums, exact, _released(method, epsilon, deaths, domain, rng), strict=True):
            total += transition_matrix(before, after)[:, : len(CLASSES)]
    return {name: (total / runs).round(2).tolist() for name, total in zip(("good", "poor"), sums, strict=True)}


def _released(
    method: str, epsilon: float, deaths: Deaths, domain: Domain, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    if method == "top-down":
        people = OnsTopDown(deaths.tree, deaths.schema, epsilon)(deaths.histogram, 1, rng)[0]
        return domain.tabulate(people, [GOOD, POOR])
    tables = [GOOD, POOR] if method != SPREAD else [Table(t.level, f"cause*{t.query}") for t in (GOOD, POOR)]
    law: Law = "geometric" if method == "geometric" else "laplace"
    made = []
    for table in tables:
        noisy = IndependentNoise(deaths.tree, deaths.schema, epsilon, [table], law=law, nonnegative=True)
        counts = noisy.release(deaths.histogram, 1, rng)[0][0]
        made.append(_without_cause(counts, deaths) if method == SPREAD else counts)
    return [np.asarray(counts, np.int64) for counts in made]


def _without_cause(counts: NDArray[Any], deaths: Deaths) -> NDArray[Any]:
    """Add up causes: attributes of a table run in the order of the schema."""
    own = {"cause", "age", "sex"} | ({"month"} if len(counts) < len(deaths.tree.leaves) else set())
    levels = {name: len(of_name) for name, of_name in deaths.schema.attributes.items() if name in own}
    summed: NDArray[Any] = counts.reshape(len(counts), *levels.values()).sum(axis=1 + list(levels).index("cause"))
    return summed.reshape(len(counts), -1)


def _apart(matrix: ArrayLike, printed: ArrayLike) -> float:
    """Return how far the rows of two matrices are apart: total variation, weighted as the printed cells are."""
    here, there = np.asarray(matrix, float), np.asarray(printed, float)
    weights = there.sum(axis=1)
    rows = np.abs(here / np.maximum(here.sum(axis=1, keepdims=True), 1e-9) - there / weights[:, np.newaxis])
    return float((weights * rows.sum(axis=1)).sum() / (2 * weights.sum()))


def _fits(numbers: Numbers, name: str) -> dict[str, dict[float, float]]:
    printed = published({"good": "ONS table 6", "poor": "ONS table 7"}[name])
    fits: dict[str, dict[float, float]] = {}
    for row in numbers["rows"]:
        fits.setdefault(row["method"], {})[row["epsilon"]] = _apart(row[name], printed)
    return fits


def _best(fits: dict[str, dict[float, float]], method: str) -> tuple[float, float]:
    return min(fits[method].items(), key=lambda item: item[1])


def nearest(numbers: Numbers, name: str, method: str) -> tuple[float, float]:
    """Return the epsilon at which a method comes nearest to Table 6 (``"good"``) or 7, and how far that is."""
    return _best(_fits(numbers, name), method)


def _matrix(numbers: Numbers, method: str, epsilon: float, name: str) -> NDArray[np.float64]:
    rows = (row for row in numbers["rows"] if (row["method"], row["epsilon"]) == (method, epsilon))
    return np.array(next(rows)[name], np.float64)


def check(numbers: Numbers) -> Checks:
    good, poor = _fits(numbers, "good"), _fits(numbers, "poor")
    (_, top_down), (_, laplace) = _best(good, "top-down"), _best(good, "laplace")
    words = f"Table 6: nearest by top-down {top_down:.2f} apart, by independent Laplace noise {laplace:.2f}"
    yield Check(words, laplace < top_down)
    if numbers["runs"] == RUNS:
        yield between("Table 6: nearest independent noise apart", laplace, 0, 0.25)
        epsilon, nearest = _best(poor, "top-down")
        yield between("Table 7: nearest by top-down apart", nearest, 0, 0.25)
        yield Check(f"Table 7: nearest at epsilon {epsilon:g}, expected at most 0.3", epsilon <= 0.3)
        others = min(_best(poor, method)[1] for method in (*LAWS, SPREAD))
        yield Check(f"Table 7: nearest by independent noise {others:.2f} apart", nearest < others)


def facts(numbers: Numbers) -> dict[str, Any]:
    good, poor = _fits(numbers, "good"), _fits(numbers, "poor")
    epsilon, apart = _best(poor, "top-down")
    method = min(good, key=lambda method: _best(good, method)[1])
    near, own, named = _best(good, method), _best(good, "top-down"), method.replace("laplace", "Laplace")
    rows = []
    for kind in good:
        best = (_best(fits, kind) for fits in (good, poor))
        cells = [cell for at, distance in best for cell in (f"{at:g}", f"{distance:.2f}")]
        rows.append((kind.replace("laplace", "Laplace"), *cells))
    printed, row = np.array(published("ONS table 6"), float), CLASSES.index("51-100")
    kept = [printed, *(_matrix(numbers, kind, _best(good, kind)[0], "good") for kind in ("laplace", "top-down"))]
    told, laplace, topdown = (f"{matrix[row, row] / matrix[row].sum():.0%}" for matrix in kept)
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, axes = page(13.2, 4, 2)
    for column, (table, number, letters) in enumerate((("good", 6, "aceg"), ("poor", 7, "bdfh"))):
        fits, panels = _fits(numbers, table), axes[column::2]
        _draw_matrix(panels[0], np.array(published(f"ONS table {number}"), float))
        panels[0].set_title(f"({letters[0]}) Table {number}, as printed")
        for ax, letter, method, words in (
            (panels[1], letters[1], "laplace", "independent"),
            (panels[2], letters[2], "top-down", "top-down"),
        ):
            epsilon, _ = _best(fits, method)
            _draw_matrix(ax, _matrix(numbers, method, epsilon, table))
            ax.set_title(f"({letter}) {words}, epsilon {epsilon:g}: nearest")
        for method, look in styles(fits, markersize=5, fillstyle="none").items():
            panels[3].plot(list(fits[method]), list(fits[method].values()), **look, label=method)
        panels[3].set_xscale("log")
        panels[3].set_ylim(0, 1)
        panels[3].set_xlabel("epsilon of the table (log scale);\ntop-down: of all levels")
        panels[3].set_title(f"({letters[3]}) cells in other classes than Table {number}")
    for ax in axes[:6:2]:
        ax.set_ylabel("actual count of the cell")
    axes[6].set_ylabel("share of cells")
    foot(figure, own_keys(axes[6]), words="a matrix: cells by class; darker: larger share of the row")
    return figure


def _draw_matrix(ax: Axes, matrix: NDArray[np.float64]) -> None:
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-9)
    ax.imshow(np.sqrt(shares), cmap="Greys", vmin=0, vmax=1.2, aspect="auto")
    for (row, column), cells in np.ndenumerate(matrix):
        if cells >= 0.5:
            color = "white" if shares[row, column] > 0.4 else "black"
            ax.text(column, row, f"{cells:,.0f}", ha="center", va="center", fontsize=7, color=color)
    ax.set_xticks(range(len(CLASSES)), CLASSES, fontsize=7.5, rotation=90)
    ax.set_yticks(range(len(CLASSES)), CLASSES, fontsize=7.5)
    ax.set_xlabel("released count")
