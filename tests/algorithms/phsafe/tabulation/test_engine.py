"""Where the SQL runs: files and frames are read as they stand, nothing else is touched, Spark gives the same rows."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from algorithms.phsafe import read_config, tabulate
from algorithms.tables.duck import DuckDB
from algorithms.tables.frames import Frame
from algorithms.tables.opening import opened as opened_engine
from algorithms.tables.spark import Spark
from tests.golden.phsafe import CONFIG, PATHS, PERSONS, columns, rows

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
    "select * from read_text('/etc/passwd')",
    "select * from read_blob('/proc/self/environ')",
    "select * from '/etc/passwd'",
    "select * from glob('/etc/*')",
    "select * from read_csv('{others}')",
    "select * from read_csv('{given}/../{name}')",
    "select * from read_csv('http://127.0.0.1/a.csv')",
    "copy (select 1) to '{folder}/made.csv'",
    "copy (select 1) to '{given}'",
    "export database '{folder}/made'",
    "import database '{folder}'",
    "attach '{folder}/made.db'",
    "install httpfs",
    "load httpfs",
    "create secret (type s3)",
    "set memory_limit = '1GB'",
    "set temp_directory = '{folder}'",
    "set allowed_paths = ['/etc/passwd']",
    "set enable_external_access = true",
    "reset enable_external_access",
    "set lock_configuration = false",
    "call enable_profiling()",
)


def test_nothing_but_the_files_given_can_be_read_or_written(opened, tmp_path):
    given, others = text(tmp_path / "t.csv", "A\n1\n"), text(tmp_path / "others.csv", "A\n1\n")
    before = {path: path.read_bytes() for path in tmp_path.glob("*.csv")}
    engine = opened(given)
    engine.read("t", given)
    for statement in FORBIDDEN:
        with pytest.raises(ValueError, match=r"Permission Error|locked|Table with name /etc/passwd does not exist"):
            engine.fetch(statement.format(given=given, others=others, folder=tmp_path, name=given.name))
    assert list(engine.fetch(COUNT).rows()) == [(1,)]
    assert {path: path.read_bytes() for path in tmp_path.glob("*.*")} == before


def test_a_variable_of_the_program_is_no_table(opened):
    secret = {"A": np.array([1])}
    with pytest.raises(ValueError, match="secret does not exist"):
        opened().fetch("select * from secret")
    assert secret


def test_the_spill_folder_goes_with_the_engine(opened, private_temporary_folder):
    engine = opened()
    (spill,) = private_temporary_folder.iterdir()
    assert spill.stat().st_mode & 0o777 == 0o700
    engine.close()
    engine.close()
    assert not spill.exists()


@pytest.mark.parametrize("memory", ["plenty", "4 elephants", "';--"])
def test_memory_that_is_no_size(memory):
    with pytest.raises(ValueError, match=r"^DuckDB cannot start: "):
        DuckDB(memory=memory)


def test_a_number_of_threads_that_is_none():
    with pytest.raises(ValueError, match=r"^DuckDB cannot start: "):
        DuckDB(threads=-1)


def test_memory_that_does_not_suffice_is_told_in_one_line(opened):
    engine = opened(memory="2MB", threads=1)
    with pytest.raises(ValueError, match=r"^the frames cannot be tabulated: Out of Memory Error") as told:
        engine.keep("t", "select i, hash(i) as h from range(5000000) r(i) order by h")
    assert "\n" not in str(told.value)


def test_rows_that_do_not_fit_are_spilled(opened, private_temporary_folder):
    engine = opened(memory="25MB", threads=1)
    engine.keep("t", "select i, hash(i) as h from range(1500000) r(i)")  # 24 MB, and room to work is short
    assert list(engine.fetch("select max(h) > 0 as M, count(*) as N from t").rows()) == [(True, 1_500_000)]
    assert any(next(private_temporary_folder.iterdir()).iterdir())


def test_errors_of_a_tabulation_leave_no_spill_folder(tmp_path):
    broken = text(tmp_path / "persons.csv", PERSONS.read_bytes() + b"3,1\n")
    with pytest.raises(
        ValueError, match=f"^the frames cannot be tabulated: {broken}: .*Line: 1212 Expected.* 6 Found: 2$"
    ):
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


# What it reads


def test_types_are_told_in_three_words(opened):
    frame = Frame({"T": ["01"], "W": [1], "U": np.array([1], np.uint8), "F": [0.5], "O": np.array([1], object)})
    types = opened().read("t", frame)
    assert types == {"T": "text", "W": "whole", "U": "whole", "F": "real", "O": "text"}


NAMES = ("it's.csv", 'a "quoted" one.csv', "with space.csv", "st*r.csv", "qu?stion.csv", "[ab].csv", "**.csv")
NAMES += ("{a,b}.csv", "semi;colon.csv", "per%41cent.csv", "ünïcode.csv", "-x.csv", "UPPER.CSV", "$HOME.csv")
NAMES += ("new\nline.csv", "'); drop table t; --.csv")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_no_name_of_a_file_is_a_pattern_or_sql(opened, tmp_path, name, kind):
    folder = tmp_path / f"in {name[:-4]}"
    folder.mkdir()
    for trap in ("star", "a", "b", "question", "quastion"):
        text(folder / f"{trap}.{kind}", "A\ntrap\n")
    path = folder / f"{name[:-4]}.{kind}"
    if kind == "csv":
        text(path, "A\n01\n")
    else:
        pytest.importorskip("pyarrow.parquet").write_table(pytest.importorskip("pyarrow").table({"A": ["01"]}), path)
    engine = opened(path)
    engine.read("t", path)
    assert list(engine.fetch("select * from t").rows()) == [("01",)]


def test_a_folder_named_like_a_column_adds_none(opened, tmp_path):
    folder = tmp_path / "A=7"
    folder.mkdir()
    path = text(folder / "t.csv", "A,B\n1,2\n")
    engine = opened(path)
    assert engine.read("t", path) == {"A": "text", "B": "text"}
    assert list(engine.fetch("select * from t").rows()) == [("1", "2")]


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
    "a blank line": (b"\nA,B\n", "must begin with the names of its columns, got nothing"),
    "a column twice": (b"A,B,a\n1,2,3\n", "must have columns of different names, got 'A' twice"),
    "UTF-16": ("A,B\n1,2\n".encode("utf-16"), "cannot be read: 'utf-8' codec can't decode byte 0xff"),
    "a compressed file": (b"\x1f\x8b\x08\x00" + bytes(range(99)), "cannot be read: 'utf-8' codec can't decode"),
    "a name beyond reason": (b'"' + b"A" * 200_000 + b'"\n1\n', "cannot be read: field larger than"),
    "no line end": (bytes(3_000_000), "must begin with the names of its columns, got a line of 1,048,576 bytes"),
    "a short row": (b"A,B\n1,2\n1\n", "Line: 3 Expected Number of Columns: 2 Found: 1"),
    "a long row": (b"A,B\n1,2\n1,2,3\n", "Line: 3 Expected Number of Columns: 2 Found: 3"),
    "a short row, late": (MANY.encode() + b"1\n", "Line: 60002 Expected Number of Columns: 2 Found: 1"),
    "an open quote, late": (MANY.encode() + b'"1,2\n1,2\n', "Line: 60002 Value with unterminated quote found."),
    "Latin-1": (b"A,B\n1,\xe9\n", "Line: 2 Invalid unicode"),
    "Latin-1, late": (MANY.encode() + b"1,\xe9\n", "Line: 60002 Invalid unicode"),
    "a line of megabytes": (b"A,B\n1," + b"x" * 3_000_000 + b"\n", "Line: 2 Maximum line size of"),
}


@pytest.mark.parametrize(("content", "why"), BROKEN.values(), ids=BROKEN.keys())
def test_a_csv_file_that_is_none_is_told_in_one_short_line_with_its_name(opened, tmp_path, content, why):
    path = text(tmp_path / "t.csv", content)
    engine = opened(path)
    with pytest.raises(ValueError, match=r"t\.csv") as told:
        _ = engine.read("t", path), engine.fetch("select * from t")
    assert why in str(told.value)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 700


def test_a_parquet_file_that_is_none(opened, tmp_path):
    path = text(tmp_path / "t.parquet", b"PAR1" + bytes(40) + b"PAR1")
    with pytest.raises(ValueError, match=r"t\.parquet cannot be read: "):
        opened(path).read("t", path)


@pytest.mark.parametrize("name", ["", ".", "t.txt", "t", "t.csv.gz", "/dev/null", "select 1"])
def test_a_file_of_another_kind(opened, name):
    with pytest.raises(ValueError, match=r"^persons, units and geo must be \.csv or \.parquet files, got "):
        opened().read("t", name)


@pytest.mark.parametrize("make", [lambda path: None, Path.mkdir], ids=["nothing", "a folder"])
def test_a_file_that_is_not_there(opened, tmp_path, make):
    make(tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"^there is no file .*t\.csv$"):
        opened().read("t", tmp_path / "t.csv")


@pytest.mark.parametrize("source", [None, 7, b"t.csv", [1, 2], {}, {"A": [1]}, [{"A": 1}], object(), tabulate, Frame])
def test_what_is_no_frame(opened, source):
    with pytest.raises(TypeError, match=r"^persons, units and geo must be files or data frames, got \w+$"):
        opened().read("t", source)


@pytest.mark.parametrize("library", ["dict", "pandas"])
@pytest.mark.parametrize("late", [3.7, True, 2**70, "x", b"5"])
def test_no_value_is_bent_to_the_type_of_the_others(opened, library, late):
    # DuckDB samples a column of objects, and would round 3.7 among 200,000 whole numbers to 4 without a word.
    values = np.array([5] * 200_000, dtype=object)
    values[123_457] = late
    frame = {"A": values}
    if library == "pandas":
        frame = pytest.importorskip("pandas").DataFrame(frame)
    engine = opened()
    assert engine.read("t", frame) == {"A": "text"}
    assert sorted(engine.fetch("select A, count(*) as N from t group by A").rows()) == sorted(
        [("5", 199_999), (str(late), 1)]
    )


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
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        engine = opened()
        engine.read("t", connection.sql("select range as A from range(5)"))
        for _ in range(2):
            assert list(engine.fetch("select sum(A) as S from t").rows()) == [(10,)]


def test_what_was_read_before_under_the_same_name_is_gone(opened, tmp_path):
    path = text(tmp_path / "t.csv", "A\nfile\n")
    engine = opened(path)
    for source, value in (
        (path, "file"),
        (Frame({"A": ["frame"]}), "frame"),
        (path, "file"),
        ({"A": np.array([7])}, 7),
    ):
        engine.read("t", source)
        assert list(engine.fetch("select A from t").rows()) == [(value,)]


# Which engine


def test_an_engine_by_name_or_as_it_is(opened):
    engine = opened()
    with opened_engine(engine, []) as lent:
        assert lent is engine
    with opened_engine("duckdb", []) as made:
        assert isinstance(made, DuckDB)
    for name in ("polars", "DuckDB", ""):
        with (
            pytest.raises(ValueError, match=rf"^engine must be duckdb or spark, got '{name}'$"),
            opened_engine(name, []),
        ):
            pass


def test_an_engine_of_the_callers_stays_open(opened):
    engine = opened(*PATHS)
    for _ in range(2):
        tabulate(*PATHS, tables="PH2", engine=engine)
    assert list(engine.fetch("select count(*) as N from persons").rows()) == [(1210,)]


def test_spark_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.errors", None)
    with (
        pytest.raises(ImportError, match=r"^the Spark engine needs the extra spark: pip install 'plaudit\[spark\]'$"),
        opened_engine("spark", []),
    ):
        pass


# Spark


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """One session, tuned for many small queries: a tabulation is some 200 stages."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    if java is None or subprocess.run([java, "-version"], capture_output=True, check=False).returncode:
        pytest.skip("there is no Java")
    settings = {
        "spark.default.parallelism": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.log.level": "ERROR",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own
        builder = sql.SparkSession.builder.master("local[2]").appName("tests")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.mark.slow
@pytest.mark.parametrize(("truncate", "table"), [(True, "truncated"), (False, "nonprivate")])
def test_spark_gives_the_rows_of_production_and_of_duckdb(spark, truncate, table):
    engine = Spark(spark)
    found = list(tabulate(*PATHS, truncate=truncate, engine=engine, validation="full").rows())
    engine.close()
    assert found == rows(table)
    assert found == list(tabulate(*PATHS, truncate=truncate).rows())


@pytest.mark.slow
def test_spark_finds_the_same_faults_as_duckdb(spark):
    damaged = columns(PERSONS)
    damaged["QAGE"][:3] = ["116", "x", ""]
    damaged["CENRACE"][5] = "1"
    persons = Frame({name: np.array(values, dtype=object) for name, values in damaged.items()})
    told = []
    for engine in (Spark(spark), DuckDB()):
        with pytest.raises(ValueError, match="QAGE") as error:
            tabulate(persons, *(Frame(columns(path)) for path in PATHS[1:]), engine=engine)
        engine.close()
        told.append(str(error.value))
    assert told[0] == told[1]


@pytest.mark.slow
def test_spark_partitions_and_settings(spark):
    config = read_config({**CONFIG, "tau": {**CONFIG["tau"], "PH3": 2}})
    engine = Spark(spark)
    found = tabulate(*PATHS, tables=["PH3", "PH6"], config=config, engine=engine, partitions=2)
    engine.close()
    assert list(found.rows()) == list(tabulate(*PATHS, tables=["PH3", "PH6"], config=config).rows())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_spark_reads_what_duckdb_reads(spark, tmp_path):
    engine = Spark(spark)
    for content in (CSV["carriage returns"], CSV["byte order mark"], CSV["quotes"], CSV["no last line end"]):
        path = text(tmp_path / "t.csv", content)
        assert engine.read("t", path) == {"A": "text", "B": "text"}
        assert sorted(engine.fetch("select * from t").rows()) == [("#2", "y"), ("01", "x")]
    frame = {"A": ["01", "02"], "B": [1, 2]}
    pyarrow, pandas, polars, duckdb = map(pytest.importorskip, ("pyarrow", "pandas", "polars", "duckdb"))
    pyarrow.parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow.parquet.write_table(pyarrow.table(frame), tmp_path / "t.parquet")
    table = pyarrow.table(frame)
    with duckdb.connect() as connection:
        sources = [tmp_path / "t.parquet", Frame(frame), polars.DataFrame(frame), connection.from_arrow(table), table]
        for source in [*sources, pandas.DataFrame(frame), spark.createDataFrame([("01", 1), ("02", 2)], ["A", "B"])]:
            assert engine.read("t", source) == {"A": "text", "B": "whole"}
            assert sorted(engine.fetch("select * from t").rows()) == [("01", 1), ("02", 2)]
    for source in (None, 7, object()):
        with pytest.raises(TypeError, match=r"^persons, units and geo must be files or data frames, got \w+$"):
            engine.read("t", source)
    with pytest.raises(ValueError, match=r"must be \.csv or \.parquet files, got t\.txt$"):
        engine.read("t", "t.txt")
    for name in ("nowhere.csv", "nowhere.parquet"):
        with pytest.raises(ValueError, match=r"^Spark stopped: ") as told:
            engine.read("t", tmp_path / name)
        assert "\n" not in str(told.value)
    for broken in ("A,B\n1\n", "A,B\n1,2,3\n"):
        engine.read("t", text(tmp_path / "broken.csv", broken))
        with pytest.raises(ValueError, match=r"^Spark stopped: "):
            engine.fetch("select * from t")
    engine.close()
