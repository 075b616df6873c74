"""Building the bundled extract of households from the file that it is in."""

import gzip

import duckdb
import pytest

from algorithms.data import build


def built(folder, people):
    """The extract of a made-up package."""
    parquet = folder / "pseudopeople/data/sample_datasets/decennial_census/decennial_census.parquet"
    parquet.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute(
            "create table people (household_id varchar, housing_type varchar, relationship_to_reference_person varchar,"
            "race_ethnicity varchar, sex varchar, age bigint, year bigint, __index_level_0__ bigint, name varchar)"
        )
        connection.executemany("insert into people values (?, ?, ?, 'White', 'Male', ?, ?, ?, 'Kim')", people)
        connection.table("people").write_parquet(str(parquet))
    build.build(build.SOURCES["pseudopeople"], folder, folder)
    return (folder / "pseudopeople.csv.gz").read_bytes()


PEOPLE = [
    ("0_10", "Household", "Sibling", 6, 2020, 3),
    ("0_9", "Household", "Reference person", 5, 2020, 4),
    ("0_10", "Household", "Reference person", 7, 2020, 1),
    ("0_1", "College", "Noninstitutionalized group quarters population", 19, 2020, 2),
    ("0_11", "Household", "Reference person", 7, 2030, 5),
]


def test_the_build_keeps_one_year_in_order(tmp_path):
    assert gzip.decompress(built(tmp_path, PEOPLE)).decode() == (
        "household,housing_type,relationship,race_ethnicity,sex,age\n"
        "0_1,College,Noninstitutionalized group quarters population,White,Male,19\n"
        "0_9,Household,Reference person,White,Male,5\n"
        "0_10,Household,Reference person,White,Male,7\n"
        "0_10,Household,Sibling,White,Male,6\n"
    )


TWO_HEADS, NO_HEAD = (("0_9", "Household", "Reference person", 5, 2020, 6), ("0_8", "Household", "Sibling", 5, 2020, 6))


@pytest.mark.parametrize("person", [TWO_HEADS, NO_HEAD, ("0_1", "College", "Reference person", 5, 2020, 6)])
def test_the_build_stops_at_households_without_one_head(tmp_path, person):
    with pytest.raises(SystemExit, match=r"^build: every household must have one reference person"):
        built(tmp_path, [*PEOPLE, person])
