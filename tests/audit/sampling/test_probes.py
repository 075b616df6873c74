"""The first runs of an audit: what one output is, and whether runs are independent and follow their generator."""

import numpy as np
import pytest
from scipy import stats

from audit.outputs import Kind
from audit.sampling import blocks, calls, probes
from audit.sampling.calls import ATTEMPTS, Caller
from audit.sampling.probes import LEAST, _kruskal, probe, probe_runs
from tests.audit.sampling.cases import DATA, SEED, drawn, noting, same_noise
from tests.helpers import BrokenError, in_full, noisy, raising, refused_like, whole

SIZE = 4000  # runs of the audit: enough for short calls of as many runs as there may be
IGNORED = "outputs are identical under two different rngs: .* in the release, too, that is a violation: .*"


def probed(mechanism, size=SIZE, *, databases=(0, 1), seed=SEED):
    return probe([Caller(mechanism, data) for data in databases], size, seed)


@pytest.mark.parametrize(("letters", "about"), [(1, 4), (30, 64), (5000, 16384)])
def test_long_texts_come_in_small_blocks(letters, about):
    kind = probed(lambda data, size, rng: ["a" * letters] * size).kind
    assert kind == Kind(None, about)
    assert Caller(noisy, None, kind).block_runs == calls.CELLS // max(calls.TEXT, about)


def test_a_mechanism_that_always_raises_is_in_error():
    errors = [BrokenError(number) for number in range(2 * ATTEMPTS)]
    left = iter(errors)

    def mechanism(data, size, rng):
        raise next(left)

    def exhausted(data, size, rng):
        left.append(size)
        raise MemoryError

    with pytest.raises(BrokenError) as caught:
        probed(mechanism)
    assert caught.value is errors[0]
    assert next(left, None) is None
    left = []
    with pytest.raises(MemoryError):
        probed(exhausted)
    assert left == [1]


@pytest.mark.parametrize(
    ("size", "short_calls", "each"), [(LEAST, 2, 2), (150, 3, 2), (1000, 8, 6), (SIZE, 8, 16), (10**9, 8, 16)]
)
def test_probes_are_an_eighth_of_the_runs_but_in_the_smallest_audits(size, short_calls, each):
    sizes = []
    first = probed(noting(sizes), size, databases=(DATA, DATA))
    assert sizes == [1, 1] + [each] * (2 * short_calls + 1)
    assert (first.made, first.made + first.to_come) == (sum(sizes), probe_runs(size))
    first.check_steady()
    assert sum(sizes) == probe_runs(size) <= max(16, size / 7)
    assert [len(side) for side in first.outputs] == [1 + short_calls * each] * 2


def test_a_mechanism_that_ignores_its_generator_is_caught(small_blocks):
    def deaf(data, size, rng):
        rng.random(size)  # asks, and does not listen
        return np.random.default_rng(1).random(size)

    for mechanism in (deaf, lambda data, size, rng: np.arange(size), lambda data, size, rng: [*"abcdefgh"][:size]):
        with refused_like(ValueError, f"^{IGNORED}$"):
            probed(mechanism, 1000)
    with refused_like(ValueError, f"^{IGNORED}$"):
        probed(same_noise, databases=(DATA, DATA))
    with refused_like(ValueError, "ignores its rng"):
        drawn(deaf, np.zeros(1), 128, reduce=whole, shape=())


def test_the_same_stream_for_everything_is_caught(monkeypatch, small_blocks):
    monkeypatch.setattr(blocks, "stream", lambda root, *key: root)
    with refused_like(ValueError, "blocks 0 and 1 are identical under different rngs"):
        drawn(lambda data, size, rng: rng.random(size), None, 128, reduce=whole)
    monkeypatch.setattr(probes, "stream", lambda root, *key: root)
    with refused_like(ValueError, "identical under two different rngs"):
        probed(noisy, databases=(DATA, DATA))


def test_a_mechanism_with_entropy_of_its_own_is_told_from_one_that_a_seed_repeats():
    own = np.random.default_rng(0)
    assert probed(noisy).seedable
    assert not probed(lambda data, size, rng: data + own.laplace(size=size)).seedable
    assert not probed(lambda data, size, rng: [f"{one:.3f}" for one in own.random(size)]).seedable
    assert probed(lambda data, size, rng: np.full(size, 7.0)).seedable  # nothing to repeat


def test_agreement_by_chance_is_no_proof(small_blocks):
    def coins(data, size, rng):
        rng.random(size)
        return np.arange(size) % 2

    probed(coins, 320)  # eight calls of two runs: 2**-14
    with refused_like(ValueError, IGNORED):
        probed(coins, 1000)  # of six: 2**-42
    drawn(coins, np.zeros(2), 96, reduce=whole, shape=())  # three blocks of 32: 2**-32 each
    with refused_like(ValueError, "blocks 0 and 1 are identical"):
        drawn(coins, np.zeros(1), 128, reduce=whole, shape=())  # of 64: 2**-64


SOUND = {
    "Laplace": noisy,
    "geometric": lambda data, size, rng: rng.geometric(0.6, (size, 2)) - rng.geometric(0.6, (size, 2)),
    "coins of 0.001": lambda data, size, rng: rng.random(size) < 0.001,
    "coins of 0.1": lambda data, size, rng: (rng.random((size, 4)) < 0.1).astype(int),
    "exact": lambda data, size, rng: np.full((size, 3), 7),
    "heavy tails": lambda data, size, rng: np.column_stack(
        [rng.standard_cauchy(size), rng.geometric(0.3, size), np.full(size, 3.0)]
    ),
    "normal": lambda data, size, rng: 1e12 + rng.normal(size=size),
    "words": lambda data, size, rng: rng.choice(["yes", "no", "perhaps"], size).tolist(),
    "numbered words": lambda data, size, rng: [f"a{number}" for number in rng.integers(0, 10**6, size)],
    "rows of varying length": lambda data, size, rng: [[1.0] * int(number) for number in rng.poisson(3, size)],
    "exceptions": raising(0.01),
    "many exceptions": raising(0.3),
    "words and exceptions": raising(0.05, lambda size, rng: rng.choice(["a", "b"], size).tolist()),
    "mixed": lambda data, size, rng: [None if one < 0.1 else "few" if one < 0.2 else one for one in rng.random(size)],
    "NaN": lambda data, size, rng: np.where(rng.random(size) < 0.2, np.nan, rng.normal(size=size)),
    "infinite": lambda data, size, rng: np.where(rng.random(size) < 0.05, np.inf, rng.normal(size=size)),
}


@pytest.mark.parametrize("seeds", in_full(10, 1000))
@pytest.mark.parametrize("kind", SOUND)
def test_sound_mechanisms_are_not_refused(kind, seeds):
    """The chance that one of 16 kinds is refused in 1,000 audits is below 2e-4; the seeds are fixed."""
    for seed in range(seeds):
        probed(SOUND[kind], (400, SIZE)[seed % 2], seed=np.random.SeedSequence(seed))


def test_the_rank_test_is_that_of_scipy():
    """With ties, and with parts of unlike sizes."""
    rng = np.random.default_rng(3)
    for parts in (rng.normal(size=(3, 20)), [rng.integers(4, size=size) / 4 for size in (16, 5, 1)]):
        assert _kruskal(parts) == pytest.approx(stats.kruskal(*parts).statistic, rel=1e-12)
