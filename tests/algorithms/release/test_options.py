"""Persons of a user's own: counted by areas and cells, and pairs of neighbors among them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from algorithms.release.options import pairs_of


def test_pairs_are_in_the_fullest_area():
    pairs = {name: make() for name, make in pairs_of(np.array([[3, 1, 0], [0, 9, 2]])).items()}
    assert {name: pair.label for name, pair in pairs.items()} == {
        "added": "1 person added to cell (1, 1)",
        "alone": "1 person added to cell (1, 0)",
        "replaced": "1 person moved from cell (1, 1) to (1, 0)",
    }
    assert list(pairs_of(np.array([[3, 1]]))) == ["added", "replaced"]
    assert list(pairs_of(np.array([[3]]))) == ["added"]
    assert list(pairs_of(np.array([[0, 0]]))) == ["added", "alone"]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(1, 3))
def test_all_pairs_are_neighbors_that_keep_totals_of_areas_if_nobody_is_added(people, cells):
    histogram = np.resize(people, (len(people), cells))
    for name, make in pairs_of(histogram).items():
        pair = make()
        assert pair.distance == 1
        assert pair.relation == ("replace_one" if name == "replaced" else "add_remove")
        if name == "replaced":
            assert (pair.x.sum(axis=1) == pair.y.sum(axis=1)).all()
