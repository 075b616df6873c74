"""Sound mechanisms whose outputs were misread once: none is accused, and bounds are as seldom too large as they say."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from audit.attacks import Attack
from audit.claims import GaussianDP, PureDP
from audit.events import Event, Statistic
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from tests.helpers import in_full, most, refused_like

D = NeighborPair.declared(np.array([0]), np.array([1]), "add_remove")
SURE = 1 - 1e-6
TRUTH = 0.73  # probability of a true answer
LOSS = math.log(TRUTH / (1 - TRUTH))
BUFFER = np.empty(1 << 17)


class Suppressing:
    """A word in the place of a number, two runs at a time: the word of a batch without numbers was an exception."""

    runs_per_block = 2

    def __call__(self, data, size, rng):
        return ["suppressed" if rng.random() < (TRUTH if data[0] else 0.5) else 7.0 for _ in range(size)]


def reusing(data, size, rng):
    """Randomized response in an array that is used again, with exceptions: parts of a batch were overwritten."""
    outputs = BUFFER[:size]
    outputs[:] = np.where(rng.random(size) < TRUTH, data[0], 1 - data[0])
    if (rng.random(size) < 0.01).any():
        raise RuntimeError
    return outputs


class Threaded:
    """The same without exceptions, in blocks: threads wrote into each other's results."""

    runs_per_block = 250

    def __call__(self, data, size, rng):
        outputs = BUFFER[:size]
        outputs[:] = np.where(rng.random(size) < TRUTH, data[0], 1 - data[0])
        return outputs


class Underflowing:
    """A group's normal noise, with a likelihood that is 0 for a float where it is small."""

    def __call__(self, data, size, rng):
        return np.round(data[0] + 20 * rng.normal(size=size), 6)

    def log_likelihood(self, outputs, data):
        with np.errstate(divide="ignore"):
            return np.log(norm.pdf(outputs, data[0], 20))


GROUP = NeighborPair.declared(np.array([0]), np.array([1600]), "add_remove", distance=80)  # mu 1 for each of 80 steps


def mixed(data, size, rng):
    """Randomized response among None, NaN, words and rows of other lengths, which tell nothing."""
    answers = np.where(rng.random(size) < TRUTH, data[0], 1 - data[0]).tolist()
    kinds = [(0, 1), (None, math.nan), ("no", "yes"), ([0], [0, 0])]
    return [kinds[number][one] for number, one in zip(rng.integers(0, 4, size), answers, strict=True)]


CASES = {
    "words and numbers": (Suppressing(), D, PureDP(math.log(0.5 / (1 - TRUTH)))),
    "a work array and exceptions": (reusing, D, PureDP(LOSS)),
    "a likelihood that underflows": (Underflowing(), GROUP, GaussianDP(1.0)),
    "values of every kind": (mixed, D, PureDP(LOSS)),
}


@pytest.mark.parametrize("audits", in_full(2, 200))
@pytest.mark.parametrize("case", CASES)
def test_no_sound_mechanism_is_accused(case, audits):
    """At confidence 1 - 1e-6: false alarm 8e-4 of 200 audits of four mechanisms."""
    mechanism, pair, claim = CASES[case]
    for seed in range(audits):
        result = measure_loss(mechanism, pair, claim, size=1500, rng=seed, confidence=SURE)
        assert result.verdict != "violated"
        assert result.support is None


@pytest.mark.parametrize("audits", in_full(2, 1000))
@pytest.mark.parametrize("case", CASES)
def test_bounds_miss_as_seldom_as_they_say(case, audits):
    mechanism, pair, claim = CASES[case]
    found = (measure_loss(mechanism, pair, claim, size=1000, rng=seed).measured.budget for seed in range(audits))
    # 77 of 1,000: a bound that keeps its word has more with probability 1e-4.
    assert sum(bound > claim.budget for bound in found) <= most(audits)


def test_a_loss_above_the_promise_is_found_among_the_same_outputs():
    """Negative control: every case is refuted where its promise is a quarter of what it loses."""
    for name in ("words and numbers", "a work array and exceptions", "values of every kind"):
        mechanism, pair, claim = CASES[name]
        result = measure_loss(mechanism, pair, PureDP(claim.epsilon / 4), size=3000, rng=1, confidence=0.999)
        assert result.verdict == "violated"


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
