from __future__ import annotations

import itertools

import numpy as np
import pytest

from audit.sampling.streams import Phase, entropy_of, halves, seed_sequence, stream

SEED = np.random.SeedSequence(2020)


def state(seed):
    return tuple(seed.generate_state(4, np.uint64).tolist())


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
    with pytest.raises(ValueError, match="rng must not be a negative integer, got -1"):
        seed_sequence(-1)


def test_a_stream_is_the_child_of_its_number_whatever_was_spawned():
    root = np.random.SeedSequence(5, pool_size=8)
    before = stream(root, 2)
    children = root.spawn(3)
    assert state(before) == state(stream(root, 2)) == state(children[2])
    assert state(stream(root, 2, 1)) == state(stream(stream(root, 2), 1)) == state(children[2].spawn(2)[1])
    assert before.pool_size == 8


def test_streams_and_phases_are_distinct():
    keys = [key for length in range(4) for key in itertools.product(range(4), repeat=length)]
    assert len({state(stream(SEED, *key)) for key in keys}) == len(keys) == 85
    assert len({int(phase) for phase in Phase}) == len(Phase) == 9


def test_a_seed_is_known_by_one_number():
    assert entropy_of(seed_sequence(7)) == 7
    for rng in (None, SEED.spawn(1)[0], np.random.default_rng(1), np.random.SeedSequence([1, 2])):
        root = seed_sequence(rng)
        assert state(seed_sequence(entropy_of(root))) == state(root)


@pytest.mark.parametrize("runs", [0, 1, 2, 7, 100])
def test_halves_are_equal_or_nearly(runs):
    first, second = halves(runs)
    assert first + second == runs
    assert 0 <= first - second <= 1
