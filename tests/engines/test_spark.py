"""Spark as an engine gives the rows that DuckDB gives."""

import json
import os
import shutil
import subprocess
import sys
import venv
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest

from algorithms.phsafe import read_config, tabulate
from algorithms.phsafe.schema import FRAMES
from algorithms.phsafe.tabulation.derive import derive_units
from algorithms.phsafe.tabulation.intake import each_part
from algorithms.phsafe.tabulation.tabulate import tabulation
from algorithms.release.duck import DuckDB
from algorithms.release.frames import Frame
from algorithms.release.spark import Spark
from tests.algorithms.release.test_duck import CSV, text
from tests.golden.phsafe import CONFIG, PATHS, PERSONS, columns, rows
from tests.helpers import refuses
from tests.households import write_synthetic_households

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])  # of the processes that are started


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """One session, tuned for small data."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    if java is None or subprocess.run([java, "-version"], capture_output=True, check=False).returncode:
        pytest.skip("there is no Java")
    settings = {
        "spark.default.parallelism": "1",
        "spark.sql.adaptive.enabled": "false",  # or few rows are put together into one part
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
    }
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # pyspark's own
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = sql.SparkSession.builder.master("local[2]").appName("tests")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.mark.parametrize(("truncate", "table"), [(True, "truncated"), (False, "nonprivate")])
def test_spark_gives_the_rows_of_production(spark, truncate, table):
    engine = Spark(spark)
    found = list(tabulate(*PATHS, truncate=truncate, engine=engine, validation="full").rows())
    engine.close()
    assert found == rows(table)


def fault(engine, persons):
    """What an engine says of persons that break a rule."""
    with pytest.raises(ValueError, match="QAGE") as error:
        tabulate(persons, *PATHS[1:], engine=engine)
    engine.close()
    return str(error.value)


def test_spark_finds_the_same_faults_as_duckdb(spark):
    damaged = columns(PERSONS)
    damaged["QAGE"][:3] = ["116", "x", ""]
    damaged["CENRACE"][5] = "1"
    persons = Frame({name: np.array(values, dtype=object) for name, values in damaged.items()})
    assert fault(Spark(spark), persons) == fault(DuckDB(PATHS), persons)


def test_settings_hold_and_parts_are_for_duckdb(spark):
    config = read_config({**CONFIG, "tau": {**CONFIG["tau"], "PH3": 2}})
    found = tabulate(*PATHS, tables=["PH3", "PH6"], config=config, engine=Spark(spark))
    assert list(found.rows()) == list(tabulate(*PATHS, tables=["PH3", "PH6"], config=config).rows())
    rule = "--partitions is for duckdb, got 2; for Spark set spark.sql.shuffle.partitions"
    refuses(ValueError, rule, tabulate, *PATHS, engine=Spark(spark), partitions=2)


@pytest.mark.parametrize("shuffles", [1, 3])
def test_parts_of_more_households_give_the_counts_of_duckdb(spark, tmp_path, shuffles):
    """Numbers of households are text among persons, and whole numbers elsewhere."""
    write_synthetic_households(tmp_path, 20_000, 1)
    paths = [tmp_path / f"{name}.parquet" for name in ("persons", "units", "geo")]
    persons = spark.read.parquet(str(paths[0])).selectExpr("* except (MAFID)", "lpad(MAFID, 9, '0') as mafid")
    engine = Spark(spark)
    try:
        spark.conf.set("spark.sql.shuffle.partitions", shuffles)
        found = tabulation(persons, *paths[1:], engine=engine)
        assert len(engine.each_part({"units": {"MAFID": ("MAFID", "whole")}}, "MAFID", len)) == shuffles
        derived = derive_units(persons.selectExpr("*", "cast(1 + QAGE % 2 as string) as QSEX"), paths[1], engine=engine)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", 1)
    here = tabulation(*paths)
    assert (found.states, found.counts.keys()) == (here.states, here.counts.keys())
    assert all(np.array_equal(found.counts[key], counts) for key, counts in here.counts.items())
    pandas = pytest.importorskip("pandas")
    with_sex = pandas.read_parquet(paths[0])
    with_sex["QSEX"] = (1 + with_sex["QAGE"] % 2).astype(str)
    assert list(derived.rows()) == list(derive_units(with_sex, paths[1]).rows())


def test_what_is_no_session_and_a_column_that_is_there_twice_are_refused(spark):
    refuses(TypeError, "session must be a session of Spark, got 'local[2]'", Spark, "local[2]")
    frame = spark.createDataFrame([("01", "02")], ["A", "a"])
    refuses(ValueError, "persons must have one column A, got several", Spark(spark).read, "persons", frame)


def rows_on(engine, source):
    """Read a frame through the workers."""
    kinds = engine.read("t", source)
    parts = engine.each_part({"t": {name: (name, kind) for name, kind in kinds.items()}}, "A", itemgetter("t"))
    return kinds, sorted(tuple(row.values()) for part in parts for row in part.to_pylist())


def test_spark_reads_what_duckdb_reads(spark, tmp_path):
    engine = Spark(spark)
    for content in (CSV["carriage returns"], CSV["byte order mark"], CSV["quotes"], CSV["no last line end"]):
        kinds = {"A": "text", "B": "text"}
        assert rows_on(engine, text(tmp_path / "t.csv", content)) == (kinds, [("#2", "y"), ("01", "x")])
    frame, none = {"A": ["01", "02"], "B": [1, 2]}, {"A": [], "B": []}
    pyarrow, pandas, polars, duckdb = map(pytest.importorskip, ("pyarrow", "pandas", "polars", "duckdb"))
    table, without_rows = pyarrow.table(frame), pyarrow.table(dict.fromkeys(none, pyarrow.array([], pyarrow.string())))
    pandas.DataFrame(frame).to_parquet(tmp_path / "t.parquet")
    with duckdb.connect() as connection:
        sources = [tmp_path / "t.parquet", Frame(frame), polars.DataFrame(frame), connection.from_arrow(table), table]
        for source in [*sources, pandas.DataFrame(frame), spark.createDataFrame([("01", 1), ("02", 2)], ["A", "B"])]:
            assert rows_on(engine, source) == ({"A": "text", "B": "whole"}, [("01", 1), ("02", 2)])
        sources = [Frame(none), polars.from_arrow(without_rows), connection.from_arrow(without_rows), without_rows]
        for source in [*sources, pandas.DataFrame(none)]:
            assert rows_on(engine, source) == ({"A": "text", "B": "text"}, [])
    for source in (None, 7, object()):
        with pytest.raises(TypeError, match=r"^persons, units and geo must be files or data frames, got \w+$"):
            engine.read("t", source)
    with pytest.raises(ValueError, match=r"must be \.csv or \.parquet files, got t\.txt$"):
        engine.read("t", "t.txt")
    for name in ("nowhere.csv", "nowhere.parquet"):
        with pytest.raises(ValueError, match=r"^Spark stopped: ") as failure:
            engine.read("t", tmp_path / name)
        assert "\n" not in str(failure.value)
    for broken in ("A,B\n1\n", "A,B\n1,2,3\n"):
        kinds = engine.read("t", text(tmp_path / "broken.csv", broken))
        with pytest.raises(ValueError, match=r"^Spark stopped: "):
            engine.each_part({"t": {"A": ("A", "text")}}, "A", itemgetter("t"))


def test_a_session_at_work_is_left_as_it_was_and_goes_on(spark):
    before, partitions = dict(spark.sparkContext.getConf().getAll()), spark.conf.get("spark.sql.shuffle.partitions")
    frames = [
        spark.read.parquet(str(path)) if path.suffix == ".parquet" else spark.read.csv(str(path), header=True)
        for path in PATHS
    ]
    frames[0].cache()
    assert list(tabulate(*frames, tables="PH2", engine="spark").rows()) == list(tabulate(*PATHS, tables="PH2").rows())
    assert [frame.storageLevel.useMemory for frame in frames] == [True, False, False]
    assert spark.catalog.listTables() == []
    frames[0].unpersist()
    with ThreadPoolExecutor(1) as threads:  # of which it is not the session
        threads.submit(tabulate, *PATHS, tables="PH2", engine="spark").result()
    assert spark.range(3).count() == 3
    assert dict(spark.sparkContext.getConf().getAll()) == before
    assert spark.conf.get("spark.sql.shuffle.partitions") == partitions
    rule = "--master must be that of the session at work, local[2], got local[1]"
    refuses(ValueError, rule, Spark, master="local[1]")


def in_a_process(*words, check=True, **environment):
    """Run Python without the session of the tests."""
    settings = {**os.environ, "SPARK_LOCAL_HOSTNAME": "localhost", "PYTHONPATH": PATH, **environment}
    return subprocess.run([sys.executable, *words], env=settings, cwd=ROOT, capture_output=True, text=True, check=check)


SETTINGS = """
from algorithms.release.spark import Spark
engine = Spark(master="local[1]")
print(engine._session.conf.get("spark.sql.shuffle.partitions"), engine._session.sparkContext.master)
engine.close()
"""


@pytest.mark.parametrize(("given", "partitions"), [("", "4"), ("spark.sql.shuffle.partitions 7\n", "7")])
def test_settings_of_the_installation_hold(spark, tmp_path, given, partitions):
    (tmp_path / "spark-defaults.conf").write_text(given)
    done = in_a_process("-c", SETTINGS, SPARK_CONF_DIR=str(tmp_path))
    assert done.stdout.split() == [partitions, "local[1]"]


def released(folder, out, files, *more, **options):
    """Release in a process of its own."""
    (folder / "config.json").write_text(json.dumps(CONFIG))
    given = [word for name, file in zip(("--persons", "--units", "--geo"), files, strict=True) for word in (name, file)]
    words = ["-m", "plaudit", "release", "phsafe", "--config", folder / "config.json", *given, *more]
    return in_a_process(*map(str, [*words, "--seed", 1, "--out", folder / out]), **options)


def test_a_release_on_spark_from_addresses_is_that_of_duckdb(spark, tmp_path):
    released(tmp_path, "duck", PATHS)
    addresses = [path.resolve().as_uri() for path in PATHS]
    released(tmp_path, "spark", addresses, "--engine", "spark", "--master", "local[2]")
    tables = sorted(path.relative_to(tmp_path / "duck") for path in (tmp_path / "duck").glob("PH*/*.csv"))
    assert len(tables) == 11
    for name in tables:
        assert (tmp_path / "spark" / name).read_bytes() == (tmp_path / "duck" / name).read_bytes()


def test_workers_without_the_packages_are_told_in_one_line(spark, tmp_path):
    venv.create(tmp_path / "bare")
    options = {"check": False, "PYSPARK_PYTHON": str(tmp_path / "bare/bin/python")}
    done = released(tmp_path, "out", PATHS, "--engine", "spark", "--master", "local[1]", **options)
    assert done.returncode == 2
    assert "the Python of Spark's workers (PYSPARK_PYTHON) needs plaudit[spark]: ModuleNotFoundError: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_decimal_that_a_double_would_round_is_no_whole_number(spark):
    pyarrow = pytest.importorskip("pyarrow")
    others = columns(PERSONS)
    ages = [Decimal(age) for age in others.pop("QAGE")]

    def persons(ages):
        return pyarrow.table({**others, "QAGE": pyarrow.array(ages, pyarrow.decimal128(38, 30))})

    tables = tabulate(persons(ages), *PATHS[1:], "PH2", engine=Spark(spark))
    assert list(tables.rows()) == list(tabulate(*PATHS, "PH2").rows())
    ages[3] += Decimal("1e-25")
    rule = "persons: QAGE must be a whole number of 0 to 115; 1 row broke it"
    for engine in (Spark(spark), DuckDB(PATHS)):
        assert fault(engine, persons(ages)).startswith(rule)


def test_an_interrupt_that_cuts_the_connection_is_an_interrupt(spark):
    from py4j.protocol import Py4JNetworkError

    cut = Py4JNetworkError("Answer from Java side is empty")
    cut.__context__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), Spark(spark)._one_line_errors():
        raise cut


def test_a_worker_keeps_to_a_limit_of_memory(spark):
    """Which is no part of what a machine has."""
    query = "select current_setting('memory_limit') as most"
    persons = Frame(columns(PERSONS))
    parts = each_part(
        Spark(spark), {"persons": persons}, FRAMES, lambda database, _: database.fetch(query)["most"].tolist()
    )
    assert {most for part in parts for most in part} == {"953.6 MiB"}
