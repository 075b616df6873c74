"""Spark as an engine gives the rows that DuckDB gives."""

from __future__ import annotations

import os
import shutil
import subprocess
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
