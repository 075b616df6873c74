from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import re
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from algorithms.data import build
from algorithms.phsafe import population, tabulate
from algorithms.phsafe import synthetic as drawing
from algorithms.phsafe.population import load_households
from algorithms.phsafe.schema import GEO, PERSONS, STATES, UNITS
from algorithms.phsafe.synthetic import (
    LARGEST_FIRST,
    LARGEST_SYNTHETIC,
    synthetic_households,
    write_synthetic_households,
)
from tests.algorithms.phsafe.oracle import TWINS
from tests.helpers import refuses

DATA = Path(build.__file__).parent
FRAMES = ("persons", "units", "geo")


@pytest.fixture(scope="module")
def bundled():
    return load_households(sex=True)


@pytest.fixture(scope="module")
def synthetic():
    return synthetic_households(30_000, 20, sex=True)


def source_rows():
    return list(csv.DictReader(io.StringIO(gzip.decompress((DATA / "pseudopeople.csv.gz").read_bytes()).decode())))


# Both kinds are valid


@pytest.mark.parametrize("name", ["bundled", "synthetic"])
def test_households_are_valid_in_the_production_layout(name, request):
    households = request.getfixturevalue(name)
    _, units, geo = frames = households.persons, households.units, households.geo
    assert [frame.columns for frame in frames] == [(*PERSONS, "QSEX"), tuple(UNITS), tuple(GEO)]
    assert {frame["MAFID"].dtype for frame in frames} == {np.dtype(np.int64)}
    assert len(tabulate(*frames, "PH1_denom", validation="full")) > 0  # every rule of the checks holds
    mafids = units["MAFID"].tolist()
    assert geo["MAFID"].tolist() == mafids
    assert min(abs(np.diff(mafids))) > 1  # in no order
    assert sorted(mafids) not in (mafids, mafids[::-1])
    vacant = units.where((units["RTYPE"] == "2") & (units["FINAL_POP"] == 0))
    assert len(vacant) == ((units["RTYPE"] == "2").sum() - len(vacant)) // 10
    assert {row[2:] for row in vacant.rows()} == {(0, 0, 0, "00", "0", "0", "00", "0")}


@pytest.mark.parametrize("name", ["bundled", "synthetic"])
def test_partners_are_of_the_sex_that_their_relationship_says(name, request):
    persons = list(request.getfixturevalue(name).persons.rows())
    heads = {mafid: sex for _, mafid, _, _, _, relationship, sex in persons if relationship == "20"}
    for _, mafid, _, _, _, relationship, sex in persons:
        assert relationship not in TWINS or (sex == heads[mafid]) == (relationship in ("23", "24"))


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("bundled", "5cb7ecd0a8249c27343ba6fc6ae5e3ff1b61aefb6215118f298c97443b1e61c8"),
        ("synthetic", "75715dcc8d73b8e3fa6e26ec4828999c830162916ef328dcd4fbe60f36a1f5f9"),
    ],
    ids=["bundled", "synthetic"],
)
def test_not_a_byte_changes_from_one_version_to_the_next_unnoticed(name, known, request):
    """Sizes, states, races, tenures and ages: whatever is drawn, and how it is written down."""
    frames = [getattr(request.getfixturevalue(name), frame) for frame in FRAMES]
    lines = "\n".join(",".join(map(str, row)) for frame in frames for row in frame.rows())
    assert hashlib.sha256(lines.encode()).hexdigest() == known


# The bundled households


def test_the_extract_is_that_of_the_notice():
    content = gzip.decompress((DATA / "pseudopeople.csv.gz").read_bytes())
    notice = (DATA / "NOTICE.md").read_text("utf-8")
    row = next(line for line in notice.splitlines() if line.startswith("| `pseudopeople.csv.gz`"))
    _, _, rows, columns, people, digest, _ = (cell.strip() for cell in row.split("|"))
    assert digest == f"`{hashlib.sha256(content).hexdigest()}`"
    assert (rows, people) == ("10,387", "10,387 (simulated)")
    assert columns == ", ".join(source_rows()[0])
    assert "Copyright (c) 2023, Institute for Health Metrics and Evaluation" in notice
    assert "Neither the name of the copyright holder" in notice


def test_what_the_source_says_is_kept(bundled):
    rows, persons = source_rows(), bundled.persons
    assert persons["QAGE"].tolist() == [int(row["age"]) for row in rows]
    assert persons["QSEX"].tolist() == [{"Male": "1", "Female": "2"}[row["sex"]] for row in rows]
    relationships = set(zip((row["relationship"] for row in rows), persons["RELSHIP"], strict=True))
    assert len(relationships) == 19 == len({code for _, code in relationships})
    assert {("Reference person", "20"), ("Opposite-sex spouse", "21"), ("Stepchild", "27")} <= relationships
    together = set(zip((row["household"] for row in rows), persons["MAFID"].tolist(), strict=True))
    assert len(together) == 4_076 == len({mafid for _, mafid in together})
    races = {}
    for row, hispanic, race in zip(rows, persons["CENHISP"], persons["CENRACE"], strict=True):
        races.setdefault(row["race_ethnicity"], set()).add((int(hispanic), race))
    assert {name: races[name] for name in ("White", "Black", "AIAN", "Asian", "NHOPI")} == {
        "White": {(1, "01")},
        "Black": {(1, "02")},
        "AIAN": {(1, "03")},
        "Asian": {(1, "04")},
        "NHOPI": {(1, "05")},
    }
    assert {hispanic for hispanic, _ in races["Latino"]} == {2}
    assert {"01", "06", "11"} <= {race for _, race in races["Latino"]}
    assert {hispanic for hispanic, _ in races["Multiracial or Other"]} == {1}
    assert min(race for _, race in races["Multiracial or Other"]) == "06"
    young = [row["age"] for row in rows if row["relationship"] == "Reference person" and int(row["age"]) < 18]
    assert len(young) == 16
    assert min(map(int, young)) == 1


def test_loading_is_deterministic_and_sex_only_a_column():
    plain, again = load_households(), load_households(sex=True)
    assert plain.persons.columns == tuple(PERSONS)
    assert again.persons.columns == (*PERSONS, "QSEX")
    assert list(plain.persons.rows()) == [row[:-1] for row in again.persons.rows()]
    for frame in ("units", "geo"):
        assert list(getattr(plain, frame).rows()) == list(getattr(again, frame).rows())


# Writing


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_written_files_hold_the_same_rows(tmp_path, format):
    households = synthetic_households(100, 3, 2)
    paths = households.write(tmp_path / "new" / "folder's", format)
    assert [path.name for path in paths] == [f"{frame}.{format}" for frame in FRAMES]
    assert sorted(os.listdir(paths[0].parent)) == sorted(path.name for path in paths)
    for frame, path in zip(FRAMES, paths, strict=True):
        rows = getattr(households, frame)
        with duckdb.connect() as connection:
            text = connection.read_csv(str(path), all_varchar=True) if format == "csv" else None
            found = text if text is not None else connection.read_parquet(str(path))
            assert tuple(found.columns) == rows.columns
            kinds = ["VARCHAR" if rows[name].dtype == object or text is not None else "BIGINT" for name in rows.columns]
            assert [str(kind) for kind in found.types] == kinds
            expected = [tuple(map(str, row)) for row in rows.rows()] if format == "csv" else list(rows.rows())
            assert found.fetchall() == expected


def test_a_failed_write_leaves_nothing(tmp_path):
    (tmp_path / "persons.parquet").mkdir()
    with pytest.raises(OSError, match="persons"):
        synthetic_households(100, 3, 2).write(tmp_path, "parquet")
    assert os.listdir(tmp_path) == ["persons.parquet"]
    with pytest.raises(OSError, match="persons"):
        write_synthetic_households(tmp_path, 100, 3, states=2)
    assert os.listdir(tmp_path) == ["persons.parquet"]


# Synthetic households


@settings(max_examples=30)
@given(states=st.integers(1, 51), more=st.integers(0, 600), seed=st.integers(0, 2**32 - 1))
def test_exactly_so_many_people_and_a_household_in_each_state(states, more, seed):
    households = synthetic_households(20 * states + more, seed, states)
    persons, units, geo = households.persons, households.units, households.geo
    assert len(persons) == units["FINAL_POP"].sum() == 20 * states + more
    occupied = (units["RTYPE"] == "2") & (units["FINAL_POP"] > 0)
    assert len(set(geo["TABBLKST"][occupied])) == states
    assert set(geo["TABBLKST"]) == set(LARGEST_FIRST[:states])
    assert units["FINAL_POP"][occupied].max() <= 16
    assert units["FINAL_POP"][units["RTYPE"] == "4"].sum() == (persons["RTYPE"] == "5").sum()


def test_the_same_seed_gives_the_same_households():
    rows = [[list(getattr(synthetic_households(1_020, seed), frame).rows()) for frame in FRAMES] for seed in (1, 1, 2)]
    assert rows[0] == rows[1]
    assert all(one != other for one, other in zip(rows[0], rows[2], strict=True))
    generator = np.random.default_rng(1)
    assert list(synthetic_households(1_020, generator).persons.rows()) == rows[0][0]
    assert list(synthetic_households(1_020, generator).persons.rows()) != rows[0][0]


def test_parts_are_distinct_and_written_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "CHUNK", 1_100)
    households = synthetic_households(3_000, 4, sex=True)
    assert len(households.persons) == 3_000
    assert len(set(households.units["MAFID"].tolist())) == len(households.units)
    paths = write_synthetic_households(tmp_path / "new", 3_000, 4, sex=True)
    assert sorted(os.listdir(tmp_path / "new")) == ["geo.parquet", "persons.parquet", "units.parquet"]
    for frame, path in zip(FRAMES, paths, strict=True):
        rows = duckdb.read_parquet(str(path))
        assert tuple(rows.columns) == getattr(households, frame).columns
        assert rows.fetchall() == list(getattr(households, frame).rows())


def test_states_have_the_sizes_of_the_census(synthetic):
    # Chi-square over 51 states; false alarm 1e-6. As a control, states of one size are refused.
    assert set(population.DIVISION) == set(STATES)
    counts = Counter(synthetic.geo["TABBLKST"])
    people = np.array([population.POPULATION[population.DIVISION[state]][state] for state in STATES])
    assert people.sum() == pytest.approx(331_449, abs=5)  # thousands, 2020 census
    seen = np.array([counts[state] for state in STATES])
    assert stats.chisquare(seen, people / people.sum() * seen.sum()).pvalue > 1e-6
    assert stats.chisquare(seen).pvalue < 1e-6
    places = dict(zip(synthetic.geo["TABBLKST"], synthetic.geo["DIVISIONCE"], strict=True))
    assert [places[state] for state in ("09", "36", "17", "27", "10", "01", "48", "56", "06")] == list("123456789")
    regions = dict(zip(synthetic.geo["DIVISIONCE"], synthetic.geo["REGIONCE"], strict=True))
    assert "".join(regions[division] for division in "123456789") == "112233344"


@given(seed=st.integers(0, 2**32 - 1), indices=st.lists(st.integers(0, 799_999_998), min_size=2, unique=True))
def test_mafids_are_distinct(seed, indices):
    mafids = population.scrambled(np.random.default_rng(seed))(np.array(indices))
    assert len(set(mafids.tolist())) == len(indices)
    assert mafids.min() >= 100_000_001
    assert mafids.max() <= 899_999_999


@pytest.mark.parametrize(
    ("people", "states", "error", "message"),
    [
        (1_000.0, 51, TypeError, "people must be an integer, got 1000.0"),
        (2_000, "06", TypeError, "states must be an integer, got '06'"),
        (2_000, 0, ValueError, "states must be between 1 and 51, got 0"),
        (1_019, 51, ValueError, f"people must be between 1020 and {LARGEST_SYNTHETIC}, got 1019"),
        (10**9, 51, ValueError, f"people must be between 1020 and {LARGEST_SYNTHETIC}, got 1000000000"),
    ],
)
def test_numbers_out_of_range_are_refused(tmp_path, people, states, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        synthetic_households(people, 0, states)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        write_synthetic_households(tmp_path / "new", people, 0, states=states)
    assert os.listdir(tmp_path) == []


def test_names_that_there_are_not_are_refused(tmp_path):
    refuses(ValueError, "name must be 'pseudopeople', got 'morocco'", load_households, "morocco")
    words = "format must be 'csv' or 'parquet', got 'xlsx'"
    refuses(ValueError, words, synthetic_households(100, 3, 2).write, tmp_path / "new", "xlsx")
    assert os.listdir(tmp_path) == []
