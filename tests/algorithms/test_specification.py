"""What a file of persons may hold: specifications in JSON, numbers put into intervals, records one by one."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from algorithms.release.frames import Frame
from algorithms.release.intake import read_histogram, read_records
from algorithms.schema import Schema, read_specification
from tests.helpers import in_full, refuses

SCHEMA = Schema({"sex": ("f", "m"), "income": ("none", "some", "much")}, edges={"income": (0, 1, 1000)})


def written(tmp_path, content):
    path = tmp_path / "people.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_specification_in_its_forms(tmp_path):
    attributes = {"sex": ["f", "m"], "age": {"maxval": 3}, "income": {"edges": [0, 1, 1000]}, "code": [7, 9]}
    attributes |= {"state": {"codes": {"9": "n/k", "01": "single"}}, "size": {"labels": ["S", "L"], "places": True}}
    attributes |= {"years": {"edges": [0, 65], "end": 120}}
    content = json.dumps({"source": "the codebook", "attributes": attributes})
    schema = read_specification(written(tmp_path, f"\ufeff{content}"))  # with a byte order mark
    assert list(schema.attributes) == ["sex", "age", "income", "code", "state", "size", "years"]
    assert (schema.attributes["state"], schema.attributes["size"]) == (("n/k", "single"), ("S", "L"))
    assert dict(schema.codes) == {"state": ("9", "01"), "size": ("0", "1")}
    assert schema.attributes["years"] == ("0 to less than 65", "65 to less than 120")
    assert schema.attributes["age"] == ("0", "1", "2", "3")
    assert schema.attributes["income"] == ("0 to less than 1", "1 to less than 1000", "1000 or more")
    assert schema.attributes["code"] == ("7", "9")
    assert dict(schema.edges) == {"income": (0.0, 1.0, 1000.0), "years": (0.0, 65.0, 120.0)}


def test_intervals_are_named_by_their_edges_as_written(tmp_path):
    edges = [-0.5, 0, 1.0, 123456788, 123456789, 123456789.5, 1e300]
    schema = read_specification(written(tmp_path, {"attributes": {"income": {"edges": edges}}}))
    assert schema.attributes["income"] == (
        "-0.5 to less than 0", "0 to less than 1", "1 to less than 123456788", "123456788 to less than 123456789",
        "123456789 to less than 123456789.5", "123456789.5 to less than 1e+300", "1e+300 or more",
    )  # fmt: skip
    close = [0.1, float(np.nextafter(0.1, 1)), 1e17, 1e17 + 16]
    schema = read_specification(written(tmp_path, {"attributes": {"income": {"edges": close}}}))
    assert read_records(Frame({"income": np.array(close)}), schema)[:, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "must be JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ({"attributes": {"age": {"edges": [0, 10**400]}}}, "a number must have at most 308 digits, got 401"),
        ({"attributes": {"age": {"maxval": 1_000_000}}}, "with a number below 1,000,000"),
        ({"attributes": ["sex"]}, '"attributes" with the levels of each'),
        ({"attributes": {"sex": "f"}}, "levels of sex must be a list"),
        ({"attributes": {"age": {"maxval": -1}}}, "levels of age must be a list"),
        ({"attributes": {"age": {"edges": []}}}, "levels of age must be a list"),
        ({"attributes": {"age": {"edges": [3, 2, 1]}}}, "edges of age must be finite and increase, got [3, 2, 1]"),
        ('{"attributes": {"age": {"edges": [0, 1e999]}}}', "edges of age must be finite"),
        ('{"attributes": {"age": ["1"], "age": ["2"]}}', "'age' stands twice"),
        ({"attributes": {"a": {"labels": ["x"], "places": False}}}, "levels of a must be a list"),
        ({"attributes": {"a": {"labels": ["1 x", "2 y", "n/k"], "places": True}}}, "labels otherwise, got '1 x': w"),
        ({"attributes": {"a": {"codes": {"1": "x", "2": "x"}}}}, "distinct names"),
        (
            {"attributes": {"a": {"codes": {"": "x"}}}},
            "a code of a must be text without spaces around it; --recode gives",
        ),
        ({"attributes": {"a": {"edges": [0, 9], "end": 9}}}, "edges of a must be finite and increase, got [0, 9, 9]"),
    ],
)
def test_specifications_that_break_a_rule(tmp_path, content, words):
    with pytest.raises(ValueError, match=r"^[^\n]*$") as error:
        read_specification(written(tmp_path, content))
    assert words in str(error.value)


@pytest.mark.parametrize(("name", "words"), [("absent.json", "can be read"), ("people.yaml", r"\.json file")])
def test_specification_must_be_there_and_json(tmp_path, name, words):
    with pytest.raises(ValueError, match=words):
        read_specification(tmp_path / name)


@pytest.mark.parametrize(
    ("edges", "kind", "words"),
    [
        ({"height": (1, 2)}, ValueError, "edges must be of sex, income"),
        ({"sex": (1,)}, ValueError, "one a level, 2, or one more for the end, got 1"),
        ({"sex": "12"}, TypeError, "must be numbers"),
        ({"sex": (True, 3)}, TypeError, "must be numbers"),
    ],
)
def test_edges_that_break_a_rule(edges, kind, words):
    with pytest.raises(kind, match=words):
        Schema({"sex": ("f", "m"), "income": ("none",)}, edges=edges)


def test_codes_are_of_an_attribute_that_has_no_edges():
    refuses(ValueError, "codes must be of sex, got 'income'", replace, SCHEMA, codes={"income": "abc"})


def test_histograms_that_do_not_fit_into_memory_are_refused_before_data_are_read(tmp_path):
    schema = read_specification(written(tmp_path, {"attributes": {x: {"maxval": 99_999} for x in "ab"}}))
    words = r"^a histogram must have at most 1,073,741,824 counts, .*, got 1 x 10,000,000"
    with pytest.raises(ValueError, match=words):
        read_histogram(tmp_path / "absent.csv", schema, ["area"])
    message = "attributes must have at most 16,777,216 cells together, got 10,000,000,000"
    refuses(ValueError, message, schema.query, "a")


@pytest.mark.parametrize("levels", [("-9", "other"), ("1e3", "many")])
def test_a_place_is_not_taken_for_a_level_where_a_level_is_a_number(levels):
    schema = Schema({"code": levels})
    words = rf"^data: code must be one of {', '.join(levels)}; 1 row broke it, such as '1'"
    with pytest.raises(ValueError, match=words):
        read_records(Frame({"code": [levels[0], "1"]}), schema)
    assert read_records(Frame({"code": list(levels)}), schema).tolist() == [[0], [1]]


STATES = {"2": "married", "1": "single", "9": "n/k"}


@pytest.mark.parametrize("given", [[1, 2, 9], ["01", "2", "009"]])
@pytest.mark.parametrize("codes", [STATES, {code.zfill(2): label for code, label in STATES.items()}])
@pytest.mark.parametrize("read", [read_records, partial(read_histogram, areas=["area"])])
def test_codes_mean_what_the_specification_says(read, codes, given, capsys):
    """Whatever their order, gaps and zeros; every table that is counted by level would show a code read otherwise."""
    schema = read_specification({"attributes": {"state": {"codes": codes}}})
    found = read(Frame({"state": given, "area": ["a"] * 3}), schema)
    assert (found if read is read_records else found[1]).tolist() == (
        [[1], [0], [2]] if read is read_records else [[1, 1, 1]]
    )
    words = ", ".join(f"{code} = {label}" for code, label in codes.items())
    assert f"state read as codes: {words}\n" in capsys.readouterr().err


def test_codes_that_zeros_tell_apart_are_read_as_they_are():
    schema = read_specification({"attributes": {"a": {"codes": {"1": "x", "01": "y", "A": "z"}}}})
    assert read_records(Frame({"a": ["01", "1", "A"]}), schema).tolist() == [[1], [0], [2]]
    rule = "data: a must be one of the codes 1 = x, 01 = y, A = z; 1 row broke it, such as '001'"
    refuses(ValueError, rule, read_records, Frame({"a": ["001"]}), schema)


@pytest.mark.parametrize("read", [read_records, partial(read_histogram, areas=["area"])])
def test_numbers_among_words_are_refused_with_two_ways_out(read):
    """Codes from 1, a dummy of 0 and 1, ages in years: none is taken for a place in the list."""
    ages = Schema({"age": ("minor", "adult")})
    rule = (
        "data: age must be one of minor, adult; 3 rows broke it, such as '0', '1'; codes need their meanings in the "
        'specification, "age": {"codes": {CODE: LABEL, ...}}, and places in the list, from 0 on, need "age": '
        '{"labels": [...], "places": true}'
    )
    frame = Frame({"age": ["minor", "1", "adult", "0", "1"], "area": list("abbaa")})
    refuses(ValueError, rule, read, frame, ages)


@pytest.mark.parametrize("read", [read_records, partial(read_histogram, areas=["area"])])
def test_numbers_are_named_by_their_ends_and_refused_from_an_end_on(read, capsys):
    frame = Frame({"age": [17, 64, 999], "area": list("aab")})
    read(frame, read_specification({"attributes": {"age": {"edges": [0, 18, 65]}}}))
    bands = "0 to less than 18, 18 to less than 65, 65"
    assert f"age read as numbers: {bands} or more; from 17 to 999\n" in capsys.readouterr().err
    closed = read_specification({"attributes": {"age": {"edges": [0, 18, 65], "end": 120}}})
    rule = "data: age must be a number from 0 to less than 120; 1 row broke it, such as '999'"
    refuses(ValueError, rule, read, frame, closed)
    for ages, are_codes in (([1, 2, 3], True), ([1, 2, 99], True), ([1, 2, 30], False), ([30, 30, 30], False)):
        read(Frame({"age": ages, "area": list("aab")}), closed)
        assert ("are they codes of these 3?" in capsys.readouterr().err) == are_codes


SUMS = [("Total", "Zurich"), ("ALL", "b"), ("Total of region", "Totaltown"), ("Sub-total", "Allen town")]


@pytest.mark.parametrize(("name", "other"), SUMS)
def test_an_area_that_is_called_a_sum_is_refused_unless_it_is_listed(name, other):
    frame = Frame({"sex": ["f", "m"], "area": [name, other]})
    way = "leave such rows out, or list the area with --geo if it is one"
    rule = f"data: areas of area must not be sums of others: {way}; 1 row broke it, such as {name!r}"
    refuses(ValueError, rule, read_histogram, frame, Schema({"sex": "fm"}), ["area"])
    listed = Frame({"area": [name, other]})
    assert read_histogram(frame, Schema({"sex": "fm"}), ["area"], places=listed)[1].sum() == 2


def counted(*parts):
    """Persons of so many areas; a name of several areas has all of theirs, so that it is their sum."""
    rng, schema = np.random.default_rng(1), Schema({"a": "uvwxyz", "sex": "fm"})
    people = {name: list(zip(rng.choice(list("uvwxyz"), 40 + n), rng.choice(["f", "m"], 40 + n), strict=True))
              for n, name in enumerate("abcdefgh")}  # fmt: skip
    rows = [(*area.split("/"), *one) for area, names in parts for name in names for one in people[name]]
    names = (*("region", "district")[: len(rows[0]) - 2], "a", "sex")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    areas = list(columns)[:-2]
    return read_histogram(Frame({name: list(column) for name, column in columns.items()}), schema, areas)[1].sum()


SUM = "warning: {} has as many people as {} together: if it is their sum, leave its rows out\n"
PARTS = [("a", "a"), ("b", "b"), ("c", "c"), ("d", "d")]
NESTED = [("N/1", "a"), ("N/2", "b"), ("N/99", "ab"), ("S/1", "c"), ("S/2", "d"), ("S/99", "cd"), ("99/99", "abcd")]


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ([*PARTS, ("CH", "abcd")], ["region CH", "a, b, c, d"]),
        ([*PARTS, ("Mainland", "abc")], ["region Mainland", "a, b, c"]),
        ([("1", "abc"), ("11", "a"), ("12", "b"), ("13", "c"), ("2", "d")], ["region 1", "11, 12, 13"]),
        (NESTED, ["region 99", "N, S"]),
        (PARTS, []),
    ],
)
def test_an_area_that_is_others_together_is_named_and_counted(parts, named, capsys):
    assert counted(*parts) == sum(40 + "abcdefgh".index(name) for _, names in parts for name in names)
    err = capsys.readouterr().err
    assert SUM.format(*named) in err if named else "warning" not in err


@pytest.mark.parametrize("number", in_full(4, 40))
def test_areas_that_chance_makes_a_sum_are_not_named(number, capsys):
    """Of 40 files with 12 areas of about 25 persons in 12 cells at most one is, with probability .999; of 4 none is."""
    rng, schema = np.random.default_rng(2), Schema({"a": "uvwxyz", "sex": "fm"})
    for _ in range(number):
        values = rng.integers(1, 13, 300), rng.choice(list("uvwxyz"), 300), rng.choice(["f", "m"], 300)
        read_histogram(Frame(dict(zip(("area", "a", "sex"), values, strict=True))), schema, ["area"])
    assert capsys.readouterr().err.count("warning") <= number // 40


def test_areas_that_may_be_missing_values_are_named(capsys):
    read_histogram(Frame({"area": ["NA", "North"], "sex": ["f", "m"]}), Schema({"sex": "fm"}), ["area"])
    assert "warning: area NA may stand for a missing value, and counts as an area\n" in capsys.readouterr().err


def test_whole_numbers_are_read_as_numbers():
    """Also from a frame that made them floats, as it does where one is missing."""
    schema = read_specification({"attributes": {"n": {"maxval": 3}, "a": {"codes": {"1": "x", "2": "y", "NA": "z"}}}})
    frame = Frame({"n": [1.0, 3.0, 0.0], "a": ["01", "2.0", "NA"]})
    assert read_records(frame, schema).tolist() == [[1, 0], [3, 1], [0, 2]]


def test_zeros_that_were_lost_are_named():
    frame, listed = Frame({"a": ["1"], "b": ["1"], "sex": ["f"]}), Frame({"a": ["01"], "b": ["001"]})
    way = "one file lost zeros, so save its codes as text"
    rule = f"data must be in areas of the list of areas; got 1 other, such as '1 / 1', where '01 / 001' is known: {way}"
    refuses(ValueError, rule, read_histogram, frame, Schema({"sex": "f"}), ["a", "b"], places=listed)


@pytest.mark.parametrize("read", [read_records, partial(read_histogram, areas=["area"])])
def test_columns_that_are_not_released_are_named_once(read, capsys):
    columns = {"Sex": ["f", "m"], "area": ["a", "b"], "income": [3, 9], "citi\nzen": ["y", "n"]}
    read(Frame(columns), Schema({"sex": "fm"}))
    unused, areas = ("", "area read as areas, each row as one person\n") if read is not read_records else ("area, ", "")
    assert capsys.readouterr() == ("", f"not released: {unused}income, citi zen\n{areas}sex read as words: f, m\n")
    read_records(Frame(columns), Schema({"sex": "fm"}), what="public records")
    assert capsys.readouterr().err == ""


def test_numbers_fall_into_intervals_that_are_closed_below_or_are_places_from_0_on():
    frame = Frame({"INCOME": [0.0, 0.99, 1.0, 999.5, 1000.0, 1e12], "sex": list("fmfmfm")})
    assert read_records(frame, SCHEMA)[:, 1].tolist() == [0, 0, 1, 1, 2, 2]
    schema = read_specification({"attributes": {"a": {"labels": [f"p{j}" for j in range(300)], "places": True}}})
    places = read_records(Frame({"a": [299, 0]}), schema)
    assert (places.tolist(), places.dtype) == ([[299], [0]], np.uint16)
    tree, histogram = read_histogram(Frame({**frame.to_dict(), "area": list("aabbaa")}), SCHEMA, ["area"])
    assert tree.n_leaves == 2
    assert histogram.tolist() == [[1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 1, 0]]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"sex": ["x"], "income": [1]}, "data: sex must be one of f, m; 1 row broke it, such as 'x'"),
        ({"sex": ["f", None], "income": [1, 2]}, "such as a missing value"),
        ({"sex": ["f"], "income": [-1.0]}, "income must be a number from 0 on; 1 row broke it, such as '-1.0'"),
        ({"sex": ["f"], "income": ["1,5"]}, "such as '1,5'; write a point for a decimal comma"),
        ({"sex": ["f"], "income": [np.inf]}, "income must be a number from 0 on"),
        ({"sex": [1.5], "income": [1]}, "1 row broke it, such as '1.5'; codes need their meanings"),
        ({"sex": [], "income": []}, "data must have one row at least, got none"),
    ],
)
def test_records_that_break_a_rule(columns, words):
    frame = Frame({name: np.asarray(values, dtype=None if values else object) for name, values in columns.items()})
    with pytest.raises(ValueError, match=r"^[^\n]*$") as error:
        read_records(frame, SCHEMA)
    assert words in str(error.value)
