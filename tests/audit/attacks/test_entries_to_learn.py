from __future__ import annotations

import math

import numpy as np
import pytest

from audit.attacks.classifiers import entries_to_learn
from audit.attacks.moments import Moments
from audit.neighbors import NeighborPair

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


def moments(outputs, center):
    return Moments.of([Moments.reducer(center)(outputs)])


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
