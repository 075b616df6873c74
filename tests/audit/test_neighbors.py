from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from audit.neighbors import NeighborPair

TABLES = arrays(np.int64, array_shapes(max_dims=3, max_side=4), elements=st.integers(0, 50))


def cells(counts):
    return st.tuples(*(st.integers(0, side - 1) for side in counts.shape))


@st.composite
def table_and_cells(draw):
    counts = draw(TABLES)
    return counts, draw(cells(counts)), draw(cells(counts))


@given(table_and_cells(), st.integers(1, 100))
def test_adding_people_changes_one_cell_by_as_many(chosen, people):
    counts, cell, _ = chosen
    pair = NeighborPair.add_people(counts, cell, people)
    np.testing.assert_array_equal(pair.x, counts)
    difference = pair.y - pair.x
    assert (difference[cell], np.abs(difference).sum()) == (people, people)
    assert (pair.relation, pair.distance, pair.unit, pair.adjacency) == ("add_remove", people, "person", "verified")
    # The constructor is open to anyone: it computes the same distance, from either side.
    again = NeighborPair(pair.y, pair.x, "add_remove", people)
    assert again.distance == people


@given(table_and_cells(), st.integers(1, 100))
def test_moving_people_keeps_the_total(chosen, people):
    counts, source, target = chosen
    if source == target:
        with pytest.raises(ValueError, match="source and target must differ"):
            NeighborPair.move_people(counts, source, target, people)
    elif counts[source] < people:
        with pytest.raises(ValueError, match="must hold the people who move"):
            NeighborPair.move_people(counts, source, target, people)
    else:
        pair = NeighborPair.move_people(counts, source, target, people)
        assert pair.y.sum() == counts.sum()
        assert (pair.x[source] - pair.y[source], pair.y[target] - pair.x[target]) == (people, people)
        assert (pair.relation, pair.distance) == ("replace_one", people)
        apart = pair.under("add_remove")
        assert (apart.relation, apart.distance, apart.adjacency) == ("add_remove", 2 * people, "verified")
        assert pair.under("replace_one") is pair
        with pytest.raises(ValueError, match="people added or removed are not replaced"):
            apart.under("replace_one")


@given(TABLES, TABLES, st.integers(1, 200), st.sampled_from(["add_remove", "replace_one"]))
def test_the_distance_is_counted_person_by_person(x, y, distance, relation):
    """The literal twin compares multisets of people, who are their cells."""
    steps = None
    if x.shape == y.shape:
        before = Counter({cell: int(n) for cell, n in np.ndenumerate(x)})
        after = Counter({cell: int(n) for cell, n in np.ndenumerate(y)})
        added, removed = (after - before).total(), (before - after).total()
        steps = added + removed if relation == "add_remove" else added if added == removed else None
    if steps == distance:
        assert NeighborPair(x, y, relation, distance).distance == distance
    else:
        with pytest.raises(ValueError, match="the databases must be at distance"):
            NeighborPair(x, y, relation, distance)


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=6)


@given(ROWS, ROWS, st.integers(1, 12), st.sampled_from(["add_remove", "replace_one"]))
def test_records_are_compared_as_multisets(x, y, distance, relation):
    added, removed = (Counter(y) - Counter(x)).total(), (Counter(x) - Counter(y)).total()
    steps = added + removed if relation == "add_remove" else added if added == removed else None
    given_x, given_y = (np.array(rows, int).reshape(-1, 2) for rows in (x, y))
    if steps == distance:
        assert NeighborPair(given_x, given_y, relation, distance, "record").distance == distance
    else:
        found = "no number of steps" if steps is None else f"distance {steps}"
        with pytest.raises(ValueError, match=f"must be at distance {distance} under {relation}, got {found}"):
            NeighborPair(given_x, given_y, relation, distance, "record")


@pytest.mark.parametrize(
    ("records", "record"),
    [
        ([[1, 2], [3, 4]], [1, 2]),
        (np.empty((0, 3)), [1.5, 2, 3]),
        (["a", "b"], "a longer text"),
        ([1, 2, 2], 2.5),
        (np.array([(1, "x")], [("age", int), ("area", "U1")]), np.array((1, "yz"), [("age", int), ("area", "U2")])),
        ([], 7),
        (np.zeros((2, 2, 2)), np.ones((2, 2))),
    ],
)
def test_adding_a_record(records, record):
    pair = NeighborPair.add_record(records, record)
    assert (pair.relation, pair.distance, pair.unit, pair.adjacency) == ("add_remove", 1, "record", "verified")
    assert len(pair.y) == len(pair.x) + 1
    assert pair.x.dtype == pair.y.dtype
    np.testing.assert_array_equal(pair.y[-1].tolist(), np.asarray(record).tolist())
    np.testing.assert_array_equal(pair.y[:-1], pair.x)
    assert pair.label == "1 record added"


def test_labels_say_what_the_pair_is():
    assert NeighborPair.add_people([1, 2], 1).label == "1 person added to cell 1"
    assert NeighborPair.add_people([[1, 2]], (0, 1), 3).label == "3 people added to cell (0, 1)"
    assert NeighborPair.move_people([9, 2], 0, 1, 2).label == "2 people moved from cell 0 to 1"
    assert NeighborPair.add_people([1], 0, label="mine").label == "mine"
    assert NeighborPair.declared(1, 2, "add_remove").label == "a declared pair"


def test_databases_are_read_only_copies():
    counts = np.array([3, 4])
    for pair in (
        NeighborPair.add_people(counts, 0),
        NeighborPair(counts, counts + np.array([1, 0]), "add_remove"),
        NeighborPair.declared(counts, counts, "add_remove"),
        NeighborPair.declared([3, 4], [4, 4], "add_remove"),
        NeighborPair.add_record(counts, 9),
    ):
        for data in (pair.x, pair.y):
            assert not np.shares_memory(data, counts)
            with pytest.raises(ValueError, match="read-only"):
                data[0] = 100
    counts[0] = 7  # the caller's array stays the caller's


def test_whole_numbers_stored_as_floats_are_counts():
    pair = NeighborPair.add_people(np.array([3.0, 4.0]), 0)
    assert pair.x.dtype == pair.y.dtype == np.int64
    assert NeighborPair.add_people(5, ()).y == 6


def test_a_declared_pair_takes_anything_and_says_so():
    table, ragged, mixed = object(), [[1], [2, 3]], [1, "a"]
    for data in (table, ragged, mixed, None, {"a": 1}, "path.csv"):
        pair = NeighborPair.declared(data, data, "replace_one", distance=3, unit="household")
        assert pair.x is data
        assert (pair.adjacency, pair.distance, pair.unit) == ("declared", 3, "household")
    assert pair.under("add_remove").distance == 6
    assert pair.under("add_remove").adjacency == "declared"
    numbers = NeighborPair.declared([1, 2], [[1.5], [2]], "add_remove")
    assert (numbers.x.dtype.kind, numbers.y.shape) == ("i", (2, 1))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"relation": "swap"}, ValueError, "relation must be"),
        ({"unit": "dog"}, ValueError, "unit must be one of person, household, record, got 'dog'"),
        ({"adjacency": "likely"}, ValueError, "adjacency must be .*, got 'likely'"),
        ({"distance": 0}, ValueError, "distance must be at least 1, got 0"),
        ({"distance": 1.0}, TypeError, r"distance must be an integer, got 1\.0"),
        ({"distance": 2**53}, ValueError, r"distance must be below 2\*\*53, got"),
        ({"y": [1, 2]}, ValueError, "must be at distance 1 under add_remove, got distance 0"),
        ({"y": [1, 2, 1]}, ValueError, "got no number of steps"),
        ({"relation": "replace_one"}, ValueError, "must be at distance 1 under replace_one, got no number of steps"),
    ],
)
def test_a_pair_that_is_not_one_is_refused(changes, error, message):
    sound = {"x": [1, 2], "y": [1, 3], "relation": "add_remove"}
    NeighborPair(**sound)
    with pytest.raises(error, match=message):
        NeighborPair(**{**sound, **changes})


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: NeighborPair.add_people(["a"], 0), TypeError, "counts must be numbers, got dtype <U1"),
        (lambda: NeighborPair.add_people([True], 0), TypeError, "counts must be numbers, got dtype bool"),
        (lambda: NeighborPair.add_people([], 0), ValueError, r"counts must have at least one cell, got shape \(0,\)"),
        (lambda: NeighborPair.add_people([1.5], 0), ValueError, r"counts must be whole numbers, got 1\.5"),
        (lambda: NeighborPair.add_people([math.nan], 0), ValueError, "counts must be whole numbers, got nan"),
        (lambda: NeighborPair.add_people([-1], 0), ValueError, "counts must not be negative, got -1"),
        (lambda: NeighborPair.add_people([2**53], 0), ValueError, r"counts must be below 2\*\*53, got"),
        (
            lambda: NeighborPair.add_record([[1, 2]], [1]),
            ValueError,
            r"a record must have the shape of a row, \(2,\), got \(1,\)",
        ),
        (lambda: NeighborPair.add_record(5, 5), ValueError, "records must be one a row, got a single value"),
        (
            lambda: NeighborPair.add_record([{"a": 1}], {"a": 1}),
            TypeError,
            "records must be numbers or text, got Python objects",
        ),
        (lambda: NeighborPair.add_record([1.0, math.nan], 2.0), ValueError, "records must not hold NaN"),
        (lambda: NeighborPair.add_people([1], 0).under("swap"), ValueError, "relation must be"),
    ],
)
def test_counts_are_numbers_of_people_and_records_can_be_compared(made, error, message):
    with pytest.raises(error, match=message):
        made()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        *(({"cell": cell}, ValueError, r"must be inside counts of shape \(2,\)") for cell in (2, (0, 0), ())),
        *(({"cell": cell}, ValueError, "cell must be") for cell in (-1, 10**30)),
        *(({"cell": cell}, TypeError, "cell must be") for cell in (0.0, [0], True)),
        *(({"people": people}, ValueError, "people must be") for people in (0, 10**30)),
        ({"people": 1.0}, TypeError, "people must be"),
    ],
)
def test_a_cell_is_an_index_and_people_are_whole_and_some(change, error, message):
    with pytest.raises(error, match=message):
        NeighborPair.add_people([1, 2], change.get("cell", 0), change.get("people", 1))
    with pytest.raises(error, match=message):
        NeighborPair.move_people([1, 2], 0, change.get("cell", 1), change.get("people", 1))
