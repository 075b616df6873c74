"""What the formulas of audits take for granted: how many rows a search needs, and how exact quantiles and tails are."""

from __future__ import annotations

import numpy as np
import openpyxl
import pytest
from scipy import special, stats

from audit.explorer import formulas
from audit.planning.sizes import WINDOW
from tests.audit.explorer.office import needs_office, recomputed


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
