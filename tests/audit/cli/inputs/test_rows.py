"""Rows that a command adds or replaces, where they stand, and the rows like them that it suggests and searches."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from audit.cli.inputs.options import DatabaseOptions
from audit.cli.inputs.rows import read_rows

PEOPLE = "name,age,sex,area,zip\n" + "".join(
    f"p{n},{age},{n % 2 + 1},{'AB'[n % 2]},0{n % 3}\n" for n, age in enumerate([36, 70, 64, 21, 36, 48])
)
ROW = {"name": "p1", "age": 50, "sex": 1, "area": "A", "zip": "01"}
ADDED, REPLACED = {"add_row": ["p1,50,1,A,01"]}, {"replace_row": (3, "p1,50,1,A,01")}


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return str(path)


@pytest.fixture(params=["pandas", "dicts"])
def libraries(request, monkeypatch):
    if request.param == "dicts":
        monkeypatch.setattr("audit.cli.inputs.records._library", lambda _: None)


def pair_of(row):
    return row.pair(row.text, row.place, row.records)


def suggested(data, options):
    """The rows of the commands that are suggested after a pass, by command; each of them makes pairs."""
    (row,) = read_rows(data, DatabaseOptions(**options))
    assert pair_of(row).distance == 1
    search, *further = row.next_commands()
    assert (search, len(further) <= 3) == (("search", {}), True)
    rows = []
    for _, changed in further:
        again = read_rows(data, replace(DatabaseOptions(**options), **changed))
        assert all(pair_of(one).distance == 1 for one in again)
        rows.append([json.loads(one.text) if one.text.startswith("{") else {} for one in again])
    return rows


def changed(rows):
    return [{name: value for name, value in row.items() if value != ROW[name]} for row in rows]


@pytest.mark.usefixtures("libraries")
def test_a_null_is_what_an_empty_field_is_read_to(people):
    text = '{"name": null, "age": null, "sex": 1, "area": null, "zip": null}'
    for options in ({"add_row": [text]}, {"replace_row": (5, text)}):
        pair = pair_of(*read_rows(people, DatabaseOptions(**options)))
        last = pair.y[-1] if isinstance(pair.y, list) else pair.y.iloc[-1]
        assert [last[name] for name in ("name", "area", "zip")] == [""] * 3
        assert last["age"] is None or np.isnan(last["age"])
        assert isinstance(pair.y, list) or pair.x["age"].dtype == pair.y["age"].dtype == float
    with pytest.raises(ValueError, match=r"a row must have the columns name, age, sex, area, zip, got Age$"):
        pair_of(*read_rows(people, DatabaseOptions(add_row=['{"Age": null}'])))


@pytest.mark.usefixtures("libraries")
def test_rows_like_one_are_suggested_the_most_useful_first(people):
    front, larger, others = suggested(people, ADDED)
    assert front == [{}]
    assert changed(larger) == [{"age": 700}, {"age": -700}]  # and no codes times ten
    assert changed(others) == [{"age": None}, {"sex": 3}, {"sex": None}, {"name": "other"}]
    assert [changed(rows) for rows in suggested(people, REPLACED)] == [[{"age": 700}], [{"age": -700}], [{"age": None}]]
    far = {"add_row": ['{"name": "x", "age": -800, "sex": null, "area": "C", "zip": ""}'], "at": "first"}
    assert [[row["age"] for row in rows] for rows in suggested(people, far)] == [[800], [None, -800, -800]]
    (one, two) = read_rows(people, DatabaseOptions(add_row=ADDED["add_row"] * 2))
    assert (one.next_commands(), two.next_commands()) == ([("search", {})], [("search", {})])


@pytest.mark.usefixtures("libraries")
def test_a_search_tries_rows_elsewhere_with_other_values_and_beside_one_row_fewer(people):
    (row,) = read_rows(people, DatabaseOptions(**ADDED))
    pairs = {pair.label: pair for pair in row.alike()}
    assert list(pairs)[:3] == [
        f"1 row added{words}" for words in (" in front", ", one row fewer", " in front, larger numbers")
    ]
    names = [f"an unknown {name}" for name in ("sex", "name", "area", "zip")] + [f"no {name}" for name in ROW]
    assert {f"1 row added in front, {words}" for words in names} | {"1 row added, numbers far below 0"} <= set(pairs)
    assert len(pairs["1 row added, one row fewer"].x) == 5
    assert list(pairs)[-1] == "1 row added at index 5"  # a random place, which six rows alone decide
    (row,) = read_rows(people, DatabaseOptions(**REPLACED))
    pairs = {pair.label: pair for pair in row.alike()}
    assert {"row 0 replaced", "row 3 replaced, one row fewer", "row 3 replaced, an unknown area"} <= set(pairs)
    assert {(pair.relation, pair.distance) for pair in pairs.values()} == {("replace_one", 1)}


def test_what_the_command_would_refuse_is_not_suggested(tmp_path):
    """Columns of Parquet that are narrow or have few values; numbers that JSON has not; the row that is there."""
    path = str(tmp_path / "people.parquet")
    frame = pd.DataFrame({"n": np.array([1, 250], np.uint8), "kind": pd.Categorical(["u", "v"]), "x": [1.5, 2.5]})
    frame.assign(big=[2**60, 2**60 + 1], old=[True, False]).to_parquet(path)
    row = {"n": 3, "kind": "u", "x": 2.0, "big": 2**60, "old": True}
    _, larger, others = suggested(path, {"add_row": [json.dumps(row)]})
    assert larger == [row | {"x": 25.0}, row | {"x": -25.0}]
    assert others == [row | {name: None} for name in ("n", "x", "old", "kind")]
    (tmp_path / "words.csv").write_text("area,zip\nA,01\nother,02\n")
    _, words = suggested(str(tmp_path / "words.csv"), {"add_row": ["A,01"]})
    assert words == [{"area": a, "zip": b} for a, b in ((None, "01"), ("other 2", "01"), ("A", None), ("A", "03"))]
    (tmp_path / "x.csv").write_text("x\n1\n1e308\n")
    assert suggested(str(tmp_path / "x.csv"), {"add_row": ["inf"]}) == [[{}], [{"x": None}]]
    assert suggested(str(tmp_path / "x.csv"), {"add_row": ["2"]})[1:] == [[{"x": None}]]
    (tmp_path / "gap.csv").write_text("x,word\n1,a\n,b\n3,a\n")
    rows = suggested(str(tmp_path / "gap.csv"), {"replace_row": (1, "2,b")})
    assert rows == [
        [{"x": 30.0, "word": "b"}],
        [{"x": -30.0, "word": "b"}],
        [{"x": 2.0, "word": "other"}],
    ]  # not None, b
