"""Attributes and queries: groups of cells, their names, and what is refused."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.schema import Grouping, Schema
from tests.helpers import refuses

SCHEMA = Schema(
    {"home": ("house", "prison", "dorm"), "age": ("minor", "adult")},
    {"kind": Grouping("home", {"own": ("house",), "shared": ("prison", "dorm")})},
)


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("total", [0, 0, 0, 0, 0, 0]),
        ("detailed", [0, 1, 2, 3, 4, 5]),
        ("home", [0, 0, 1, 1, 2, 2]),
        ("age", [0, 1, 0, 1, 0, 1]),
        ("kind", [0, 0, 1, 1, 1, 1]),
        ("kind*age", [0, 1, 2, 3, 2, 3]),
        ("age * kind", [0, 1, 2, 3, 2, 3]),
    ],
)
def test_queries_are_kronecker_products(name, groups):
    assert SCHEMA.query(name).groups.tolist() == groups


def test_groups_are_labeled_as_they_are_numbered_and_pickled():
    again = pickle.loads(pickle.dumps(SCHEMA))
    assert again.query("kind*age").labels == ("own, minor", "own, adult", "shared, minor", "shared, adult")
    assert SCHEMA.query("total").labels == ("total",)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_every_query_counts_every_person_once(sizes, random):
    schema = Schema({f"a{i}": [f"l{j}" for j in range(n)] for i, n in enumerate(sizes)})
    table = np.arange(schema.cells) ** 2
    names = ["total", "detailed", *schema.attributes, "*".join(schema.attributes)]
    for name in names:
        query = schema.query(name)
        axes = tuple(i for i, a in enumerate(schema.attributes) if a not in name.split("*") and name != "detailed")
        expected = table.reshape(schema.shape).sum(axis=axes).reshape(-1)
        assert np.bincount(query.groups, table).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("attributes", "groupings", "words"),
    [
        ({}, {}, "at least one attribute"),
        ({"total": ("x",)}, {}, "name of its own"),
        ({"a": ("x", "x")}, {}, "distinct names"),
        ({"a": ("x", "y")}, {"a": Grouping("a", {"g": ("x", "y")})}, "grouping must have a name of its own without"),
        ({"a": ("x", "y")}, {"g": Grouping("b", {"g": ("x", "y")})}, "must be of a, got 'b'"),
        ({"a": ("x", "y")}, {"g": Grouping("a", {"1": ("x", "y"), "2": ("y",)})}, "each level of a once, got"),
        ({"a": ("x", "y")}, {"g": Grouping("a", {"1": ("x", "y", "z")})}, "each level of a once, got"),
        ({"a": ("x", "y")}, {"g": Grouping("a", {"1": ("x",)})}, "each level of a once, got"),
    ],
)
def test_bad_schemas_are_refused(attributes, groupings, words):
    with pytest.raises(ValueError, match=words):
        Schema(attributes, groupings)


def test_what_is_no_query_and_no_schema_is_refused():
    for name in ("sex", "home*home", "home*kind", "home**age", ""):
        with pytest.raises(ValueError, match="query must be total, detailed, or name each"):
            SCHEMA.query(name)
    for attributes in (["a"], {1: ("x",)}):
        with pytest.raises(TypeError, match="attributes must be a mapping of names to levels"):
            Schema(attributes)
    for codes in (["1", "1"], ["1", "2", "3"]):
        rule = f"codes of a must be different, one a level, got {', '.join(codes)}"
        refuses(ValueError, rule, Schema, {"a": ("x", "y")}, codes={"a": codes})


def test_where_marks_cells():
    assert SCHEMA.where(home=("prison", "dorm"), age="minor").tolist() == [False, False, True, False, True, False]
    refuses(ValueError, "level of home must be one of house, prison, dorm, got 'ship'", SCHEMA.where, home="ship")
    refuses(ValueError, "attribute must be one of home, age, got 'sex'", SCHEMA.where, sex="male")
