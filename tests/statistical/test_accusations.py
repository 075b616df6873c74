"""Sound algorithms are not accused, known bugs are, and bounds are as large as the runs allow."""

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
from tests.helpers import in_full, most

KNOWN = benchmarks()
SOUND = ["SVT1", "SVT2", "RAPPOR", "ReportNoisyMax1", "ReportNoisyMax2", "NumericalSVT"]
SURE = 1 - 1e-6
LAWS = Attack.without("precision")  # published algorithms are audited here, not the floats that their noise is made of
ONE_MORE = NeighborPair.add_people([0], 0)
SIZE = round(1_200_000 / 0.7)  # 600,000 expected counting runs on either database


def audits(mechanism, pair, times, *, size, confidence=0.95, claim=None, n_jobs=1):
    """Results of independent audits."""
    return [
        measure_loss(
            *(mechanism, pair, claim or mechanism.claim),
            **{"attack": LAWS, "size": size, "confidence": confidence, "rng": stream, "n_jobs": n_jobs},
        )
        for stream in np.random.SeedSequence(1).spawn(times)
    ]


def accusations(results):
    return sum(result.verdict == "violated" for result in results)


def pair_of(name, people=1):
    known = KNOWN[name]
    return NeighborPair.declared(known.x, known.x + people * (known.y - known.x), "add_remove", distance=people)


@pytest.mark.parametrize(
    "name",  # the quick form of the experiment `known_bugs` audits all of them, too
    [pytest.param(name, marks=pytest.mark.slow) if name.endswith(("SVT", "SVT1", "SVT2")) else name for name in SOUND],
)
@pytest.mark.parametrize(("times", "sure", "size"), in_full((6, 1, 20_000), (200, 200, 100_000)))
def test_sound_algorithms_are_not_accused(name, times, sure, size):
    """False alarm of each: 1e-4 at 95%, 2e-4 beyond. They may lose less than promised, and bounds hold for the loss."""
    known, pair = KNOWN[name], pair_of(name)
    assert known.loss <= known.mechanism.claim.epsilon * (1 + 1e-9)
    for number, confidence, allowed in ((times, 0.95, most(times)), (sure, SURE, 0)):
        results = audits(known.mechanism, pair, number, size=size, confidence=confidence)
        assert accusations(results) <= allowed
        assert sum(result.measured.epsilon > known.loss for result in results) <= allowed


@pytest.mark.parametrize("name", ["SVT5", "ReportNoisyMax4"])
def test_unbounded_losses_have_a_witness_beside_a_finite_bound(name):
    known = KNOWN[name]
    for result in audits(known.mechanism, pair_of(name), 3, size=20_000):
        assert known.loss == math.inf
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
