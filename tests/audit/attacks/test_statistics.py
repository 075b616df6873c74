"""Statistics of plaudit's own: each run is scored alike in every batch, and what an event says is in words."""

import numpy as np
import pytest

from audit.attacks.protocol import Attack, candidate_statistics
from audit.attacks.statistics import weighted_sum
from audit.values import ABSENT
from tests.audit.sampling.cases import given_runs

RUNS = 600


def absent(rng, side):
    """Counts of words, without those that did not come."""
    rows = rng.poisson(1 + 0.8 * side, (RUNS, 12))
    return [{word: int(n) for word, n in zip("abcdefghijkl", row, strict=True) if n} for row in rows]


def wide(rng, side):
    """Entries that share a part, and vary more on one database."""
    return 1e9 * rng.normal(size=(RUNS, 1)) + (1 + side / 2) * rng.normal(size=(RUNS, 40)) * np.tile([1e9, 1], 20)


def assert_alike(statistic, outputs):
    for order in "CF":
        parts = [statistic(part) for part in np.split(np.asarray(outputs, order=order), range(3, len(outputs), 3))]
        np.testing.assert_array_equal(np.concatenate(parts), statistic(outputs))


@pytest.mark.parametrize("law", [absent, wide])
def test_every_statistic_scores_a_run_alike_in_every_batch(law):
    """Products by BLAS are rounded by the shape of the batch."""
    given = given_runs(*(law(np.random.default_rng(side), side) for side in (0, 1)))
    found = candidate_statistics(given, Attack(), 2 * RUNS)
    for statistic in found.statistics:
        outputs = found.runs.outputs[1][-40:]
        assert_alike(statistic, outputs if found.runs.read is None or statistic.written else found.runs.read(outputs))


def test_a_weighted_sum_of_what_is_absent_is_alike_in_every_batch():
    """Of 1e307 each, such sums are nothing but rounding: audits of 21 given tables ended in a refusal of them."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=8) * 1e-75
    outputs = np.where(rng.random((64, 8)) < 0.5, ABSENT, 1.0)
    statistic = weighted_sum([(place,) for place in range(8)], [0.0] * 8, (weights - weights.mean()).tolist())
    assert_alike(statistic, outputs)
    assert np.abs(statistic(outputs)).max() < 10
