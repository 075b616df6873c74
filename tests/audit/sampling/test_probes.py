from __future__ import annotations

import numpy as np
import pytest

from audit.mechanism import per_run
from audit.outputs import ATTEMPTS
from audit.sampling import blocks, probes
from audit.sampling.probes import check_uses_rng, one_output
from tests.audit.sampling.cases import DATA, SEED, drawn, noting, same_noise
from tests.helpers import BrokenError, noisy, raising, whole


@pytest.mark.parametrize(
    ("give", "expected"),
    [
        (lambda rng: rng.random(()), ()),
        (lambda rng: rng.random((2, 3)), (2, 3)),
        (lambda rng: rng.choice(["a", "bb"], 4), (4,)),
    ],
)
def test_one_output_says_what_outputs_are(give, expected):
    output = one_output(per_run(lambda data, rng: give(rng)), (0, 1), SEED)
    assert output.shape == (1, *expected)
    assert output.dtype.kind in "fU"


def test_one_output_is_found_where_one_database_only_raises():
    def mechanism(data, size, rng):
        asked.append(data)
        if data == broken:
            raise BrokenError
        return np.full((size, 3), data)

    for broken, other in ((0, 1), (1, 0)):
        asked = []
        assert one_output(mechanism, (0, 1), SEED).tolist() == [[other] * 3]
        assert sorted(asked) == sorted([other] + [broken] * ATTEMPTS)


def test_one_output_is_found_although_runs_often_raise():
    # All of 8 runs raise with probability 0.004 on one database; on both, and this is an error, with 2e-5.
    outputs = [one_output(raising(0.5), (0, 1), np.random.SeedSequence(seed)) for seed in range(20)]
    assert {output.shape for output in outputs} == {(1,)}
    assert len({float(output[0]) for output in outputs}) == 20


def test_a_mechanism_that_always_raises_is_in_error():
    errors = [BrokenError(number) for number in range(2 * ATTEMPTS)]
    left = iter(errors)

    def mechanism(data, size, rng):
        raise next(left)

    with pytest.raises(BrokenError) as caught:
        one_output(mechanism, (0, 1), SEED)
    assert caught.value is errors[0]
    assert next(left, None) is None
    with pytest.raises(TypeError, match="positional argument"):  # one that cannot be called at all
        one_output(lambda data, rng: 0, (0, 1), SEED)


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ([[1.0], [[1.0, 2.0]]], r"outputs must have one shape on both databases, got \(\) and \(2,\)"),
        ([["a"], [1]], "outputs must be numbers or words on both databases, got <U1 and int64"),
        ([[1.5], ["no"]], "outputs must be numbers or words on both databases, got float64 and <U2"),
    ],
)
def test_databases_whose_outputs_are_unlike_are_refused(outputs, words):
    with pytest.raises(ValueError, match=f"^{words}$"):
        one_output(lambda data, size, rng: np.array(outputs[data]), (0, 1), SEED)


def test_a_mechanism_that_ignores_its_generator_is_caught(small_blocks):
    def deaf(data, size, rng):
        rng.random(size)  # asks, and does not listen
        return same_noise(data, size, rng)

    for mechanism, shape in ((same_noise, (16,)), (lambda data, size, rng: np.arange(size), ())):
        for runs in (2, 32):
            with pytest.raises(ValueError, match="identical under two different rngs: the mechanism ignores its rng"):
                check_uses_rng(mechanism, DATA, runs, SEED, shape=shape)
    with pytest.raises(ValueError, match="ignores its rng"):
        check_uses_rng(deaf, DATA, 32, SEED, shape=(16,))
    with pytest.raises(ValueError, match="ignores its rng"):
        drawn(deaf, np.zeros(1), 128)


def test_blocks_that_share_a_stream_are_caught(monkeypatch, small_blocks):
    monkeypatch.setattr(blocks, "stream", lambda root, *key: root)
    with pytest.raises(ValueError, match="blocks 0 and 1 are identical under different rngs"):
        drawn(lambda data, size, rng: rng.random(size), None, 128, reduce=whole)
    monkeypatch.setattr(probes, "stream", lambda root, *key: root)
    with pytest.raises(ValueError, match="identical under two different rngs"):
        check_uses_rng(noisy, DATA, 20, SEED, shape=(16,))


def test_runs_that_share_their_noise_are_caught():
    def shared(data, size, rng):
        return np.repeat(data + rng.laplace(size=(1, data.size)), size, axis=0)

    with pytest.raises(ValueError, match="runs must be independent: all 20 of a batch are the same, and another batch"):
        check_uses_rng(shared, DATA, 20, SEED, shape=(16,))
    check_uses_rng(shared, DATA, 19, SEED, shape=(16,))  # fewer prove nothing: fair coins agree that often


def test_two_batches_are_asked_for_never_more_than_a_block_at_once(small_blocks):
    asked = []
    mechanism = noting(asked, lambda data, size, rng: rng.random((size, 2, 3)))
    check_uses_rng(mechanism, DATA, 10, SEED, shape=(2, 3))
    assert asked == [4, 4, 2, 4, 4, 2]
    with pytest.raises(ValueError, match=r"outputs of one shape, got \(3, 2\) and \(2, 3\)"):
        check_uses_rng(mechanism, DATA, 10, SEED, shape=(3, 2))


def test_exceptions_are_no_sign_of_a_generator_ignored(small_blocks):
    def always(data, size, rng):
        raise BrokenError

    check_uses_rng(always, DATA, 32, SEED, shape=(16,))  # no run differs from another
    for seed in range(50):
        check_uses_rng(raising(0.05), DATA, 32, np.random.SeedSequence(seed), shape=())

    def deaf(data, size, rng):
        if size not in (5, 10):
            raise BrokenError
        return np.arange(size)

    with pytest.raises(ValueError, match="ignores its rng"):
        check_uses_rng(deaf, None, 42, SEED, shape=())  # negative control: the same 42 outputs twice


def test_a_mechanism_without_noise_is_allowed(small_blocks):
    def exact(data, size, rng):
        return np.tile(data, (size, 1))

    check_uses_rng(exact, DATA, 32, SEED, shape=(16,))
    assert len(drawn(exact, reduce=whole)) == 11


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.01, 0.001])
def test_a_mechanism_that_rarely_varies_is_not_accused(rate, small_blocks):
    def mechanism(data, size, rng):
        return rng.random(size) < rate

    # Two batches of 32 fair coins agree with probability 2**-32, of rarer ones often: agreement is never enough.
    for seed in range(300):
        check_uses_rng(mechanism, None, 32, np.random.SeedSequence(seed), shape=())
        drawn(mechanism, None, 640, reduce=whole, seed=np.random.SeedSequence(seed))


def test_agreement_by_chance_is_no_proof(small_blocks):
    def coins(data, size, rng):
        rng.random(size)
        return np.arange(size) % 2

    check_uses_rng(coins, None, 32, SEED, shape=())
    drawn(coins, np.zeros(2), 96, reduce=whole)  # three blocks of 32: 2**-32 each
    with pytest.raises(ValueError, match="blocks 0 and 1 are identical"):
        drawn(coins, np.zeros(1), 128, reduce=whole)  # of 64: 2**-64
