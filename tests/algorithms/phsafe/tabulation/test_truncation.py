"""Who of a large household is kept: row by row as production keeps them, and as the recipe in plain Python says."""

from collections import Counter
from contextlib import closing
from operator import itemgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.phsafe.schema import PERSONS as DOMAINS
from algorithms.phsafe.tables import QUERIES, TAU
from algorithms.phsafe.tabulation.cubes import kept_query, truncation_query
from algorithms.phsafe.tabulation.intake import read_frame
from algorithms.release.duck import DuckDB
from tests.algorithms.phsafe.oracle import kept_by_hand, sort_key
from tests.golden.phsafe import PERSONS, ranked, typed

FILTERS = ("PH1_num", "PH3", "PH4", "PH6")
NAMES = tuple(DOMAINS)


@pytest.fixture(scope="module")
def golden():
    with closing(DuckDB([PERSONS], threads=1)) as engine:
        read_frame(engine, "persons", PERSONS, DOMAINS)
        yield engine


@pytest.mark.parametrize("name", FILTERS)
def test_every_row_of_a_truncated_household_is_ranked_as_production_ranks_it(golden, name):
    result = golden.fetch(truncation_query(QUERIES[name].persons, TAU[name]))
    mine = [dict(zip(result.columns, row, strict=True)) for row in result.rows()]
    for row in mine:
        row["KEPT"] = int(row["RANK"] <= TAU[name])
    by_rank = itemgetter("MAFID", "RANK")
    wanted = sorted(ranked()[name], key=by_rank)
    assert sorted(mine, key=by_rank) == wanted
    assert len(set(map(by_rank, wanted))) == len(wanted) > 0


def test_queries_that_count_the_same_persons_keep_the_same_ones():
    for name in ("PH2", "PH7"):
        assert (QUERIES[name].persons, TAU[name]) == (QUERIES["PH1_num"].persons, TAU["PH1_num"])


def test_the_recipe_in_plain_python_gives_the_same_hashes():
    for rows in ranked().values():
        for row in rows:
            assert sort_key(tuple(row[name] for name in NAMES), row["DUPLICATE_INDEX"]) == row["SORT_KEY"]


PERSON = st.tuples(
    st.sampled_from(("3", "3", "3", "5")),
    st.sampled_from((100_000_001, 100_000_002, 899_999_999)),
    st.sampled_from((0, 1, 17, 18, 115)),
    st.sampled_from((1, 2)),
    st.sampled_from(("01", "02", "63")),
    st.sampled_from(("20", "25", "26", "34")),
)


def from_rows(rows):
    return typed(dict(zip(NAMES, list(zip(*rows, strict=True)) or [()] * len(NAMES), strict=True)))


@given(rows=st.lists(PERSON, max_size=30), name=st.sampled_from(FILTERS), tau=st.integers(1, 5))
@settings(max_examples=25)
def test_any_persons_are_truncated_as_the_recipe_says(database, rows, name, tau):
    counted = {
        "PH1_num": lambda r: r[0] == "3",
        "PH3": lambda r: r[0] == "3" and r[2] < 18,
        "PH4": lambda r: r[5] in ("20", "25", "26"),
        "PH6": lambda r: r[2] < 18 and r[5] in ("25", "26"),
    }[name]
    read_frame(database, "persons", from_rows(rows), DOMAINS)
    kept = database.fetch(kept_query(QUERIES[name].persons, tau))
    assert Counter(kept.rows()) == kept_by_hand(filter(counted, rows), tau)
    everybody = database.fetch(kept_query(QUERIES[name].persons, None))
    assert Counter(everybody.rows()) == Counter(filter(counted, rows))
