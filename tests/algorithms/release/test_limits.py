"""Small files that would be large in memory are refused in one line that names the limit, whatever reads them."""

import datetime
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from algorithms.release import duck, intake, reading
from algorithms.release.frames import Frame
from algorithms.release.intake import read_histogram, read_records, store_histogram
from algorithms.release.spilled import Spilled
from algorithms.schema import Schema
from tests.helpers import refuses

SCHEMA = Schema({"sex": "fm"})
FULL = "cannot be read within 4GB of memory (--memory; of Spark, more partitions): "


@pytest.fixture(params=["csv", "parquet", "frame"])
def given(request, tmp_path):
    """A source of each kind."""

    def make(**columns):
        if request.param == "frame":
            return Frame(columns)
        path = tmp_path / f"data.{request.param}"
        path.unlink(missing_ok=True)
        if request.param == "csv":
            Frame(columns).to_csv(path)
        else:
            pq.write_table(pa.table(columns), path)
        return path

    return make


def test_records_are_as_many_as_fit(given, monkeypatch):
    source = given(sex=["f", "m", "m", "f"])
    monkeypatch.setattr(intake, "LARGEST_RECORDS", 4)
    assert read_records(source, SCHEMA).tolist() == [[0], [1], [1], [0]]
    monkeypatch.setattr(intake, "LARGEST_RECORDS", 3)
    refuses(ValueError, "data must have at most 3 rows of 1 attributes, got more", read_records, source, SCHEMA)


def test_areas_are_as_many_as_fit(given, monkeypatch):
    source = given(sex=["f", "m", "m", "f"], area=["1", "2", "3", "1"])
    monkeypatch.setattr(reading, "MOST_AREAS", 3)
    assert read_histogram(source, SCHEMA, ["area"])[1].tolist() == [[2, 0], [0, 1], [0, 1]]
    monkeypatch.setattr(reading, "MOST_AREAS", 2)
    refuses(ValueError, "data must name at most 2 areas, got 3", read_histogram, source, SCHEMA, ["area"])
    places = Frame({"area": ["1", "2", "3"]})
    with pytest.raises(ValueError, match=r"^the list of areas must name at most 2 areas, got 3$"):
        read_histogram(source, SCHEMA, ["area"], places=places)
    monkeypatch.setattr(reading, "MOST_AREAS", 3)
    monkeypatch.setattr(intake, "LARGEST_HISTOGRAM", 5)
    with pytest.raises(ValueError, match=r"^a histogram must have at most 5 counts, areas x cells, got 3 x 2$"):
        read_histogram(source, SCHEMA, ["area"])
    with Spilled() as store:
        assert store_histogram(store, source, SCHEMA, ["area"]).n_leaves == 3  # on disk more of them fit
        monkeypatch.setattr(reading, "MOST_AREAS", 4)
        monkeypatch.setattr(intake, "LARGEST_STORED", 6)
        more, listed = "a histogram must have at most 6 counts, areas x cells, got 4 x 2", Frame({"area": list("1234")})
        refuses(ValueError, more, store_histogram, store, source, SCHEMA, ["area"], places=listed)


def test_columns_are_those_asked_for_once_and_of_their_kind(given):
    source = given(sex=["f", "m"], area=["1", "2"], n=["1", "2"], n_1=["3", "4"])
    rule = "areas must name one column at least, the outermost first, got []"
    refuses(ValueError, rule, read_histogram, source, SCHEMA, [])
    with pytest.raises(ValueError, match=r"^data must have the columns area, sex, ;  missing, got "):
        read_histogram(source, SCHEMA, ["area"], count="")


def test_of_two_columns_of_one_name_none_is_taken(tmp_path):
    """A column that DuckDB renamed is not told from one of that name, such as a second weight, but in CSV."""
    frame = Frame({"sex": ["f", "m"], "area": ["1", "2"], "n": ["1", "2"], "n_1": ["3", "4"]})
    rule = "data must have one column n, got n_1 besides"
    refuses(ValueError, rule, read_histogram, frame, SCHEMA, ["area"], count="n")
    frame.to_csv(tmp_path / "data.csv")
    assert read_histogram(tmp_path / "data.csv", SCHEMA, ["area"], count="n")[1].tolist() == [[1, 0], [0, 2]]


def test_a_count_is_a_number_or_its_digits():
    frame = pa.table({"sex": ["f"], "area": ["1"], "n": [datetime.date(2020, 1, 1)]})
    refuses(ValueError, "n must hold numbers, got DATE", read_histogram, frame, SCHEMA, ["area"], count="n")


def test_codes_and_levels_are_no_longer_than_somebody_meant(given):
    for code in ("x" * 1024, "é" * 1024):
        tree, _ = read_histogram(given(sex=["f"], area=[code]), SCHEMA, ["area"])
        assert tree.codes(1) == [code]
    for code in ("x" * 1025, "é" * 1025, "x" * 1_000_000):
        with pytest.raises(ValueError, match=r"^data: codes of area must have at most 1,024 letters; 1 row broke it"):
            read_histogram(given(sex=["f"], area=[code]), SCHEMA, ["area"])
        with pytest.raises(ValueError, match=r"^data: sex must be one of f, m; 1 row broke it, such as .{1,40}$"):
            read_records(given(sex=[code]), SCHEMA)


def test_every_rule_that_is_broken_is_named_at_once(given):
    refused = (
        r"^data: area must have a code; 1 row broke it, such as a missing value; "
        r"n must be a whole number, 0 or more and below 10\^15; "
        r"1 row broke it, such as 'x'; sex must be one of f, m; 2 rows broke it, such as 'e', 'h'$"
    )
    with pytest.raises(ValueError, match=refused):
        read_histogram(given(sex=["h", "e", "f"], area=["1", "", "2"], n=["1", "2", "x"]), SCHEMA, ["area"], count="n")


def test_what_a_file_says_of_its_size_is_believed_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "data.parquet"
    table = pa.table({"sex": ["f" * 4000, "m"]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)
    size = pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size
    assert path.stat().st_size < size
    monkeypatch.setattr(duck, "LARGEST_CHUNK", size)
    with pytest.raises(ValueError, match=r"^data: sex must be one of"):
        read_records(path, SCHEMA)
    monkeypatch.setattr(duck, "LARGEST_CHUNK", size - 1)
    rule = rf"data\.parquet must have at most {size - 1:,} bytes in a column of a row group, got {size:,}$"
    with pytest.raises(ValueError, match=rule):
        read_records(path, SCHEMA)


BOMB = """
import sys
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

kind, length = sys.argv[1], int(sys.argv[2])
rows = np.zeros(10_000_000, np.int8)
table = pa.table({"sex": rows, "age": rows} if kind == "rows" else {"sex": ["f"], "age": ["x" * length]})
options = {"use_dictionary": kind == "rows", "write_statistics": False, "compression": "brotli"}
with pq.ParquetWriter("d.parquet", table.schema, **options) as writer:
    for _ in range(20):
        writer.write_table(table, row_group_size=len(rows))
"""


# A process begins with the memory of the one that starts it, which must be small.
WATCHED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "length", "messages", "most"),
    [
        ("rows", 0, ["at most 67,108,864 rows"], 2**18),
        ("strings", 300_000_000, ["bytes in a column of a row group"], 2**18),
        # Whether the engine gets through these within its memory, and they are no level, depends on its threads.
        ("strings", 250_000_000, ["age must be one of", FULL], 4_000_000),
    ],
)
def test_a_kilobyte_does_not_become_gigabytes(tmp_path, kind, length, messages, most):
    """Two hundred million equal rows in a megabyte, and twenty long strings in 13 kilobytes; `most` is in KiB."""
    (tmp_path / "write.py").write_text(BOMB)  # a process of its own, whose memory is not ours
    subprocess.run([sys.executable, "write.py", kind, str(length)], cwd=tmp_path, check=True)
    assert (tmp_path / "d.parquet").stat().st_size < 2**20
    (tmp_path / "spec.json").write_text('{"attributes": {"sex": ["f", "m"], "age": {"maxval": 10}}}')
    (tmp_path / "groups.json").write_text('{"groups": [["sex"], ["age"]]}')
    arguments = "release nist --data d.parquet --spec spec.json --groups groups.json --epsilon 1 --out out --seed 1"
    command = [sys.executable, "-c", WATCHED, sys.executable, "-m", "plaudit", *arguments.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert any(words in done.stderr for words in messages)
    assert done.stderr.count("\n") == 1
    assert int(done.stdout) < most
