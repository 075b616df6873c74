import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from audit.neighbors import NeighborPair
from tests.helpers import refused_like, refuses

TABLES = arrays(np.int64, array_shapes(max_dims=3, max_side=4), elements=st.integers(0, 50))
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=6)
RELATIONS = st.sampled_from(["add_remove", "replace_one"])


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


def at_distance(steps, distance, *pair):
    """The pair is at the distance stated, and is refused where it is not."""
    if steps == distance:
        assert NeighborPair(*pair).distance == distance
    else:
        found = "no number of steps" if steps is None else f"distance {steps}"
        message = f"the databases must be at distance {distance} under {pair[2]}, got {found}"
        refuses(ValueError, message, NeighborPair, *pair)


def steps_between(x, y, relation):
    """The literal twin compares multisets of people, who are their cells, or of records."""
    added, removed = (y - x).total(), (x - y).total()
    return added + removed if relation == "add_remove" else added if added == removed else None


@given(TABLES, TABLES, st.integers(1, 200), RELATIONS)
@example(np.array([1, 2]), np.array([1, 2]), 1, "add_remove")
@example(np.array([1, 2]), np.array([1, 3]), 1, "replace_one")
@example(np.array([1, 2]), np.array([1, 2, 1]), 1, "add_remove")
def test_the_distance_is_counted_person_by_person(x, y, distance, relation):
    people = [Counter({cell: int(n) for cell, n in np.ndenumerate(counts)}) for counts in (x, y)]
    steps = steps_between(*people, relation) if x.shape == y.shape else None
    at_distance(steps, distance, x, y, relation, distance)


@given(ROWS, ROWS, st.integers(1, 12), RELATIONS)
def test_records_are_compared_as_multisets(x, y, distance, relation):
    given_x, given_y = (np.array(rows, int).reshape(-1, 2) for rows in (x, y))
    at_distance(
        steps_between(Counter(x), Counter(y), relation), distance, given_x, given_y, relation, distance, "record"
    )


@pytest.mark.parametrize(
    ("records", "record"),
    [
        ([[1, 2], [3, 4]], [1, 2]),
        (np.empty((0, 3)), [1.5, 2, 3]),
        ([1, 2, 2], 2.5),
        (np.array([(1, "x")], [("age", int), ("area", "U1")]), np.array((1, "yz"), [("age", int), ("area", "U2")])),
        ([], 7),
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
    assert NeighborPair.add_people([[1, 2]], (0, 1), 3).label == "3 people added to cell (0, 1)"
    assert NeighborPair.move_people([9, 2], 0, 1, 2).label == "2 people moved from cell 0 to 1"
    assert NeighborPair.declared(1, 2, "add_remove").label == "a declared pair"
    assert NeighborPair.declared(1, 2, "add_remove", label="mine").label == "mine"


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


def pair(relation="add_remove", **options):
    return NeighborPair([1, 2], [1, 3], relation, **options)


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: pair("swap"), ValueError, "relation must be"),
        (lambda: pair(unit="dog"), ValueError, "unit must be one of person, household, record, got 'dog'"),
        (lambda: pair(adjacency="likely"), ValueError, "adjacency must be .*, got 'likely'"),
        (lambda: pair(distance=0), ValueError, "distance must be at least 1, got 0"),
        (lambda: NeighborPair.add_people(["a"], 0), TypeError, "counts must be numbers, got 'a'"),
        (lambda: NeighborPair.add_people([], 0), ValueError, r"counts must have at least one cell, got shape \(0,\)"),
        (lambda: NeighborPair.add_people([1.5], 0), ValueError, r"counts must be whole numbers, got 1\.5"),
        (lambda: NeighborPair.add_people([-1], 0), ValueError, "counts must not be negative, got -1"),
        (lambda: NeighborPair.add_people([2**53], 0), ValueError, r"counts must be below 2\*\*53, got"),
        (lambda: NeighborPair.add_record([[1, 2]], [1]), ValueError, r"a record must have the shape of a row, \(2,\)"),
        (lambda: NeighborPair.add_record([[1, 2]], [1, 2, 3]), ValueError, r"the shape of a row, \(2,\), got \(3,\)"),
        (lambda: NeighborPair.add_record(5, 5), ValueError, "records must be one a row, got a single value"),
        (lambda: NeighborPair.add_record([{"a": 1}], {"a": 1}), TypeError, "numbers or text, got Python objects"),
        (lambda: NeighborPair.add_record([1j, math.nan], 2.0), ValueError, "records must not hold NaN inside complex"),
    ],
)
def test_what_is_no_pair_of_counts_or_records_is_refused(made, error, message):
    with refused_like(error, message):
        made()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        *(({"cell": cell}, ValueError, "must be from 0 to 1, got") for cell in (2, 3, (0, 0), ())),
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


def test_a_confidential_pair_is_the_same_pair_marked():
    pair = NeighborPair.add_people([3, 1], 0, label="two areas")
    secret = pair.as_confidential()
    assert (pair.confidential, secret.confidential) == (False, True)
    assert (secret.relation, secret.distance, secret.label) == (pair.relation, pair.distance, pair.label)
    assert (secret.x.tolist(), secret.y.tolist()) == ([3, 1], [4, 1])
