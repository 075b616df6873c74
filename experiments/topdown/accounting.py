"""What the 2020 redistricting data lose by exact composition, beside the conversions from rho that promises rest on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.figure import Figure
from scipy import optimize

from algorithms.noise import DiscreteGaussian
from algorithms.release.ledger import conversions
from algorithms.topdown.budget import Budget
from algorithms.topdown.presets import PRESETS
from audit.claims import ZCDP, GaussianDP
from audit.exact import LossDistribution
from audit.results.plots import BLACK, BLUE, GRAY, PURPLE
from experiments.audits import run_all
from experiments.drawing import bar_key, head, line_key, name_rows, own_keys, page
from experiments.experiment import Check, Checks, Numbers, between, published

Cells = Counter[DiscreteGaussian]  # laws of the noise, and how many answers with each one person changes by 1

DELTA, DELTAS = 1e-10, [10.0**-k for k in range(3, 15)]
RARE = 1e-17  # of outputs, at either end of a loss
RELEASES = {"pl94-2020": "persons", "h1": "units"}
ALL = "all levels"
WAYS = ("tight", "simple")  # of `conversions`: as published, and the textbook's
STEPS, FEW = 100, 40  # of a standard deviation, a law: epsilon is too large by less than one part of so many


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Compose the noise of every level, and of all, and ask how much less would do (quick: on a coarser grid)."""
    steps = FEW if quick else STEPS
    cases = [(release, level) for release in RELEASES for level in (*PRESETS[release].levels, ALL)]
    setting = published("f-DP of the 2020 census")
    tasks = [delayed(_of_case)(release, level, steps) for release, level in cases]
    tasks += [delayed(_of_paper)(setting, percent) for percent in setting["percent of rho"]]
    rows = run_all(tasks, jobs, "exact compositions", "budgets")
    return {"rows": rows[: len(cases)], "paper": rows[len(cases) :]}


def _of_case(release: str, level: str, steps: int) -> dict[str, Any]:
    """Return the loss of a level, or of all, and with how much less variance it would be what conversions say."""
    preset = PRESETS[release]
    names = list(preset.levels)
    queries = [preset.queries_at(name) for name in names]
    assert isinstance(preset.promise, ZCDP)
    total = preset.promise.rho

    def cells(factor: float) -> Cells:
        """Who is replaced changes two answers of every query: one cell has a person more, another one less."""
        budget = Budget(ZCDP(total * factor, "replace_one"), list(preset.levels.values()), queries)
        laws: Cells = Counter()
        for place, name in enumerate(names):
            for query, _ in budget.measured(place) if level in (name, ALL) else ():
                law = budget.law(preset.levels[name], query, place)
                assert isinstance(law, DiscreteGaussian)
                laws[law] += 2
        return laws

    share = 1.0 if level == ALL else float(preset.levels[level])
    row = {"release": release, "level": level} | _of_cells(cells, total * share, DELTA, steps)
    if level == ALL:
        law, slack = composed(cells(1.0), steps)
        profile = [(*conversions(ZCDP(total), delta).values(), *limits(law, slack, delta)) for delta in DELTAS]
        row["profile"] = dict(zip((*row["conversions"], "least", "most"), zip(*profile, strict=True), strict=True))
    return row


def _of_paper(setting: dict[str, Any], percent: float) -> dict[str, Any]:
    """Return the same of a level of the paper: equal noise on its queries, one answer of each changed by 1."""
    rho, queries = setting["rho"] * percent / 100, setting["queries"]

    def cells(factor: float) -> Cells:
        return Counter({DiscreteGaussian(math.sqrt(queries / (2 * rho * factor))): queries})

    return _of_cells(cells, rho, setting["delta"], FEW)  # of one law, without a grid


def _of_cells(cells: Callable[[float], Cells], rho: float, delta: float, steps: int) -> dict[str, Any]:
    """Return epsilon by the conversions and exactly, and how much less noise would keep what the conversions say."""
    epsilons = conversions(ZCDP(rho), delta)
    saved = {way: _savings(cells, rho, epsilons[way], delta, steps) for way in WAYS}
    exact = limits(*composed(cells(1.0), steps), delta)
    return {"rho": rho, "conversions": epsilons, "exact": exact, "saved": saved}


def composed(cells: Cells, steps: int) -> tuple[LossDistribution, float]:
    """Return the loss of all changed answers together, and by how much an epsilon of it may be too large, in nats.

    Answers with the same noise are composed exactly: their losses have equal steps. The grid of the others raises a
    loss by less than a spacing a law (`LossDistribution.compose`).
    """
    parts = []
    for law, times in cells.items():
        one = (law.losses_of(np.ones(1)) or [])[0].trimmed(RARE)
        parts.append(one.self_compose(times, grid=law.scale**-2).trimmed(RARE))
    total, *others = sorted(parts, key=lambda part: float(np.ptp(part.loss)))
    slack = math.sqrt(sum(times * law.scale**-2 for law, times in cells.items())) / steps if others else 0.0
    for part in others:
        total = total.compose(part, grid=slack / len(parts)).trimmed(RARE)
    return total, slack


def limits(law: LossDistribution, slack: float, delta: float) -> tuple[float, float]:
    """Return between which two the exact epsilon is: with what was trimmed counted as lost, and as not lost."""
    return law.epsilon_at(delta + law.infinite_mass) - slack, law.epsilon_at(delta)


def _savings(
    cells: Callable[[float], Cells], rho: float, epsilon: float, delta: float, steps: int
) -> tuple[float, float]:
    """Return between which two shares of the variance could be saved if no more than this epsilon is to be kept."""

    def excess(factor: float, which: int) -> float:
        return limits(*composed(cells(factor), steps), delta)[1 - which] - epsilon

    def gaussian(factor: float) -> float:  # of normal noise, near which the exact one is found
        return GaussianDP(math.sqrt(2 * rho * factor)).epsilon_at(delta) - epsilon

    near = optimize.brentq(gaussian, 0.5, 2)
    factors = [optimize.brentq(excess, 0.96 * near, 1.06 * near, args=(which,), xtol=1e-5) for which in (0, 1)]
    return 1 - 1 / factors[0], 1 - 1 / factors[1]


def check(numbers: Numbers) -> Checks:
    bureau, paper = published("2020 redistricting data"), published("f-DP of the 2020 census")
    for row in numbers["rows"]:
        where, (least, most) = f"{RELEASES[row['release']]}, {row['level']}", row["exact"]
        tight, simple = (row["saved"][way] for way in WAYS)
        yield between(f"{where}: lower / upper limit of epsilon", least / most, 0.98, 1)
        yield between(
            f"{where}: exact epsilon / that of normal noise", most / row["conversions"]["Gaussian"], 0.98, 1.02
        )
        yield between(f"{where}: variance saved beside the conversion as published", tight[0], 0.06, 0.10)
        if row["level"] == ALL:
            digits = f"{row['conversions']['tight']:.2f}"
            yield Check(
                f"{where}: epsilon {digits}, published {bureau[row['release']]}", digits == bureau[row["release"]]
            )
        elif row["release"] == "pl94-2020":
            yield between(f"{where}: variance saved beside the textbook's conversion", simple[0], 0.15, 0.25)
    for what, ours in _extremes(numbers).items():
        words = f"the paper's setting, {what}, percent, least and most: {ours}, printed {paper[what]}"
        yield Check(words, ours == paper[what])
    most = max(row["saved"]["tight"][1] for row in numbers["paper"])
    yield between("the paper's setting, variance saved beside the conversion as published, most", most, 0.06, 0.10)


def _extremes(numbers: Numbers) -> dict[str, list[str]]:
    paper = numbers["paper"]
    shares = {
        "unused": [1 - row["exact"][1] / row["conversions"]["simple"] for row in paper],
        "variance": [row["saved"]["simple"][0] for row in paper],
    }
    return {what: [f"{100 * end(own):.2f}" for end in (min, max)] for what, own in shares.items()}


def _spread(rows: Sequence[dict[str, Any]], way: str) -> str:
    least, most = (min(row["saved"][way][0] for row in rows), max(row["saved"][way][1] for row in rows))
    return f"{_outward(100 * least, 100 * most, 1)}%"


def _outward(least: float, most: float, decimals: int = 2) -> str:
    """Return two limits as they are printed: rounded away from each other."""
    low, high = math.floor(least * 10**decimals), math.ceil(most * 10**decimals)
    return " to ".join(f"{number / 10**decimals:.{decimals}f}" for number in (low, high))


def facts(numbers: Numbers) -> dict[str, Any]:
    rows = []
    totals = {row["release"]: row for row in numbers["rows"] if row["level"] == ALL}
    persons = [row for row in numbers["rows"] if row["release"] == "pl94-2020" and row["level"] != ALL]
    for row in (*persons, *totals.values()):
        name, exact = f"{RELEASES[row['release']]}, {row['level']}", _outward(*row["exact"])
        rows.append([name, f"{row['conversions']['tight']:.2f}", exact, *(_spread([row], way) for way in WAYS)])
    levels, setting = numbers["paper"], published("f-DP of the 2020 census")
    variance = " to ".join(_extremes(numbers)["variance"])
    rows.append([f"the paper's {len(levels)} levels", "", "", _spread(levels, "tight"), f"{variance}%"])
    total = totals["pl94-2020"]
    return {
        "rows": rows,
        "total": total,
        "all_levels": _spread([total], "tight"),
        "a_level": _spread(persons, "tight"),
        "claim": " to ".join(setting["variance"]),
        "setting": setting,
    }


def draw(numbers: Numbers) -> Figure:
    named = facts(numbers)
    figure, (left, right) = page(4.4, 1, 2)
    levels = list(dict.fromkeys(row["level"] for row in numbers["rows"]))
    for release, marker, off in (("pl94-2020", "o", -0.12), ("h1", "s", 0.12)):
        for way, color in zip(WAYS, (BLUE, PURPLE), strict=True):
            own = {row["level"]: row["saved"][way] for row in numbers["rows"] if row["release"] == release}
            at = [levels.index(level) + off for level in own]
            style: dict[str, Any] = {"marker": marker, "color": color, "linestyle": "none", "markersize": 5}
            left.plot([100 * least for least, _ in own.values()], at, **style)
    low, high = map(float, named["setting"]["variance"])
    left.axvspan(low, high, color=GRAY, alpha=0.25, linewidth=0, zorder=0)
    name_rows(left, levels)
    left.set(xlim=(0, 35), xlabel="less variance at the same $\\epsilon$ (%)")
    handles = [
        line_key("beside the conversion that was published", marker="o", color=BLUE, linestyle="none"),
        line_key("beside the textbook's, larger $\\epsilon$", marker="o", color=PURPLE, linestyle="none"),
        line_key("circles: persons, squares: units", marker="s", color=GRAY, linestyle="none"),
        bar_key(f"arXiv 2410.09296: {named['claim']}%", GRAY, alpha=0.25),
    ]
    head(left, f"(a) persons, a level: {named['a_level']}, not {low:.0f} to {high:.0f}%", handles, ncols=1, x=-0.3)
    profile = named["total"]["profile"]
    for name, words, color, dashes in (
        ("simple", "the textbook's conversion", PURPLE, ":"),
        ("tight", "the conversion that was published", BLUE, "--"),
        ("most", "exact composition", BLACK, "-"),
    ):
        right.plot(profile[name], DELTAS, color=color, linestyle=dashes, linewidth=1.5, label=words)
    right.axhline(DELTA, color=GRAY, linewidth=0.8, zorder=0)
    right.set(yscale="log", xlabel="$\\epsilon$, one person replaced", ylabel="$\\delta$ (log scale)")
    exact, tight = named["total"]["exact"][1], named["total"]["conversions"]["tight"]
    head(right, f"(b) persons: $\\epsilon$ {exact:.2f}, published {tight:.2f}", own_keys(right), ncols=1)
    return figure
