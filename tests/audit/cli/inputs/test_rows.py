"""Rows that a command adds or replaces, where they stand, and the rows like them that it suggests and searches."""

import json

import numpy as np
import pandas as pd
import pytest

from audit.cli.inputs.groups import DatabaseOptions
from audit.cli.inputs.records import read_rows

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


@pytest.mark.usefixtures("libraries")
def test_a_null_is_what_an_empty_field_is_read_to(people):
    text = '{"name": null, "age": null, "sex": 1, "area": null, "zip": null}'
    for options in ({"add_row": [text]}, {"replace_row": (5, text)}):
        pair = read_rows(people, DatabaseOptions(**options))[0].pair()
        last = pair.y[-1] if isinstance(pair.y, list) else pair.y.iloc[-1]
        assert [last[name] for name in ("name", "area", "zip")] == [""] * 3
        assert last["age"] is None or np.isnan(last["age"])
        assert isinstance(pair.y, list) or pair.x["age"].dtype == pair.y["age"].dtype == float
    with pytest.raises(ValueError, match=r"a row must have the columns name, age, sex, area, zip, got Age$"):
        read_rows(people, DatabaseOptions(add_row=['{"Age": null}']))[0].pair()


@pytest.mark.usefixtures("libraries")
def test_a_search_tries_rows_elsewhere_with_other_values_and_beside_one_row_fewer(people):
    (row,) = read_rows(people, DatabaseOptions(**ADDED))
    pairs = {pair.label: pair for pair in row.alike()}
    assert list(pairs)[:2] == ["1 row added in front", "1 row added, one row fewer"]
    names = [f"an unknown {name}" for name in ("sex", "name", "area", "zip")] + [f"no {name}" for name in ROW]
    assert {f"1 row added in front, {words}" for words in names} | {"1 row added, numbers far below 0"} <= set(pairs)
    assert len(pairs["1 row added, one row fewer"].x) == 5
    assert list(pairs)[-1] == "1 row added at index 5"  # a random place, which six rows alone decide
    (row,) = read_rows(people, DatabaseOptions(**REPLACED))
    pairs = {pair.label: pair for pair in row.alike()}
    assert {"row 0 replaced", "row 3 replaced, one row fewer", "row 3 replaced, an unknown area"} <= set(pairs)
    assert {(pair.relation, pair.distance) for pair in pairs.values()} == {("replace_one", 1)}


def changes(data, options):
    """The values in which the rows that a search tries differ from the given one, in its order."""
    (row,) = read_rows(data, DatabaseOptions(**options))
    larger, others = row._changes()
    assert all(pair.distance == 1 for pair in row.alike())
    return [change for _, change in larger], [change for _, change in others]


@pytest.mark.usefixtures("libraries")
def test_other_values_the_most_useful_first(people):
    larger, others = changes(people, ADDED)
    assert larger == [{"age": 700}, {"age": -700}]  # and no codes times ten
    assert others[:4] == [{"age": None}, {"sex": 3}, {"sex": None}, {"name": "other"}]
    far = {"add_row": ['{"name": "x", "age": -800, "sex": null, "area": "C", "zip": ""}'], "at": "first"}
    assert changes(people, far) == ([{"age": 800}, {"age": -800}], [{"age": None}, {"name": None}, {"area": None}])


def test_what_columns_cannot_hold_is_not_tried(tmp_path):
    """Columns of Parquet that are narrow; numbers without end; words that are there."""
    path = str(tmp_path / "people.parquet")
    frame = pd.DataFrame({"n": np.array([1, 250], np.uint8), "x": [1.5, 2.5]})
    frame.assign(big=[2**60, 2**60 + 1], old=[True, False]).to_parquet(path)
    row = {"n": 3, "x": 2.0, "big": 2**60, "old": True}
    larger, others = changes(path, {"add_row": [json.dumps(row)]})
    assert larger == [{"x": 25.0}, {"x": -25.0}]
    assert others == [{name: None} for name in ("n", "x", "big", "old")]
    (tmp_path / "words.csv").write_text("area,zip\nA,01\nother,02\n")
    _, words = changes(str(tmp_path / "words.csv"), {"add_row": ["A,01"]})
    assert words == [{"area": None}, {"area": "other 2"}, {"zip": None}, {"zip": "03"}]
    (tmp_path / "x.csv").write_text("x\n1\n1e308\n")
    for value in ("inf", "2"):
        assert changes(str(tmp_path / "x.csv"), {"add_row": [value]}) == ([], [{"x": None}])
