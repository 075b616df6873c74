"""Codes of values and rows that differ: equal values have equal codes, whatever they are written as."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from audit.attacks.rows.tables import Layout
from audit.neighbors.tables import rows_apart
from audit.values import MARK, NAN
from audit.written import written

ROWS = [("a", 1.0), ("b", 2.0), ("b", 2.0)]
NAMED = [{"word": word, "number": number} for word, number in ROWS]


def texts(*outputs):
    array = np.empty(len(outputs), object)
    array[:] = [
        output if isinstance(output, str) and output.startswith(MARK) else written(output) for output in outputs
    ]
    return array


def test_a_value_has_one_code():
    numbers = Layout(1)(np.array([0.0, -0.0, 2.0, 2 + 1e-12, 2.5, 1e300, NAN]).reshape(1, -1, 1))[0, 0]
    assert len(set(numbers.tolist())) == 5
    assert Layout(1)(np.array([[[0], [2]]], np.int8))[0, 0].tolist() == numbers[[0, 2]].tolist()
    listed = Layout(1)(texts([[0], [2.0], [2.5], [float("nan")], ["2"], [None], [[1]]]))[0, 0, :-1]
    assert listed[[0, 1, 2]].tolist() == numbers[[0, 2, 4]].tolist()
    assert len(set(listed.tolist())) == 7


def test_tables_of_any_form_have_the_codes_of_their_rows():
    names = Layout(2, ('"word"', '"number"'))
    frame = pd.DataFrame(NAMED)
    (by_place,) = np.moveaxis(Layout(2)(texts(ROWS)), 0, -1)
    for output in (NAMED, frame, pl.DataFrame(NAMED), frame.to_dict("list")):
        assert np.array_equal(np.moveaxis(names(texts(output)), 0, -1)[0], by_place)
    shorter, none, raised, other, longer = np.moveaxis(
        Layout(2)(texts(ROWS[:2], [], f"{MARK}ValueError)", "word", [(*ROWS[0], 3)] * 3)), 0, -1
    )
    assert (shorter.tolist(), longer[:3].tolist()) == (
        [*by_place[:2].tolist(), *none[2:].tolist()],
        3 * [by_place[0].tolist()],
    )
    assert none.tolist() == raised.tolist() == other.tolist()


@pytest.mark.parametrize("made", [list, pd.DataFrame, pl.DataFrame])
def test_rows_that_differ_are_those_that_one_database_has_more_often(made):
    assert rows_apart(made(NAMED), made(NAMED[:2])) == [(NAMED[1], False)]
    assert rows_apart(made(NAMED[:1]), made(NAMED[1:2])) == [(NAMED[1], True), (NAMED[0], False)]


def test_rows_of_arrays_and_lists_are_looked_at_and_nothing_else():
    assert rows_apart(np.array([[1, 2]]), np.array([[1, 2], [3, 4]])) == [([3, 4], True)]
    assert rows_apart([(1, "a")], [(1, "a"), (2, "b")]) == [((2, "b"), True)]
    for x, y in ((np.arange(3), np.arange(4)), (None, None), ({"a": 1}, {"a": 2}), ([], [(n,) for n in range(9)])):
        assert rows_apart(x, y) == []
