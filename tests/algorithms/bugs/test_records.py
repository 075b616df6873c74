"""What the pipelines that read records release; a replay shows their bugs in `tests.audit.replay.test_systems`."""

from __future__ import annotations

import numpy as np
import pytest

from algorithms.bugs.records import ImputesOnDemand, NoLimitNoNoise, PageByPage, RaisesOnEmpty
from audit.neighbors import NeighborPair
from audit.replay import replay


def test_pipelines_release_what_their_records_have():
    rng, values = np.random.default_rng(0), np.array([20, 60, 500])
    assert [NoLimitNoNoise(1e9, most)(values, 1, rng)[0].tolist() for most in (0, 30)] == [[580, 3], [80, 3]]
    assert PageByPage(1e9)(np.arange(9), 1, rng)[0].tolist() == [4, 4, 1]
    assert ImputesOnDemand(1e9)(np.array([1, -1, 3, -1]), 1, rng)[0].tolist() == [2, 1, 0, 1, 0]
    assert RaisesOnEmpty(1e9)(np.zeros((3, 2)), 2, rng).tolist() == [[3, 3], [3, 3]]


@pytest.mark.parametrize(
    ("bug", "x", "record"),
    [
        (PageByPage(1.0), np.arange(5), 3),  # no page begins
        (RaisesOnEmpty(1.0), np.zeros((2, 2), np.int64), (1, 4)),
        (ImputesOnDemand(1.0), np.arange(5), 4),  # nothing is missing
        (NoLimitNoNoise(1.0, most=9), np.arange(5), 4),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_replay_accuses_none_of_them_where_the_bug_does_not_show(bug, x, record):
    found = replay(bug, NeighborPair.add_record(x, record), size=4)
    assert (found.verdict, found.violations) == ("not refuted", ())
    assert found.exact_loss.maximum <= 1 + 1e-9
