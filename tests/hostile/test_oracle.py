"""The oracle's sums and limits are the binomial law's; `tests/audit/review/test_verify.py` compares its verdicts."""

import pytest
from scipy.stats import binom

from tests.hostile.oracle import codes, limit_below, tail


@pytest.mark.parametrize("chance", [1e-9, 0.3, 0.7310585786300049, 1 - 1e-9])
def test_tails_and_limits_are_those_of_the_binomial_law(chance):
    for hits, runs in ((0, 5), (1, 1), (3, 7), (60, 100), (900, 1000)):
        assert tail(hits, runs, chance) == pytest.approx(binom.sf(hits - 1, runs, chance), rel=1e-9, abs=1e-300)
        assert tail(hits, runs, limit_below(hits, runs, 0.05)) == pytest.approx(0.05 if hits else 1, rel=1e-6)


def test_a_violation_goes_before_no_power_and_a_doubt_leaves_two_codes():
    assert codes([{"no power"}, {"violated"}, {"not refuted"}]) == {1}
    assert codes([{"no power"}, {"not refuted"}]) == {3}
    assert codes([{"violated", "not refuted"}, {"no power"}]) == {1, 3}
    assert codes([]) == {0}
    assert codes([{"violated"}, {None}]) == set()  # a result without a verdict
