"""What the pilot's printed tables tell of the shares of its levels, and what cell keys are compared with."""

import numpy as np
import pytest

from algorithms.benchmarks.cell_key import CellKey
from algorithms.flaxman import GDPC
from algorithms.ons.top_down import FLOOR, adjusted, maximum_remainder
from experiments.audits import exact_law
from experiments.ons.cell_keys import as_private, databases, excess
from experiments.ons.printed import TABLE_12, factors, limits_of_spent


@pytest.mark.parametrize("share", [0.01, 0.25])
def test_limits_of_the_share_cover_as_often_as_they_say(share):
    """Of 4,000 simulations with what totals lack made up for; 0.95 +- 0.015 has a false alarm of 2e-5 (binomial)."""
    epsilons = np.array([10.0, 2.0, 0.1] * 2)
    errors = np.random.default_rng(9).laplace(0, 1 / (share * epsilons), (4000, 6)) - 98
    spent = np.array([min((epsilons * np.abs(row - lack)).sum() for lack in row) for row in errors])
    low, high = (limit / spent for limit in limits_of_spent(epsilons.tolist()))
    assert np.mean((low <= share) & (share <= high)) == pytest.approx(0.95, abs=0.015)
    assert np.mean(share < low) == pytest.approx(0.025, abs=0.01)


def test_geometric_noise_as_private_is_the_one_with_the_least_error():
    """Of its own law it is itself; of cell keys one percent more epsilon has a larger delta somewhere."""
    for epsilon in (0.1, 2.5):
        assert as_private(exact_law(GDPC(epsilon), databases("alone"))) == pytest.approx(epsilon, rel=1e-9)
    law = exact_law(CellKey(3, 0.7), databases("among"))
    best = as_private(law)
    assert excess(law, best) <= 1e-12
    assert excess(law, 1.01 * best) > 1e-4


def test_table_12_digit_by_digit():
    """All that is printed but the factor 0.8 is section 4's rule for the printed total of 10."""
    counts, noise, printed, adjustment, final = map(np.array, TABLE_12.values())
    noisy = np.where(counts + noise > 0, counts + noise, FLOOR)
    assert noisy.round(3).tolist() == printed.tolist()
    assert np.maximum(0.8 * noisy, FLOOR).round(3).tolist() == adjustment.tolist()
    assert {total: round(factor, 3) for total, factor in factors().items()} == {6: 0.448, 10: 0.746}
    assert adjusted([10], [noisy])[0] == pytest.approx(factors()[10] * noisy)
    assert maximum_remainder([10], adjusted([10], [noisy]))[0].tolist() == final.tolist()
