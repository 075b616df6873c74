"""DuckDB as an engine: files and frames are read as they stand, and nothing else is touched."""

import os
import signal
import subprocess
import sys
import tempfile
import threading

import duckdb
import numpy as np
import pytest

from algorithms.phsafe import tabulate
from algorithms.release.duck import DuckDB
from algorithms.release.frames import Frame
from algorithms.release.spark import opened as opened_engine
from tests.golden.phsafe import PATHS, PERSONS
from tests.helpers import refused

COUNT = "select count(*) as N from t"


@pytest.fixture(autouse=True)
def private_temporary_folder(tmp_path, monkeypatch):
    """Spill folders must be gone after every test, whatever happened in it."""
    folder = tmp_path / "it's temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def opened():
    engines = []

    def start(*sources, **options):
        engines.append(DuckDB(sources, **options))
        return engines[-1]

    yield start
    for engine in engines:
        engine.close()


def text(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# What it may touch

FORBIDDEN = (
    "select * from read_csv('/etc/passwd')",
    "select * from read_csv('{others}')",
    "select * from read_csv('{given}/../{name}')",
    "select * from read_csv('http://127.0.0.1/a.csv')",
    "copy (select 1) to '{folder}/made.csv'",
    "copy (select 1) to '{given}'",
    "attach '{folder}/made.db'",
    "install httpfs",
    "create secret (type s3)",
    "set temp_directory = '{folder}'",
    "set allowed_paths = ['/etc/passwd']",
    "set enable_external_access = true",
    "set lock_configuration = false",
)


@pytest.mark.reliability(row=9)
def test_nothing_but_the_files_given_can_be_read_or_written(opened, tmp_path):
    given, others = text(tmp_path / "t.csv", "A\n1\n"), text(tmp_path / "others.csv", "A\n1\n")
    before = {path: path.read_bytes() for path in tmp_path.glob("*.csv")}
    engine = opened(given)
    engine.read("t", given)
    for statement in FORBIDDEN:
        with pytest.raises(ValueError, match=r"Permission Error|locked"):
            engine.fetch(statement.format(given=given, others=others, folder=tmp_path, name=given.name))
    assert list(engine.fetch(COUNT).rows()) == [(1,)]
    assert {path: path.read_bytes() for path in tmp_path.glob("*.*")} == before


def test_a_variable_of_the_program_is_no_table(opened):
    secret = {"A": np.array([1])}
    with pytest.raises(ValueError, match="secret does not exist"):
        opened().fetch("select * from secret")
    assert secret


def test_memory_and_threads_that_do_not_suffice_are_told_in_one_line(opened):
    for options in ({"memory": "4 elephants"}, {"memory": "';--"}, {"threads": -1}):
        with pytest.raises(ValueError, match=r"^DuckDB cannot start: "):
            DuckDB(**options)
    engine = opened(memory="2MB", threads=1)
    with pytest.raises(ValueError, match=r"^the data cannot be read within 2MB of memory \(--memory; .*\): Out[^\n]+$"):
        engine.keep("t", "select i, hash(i) as h from range(5000000) r(i) order by h")


def test_rows_that_do_not_fit_are_spilled(opened, private_temporary_folder):
    engine = opened(memory="25MB", threads=1)
    engine.keep("t", "select i, hash(i) as h from range(1500000) r(i)")  # 24 MB, and room to work is short
    assert list(engine.fetch("select max(h) > 0 as M, count(*) as N from t").rows()) == [(True, 1_500_000)]
    (spill,) = private_temporary_folder.iterdir()
    assert any(spill.iterdir())
    assert spill.stat().st_mode & 0o777 == 0o700
    engine.close()
    engine.close()
    assert not spill.exists()


def test_errors_of_a_tabulation_leave_no_spill_folder(tmp_path):
    broken = text(tmp_path / "persons.csv", PERSONS.read_bytes() + b"3,1\n")
    with pytest.raises(ValueError, match=f"^the data cannot be read: {broken}: .*Line: 1212 Expected.* 6 Found: 2$"):
        tabulate(broken, *PATHS[1:])


def test_an_interrupt_stops_a_query(opened):
    engine = opened(threads=1)
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.fetch("select max(hash(a.range + b.range)) as H from range(1000000) a, range(1000000) b")
    finally:
        timer.join()
        signal.signal(signal.SIGINT, former)


def test_an_interrupt_at_the_start_leaves_no_spill_folder(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(DuckDB, "_lock", interrupted)
    with pytest.raises(KeyboardInterrupt):
        DuckDB()


NOTEBOOK = """
import sys, types
sys.modules["ipywidgets"] = None
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(config={"IPKernelApp": {}}))
import duckdb
try:
    duckdb.connect().execute("SET enable_progress_bar = false")
except duckdb.InvalidInputException as refusal:
    print("ipywidgets" in str(refusal))
from algorithms.release.duck import DuckDB
engine = DuckDB()
print(len(engine.fetch("select 1 as n")))
engine.close()
"""


def test_a_notebook_without_ipywidgets_where_duckdb_has_no_bar_to_turn_off():
    """DuckDB looks at the name of the kernel, in a program without a file; there it refuses to set the bar."""
    run = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "True\n1\n", "")


# What it reads


def test_types_are_told_in_three_words(opened):
    frame = Frame({"T": ["01"], "W": [1], "U": np.array([1], np.uint8), "F": [0.5], "O": np.array([1], object)})
    types = opened().read("t", frame)
    assert types == {"T": "text", "W": "whole", "U": "whole", "F": "real", "O": "text"}


NAMES = ("it's.csv", 'a "quoted" one.csv', "with space.csv", "st*r.csv", "qu?stion.csv", "[ab].csv", "**.csv")
NAMES += ("{a,b}.csv", "semi;colon.csv", "per%41cent.csv", "ünïcode.csv", "-x.csv", "UPPER.CSV", "$HOME.csv")
NAMES += ("new\nline.csv", "'); drop table t; --.csv")


@pytest.mark.reliability(row=9)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_no_name_of_a_file_is_a_pattern_or_sql(opened, tmp_path, kind):
    paths = [tmp_path / f"A={place} in {name[:-4]}" / f"{name[:-4]}.{kind}" for place, name in enumerate(NAMES)]
    for path in paths:
        path.parent.mkdir()
        for trap in ("star", "a", "b", "question", "quastion"):
            text(path.with_name(f"{trap}.{kind}"), "A\ntrap\n")
    with duckdb.connect() as writer:
        for path in paths:
            if kind == "csv":
                text(path, "A\n01\n")
            else:
                writer.sql("select '01' as A").write_parquet(str(path))
    engine = opened(*paths)
    for path in paths:
        engine.read("t", path)
        assert list(engine.fetch("select * from t").rows()) == [("01",)]


CSV = {
    "carriage returns": b"A,B\r\n01,x\r\n#2,y\r\n",
    "old carriage returns": b"A,B\r01,x\r#2,y\r",
    "byte order mark": b"\xef\xbb\xbfA,B\n01,x\n#2,y\n",
    "quotes": b'"A","B"\n"01","x"\n"#2","y"\n',
    "spaces in the names": b" A , B\n01,x\n#2,y\n",
    "blank lines": b"A,B\n\n01,x\n\n#2,y\n\n",
    "no last line end": b"A,B\n01,x\n#2,y",
}


@pytest.mark.parametrize("content", CSV.values(), ids=CSV.keys())
def test_every_row_of_a_csv_file_is_read_as_text(opened, tmp_path, content):
    path = text(tmp_path / "t.csv", content)
    engine = opened(path)
    assert engine.read("t", path) == {"A": "text", "B": "text"}
    assert sorted(engine.fetch("select * from t").rows()) == [("#2", "y"), ("01", "x")]


def test_values_stay_as_they_are(opened, tmp_path):
    odd = ["007", "NULL", "nan", "1e3", " 1", "-", 'say ""x""', "a\x00b", "٣"]
    path = text(tmp_path / "t.csv", "A\n" + "\n".join(f'"{value}"' for value in odd) + "\n")
    engine = opened(path)
    engine.read("t", path)
    found = [value for (value,) in engine.fetch("select A from t").rows()]
    assert sorted(found) == sorted(value.replace('""', '"') for value in odd)


def test_an_empty_value_is_missing_and_an_index_without_a_name_is_no_matter(opened, tmp_path):
    path = text(tmp_path / "t.csv", ",A\n0,\n1,x\n")
    engine = opened(path)
    assert engine.read("t", path) == {"column0": "text", "A": "text"}
    assert list(engine.fetch("select A from t order by column0").rows()) == [(None,), ("x",)]


MANY = "A,B\n" + "1,2\n" * 60_000  # more than DuckDB samples
BROKEN = {
    "nothing": (b"", "must begin with the names of its columns, got nothing"),
    "a column twice": (b"A,B,a\n1,2,3\n", "must have columns of different names, got 'A' twice"),
    "UTF-16": ("A,B\n1,2\n".encode("utf-16"), "must be text in UTF-8, and line 1 is probably UTF-16"),
    "a name beyond reason": (b'"' + b"A" * 200_000 + b'"\n1\n', "cannot be read: field larger than"),
    "no line end": (bytes(3_000_000), "must begin with the names of its columns, got a line of 1,048,576 bytes"),
    "a short row": (b"A,B\n1,2\n1\n", "Line: 3 Expected Number of Columns: 2 Found: 1"),
    "an open quote, late": (MANY.encode() + b'"1,2\n1,2\n', "Line: 60002 Value with unterminated quote found."),
    "Latin-1, late": (MANY.encode() + b"1,\xe9\n", "text in UTF-8, and line 60002 is probably Latin-1, got '?'"),
    "tabs": (b"A\tB\n1\t2\n", r"got tabs in line 1, 'A\tB': tr ',\t' '.,' <"),
    "a line of megabytes": (b"A,B\n1," + b"x" * 3_000_000 + b"\n", "Line: 2 Maximum line size of"),
}


@pytest.mark.parametrize(("content", "why"), BROKEN.values(), ids=BROKEN.keys())
def test_a_csv_file_that_is_none_is_told_in_one_short_line_with_its_name(opened, tmp_path, content, why):
    path = text(tmp_path / "t.csv", content)
    engine = opened(path)
    with pytest.raises(ValueError, match=r"t\.csv") as error:
        _ = engine.read("t", path), engine.fetch("select * from t")
    assert why in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 700


def test_what_is_no_file_and_no_frame(opened, tmp_path):
    path = text(tmp_path / "t.parquet", b"PAR1" + bytes(40) + b"PAR1")
    with pytest.raises(ValueError, match=r"t\.parquet cannot be read: "):
        opened(path).read("t", path)
    engine = opened()
    for name in ("", "t.csv.gz", "read_csv('/etc/passwd')"):
        with pytest.raises(ValueError, match=r"^persons, units and geo must be \.csv or \.parquet files, got "):
            engine.read("t", name)
    (tmp_path / "folder.csv").mkdir()
    for name in ("nothing.csv", "folder.csv"):
        with pytest.raises(ValueError, match=rf"^there is no file .*{name}$"):
            engine.read("t", tmp_path / name)
    for source in (None, b"t.csv", {}):
        with pytest.raises(TypeError, match=r"^persons, units and geo must be files or data frames, got \w+$"):
            engine.read("t", source)


@pytest.mark.parametrize(("library", "late"), [("dict", 3.7), ("dict", 2**70), ("pandas", True), ("pandas", "x")])
def test_no_value_is_bent_to_the_type_of_the_others(opened, library, late):
    # DuckDB samples a column of objects, and would round 3.7 among 200,000 whole numbers to 4 without a word.
    values = np.array([5] * 200_000, dtype=object)
    values[123_457] = late
    frame = {"A": values}
    if library == "pandas":
        frame = pytest.importorskip("pandas").DataFrame(frame)
    engine = opened()
    assert engine.read("t", frame) == {"A": "text"}
    counts = sorted(engine.fetch("select A, count(*) as N from t group by A").rows())
    assert counts == sorted([("5", 199_999), (str(late), 1)])


def test_what_is_missing_is_none_in_text_and_numbers(opened):
    engine = opened()
    engine.keep("t", "select case when i > 0 then 'a' end as A, case when i > 0 then i end as B from range(3) r(i)")
    assert list(engine.fetch("select * from t order by B nulls first").rows()) == [(None, None), ("a", 1), ("a", 2)]


def test_a_reader_that_can_be_read_once(opened):
    pyarrow = pytest.importorskip("pyarrow")
    engine = opened()
    engine.read("t", pyarrow.table({"A": [1, 2]}).to_reader())
    engine.fetch(COUNT)
    with pytest.raises(ValueError, match="can be read only once"):
        engine.fetch(COUNT)


def test_a_relation_of_another_connection(opened):
    with duckdb.connect() as connection:
        engine = opened()
        engine.read("t", connection.sql("select range as A from range(5)"))
        for _ in range(2):
            assert list(engine.fetch("select sum(A) as S from t").rows()) == [(10,)]


def test_what_was_read_before_under_the_same_name_is_gone(opened, tmp_path):
    path = text(tmp_path / "t.csv", "A\nfile\n")
    engine = opened(path)
    for source, value in ((path, "file"), (Frame({"A": ["frame"]}), "frame"), (path, "file")):
        engine.read("t", source)
        assert list(engine.fetch("select A from t").rows()) == [(value,)]


# Which engine


def test_an_engine_by_name_or_as_it_is(opened):
    engine = opened()
    with opened_engine(engine, []) as lent:
        assert lent is engine
    assert list(engine.fetch("select 1 as N").rows()) == [(1,)]  # it stays open
    with opened_engine("duckdb", []) as made:
        assert isinstance(made, DuckDB)
    for name in ("polars", "DuckDB"):
        with refused(ValueError, f"engine must be duckdb or spark, got '{name}'"), opened_engine(name, []):
            pass
    with refused(TypeError, "engine must be duckdb, spark or an engine, got 3"), opened_engine(3, []):
        pass


def test_spark_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.errors", None)
    message = "the Spark engine needs the extra spark: pip install 'plaudit[spark]'"
    with refused(ImportError, message), opened_engine("spark", []):
        pass
