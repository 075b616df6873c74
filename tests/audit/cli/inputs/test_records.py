"""Files of records: columns are typed alike whatever is installed, and a record has the types of its columns."""

import json
import sys
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audit.cli.inputs.records import read_records, record_of
from tests.helpers import refused_like

TEXT = "name,age,income,zip,home\nAda,36,1.5,01234,NA\nBob,7,NA,99999,none\n"
ADA = {"name": "Ada", "age": 36, "income": 1.5, "zip": "01234", "home": "NA"}


@pytest.fixture
def people(tmp_path):
    (tmp_path / "people.csv").write_text(TEXT)
    return tmp_path / "people.csv"


@pytest.fixture
def without(monkeypatch):
    """As if some libraries were not installed."""

    def hide(*names):
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return hide


def test_columns_are_typed_alike_with_and_without_pandas(people, without):
    frame = read_records(people)
    assert isinstance(frame, pd.DataFrame)
    assert [kind.kind for kind in frame.dtypes.iloc[1:3]] == ["i", "f"]
    without("pandas")
    rows = read_records(people)
    assert rows == [ADA, {"name": "Bob", "age": 7, "income": None, "zip": "99999", "home": "none"}]
    assert frame.iloc[0].to_dict() == ADA


def test_parquet_keeps_categories_that_no_record_has_and_exact_numbers(tmp_path):
    """A mechanism that counts by category would have other cells on either database, and be accused."""
    areas, price = pd.Categorical(["A", "B"], categories=["A", "B", "C"]), Decimal("12345678901234567.89")
    pd.DataFrame({"area": areas, "price": [price, price]}).to_parquet(tmp_path / "a.parquet")
    frame = read_records(tmp_path / "a.parquet")
    assert list(frame["area"].value_counts().index.categories) == ["A", "B", "C"]
    assert frame["price"].iloc[0] == price


def test_parquet_with_and_without_pandas(tmp_path, people, without):
    path = tmp_path / "peo[p]*le.parquet"  # no pattern
    read_records(people).to_parquet(path)
    (tmp_path / "peop.le.parquet").write_text("another file")
    assert read_records(path).iloc[0].to_dict() == ADA
    without("pandas")
    assert read_records(path)[0] == ADA


def test_parquet_without_a_library_and_broken_is_one_line(tmp_path, without, monkeypatch, people):
    path = tmp_path / "people.parquet"
    with refused_like(FileNotFoundError, r"people\.parquet"):
        read_records(path)
    read_records(people).to_parquet(path)
    monkeypatch.setattr("audit.cli.inputs.records.MOST_VALUES", 9)
    with refused_like(ValueError, "must be a Parquet file of records: it must hold 1 to 9 values, got 2 rows of 5"):
        read_records(path)
    path.write_text("people")
    with refused_like(ValueError, r"people\.parquet must be a Parquet file of records: "):
        read_records(path)
    without("duckdb")
    with refused_like(ValueError, r"Parquet needs DuckDB: pip install 'plaudit\[census\]'"):
        read_records(path)


@pytest.mark.parametrize("again", [True, False])
def test_text_that_is_large_once_unpacked_is_refused(tmp_path, monkeypatch, again):
    """Of pages that are compressed, and of a text that is in the file once and in twenty rows."""
    path = tmp_path / "people.parquet"
    texts = ["x" * 10_000] * 20 if again else [letter * 10_000 for letter in "abcdefghijklmnopqrst"]
    pq.write_table(pa.table({"name": texts, 'a"b': [None] * 20}), path, compression="zstd")
    assert path.stat().st_size < 5000
    assert len(read_records(path)) == 20
    monkeypatch.setattr("audit.cli.inputs.records.LARGEST_INPUT", 199_999)
    with refused_like(ValueError, r"people\.parquet must be .*: it must hold at most 199999 bytes, got 20\d{4} once"):
        read_records(path)


@pytest.mark.parametrize("pandas", [True, False])
def test_a_record_in_either_form_is_the_same(people, without, pandas):
    if not pandas:
        without("pandas")
    records = read_records(people)
    record = {"name": "Eve, the first", "age": 30, "income": 2.0, "zip": "00001", "home": "x"}
    assert record_of(records, json.dumps(record)) == record_of(records, '"Eve, the first", 30, 2, 00001, x') == record
    assert record_of(records, "Eve,30,,1,x")["income"] is None
    assert record_of(records, "Eve,many,2,1,x")["age"] == "many"  # which a pair refuses


def test_a_truth_value_is_one():
    frame = pd.DataFrame({"old": [True, False]})
    assert [record_of(frame, word) for word in ("TRUE", "1")] == [{"old": True}, {"old": "1"}]  # a pair refuses "1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Eve,30", "a record must have 5 values, of name, age, income, zip, home, got 2"),
        ('"Eve', "a record must be a JSON object or comma-separated values: "),
        ('{"age": NaN}', 'a record in JSON must be an object such as {"age": 30}: NaN is no value'),
    ],
)
def test_a_record_that_cannot_be_read_is_one_line(people, text, words):
    with refused_like(ValueError, words):
        record_of(read_records(people), text)


@pytest.mark.parametrize("text", ["1,2\n3,4\n", "a,a\n3,4\n"])
def test_records_begin_with_different_names(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    with refused_like(ValueError, "must begin with a line of names, all different"):
        read_records(tmp_path / "x.csv")
