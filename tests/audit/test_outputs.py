"""What an output may be, exceptions included."""

from __future__ import annotations

import math

import numpy as np
import pytest

from audit.outputs import ATTEMPTS, CHANCE, PASSES, RAISED, chance_of_repeat, check_not_copied, check_outputs, run
from audit.sampling.probes import one_output
from tests.helpers import BrokenError, raising, refused_like

SEED = np.random.SeedSequence(2020)


def ragged(data, size, rng):
    return rng.random((size, 2 + size % 2))


WRONG = [
    (lambda d, n, r: r.random(n + 1), ValueError, r"one output a run: asked for 4 runs, got shape \(5,\)"),
    (lambda d, n, r: r.random((1, n)), ValueError, r"one output a run: asked for 4 runs, got shape \(1, 4\)"),
    (lambda d, n, r: 3.0, ValueError, r"one output a run: asked for 4 runs, got shape \(\)"),
    (lambda d, n, r: r.random((n, 0)), ValueError, r"at least one entry each, got shape \(4, 0\)"),
    (lambda d, n, r: np.where(np.arange(n) == 2, np.nan, r.random(n)), ValueError, "not be NaN, got 1 of 4 values"),
    (lambda d, n, r: np.array([None] * n), TypeError, "outputs must be numbers or words, got dtype object"),
    (lambda d, n, r: [b"a"] * n, TypeError, r"outputs must be numbers or words, got dtype \|S1"),
    (lambda d, n, r: np.zeros(n, "M8[s]"), TypeError, r"outputs must be numbers or words, got dtype datetime64\[s\]"),
]


@pytest.mark.parametrize(("mechanism", "error", "words"), WRONG)
def test_wrong_outputs_are_refused(mechanism, error, words):
    with refused_like(error, words):
        run(mechanism, None, 4, np.random.default_rng(0))


def test_outputs_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"a mechanism must return outputs of one shape, got \(2,\) and \(3,\)"):
        run(ragged, None, 5, np.random.default_rng(0), shape=(2,))
    assert run(ragged, None, 4, np.random.default_rng(0), shape=(2,)).shape == (4, 2)


def test_outputs_may_be_words_and_any_real_numbers():
    for given in ([["yes", "no"], ["", "no"]], [True, False], [1.5, np.inf], np.array([3], np.uint8)):
        outputs = np.array(given)
        assert check_outputs(outputs) is outputs
    assert run(lambda d, n, r: ["yes"] * n, None, 3, np.random.default_rng(0), shape=()).tolist() == ["yes"] * 3


@pytest.mark.parametrize("runs", [1, 2, 16, 128])
@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_exceptions_are_as_frequent_as_they_are(rate, runs):
    rng = np.random.default_rng(2020)
    outputs = np.concatenate([run(raising(rate), None, runs, rng, shape=()) for _ in range(6400 // runs)])
    failed = np.isneginf(outputs)
    # 4 standard errors: false alarm of all 8 cases 5e-4. Were batches that raise run again and free to raise no more,
    # those of one run would raise at the square of the rate, and losses of 0.5 look like 1.
    assert abs(failed.mean() - rate) < 4 * math.sqrt(rate * (1 - rate) / failed.size)
    # The others are as random as ever: mean and spread of a fair number (false alarm 5e-4 each).
    others = outputs[~failed]
    assert abs(others.mean() - 0.5) < 4 / math.sqrt(12 * others.size)
    assert abs(others.var() - 1 / 12) < 4 / math.sqrt(180 * others.size)


def test_a_run_that_raises_is_a_word_where_outputs_are_words():
    words = raising(0.3, lambda size, rng: rng.choice(["a", "b"], size))
    kept = run(words, None, 50, np.random.default_rng(0))
    assert set(kept.tolist()) == {"a", "b", RAISED}
    assert np.isneginf(run(raising(1.0), None, 3, np.random.default_rng(0), shape=())).all()


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


def test_exhausted_memory_and_an_interrupt_are_no_output():
    def at_once(data, size, rng):
        asked.append(size)
        raise MemoryError

    def in_part(data, size, rng):
        asked.append(size)
        raise BrokenError if size > 2 else MemoryError

    def interrupted(data, size, rng):
        raise KeyboardInterrupt

    for mechanism, expected in ((at_once, [4]), (in_part, [4, 2])):
        asked = []
        with pytest.raises(MemoryError):
            run(mechanism, None, 4, np.random.default_rng(0), shape=())
        assert asked == expected
    asked = []
    with pytest.raises(MemoryError):
        one_output(at_once, (None, None), SEED)
    assert asked == [1]
    with pytest.raises(KeyboardInterrupt):
        run(interrupted, None, 4, np.random.default_rng(0), shape=())


@pytest.mark.parametrize(
    ("part", "shape", "words"),
    [
        (lambda size, rng: rng.random((size, size)), None, r"outputs of one shape, got \(1,\) and \(3,\)$"),
        (lambda size, rng: rng.random((size, 2, 2)), (2,), r"outputs of one shape, got \(2,\) and \(2, 2\)$"),
        (lambda size, rng: rng.random(2), None, r"return one output a run: asked for 3 runs, got shape \(2,\)$"),
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


@pytest.mark.parametrize(
    ("outputs", "chance"),
    [
        ([5, 5, 5], 1),
        ([0, 0, 1, 1], (1 / 2) ** 4),
        ([[0, 1], [0, 1], [0, 2], [1, 1]], (6 / 16) ** 4),
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
