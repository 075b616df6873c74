"""Exact tables: those of production to the last row, and those of a tabulation in plain Python on any households."""

from collections import Counter

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from algorithms.phsafe import read_config, tabulate
from algorithms.phsafe.schema import GEO, PERSONS, STATES, UNITS, Whole
from algorithms.phsafe.tables import LEVELS, PUBLISHED, QUERIES, split_level
from algorithms.phsafe.tabulation.tabulate import tabulation
from algorithms.release.frames import Frame
from tests.algorithms.phsafe.oracle import by_hand
from tests.golden.phsafe import CONFIG, HERE, PATHS, columns, frames, rows, typed
from tests.households import synthetic_households


@pytest.fixture(scope="module")
def made():
    return {"truncated": tabulate(*PATHS), "nonprivate": tabulate(*PATHS, truncate=False)}


@pytest.mark.parametrize(("table", "size"), [("truncated", 976), ("nonprivate", 1475)])
def test_tables_are_those_of_production_to_the_byte(tmp_path, made, table, size, record_property):
    record_property("tried", size)
    result = made[table]
    assert result.columns == ("TABLE", "REGION_TYPE", "REGION_ID", "ITERATION_CODE", "DATA_CELL", "COUNT")
    assert result["COUNT"].dtype == np.int64
    assert list(result.rows()) == rows(table)
    assert len(result) == size
    result.to_csv(tmp_path / "made.csv")
    assert (tmp_path / "made.csv").read_bytes() == (HERE / f"{table}.csv").read_bytes()


@pytest.mark.parametrize(
    "options",
    [{"validation": "none", "config": read_config(CONFIG)}, {"partitions": 2, "truncate": False}, {"partitions": 3}],
)
def test_what_changes_no_count(database, options):
    table = "nonprivate" if "truncate" in options else "truncated"
    assert list(tabulate(*PATHS, engine=database, **options).rows()) == rows(table)


def test_some_of_the_tables(database):
    for names, truncate, table in (
        ("PH5_num", True, "truncated"),
        (["PH8_num", "PH1_denom"], False, "nonprivate"),
        (("PH6", "PH3", "PH7"), True, "truncated"),
    ):
        result = tabulate(*PATHS, names, truncate=truncate, validation="none", engine=database)
        wanted = [names] if isinstance(names, str) else names
        assert list(result.rows()) == [row for row in rows(table) if row[0] in wanted]


def test_the_same_households_in_any_form_give_the_same_counts():
    """Arrow's dictionaries; categories of pandas, rows in another order, small letters; lazy frames of polars."""
    persons, units, geo = (frame.to_dict() for frame in frames())
    table = pa.table({name: pa.array(values.tolist()) for name, values in persons.items()})
    words = [column.dictionary_encode() if column.type == "string" else column for column in table.columns]
    frame = pandas.DataFrame(units).sample(frac=1.0, random_state=2).rename(columns=str.lower)
    frame = frame.astype(dict.fromkeys(frame.select_dtypes(exclude="number").columns, "category"))
    given_frames = pa.table(words, names=table.column_names), frame, polars.DataFrame(geo).lazy()
    result = tabulate(*given_frames, ("PH2", "PH3", "PH8_denom"), validation="production")
    assert list(result.rows()) == [row for row in rows("truncated") if row[0] in ("PH2", "PH3", "PH8_denom")]


def random_frames(rng, size, people):
    """Units and persons whose codes are any of their domains, consistent or not, in three states."""

    def drawn(domain, number):
        if isinstance(domain, Whole):
            values = domain.least + rng.integers(0, min(domain.most - domain.least, 115) + 1, number)
            return np.where(np.isin(values, domain.without), domain.least, values)
        few = domain.codes if len(domain.codes) < 60 else (*domain.codes[:8], domain.codes[-1])  # of races
        return np.array(rng.choice(few, number), dtype=object)

    mafids = 100_000_001 + np.arange(size)
    unit_types = np.array(rng.choice(["2", "2", "2", "4"], size), dtype=object)
    units = Frame(
        {name: drawn(domain, size) for name, domain in UNITS.items()} | {"RTYPE": unit_types, "MAFID": mafids}
    )
    places = {name: np.array(["0"] * size, dtype=object) for name in GEO} | {"RTYPE": unit_types, "MAFID": mafids}
    geo = Frame(places | {"TABBLKST": np.array(rng.choice(["01", "36", "56"], size), dtype=object)})
    columns = {name: drawn(domain, people) for name, domain in PERSONS.items()}
    columns["MAFID"] = rng.choice(mafids, people)
    columns["QAGE"] = rng.choice([0, 3, 4, 5, 6, 11, 12, 17, 18, 40, 115], people)
    columns["RELSHIP"] = rng.choice(["20", "21", "23", "25", "26", "27", "30", "33", "36"], people).astype(object)
    return Frame(columns), units, geo


HOUSEHOLDS = st.tuples(st.integers(0, 2**32), st.integers(1, 6), st.integers(0, 40), st.integers(1, 5))


@given(HOUSEHOLDS)
@settings(max_examples=3)
@example((1, 300, 2_000, 1))
@example((10, 300, 2_000, 10))
def test_any_households_are_counted_as_by_hand(database, drawn):
    seed, size, people, tau = drawn
    households = random_frames(np.random.default_rng(seed), size, people)
    taus = dict.fromkeys(CONFIG["tau"], tau) | {"PH3": 2, "PH6": 1}
    config = read_config({**CONFIG, "tau": {**CONFIG["tau"], **taus}, "state_filter": ["01", "36", "56"]})
    result = tabulate(*households, config=config, engine=database, validation="none")
    wanted = by_hand(*households, taus)
    measured = (row for row in result.rows() if row[0] in QUERIES)  # two numerators are sums of others
    assert Counter({(row[0], *row[2:5]): row[5] for row in measured if row[5]}) == wanted
    if size == 300:
        assert {key[0] for key in wanted} == set(QUERIES)
        assert len(wanted) > 600  # of 4 regions and 204 cells


def test_every_cell_of_the_united_states_and_of_puerto_rico_has_a_row(database):
    # Section 1.4 of the layout: 12,688 and 244 rows.
    rows_of = dict.fromkeys(("PH1_num", "PH4", "PH5_num", "PH8_num", "PH8_denom"), 1040)
    rows_of |= {"PH1_denom": 520, "PH5_denom": 520, "PH2": 416, "PH3": 3640, "PH6": 832, "PH7": 1560}
    homes = synthetic_households(1_100, rng=1)
    frames_given = homes.persons, homes.units, homes.geo
    result = tabulate(*frames_given, config=read_config("us"), validation="none", engine=database)
    assert Counter(result["TABLE"].tolist()) == rows_of
    assert len(result) == 12_688 == len({row[:-1] for row in result.rows()})
    assert len(set(result.where(result["REGION_TYPE"] == "STATE")["REGION_ID"])) == len(STATES)

    island = Frame({**homes.geo.to_dict(), "TABBLKST": np.array(["72"] * len(homes.geo), dtype=object)})
    result = tabulate(*frames_given[:2], island, config=read_config("pr"), engine=database)
    assert len(result) == 244
    assert set(result["REGION_ID"]) == {"72"}


def test_a_state_of_vacant_units_and_an_empty_nation_have_all_their_zeros(database):
    persons, units, geo = map(columns, PATHS)
    vacant = next(place for place, kind in enumerate(units["HHT"]) if kind == "0" and units["RTYPE"][place] == "2")
    geo["TABBLKST"][geo["MAFID"].index(units["MAFID"][vacant])] = "30"
    result = tabulate(*map(typed, (persons, units, geo)), engine=database)
    there = result.where(result["REGION_ID"] == "30")
    empty = [frame.where(np.zeros(len(frame), bool)) for frame in frames()]
    nation = tabulate(*empty, engine=database)
    assert set(nation["REGION_TYPE"]) == {"USA"}
    for zeros in (there, nation):
        assert len(zeros) == 244
        assert not zeros["COUNT"].any()
    assert len(tabulate(*empty, truncate=False, validation="none", engine=database)) == 0


def test_group_quarters_are_not_counted(database):
    persons, units, geo = frames()
    housing = set(units["MAFID"][units["RTYPE"] == "2"])
    fewer = [frame.where(np.isin(frame["MAFID"], list(housing))) for frame in (persons, units, geo)]
    assert len(fewer[1]) < len(units)
    assert list(tabulate(*fewer, validation="none", engine=database).rows()) == rows("truncated")


def test_persons_of_two_rows_of_one_unit_are_dropped_not_counted_twice(database):
    # Algorithm 3: rows that share a MAFID are dropped before persons are joined to them.
    persons, units, geo = frames()
    twice = units.where(units["FINAL_POP"] == 3)
    others = [frame.where(~np.isin(frame["MAFID"], twice["MAFID"])) for frame in (persons, units, geo)]
    wanted = tabulation(*others, engine=database, validation="none")
    places = geo.where(np.isin(geo["MAFID"], twice["MAFID"]))
    for more_units, more_geo in ((Frame.concatenate([units, twice]), geo), (units, Frame.concatenate([geo, places]))):
        result = tabulation(persons, more_units, more_geo, engine=database, validation="none")
        for (name, level), counts in result.counts.items():
            if QUERIES[name].truncated:
                assert np.array_equal(counts, wanted.counts[name, level])
    assert len(twice) > 20


def test_a_place_without_a_state_is_nowhere_when_nothing_is_checked(database):
    persons, units, geo = frames()
    lost = np.flatnonzero(geo["RTYPE"] == "2")[:5]
    states = geo["TABBLKST"].copy()
    states[lost] = ["99", "", "x", "03", "7"]
    result = tabulate(persons, units, {**geo.to_dict(), "TABBLKST": states}, validation="none", engine=database)
    fewer = [frame.where(~np.isin(frame["MAFID"], geo["MAFID"][lost])) for frame in (persons, units, geo)]
    assert list(result.rows()) == list(tabulate(*fewer, validation="none", engine=database).rows())


def test_arrays_have_regions_iterations_and_cells(database):
    exact = tabulation(*PATHS, validation="none", engine=database)
    assert exact.states == ("10", "11", "56")
    assert set(exact.counts) == {(name, level) for name, query in QUERIES.items() for level in query.levels}
    for (name, level), counts in exact.counts.items():
        kind, iterations = split_level(level)
        assert counts.shape == (1 if kind == "usa" else 3, len(iterations), len(QUERIES[name].cells))
        assert counts.dtype == np.int64
        if kind == "usa":
            states = exact.counts[name, level.replace("usa", "state")]
            assert np.array_equal(counts, states.sum(axis=0, keepdims=True))


def test_levels_are_named_as_in_the_settings():
    assert [split_level(level) for level in LEVELS[:2]] == [("usa", ("*",)), ("usa", tuple("ABCDEFG"))]


def test_what_is_refused():
    for options, words in (
        *(({"partitions": n}, "partitions must be a whole number from 1 to 1,000, got ") for n in (0, True, 1_001)),
        *(({"tables": names}, f"tables must be among {', '.join(PUBLISHED)}, got ") for names in ("PH9", ["PH1"])),
        ({"tables": []}, "tables must name at least one table, got none"),
        ({"validation": "some"}, "validation must be one of full, production, none, got 'some'"),
    ):
        with pytest.raises(ValueError, match=f"^{words}"):
            tabulate(*PATHS, **options)
