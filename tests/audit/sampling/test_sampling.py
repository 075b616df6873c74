from __future__ import annotations

import itertools
import math
import os
import threading
import weakref

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit import sampling
from audit.mechanism import per_run
from audit.sampling import (
    ATTEMPTS,
    CHANCE,
    PASSES,
    RAISED,
    WAVE,
    chance_of_repeat,
    check_not_copied,
    check_outputs,
    check_uses_rng,
    draw,
    entropy_of,
    one_output,
    run,
    seed_sequence,
    stream,
)

DATA = np.arange(16.0)
SEED = np.random.SeedSequence(2020)


def noisy(data, size, rng):
    return data + rng.laplace(size=(size, *np.shape(data)))


def same_noise(data, size, rng):
    return noisy(data, size, np.random.default_rng(1))


def process(data, size, rng):
    return np.full(size, os.getpid())


def first_entry(outputs):
    return outputs[:, :1].copy()


def whole(outputs):
    return outputs


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 64 numbers: of 4 runs on `DATA`."""
    monkeypatch.setattr(sampling, "CELLS", 64)


def drawn(mechanism=noisy, data=DATA, size=42, *, reduce=first_entry, seed=SEED, **options):
    return list(draw(mechanism, data, size, reduce=reduce, seed=seed, **options))


def assert_same(blocks, others):
    for block, other in zip(blocks, others, strict=True):
        np.testing.assert_array_equal(block, other)


def state(seed):
    return tuple(seed.generate_state(4, np.uint64).tolist())


# Seeds and streams


def test_a_seed_is_the_root_it_says():
    assert state(seed_sequence(7)) == state(seed_sequence(np.int64(7))) == state(np.random.SeedSequence(7))
    assert seed_sequence(SEED) is SEED
    assert state(seed_sequence(None)) != state(seed_sequence(None))


def test_a_generator_is_advanced():
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    first, second = seed_sequence(one), seed_sequence(one)
    assert state(first) != state(second)
    assert [state(seed_sequence(other)), state(seed_sequence(other))] == [state(first), state(second)]
    assert one.random() == other.random()


@pytest.mark.parametrize("rng", ["1", 1.0, True, np.True_, [1, 2], np.random.RandomState(1)])
def test_other_seeds_are_refused(rng):
    with pytest.raises(TypeError, match="rng must be None, an integer, a Generator or a SeedSequence, got "):
        seed_sequence(rng)


def test_negative_seeds_are_refused():
    with pytest.raises(ValueError, match="rng must not be a negative integer, got -1"):
        seed_sequence(-1)


def test_a_stream_is_the_child_of_its_number_whatever_was_spawned():
    root = np.random.SeedSequence(5, pool_size=8)
    before = stream(root, 2)
    children = root.spawn(3)
    assert state(before) == state(stream(root, 2)) == state(children[2])
    assert state(stream(root, 2, 1)) == state(stream(stream(root, 2), 1)) == state(children[2].spawn(2)[1])
    assert before.pool_size == 8


def test_streams_are_distinct():
    keys = [key for length in range(4) for key in itertools.product(range(4), repeat=length)]
    assert len({state(stream(SEED, *key)) for key in keys}) == len(keys) == 85


# Blocks


@pytest.mark.parametrize(
    ("data", "shape", "runs"),
    [
        (np.zeros(16), None, 4),
        (np.zeros((4, 8)), None, 2),
        (np.zeros(3), None, 21),
        (np.zeros(65), None, 1),
        (np.zeros((0, 2)), None, 64),
        (np.zeros(3), (2, 16), 2),
        (np.zeros(16), (2,), 4),
        ([1, 2, 3], None, 64),
        (None, (), 64),
        (None, (100,), 1),
    ],
)
def test_blocks_hold_as_many_runs_as_fit_the_data_or_the_output(data, shape, runs, small_blocks):
    asked, told = [], []

    def mechanism(data, size, rng):
        asked.append(size)
        return rng.random((size, *(shape or ())))

    blocks = drawn(mechanism, data, 130, reduce=whole, shape=shape, advance=told.append)
    full, rest = divmod(130, runs)
    assert asked == told == [len(block) for block in blocks] == [runs] * full + [rest] * (rest > 0)


def test_a_block_holds_four_million_numbers():
    asked = []

    def mechanism(data, size, rng):
        asked.append(size)
        return rng.random(size)

    drawn(mechanism, np.zeros(2**18), 35, reduce=whole)
    assert asked == [16, 16, 3]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_block_is_what_its_own_stream_gives(n_jobs, small_blocks):
    children = np.random.SeedSequence(2020).spawn(4)
    expected = [
        noisy(DATA, size, np.random.default_rng(child)) for child, size in zip(children, (4, 4, 4, 2), strict=True)
    ]
    assert_same(drawn(size=14, reduce=whole, n_jobs=n_jobs), expected)


def test_no_number_comes_twice(small_blocks):
    assert len(np.unique(np.concatenate(drawn(size=400, reduce=whole)))) == 400 * DATA.size


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_runs_are_no_blocks(n_jobs):
    def never(data, size, rng):
        raise AssertionError

    assert drawn(never, size=0, n_jobs=n_jobs) == []


# The same results everywhere


def test_results_do_not_depend_on_jobs_or_backend(small_blocks):
    alone = drawn(size=399)
    assert len(alone) == 100
    for n_jobs in (2, 4):
        assert_same(drawn(size=399, n_jobs=n_jobs), alone)
        for backend in ("threading", "sequential"):
            with joblib.parallel_config(backend=backend):
                assert_same(drawn(size=399, n_jobs=n_jobs), alone)


def test_results_are_the_same_from_processes(small_blocks):
    with joblib.parallel_config(backend="loky"):
        assert_same(drawn(n_jobs=2), drawn())
        assert os.getpid() not in np.concatenate(drawn(process, n_jobs=2, reduce=whole))


def test_results_are_the_same_one_run_at_a_time(small_blocks):
    one = per_run(lambda data, rng: data + rng.laplace(size=data.shape))
    assert_same(drawn(one, n_jobs=2), drawn())


def test_only_the_seed_decides(small_blocks):
    SEED.spawn(4)
    assert_same(drawn(), drawn(seed=np.random.SeedSequence(2020)))
    assert not np.array_equal(drawn()[0], drawn(seed=np.random.SeedSequence(2021))[0])
    generator = np.random.default_rng(5)
    first, second = drawn(seed=seed_sequence(generator)), drawn(seed=seed_sequence(generator))
    assert not np.array_equal(first[0], second[0])


def test_a_mechanism_with_a_generator_of_its_own_has_other_results_every_time(small_blocks):
    own = np.random.default_rng(0)  # negative control: equality of results can fail

    def mechanism(data, size, rng):
        return noisy(data, size, own)

    assert not np.array_equal(drawn(mechanism)[0], drawn(mechanism)[0])


# Memory


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_workers_stay_a_few_blocks_ahead_of_the_consumer(n_jobs, small_blocks):
    lock, begun, ahead = threading.Lock(), 0, []

    def mechanism(data, size, rng):
        nonlocal begun
        with lock:
            begun += 1
        return noisy(data, size, rng)

    for taken, _ in enumerate(draw(mechanism, DATA, 400, reduce=first_entry, seed=SEED, n_jobs=n_jobs)):
        ahead.append(begun - taken)
    assert len(ahead) == begun == 100
    assert 1 <= max(ahead) <= (1 if n_jobs == 1 else WAVE * n_jobs)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_whoever_stops_early_stops_the_work(n_jobs, small_blocks):
    begun = []

    def mechanism(data, size, rng):
        begun.append(size)
        return noisy(data, size, rng)

    blocks = draw(mechanism, DATA, 4000, reduce=first_entry, seed=SEED, n_jobs=n_jobs)
    next(blocks)
    blocks.close()
    assert len(begun) <= WAVE * n_jobs


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_outputs_are_dropped_once_they_are_reduced(n_jobs, small_blocks):
    given, most = [], 0

    def mechanism(data, size, rng):
        nonlocal most
        most = max(most, sum(reference() is not None for reference in given))
        outputs = noisy(data, size, rng)
        given.append(weakref.ref(outputs))
        return outputs

    drawn(mechanism, size=160, n_jobs=n_jobs)
    assert len(given) == 40
    assert most <= n_jobs - 1  # only the other workers hold any
    drawn(mechanism, size=160, reduce=whole)
    assert most >= 39  # negative control: what is kept is seen


# Outputs that are none


def ragged(data, size, rng):
    return rng.random((size, 2 + size % 2))


WRONG = [
    (lambda d, n, r: r.random(n + 1), ValueError, r"one output a run: asked for 4 runs, got shape \(5,\)"),
    (lambda d, n, r: r.random((1, n)), ValueError, r"one output a run: asked for 4 runs, got shape \(1, 4\)"),
    (lambda d, n, r: 3.0, ValueError, r"one output a run: asked for 4 runs, got shape \(\)"),
    (lambda d, n, r: None, ValueError, r"one output a run: asked for 4 runs, got shape \(\)"),
    (lambda d, n, r: r.random((n, 0)), ValueError, r"at least one entry each, got shape \(4, 0\)"),
    (lambda d, n, r: np.where(np.arange(n) == 2, np.nan, r.random(n)), ValueError, "not be NaN, got 1 of 4 values"),
    (lambda d, n, r: np.array([None] * n), TypeError, "outputs must be numbers or words, got dtype object"),
    (lambda d, n, r: [b"a"] * n, TypeError, r"outputs must be numbers or words, got dtype \|S1"),
    (lambda d, n, r: r.random(n) * 1j, TypeError, "outputs must be numbers or words, got dtype complex128"),
    (lambda d, n, r: np.zeros(n, "M8[s]"), TypeError, r"outputs must be numbers or words, got dtype datetime64\[s\]"),
]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("mechanism", "error", "words"), WRONG)
def test_wrong_outputs_are_refused(mechanism, error, words, n_jobs, small_blocks):
    with pytest.raises(error, match=words) as caught:
        drawn(mechanism, size=16, reduce=whole, n_jobs=n_jobs)
    assert "\n" not in str(caught.value)


def test_outputs_of_another_shape_are_refused(small_blocks):
    words = r"a mechanism must return outputs of one shape, got \(2,\) and \(3,\)"
    with pytest.raises(ValueError, match=words):
        drawn(ragged, None, 63, reduce=whole, shape=(2,))
    with pytest.raises(ValueError, match=words):
        run(ragged, None, 5, np.random.default_rng(0), shape=(2,))
    assert run(ragged, None, 4, np.random.default_rng(0), shape=(2,)).shape == (4, 2)


def test_a_seed_is_known_by_one_number():
    assert entropy_of(seed_sequence(7)) == 7
    for rng in (None, SEED.spawn(1)[0], np.random.default_rng(1), np.random.SeedSequence([1, 2])):
        root = seed_sequence(rng)
        assert state(seed_sequence(entropy_of(root))) == state(root)


def test_outputs_may_be_words():
    words = np.array([["yes", "no"], ["", "no"]])
    assert check_outputs(words) is words
    drawn_words = np.concatenate(drawn(lambda d, n, r: r.choice(["yes", "no"], (n, 2)), None, 50, reduce=whole))
    assert set(drawn_words.ravel()) == {"yes", "no"}
    assert run(lambda d, n, r: ["yes"] * n, None, 3, np.random.default_rng(0), shape=()).tolist() == ["yes"] * 3


def test_outputs_may_be_any_real_numbers():
    for values in ([True, False], [1, 2], [1.5, np.inf], [[-np.inf], [0]]):
        for dtype in (None, np.float32):
            outputs = np.array(values, dtype)
            assert check_outputs(outputs) is outputs
    assert check_outputs(np.array([3], np.uint8)).dtype == np.uint8


@pytest.mark.parametrize(
    ("outputs", "error", "words"),
    [
        (3.0, ValueError, r"outputs must be one a run with at least one entry each, got shape \(\)"),
        (np.empty((0, 2)), ValueError, r"with at least one entry each, got shape \(0, 2\)"),
        ([[1, np.nan], [np.nan, 2]], ValueError, "outputs must not be NaN, got 2 of 4 values"),
        ([b"1"], TypeError, r"outputs must be numbers or words, got dtype \|S1"),
        ([], ValueError, r"with at least one entry each, got shape \(0,\)"),
    ],
)
def test_outputs_that_are_none_are_refused(outputs, error, words):
    with pytest.raises(error, match=words):
        check_outputs(np.asarray(outputs))


# Exceptions


class BrokenError(Exception):
    """An error of the mechanism's own, with arguments."""


def raising(rate, give=lambda size, rng: rng.random(size)):
    """A mechanism each run of which raises an exception at a rate, and a batch wherever one of its runs does."""

    def mechanism(data, size, rng):
        if (rng.random(size) < rate).any():
            raise BrokenError("no such area", 17)
        return give(size, rng)

    return mechanism


@pytest.mark.parametrize("runs", [1, 2, 16, 128])
@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_exceptions_are_as_frequent_as_they_are(rate, runs, monkeypatch):
    monkeypatch.setattr(sampling, "CELLS", runs)
    outputs = np.concatenate(drawn(raising(rate), None, 6400, reduce=whole, shape=()))
    failed = np.isneginf(outputs)
    # 4 standard errors: false alarm of all 8 cases 5e-4. Were batches that raise run again and free to raise no more,
    # those of one run would raise at the square of the rate, and losses of 0.5 look like 1.
    assert abs(failed.mean() - rate) < 4 * math.sqrt(rate * (1 - rate) / failed.size)
    # The others are as random as ever: mean and spread of a fair number (false alarm 5e-4 each).
    others = outputs[~failed]
    assert abs(others.mean() - 0.5) < 4 / math.sqrt(12 * others.size)
    assert abs(others.var() - 1 / 12) < 4 / math.sqrt(180 * others.size)


def test_exceptions_of_one_batch_are_independent(monkeypatch):
    monkeypatch.setattr(sampling, "CELLS", 4)
    rate = 0.2
    failed = np.isneginf(np.concatenate(drawn(raising(rate), None, 8000, reduce=whole, shape=()))).reshape(-1, 4)
    # How many of 4 runs raise is binomial: chi-squared with 4 degrees of freedom is above 23.5 with probability 1e-4.
    expected = 2000 * np.array([math.comb(4, k) * rate**k * (1 - rate) ** (4 - k) for k in range(5)])
    seen = np.bincount(failed.sum(axis=1), minlength=5)
    assert ((seen - expected) ** 2 / expected).sum() < 23.5
    # And all places are alike: 3 degrees of freedom, above 21.1 with probability 1e-4.
    places = failed.sum(axis=0)
    assert ((places - 8000 * rate / 4) ** 2 / (2000 * rate * (1 - rate))).sum() < 21.1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_run_that_raises_has_an_output_of_its_own(n_jobs, small_blocks):
    def vectors(size, rng):
        return rng.integers(0, 9, (size, 2, 3))

    kept = np.concatenate(drawn(raising(0.3, vectors), size=200, reduce=whole, n_jobs=n_jobs, shape=(2, 3)))
    failed = np.isneginf(kept).all(axis=(1, 2))
    assert 0 < failed.sum() < 200
    assert np.isin(kept[~failed], np.arange(9)).all()
    always = np.concatenate(drawn(raising(1.0), size=20, reduce=whole, n_jobs=n_jobs, shape=(3,)))
    np.testing.assert_array_equal(always, np.full((20, 3), -np.inf))


def test_a_run_that_raises_is_a_word_where_outputs_are_words(small_blocks):
    kept = np.concatenate(drawn(raising(0.3, lambda size, rng: rng.choice(["a", "b"], size)), size=200, reduce=whole))
    assert set(kept.tolist()) == {"a", "b", RAISED}
    assert np.isneginf(run(raising(1.0), None, 3, np.random.default_rng(0), shape=())).all()


def test_results_with_exceptions_do_not_depend_on_jobs(small_blocks):
    alone = drawn(raising(0.1), size=399, reduce=whole)
    assert np.isinf(np.concatenate(alone)).any()
    assert_same(drawn(raising(0.1), size=399, reduce=whole, n_jobs=2), alone)


def test_an_error_that_is_no_output_arrives_in_one_piece():
    raised = BrokenError("no such area", 17)

    def never(data, size, rng):
        raise raised

    def batches(data, size, rng):
        asked.append(size)
        if size > 1:
            raise raised
        return rng.random(size)

    asked = []
    for size in (1, 5):  # of what shape an output would be nobody knows
        with pytest.raises(BrokenError) as caught:
            run(never, None, size, np.random.default_rng(0))
        assert caught.value is raised
    with pytest.raises(BrokenError) as caught:  # by itself no run raises: it is the batch that cannot be run
        run(batches, None, 5, np.random.default_rng(0), shape=())
    assert caught.value is raised
    assert asked == [5, 2, 3] + [1] * 2 * PASSES + [2] * ATTEMPTS


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_a_batch_that_cannot_be_run_is_an_error_from_any_worker(n_jobs, small_blocks):
    raised = BrokenError("no such area", 17)

    def mechanism(data, size, rng):
        if size == 2:  # the last block
            raise raised
        return noisy(data, size, rng)

    with pytest.raises(BrokenError) as caught:
        drawn(mechanism, n_jobs=n_jobs)
    assert caught.value.args == ("no such area", 17)
    assert_same(drawn(n_jobs=n_jobs), drawn())  # what comes after is unharmed


def test_exhausted_memory_is_no_output():
    def at_once(data, size, rng):
        asked.append(size)
        raise MemoryError

    def in_part(data, size, rng):
        asked.append(size)
        raise BrokenError if size > 2 else MemoryError

    for mechanism, expected in ((at_once, [4]), (in_part, [4, 2])):
        asked = []
        with pytest.raises(MemoryError):
            run(mechanism, None, 4, np.random.default_rng(0), shape=())
        assert asked == expected
    asked = []
    with pytest.raises(MemoryError):
        one_output(at_once, (None, None), SEED)
    assert asked == [1]


def test_an_interrupt_is_no_output():
    def mechanism(data, size, rng):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(mechanism, None, 4, np.random.default_rng(0), shape=())


@pytest.mark.parametrize(
    ("part", "shape", "words"),
    [
        (lambda size, rng: rng.random((size, size)), None, r"outputs of one shape, got \(1,\) and \(3,\)$"),
        (lambda size, rng: rng.random((size, 2, 2)), (2,), r"outputs of one shape, got \(2,\) and \(2, 2\)$"),
        (lambda size, rng: rng.random(2), None, r"return one output a run: asked for 3 runs, got shape \(2,\)$"),
        (lambda size, rng: 3.0, None, r"return one output a run: asked for 3 runs, got shape \(\)$"),
    ],
)
def test_parts_of_a_batch_have_outputs_like_batches(part, shape, words):
    def mechanism(data, size, rng):
        calls.append(size)
        if len(calls) in (1, 2, 4):
            raise BrokenError
        return part(size, rng)

    calls = []
    with pytest.raises(ValueError, match=words):
        run(mechanism, None, 5, np.random.default_rng(0), shape=shape)
    assert calls[:3] == [5, 2, 3]


# What one output is


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


# Mechanisms that ignore their generator


def test_a_mechanism_that_ignores_its_generator_is_caught():
    for mechanism, shape in ((same_noise, (16,)), (lambda data, size, rng: np.arange(size), ())):
        for runs in (2, 32):
            with pytest.raises(ValueError, match="identical under two different rngs: the mechanism ignores its rng"):
                check_uses_rng(mechanism, DATA, runs, SEED, shape=shape)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_identical_blocks_are_caught(n_jobs, small_blocks):
    with pytest.raises(ValueError, match="blocks 0 and 1 are identical under different rngs: the mechanism ignores"):
        drawn(same_noise, np.zeros(1), 128, n_jobs=n_jobs)
    assert len(drawn(same_noise, np.zeros(1), 127, n_jobs=n_jobs)) == 2  # the last is shorter


def test_a_mechanism_that_asks_its_generator_and_does_not_listen_is_caught(small_blocks):
    def mechanism(data, size, rng):
        rng.random(size)
        return same_noise(data, size, rng)

    with pytest.raises(ValueError, match="ignores its rng"):
        check_uses_rng(mechanism, DATA, 32, SEED, shape=(16,))
    with pytest.raises(ValueError, match="ignores its rng"):
        drawn(mechanism, np.zeros(1), 128)


def test_blocks_that_share_a_stream_are_caught(monkeypatch, small_blocks):
    monkeypatch.setattr(sampling, "stream", lambda root, *key: root)
    with pytest.raises(ValueError, match="blocks 0 and 1 are identical under different rngs"):
        drawn(lambda data, size, rng: rng.random(size), None, 128, reduce=whole)
    with pytest.raises(ValueError, match="identical under two different rngs"):
        check_uses_rng(noisy, DATA, 20, SEED, shape=(16,))


def test_runs_that_share_their_noise_are_caught():
    def shared(data, size, rng):
        return np.repeat(data + rng.laplace(size=(1, data.size)), size, axis=0)

    with pytest.raises(ValueError, match="runs must be independent: all 20 of a batch are the same, and another batch"):
        check_uses_rng(shared, DATA, 20, SEED, shape=(16,))
    check_uses_rng(shared, DATA, 19, SEED, shape=(16,))  # fewer prove nothing: fair coins agree that often


def test_copies_of_runs_are_refused():
    rng = np.random.default_rng(2)
    real, few, pairs = rng.laplace(size=60), rng.integers(0, 3, 900), rng.integers(0, 9, (400, 2))
    for outputs in (real, few, pairs):
        check_not_copied(outputs)
    for copied in (np.tile(real, 2), np.repeat(real, 5), np.tile(rng.laplace(size=(50, 3)), (2, 1))):
        with pytest.raises(ValueError, match=r"runs must be independent: \d\d outputs occur [25] times each"):
            check_not_copied(copied)
    check_not_copied(np.repeat([0, 1, 2], 50))  # three values agree so by chance


@pytest.mark.parametrize("values", [2, 5, 60])
def test_whole_numbers_are_not_taken_for_copies(values):
    """Independent draws whose counts share a divisor by chance: no accusation in 2,000 batches (chance 1e-12 each)."""
    rng = np.random.default_rng(3)
    for size in (4, 40, 400, 4000):
        for _ in range(500):
            check_not_copied(rng.integers(0, values, size))


def test_two_batches_are_asked_for_never_more_than_a_block_at_once(small_blocks):
    asked = []

    def mechanism(data, size, rng):
        asked.append(size)
        return rng.random((size, 2, 3))

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


@pytest.mark.parametrize(
    ("outputs", "chance"),
    [
        ([5, 5, 5], 1),
        ([0, 0, 1, 1], (1 / 2) ** 4),
        ([0, 0, 0, 1], (10 / 16) ** 4),
        ([True, False], 1 / 4),
        ([[0, 1], [0, 1], [0, 2], [1, 1]], (6 / 16) ** 4),
        ([[[0], [1]], [[0], [1]]], 1),
        (np.arange(10), 1e-10),
        (np.arange(2000.0), 0),
    ],
)
def test_the_chance_of_a_repeat(outputs, chance):
    assert chance_of_repeat(np.array(outputs)) == pytest.approx(chance, rel=1e-12, abs=0)


def test_the_chance_of_a_repeat_is_the_one_of_a_large_batch():
    rng, rate, runs = np.random.default_rng(6), 1e-3, 2000
    estimates = [chance_of_repeat(rng.random(runs) < rate) for _ in range(400)]
    # The truth is about exp(-4), the estimate about exp(-2 * count) for a binomial count of mean 2. At most 1 has
    # probability 0.406, at most 2 0.677: 2 is the median of 400 unless one is off by 3.8 standard errors (1e-4).
    assert np.median(estimates) == pytest.approx((rate**2 + (1 - rate) ** 2) ** runs, rel=0.01)
    assert min(estimates) > CHANCE


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.randoms())
def test_the_chance_of_a_repeat_is_a_probability_of_the_values_alone(values, random):
    chance = chance_of_repeat(np.array(values))
    assert len(values) ** -len(values) * (1 - 1e-9) <= chance <= 1
    random.shuffle(values)
    assert chance_of_repeat(np.array(values)) == pytest.approx(chance, rel=1e-12)
    assert chance_of_repeat(np.array(values) * 7 + 1) == pytest.approx(chance, rel=1e-12)
