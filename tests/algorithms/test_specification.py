"""What a file of persons may hold: specifications in JSON, numbers put into intervals, records one by one."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from algorithms.schema import Schema, read_specification
from algorithms.tables.frames import Frame
from algorithms.tables.intake import read_histogram, read_records
from tests.helpers import refuses

SCHEMA = Schema({"sex": ("f", "m"), "income": ("none", "some", "much")}, edges={"income": (0, 1, 1000)})


def written(tmp_path, content):
    path = tmp_path / "people.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_specification_in_its_three_forms(tmp_path):
    attributes = {"sex": ["f", "m"], "age": {"maxval": 3}, "income": {"edges": [0, 1, 1000]}, "code": [7, 9]}
    content = json.dumps({"source": "the codebook", "attributes": attributes})
    schema = read_specification(written(tmp_path, f"\ufeff{content}"))  # with a byte order mark
    assert list(schema.attributes) == ["sex", "age", "income", "code"]
    assert schema.attributes["age"] == ("0", "1", "2", "3")
    assert schema.attributes["income"] == ("0 to less than 1", "1 to less than 1000", "1000 or more")
    assert schema.attributes["code"] == ("7", "9")
    assert dict(schema.edges) == {"income": (0.0, 1.0, 1000.0)}


def test_intervals_are_named_by_their_edges_as_written(tmp_path):
    edges = [-0.5, 0, 1.0, 123456788, 123456789, 123456789.5, 1e300]
    schema = read_specification(written(tmp_path, {"attributes": {"income": {"edges": edges}}}))
    assert schema.attributes["income"] == (
        "-0.5 to less than 0", "0 to less than 1", "1 to less than 123456788", "123456788 to less than 123456789",
        "123456789 to less than 123456789.5", "123456789.5 to less than 1e+300", "1e+300 or more",
    )  # fmt: skip
    close = [0.1, np.nextafter(0.1, 1), 1e17, 1e17 + 16, 12345678.9012345671, np.nextafter(12345678.9012345671, 2e7)]
    close = sorted(map(float, close))
    schema = read_specification(written(tmp_path, {"attributes": {"income": {"edges": close}}}))
    assert read_records(Frame({"income": np.array(close)}), schema)[:, 0].tolist() == list(range(6))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "must be JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ({"attributes": {"age": {"edges": [0, 10**400]}}}, "edges of age must be finite and increase, got [0, 1000"),
        ({"attributes": {"age": {"maxval": 1_000_000}}}, "with a number below 1,000,000"),
        ([1], '"attributes" with the levels of each'),
        ({"attributes": ["sex"]}, '"attributes" with the levels of each'),
        ({"attributes": {}}, "at least one attribute"),
        ({"attributes": {"sex": "f"}}, "levels of sex must be a list"),
        ({"attributes": {"age": {"maxval": -1}}}, "levels of age must be a list"),
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
        ({"sex": "12"}, TypeError, "must be numbers"),
        ({"sex": (True, 3)}, TypeError, "must be numbers"),
    ],
)
def test_edges_that_break_a_rule(edges, kind, words):
    with pytest.raises(kind, match=words):
        Schema({"sex": ("f", "m"), "income": ("none",)}, edges=edges)


def test_histograms_that_do_not_fit_into_memory_are_refused_before_data_are_read(tmp_path, monkeypatch):
    schema = read_specification(written(tmp_path, {"attributes": {x: {"maxval": 99_999} for x in "ab"}}))
    words = r"^a histogram must have at most 1,073,741,824 counts, .*, got 1 x 10,000,000"
    with pytest.raises(ValueError, match=words):
        read_histogram(tmp_path / "absent.csv", schema, ["area"])
    told = "attributes must have at most 16,777,216 cells together, got 10,000,000,000"
    refuses(ValueError, told, schema.query, "a")
    monkeypatch.setattr("algorithms.tables.intake.LARGEST_HISTOGRAM", 6)
    frame = Frame({"area": ["a", "b"], "income": [1, 2], "sex": ["f", "m"]})
    for listed, areas in ((None, 2), (Frame({"area": list("abc")}), 3)):
        with pytest.raises(ValueError, match=rf"^a histogram must have at most 6 counts, .*, got {areas} x 6$"):
            read_histogram(frame, SCHEMA, ["area"], places=listed)


@pytest.mark.parametrize("levels", [("-9", "other"), ("1e3", "many")])
def test_a_place_is_not_taken_for_a_level_where_a_level_is_a_number(levels):
    schema = Schema({"code": levels})
    with pytest.raises(
        ValueError, match=rf"^data: code must be one of {', '.join(levels)}; 1 row broke it, such as '1'"
    ):
        read_records(Frame({"code": [levels[0], "1"]}), schema)
    assert read_records(Frame({"code": list(levels)}), schema).tolist() == [[0], [1]]


@pytest.mark.parametrize("codes", [["0", "1", "1"], [0, 1, 1], ["f", "m", "m"]])
def test_a_column_holds_names_or_codes(codes):
    assert read_records(Frame({"sex": codes}), Schema({"sex": "fm"})).tolist() == [[0], [1], [1]]
    many = tuple(f"p{j}" for j in range(200))  # in a byte, though names and codes together are more
    found = read_records(Frame({"place": [199, 0]}), Schema({"place": many}))
    assert (found.tolist(), found.dtype) == ([[199], [0]], np.uint8)


@pytest.mark.parametrize("read", [read_records, partial(read_histogram, areas=["area"])])
def test_a_column_does_not_hold_both(read):
    """Ages in years among names: those of 0 and 1 are not taken for the first two levels."""
    ages = Schema({"age": ("minor", "adult")})
    rule = "data: age must be names of levels in every row, or codes 0 to 1 in every row; 3 rows broke it, such as '0'"
    frame = Frame({"age": ["minor", "1", "adult", "0", "1"], "area": list("abbaa")})
    refuses(ValueError, rule, read, frame, ages)


@pytest.mark.parametrize("read", [read_records, partial(read_histogram, areas=["area"])])
def test_columns_that_are_not_released_are_named_once(read, capsys):
    columns = {"Sex": ["f", "m"], "area": ["a", "b"], "income": [3, 9], "citi\nzen": ["y", "n"]}
    read(Frame(columns), Schema({"sex": "fm"}))
    unused = ["income", "citi zen"] if read is not read_records else ["area", "income", "citi zen"]
    assert capsys.readouterr() == ("", f"not released: {', '.join(unused)}\n")
    read_records(Frame(columns), Schema({"sex": "fm"}), what="public records")
    assert capsys.readouterr().err == ""


def test_first_edge_is_named_as_written():
    schema = Schema({"income": ("much",)}, edges={"income": (123456789,)})
    with pytest.raises(ValueError, match="income must be a number from 123456789 on"):
        read_records(Frame({"income": [1]}), schema)


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
