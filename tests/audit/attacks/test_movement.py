from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.attacks.movement import Moments, changed_entries, largest
from audit.neighbors import NeighborPair


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
