"""Where outputs come from, and the random streams that make them."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from audit.events import cell
from audit.sampling.runs import scores
from audit.sampling.streams import Phase, entropy_of, seed_sequence, stream
from tests.audit.sampling.cases import SEED, given_runs, noting, runs_of
from tests.helpers import whole


def joined(parts):
    return [np.concatenate(list(part)) for part in parts]


def test_runs_of_every_phase_and_side_are_fresh():
    progress = []
    runs = runs_of(lambda data, size, rng: rng.random(size), shape=(), progress=progress)
    keys = [(Phase.EXPLORE,), (Phase.EXPLORE, 2), (Phase.LEARN,), (Phase.SELECT,), (Phase.COUNT,), (Phase.COUNT, 1)]
    drawn = [part for key in keys for part in joined(runs.reduced((40, 30), whole, *key))]
    assert [len(part) for part in drawn] == [40, 30] * len(keys)
    assert len(np.unique(np.concatenate(drawn))) == 70 * len(keys)
    assert sum(progress) == 70 * len(keys)
    again = joined(runs_of(lambda data, size, rng: rng.random(size), shape=()).reduced((40, 30), whole, *keys[3]))
    for one, other in zip(again, drawn[6:8], strict=True):
        np.testing.assert_array_equal(one, other)
    other = joined(runs_of(runs.mechanism, shape=(), root=np.random.SeedSequence(1)).reduced((40, 30), whole, *keys[3]))
    assert not np.isin(other[0], drawn[6]).any()


def test_runs_are_of_either_database_and_reduced():
    on_x, on_y = joined(
        runs_of(lambda data, size, rng: np.tile(data, (size, 1))).reduced((3, 2), lambda o: o.sum(axis=1), Phase.COUNT)
    )
    assert on_x.tolist() == [120] * 3
    assert on_y.tolist() == [121] * 2
    assert [list(part) for part in runs_of().reduced((0, 0), whole, Phase.COUNT)] == [[], []]


def test_given_outputs_are_used_once_and_in_order():
    x, y = np.arange(20), np.arange(100, 130)
    runs = given_runs(x, y)
    assert (runs.shape, runs.left) == ((), [20, 30])
    first = joined(runs.reduced((5, 7), whole, Phase.EXPLORE))
    assert runs.left == [15, 23]
    second = [list(part) for part in runs.reduced((0, 3), whole, Phase.EXPLORE)]  # whatever the phase
    assert second[0] == []
    third = joined(runs.reduced((15, 20), whole, Phase.COUNT))
    assert runs.left == [0, 0]
    assert [*first[0], *third[0]] == x.tolist()
    assert [*first[1], *second[1][0], *third[1]] == y.tolist()


def test_written_outputs_of_a_mechanism_are_read_before_anything_sees_them():
    runs = replace(runs_of(lambda data, size, rng: ["b" * (1 + k % 2) for k in range(size)], shape=None), explored=3)
    read = runs.read_by(lambda texts: np.array([[len(text)] for text in texts], float), 1)
    assert (runs.read, runs.written, runs.shape, read.written, read.shape) == (None, True, (), False, (1,))
    assert [part.tolist() for part in joined(read.reduced((3, 1), whole, Phase.LEARN))] == [[[3], [4], [3]], [[3]]]


@pytest.mark.parametrize("made", [runs_of, None])
def test_a_statistic_of_ones_own_gets_outputs_as_they_are(made):
    outputs = [("b", 1.5), ("a", None)]
    own = replace(runs_of(lambda data, size, rng: outputs[:size], shape=None), explored=2)
    runs = own if made else given_runs(outputs, outputs)
    (on_x, _) = joined(runs.as_given().reduced((2, 1), whole, Phase.LEARN))
    assert on_x.tolist() == [["b", 1.5], ["a", None]]
    numbers = runs_of() if made else given_runs(np.zeros((2, 3)), np.ones((2, 3)))
    assert numbers.as_given() is numbers


def test_scores_are_one_column_a_statistic():
    statistics = (cell(2), cell(0))
    on_x, on_y = scores(given_runs([[1, 2, 3]], [[4, 5, 6], [7, 8, 9]]), (1, 2), statistics)
    assert (on_x.tolist(), on_y.tolist()) == ([[3, 1]], [[6, 4], [9, 7]])
    nothing = scores(given_runs(np.zeros((1, 3)), np.zeros((1, 3))), (0, 0), statistics)
    assert [part.shape for part in nothing] == [(0, 2), (0, 2)]


def test_calls_are_those_that_are_made():
    for sizes in ((0, 1), (40, 1000), (10_001, 64)):
        calls = []
        runs = replace(runs_of(noting(calls)), explored=7)
        made = []
        (groups,) = runs.groups(sizes, Phase.COUNT)
        for side, sizes_of_calls in zip(runs.reduced(sizes, whole, Phase.COUNT), groups, strict=True):
            assert [len(block) for block in side] == ([sizes_of_calls.sum()] if sizes_of_calls.size else [])
            made += sizes_of_calls.tolist()
        assert made == calls
        calls.clear()
        joined(replace(runs).reduced((30, 20), whole, Phase.LEARN, 3))  # which neither chooses nor counts
        assert calls == [7, 7, 7, 7, 2, 7, 7, 6]


def test_given_outputs_that_count_are_in_order_and_compared_in_pieces():
    runs = given_runs(np.arange(30.0).reshape(10, 3), np.zeros((100, 3)))
    runs = replace(runs, orders=[np.arange(10)[::-1], np.arange(100)])
    in_turn = [joined(runs.reduced((2, 1), whole, phase))[0][:, 0] for phase in (Phase.SELECT, Phase.COUNT)]
    assert np.array_equal(in_turn, [[27, 24], [18, 21]])
    few, many = runs.groups((10, 100), Phase.COUNT)
    assert [side.tolist() for side in few] == [[2] * 5, np.diff(np.arange(33) * 100 // 32).tolist()]
    assert [side.tolist() for side in many] == [[2] * 5, [2] * 50]


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
    with pytest.raises(ValueError, match="rng must have at most 308 digits, got one of 1024 bits"):
        seed_sequence(10**308)
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
    assert len({int(phase) for phase in Phase}) == len(Phase) == 12


def test_a_seed_is_known_by_one_number():
    assert entropy_of(seed_sequence(7)) == 7
    pooled, generator = np.random.SeedSequence(3, pool_size=8), np.random.default_rng(1)
    for rng in (None, SEED.spawn(1)[0], generator, np.random.SeedSequence([1, 2]), pooled):
        root = seed_sequence(rng)
        assert state(seed_sequence(entropy_of(root))) == state(root)
    assert entropy_of(seed_sequence(generator)) != entropy_of(seed_sequence(generator))
