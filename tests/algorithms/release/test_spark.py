"""What a worker of Spark makes of rows, without Spark; `tests.engines.test_spark` starts it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.release import spark
from tests.helpers import refused

pyarrow = pytest.importorskip("pyarrow")

COLUMNS = {"A": "whole", "B": "text", "C": "real"}
ROW = st.tuples(
    st.integers(0, 5), st.none() | st.integers(), st.none() | st.text(max_size=5), st.none() | st.floats(0, 1)
)


def batch(rows):
    """Return rows as Spark hands them over: the part first, and text of either length."""
    columns = list(zip(*rows, strict=True)) or [()] * 4
    types = [pyarrow.int32(), pyarrow.int64(), pyarrow.large_string(), pyarrow.float64()]
    return pyarrow.record_batch(
        [pyarrow.array(column, kind) for column, kind in zip(columns, types, strict=True)], names=["PART", *COLUMNS]
    )


@given(
    batches=st.lists(st.lists(ROW.filter(lambda row: row[1] is None or abs(row[1]) < 2**63), max_size=9), max_size=6)
)
@settings(max_examples=60)
def test_pieces_hold_every_row_once_and_each_is_of_one_part(batches):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark, "HELD", 8)
        found = list(spark._cut(map(batch, batches), name="t", columns=COLUMNS))
    pieces = [row for one in found for row in one.to_pylist()]
    again = [
        (piece["PART"], *row.values())
        for piece in pieces
        for row in pyarrow.ipc.read_record_batch(pyarrow.py_buffer(piece["ROWS"]), spark._schema(COLUMNS)).to_pylist()
    ]
    assert {piece["FRAME"] for piece in pieces} <= {"t"}
    assert sorted(again, key=repr) == sorted((row for rows in batches for row in rows), key=repr)


def test_rows_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr(spark, "LARGEST", 100)
    with refused(ValueError, "t must have at most 100 bytes in 1 rows, got 124"):
        list(spark._cut(iter([batch([(0, 1, "x" * 96, 0.5)])]), name="t", columns=COLUMNS))
