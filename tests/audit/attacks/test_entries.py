from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from audit.attacks.entries import (
    LIKELIHOOD_RATIO,
    Moments,
    changed_cells,
    entries_to_learn,
    likelihood_ratio,
    moved_cells,
    other_moved_cells,
)
from audit.events import LARGEST, cell
from audit.neighbors import NeighborPair


def names(statistics):
    return [statistic.name for statistic in statistics]


# What the pair changes


def test_changed_cells_are_those_of_the_pair():
    counts = np.array([[5, 6, 7], [8, 9, 10]])
    one = NeighborPair.add_people(counts, (1, 2))
    assert names(changed_cells(one, (2, 3))) == ["output[1, 2]", "distance of output[1, 2] from 10.5", "sum of output"]
    group = NeighborPair.add_people(counts, (0, 1), 4)
    assert names(changed_cells(group, (2, 3))) == ["output[0, 1]", "distance of output[0, 1] from 8", "sum of output"]
    moved = NeighborPair.move_people(counts, (1, 0), (0, 2), 3)
    statistics = changed_cells(moved, (2, 3))
    assert names(statistics) == [
        *("output[0, 2]", "output[1, 0]", "joint shift of output[0, 2], [1, 0]"),
        *("weighted sum of output[0, 2], [1, 0]", "distance of output[0, 2] from 8.5"),
    ]
    looked_at = np.array([moved.x, moved.y, (moved.x + moved.y) / 2])
    assert statistics[2](looked_at).tolist() == [-1.5, 1.5, 0]
    assert statistics[3](looked_at).tolist() == [-9, 9, 0]
    assert statistics[4](looked_at).tolist() == [1.5, 1.5, 0]  # and no sum: it stays the same
    flat = NeighborPair.declared(np.array([1, 2, 3]), np.array([2, 1, 4]), "add_remove", distance=3)
    assert names(changed_cells(flat, (3,))) == [
        *("output[0]", "output[1]", "output[2]"),
        *("joint shift of output[0], [1]", "joint shift of output[0], [1], [2]"),
        *("weighted sum of output[0], [1], [2]", "distance of output[0] from 1.5", "sum of output"),
    ]


def test_the_weighted_sum_is_the_likelihood_ratio_of_equal_normal_noise():
    pair = NeighborPair.declared(np.array([4, 7, 1, 0]), np.array([7, 6, 1, 2]), "add_remove", distance=6)
    outputs, scale = np.random.default_rng(1).normal(3, 5, (50, 4)), 3.0
    on_x, on_y = (norm.logpdf(outputs, data, scale).sum(axis=1) for data in (pair.x, pair.y))
    (total,) = (one for one in changed_cells(pair, (4,)) if one.name.startswith("weighted sum"))
    np.testing.assert_allclose(total(outputs), (on_y - on_x) * scale**2, atol=1e-8)


def test_unsigned_counts_may_fall():
    pair = NeighborPair.declared(np.array([200, 3], np.uint8), np.array([199, 3], np.uint8), "add_remove")
    assert names(changed_cells(pair, (2,))) == ["output[0]", "distance of output[0] from 199.5", "sum of output"]


def test_the_most_changed_of_many_cells_are_looked_at():
    x = np.zeros(20)
    y = np.ones(20)
    y[[13, 17]] = -3, 5
    statistics = names(changed_cells(NeighborPair.declared(x, y, "add_remove", distance=26), (20,)))
    assert statistics[:8] == [f"output[{k}]" for k in (17, 13, 0, 1, 2, 3, 4, 5)]
    assert len(statistics) == 8 + 7 + 3


def test_an_output_that_is_one_number_is_looked_at_whatever_the_data():
    for data in (np.array([3, 4]), "a table", None):
        pair = NeighborPair.declared(data, data, "add_remove")
        assert names(changed_cells(pair, ())) == ["output"]
        assert names(changed_cells(pair, (1, 1))) == ["output[0, 0]"]


UNLIKE = [
    (np.zeros(3), np.ones(3), (4,)),
    (np.zeros(3), np.ones(3), (3, 1)),
    (np.zeros((3, 2)), np.ones((4, 2)), (3, 2)),
    (np.zeros((4, 2)), np.ones((3, 2)), (3, 2)),
    (np.array([True, False]), np.array([True, True]), (2,)),
    (np.array(["a", "b"]), np.array(["a", "c"]), (2,)),
    (np.array([1.0, math.nan]), np.array([2.0, math.nan]), (2,)),
    (np.array([1.0, math.inf]), np.array([2.0, math.inf]), (2,)),
    ("x", "y", (2,)),
    (np.zeros(3), None, (3,)),
    (None, np.zeros(3), (3,)),
]


@pytest.mark.parametrize(("x", "y", "shape"), [*UNLIKE, (np.zeros(3), np.zeros(3), (3,))])
def test_where_outputs_are_not_like_the_data_nothing_is_known_to_change(x, y, shape):
    assert changed_cells(NeighborPair.declared(x, y, "add_remove"), shape) is None


# What moves


def moments(outputs, center):
    return Moments.of([Moments.reducer(center)(outputs)])


def test_moved_cells_are_found_by_their_means():
    rng = np.random.default_rng(12)
    scale = np.full((3, 4), 2.0)
    scale[0, 3] = 50
    x, y = rng.normal(100, scale, (2, 2000, 3, 4))
    y[:, 1, 2] += 1
    y[:, 2, 0] -= 2
    y[:, 0, 3] += 3  # below 2 standard errors
    # The moves are 16 and 32 standard errors; of 10 entries that do not move, one passes 5 with probability 6e-6.
    center = x[0].ravel()
    statistics = moved_cells((3, 4), center, moments(x, center), moments(y, center))
    assert names(statistics)[:4] == [
        *("output[2, 0]", "output[1, 2]", "joint shift of output[2, 0], [1, 2]"),
        "weighted sum of output[2, 0], [1, 2]",
    ]
    assert statistics[4].name.startswith("distance of output[2, 0] from 9")
    assert len(statistics) == 5
    near_x, near_y = np.full((2, 3, 4), 100.0)
    near_y[1, 2], near_y[2, 0] = 101, 98
    # In units of the noise: half of a move of 1 by noise of 2; means of 2,000 runs are known to 0.045.
    np.testing.assert_allclose(statistics[2](np.array([near_x, near_y])), [-0.25, 0.25], atol=0.1)
    # Half of a move of 2 in units of the noise, and half of a move of 1 that counts half: (1 + 1 / 2 / 2) / 2.
    np.testing.assert_allclose(statistics[3](np.array([near_x, near_y])), [-0.625, 0.625], atol=0.2)


@pytest.mark.parametrize("unit", [1e-9, 1, 1e12])
def test_the_weights_are_those_of_normal_noise_in_any_unit(unit):
    rng, noise, shift = np.random.default_rng(20), np.array([1.0, 4.0, 2.0]), np.array([0.5, -4.0, 1.0])
    x, y = rng.normal(0, noise, (2, 40_000, 3)) + np.outer([0, 1], shift)[:, None]
    center = np.zeros(3)
    found = moved_cells((3,), center, moments(x * unit, center), moments(y * unit, center))
    (total,) = (one for one in found if one.name.startswith("weighted sum"))
    # Each shift is known to 4 standard errors of noise / sqrt(20,000): 3% and less of the unit of the score (1e-4).
    expected = (shift / noise**2) / np.abs(shift / noise).max() * noise
    slopes = total(np.diag(noise) * unit) - total(np.zeros((1, 3)))
    np.testing.assert_allclose(slopes, expected, atol=0.04)


def test_moved_cells_without_noise_come_first():
    rng = np.random.default_rng(13)
    x, y = rng.normal(size=(2, 500, 3))
    y[:, 0] += 3
    x[:, 2], y[:, 2] = 7, 9
    center = np.zeros(3)
    statistics = moved_cells((3,), center, moments(x, center), moments(y, center))
    assert names(statistics)[:4] == [
        *("output[2]", "output[0]", "joint shift of output[2], [0]", "weighted sum of output[2], [0]"),
    ]
    assert statistics[2](np.array([[0, 9, 7], [3, 9, 9]])) == pytest.approx([-1, 1])  # no noise, no units


def test_where_no_entry_clearly_moves_three_are_tried():
    rng = np.random.default_rng(14)
    x, y = rng.normal(size=(2, 500, 6))
    y[:, 4] += 0.15  # 2.4 standard errors
    center = np.zeros(6)
    found = names(moved_cells((6,), center, moments(x, center), moments(y, center)))
    singles = [name for name in found if name.startswith("output")]
    assert len(singles) == 3
    assert "output[4]" in singles
    nothing = moments(np.ones((5, 6)), center)
    statistics = moved_cells((6,), center, nothing, nothing)
    assert names(statistics)[:3] == ["output[0]", "output[1]", "output[2]"]
    for statistic in statistics:
        assert np.isfinite(statistic(np.arange(12.0).reshape(2, 6))).all()


def test_at_most_eight_entries_are_searched():
    x, y = np.random.default_rng(15).normal(size=(2, 200, 30))
    center = np.zeros(30)
    statistics = moved_cells((30,), center, moments(x, center), moments(y + np.arange(30), center))
    assert sorted(names(statistics)[:8]) == sorted(f"output[{k}]" for k in range(22, 30))
    assert len(statistics) == 8 + 7 + 2  # and all joints of the first 2 to 8, the sum, and the distance


def test_infinities_do_not_hide_an_entry_that_moves():
    x, y = np.random.default_rng(16).normal(size=(2, 400, 3))
    x[::7, 0], y[::7, 0] = math.inf, math.inf
    x[5, 1] = -math.inf  # once: no sign of a move
    y[:, 2] += 1
    center = np.zeros(3)
    found = names(moved_cells((3,), center, moments(x, center), moments(y, center)))
    assert found[0] == "output[2]"
    assert [name for name in found if name.startswith("output")] == ["output[2]"]


def test_other_entries_that_move_are_found_and_none_that_is_known():
    x, y = np.random.default_rng(18).normal(size=(2, 1000, 4, 5))
    shifts = {(0, 1): 1.0, (2, 3): -3.0, (3, 0): 0.5}  # 22, 67 and 11 standard errors
    for index, shift in shifts.items():
        y[(slice(None), *index)] += shift
    center = np.zeros(20)
    given = moments(x, center), moments(y, center)
    # Of 17 entries that do not move one passes 5 standard errors with probability 1e-5.
    assert names(other_moved_cells((4, 5), *given, [])) == ["output[2, 3]", "output[0, 1]", "output[3, 0]"]
    assert names(other_moved_cells((4, 5), *given, [cell(2, 3), cell(1, 1)])) == ["output[0, 1]", "output[3, 0]"]
    assert other_moved_cells((4, 5), given[0], given[0], []) == ()


def test_at_most_eight_others_are_searched_however_many_are_known():
    x = np.random.default_rng(19).normal(size=(300, 30))
    center, known = np.zeros(30), [cell(k) for k in range(20, 30)]
    found = names(other_moved_cells((30,), moments(x, center), moments(x + np.arange(30), center), known))
    assert found == [f"output[{k}]" for k in range(19, 11, -1)]


@pytest.mark.parametrize("center", [0.0, 2.0**30])
@pytest.mark.parametrize("cuts", [[], [1], [3, 50, 99]])
def test_moments_are_those_of_all_runs_together(center, cuts):
    outputs = center + np.random.default_rng(17).normal(0, [[1, 2], [3, 4]], (100, 2, 2))
    about = np.full(4, center)
    found = Moments.of(map(Moments.reducer(about), np.split(outputs, cuts)))
    apart = outputs.reshape(100, 4) - center
    assert found.runs == 100
    np.testing.assert_allclose(found.mean, apart.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.sd, apart.std(axis=0), rtol=1e-12)


def test_moments_about_a_far_point_lose_their_digits():
    outputs = 2.0**30 + np.random.default_rng(17).normal(size=(100, 1))  # negative control
    assert abs(moments(outputs, np.zeros(1)).sd - outputs.std()) > 0.1


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.float32])
def test_moments_of_other_numbers(dtype):
    outputs = np.array([0, 1, 1, 1], dtype)
    found = moments(outputs, np.array([1.0]))
    assert (found.mean, found.sd) == (pytest.approx(-0.25), pytest.approx(math.sqrt(3) / 4))


def test_moments_of_equal_outputs_have_no_spread():
    found = moments(np.full((50, 1), 0.1), np.array([0.3]))
    assert found.sd == pytest.approx(0, abs=1e-8)


# What is learned from


def test_a_classifier_gets_all_of_few_entries():
    pair, nothing = NeighborPair.declared(None, None, "add_remove"), moments(np.ones((2, 32)), np.zeros(32))
    assert entries_to_learn(pair, (4, 8), nothing, nothing).tolist() == list(range(32))


def test_a_classifier_gets_what_changes_and_what_moves():
    rng = np.random.default_rng(21)
    x, y = rng.normal(size=(2, 500, 40))
    y[:, 25:35] += 1  # 16 standard errors each
    center = np.zeros(40)
    given = moments(x, center), moments(y, center)
    data = np.arange(40)
    changed = data.copy()
    changed[[3, 7]] += 1, 2
    entries = entries_to_learn(NeighborPair.declared(data, changed, "add_remove", distance=3), (40,), *given)
    assert {3, 7, *range(25, 35)} <= set(entries.tolist())
    assert len(entries) in (16, 17, 18)  # 16 that move most, 10 of them clearly, and the two
    assert entries.tolist() == sorted(set(entries.tolist()))
    grown = entries_to_learn(NeighborPair.declared(data, data * 2, "add_remove", distance=780), (40,), *given)
    assert set(range(24, 40)) <= set(grown.tolist())


@pytest.mark.parametrize(("x", "y", "shape"), UNLIKE)
def test_where_outputs_are_not_like_the_data_a_classifier_gets_what_moves(x, y, shape):
    wide = (*shape, 33)
    outputs = np.random.default_rng(22).normal(size=(2, 100, *wide))
    outputs[1, ..., 5] += 4
    center = np.zeros(math.prod(wide))
    pair = NeighborPair.declared(
        *(np.stack([d] * 33, -1) if isinstance(d, np.ndarray) else d for d in (x, y)), "add_remove"
    )
    entries = entries_to_learn(pair, wide, moments(outputs[0], center), moments(outputs[1], center))
    assert set(range(5, center.size, 33)) <= set(entries.tolist())  # each 28 standard errors
    assert len(entries) == 16


# The exact likelihood ratio


def test_the_likelihood_ratio_is_the_difference_of_two_log_likelihoods():
    pair = NeighborPair.add_people([3, 5], cell=1)
    asked = []

    def log_likelihood(outputs, data):
        asked.append(data)
        return -np.abs(outputs - data).sum(axis=1)

    statistic = likelihood_ratio(log_likelihood, pair)
    assert statistic.name == LIKELIHOOD_RATIO
    assert statistic.log_ratio
    outputs = np.array([[3, 5], [3, 6], [0, 5.25], [9, 5.5]])
    assert statistic(outputs).tolist() == [-1, 1, -0.5, 0]
    assert asked[0] is pair.x
    assert asked[1] is pair.y


def test_the_likelihood_ratio_is_infinite_where_one_database_only_can_give_an_output():
    pair = NeighborPair.declared("x", "y", "add_remove")
    log_p = {"x": [-math.inf, -2, -math.inf, 0], "y": [-1, -math.inf, -math.inf, -3]}
    statistic = likelihood_ratio(lambda outputs, data: np.array(log_p[data])[outputs], pair)
    assert statistic(np.arange(4)).tolist() == [LARGEST, -LARGEST, 0, -3]


@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_entries_that_are_the_same_on_both_databases_cancel_where_each_depends_on_its_own(shape):
    pair = NeighborPair.move_people(np.arange(10, 16).reshape(shape), (0, 1)[-len(shape) :], (1, 2)[-len(shape) :])
    sizes = []

    def log_likelihood(outputs, data):
        sizes.append(outputs[0].size)
        return -np.abs(outputs - data).reshape(len(outputs), -1).sum(axis=1)

    outputs = np.random.default_rng(23).normal(12, 3, (40, *shape))
    whole, apart = (likelihood_ratio(log_likelihood, pair, entrywise=entrywise) for entrywise in (False, True))
    np.testing.assert_allclose(apart(outputs), whole(outputs), atol=1e-8)
    assert sizes == [2, 2, 6, 6]
    assert np.ptp(whole(outputs)) > 1


@pytest.mark.parametrize(
    ("log_likelihood", "words"),
    [
        (lambda outputs, data: outputs * math.nan, "must not be NaN, got 5 of 5 scores"),
        (lambda outputs, data: outputs * 0 + math.inf, "must not be NaN, got 5 of 5 scores"),
        (lambda outputs, data: 1.0, r"must give one score a run, got shape \(\) for 5 runs"),
    ],
)
def test_a_likelihood_that_is_none_is_refused(log_likelihood, words):
    statistic = likelihood_ratio(log_likelihood, NeighborPair.declared("x", "y", "add_remove"))
    with pytest.raises(ValueError, match=f"^log-likelihood ratio of y over x {words}"):
        statistic(np.ones(5))
