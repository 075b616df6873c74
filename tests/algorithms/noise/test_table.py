"""Tables that draws come from: what they hold is the law, exactly, and so are a hundred million draws."""

import numpy as np
import pytest

from algorithms.noise import DiscreteGaussian, TwoTailedGeometric, discrete_gaussian, geometric
from tests.helpers import chi_square

LAWS = [TwoTailedGeometric(epsilon) for epsilon in (1 / 300, 0.1, 1.0, 30.0)]
LAWS += [DiscreteGaussian(scale) for scale in (0.3, 1.0, 15.56, 1000.0)]
DRAWS, AT_ONCE = 100_000_000, 10_000_000


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_table_holds_the_law(law):
    """An entry is worth 1/65536, and what is left shares the entries without a value."""
    table = geometric._table(law.epsilon) if hasattr(law, "epsilon") else discrete_gaussian._table(law.scale)
    entries = table.entries[table.entries != np.iinfo(np.int16).min]
    reach = int(np.abs(table.values).max())
    chances = np.bincount(entries.astype(int) + reach, minlength=2 * reach + 1) / table.entries.size
    left = (table.entries.size - entries.size) / table.entries.size
    chances[table.values + reach] += left * np.diff(table.left, prepend=0.0) / (table.left[-1] or 1.0)
    k = np.arange(-reach, reach + 1)
    np.testing.assert_allclose(chances, np.exp(law.logpmf(k)), rtol=1e-9, atol=1e-17)
    assert law.sf(reach) < 1e-19


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS[:3] + LAWS[4:], ids=str)
def test_a_hundred_million_draws_follow_the_law(law):
    """Chi-square over single values; false alarm 1e-6 a law. A parameter half a percent off is told apart."""
    counted = np.zeros(2 * 65_536 + 1, np.int64)
    rng = np.random.default_rng(20261123)
    for _ in range(DRAWS // AT_ONCE):
        counted += np.bincount(law.sample(AT_ONCE, rng) + 65_536, minlength=counted.size)

    def p_value(of):
        expected = DRAWS * np.exp(of.logpmf(np.arange(-65_536, 65_537)))
        return chi_square(np.append(counted, 0), np.append(expected, DRAWS - expected.sum()), least=50)

    assert p_value(law) > 1e-6
    (parameter,) = vars(law).values()
    assert p_value(type(law)(1.005 * parameter)) < 1e-12
