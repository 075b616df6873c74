"""Truncation of large households: a bias that grows with the people counted, and noise that does not."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.noise import DiscreteGaussian
from algorithms.noise.margins import exact_margin_of_error
from algorithms.phsafe.budget import noise_law, read_config
from algorithms.phsafe.explore import choose
from algorithms.phsafe.population import load_households
from algorithms.phsafe.tables import QUERIES, TAU
from algorithms.phsafe.tabulation.tabulate import tabulation
from audit.results.plots import BLACK, GRAY
from experiments.drawing import head, own_keys, page, styles
from experiments.experiment import Check, Checks, Numbers, between, near

TAUS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16)
LEVELS = {name: "state_A-G" if "state_A-G" in QUERIES[name].levels else "state_*" for name in TAU}
SIZES = (1_000, 10_000, 100_000, 1_000_000)  # people in a cell
UNIVERSES = {  # queries that count the same people, by one of them
    "PH1_num": "people in households (PH1, PH2, PH7)",
    "PH4": "people in families (PH4, PH5)",
    "PH3": "people under 18 (PH3)",
    "PH6": "own children under 18 (PH6)",
}
SHOWN = {"PH1_num": "(b) PH1: people by age", "PH3": "(c) PH3: people under 18"}


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Count the bundled households with and without truncation; the quick form is the full one, nothing is drawn."""
    households = load_households()
    frames = (households.persons, households.units, households.geo)
    queries = {name: QUERIES[name] for name in TAU}
    exact = tabulation(*frames, queries=queries, truncate=False)
    rows = []
    for tau in TAUS:
        config = choose("us", tau=dict.fromkeys(TAU, tau))
        truncated = tabulation(*frames, queries=queries, config=config, validation="none")
        for table, level in LEVELS.items():
            bias = truncated.counts[table, level] - exact.counts[table, level]
            people, remaining = (int(one.counts[table, "state_*"].sum()) for one in (exact, truncated))
            law = noise_law(config, table, level)
            assert isinstance(law, DiscreteGaussian)  # the preset's privacy is zero-concentrated
            rows.append(
                {
                    **{"table": table, "tau": tau, "level": level, "people": people, "lost": people - remaining},
                    **{"gained": int(bias.max()), "largest": int(-bias.min())},  # of any cell
                    **{"margin": exact_margin_of_error(law), "sigma": law.scale, "budget": config.budget(table, level)},
                }
            )
    return {"rows": rows, "production": dict(read_config("us").tau), "states": list(exact.states)}


def check(numbers: Numbers) -> Checks:
    rows, production = numbers["rows"], numbers["production"]
    gained = sum(row["gained"] > 0 for row in rows)
    yield Check(f"cells that truncation makes larger: {gained}, expected 0", not gained)
    for table in TAU:
        lost = [row["lost"] for row in rows if row["table"] == table]
        falling = all(more >= fewer for more, fewer in pairwise(lost))
        yield Check(f"{table}: people left out, falling with tau: {lost}", falling and lost[0] > 0)
        row = _row(numbers, table, production[table])
        yield between(f"{table}: share left out at tau {row['tau']}", row["lost"] / row["people"], 0, 0.001)
        scale = max(abs(row["sigma"] * math.sqrt(2 * row["budget"]) - 2 * row["tau"] - 2) for row in rows)
        yield near(f"{table}: sigma sqrt(2 rho) - (2 tau + 2)", scale, 0, 1e-9)
    for table in SHOWN:
        best = [_best(numbers, table, size)["tau"] for size in SIZES]
        smaller = best == sorted(best) and best[0] < production[table]
        yield Check(f"{table}: best tau for {', '.join(f'{size:,}' for size in SIZES)} people: {best}", smaller)


def _row(numbers: Numbers, table: str, tau: int) -> dict[str, Any]:
    return next(row for row in numbers["rows"] if (row["table"], row["tau"]) == (table, tau))


def _error(row: dict[str, Any], size: int) -> float:
    """Return the root mean square error of a cell of so many people: bias in proportion, and noise."""
    return math.hypot(size * row["lost"] / row["people"], row["sigma"])


def _best(numbers: Numbers, table: str, size: int) -> dict[str, Any]:
    rows = [row for row in numbers["rows"] if row["table"] == table]
    return min(rows, key=lambda row: _error(row, size))


def facts(numbers: Numbers) -> dict[str, Any]:
    production, large = numbers["production"], SIZES[2]
    persons, children = (_row(numbers, table, production[table]) for table in SHOWN)
    best = [_best(numbers, table, large)["tau"] for table in SHOWN]
    rows = []
    for name in SHOWN:
        own = _row(numbers, name, numbers["production"][name])
        for size in SIZES:
            least = _best(numbers, name, size)
            errors = f"{_error(least, size):.3g}", f"{_error(own, size):.3g}"
            rows.append((name.removesuffix("_num"), f"{size:,}", str(least["tau"]), *errors))
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, (top, *others) = page(8.4, 3, 1)
    for (table, words), look in styles(UNIVERSES.items()).items():
        rows = [row for row in numbers["rows"] if row["table"] == table]
        shares = [row["lost"] / row["people"] if row["lost"] else math.nan for row in rows]
        top.plot([row["tau"] for row in rows], shares, label=words, **look)
    top.set_yscale("log")
    top.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    top.set_ylabel("left out (log scale)")
    head(top, "(a) people left out", own_keys(top), ncols=2)
    for ax, (table, title) in zip(others, SHOWN.items(), strict=True):
        _errors(ax, numbers, table)
        head(ax, title, own_keys(ax))
        ax.set_ylabel("error of a cell,\n$\\sqrt{bias^2 + \\sigma^2}$ (people, log)")
    for ax in (top, *others):
        ax.set(xlabel=r"threshold $\tau$", xlim=(0, 17))
    return figure


def _errors(ax: Axes, numbers: Numbers, table: str) -> None:
    rows = [row for row in numbers["rows"] if row["table"] == table]
    taus = [row["tau"] for row in rows]
    production = numbers["production"][table]
    hollow: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "none"}
    for size, look in styles(SIZES[1:], linewidth=1.4).items():
        errors, best = [_error(row, size) for row in rows], _best(numbers, table, size)
        ax.plot(taus, errors, label=f"cell of {size:,} people", **look | {"marker": ""})
        ax.plot(best["tau"], _error(best, size), **look | hollow | {"markersize": 8})
    ax.plot([], [], marker="o", color=GRAY, markersize=7, label="best threshold of each", **hollow)
    ax.plot(taus, [row["sigma"] for row in rows], color=BLACK, linewidth=0.9, label="noise alone")
    label = f"threshold in production: {production}"
    ax.axvline(production, color=GRAY, linewidth=1.2, linestyle=":", zorder=0, label=label)
    ax.set(yscale="log", ylim=(rows[0]["sigma"] * 0.6, 60 * _row(numbers, table, production)["sigma"]))
