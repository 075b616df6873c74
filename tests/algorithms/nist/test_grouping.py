"""Groups of correlated fields: by a known measure, within a cap, the same every time; and margins of rows."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import contingency

from algorithms.nist import Groups, choose_groups, marginal_distance, read_groups, utility
from algorithms.nist.groups import association
from algorithms.nist.records import LARGEST_GROUP
from algorithms.schema import Schema
from tests.helpers import refuses

RNG = np.random.default_rng(20)
TWO = Schema({"a": "xy", "b": "xy"})
SIX = Schema(
    {name: [str(level) for level in range(levels)] for name, levels in zip("abcdef", (3, 3, 4, 2, 2, 5), strict=True)}
)


def correlated(rows=2_000):
    """a, b and c follow each other, d and e too, f nobody."""
    first, second, third = RNG.integers(0, [3, 2, 5], (rows, 3)).T
    noise = RNG.random((rows, 6))
    b = np.where(noise[:, 1] < 0.9, first, RNG.integers(0, 3, rows))
    c = np.where(noise[:, 2] < 0.8, first, 3)
    e = np.where(noise[:, 4] < 0.9, second, 1 - second)
    return np.column_stack([first, b, c, second, e, third])


RECORDS = correlated()


def test_association_of_known_tables():
    assert association(np.diag([5, 7, 9])) == 1
    assert association(np.outer([1, 2, 3], [4, 5])) == 0
    assert association([[5, 0, 3]]) == 0  # one level only
    assert association([[1, 0], [0, 1]]) == 0  # two records say nothing
    # Bergsma's formula with chi-square 20, 100 records, two by two.
    spread = math.sqrt(0.2) * 25
    table = np.array([[25 + spread, 25 - spread], [25 - spread, 25 + spread]])
    assert association(table) == pytest.approx(math.sqrt((0.2 - 1 / 99) / (1 - 1 / 99)))
    many = np.array([[50, 20, 5], [10, 40, 30]]) * 10_000
    assert association(many) == pytest.approx(contingency.association(many), rel=1e-4)


def test_correlated_fields_share_a_group_and_others_do_not(tmp_path):
    groups = choose_groups(RECORDS, SIX)
    assert groups.fields == (("a", "b", "c"), ("d", "e"), ("f",))
    assert groups.names == ("a*b*c", "d*e", "f")
    assert choose_groups(RECORDS[::-1], SIX) == groups  # order tells nothing, ties included
    path = tmp_path / "groups.json"
    path.write_text(json.dumps(groups.to_dict()))
    assert str(read_groups(path)) == "3 groups, as given\na*b*c\nd*e\nf"
    same = np.repeat([[0], [1]], 50, axis=0) * np.ones(3, int)  # of equal associations the first is joined
    schema = Schema({"a": "xy", "b": "xy", "c": "xy"})
    assert choose_groups(same, schema, max_bins=4).fields == (("a", "b"), ("c",))


def test_the_cap_keeps_groups_apart_and_says_so():
    groups = choose_groups(RECORDS, SIX, max_bins=12)
    assert groups.fields == (("a", "b"), ("c",), ("d", "e"), ("f",))
    text = str(groups)
    assert text.startswith("4 groups, joined from association 0.3 on, up to 12 bins\na*b\nc\nd*e\nf\n")
    assert "\na and b: association 0.8" in text
    assert "\na*b and c: association 0.8" in text
    assert ", 36 bins, above 12\n" in text
    assert "5 pairs of groups with association below 0.3; the largest:" in text
    assert "joins\nnone" in str(choose_groups([[0, 0], [0, 1], [1, 0], [1, 1]], TWO))


def test_a_chain_of_neighbors_does_not_end_in_one_group():
    """Each field follows the one before, with a few changes; the first and the last have little in common."""
    rng = np.random.default_rng(22)
    chain = [rng.integers(0, 2, 4_000)]
    for _ in range(7):
        chain.append(np.where(rng.random(4_000) < 0.2, 1 - chain[-1], chain[-1]))
    schema = Schema({f"f{place}": "xy" for place in range(8)})
    groups = choose_groups(np.column_stack(chain), schema)
    ends = np.corrcoef(chain[0], chain[-1])[0, 1]
    assert ends < 0.1
    assert 1 < len(groups) < 8


def test_tables_too_large_to_count_keep_fields_apart():
    schema = Schema({name: [str(level) for level in range(2_100)] for name in "ab"})
    groups = choose_groups([[0, 0], [1, 1]], schema, max_bins=3_000)
    assert len(groups) == 2
    assert "a and b: association not counted, 4,410,000 bins" in str(groups)
    assert groups.to_dict()["decisions"][0]["association"] is None
    schema = Schema({name: schema.attributes["a"] for name in "abcd"})
    text = str(choose_groups([[0] * 4, [1] * 4], schema, max_bins=LARGEST_GROUP))
    assert "6 pairs of groups with a table too large to count; the first:\na and b: association not counted" in text
    assert text.count("not counted") == 3


@settings(max_examples=20)
@given(st.data())
def test_groups_are_a_partition_within_the_cap(data):
    levels = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    schema = Schema({f"f{place}": [str(level) for level in range(count)] for place, count in enumerate(levels)})
    seed, cap = data.draw(st.integers(0, 99)), data.draw(st.integers(4, 60))
    records = np.random.default_rng(seed).integers(0, levels, (12, len(levels)))
    groups = choose_groups(records, schema, max_bins=cap, least=0.1)
    assert sorted(name for group in groups.fields for name in group) == sorted(schema.attributes)
    assert all(math.prod(len(schema.attributes[name]) for name in group) <= cap for group in groups.fields)
    assert choose_groups(records, schema, max_bins=cap, least=0.1) == groups


def test_distances_of_known_margins(monkeypatch):
    schema = Schema({"a": "xy", "b": "xyz"})
    first, second = [[0, 0], [0, 1], [1, 2], [1, 2]], [[0, 0], [1, 1]]
    rng = np.random.default_rng(23)
    assert marginal_distance(first, second, schema, ways=2, rng=rng) == pytest.approx(0.75)
    assert marginal_distance(first, second, schema, ways=1, rng=rng) == pytest.approx((0 + 0.5) / 2)
    assert marginal_distance(first, first * 5, schema, ways=2, rng=rng) == 0
    other = correlated()
    tabulated = marginal_distance(RECORDS, other, SIX, rng=np.random.default_rng(24))
    assert 0 < tabulated < 0.1
    monkeypatch.setattr(utility, "TABULATED", 0)  # large margins have the distances of small ones
    assert marginal_distance(RECORDS, other, SIX, rng=np.random.default_rng(24)) == pytest.approx(tabulated)


def test_random_margins_are_different_ones_and_the_generator_chooses_them():
    other = correlated()
    few = [marginal_distance(RECORDS, other, SIX, marginals=3, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert few[0] == few[1] != few[2]
    every = marginal_distance(RECORDS, other, SIX, marginals=20, rng=np.random.default_rng(1))
    assert every == marginal_distance(RECORDS, other, SIX, marginals=500, rng=np.random.default_rng(2))
    assert len(set(utility._sets(6, 3, 19, np.random.default_rng(3)))) == 19


def chosen(records=RECORDS, **options):
    return choose_groups(records, SIX, **options)


def compared(first=RECORDS, **options):
    return marginal_distance(first, RECORDS, SIX, rng=np.random.default_rng(0), **options)


NONE = np.zeros((0, 6), int)
BAD = {
    "max_bins must hold the levels of every field, f has 5, got 4": lambda: chosen(max_bins=4),
    "max_bins must be at most 4,194,304, got 4194305": lambda: chosen(max_bins=2**22 + 1),
    "least must be in (0, 1], got 0.0": lambda: chosen(least=0.0),
    "least must be in (0, 1], got 1.1": lambda: chosen(least=1.1),
    "public records must have one row at least, got none": lambda: chosen(NONE),
    "databases must have one record at least, got 0 and 2000": lambda: compared(NONE),
    "ways must be at least 1, got 0": lambda: compared(ways=0),
    "ways must be at most 6, got 7": lambda: compared(ways=7),
    "marginals must be at least 1, got 0": lambda: compared(marginals=0),
    "groups must each have a field, and there must be one at least, got []": lambda: Groups([]),
    "groups must each have a field, and there must be one at least, got [['a'], []]": lambda: Groups([["a"], []]),
    "groups must have each field once, got 'a' twice": lambda: Groups([["a", "b"], ["a"]]),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_groups_limits_and_margins_are_refused(message):
    refuses(ValueError, message, BAD[message])


def test_groups_of_another_kind_are_refused():
    refuses(TypeError, "max_bins must be an integer, got 40.5", chosen, max_bins=40.5)
    for fields in (["ab"], "ab", [[1]]):
        refuses(TypeError, f"groups must be lists of names of fields, got {fields!r}", Groups, fields)


def test_bad_files_of_groups_are_refused(desk):
    message = 'groups must be JSON of the form {"groups": [["age", "sex"]]}, got groups.json'
    for content in ("[]", {"groups": 3}):
        desk({"groups.json": content})
        refuses(ValueError, message, read_groups, "groups.json")
