"""Bounds are as large as the runs allow; `reliability/test_accusations.py` has who is accused."""

import math

import numpy as np
import pytest

from algorithms.benchmarks import benchmarks
from algorithms.benchmarks.noisy_answers import Laplace
from algorithms.flaxman import GDPC
from audit.attacks import Attack
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.results.formatting import at_least
from tests.helpers import most

KNOWN = benchmarks()
LAWS = Attack.without("precision")  # published algorithms are audited here, not the floats that their noise is made of
ONE_MORE = NeighborPair.add_people([0], 0)
SIZE = round(1_200_000 / 0.7)  # 600,000 expected counting runs on either database


def audits(mechanism, pair, times, *, size, n_jobs=1):
    """Results of independent audits."""
    return [
        measure_loss(mechanism, pair, mechanism.claim, attack=LAWS, size=size, rng=stream, n_jobs=n_jobs)
        for stream in np.random.SeedSequence(1).spawn(times)
    ]


def pair_of(name, people=1):
    known = KNOWN[name]
    return NeighborPair.declared(known.x, known.x + people * (known.y - known.x), "add_remove", distance=people)


@pytest.mark.parametrize("name", ["SVT5", "ReportNoisyMax4"])
def test_unbounded_losses_have_a_witness_beside_a_finite_bound(name):
    known = KNOWN[name]
    assert known.loss == math.inf
    for result in audits(known.mechanism, pair_of(name), 1, size=20_000):
        assert result.verdict == "violated"
        assert result.support is not None
        assert result.support["probability"] > 0
        assert math.isfinite(result.measured.epsilon)
        assert f"lower bound {at_least(result.measured.epsilon)} at" in str(result)
        assert "unbounded by the exact law" in str(result)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "least"), [(GDPC(0.1), 0.0966), (GDPC(1.0), 0.9961), (Laplace(0.1), 0.0955), (Laplace(1.0), 0.993)]
)
def test_one_noisy_count_shows_nearly_all_of_its_loss(mechanism, least):
    """Medians of 400: their standard error is 0.0001."""
    results = audits(mechanism, ONE_MORE, 400, size=SIZE, n_jobs=-1)
    found = np.array([result.measured.epsilon for result in results])
    assert least <= np.median(found) <= mechanism.claim.epsilon
    assert (found > mechanism.claim.epsilon).sum() <= most(400)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "people", "size", "least"),
    [("NoisyHist2", 1, 4_000_000, 9.5), ("LaplaceParallel", 40, 1_000_000, 0.058), ("PrefixSum", 1, 1_000_000, 0.85)],
)
def test_composed_noises_show_most_of_their_loss(name, people, size, least):
    """Medians of 20."""
    results = audits(KNOWN[name].mechanism, pair_of(name, people), 20, size=size, n_jobs=-1)
    assert least <= np.median([result.measured.epsilon for result in results]) <= KNOWN[name].loss
    assert all("likelihood ratio" in result.event for result in results)
