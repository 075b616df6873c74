from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from algorithms.hierarchy import Hierarchy
from audit.attacks.paths import path_statistics
from audit.neighbors import NeighborPair
from tests.audit.attacks.cases import names

RAGGED = [-1, 0, 0, 1, 1, 3, 3]  # leaves 2, 4, 5, 6


def scored(statistics, outputs):
    return {statistic.name: statistic(outputs) for statistic in statistics}


def shift(where, kind="un-raked"):
    return f"{kind} count{'s' if ',' in where else ''} of area{'s' if ',' in where else ''} {where}"


def looks(joint, *levels):
    """What is looked at: several areas jointly and in sum, then what is told level by level."""
    return [
        name
        for kind in ("raked", "un-raked")
        for name in (
            *(f"{how}{shift(joint, kind)}" for how in TOGETHER if joint),
            *(f"{'joint ' * (',' in level)}shift of {shift(level, kind)}" for level in levels),
        )
    ]


TOGETHER = ("joint shift of ", "sum of shifts, cut off at half the change, of ")


@pytest.mark.parametrize(
    ("pair", "parent", "found"),
    [
        (NeighborPair.add_people([20, 10, 5, 5], 3, 2), RAGGED, looks("0, 1, 3, 6", "0", "1", "3", "6")),
        # Two paths below their lowest common area.
        (NeighborPair.move_people([20, 10, 5, 5], 2, 3), RAGGED, looks("5, 6")),
        (NeighborPair.move_people([20, 10, 5, 5], 0, 3), RAGGED, looks("1, 2, 3, 6", "1, 2", "3", "6")),
        (NeighborPair.add_people([20], 0), [-1], looks("", "0")),
    ],
)
def test_the_areas_that_a_pair_changes_are_looked_at(pair, parent, found):
    assert names(path_statistics(pair, parent, np.setdiff1d(np.arange(len(parent)), parent))) == found


def test_the_counts_of_the_pair_may_be_in_an_order_of_their_own():
    tree = Hierarchy.from_parents([3, 4, 3, -1, 3])  # the second leaf lies deeper than the third
    assert tree.leaves.tolist() == [1, 4, 2]
    pair = NeighborPair.add_people([30, 20, 10], cell=1)
    for released, leaves in ((tree.leaves, None), (np.arange(5), tree.leaves), ([1, 2, 4], tree.leaves)):
        found = names(path_statistics(pair, tree.parent, released, leaves=leaves))
        assert found[0] == "joint shift of raked counts of areas 0, 3, 4"


def test_scores_are_distances_from_the_middle_to_the_side_of_y():
    parent, leaves = [-1, 0, 0, 0], [1, 2, 3]
    tree = Hierarchy.from_parents(parent)
    pair = NeighborPair.add_people([10, 20, 30], cell=0, people=4)  # middles 62 and 12
    noisy = np.array(
        [
            [66, 17, 20, 31],  # both on the side of y
            [55, 9, 20, 30],  # both on the side of x
            [65, 11, 20, 30],  # on different sides
            [66, 20, 20, 20],  # equal children cannot be told
            [62, 12, 20, 31],  # half-way
        ]
    )
    raked = tree.rake(noisy)
    for released in (leaves, [0, 1, 2, 3]):
        found = scored(path_statistics(pair, parent, released), raked[:, released])
        assert found["joint shift of un-raked counts of areas 0, 1"].tolist() == [4, -3, 0, 0, 0]
        assert found["shift of un-raked count of area 0"].tolist() == [4, -7, 3, 4, 0]
        assert found["shift of un-raked count of area 1"].tolist() == [5, -3, -1, 0, 0]
        summed = found["sum of shifts, cut off at half the change, of un-raked counts of areas 0, 1"]
        assert summed.tolist() == [4, -4, 1, 2, 0]
        shares = raked[:, 1] - 12
        np.testing.assert_allclose(found["shift of raked count of area 1"], shares, atol=1e-9)
        np.testing.assert_allclose(
            found["sum of shifts, cut off at half the change, of raked counts of areas 0, 1"],
            np.clip(noisy[:, 0] - 62, -2, 2) + np.clip(shares, -2, 2),
            atol=1e-9,
        )
        joint = np.where(
            np.sign(shares) == np.sign(noisy[:, 0] - 62), np.minimum(abs(shares), abs(noisy[:, 0] - 62)), 0
        )
        np.testing.assert_allclose(
            found["joint shift of raked counts of areas 0, 1"], joint * np.sign(shares), atol=1e-9
        )


def pair_of(x, y):
    return SimpleNamespace(x=x, y=y)


@pytest.mark.parametrize(
    ("pair", "leaves", "error", "message"),
    [
        (pair_of([1, 2], [1, 2]), None, ValueError, "pair must change a count, got two databases of the same counts"),
        (pair_of([1, 2, 3], [1, 2, 4]), None, ValueError, "one count for each of 2 leaves, got 3 and 3"),
        (pair_of([1, 2], [1, math.nan]), None, ValueError, "pair.y must be finite"),
        (
            pair_of([1, 2], [1, 3]),
            [0, 1],
            ValueError,
            r"leaves must be the 2 leaves of the tree, each once, got \[0, 1\]",
        ),
    ],
)
def test_pairs_that_do_not_fit_the_tree_are_refused(pair, leaves, error, message):
    with pytest.raises(error, match=message):
        path_statistics(pair, [-1, 0, 0], [1, 2], leaves=leaves)


def test_counts_that_are_no_numbers_speak_for_neither_database():
    statistics = path_statistics(NeighborPair.add_people([1, 2], cell=0), [-1, 0, 0], [1, 2])
    found = scored(statistics, np.array([[math.inf, -math.inf], [2.0, 3.0]]))
    assert found["shift of raked count of area 0"].tolist() == [0, 1.5]
    assert found["joint shift of un-raked counts of areas 0, 1"].tolist() == [0, 0.5]
