"""What a file of persons may hold: specifications in JSON, numbers put into intervals, records one by one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from algorithms.frames import Frame
from algorithms.intake import read_histogram, read_records
from algorithms.schema import Schema
from algorithms.specification import read_specification

SCHEMA = Schema({"sex": ("f", "m"), "income": ("none", "some", "much")}, edges={"income": (0, 1, 1000)})


def written(tmp_path, content):
    path = tmp_path / "people.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_specification_in_its_three_forms(tmp_path):
    attributes = {"sex": ["f", "m"], "age": {"maxval": 3}, "income": {"edges": [0, 1, 1000]}, "code": [7, 9]}
    schema = read_specification(written(tmp_path, {"source": "the codebook", "attributes": attributes}))
    assert list(schema.attributes) == ["sex", "age", "income", "code"]
    assert schema.attributes["age"] == ("0", "1", "2", "3")
    assert schema.attributes["income"] == ("0 to less than 1", "1 to less than 1000", "1000 or more")
    assert schema.attributes["code"] == ("7", "9")
    assert dict(schema.edges) == {"income": (0.0, 1.0, 1000.0)}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "must be JSON"),
        ([1], '"attributes" with the levels of each'),
        ({"attributes": ["sex"]}, '"attributes" with the levels of each'),
        ({"attributes": {}}, "at least one attribute"),
        ({"attributes": {"sex": "f"}}, "levels of sex must be a list"),
        ({"attributes": {"sex": [True]}}, "levels of sex must be a list"),
        ({"attributes": {"age": {"maxval": -1}}}, "levels of age must be a list"),
        ({"attributes": {"age": {"maxval": 10**9}}}, "levels of age must be a list"),
        ({"attributes": {"age": {"edges": []}}}, "levels of age must be a list"),
        ({"attributes": {"age": {"edges": [3, 2, 1]}}}, "edges of age must be finite and increase, got [3, 2, 1]"),
        ('{"attributes": {"age": {"edges": [0, 1e999]}}}', "edges of age must be finite"),
        ({"attributes": {"age": ["1", "1"]}}, "distinct names"),
        ('{"attributes": {"age": ["1"], "age": ["2"]}}', "'age' stands twice"),
    ],
)
def test_specifications_that_break_a_rule(tmp_path, content, words):
    with pytest.raises(ValueError, match=r"^[^\n]*$") as error:
        read_specification(written(tmp_path, content))
    assert words in str(error.value)


def test_specification_must_be_there_and_json(tmp_path):
    with pytest.raises(ValueError, match="can be read"):
        read_specification(tmp_path / "absent.json")
    with pytest.raises(ValueError, match=r"\.json file"):
        read_specification(tmp_path / "people.yaml")


@pytest.mark.parametrize(
    ("edges", "kind", "words"),
    [
        ({"height": (1, 2)}, ValueError, "edges must be of sex, income"),
        ({"sex": (1,)}, ValueError, "one a level, 2, got 1"),
        ({"sex": (1, 1)}, ValueError, "increase"),
        ({"sex": "12"}, TypeError, "must be numbers"),
        ({"sex": (True, 3)}, TypeError, "must be numbers"),
    ],
)
def test_edges_that_break_a_rule(edges, kind, words):
    with pytest.raises(kind, match=words):
        Schema({"sex": ("f", "m"), "income": ("none",)}, edges=edges)


def test_numbers_fall_into_intervals_that_are_closed_below():
    frame = Frame({"INCOME": [0.0, 0.99, 1.0, 999.5, 1000.0, 1e12], "sex": list("fmfmfm")})
    assert read_records(frame, SCHEMA)[:, 1].tolist() == [0, 0, 1, 1, 2, 2]
    tree, histogram = read_histogram(Frame({**frame.to_dict(), "area": list("aabbaa")}), SCHEMA, ["area"])
    assert tree.n_leaves == 2
    assert histogram.tolist() == [[1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 1, 0]]


def test_records_keep_their_order_and_are_small():
    rng = np.random.default_rng(3)
    codes = np.column_stack([rng.integers(0, 2, 5000), rng.integers(0, 300, 5000)])
    schema = Schema({"sex": ("f", "m"), "place": tuple(f"p{j}" for j in range(300))})
    frame = Frame({"place": [f"p{j}" for j in codes[:, 1]], "sex": np.array(["f", "m"])[codes[:, 0]]})
    found = read_records(frame, schema)
    assert found.dtype == np.uint16
    assert np.array_equal(found, codes)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"sex": ["f"]}, "income missing"),
        ({"sex": ["x"], "income": [1]}, "data: sex must be one of f, m, or 0 to 1; 1 row broke it, such as 'x'"),
        ({"sex": ["f", None], "income": [1, 2]}, "such as a missing value"),
        ({"sex": ["f"], "income": [-1.0]}, "income must be a number from 0 on; 1 row broke it, such as '-1.0'"),
        ({"sex": ["f"], "income": ["a lot"]}, "income must be a number from 0 on"),
        ({"sex": ["f"], "income": [np.nan]}, "income must be a number from 0 on"),
        ({"sex": ["f"], "income": [np.inf]}, "income must be a number from 0 on"),
        ({"sex": [1.5], "income": [1]}, "sex must hold levels as text or whole numbers, got real numbers"),
        ({"sex": [], "income": []}, "data must have one row at least, got none"),
    ],
)
def test_records_that_break_a_rule(columns, words):
    frame = Frame({name: np.asarray(values, dtype=None if values else object) for name, values in columns.items()})
    with pytest.raises(ValueError, match=r"^[^\n]*$") as error:
        read_records(frame, SCHEMA)
    assert words in str(error.value)
