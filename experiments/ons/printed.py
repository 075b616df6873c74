"""The printed Tables 6 to 11 of the pilot, distances of other numbers from them, and deaths with merged areas."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from algorithms.hierarchy import Hierarchy
from algorithms.ons.deaths import Deaths
from algorithms.ons.tables import Table
from algorithms.ons.top_down import PILOT_SHARES
from algorithms.ons.utility import CLASSES, transition_matrix
from experiments.experiment import published

TABLE_12: dict[str, list[float]] = published("ONS table 12")
WITH, WITHOUT = "zeros perturbed", "zeros left alone"
EPSILONS = (10.0, 2.0, 0.1)
PILOT = tuple(map(str, PILOT_SHARES))
NAMES: dict[str, str] = published("ONS names of regions")
REGIONS: dict[str, dict[str, list[int]]] = published("ONS regions")
AREAS: dict[str, dict[str, list[int | None]]] = published("ONS areas")
COUNTS = {8: ("regions", WITH), 9: ("areas", WITH), 10: ("regions", WITHOUT), 11: ("areas", WITHOUT)}  # of tables
MATRICES = {6: np.array(published("ONS table 6"), float), 7: np.array(published("ONS table 7"), float)}
CELLS = {6: Table(2, "age*sex"), 7: Table(1, "month*age*sex")}  # 5,020 and 3,120 cells; each printed table has one less
RANKED = 0.8  # least rank correlation to count as the same direction


def factors() -> dict[int, float]:
    """Return for both printed totals the factor by which section 4's rule scales the noisy rows of Table 12."""
    noisy = sum(TABLE_12["post-noise"])
    return {int(total): total / noisy for total in (sum(TABLE_12["count"]), sum(TABLE_12["final"]))}


def merged(deaths: Deaths, kept_areas: Container[str] = frozenset(AREAS[WITH])) -> Deaths:
    """Return the deaths with all areas of a region merged, except those to keep (default: those in Table 9)."""
    codes = [(region, area if area in kept_areas else "rest") for region, area in codes_of(deaths)]
    areas = sorted(set(codes))
    histogram = np.zeros((len(areas), deaths.schema.cells), np.int32)
    np.add.at(histogram, [areas.index(area) for area in codes], deaths.histogram)
    return Deaths(Hierarchy.from_codes(*map(list, zip(*areas, strict=True))), deaths.schema, histogram)


def codes_of(deaths: Deaths) -> list[list[str]]:
    return [deaths.tree.codes(int(leaf)) for leaf in deaths.tree.leaves]


def apart(number: int, actual: NDArray[Any], released: NDArray[Any]) -> float:
    """Return the share of cells in other classes than in Table 6 or 7: the weighted total variation of its rows."""
    own = np.sum([transition_matrix(actual, one)[:, : len(CLASSES)] for one in released], axis=0)
    ours, theirs = (one / np.maximum(one.sum(axis=1, keepdims=True), 1e-9) for one in (own, MATRICES[number]))
    weights = MATRICES[number].sum(axis=1)
    return float((weights * np.abs(ours - theirs).sum(axis=1)).sum() / (2 * weights.sum()))


def beside(row: dict[str, Any], number: int) -> tuple[NDArray[np.float64], ...]:
    """Return actual, printed and our counts of a table from 8 to 11; the last two by epsilon, NaN if not printed."""
    level, variant = COUNTS[number]
    table = (REGIONS if level == "regions" else AREAS)[variant]
    printed = np.array([*table.values()], float)
    own = np.array([[row[variant][f"{epsilon:g}"][level][name] for epsilon in EPSILONS] for name in table])
    return printed[:, :1], printed[:, 1:], own


def misfits(row: dict[str, Any]) -> dict[int, float]:
    """Return the misfit by table: `apart` at the best epsilon for Tables 6 and 7, mean |log ratio| for 8 to 11."""
    far = {number: min(row[str(number)].values()) for number in CELLS}
    for number in COUNTS:
        _, printed, own = beside(row, number)
        far[number] = float(np.nanmean(np.abs(np.log(np.maximum(own, 1) / printed))))
    return far


def misfit(row: dict[str, Any], without: Iterable[int] = ()) -> float:
    """Return the geometric mean of misfits, so that no table dominates by its unit or its small noise."""
    return float(np.exp(np.mean([np.log(far) for number, far in misfits(row).items() if number not in without])))


def agreement(row: dict[str, Any]) -> dict[int, dict[str, str]]:
    """Compare our Tables 8 to 11 with the printed ones, and return whether they have the same direction."""
    # Same direction: the signs of all changes, and of all steps to the next epsilon, are as printed, and ranks agree.
    by_table = {}
    for number in COUNTS:
        before, printed, own = beside(row, number)
        signs = ((printed - before) * (own - before))[~np.isnan(printed - before)] > 0
        steps = (np.diff(printed) * np.diff(own))[~np.isnan(np.diff(printed))] > 0
        known = np.nan_to_num(before)  # counts printed as less than 10 become 0
        pairs = zip((printed - known).T, (own - known).T, strict=True)
        rank = min(float(spearmanr(*pair, nan_policy="omit").statistic) for pair in pairs)
        words = (
            f"printed sign of {signs.sum()} of {signs.size} changes and {steps.sum()} of {steps.size} steps of epsilon"
        )
        words += f", rank correlations {rank:.2f} or more"
        same = signs.all() and steps.all() and rank >= RANKED
        by_table[number] = {"how": "direction" if same else "differs", "words": words}
    return by_table


def total_share() -> tuple[int, float, list[float]]:
    """Return the common deficit of all printed totals, the estimated share of the total, and its 95% limits."""
    # Sum of epsilon * |error|, times the share, is a pivot: its law does not depend on the share, as noise is Laplace.
    # The deficit is the shift that minimizes the sum, so the simulation of the pivot also minimizes over shifts.
    people, places = sum(row[0] for row in REGIONS[WITH].values()), [*enumerate(EPSILONS, 1)]
    tables = REGIONS.values()
    errors = [(epsilon, sum(row[at] for row in own.values()) - people) for own in tables for at, epsilon in places]
    spent, lack = min((sum(epsilon * abs(error - one) for epsilon, error in errors), -one) for _, one in errors)
    return lack, len(errors) / spent, [limit / spent for limit in limits_of_spent([epsilon for epsilon, _ in errors])]


def limits_of_spent(epsilons: Sequence[float]) -> list[float]:
    """Return the 2.5% and 97.5% quantiles of the pivot of `total_share`, from 20,000 simulations."""
    budgets = np.array(epsilons)
    errors = np.random.default_rng(1).laplace(0, 1 / budgets, (20_000, budgets.size))
    spent = np.abs(errors[:, :, None] - errors[:, None, :]).transpose(0, 2, 1) @ budgets
    return [float(limit) for limit in np.quantile(spent.min(axis=1), [0.025, 0.975])]
