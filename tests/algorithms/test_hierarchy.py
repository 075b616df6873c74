import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.hierarchy import Hierarchy, check_counts
from tests.helpers import refuses


class Twin:
    """The same tree by the caller's own node numbers, with every operation as it is defined."""

    def __init__(self, parents):
        self.parents, self.root = parents, parents.index(-1)
        self.leaves = [node for node in range(len(parents)) if node not in parents]

    def path(self, node):
        return [] if node < 0 else [*self.path(self.parents[node]), node]

    def total(self, node, counts):
        return sum(count for leaf, count in zip(self.leaves, counts, strict=True) if node in self.path(leaf))

    def rake(self, node, noisy):
        parent = self.parents[node]
        if parent < 0:
            return Fraction(noisy[node])
        family = [noisy[other] for other, above in enumerate(self.parents) if above == parent]
        share = Fraction(noisy[node], sum(family)) if sum(family) > 0 else Fraction(1, len(family))
        return self.rake(parent, noisy) * share


@st.composite
def parent_lists(draw, most=24):
    """Parents of a random ragged tree whose nodes are numbered in no order at all."""
    size = draw(st.integers(1, most))
    above = [-1] + [draw(st.integers(0, node - 1)) for node in range(1, size)]
    number = draw(st.permutations(range(size)))
    parents = [0] * size
    for node, parent in enumerate(above):
        parents[number[node]] = -1 if parent < 0 else number[parent]
    return parents


def number_of(tree):
    """The caller's number of each node of the tree: unnamed nodes are labeled by it."""
    return [int(label) for label in tree.labels]


# Against the recursive twin


@settings(max_examples=50)
@given(parent_lists(), st.data())
def test_totals_are_the_recursive_sums(parents, data):
    twin, tree = Twin(parents), Hierarchy.from_parents(parents)
    counts = data.draw(st.lists(st.integers(0, 10**6), min_size=tree.n_leaves, max_size=tree.n_leaves))
    expected = [twin.total(node, counts) for node in number_of(tree)]
    totals = tree.totals(counts)
    assert totals.dtype == np.int64
    assert totals.tolist() == expected
    assert tree.totals(np.array(counts) / 8).tolist() == [total / 8 for total in expected]
    stacked = tree.totals([[counts, counts], [[0] * len(counts), counts]])
    np.testing.assert_array_equal(stacked, [[totals, totals], [np.zeros_like(totals), totals]])


@settings(max_examples=50)
@given(parent_lists(), st.data())
def test_raking_is_the_recursive_rule(parents, data):
    """Small values around zero, so that sums of zero and below are common."""
    twin, tree = Twin(parents), Hierarchy.from_parents(parents)
    noisy = data.draw(st.lists(st.integers(-3, 5), min_size=tree.n_nodes, max_size=tree.n_nodes))
    given_noisy = dict(zip(number_of(tree), noisy, strict=True))
    raked = tree.rake(noisy)
    assert raked.dtype == np.float64
    assert np.isfinite(raked).all()
    np.testing.assert_allclose(raked, [float(twin.rake(node, given_noisy)) for node in number_of(tree)], rtol=1e-12)
    np.testing.assert_allclose(tree.rake([[noisy], [noisy[::-1]]])[0, 0], raked, rtol=0)
    np.testing.assert_allclose(tree.rake([[noisy], [noisy[::-1]]])[1, 0], tree.rake(noisy[::-1]), rtol=0)


@settings(max_examples=50)
@given(parent_lists())
def test_nodes_are_numbered_level_by_level_with_siblings_side_by_side(parents):
    twin, tree = Twin(parents), Hierarchy.from_parents(parents)
    number = number_of(tree)
    depth = [len(twin.path(node)) - 1 for node in number]
    assert sorted(number) == list(range(len(parents)))
    assert depth == sorted(depth)
    assert tree.depth == depth[-1]
    for j in range(tree.depth + 1):
        level = tree.level(j)
        assert depth[level] == [j] * (level.stop - level.start)
        families = [parent for parent, _ in itertools.groupby(tree.parent[level].tolist())]
        assert len(families) == len(set(families))
    assert tree.parent[0] == -1
    assert [number[p] for p in tree.parent[1:]] == [parents[node] for node in number[1:]]
    assert [number[leaf] for leaf in tree.leaves] == twin.leaves
    assert (tree.n_nodes, tree.n_leaves) == (len(parents), len(twin.leaves))
    for leaf, node in enumerate(twin.leaves):
        path = twin.path(node)
        assert [number[i] for i in tree.path(leaf)] == path
        assert tree.label(leaf) == (" / ".join(map(str, path[1:])) or str(twin.root))
        for j in range(tree.depth + 1):
            assert number[tree.ancestors(j)[leaf]] == path[min(j, len(path) - 1)]


CODES = st.lists(st.tuples(*[st.sampled_from(["01", "02", "1", ""])] * 3), min_size=1, max_size=20, unique=True)


@given(CODES)
def test_codes_add_up_prefix_by_prefix(rows):
    tree = Hierarchy.from_codes(*zip(*rows, strict=True))
    counts = np.arange(1, len(rows) + 1)
    totals = tree.totals(counts)
    assert tree.depth == 3
    for i, row in enumerate(rows):
        assert tree.label(i) == " / ".join(row)
        for j, node in enumerate(tree.path(i)):
            assert totals[node] == sum(n for n, other in zip(counts, rows, strict=True) if other[:j] == row[:j])
    assert tree.labels[0] == "total"
    assert tree.n_nodes == sum(len({row[:j] for row in rows}) for j in range(4))


@pytest.mark.parametrize(("fanout", "depth"), [(1, 5), (2, 3), (7, 1)])
def test_a_regular_tree_is_the_product_of_its_indices(fanout, depth):
    tree = Hierarchy.regular(fanout, depth)
    rows = list(itertools.product(map(str, range(fanout)), repeat=depth))
    coded = Hierarchy.from_codes(*zip(*rows, strict=True))
    listed = Hierarchy.from_parents(tree.parent)
    for other in (coded, listed):
        for name in ("parent", "offsets", "leaves"):
            np.testing.assert_array_equal(getattr(tree, name), getattr(other, name))
    assert (tree.depth, tree.n_leaves) == (depth, fanout**depth)
    assert tree.labels == listed.labels


# Known answers and edges


def test_areas_of_a_ragged_tree_have_their_names():
    tree = Hierarchy.from_parents([3, 3, 1, -1, 1, 4], ["a", "b", "ba", "all", "bb", "bba"])
    assert repr(tree) == "Hierarchy(1 > 2 > 2 > 1 areas, 3 leaves)"
    assert tree.labels == ("all", "a", "b", "ba", "bb", "bba")
    assert [tree.name(node) for node in range(6)] == ["all", "a", "b", "b / ba", "b / bb", "b / bb / bba"]


def test_totals_outgrow_narrow_types():
    tree = Hierarchy.regular(4, 1)
    for dtype in (np.int8, np.uint8, np.int16, np.int32, np.uint64, np.bool_):
        counts = np.full(4, min(np.iinfo(dtype).max if dtype != np.bool_ else 1, 2**40), dtype)
        assert tree.totals(counts)[0] == 4 * int(counts[0])
    assert tree.totals(np.full(4, 0.1, np.float32)).dtype == np.float64


def test_a_tree_and_what_is_raked_stay_as_they_are():
    noisy = np.array([10.0, 1, 3])
    Hierarchy.regular(2, 1).rake(noisy)
    assert noisy.tolist() == [10, 1, 3]
    tree = Hierarchy.regular(2, 2)
    for array in (tree.parent, tree.offsets, tree.leaves):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


PARENTS = {
    "parents must be a list of at least one node, got shape (0,)": [],
    "parents must be a list of at least one node, got shape (1, 1)": [[-1]],
    "a tree has exactly one root (parent -1), got 0": [0, 0],
    "a tree has exactly one root (parent -1), got 2": [-1, -1],
    "node 1 is an orphan: its parent 2 is not a node of 0..1": [-1, 2],
    "node 1 is an orphan: its parent -2 is not a node of 0..1": [-1, -2],
    "node 2 lies on or under a cycle: its ancestors never reach the root": [-1, 0, 3, 4, 3],
}
CODES_OF = {
    "codes need at least one column and one row, got none": [[]],
    "columns of codes must have one length, got [1, 2]": [["a", "b"], ["a"]],
    "row 2 repeats the leaf a / 1": [["a", "b", "a"], ["1", "1", "1"]],
}
PAIR, DEEP = Hierarchy.regular(2, 1), Hierarchy.regular(2, 2)
LEAVES = "must have one entry for each of 2 leaves, got shape"
VALUES = {
    **{message: (Hierarchy.from_parents, parents) for message, parents in PARENTS.items()},
    **{message: (Hierarchy.from_codes, *columns) for message, columns in CODES_OF.items()},
    "codes need at least one column and one row, got none ": (Hierarchy.from_codes,),
    "labels must name every node: got 1 labels for 2 nodes": (Hierarchy.from_parents, [-1, 0], ["all"]),
    "fanout must be at least 1, got 0": (Hierarchy.regular, 0, 2),
    "depth must be at least 1, got 0": (Hierarchy.regular, 2, 0),
    **{f"level must be in 0..2, got {place}": (DEEP.level, place) for place in (-1, 3)},
    **{f"leaf must be in 0..3, got {place}": (DEEP.path, place) for place in (-1, 4)},
    **{f"node must be in 0..6, got {place}": (DEEP.name, place) for place in (-1, 7)},
    **{f"values {LEAVES} {np.shape(wrong)}": (PAIR.totals, wrong) for wrong in (5, [[1], [2]])},
    f"counts {LEAVES} (1,)": (PAIR.check_counts, [1]),
    "noisy must have one entry for each of 3 areas, got shape (2,)": (PAIR.rake, [1, 2]),
}
TYPES = {
    "parents must be integers, got dtype float64": (Hierarchy.from_parents, [-1.0, 0.0]),
    "parents must be integers, got dtype bool": (Hierarchy.from_parents, [True]),
    "fanout must be an integer, got 2.0": (Hierarchy.regular, 2.0, 2),
    "depth must be an integer, got 2.0": (Hierarchy.regular, 2, 2.0),
}


@pytest.mark.parametrize("message", [*VALUES, *TYPES])
def test_what_makes_no_tree_or_does_not_fit_one_is_refused(message):
    refuses(ValueError if message in VALUES else TypeError, message.strip(), *(VALUES | TYPES)[message])


COUNTS = {
    "whole numbers of people, got 1.5": [1.5, 2],
    "whole numbers of people, got nan": [1, math.nan],
    "not be negative, got -1": [-1, 2],
    "add up to less than 2**53, got 9007199254740992": [2**53 - 1, 1],
    "add up to less than 2**53, got 18446744073709551616": np.array([2**64 - 1, 0], np.uint64),
    "whole numbers of people, got dtype bool": [True, False],
    "whole numbers of people, got dtype object": [None, 1],
}


@pytest.mark.parametrize("words", COUNTS)
def test_counts_are_numbers_of_people(words):
    error = TypeError if "dtype" in words else ValueError
    message = f"counts must be {words}" if words.startswith("whole") else f"counts must {words}"
    refuses(error, message, check_counts, COUNTS[words])
    refuses(error, message, PAIR.check_counts, np.array([COUNTS[words]] * 2))


def test_counts_come_back_as_integers():
    for counts in ([3.0, 4.0], np.array([3, 4], np.uint8), [[3, 4]], np.array([3, 4], np.float32)):
        checked = check_counts(counts)
        assert checked.dtype == np.int64
        np.testing.assert_array_equal(checked, counts)
    assert check_counts(np.array([], int)).size == 0
    assert check_counts([2**53 - 2, 1])[0] == 2**53 - 2


@pytest.mark.parametrize("noisy", [[12, 0.5, 1], [12, math.nan, 1], [math.inf, 1, 1]])
def test_only_whole_numbers_are_raked(noisy):
    rule = "noisy must hold whole numbers: their sums are 1 or more, or hold no proportion"
    refuses(ValueError, rule, PAIR.rake, noisy)


def test_children_stand_side_by_side_and_a_cut_has_the_leaves_above_it():
    tree = Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])
    starts = tree.starts
    assert [list(range(starts[i], starts[i + 1])) for i in range(tree.n_nodes)] == [[1, 2], [3, 4], [5], [], [], []]
    assert Hierarchy.from_parents([-1]).starts.tolist() == [1, 1]
    ragged = Hierarchy.from_parents([-1, 0, 0, 1, 1])
    assert ragged.cut(2).tolist() == ragged.leaves.tolist() == [2, 3, 4]
    crossed = Hierarchy.from_codes(["A", "B", "A"], ["1", "1", "2"])
    assert crossed.cut(2).tolist() == crossed.leaves.tolist() == [3, 5, 4]
