"""Sound mechanisms whose runs share something are refused or not accused; `reliability/sound.py` has other outputs."""

import math

import numpy as np
import pytest

from audit.attacks import Attack
from audit.claims import PureDP
from audit.events import Event, Statistic
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from tests.helpers import in_full, refused_like

D = NeighborPair.declared(np.array([0]), np.array([1]), "add_remove")
SURE = 1 - 1e-6
TRUTH = 0.73  # probability of a true answer
LOSS = math.log(TRUTH / (1 - TRUTH))
BUFFER = np.empty(1 << 17)


class Threaded:
    """Randomized response in an array that is used again, in blocks: threads wrote into each other's results."""

    runs_per_block = 250

    def __call__(self, data, size, rng):
        outputs = BUFFER[:size]
        outputs[:] = np.where(rng.random(size) < TRUTH, data[0], 1 - data[0])
        return outputs


@pytest.mark.slow  # to start processes
def test_a_work_array_is_not_shared_by_blocks_at_work_at_the_same_time():
    """0 of 200 audits at 1 - 1e-6 accuse (false alarm 2e-4), and counts are those of one job."""
    for seed in range(200):
        settings = {"size": 2000, "rng": seed, "confidence": SURE}
        result = measure_loss(Threaded(), D, PureDP(LOSS), n_jobs=2, **settings)
        assert result.verdict != "violated"
        if seed % 20 == 0:
            assert result.counts == measure_loss(Threaded(), D, PureDP(LOSS), n_jobs=1, **settings).counts


# Runs that depend on each other


def once_a_call(jitter):
    """Laplace noise that all runs of a call share, and a little of their own."""
    return lambda data, size, rng: data[0] + rng.laplace() + jitter * rng.random(size)


def shared_by_ten(jitter):
    """Laplace noise that ten runs in a row share, and a little of their own."""

    def mechanism(data, size, rng):
        return data[0] + np.repeat(rng.laplace(size=size // 10 + 1), 10)[:size] + jitter * rng.random(size)

    return mechanism


def refused_or_sound(mechanism, seed, size=6000):
    """Whether an audit at 1 - 1e-6 does not accuse: it is refused, or finds nothing against the promise."""
    try:
        result = measure_loss(mechanism, D, PureDP(1.0), attack="entries", size=size, rng=seed, confidence=SURE)
    except ValueError as error:
        return "refused" if "runs must be independent: " in str(error) else str(error)
    assert result.verdict != "violated"
    return "sound"


@pytest.mark.parametrize("audits", in_full(2, 40))
@pytest.mark.parametrize("jitter", [0.0, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0])
def test_noise_that_runs_share_accuses_nobody(jitter, audits):
    for seed in range(audits):
        assert refused_or_sound(once_a_call(jitter), seed) == "refused"
        assert refused_or_sound(shared_by_ten(jitter), seed) in ("refused", "sound")


@pytest.mark.parametrize("audits", in_full(2, 40))
def test_ten_runs_that_share_their_noise_are_refused(audits):
    assert [refused_or_sound(shared_by_ten(1e-3), seed) for seed in range(audits)] == ["refused"] * audits
    alone = [refused_or_sound(lambda data, size, rng: data[0] + rng.laplace(size=size), seed) for seed in range(audits)]
    assert alone == ["sound"] * audits  # negative control


@pytest.mark.parametrize(
    "function",
    [
        lambda outputs: outputs - outputs.mean(),
        lambda outputs: np.full(len(outputs), outputs.mean()),
        lambda outputs: outputs.argsort(),
        lambda outputs: np.arange(len(outputs))[::-1],
    ],
    ids=["less the mean", "the mean", "the rank", "the place from the end"],
)
def test_a_statistic_of_the_batch_is_refused(function):
    statistic = Statistic("own", function)
    options = {"size": 6000, "rng": 1, "confidence": SURE}
    with refused_like(ValueError, "^own must score each run by itself, and depends on the others of a batch$"):
        measure_loss(lambda d, n, r: d[0] + r.laplace(size=n), D, PureDP(1), attack=Attack((statistic,)), **options)
    with refused_like(ValueError, "^own must score each run by itself"):
        registered = Event(statistic, Event.at_least((), 0.5).rule)
        measure_loss(lambda d, n, r: d[0] + r.laplace(size=n), D, PureDP(1), event=registered, **options)
