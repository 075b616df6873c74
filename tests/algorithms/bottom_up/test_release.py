"""Bottom-up from files to a release: weights and totals read right, tables that add up, whole or not there at all."""

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.bottom_up import BottomUp, PublishedTotals, WeightedBottomUp
from algorithms.bottom_up.calibration import agreement, whole_cells
from algorithms.bottom_up.intake import read_published, read_units
from algorithms.bottom_up.weighted import round_units, units_of
from algorithms.hierarchy import Hierarchy
from algorithms.release.frames import Frame
from algorithms.schema import Schema
from tests.algorithms.releases import names, record, refused_in_one_line, released, specification
from tests.helpers import refuses, rows_of, system_module

MODULE = system_module("bottom_up")
release = MODULE.release

SCHEMA = Schema({"sex": ("female", "male"), "age": ("0-17", "18+")})
AREAS = ["state", "county"]
FILES = ["columns.csv", "ledger.txt", "level_0.csv", "level_1.csv", "level_2.csv", "release.json"]
TREE = Hierarchy.from_codes(["A", "A", "B"], ["1", "2", "1"])
COUNTS = np.array([[9, 4, 0, 7], [1, 0, 3, 2], [20, 1, 2, 5]])  # states 26 and 28


def persons(weights=None):
    """Each person of `COUNTS` once, shuffled."""
    rows = [
        (*TREE.label(leaf).split(" / "), SCHEMA.attributes["sex"][cell // 2], SCHEMA.attributes["age"][cell % 2])
        for leaf, counts in enumerate(COUNTS)
        for cell, people in enumerate(counts)
        for _ in range(people)
    ]
    frame = pd.DataFrame(rows, columns=["STATE", "county", "sex", "age"])
    if weights is not None:
        frame["weight"] = weights
    return frame.sample(frac=1, random_state=1)


FILES_GIVEN = {
    "spec.json": specification(SCHEMA),
    "totals.csv": "State,COUNT\nA,26\nB,29\n",
    "geo.csv": "state,county\nA,1\nA,2\nB,1\nB,2\n",
}
GIVEN = {"data": "persons.csv", "areas": "state,county", "spec": "spec.json", "out": "out", "epsilon": 2}


@pytest.fixture
def files(desk):
    desk(FILES_GIVEN)
    persons().to_csv("persons.csv", index=False)


def run(**changes):
    return released("bottom-up", **GIVEN | changes)


def test_weights_are_added_up_exactly_whatever_their_order():
    rng = np.random.default_rng(3)
    weights = np.append(rng.uniform(0, 3, COUNTS.sum() - 1), 3.0)
    frame = persons(weights)
    listed = Frame({"state": ["A", "A", "B", "C"], "county": ["1", "2", "1", "1"]})
    tree, units = read_units(frame, SCHEMA, AREAS, weight="WEIGHT", largest=np.float64(3), places=listed)
    assert [tree.label(leaf) for leaf in range(4)] == ["A / 1", "A / 2", "B / 1", "C / 1"]
    cells = np.repeat(np.arange(COUNTS.size), COUNTS.reshape(-1))
    assert np.array_equal(units[:3], units_of(np.column_stack([cells, weights]), COUNTS.shape, 3))
    assert units[3].tolist() == [0] * 4


def of_one_cell(people):
    """Records of weight 2**31, all in one cell."""
    columns = {"state": "A", "county": "1", "sex": "male", "age": "0-17", "w": 2.0**31}
    return Frame({name: [value] * people for name, value in columns.items()})


@pytest.mark.slow
def test_weights_of_billions_of_people_are_read():
    _, units = read_units(of_one_cell(3), SCHEMA, AREAS, weight="w", largest=2**31)
    assert round_units(units).tolist() == [[0, 0, 3 * 2**31, 0]]


def test_published_totals_are_of_the_level_of_their_columns():
    states = read_published(Frame({"STATE": ["B"], "count": ["29.0"]}), AREAS, TREE, tolerance=1)
    assert (states.level, states.tolerance) == (1, 1)
    assert np.array_equal(states.totals, [np.nan, 29], equal_nan=True)
    counties = Frame({"county": ["2", "1"], "state": ["A", "B"], "count": [6, 28]})
    assert np.array_equal(read_published(counties, AREAS, TREE).totals, [np.nan, 6, 28], equal_nan=True)
    assert read_published(Frame({"n": [54]}), AREAS, TREE, count="n").totals.tolist() == [54]


def test_tables_of_all_levels_hold_all_margins(tmp_path):
    mechanism = BottomUp(1.0, TREE, SCHEMA)
    made = release(mechanism, COUNTS, out=tmp_path / "out", rng=np.random.default_rng(5), areas=AREAS, listed=True)
    assert names(tmp_path / "out") == FILES
    assert np.array_equal(made.drawn, mechanism(COUNTS, 1, np.random.default_rng(5))[0])
    for level, areas in enumerate(([()], [("A",), ("B",)], [("A", "1"), ("A", "2"), ("B", "1")])):
        rows = rows_of(tmp_path / "out" / f"level_{level}.csv")
        assert list(rows[0]) == [*AREAS[:level], "sex", "age", "COUNT"]
        found = {tuple(row.values())[:-1]: int(row["COUNT"]) for row in rows}
        assert len(rows) == len(found) == len(areas) * 9
        tables = mechanism.tables(made.drawn)[TREE.level(level)].reshape(-1, 2, 2)
        for area, table in zip(areas, tables, strict=True):
            margins = table.sum(), table[1].sum(), table[:, 0].sum(), table[0, 1]
            cells = ("", ""), ("male", ""), ("", "0-17"), ("female", "18+")
            assert tuple(found[*area, *cell] for cell in cells) == margins
    assert record(tmp_path / "out")["levels"] == {"root": 1, "state": 2, "county": 3}
    assert "no invariant" in (tmp_path / "out" / "ledger.txt").read_text()


def test_counts_are_calibrated_to_totals_in_whole_people(files, capsys):
    assert run(totals="totals.csv", geo="geo.csv", seed=3, tolerance=1) == 0
    nation, states, counties = (rows_of(Path(f"out/level_{level}.csv")) for level in range(3))
    assert all(re.fullmatch("-?[0-9]+", row["COUNT"]) for table in (nation, states, counties) for row in table)
    totals = {row["state"]: int(row["COUNT"]) for row in states if not row["sex"] and not row["age"]}
    assert totals == {"A": 26, "B": 29}
    assert {(row["state"], row["county"]) for row in counties} == {("A", "1"), ("A", "2"), ("B", "1"), ("B", "2")}
    meanings = {row["FILE"]: row["MEANING"] for row in rows_of(Path("out/columns.csv")) if row["COLUMN"] == "COUNT"}
    assert ["as published before" in meanings[f"level_{level}.csv"] for level in range(3)] == [True, True, False]
    assert record()["promise"]["relative_to"] == "published totals"
    assert record()["published_totals"] == {"level": 1, "tolerance": 1}


@given(st.integers(0, 2**32 - 1))
def test_rounding_keeps_the_totals_and_moves_no_cell_by_a_person(seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(4, (3, 4))
    published = PublishedTotals(1, np.array([counts[:2].sum(), np.nan]))
    mechanism = BottomUp(0.5, TREE, Schema({"a": "wxyz"}), published=published)
    cells = mechanism(counts, 1, rng)[0]
    whole = whole_cells(cells, published, agreement(published, TREE, counts), rng)
    assert whole[:2].sum() == counts[:2].sum()
    assert np.abs(whole - cells).max() < 1


def test_rounding_moves_no_group_on_average():
    """2,000 areas of one person each: cells are thirds, and the first of them get no more. False alarm 1e-6."""
    tree = Hierarchy.from_codes([str(place) for place in range(2000)])
    counts = np.tile([1, 0, 0], (2000, 1))
    published = PublishedTotals(1, np.ones(2000))
    thirds = np.full((2000, 3), 1 / 3)
    whole = whole_cells(thirds, published, agreement(published, tree, counts), np.random.default_rng(1))
    assert (whole.sum(axis=1) == 1).all()
    assert np.abs(whole.sum(axis=0) - 2000 / 3).max() < 4.9 * math.sqrt(2000 * 2 / 9)


def test_a_weighted_sample_is_released_with_its_sensitivity(files, capsys):
    persons(np.linspace(0.5, 3, COUNTS.sum())).to_parquet("sample.parquet")
    weights = {"data": "sample.parquet", "weight": "weight", "largest_weight": 3.5}
    assert run(**weights, noise="inverse-cdf", seed=1, totals="totals.csv", tolerance=90) == 0
    printed, err = capsys.readouterr()
    exact, rounded = re.search(r"weights add up to (\S+) people, and rounded counts to (\d+)$", err, re.M).groups()
    assert float(exact) == pytest.approx(np.linspace(0.5, 3, COUNTS.sum()).sum(), abs=1e-3)
    assert 0 < abs(int(rounded) - float(exact)) <= COUNTS.size / 2
    assert "weighted number of people, with noise" in Path("out/columns.csv").read_text()
    for words in (
        "epsilon 2 (add/remove): covers nobody who is added or removed, for every area has a published total; one "
        "record of weight 3.5 or less moved within an area costs up to 4",
        "sensitivity              4 in one of 12 cells",
        "epsilon 0.5 a person (inverse distribution function, 53 bits)",
        "does not keep the promise: no noise beyond 73 occurs",
    ):
        assert words in printed
    about = record()
    assert (about["largest_weight"], about["sensitivity"], about["noise_epsilon"]) == (3.5, 4, 0.5)


WEIGHTED = {"weight": "w", "largest_weight": 3}
BAD = {
    "--weight and --largest-weight go together": {"weight": "w"},
    "and --largest-weight go together": {"largest_weight": 3},
    "--weight goes without --count": WEIGHTED | {"count": "n"},
    "--tolerance goes with --totals": {"tolerance": 2},
}


@pytest.mark.parametrize("words", BAD)
def test_the_command_refuses_in_one_line_and_writes_nothing(files, capsys, words):
    refused_in_one_line(capsys, words, "bottom-up", **GIVEN | BAD[words])


@pytest.mark.parametrize(
    ("weights", "example"),
    [
        ([1.0, -2.0, 0.0, 3.5, np.inf], "4 rows broke it, such as '-2.0', '0.0', '3.5', 'inf'"),
        (["1", "x", None], "2 rows broke it, such as 'x', a missing value"),
    ],
)
def test_bad_weights_are_refused(weights, example):
    county = [str(place) for place in range(len(weights))]
    table = pd.DataFrame({"state": "A", "county": county, "sex": "male", "age": "18+", "w": weights})
    with pytest.raises(ValueError, match="data") as caught:
        read_units(table, SCHEMA, AREAS, weight="w", largest=3)
    assert f"w must be a number above 0 and at most the largest weight 3; {example}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_many_people_are_refused():
    with pytest.raises(ValueError, match=r"data: w must add up to less than 2\*\*33, got 8589934592"):
        read_units(of_one_cell(4), SCHEMA, AREAS, weight="w", largest=2**31)


COLUMNS = "columns of areas (state, county), or count alone for all together, got ['stat', 'count']"
TOTALS = {
    "have one row for each area, got 'A' twice": {"state": ["A", "A"], "count": [26, 26]},
    "be of areas of the data or of the list of areas, got 'C'": {"state": ["C"], "count": [26]},
    "be of areas of the data or of the list of areas, got 'A / 01', where 'A / 1' is known: one file lost "
    "zeros, so save its codes as text": {"state": ["A"], "county": ["01"], "count": [21]},
    "have the columns of outer areas too, got county": {"county": ["1"], "count": [26]},
    "be whole numbers of 0 or more, got '2.5' of 'A'": {"state": ["A"], "count": [2.5]},
    "be whole numbers of 0 or more, got None of 'A'": {"state": ["A"], "count": [None]},
    "have a code in state in every row, got a missing one": {"state": ["A", None], "count": [26, 28]},
    f"have {COLUMNS}": {"stat": ["A"], "count": [26]},
    "have the columns count; count missing, got ['state', 'people']": {"state": ["A"], "people": [26]},
    "have one row at least, got none": {"state": np.array([], str), "count": np.array([], int)},
}


@pytest.mark.parametrize("words", TOTALS)
def test_bad_totals_are_refused(words):
    refuses(ValueError, f"totals must {words}", read_published, Frame(TOTALS[words]), AREAS, TREE)


def test_releases_that_are_refused(monkeypatch, tmp_path):
    def refused(words, mechanism, counts=COUNTS, rng="secure", **options):
        with pytest.raises(ValueError, match=words):
            release(mechanism, counts, out=tmp_path / "out", rng=rng, **options)

    mechanism = BottomUp(1.0, TREE, SCHEMA)
    refused("a release needs a tree and a schema, so that its tables have names", BottomUp(1.0, TREE))
    clash = BottomUp(1.0, TREE, Schema({"Count": ("a", "b"), "age": ("0", "1")}))
    refused("other columns of a file must have different names, got 'Count' twice", clash)
    many = BottomUp(1.0, TREE, Schema({f"a{place}": "x" for place in range(13)}))
    refused(r"^a release must be of at most 12 attributes, got 13", many, [[1]] * 3, rng=None)  # before any noise
    ending = BottomUp(40.0, TREE, SCHEMA, noise="inverse_cdf")
    assert (ending(COUNTS, 1, "secure")[0] == COUNTS).all()  # it can be studied; a release would tell all
    refused(r'^a secure release needs noise="exact", got \'inverse_cdf\'', ending)
    known = BottomUp(1.0, TREE, SCHEMA, published=PublishedTotals(0, np.array([53])))
    wrong = "published totals must be those of the data, with a tolerance of 0: that of total is 53, and the data have"
    refused(f"^{wrong} 54; --tolerance allows more$", known, rng=np.random.default_rng(0))
    known = BottomUp(1.0, TREE, SCHEMA, published=PublishedTotals(1, np.array([27, 9])))
    refused("that of A is 27, and the data have 26 .2 totals are wrong", known, rng=np.random.default_rng(0))
    monkeypatch.setattr(MODULE, "LARGEST_RELEASE", 53)
    refused("a release must have at most 53 rows, got 54 or more", mechanism)
    assert not (tmp_path / "out").exists()


def test_releases_of_weights_and_relative_to_some_totals():
    sample = WeightedBottomUp(400.0, 2.0, COUNTS.shape, TREE, SCHEMA)
    made = release(sample, COUNTS, rng=np.random.default_rng(0))
    assert np.array_equal(made.drawn, COUNTS)  # epsilon 200 a person: other noise has probability 1e-86
    assert list(made.record["levels"]) == ["root", "level 1", "level 2"]
    some = BottomUp(1.0, TREE, SCHEMA, published=PublishedTotals(1, np.array([26, np.nan])))
    first = release(some, COUNTS, rng=np.random.default_rng(0)).ledger.splitlines()[0]
    assert first.endswith("epsilon 1 (add/remove): one person added or removed, relative to the published totals")
