"""Columns made of those of a file: the codes that a recode gives, and everything about it that is wrong."""

import reprlib
from contextlib import closing
from pathlib import Path

import pytest

from algorithms.release.duck import DuckDB
from algorithms.release.recoding import FORM, Recoded
from tests.algorithms.releases import all_but_reading, record, refused_in_one_line, released
from tests.helpers import refuses

KNOWN = ("sex", "age", "home", "place", "x")
PERSONS = "Home,Sex,years,x\n1,male,17,a\n02,female,18,b\n3,,84.5,'\n4,m,-3,\n"
SEXES = {"male": "m", "female": "f", "": "unknown", "m": "m"}


def made(columns, rows="*", source="p.csv"):
    """The rows of a file with the columns that are made."""
    recode = Recoded("persons", source, columns, KNOWN)
    with closing(DuckDB([recode])) as database:
        types = database.read("t", recode)
        return types, sorted(database.fetch(f"select {rows} from t").rows(), key=str)


def test_every_way_to_make_a_column(desk):
    desk({"p.csv": PERSONS})
    columns = {
        "home": {"from": "home", "add": -10},
        "sex": {"from": "SEX", "values": SEXES},
        "age": {"from": "years", "values": {"84.5": "old"}, "ranges": {"-17": "child", "17.5-80": 2}},
        "place": {"constant": "it's"},
        "x": {"from": "x"},
    }
    types, rows = made(columns)
    assert types == {"home": "whole", "sex": "text", "age": "text", "place": "text", "x": "text", "years": "text"}
    assert rows == [
        (-6, "m", "child", "it's", None, "-3"),
        (-7, "unknown", "old", "it's", "'", "84.5"),
        (-8, "f", "2", "it's", "b", "18"),
        (-9, "m", "child", "it's", "a", "17"),
    ]


def test_ends_belong_to_ranges_and_infinity_to_none(desk):
    desk({"p.csv": [["a"], *[[text] for text in ("0", "17", "17.0", " 18", "1e2")]]})
    ranges = {"-0.5-17": "young", "18-": "old"}
    assert made({"age": {"from": "a", "ranges": ranges}}, "age")[1] == [("old",)] * 2 + [("young",)] * 3
    desk({"p.csv": "a\n17.5\ninf\nnan\n1_0x\n18\n"})
    refused = r"^persons: a must have a code for age; 4 rows broke it, such as '17.5'$"
    with pytest.raises(ValueError, match=refused):
        made({"age": {"from": "a", "ranges": ranges}})


def test_parquet_keeps_its_types_and_other_columns_are_as_they_are(desk, tmp_path):
    frame = pytest.importorskip("pandas").DataFrame({"a": [1.5, 20.0], "sex": [True, False], "n": [1, 2]})
    frame.to_parquet("p.parquet")
    columns = {"sex": {"from": "sex", "values": {"true": "m", "false": "f"}}, "age": {"from": "a"}}
    types, rows = made(columns, "sex, age, n", "p.parquet")
    assert types == {"sex": "text", "age": "real", "a": "real", "n": "whole"}
    assert rows == [("f", 20.0, 2), ("m", 1.5, 1)]


REFUSED = {
    "recode of persons must be an object of columns, got ['sex']": ["sex"],
    "recode of persons must make columns among sex, age, home, place, x, got 'SEX'": {"SEX": {"from": "Sex"}},
    "sex: codes must be text or whole numbers, got 1.5": {"sex": {"constant": 1.5}},
    "sex: codes must be text or whole numbers, got False": {"sex": {"from": "Sex", "ranges": {"1-2": False}}},
    'age: a range must be written as "0-17", "85-" or "-17", got \'17\'': {
        "age": {"from": "years", "ranges": {"17": 1}}
    },
    'age: a range must be written as "0-17", "85-" or "-17", got \'18-17\'': {
        "age": {"from": "years", "ranges": {"18-17": 1}}
    },
    "age: ranges must not overlap, got 0-17 and 17-18": {
        "age": {"from": "years", "ranges": {"30-": 1, "17-18": 2, "0-17": 1}}
    },
    "age: must be from one of the columns of p.csv: Home, Sex, years, x; got 'age'": {"age": {"from": "age"}},
    "persons: Sex must have a code for sex; 1 row broke it, such as a missing value": {
        "sex": {"from": "Sex", "values": {"male": 1, "female": 2, "m": 1}}
    },
    "persons: years must be a whole number, for age; 1 row broke it, such as '84.5'; "
    "Sex must have a code for sex; 4 rows broke it, such as 'female'": {
        "age": {"from": "years", "add": 1},
        "sex": {"from": "Sex", "values": {}},
    },
}


FORMLESS = (
    "Sex",
    {},
    {"values": {"male": 1}},
    {"constant": 1, "values": {}},
    {"from": "Sex", "add": 1, "values": {}},
    {"from": 1},
    {"from": "Sex", "add": True},
    {"from": "Sex", "values": ["m"]},
    {"from": "Sex", "code": 1},
)


@pytest.mark.parametrize("how", FORMLESS, ids=str)
def test_what_is_no_way_to_make_a_column_is_refused(how):
    refuses(ValueError, f"recode of persons, sex: must be {FORM}, got {reprlib.repr(how)}", made, {"sex": how})


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_wrong_is_refused(desk, message):
    desk({"p.csv": PERSONS})
    words = message if message.startswith(("recode", "persons")) else f"recode of persons, {message}"
    refuses(ValueError, words, made, REFUSED[message])


SPEC = {"attributes": {"sex": ["f", "m"]}}
SYSTEMS = {
    "bottom-up": {"areas": "area", "epsilon": 50},
    "ons": {"areas": "area", "epsilon": 50, "method": "independent", "table": "area:sex"},
    "nist": {"groups": "groups.json", "epsilon": 50, "rows": 5},
    "topdown": {"areas": "area", "epsilon": 50},
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_reads_words_codes_and_a_recode_alike(desk, capsys, system):
    """The same release from each; codes among words are refused, and so is a value without a code."""
    coded, words = ([["area", name], *(["A", one] for one in ones)] for name, ones in (("sex", "fmm"), ("s", "abb")))
    desk({"coded.csv": coded, "words.csv": words, "spec.json": SPEC, "groups.json": {"groups": [["sex"]]}})
    desk({"r.json": {"sex": {"from": "s", "values": {"a": "f", "b": "m"}}}})
    desk({"few.json": {"sex": {"from": "s", "values": {"a": "f"}}}})
    desk({"codes.json": {"attributes": {"sex": {"codes": {"2": "f", "1": "m"}}}}})
    desk({"codes.csv": [["area", "sex"], *(["A", code] for code in "211")]})
    given = SYSTEMS[system] | {"spec": "spec.json", "seed": 1}
    assert released(system, **given, data="coded.csv", out="one") == 0
    assert released(system, **given, data="words.csv", recode="r.json", out="two") == 0
    assert record("one")["reading"] == {"sex": {"words": ["f", "m"]}}
    assert record("two")["reading"] == {"sex": {"from": "s", "values": {"a": "f", "b": "m"}, "words": ["f", "m"]}}
    assert all_but_reading("one") == all_but_reading("two")
    assert released(system, **given, data="codes.csv", out="three") == 2
    assert "codes need their meanings" in capsys.readouterr().err
    Path("codes.json").rename("spec.json")
    assert released(system, **given, data="codes.csv", out="coded") == 0
    assert record("coded")["reading"] == {"sex": {"codes": {"2": "f", "1": "m"}}}
    assert all_but_reading("one") == all_but_reading("coded")
    capsys.readouterr()
    wrong = "data: s must have a code for sex; 2 rows broke it, such as 'b'"
    refused_in_one_line(capsys, wrong, system, **given, data="words.csv", recode="few.json", out="three")
