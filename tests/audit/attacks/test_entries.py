import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.attacks.entries import changed, moved, moved_besides
from audit.attacks.movement import Moments, changed_entries, largest
from audit.events import cell
from audit.neighbors import NeighborPair
from tests.audit.attacks.cases import moments, names


def test_changed_cells_are_those_of_the_pair():
    counts = np.array([[5, 6, 7], [8, 9, 10]])
    one = NeighborPair.add_people(counts, (1, 2))
    assert names(changed(one, (2, 3))) == ["output[1, 2]", "distance of output[1, 2] from 10.5", "sum of output"]
    group = NeighborPair.add_people(counts, (0, 1), 4)
    assert names(changed(group, (2, 3))) == ["output[0, 1]", "distance of output[0, 1] from 8", "sum of output"]
    moved = NeighborPair.move_people(counts, (1, 0), (0, 2), 3)
    statistics = changed(moved, (2, 3))
    assert names(statistics) == [
        *("output[0, 2]", "output[1, 0]", "joint shift of output[0, 2], [1, 0]"),
        *("weighted sum of output[0, 2], [1, 0]", "distance of output[0, 2] from 8.5"),
    ]
    looked_at = np.array([moved.x, moved.y, (moved.x + moved.y) / 2])
    assert statistics[2](looked_at).tolist() == [-1.5, 1.5, 0]
    assert statistics[3](looked_at).tolist() == [-9, 9, 0]
    assert statistics[4](looked_at).tolist() == [1.5, 1.5, 0]  # and no sum: it stays the same
    flat = NeighborPair.declared(np.array([1, 2, 3]), np.array([2, 1, 4]), "add_remove", distance=3)
    assert names(changed(flat, (3,))) == [
        *("output[0]", "output[1]", "output[2]"),
        *("joint shift of output[0], [1]", "joint shift of output[0], [1], [2]"),
        *("weighted sum of output[0], [1], [2]", "distance of output[0] from 1.5", "sum of output"),
    ]


def test_unsigned_counts_may_fall():
    pair = NeighborPair.declared(np.array([200, 3], np.uint8), np.array([199, 3], np.uint8), "add_remove")
    assert names(changed(pair, (2,))) == ["output[0]", "distance of output[0] from 199.5", "sum of output"]


def test_the_most_changed_of_many_cells_are_looked_at():
    x = np.zeros(20)
    y = np.ones(20)
    y[[13, 17]] = -3, 5
    statistics = names(changed(NeighborPair.declared(x, y, "add_remove", distance=26), (20,)))
    assert statistics[:8] == [f"output[{k}]" for k in (17, 13, 0, 1, 2, 3, 4, 5)]
    assert len(statistics) == 8 + 7 + 3


def moved_of(shape, x, y):
    center = np.zeros(math.prod(shape))
    return moved(shape, center, moments(x, center), moments(y, center))


def test_moved_are_found_by_their_means():
    rng = np.random.default_rng(12)
    scale = np.full((3, 4), 2.0)
    scale[0, 3] = 50
    x, y = rng.normal(100, scale, (2, 2000, 3, 4))
    y[:, 1, 2] += 1
    y[:, 2, 0] -= 2
    y[:, 0, 3] += 3  # below 2 standard errors
    # The moves are 16 and 32 standard errors; of 10 entries that do not move, one passes 5 with probability 6e-6.
    center = x[0].ravel()
    statistics = moved((3, 4), center, moments(x, center), moments(y, center))
    assert names(statistics)[:3] == ["output[2, 0]", "output[1, 2]", "joint shift of output[2, 0], [1, 2]"]
    assert statistics[4].name.startswith("distance of output[2, 0] from 9")
    others = names(statistics)[5:]  # singly, those of the eight that move most
    assert len(others) == len({*others} - {"output[2, 0]", "output[1, 2]"}) == 6
    assert all(name.startswith("output[") for name in others)
    near_x, near_y = np.full((2, 3, 4), 100.0)
    near_y[1, 2], near_y[2, 0] = 101, 98
    # In units of the noise: half of a move of 1 by noise of 2; means of 2,000 runs are known to 0.045.
    np.testing.assert_allclose(statistics[2](np.array([near_x, near_y])), [-0.25, 0.25], atol=0.1)
    # Half of a move of 2 in units of the noise, and half of a move of 1 that counts half: (1 + 1 / 2 / 2) / 2.
    np.testing.assert_allclose(statistics[3](np.array([near_x, near_y])), [-0.625, 0.625], atol=0.2)


def test_where_no_entry_clearly_moves_three_are_tried_together():
    rng = np.random.default_rng(14)
    x, y = rng.normal(size=(2, 500, 6))
    y[:, 4] += 0.15  # 2.4 standard errors
    found = names(moved_of((6,), x, y))
    singles = [name for name in found if name.startswith("output")]
    assert sorted(singles) == [f"output[{k}]" for k in range(6)]
    assert "output[4]" in found[:3]
    assert max(name.count("[") for name in found) == 3
    statistics = moved_of((6,), np.ones((5, 6)), np.ones((5, 6)))
    assert names(statistics)[:3] == ["output[0]", "output[1]", "output[2]"]
    for statistic in statistics:
        assert np.isfinite(statistic(np.arange(12.0).reshape(2, 6))).all()


def test_infinities_do_not_hide_an_entry_that_moves():
    x, y = np.random.default_rng(16).normal(size=(2, 400, 3))
    x[::7, 0], y[::7, 0] = math.inf, math.inf
    x[5, 1] = -math.inf  # once: no sign of a move
    y[:, 2] += 1
    found = names(moved_of((3,), x, y))
    assert found[0] == "output[2]"
    assert sorted(found[2:]) == ["output[0]", "output[1]"]  # singly, and nothing together


def test_other_entries_that_move_are_found_and_none_that_is_known():
    x, y = np.random.default_rng(18).normal(size=(2, 1000, 4, 5))
    shifts = {(0, 1): 1.0, (2, 3): -3.0, (3, 0): 0.5}  # 22, 67 and 11 standard errors
    for index, shift in shifts.items():
        y[(slice(None), *index)] += shift
    center = np.zeros(20)
    given = moments(x, center), moments(y, center)
    # Of 17 entries that do not move one passes 5 standard errors with probability 1e-5.
    found = names(moved_besides((4, 5), *given, []))
    assert found[:3] == ["output[2, 3]", "output[0, 1]", "output[3, 0]"]
    assert len({*found}) == len(found) == 8
    others = names(moved_besides((4, 5), *given, [cell(2, 3), cell(1, 1)]))
    assert others[:2] == ["output[0, 1]", "output[3, 0]"]
    assert len({*others} - {"output[2, 3]", "output[1, 1]"}) == len(others) == 8
    every = [cell(*index) for index in np.ndindex(4, 5)]
    assert moved_besides((4, 5), *given, every) == ()


@pytest.mark.parametrize(
    ("x", "y", "shape"),
    [
        (np.zeros(3), np.ones(3), (4,)),
        (np.zeros((3, 2)), np.ones((4, 2)), (3, 2)),
        (np.array([True, False]), np.array([True, True]), (2,)),
        (np.array([1.0, math.nan]), np.array([2.0, math.nan]), (2,)),
        (np.zeros(3), np.zeros(3), (3,)),
    ],
)
def test_where_outputs_are_not_like_the_data_nothing_is_known_to_change(x, y, shape):
    assert changed_entries(NeighborPair.declared(x, y, "add_remove"), shape) == []


@pytest.mark.parametrize("center", [0.0, 2.0**30])
@pytest.mark.parametrize("cuts", [[], [1], [3, 50, 99]])
def test_moments_are_those_of_all_runs_together(center, cuts):
    outputs = center + np.random.default_rng(17).normal(0, [[1, 2], [3, 4]], (100, 2, 2))
    about = np.full(4, center)
    found = Moments.of(len(outputs), map(Moments.reducer(about), np.split(outputs, cuts)))
    apart = outputs.reshape(100, 4) - center
    assert found.runs == 100
    np.testing.assert_allclose(found.mean, apart.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.sd, apart.std(axis=0), rtol=1e-12)
    squares = (apart - apart.mean(axis=0)) ** 2
    np.testing.assert_allclose(found.error, squares.std(axis=0) / math.sqrt(100), rtol=1e-9)


@given(st.lists(st.sampled_from([math.nan, -math.inf, -1.0, 0.0, 2.0, math.inf])), st.integers(1, 9))
def test_the_largest_are_those_that_come_first_in_a_whole_order(values, most):
    values = np.array(values)
    assert largest(values, most).tolist() == np.argsort(-values, kind="stable")[:most].tolist()
