"""The table of simulated plans: its entries are what plans give, and between them it interpolates."""

from __future__ import annotations

import math

import numpy as np
import openpyxl
import pytest
from scipy import special, stats

from audit.claims.families import FAMILIES
from audit.explorer import formulas, plans
from audit.explorer.plans import PlanTable, plan_tables, smallest_excesses
from audit.planning import plan_power, plan_size, plan_violation
from audit.planning.sizes import WINDOW
from tests.audit.explorer.office import needs_office, recomputed

CLOSE = 2 * 10**-plans.PLACES  # entries are rounded, and plans found to 0.4% at worst
SMALL = PlanTable((1.0, 4.0), (100, 10_000), (-1.0, 1.0), (((0.0, 1.0), (-2.0, None)), ((-1.0, 0.0), (-3.0, -1.0))))


def test_entries_between_which_numbers_lie():
    assert SMALL.line(1.0, 100) == [0.0, 1.0]
    assert SMALL.line(2.0, 1000) == pytest.approx([-1.5, None])  # halfway by logarithms; one of four is not there
    assert SMALL.line(4.0, 1000) == pytest.approx([-2.0, -0.5])
    assert SMALL.line(0.9, 100) is None
    assert SMALL.line(1.0, 10_001) is None


def test_power_violation_and_size_are_inverse_to_each_other():
    assert SMALL.violation(4.0, 1000, 0.5) == pytest.approx(1 + math.exp(-1.25))
    assert SMALL.power(4.0, 1000, 1 + math.exp(-1.25)) == pytest.approx(0.5)
    assert SMALL.size(4.0, 1 + math.exp(-1.25), 0.5) == pytest.approx(1000, rel=0.01)
    assert SMALL.power(4.0, 1000, 1.01) is None  # less than that of the first entry
    assert SMALL.power(4.0, 1000, 9.0) == pytest.approx(0.8413447)
    assert SMALL.power(1.0, 10_000, 9.0) is None  # more than that of the last entry that is there
    assert SMALL.violation(1.0, 10_000, 0.5) is None
    assert SMALL.size(4.0, 1.01, 0.5) is None
    assert SMALL.size(4.0, 9.0, 0.5) == 100


@pytest.mark.parametrize(
    ("selects", "entries", "seed"), [(False, 6, 8), pytest.param(True, 3, 9, marks=pytest.mark.slow)]
)
def test_entries_are_those_of_plans(selects, entries, seed):
    """Where the event is registered, and where it is chosen, which takes a simulation."""
    rng = np.random.default_rng(seed)
    for (family, selection), table in plan_tables().items():
        for _ in range(entries if (selection > 0) is selects else 0):
            row, column = int(rng.integers(len(table.budgets))), int(rng.integers(len(table.runs)))
            excesses = smallest_excesses(family, selection, table.budgets[row], table.runs[column])
            assert excesses == [pytest.approx(entry, abs=CLOSE) for entry in table.excess[row][column]]


def test_what_is_interpolated_is_close_to_plans():
    """Plans of registered events, which need no simulation: losses within 5%, nine of ten powers within 5 points."""
    rng = np.random.default_rng(10)
    for (family, selection), table in plan_tables().items():
        if selection > 0:
            continue
        apart = []
        for _ in range(60):
            budget = math.exp(rng.uniform(*np.log([table.budgets[0], table.budgets[-1]])))
            runs, power = int(math.exp(rng.uniform(*np.log([table.runs[0], table.runs[-1]])))), rng.uniform(0.5, 0.99)
            claim = FAMILIES[family](budget)
            smallest = plan_violation(claim, runs, power=power, selection=0)
            found = table.violation(budget, runs, power)
            if found is not None:
                assert found == pytest.approx(smallest, rel=0.05)
            if (near := table.power(budget, runs, smallest)) is not None:
                apart.append(abs(near - plan_power(claim, runs, violation=smallest, selection=0)))
        assert np.quantile(apart, 0.9) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "loss", "power", "size"), [("gaussian", 0.013, 0.05, 0.03), ("zcdp", 0.10, 0.08, 0.11)]
)
def test_what_the_page_says_of_simulated_plans_is_as_close_as_its_manual_says(family, loss, power, size):
    """The largest differences that docs/explorer.md names, from this seed and from another."""
    rng, table, make = np.random.default_rng(2), plan_tables()[family, 0.3], FAMILIES[family]
    for number in range(30):
        budget = math.exp(rng.uniform(*np.log([table.budgets[0], table.budgets[-1]])))
        runs, wanted = int(math.exp(rng.uniform(*np.log([table.runs[0], table.runs[-1]])))), rng.uniform(0.5, 0.99)
        smallest = plan_violation(make(budget), runs, power=wanted)
        if (found := table.violation(budget, runs, wanted)) is not None:
            assert found == pytest.approx(smallest, rel=loss)
        if (near := table.power(budget, runs, smallest)) is not None:
            assert near == pytest.approx(plan_power(make(budget), runs, violation=smallest), abs=power)
        if number < 10 and (needed := table.size(budget, smallest, wanted)) is not None:
            assert needed == pytest.approx(plan_size(make(budget), violation=smallest, power=wanted), rel=size)


# What formulas take for granted: how many rows a search needs, and how exact quantiles and tails are


def test_the_rows_of_the_search_are_enough_for_the_most_runs():
    sizes = [2]
    while sizes[-1] <= formulas.MOST:
        sizes.append(sizes[-1] + max(1, sizes[-1] // 2))
    assert len(sizes) - 1 <= formulas.ROWS["grown"]
    assert 2 ** (formulas.ROWS["halved"] - 1) >= formulas.MOST // 3  # of the range that the last growth leaves
    assert 2 ** (formulas.ROWS["back"] - 1) >= WINDOW + 1


def test_quantiles_are_near_their_guess():
    """Of 300,000 random promises and numbers of runs; the cells try one more on either side."""
    rng, many = np.random.default_rng(6), 300_000
    runs = np.floor(np.exp(rng.uniform(np.log(2), np.log(formulas.MOST), many)))
    wrong = special.expit(-np.exp(rng.uniform(np.log(0.01), np.log(36), many)))
    limit = 1 - wrong * np.where(rng.random(many) < 0.5, rng.random(many), 1.0)  # with a delta
    error = np.exp(rng.uniform(np.log(9e-5), np.log(0.5), many))
    z = -special.ndtri(error)
    guess = runs * limit + z * np.sqrt(runs * limit * (1 - limit)) + (z**2 - 1) * (1 - 2 * limit) / 6
    apart = stats.binom.isf(error, runs, limit) - np.minimum(np.maximum(2, np.floor(guess)), runs)
    apart = apart[limit < 1]
    assert formulas.NEAR[0] < apart.min()
    assert apart.max() < formulas.NEAR[1] + 1


@pytest.mark.slow
@needs_office
def test_tails_are_as_exact_in_a_cell_as_the_search_takes_them_to_be(tmp_path):
    """Of 5,000 random laws."""
    rng, many = np.random.default_rng(7), 5000
    runs = np.floor(np.exp(rng.uniform(np.log(5), np.log(formulas.MOST), many)))
    right = special.expit(np.exp(rng.uniform(np.log(0.01), np.log(25), many)))
    spread = np.sqrt(runs * right * (1 - right))
    wanted = np.clip(np.round(runs * right + rng.uniform(-4, 4, many) * spread), 1, runs)
    book = openpyxl.Workbook()
    for row, cells in enumerate(zip(wanted.tolist(), runs.tolist(), right.tolist(), strict=True), 1):
        book.active.append([*cells, f"={formulas.at_least(f'A{row}', f'B{row}', f'C{row}')}"])
    book.save(tmp_path / "tails.xlsx")
    (computed,) = recomputed(tmp_path)
    (rows,) = computed.values()
    found = np.array([row[3] for row in rows], float)
    fixed, each = formulas.CLOSE
    assert np.all(np.abs(found - stats.binom.sf(wanted - 1, runs, right)) < fixed + each * runs)
