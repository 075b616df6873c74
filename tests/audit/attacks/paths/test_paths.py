import math
from functools import reduce
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.hierarchy import Hierarchy
from algorithms.noise import TwoTailedGeometric
from audit.attacks.paths import path_statistics, unraking
from audit.attacks.paths.unraking import Tree
from audit.neighbors import NeighborPair
from tests.audit.attacks.cases import OUTPUTS, names, released_by
from tests.helpers import refused_like

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


TOGETHER = ("joint shift of ", "sum of clipped shifts of ")


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
        summed = found["sum of clipped shifts of un-raked counts of areas 0, 1"]
        assert summed.tolist() == [4, -4, 1, 2, 0]
        top, shares = noisy[:, 0] - 62, raked[:, 1] - 12
        np.testing.assert_allclose(found["shift of raked count of area 1"], shares, atol=1e-9)
        np.testing.assert_allclose(
            found["sum of clipped shifts of raked counts of areas 0, 1"],
            np.clip(top, -2, 2) + np.clip(shares, -2, 2),
            atol=1e-9,
        )
        joint = np.where(np.sign(shares) == np.sign(top), np.sign(top) * np.minimum(abs(shares), abs(top)), 0)
        np.testing.assert_allclose(found["joint shift of raked counts of areas 0, 1"], joint, atol=1e-9)


def pair_of(x, y):
    return SimpleNamespace(x=x, y=y)


@pytest.mark.parametrize(
    ("pair", "leaves", "error", "message"),
    [
        (pair_of([1, 2], [1, 2]), None, ValueError, "pair must change a count, got two databases of the same counts"),
        (pair_of([1, 2, 3], [1, 2, 4]), None, ValueError, "one count for each of 2 leaves, got 3 and 3"),
        (pair_of([1, 2], [1, math.nan]), None, ValueError, "pair.y must be finite"),
        (pair_of([1, 2], [1, 3]), [0, 1], ValueError, r"leaves must be the 2 leaves of the tree"),
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


DEEP = [-1, 0, 0, 1, 1, 3, 3, 3]  # leaves 2, 4, 5, 6, 7 at three depths


def unrake(outputs, parent, released, *, around, nodes=None):
    tree = Tree(parent, released)
    return unraking.unrake(
        tree, outputs, np.arange(tree.n_nodes) if nodes is None else np.array(nodes), np.asarray(around)
    )


def proportions(tree, noisy):
    """What can be known of each node: its noisy count and the common divisor of its family, or None."""
    known = {0: (noisy[0], 1)}
    raked = tree.rake(noisy)
    for parent in range(tree.n_nodes):
        family = np.flatnonzero(tree.parent == parent)
        values = noisy[family]
        lost = raked[parent] == 0 or values.sum() <= 0 or len(set(values.tolist())) < 2
        divisor = reduce(math.gcd, map(int, values), 0)
        known |= {int(node): None if lost else (noisy[node], divisor) for node in family}
    return [known[node] for node in range(tree.n_nodes)]


@st.composite
def trees(draw, most=24):
    size = draw(st.integers(1, most))
    return Hierarchy.from_parents([-1] + [draw(st.integers(0, node - 1)) for node in range(1, size)])


COUNTS = st.one_of(st.integers(-3, 12), st.integers(-50, 2000), st.integers(0, 10**6))


@settings(max_examples=40)
@given(trees(), st.sampled_from(OUTPUTS), st.data())
def test_every_family_that_holds_proportions_comes_back(tree, output, data):
    noisy = np.array(data.draw(st.lists(COUNTS, min_size=tree.n_nodes, max_size=tree.n_nodes)))
    released = released_by(tree, output)
    found = unrake(tree.rake(noisy)[None, released], tree.parent, released, around=noisy)[0]
    for count, known in zip(found, proportions(tree, noisy), strict=True):
        assert np.isnan(count) if known is None else count == known[0]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("families", [(2, 3), (5, 4), (50, 30)])
def test_counts_of_a_large_country_come_back(families, output):
    """Shares of 1 in 300 million and more: float64 tells no fractions there, but the sum near the expected one."""
    rng = np.random.default_rng(4)
    states, counties = families
    tree = Hierarchy.from_parents([-1, *[0] * states, *np.repeat(np.arange(1, states + 1), counties)])
    base = tree.totals(rng.integers(1 + 2 * 10**8 // tree.n_leaves, 4 * 10**8 // tree.n_leaves, tree.n_leaves))
    noisy = base + TwoTailedGeometric(0.02).sample((300, tree.n_nodes), rng)
    released = released_by(tree, output)
    found = unrake(tree.rake(noisy)[:, released], tree.parent, released, around=base)
    lost = np.isnan(found)
    assert (found[~lost] == noisy[~lost]).all()
    assert lost.mean() < 0.01  # a family fails about as often as chance finds a fraction: 1 in 1,000


def test_rounded_tables_are_taken_as_they_are():
    parent, rounded = [-1, 0, 0, 0], np.array([[3, 5, 9], [2, 4, 6]])
    assert unrake(rounded, parent, [1, 2, 3], around=[17, 3, 5, 9]).tolist() == [[17, 3, 5, 9], [12, 3, 6, 9]]


def test_some_nodes_are_columns_of_all_in_any_order_and_layout():
    tree = Hierarchy.from_parents(DEEP)
    base = tree.totals(np.full(tree.n_leaves, 40))
    raked = tree.rake(base + TwoTailedGeometric(0.25).sample((50, tree.n_nodes), np.random.default_rng(2)))
    leaves = raked[:, tree.leaves]
    found = unrake(leaves, tree.parent, tree.leaves, around=base)
    assert np.isfinite(found).all(axis=1).mean() > 0.5
    nodes = [5, 0, 3, 1]
    for outputs in (leaves, np.asfortranarray(leaves), leaves[:, :, None], leaves[:, None]):
        some = unrake(outputs, tree.parent, tree.leaves, around=base, nodes=nodes)
        np.testing.assert_array_equal(some, found[:, nodes])
    mixed = tree.leaves[::-1]
    np.testing.assert_array_equal(unrake(raked[:, mixed], tree.parent, mixed, around=base), found)
    few = np.append(tree.leaves, 1)  # a level above released too
    np.testing.assert_array_equal(unrake(raked[:, few], tree.parent, few, around=base), found)
    assert unrake(leaves[:0], tree.parent, tree.leaves, around=base).shape == (0, tree.n_nodes)


def test_infinite_outputs_are_not_recovered():
    outputs = np.array([[math.inf, 1.0, 2.0], [math.inf, -math.inf, 1.0], [math.nan, 1.0, 2.0]])
    assert np.isnan(unrake(outputs, [-1, 0, 0, 0], [1, 2, 3], around=[9, 3, 3, 3])).all()


def test_a_tree_knows_its_families():
    tree = Tree(DEEP, [7, 2, 4, 5, 6])
    assert tree.n_nodes == 8
    assert [family.tolist() for family in tree.children] == [[1, 2], [3, 4], [], [5, 6, 7], [], [], [], []]
    assert tree.leaves.tolist() == [2, 4, 5, 6, 7]
    assert tree.level.tolist() == [0, 1, 1, 2, 2, 3, 3, 3]
    assert tree.totals(np.array([[1, 2, 3, 4, 5]]), [3, 7]).tolist() == [[10, 1]]
    with pytest.raises(ValueError, match="read-only"):
        tree.parent[0] = 1
    mixed = Tree([-1, 0, 0, 1, 1], [4, 1, 3, 2])  # a released area is not added up
    assert mixed.totals(np.array([[1.0, 20.0, 3.0, 4.0]])).tolist() == [[24.0, 20.0, 4.0, 3.0, 1.0]]


@given(trees(), st.data())
def test_totals_are_those_of_the_hierarchy(tree, data):
    counts = data.draw(st.lists(st.integers(0, 1000), min_size=tree.n_leaves, max_size=tree.n_leaves))
    found = Tree(tree.parent, tree.leaves).totals(np.array([counts]))
    assert found[0].tolist() == tree.totals(counts).tolist()


@pytest.mark.parametrize(
    ("parent", "released", "error", "message"),
    [
        ([[-1]], [0], ValueError, r"parent must be a filled row of nodes, got shape \(1, 1\)"),
        ([0, 0], [1], ValueError, "parent must be -1 for the root, node 0, got 0"),
        ([-1, 0, 3, 1], [2, 3], ValueError, "parents must come before their children, got 3 for node 2"),
        ([-1, 0, 0], [1, 3], ValueError, r"released must be nodes of 0\.\.2, got 3"),
        ([-1, 0, 0], [1, 2, 1], ValueError, "released must hold a node once, got node 1 2 times"),
        ([-1, 0, 0], [0, 2], ValueError, "released must hold every leaf, got no entry for node 1"),
        ([-1, 0, 0], [1.0, 2.0], TypeError, "released must be integers, got dtype float64"),
    ],
)
def test_what_is_no_tree_is_refused(parent, released, error, message):
    with refused_like(error, message):
        Tree(parent, released)


@pytest.mark.parametrize(
    ("outputs", "error", "message"),
    [
        (np.ones((2, 3)), ValueError, r"one entry for each of 2 released nodes, got shape \(2, 3\)"),
        (np.ones((2, 2), object), TypeError, "outputs must be real numbers, got dtype object"),
    ],
)
def test_outputs_that_do_not_fit_the_tree_are_refused(outputs, error, message):
    with refused_like(error, message):
        unrake(outputs, [-1, 0, 0], [1, 2], around=np.zeros(3))
