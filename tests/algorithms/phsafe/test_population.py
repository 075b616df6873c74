import csv
import gzip
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.data import build
from algorithms.phsafe import population, tabulate
from algorithms.phsafe.population import load_households
from algorithms.phsafe.schema import GEO, PERSONS, UNITS
from tests.algorithms.phsafe.oracle import TWINS

DATA = Path(build.__file__).parent
FRAMES = ("persons", "units", "geo")


@pytest.fixture(scope="module")
def bundled():
    return load_households(sex=True)


def test_households_are_valid_in_the_production_layout(bundled):
    _, units, geo = frames = bundled.persons, bundled.units, bundled.geo
    assert [frame.columns for frame in frames] == [(*PERSONS, "QSEX"), tuple(UNITS), tuple(GEO)]
    assert {frame["MAFID"].dtype for frame in frames} == {np.dtype(np.int64)}
    assert len(tabulate(*frames, "PH1_denom", validation="full")) > 0  # every rule of the checks holds
    mafids = units["MAFID"].tolist()
    assert geo["MAFID"].tolist() == mafids
    assert sorted(mafids) not in (mafids, mafids[::-1])  # in no order
    assert min(abs(np.diff(mafids))) > 1
    vacant = units.where((units["RTYPE"] == "2") & (units["FINAL_POP"] == 0))
    assert len(vacant) == ((units["RTYPE"] == "2").sum() - len(vacant)) // 10
    assert {row[2:] for row in vacant.rows()} == {(0, 0, 0, "00", "0", "0", "00", "0")}


def test_partners_are_of_the_sex_that_their_relationship_says(bundled):
    persons = list(bundled.persons.rows())
    heads = {mafid: sex for _, mafid, _, _, _, relationship, sex in persons if relationship == "20"}
    for _, mafid, _, _, _, relationship, sex in persons:
        assert relationship not in TWINS or (sex == heads[mafid]) == (relationship in ("23", "24"))


def test_not_a_byte_changes_from_one_version_to_the_next_unnoticed(bundled):
    """Sizes, states, races, tenures and ages: whatever is drawn, and how it is written down."""
    lines = "\n".join(",".join(map(str, row)) for frame in FRAMES for row in getattr(bundled, frame).rows())
    known = "5cb7ecd0a8249c27343ba6fc6ae5e3ff1b61aefb6215118f298c97443b1e61c8"
    assert hashlib.sha256(lines.encode()).hexdigest() == known


def test_what_the_source_says_is_kept(bundled):
    source = gzip.decompress((DATA / "pseudopeople.csv.gz").read_bytes()).decode()
    rows, persons = list(csv.DictReader(io.StringIO(source))), bundled.persons
    assert list(load_households().persons.rows()) == [row[:-1] for row in persons.rows()]  # but for their sex
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
    for code, name in enumerate(("White", "Black", "AIAN", "Asian", "NHOPI"), 1):
        assert races[name] == {(1, f"0{code}")}
    assert {hispanic for hispanic, _ in races["Latino"]} == {2}
    assert {"01", "06", "11"} <= {race for _, race in races["Latino"]}
    assert {hispanic for hispanic, _ in races["Multiracial or Other"]} == {1}
    assert min(race for _, race in races["Multiracial or Other"]) == "06"


@given(seed=st.integers(0, 2**32 - 1), indices=st.lists(st.integers(0, 799_999_998), min_size=2, unique=True))
def test_mafids_are_distinct(seed, indices):
    mafids = population.scrambled(np.random.default_rng(seed))(np.array(indices))
    assert len(set(mafids.tolist())) == len(indices)
    assert mafids.min() >= 100_000_001
    assert mafids.max() <= 899_999_999
