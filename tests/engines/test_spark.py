"""Spark as an engine gives the rows that DuckDB gives."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from algorithms.phsafe import read_config, tabulate
from algorithms.tables.duck import DuckDB
from algorithms.tables.frames import Frame
from algorithms.tables.spark import Spark
from tests.algorithms.tables.test_duck import CSV, text
from tests.golden.phsafe import CONFIG, PATHS, PERSONS, columns, rows
from tests.helpers import refused

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize(("truncate", "table"), [(True, "truncated"), (False, "nonprivate")])
def test_spark_gives_the_rows_of_production_and_of_duckdb(spark, truncate, table):
    engine = Spark(spark)
    found = list(tabulate(*PATHS, truncate=truncate, engine=engine, validation="full").rows())
    engine.close()
    assert found == rows(table)
    assert found == list(tabulate(*PATHS, truncate=truncate).rows())


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


def test_spark_partitions_and_settings(spark):
    config = read_config({**CONFIG, "tau": {**CONFIG["tau"], "PH3": 2}})
    engine = Spark(spark)
    found = tabulate(*PATHS, tables=["PH3", "PH6"], config=config, engine=engine, partitions=2)
    engine.close()
    assert list(found.rows()) == list(tabulate(*PATHS, tables=["PH3", "PH6"], config=config).rows())


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


def test_a_session_at_work_keeps_its_settings_and_goes_on(spark):
    before = dict(spark.sparkContext.getConf().getAll())
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    found = list(tabulate(*PATHS, tables="PH2", engine="spark").rows())
    assert found == list(tabulate(*PATHS, tables="PH2").rows())
    assert spark.range(3).count() == 3
    assert dict(spark.sparkContext.getConf().getAll()) == before
    assert spark.conf.get("spark.sql.shuffle.partitions") == partitions
    with refused(ValueError, "--master must be that of the session at work, local[2], got local[1]"):
        Spark(master="local[1]")


def test_a_frame_that_its_owner_keeps_stays_kept_and_another_is_forgotten(spark):
    frames = {"a": spark.createDataFrame([("01", 1)], ["A", "B"]).cache(), "b": spark.createDataFrame([(2,)], ["C"])}
    engine = Spark(spark)
    for name, frame in frames.items():
        engine.read(name, frame)
        assert frame.storageLevel.useMemory
    engine.close()
    assert [frame.storageLevel.useMemory for frame in frames.values()] == [True, False]
    frames["a"].unpersist()


SETTINGS = """
from algorithms.tables.spark import Spark
engine = Spark(master="local[1]")
print(engine._session.conf.get("spark.sql.shuffle.partitions"), engine._session.sparkContext.master)
engine.close()
"""


@pytest.mark.parametrize(("given", "partitions"), [("", "4"), ("spark.sql.shuffle.partitions 7\n", "7")])
def test_settings_of_the_installation_hold(spark, tmp_path, given, partitions):
    (tmp_path / "spark-defaults.conf").write_text(given)
    where = {**os.environ, "SPARK_CONF_DIR": str(tmp_path), "SPARK_LOCAL_HOSTNAME": "localhost"}
    done = subprocess.run([sys.executable, "-c", SETTINGS], env=where, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [partitions, "local[1]"]


def test_a_release_on_spark_from_addresses_is_that_of_duckdb(spark, tmp_path):
    files = dict(zip(("--persons", "--units", "--geo"), PATHS, strict=True))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    words = [sys.executable, "-m", "plaudit", "release", "phsafe", "--config", str(tmp_path / "config.json")]
    where = {**os.environ, "SPARK_LOCAL_HOSTNAME": "localhost"}
    ways = {
        "duck": [word for name, path in files.items() for word in (name, str(path))],
        "spark": [word for name, path in files.items() for word in (name, path.resolve().as_uri())],
    }
    ways["spark"] += ["--engine", "spark", "--master", "local[2]"]
    for out, more in ways.items():
        seeded = ["--seed", "1", "--out", str(tmp_path / out)]
        subprocess.run([*words, *more, *seeded], env=where, cwd=Path(__file__).parents[2], check=True)
    tables = sorted(path.relative_to(tmp_path / "duck") for path in (tmp_path / "duck").glob("PH*/*.csv"))
    assert len(tables) == 11
    for name in tables:
        assert (tmp_path / "spark" / name).read_bytes() == (tmp_path / "duck" / name).read_bytes()


CLUSTER = """
import os, signal, subprocess, sys
from algorithms.phsafe import tabulate
from algorithms.tables.spark import Spark

engine = Spark(master="local-cluster[2,1,2048]")
application = engine._session.sparkContext.applicationId  # which is in the command of its executors
fetch, asked = engine.fetch, []

def killing(query):
    asked.append(query)
    if len(asked) == 6:  # rows are kept by now
        executors = subprocess.run(["pgrep", "--full", application], capture_output=True, text=True).stdout.split()
        os.kill(int(executors[0]), signal.SIGKILL)
    return fetch(query)

engine.fetch = killing
for row in tabulate(*sys.argv[1:], tables=["PH2", "PH4"], engine=engine).rows():
    print(*row)
assert len(asked) > 6
engine.close()
"""


def test_a_cluster_of_processes_that_loses_one_gives_the_same_tables(spark):
    """The executor dies while rows are kept on it, between two queries."""
    where = {**os.environ, "SPARK_LOCAL_HOSTNAME": "localhost", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER, *map(str, PATHS)], env=where, capture_output=True, text=True, check=True
    )
    here = tabulate(*PATHS, tables=["PH2", "PH4"])
    assert done.stdout.splitlines() == [" ".join(map(str, row)) for row in here.rows()]
