"""Pairs of tables: frames of either library and lists of dicts, with rows added and replaced."""

import datetime
import math
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.neighbors import NeighborPair
from audit.neighbors.tables import rows_apart
from tests.helpers import refused_like

TWICE = {"age": 40, "pay": 2.0, "area": "b"}
ROWS = [{"age": 31, "pay": 1.5, "area": "a"}, TWICE, TWICE]
NEW = {"area": "c", "age": 50, "pay": 3}
KINDS = {"list": lambda rows: [dict(row) for row in rows], "pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.fixture(params=KINDS)
def table(request):
    return KINDS[request.param](ROWS)


def rows_of(table):
    """The rows of any table, as tuples."""
    if isinstance(table, list):
        return [tuple(row.values()) for row in table]
    return list(table.itertuples(index=False, name=None) if isinstance(table, pd.DataFrame) else table.iter_rows())


def types_of(table):
    """The types of the columns of any table."""
    if isinstance(table, list):
        return [list(map(type, row.values())) for row in table]
    return [table[name].dtype for name in table.columns]


def test_a_row_is_added_at_the_end(table):
    before = rows_of(table)
    pair = NeighborPair.add_row(table, NEW, unit="record")
    assert rows_of(pair.x) == before
    assert rows_of(pair.y) == [*before, (50, 3.0, "c")]
    assert types_of(pair.y)[:3] == types_of(table) == types_of(pair.x)
    assert type(rows_of(pair.y)[-1][1]) is float
    assert (pair.relation, pair.distance, pair.unit, pair.adjacency) == ("add_remove", 1, "record", "verified")
    assert (pair.label, NeighborPair.add_row(table, NEW, label="mine").label) == ("1 row added", "mine")


def test_a_row_is_replaced_in_its_place(table):
    before = rows_of(table)
    for index in range(3):
        pair = NeighborPair.replace_row(table, index, NEW)
        assert rows_of(pair.y) == [*before[:index], (50, 3.0, "c"), *before[index + 1 :]]
        assert types_of(pair.y)[:2] == types_of(pair.x)[:2]
        assert (pair.relation, pair.distance, pair.label) == ("replace_one", 1, f"row {index} replaced")
    apart = pair.under("add_remove")
    assert (apart.distance, apart.adjacency, rows_of(apart.y)) == (2, "verified", rows_of(pair.y))


def test_the_given_table_stays_the_callers(table):
    pair = NeighborPair.add_row(table, NEW)
    assert rows_of(table) == [tuple(row.values()) for row in ROWS]
    if isinstance(table, list):
        table[0]["age"] = 99
    else:
        table[0 if isinstance(table, pl.DataFrame) else "age", "age" if isinstance(table, pl.DataFrame) else 0] = 99
    assert rows_of(pair.x)[0] == rows_of(pair.y)[0] == (31, 1.5, "a")


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_an_empty_frame_has_columns_and_an_empty_list_takes_any(kind):
    empty = KINDS[kind](ROWS)[:0]
    pair = NeighborPair.add_row(empty, NEW)
    assert types_of(pair.y) == types_of(empty)
    assert rows_of(NeighborPair.add_row([], NEW).y) == [("c", 50, 3)]


def test_many_types_of_columns_stay_as_they_are():
    day, now = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 12)
    values = {"t": [now, now], "b": [True, False], "missing": [1.0, None], "text": ["a", None]}
    frame = pd.DataFrame(values).assign(
        small=np.array([1, 2], np.uint8),
        half=np.array([1, 2], np.float32),
        kind=pd.Categorical(["u", "v"]),
        whole=pd.array([1, None], "Int64"),
        day=[day, None],
    )
    polar = pl.DataFrame({**values, "day": [day, None]}).with_columns(
        pl.Series("small", [1, 2], pl.UInt8), pl.Series("half", [1, 2], pl.Float32), pl.Series("whole", [1, None])
    )
    row = {"t": now, "b": False, "missing": None, "text": None, "small": 255, "half": 0.1, "whole": None, "day": day}
    for table, new in ((frame, {**row, "kind": "u"}), (polar, row)):
        pair = NeighborPair.add_row(table, new)
        assert types_of(pair.y) == types_of(table)
        assert NeighborPair.replace_row(pair.y, 0, new).distance == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("age", age) for age in ("50", 1.5, -1.5, True, 2**70, [1])),
        *(("pay", pay) for pay in ("50", True, 10**400, np.array([1.0, 2.0]), 2**53 + 1)),
        *(("area", area) for area in (5, ["a"], b"a")),
    ],
)
def test_a_value_that_does_not_fit_its_column_is_refused(name, value):
    for kind, made in KINDS.items():
        if kind != "list" or name != "age" or value != 2**70:  # Python's whole numbers have no end
            with refused_like(ValueError, f"column '{name}' holds"):
                NeighborPair.add_row(made(ROWS), {**NEW, name: value})


def test_rows_of_a_unit_have_no_order():
    rows = [{"who": 1, "what": "a"}, {"who": 1, "what": "b"}, {"who": 2, "what": "a"}]
    assert NeighborPair(rows[:2], rows[::-1], "add_remove", key="who").distance == 1


UNITS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b"])), max_size=6)


@settings(max_examples=25)
@given(UNITS, UNITS, st.sampled_from(["add_remove", "replace_one"]), st.booleans())
def test_the_distance_is_counted_unit_by_unit(x, y, relation, keyed):
    """The literal twin: multisets of units, each the multiset of its rows, or of rows."""
    units = [
        Counter(frozenset(Counter(row for row in rows if row[0] == key).items()) for key in {row[0] for row in rows})
        if keyed
        else Counter(rows)
        for rows in (x, y)
    ]
    added, removed = (units[1] - units[0]).total(), (units[0] - units[1]).total()
    steps = added + removed if relation == "add_remove" else added if added == removed else None
    for kind in KINDS.values():
        if kind is not KINDS["list"] and not (x and y):
            continue
        tables = [kind([{"who": who, "what": what} for who, what in rows]) for rows in (x, y)]
        for distance in range(1, 13):
            made = dict(relation=relation, distance=distance, key="who" if keyed else None)
            if steps == distance:
                assert NeighborPair(*tables, **made).distance == distance
            else:
                with refused_like(ValueError, f"the databases must be at distance {distance} under {relation}, got"):
                    NeighborPair(*tables, **made)


def test_a_group_is_as_far_as_it_has_units(table):
    new = [{**NEW, "age": age} for age in (50, 50, 51)]
    alone = NeighborPair.add_group(table, new)
    assert (alone.distance, alone.label) == (3, "3 rows added")
    keyed = NeighborPair.add_group(table, new, key="age", unit="household")
    assert (keyed.distance, keyed.label, keyed.unit) == (2, "3 rows of 2 ages added", "household")
    assert keyed.under("add_remove") is keyed
    assert NeighborPair(keyed.y, keyed.x, "add_remove", 2, key="age").distance == 2
    with refused_like(ValueError, "units that are added must not be in the table, got age 40"):
        NeighborPair.add_group(table, [{**NEW, "age": 40}], key="age")


@pytest.mark.parametrize(
    ("first", "second"),
    [(1, 1.0), (1, True), (0.0, -0.0), ("1", 1), (None, "None"), (math.nan, None), (b"a", "a"), (np.int64(1), 1)],
)
def test_values_that_are_nearly_the_same_are_two(first, second):
    assert NeighborPair([{"a": first}], [{"a": second}], "replace_one").distance == 1
    with refused_like(ValueError, "got distance 0"):
        NeighborPair([{"a": first}], [{"a": first}], "replace_one")


def test_rows_of_dicts_have_the_order_of_the_first():
    rows = [{"a": 1, "b": 2}, {"b": 3, "a": 4}]
    assert [list(row) for row in NeighborPair.add_row(rows, {"b": 1, "a": 1}).y] == [["a", "b"]] * 3
    assert [list(row) for row in NeighborPair.add_group([], rows, key="a").y] == [["a", "b"]] * 2


def test_tables_of_other_columns_or_types_are_not_neighbors():
    one = pd.DataFrame({"a": [1, 2]})
    others = [pd.DataFrame({"b": [1]}), pd.DataFrame({"a": [1.0]}), pl.DataFrame({"a": [1]}), [{"a": 1}]]
    for other in others:
        with refused_like(ValueError, "got no number of steps"):
            NeighborPair(one, other, "add_remove")
    with refused_like(ValueError, "got no number of steps"):
        NeighborPair([{"a": 1}], [{"b": 1}, {"b": 2}], "add_remove")
    kinds = [pd.DataFrame({"a": pd.Categorical(["u"] * n, ["u", *more])}) for n, more in ((1, []), (2, ["v"]))]
    with refused_like(ValueError, "got no number of steps"):  # a mechanism may read the categories
        NeighborPair(*kinds, "add_remove")


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: NeighborPair.add_row(np.zeros(3), NEW), TypeError, "a table must be a DataFrame .*, got ndarray"),
        (lambda: NeighborPair.add_row({"a": ROWS}, NEW), TypeError, r"got dict \(use NeighborPair.declared"),
        (lambda: NeighborPair.add_row(pd.DataFrame([[1, 2]], columns=["a", "a"]), NEW), ValueError, "different names"),
        (lambda: NeighborPair.add_row(pd.DataFrame(ROWS)[1:], NEW), ValueError, r"index .* must be 0, 1, \.\.\."),
        (lambda: NeighborPair.add_row(pd.DataFrame(ROWS[:2], index=[0, 0]), NEW), ValueError, r"must be 0, 1, \.\.\."),
        (lambda: NeighborPair.add_row(pd.DataFrame(ROWS).rename_axis("id"), NEW), ValueError, "use frame.reset_index"),
        (lambda: NeighborPair.add_row(ROWS, [1, 2, 3]), TypeError, "a row must be a mapping .*, got list"),
        (lambda: NeighborPair.add_row(ROWS, {"age": 1, "pay": 1.0, "Area": "a"}), ValueError, "got age, pay, Area$"),
        (lambda: NeighborPair.add_group(ROWS, []), ValueError, "at least one row must be added, got none"),
        (lambda: NeighborPair.add_group(ROWS, [NEW], key="id"), ValueError, "key must be a column .*, got 'id'"),
        (lambda: NeighborPair.add_group([{"id": None}], [{"id": None}], key="id"), ValueError, "its unit, got None"),
        (lambda: NeighborPair.replace_row(ROWS, -1, NEW), ValueError, "index must be at least 0, got -1"),
        (lambda: NeighborPair.replace_row(ROWS, 0, ROWS[0]), ValueError, "must be at distance 1 .*, got distance 0"),
        (lambda: NeighborPair.add_row([{"a": [1]}], {"a": [1]}), TypeError, "got list in column 'a'"),
    ],
)
def test_what_is_no_pair_of_tables_is_refused(made, error, message):
    with refused_like(error, message):
        made()


APART = [{"word": word, "number": number} for word, number in (("a", 1.0), ("b", 2.0), ("b", 2.0))]


@pytest.mark.parametrize("made", [list, pd.DataFrame, pl.DataFrame])
def test_rows_that_differ_are_those_that_one_database_has_more_often(made):
    assert rows_apart(made(APART), made(APART[:2])) == [(APART[1], False)]
    assert rows_apart(made(APART[:1]), made(APART[1:2])) == [(APART[1], True), (APART[0], False)]


def test_rows_of_arrays_and_lists_are_looked_at_and_nothing_else():
    assert rows_apart(np.array([[1, 2]]), np.array([[1, 2], [3, 4]])) == [([3, 4], True)]
    assert rows_apart([(1, "a")], [(1, "a"), (2, "b")]) == [((2, "b"), True)]
    for x, y in ((np.arange(3), np.arange(4)), (None, None), ({"a": 1}, {"a": 2}), ([], [(n,) for n in range(9)])):
        assert rows_apart(x, y) == []
