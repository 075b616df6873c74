"""What the pipelines that read records release; a replay shows their bugs in `tests.audit.replay.test_systems`."""

import numpy as np

from algorithms.bugs.records import ImputesOnDemand, NoLimitNoNoise, PageByPage, RaisesOnEmpty


def test_pipelines_release_what_their_records_have():
    rng, values = np.random.default_rng(0), np.array([20, 60, 500])
    assert [NoLimitNoNoise(1e9, most)(values, 1, rng)[0].tolist() for most in (0, 30)] == [[580, 3], [80, 3]]
    assert PageByPage(1e9)(np.arange(9), 1, rng)[0].tolist() == [4, 4, 1]
    assert ImputesOnDemand(1e9)(np.array([1, -1, 3, -1]), 1, rng)[0].tolist() == [2, 1, 0, 1, 0]
    assert RaisesOnEmpty(1e9)(np.zeros((3, 2)), 2, rng).tolist() == [[3, 3], [3, 3]]
