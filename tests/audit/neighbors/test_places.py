"""Where a row or record is added, and what becomes of a value that it lacks."""

import datetime
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from audit.neighbors import NeighborPair
from audit.neighbors.counts import is_missing, place_of
from tests.helpers import refused_like

KINDS = {"list": lambda rows: [dict(row) for row in rows], "pandas": pd.DataFrame, "polars": pl.DataFrame}
ROWS = [{"n": number, "word": word} for number, word in enumerate("abcd")]
NEW = {"n": 9, "word": "z"}


def numbers(table):
    """The column n of any table, or an array as it is."""
    if isinstance(table, np.ndarray):
        return table.tolist()
    return [row["n"] for row in table] if isinstance(table, list) else table["n"].to_list()


WAYS = {
    "record": (1, lambda at: NeighborPair.add_record(np.arange(4), 9, at=at)),
    **{kind: (1, lambda at, made=made: NeighborPair.add_row(made(ROWS), NEW, at=at)) for kind, made in KINDS.items()},
    "group": (2, lambda at: NeighborPair.add_group(pd.DataFrame(ROWS), [NEW] * 2, at=at)),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_added_stands_where_the_label_says(way):
    number, pair_at = WAYS[way]
    what = {"record": "1 record", "group": "2 rows"}.get(way, "1 row")
    places = {"last": 4, "first": 0, "random": None, 0: 0, np.int64(1): 1, 4: 4}
    for at, place in places.items():
        pair = pair_at(at)
        place = numbers(pair.y).index(9) if place is None else place
        assert numbers(pair.x) == [0, 1, 2, 3]
        assert numbers(pair.y) == [*range(place), *[9] * number, *range(place, 4)]
        assert (pair.adjacency, pair.distance, pair.relation) == ("verified", number, "add_remove")
        assert pair.label == f"{what} added" + {0: " in front", 4: ""}.get(place, f" at index {place}")
    assert pair_at("random").label == pair_at("random").label  # their number alone decides
    assert numbers(pair_at("last").y) == numbers(pair_at(4).y)


@pytest.mark.parametrize("at", [-1, 5, True, math.nan, 1.0, "middle", "1", None, [0]])
@pytest.mark.parametrize("way", WAYS)
def test_a_place_that_there_is_not_is_refused(way, at):
    with refused_like(ValueError, r'at must be "last", "first", "random" or an index from 0 to 4, got '):
        WAYS[way][1](at)


DAY = datetime.date(2020, 1, 1)
COLUMNS = [[1.5, 2.5], [1, 2], [True, False], ["a", "b"], [DAY, DAY], [None, 1.5], [math.nan, 1.5], [None, "a"]]


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gap", [None, math.nan, pd.NA], ids=repr)
def test_a_column_is_widened_on_both_sides_for_a_missing_value(kind, column, gap):
    table = KINDS[kind]([{"n": value, "word": "a"} for value in column])
    row = {"n": gap, "word": "b"}
    added, replaced = NeighborPair.add_row(table, row, at=1), NeighborPair.replace_row(table, 1, row)
    for pair, rows in ((added, 3), (replaced, 2)):
        assert len(numbers(pair.y)) == rows
        assert is_missing(numbers(pair.y)[1])
        assert all(one == other or is_missing(one) for one, other in zip(numbers(pair.x), column, strict=True))
        if kind != "list":
            assert (pair.x["n"].dtype, pair.x["word"].dtype) == (pair.y["n"].dtype, table["word"].dtype)
        if is_missing(column[0]):  # as the column has it already
            assert repr(numbers(pair.y)[1]) == repr(numbers(table)[0]) or kind == "polars"
    assert numbers(table)[1] == column[1]  # the caller's


def test_a_random_place_is_any_from_the_first_to_the_last():
    after = [number - place_of("random", number) for number in range(2, 200)]
    assert min(after) == 0 < max(after) - 100
    assert place_of("random", 0) == 0


def test_only_a_gap_widens_a_column():
    frame = pd.DataFrame({"n": [1, 2]})
    for values, got in (([None, 1.5], "None, 1.5"), ([1.5], "1.5")):
        with refused_like(ValueError, f"column 'n' holds int64, got {got}"):
            NeighborPair.add_group(frame, [{"n": value} for value in values])
    with refused_like(ValueError, "column 'n' holds int64, got None"):  # the other would be rounded
        NeighborPair.add_row(pd.DataFrame({"n": [2**53 + 1]}), {"n": None})
    assert NeighborPair.add_group(frame, [{"n": None}, {"n": 3}]).x["n"].dtype == float


@pytest.mark.parametrize(
    ("records", "record", "gap"),
    [
        ([1, 2], None, math.nan),
        ([[1, 2], [3, 4]], (None, 5), [math.nan, 5.0]),
        ([("a", "b")], ("c", None), ["c", ""]),
        ([b"a"], None, b""),
        (np.array(["2020-01-01"], "M8[D]"), None, None),
        ([1, 2], pd.NA, math.nan),
    ],
)
def test_a_record_may_lack_a_value(records, record, gap):
    pair = NeighborPair.add_record(records, record)
    assert pair.x.dtype == pair.y.dtype
    assert repr(pair.y[-1].tolist()) == repr(gap)
    assert repr(pair.x.tolist()) == repr(np.asarray(records).astype(pair.x.dtype).tolist())
    with refused_like(ValueError, "must be at distance 1 under replace_one, got distance 0"):  # NaN is like NaN
        NeighborPair(pair.y, pair.y[::-1], "replace_one", unit="record")


def test_a_group_is_replaced_by_another():
    visits = [{"who": who, "n": number} for number, who in enumerate("abacb")]
    for kind in KINDS.values():
        table = kind(visits)
        for new, rows in ((2, [7, 1, 8, 3, 4]), (1, [7, 1, 3, 4]), (3, [7, 1, 8, 9, 3, 4])):
            others = [{"who": "d", "n": 7 + number} for number in range(new)]
            pair = NeighborPair.replace_group(table, [0, 2], others, key="who", unit="household")
            assert (numbers(pair.y), pair.distance, pair.relation) == (rows, 1, "replace_one")
            assert (pair.label, pair.unit, pair.adjacency) == ("2 rows replaced", "household", "verified")
        alone = NeighborPair.replace_group(table, [3, 4], [{"who": "e", "n": 8}] * 2)
        assert (alone.distance, numbers(alone.y)) == (2, [0, 1, 2, 8, 8])


@pytest.mark.parametrize(
    ("indices", "rows", "message"),
    [
        ([], [NEW], r"indices must be at least one, each once and in order, got \[\]"),
        ([1, 0], [NEW] * 2, r"each once and in order, got \[1, 0\]"),
        ([0, 4], [NEW] * 2, "index must be below the number of rows, 4, got 4"),
        ([0, 9], [NEW] * 2, "index must be below the number of rows, 4, got 9"),
        ([0, 1], [NEW], "must be at distance 1 under replace_one, got no number of steps"),
        ([0], ROWS[:1], "got distance 0"),
    ],
)
def test_a_group_that_cannot_be_replaced_is_refused(indices, rows, message):
    for kind in KINDS.values():
        with refused_like(ValueError, message):
            NeighborPair.replace_group(kind(ROWS), indices, rows)
