"""TopDown from files to a release: counted right, whole or not there at all, and made from what is published alone."""

import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

from algorithms.hierarchy import Hierarchy
from algorithms.noise import drawing
from algorithms.release import spilled
from algorithms.release.frames import Frame
from algorithms.release.intake import read_facilities, read_histogram, store_histogram
from algorithms.release.spilled import LEAVES, Spilled
from algorithms.schema import Schema
from algorithms.topdown import TopDown, preset
from algorithms.topdown.budget import Budget
from algorithms.topdown.estimate import Failure, estimated
from algorithms.topdown.estimation.constraints import Bounds, Invariant
from algorithms.topdown.presets import PRESETS, SETTINGS
from algorithms.topdown.release import release
from algorithms.topdown.stored import stored
from audit.claims import ZCDP, PureDP
from tests.benchmarks import sizes
from tests.helpers import anew, beside_reading, contents, plaudit, refused_by, refuses, rows_of

DONE = 0
MODULE, ESTIMATE, STORED = (sys.modules[f"algorithms.topdown.{name}"] for name in ("release", "estimate", "stored"))
SCHEMA = Schema({"sex": ("female", "male"), "age": ("0-17", "18-64", "65+")})
AREAS = ("county", "tract")
CODES = (["1", "1", "2", "2", "3"], ["01", "02", "01", "02", "01"])
TREE = Hierarchy.from_codes(*CODES)
HISTOGRAM = np.array([[9, 4, 0, 7, 1, 0], [0] * 6, [30, 3, 3, 3, 5, 8], [0, 0, 0, 5, 0, 2], [20, 1, 2, 0, 0, 0]])
QUERIES = [{"detailed": 1}, {"total": "1/3", "sex": "2/3"}, {"sex": "1/2", "detailed": "1/2"}]
PROMISE = ZCDP(0.5, "replace_one")


def plan(promise=PROMISE, tree=TREE, **options):
    return TopDown(SCHEMA, tree, Budget(promise, ["1/4", "1/4", "1/2"], QUERIES), **options)


def rng(seed=1):
    return np.random.default_rng(seed)


def in_memory(topdown, histogram, seed=1):
    """What a release of that seed estimates, all in memory."""
    return topdown.estimate(topdown.measure(histogram, rng(seed)))


def tables_of(out, topdown, areas=AREAS):
    """Tables of all areas as they were written; no row names an area or cell that there is not, or one twice."""
    tree, levels = topdown.tree, list(topdown.schema.attributes.values())
    nodes = {(j, *tree.codes(node)): node for j in range(tree.depth + 1) for node in range(tree.n_nodes)[tree.level(j)]}
    tables = np.zeros((tree.n_nodes, topdown.schema.cells), np.int64)
    for row in rows_of(out / "tables.csv"):
        places = [level.index(row[name]) for name, level in topdown.schema.attributes.items()]
        codes, level = [row[name] for name in areas], int(row["LEVEL"])
        assert codes[level:] == [""] * (tree.depth - level)
        cell = nodes[level, *codes[:level]], np.ravel_multi_index(places, list(map(len, levels)))
        assert tables[cell] == 0 < int(row["COUNT"])
        tables[cell] = int(row["COUNT"])
    return tables


def test_what_is_measured_or_exact_is_written(tmp_path):
    topdown = plan(invariants=[Invariant("total", 1), Invariant("sex", 0)])
    release(topdown, HISTOGRAM, out=tmp_path / "out", rng=rng(), areas=AREAS)
    measurements = topdown.measure(HISTOGRAM, rng())
    rows, wanted = [tuple(row.values()) for row in rows_of(tmp_path / "out" / "noisy_measurements.csv")], []
    for (level, query), noisy in measurements.noisy.items():
        measured = np.isfinite(noisy.variance)
        for answers, variance in zip(noisy.answers[measured].tolist(), noisy.variance[measured].tolist(), strict=True):
            wanted += [(str(level), query, str(count), str(variance)) for count in answers]
    assert [(level, query, count, variance) for level, *_, query, _, count, variance in rows] == wanted
    known = [str(count) for counts in measurements.known.values() for count in counts.ravel()]
    assert [row["COUNT"] for row in rows_of(tmp_path / "out" / "invariants.csv")] == known


@pytest.mark.parametrize("backend", ["loky", "threading"])  # processes take seconds to start
def test_a_seed_gives_the_same_files_whatever_works_on_them(backend, tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "LEAST", 1)  # secure draws would all go to workers
    with joblib.parallel_config(backend=backend):
        for jobs in (1, 2):
            release(plan(n_jobs=jobs), HISTOGRAM, out=tmp_path / str(jobs), rng=rng())
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


@pytest.mark.parametrize(
    ("invariants", "exact"),
    [
        ([Invariant("total", 1), Invariant("age", 0)], ["county", "age"]),
        ([], []),
        ([Invariant("detailed", 2)], [*AREAS, *SCHEMA.attributes]),
    ],
)
def test_columns_say_what_is_exact(tmp_path, invariants, exact):
    release(plan(invariants=invariants), HISTOGRAM, out=tmp_path / "out", rng=rng(), areas=AREAS)
    columns = {(row["FILE"], row["COLUMN"]): row for row in rows_of(tmp_path / "out" / "columns.csv")}
    values = {name: row["VALUES"] for (file, name), row in columns.items() if file == "microdata.csv"}
    assert [name for name, value in values.items() if value == "exact"] == exact
    assert ("invariants.csv" in columns["tables.csv", "COUNT"]["MEANING"]) == bool(invariants)
    if len(invariants) == 2:
        rows = rows_of(tmp_path / "out" / "invariants.csv")
        assert tuple(rows[0]) == ("INVARIANT", "LEVEL", *AREAS, "GROUP", "COUNT")
        assert tuple(rows[2].values()) == ("total of level 1 (invariant)", "1", "3", "", "total", "23")
        assert tuple(rows[3].values()) == ("age of level 0 (invariant)", "0", "", "", "0-17", "74")


def test_the_record_says_what_was_run(tmp_path, monkeypatch):
    bounds = [Bounds("few old women", "detailed", 2, None, [99, 99, 9, 99, 99, 99])]
    topdown = plan(PureDP(2.0, "replace_one"), invariants=[Invariant("total", 1)], bounds=bounds)
    estimate = in_memory(topdown, HISTOGRAM)

    def failed(*given, **options):
        *parts, last = estimated(*given, **options)
        return [*parts, replace(last, failures=(Failure(0, "2", "no"),), primal=np.inf)]

    monkeypatch.setattr(MODULE, "estimated", failed)
    release(topdown, HISTOGRAM, out=tmp_path / "out", rng=rng(), preset="own")
    about = json.loads((tmp_path / "out" / "release.json").read_text())
    wanted = {
        "promise": {"kind": "pure", "epsilon": 2.0, "relation": "replace_one"},
        "preset": "own",
        "solver": "piqp",
        "invariants": ["total of level 1 (invariant)"],
        "bounds": ["few old women"],
        "levels": {"root": 1, "level 1": 3, "level 2": 5},
        "failsafes": [{"area": "2", "reason": "no"}],
        "residuals": {"primal": "inf", "dual": estimate.dual},
        "routes": dict(estimate.routes),
    }
    assert about.items() >= wanted.items()
    assert sum(about["routes"].values()) == 5  # the root, its parts, and the parts of each of three counties


@pytest.mark.reliability(row=9)
def test_the_data_are_in_no_file(tmp_path, monkeypatch):
    # Distinct counts near a million; noise deviates by 50,000 and more, so that of about 90 numbers that are published
    # none is one of the 54 true ones by chance, with probability 0.9 (the seed is fixed).
    monkeypatch.setattr(MODULE.engine, "person_rows", lambda *_: ())
    histogram = np.random.default_rng(3).permutation(np.arange(500_000, 2_000_000, 50_001)).reshape(5, 6)
    topdown = plan(PureDP(2e-4, "replace_one"))
    release(topdown, histogram, out=tmp_path / "out", rng=rng(4))
    written = re.split("[^0-9]+", " ".join(map(bytes.decode, contents(tmp_path / "out").values())))
    assert {str(count) for count in topdown.tables(histogram).ravel()}.isdisjoint(written)
    assert {str(count) for count in in_memory(topdown, histogram, 4).tables.ravel()} - {"0"} <= set(written)


def test_more_records_than_fit_on_a_disk_are_refused(tmp_path, monkeypatch):
    people = int(in_memory(plan(), HISTOGRAM).tables[0].sum())
    monkeypatch.setattr(MODULE.engine, "LARGEST_RELEASE", people)
    assert release(plan(), HISTOGRAM, out=tmp_path / "all", rng=rng()).drawn.people == people
    monkeypatch.setattr(MODULE.engine, "LARGEST_RELEASE", people - 1)
    rule = f"a release must have at most {people - 1} records, got {people}; where the noise made them, take "
    rule += "a larger budget, or hold the total as an invariant"
    refuses(ValueError, rule, release, plan(), HISTOGRAM, out=tmp_path / "out", rng=rng())
    assert [path.name for path in tmp_path.iterdir()] == ["all"]


FAILING = {
    "promise": PureDP(0.3, "replace_one"),
    "invariants": [Invariant("total", 2)],
    "bounds": [Bounds("few", "detailed", 2, None, HISTOGRAM + 3)],
    "minimal": "total",
}


def test_the_same_measurements_of_other_people_give_the_same_release(tmp_path, monkeypatch):
    """With the same totals, which are public: reasons of failsafes name no count of people either."""
    topdown, others = plan(**FAILING), HISTOGRAM.copy()
    others[[0, 2, 4], 0] -= 2
    others[[0, 2, 4], 5] += 2
    release(topdown, HISTOGRAM, out=tmp_path / "one", rng=rng(5))
    first = topdown.measure(HISTOGRAM, rng(5))

    def of_the_first(*given):
        _, levels = stored(*given)  # noise is drawn, so that the record can say of what
        return first.known, (level and first.noisy for level in levels)

    monkeypatch.setattr(MODULE, "stored", of_the_first)
    release(topdown, others, out=tmp_path / "two", rng=rng(2))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert json.loads((tmp_path / "two" / "release.json").read_text())["failsafes"]


@pytest.mark.parametrize(("solver", "part"), [("batched", 1), ("batched", 12), ("piqp", 2**22)])
def test_what_is_written_is_what_is_computed_in_memory(tmp_path, monkeypatch, solver, part):
    """Whatever is drawn, stored and estimated at a time, and above failsafes: areas are what their parts became."""
    monkeypatch.setattr(drawing, "CHUNK", min(part, drawing.CHUNK))
    topdown = plan(**FAILING, solver=solver)
    estimate = in_memory(topdown, HISTOGRAM, 5)
    assert estimate.failures
    monkeypatch.setattr(ESTIMATE, "PARTS", {solver: part})
    monkeypatch.setattr(spilled, "PIECE", min(part, spilled.PIECE))
    again = in_memory(topdown, HISTOGRAM, 5)
    np.testing.assert_array_equal(again.real, estimate.real)
    np.testing.assert_array_equal(again.tables, estimate.tables)
    made = release(topdown, HISTOGRAM, out=tmp_path / "out", rng=rng(5), areas=AREAS)
    np.testing.assert_array_equal(tables_of(tmp_path / "out", topdown), estimate.tables)
    assert (made.drawn.outcome.failures, made.drawn.outcome.routes) == (estimate.failures, estimate.routes)
    records = read_histogram(tmp_path / "out" / "microdata.csv", SCHEMA, AREAS)[1]
    np.testing.assert_array_equal(records, [table for table in estimate.tables[TREE.leaves] if table.any()])
    persons, ages = rows_of(tmp_path / "out" / "microdata.csv"), SCHEMA.attributes["age"]
    assert persons == sorted(persons, key=lambda r: (r["county"], r["tract"], r["sex"], ages.index(r["age"])))
    with monkeypatch.context() as patched:  # negative control: without it the areas above keep what they had
        patched.setattr(STORED, "apply_failsafe_gaps", lambda *_: None)
        release(topdown, HISTOGRAM, out=tmp_path / "unsettled", rng=rng(5), areas=AREAS)
        assert (tables_of(tmp_path / "unsettled", topdown) != estimate.tables).any()


@pytest.mark.parametrize("piece", [7, spilled.PIECE])
@pytest.mark.parametrize(
    "tree",
    [Hierarchy.from_codes(*np.array(CODES)[:, [4, 2, 0, 3, 1]]), Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2, 0])],
)
def test_leaves_of_any_order_and_level_are_written(tmp_path, monkeypatch, tree, piece):
    monkeypatch.setattr(spilled, "PIECE", piece)
    topdown = plan(tree=tree)
    histogram = HISTOGRAM[: tree.n_leaves]
    tables, out = in_memory(topdown, histogram).tables, tmp_path / "out"
    release(topdown, histogram, out=out, rng=rng(), areas=AREAS)
    np.testing.assert_array_equal(tables_of(out, topdown), tables)
    people = Counter((row["county"], row["tract"]) for row in rows_of(out / "microdata.csv"))
    codes = [(*tree.codes(node), "")[:2] for node in tree.leaves.tolist()]
    assert people == Counter(dict(zip(codes, tables[tree.leaves].sum(axis=1).tolist(), strict=True)))


@pytest.mark.parametrize(("listed", "piece"), [(True, 5), (False, spilled.PIECE)])
def test_persons_that_are_counted_on_disk_give_the_same_files(tmp_path, monkeypatch, piece, listed):
    monkeypatch.setattr(spilled, "PIECE", piece)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    places = pd.DataFrame(PLACES) if listed else None
    tree, histogram = read_histogram(Frame(PERSONS), SCHEMA, AREAS, places=places)
    topdown = plan(tree=tree)
    release(topdown, histogram, out=tmp_path / "array", rng=rng(), areas=AREAS)
    with Spilled() as store:
        result = store_histogram(store, Frame(PERSONS), SCHEMA, AREAS, places=places)
        np.testing.assert_array_equal(store.read(LEAVES, 0, histogram.size), histogram.reshape(-1))
        release(topdown, store, out=tmp_path / "stored", rng=rng(), areas=AREAS)
        other = TopDown(Schema({"sex": "fm"}), result, Budget(PROMISE, ["1/4", "1/4", "1/2"], [{"total": 1}] * 3))
        rule = f"histogram must have {result.n_leaves * 2} counts, leaves x cells, got {histogram.size}"
        refuses(ValueError, rule, release, other, store, out=tmp_path / "other", rng=rng())
    assert (result.labels, result.leaves.tolist()) == (tree.labels, tree.leaves.tolist())
    assert contents(tmp_path / "array") == contents(tmp_path / "stored")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["array", "stored"]  # nothing temporary is left


@pytest.mark.slow
def test_a_release_of_100_000_blocks_needs_the_memory_of_one_of_5_000(tmp_path):
    """But for 500 bytes a block, since names of areas are in memory. A block has 63 cells; the histogram is on disk."""
    most = {}
    for blocks in (5_000, 100_000):
        (tmp_path / str(blocks)).mkdir()
        _, most[blocks] = sizes.in_a_process(sizes.topdown, tmp_path / str(blocks), blocks, 63)
        shutil.rmtree(tmp_path / str(blocks))
    assert (most[100_000] - most[5_000]) * 2**30 < 500 * 95_000


@pytest.mark.parametrize("start", [0, 4], ids=["above", "finest"])
def test_tables_that_break_a_constraint_are_not_written(tmp_path, monkeypatch, start):
    topdown = plan(invariants=[Invariant("total", 2)])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where the histogram is meanwhile
    monkeypatch.setattr(spilled, "PIECE", 5)
    monkeypatch.setattr(ESTIMATE, "broken", lambda *given: "it" if given[-1].start == start else None)
    with pytest.raises(RuntimeError, match=r"^the tables must keep every constraint, and break it$"):
        release(topdown, HISTOGRAM, out=tmp_path / "out", rng=rng())
    assert not list(tmp_path.iterdir())


LEVELS = Schema({"level": ("a", "b")})
TWINS = Hierarchy.from_parents([-1, 0, 0, 1, 1, 2], [0, 1, 2, 3, 3, 3])
TWICE = "areas, attributes and other columns of a file must have different names, got '{}' twice$"


@pytest.mark.parametrize(
    ("topdown", "areas", "rule"),
    [
        (plan(), ["county"], "areas must name each of 2 levels below the root, got county$"),
        (plan(), ["county", "Sex"], TWICE.format("Sex")),
        (plan(), ["county", "Query"], TWICE.format("Query")),
        (plan(), ["invariant", "tract"], TWICE.format("invariant")),
        (preset("micro", TREE, schema=LEVELS), None, TWICE.format("LEVEL")),
        (preset("micro", TWINS), None, "areas must have codes of their own .*, got '1 / 3' twice$"),
    ],
)
def test_tables_whose_columns_or_areas_have_one_name_are_refused(tmp_path, topdown, areas, rule):
    histogram = np.ones((topdown.tree.n_leaves, topdown.schema.cells))
    with pytest.raises(ValueError, match=f"^{rule}"):
        release(topdown, histogram, out=tmp_path / "out", rng=rng(), areas=areas)


PERSONS = {
    "County": ["1", "2", "1", "2", "1"],
    "TRACT": ["01", "01", "02", "01", "01"],
    "Sex": ["male", "female", "male", "female", "female"],
    "age": ["0-17", "65+", "65+", "65+", "18-64"],
}
COUNTED = np.array([[0, 1, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1], [0, 0, 2, 0, 0, 0]])


def test_groups_of_persons_are_added_up_and_rows_of_nobody_name_areas():
    rows = pd.DataFrame(
        {"c": [7, 5, 7, 9], "t": [1, 1, 1, 1], "sex": [1, 2, 1, None], "n": [2.0, 3.0, 40.0, 0.0]}
    ).astype({"sex": "Int64"})
    schema = Schema({"sex": ("female", "male")}, codes={"sex": ["1", "2"]})
    tree, histogram = read_histogram(rows, schema, ["C", "t"], count="N")
    assert histogram.tolist() == [[0, 3], [42, 0], [0, 0]]
    assert tree.labels == ("total", "5", "7", "9", "1", "1", "1")


PLACES = {"TRACT": ["02", "01", "01", "01", "02"], "county": ["1", "2", "1", "3", "3"], "name": list("abcde")}


def test_a_list_of_areas_makes_the_tree():
    tree, histogram = read_histogram(Frame(PERSONS), SCHEMA, AREAS)
    assert [tree.label(leaf) for leaf in range(3)] == ["1 / 01", "1 / 02", "2 / 01"]
    np.testing.assert_array_equal(histogram, COUNTED)
    tree, histogram = read_histogram(Frame(PERSONS), SCHEMA, AREAS, places=pd.DataFrame(PLACES))
    assert [tree.label(leaf) for leaf in range(5)] == ["1 / 01", "1 / 02", "2 / 01", "3 / 01", "3 / 02"]
    np.testing.assert_array_equal(histogram, [*COUNTED, [0] * 6, [0] * 6])


LISTED = "the list of areas"
BAD_LISTS = [
    ("county,tract\n1,01\n3,01\n", f"data must be in areas of {LISTED}; got 2 others, such as '1 / 02'"),
    ("county,tract\n1,01\n2,01\n2,01\n", f"{LISTED}: an area must have one row; 2 rows broke it, such as '2 / 01'"),
    ("county,tract\n1,01\n,01\n", f"{LISTED}: county must have a code; 1 row broke it, such as a missing value"),
    ("county,tract\n", f"{LISTED} must have one row at least, got none"),
    (Frame({"county": ["1"], "tract": [0.5]}), "tract must hold codes as text or whole numbers, got real numbers"),
]


@pytest.mark.parametrize(("places", "rule"), BAD_LISTS)
def test_lists_of_areas_that_are_wrong(tmp_path, places, rule):
    if isinstance(places, str):
        (tmp_path / "geo.csv").write_text(places)
        places = tmp_path / "geo.csv"
    refuses(ValueError, rule, read_histogram, Frame(PERSONS), SCHEMA, AREAS, places=places)


def test_facilities_are_counted_in_the_areas_of_the_data():
    schema = PRESETS["e2e-1940"].schema
    tree = Hierarchy.from_codes(["1", "1"], ["2", "1"])  # leaves in an order of their own
    kinds = ["household", "correctional", "college"]
    rows = {"state": [1, 1, 1], "county": [1, 2, 1], "HHGQ": kinds, "count": [9, 2, 1]}
    result = read_facilities(Frame(rows), schema, ["state", "county"], tree)
    assert result.tolist() == [[0, 2, 0, 0, 0, 0, 0, 0], [9, 0, 0, 0, 0, 1, 0, 0]]
    empty = Hierarchy.from_codes(["1"] * 3, ["1", "2", "3"])  # a list has areas where nobody lives
    units = read_facilities(Frame({**rows, "county": [1, 3, 3]}), schema, ["state", "county"], empty)
    assert units[:, [0, 1, 5]].tolist() == [[9, 0, 0], [0, 0, 0], [0, 2, 1]]


@pytest.fixture
def topdown(workspace, capsys):
    Frame(MICRO).to_csv("persons.csv")
    return lambda *arguments: (plaudit("release", "topdown", *arguments), *capsys.readouterr())


ADULTS = PRESETS["micro"].schema.attributes["age"]
MICRO = {
    "state": ["10", "10", "20", "20"],
    "county": ["1", "2", "1", "1"],
    "sex": ["female", "male", "male", "female"],
    "age": [ADULTS[0], ADULTS[1], ADULTS[1], ADULTS[0]],
    "persons": ["40", "7", "12", "0"],
}


def arguments(*more, data="persons.csv", areas="state,county", preset="micro", count="persons", out="out", seed="1"):
    given = {"data": data, "areas": areas, "preset": preset, "count": count, "out": out, "seed": seed}
    return (*(word for name, value in given.items() if value is not None for word in (f"--{name}", value)), *more)


@pytest.mark.parametrize("listed", [["--geo", "geo.csv"], []])
def test_with_a_list_one_record_does_not_change_the_areas(topdown, listed):
    Frame({"COUNTY": ["1", "2", "1", "2"], "state": ["10", "10", "20", "20"]}).to_csv("geo.csv")
    areas = []
    for county in ("1", "2"):  # of one person, the only one in county 2 of state 10
        persons = {**MICRO, "county": ["1", county, "1", "1"], "persons": ["40", "1", "12", "1"]}
        Frame(persons).to_csv(anew("persons.csv"))
        code, out, err = topdown(*arguments("--rho", "60", *listed, out=county))
        assert (code, beside_reading(err)) == (DONE, [])
        assert ("; which areas there are was read from the data, and is taken as public.\n" in out) == (not listed)
        published = {(row["state"], row["county"]) for row in rows_of(Path(county, "noisy_measurements.csv"))}
        areas.append((published, json.loads(Path(county, "release.json").read_text())["areas"]))
        assert len(rows_of(Path(county, "microdata.csv"))) == 54  # such a budget leaves no noise
    if listed:
        known = {("", ""), ("10", ""), ("20", ""), ("10", "1"), ("10", "2"), ("20", "1"), ("20", "2")}
        assert areas == [(known, "from a public list")] * 2
    else:
        assert areas[0][0] < areas[1][0]
        assert areas[0][1] == areas[1][1] == "read from the data, and taken as public"


def test_a_release_of_the_bundled_nation(topdown):
    code, out, err = topdown("--bundled", "--out", "out", "--seed", "1", "--epsilon", "8")
    assert (code, err) == (DONE, "")
    assert f"\nSettings e2e-1940: {PRESETS['e2e-1940'].about}.\n" in out
    assert "which are published exactly (total of level 1)" in out
    assert "Tables of 39 areas and 28,533 records, with noise from seed 1" in out
    assert json.loads(Path("out/release.json").read_text())["promise"]["epsilon"] == 8.0


def test_facilities_bound_who_lives_where(topdown):  # a release with linear programs
    attributes, kinds = PRESETS["e2e-1940"].schema.attributes, ["household", "household", "correctional", "household"]
    homes = {"county": [1, 1, 2, 2], "district": [1, 2, 1, 2], "hhgq": kinds}
    people = Frame({**{name: [own[0]] * 4 for name, own in attributes.items()}, **homes, "n": [300, 200, 100, 0]})
    people.where(people["n"] > 0).to_csv("people.csv")
    Path("own.json").write_text(json.dumps({**SETTINGS["e2e-1940"], "persons_a_unit": [0, 99]}))
    given = {"data": "people.csv", "areas": "county,district", "count": "n", "preset": None}
    command = arguments("--facilities", "units.csv", "--spec", "own.json", **given)
    Frame({**homes, "count": [3, 3, 1, 1]}).to_csv("units.csv")  # district 2 of county 2 has a vacant unit
    assert refused_by(topdown, *command)[-1].endswith("those without persons too; got 1 other, such as '2 / 2'")
    Frame({name: homes[name] for name in ("county", "district")}).to_csv("geo.csv")
    rule = "the data must keep every constraint before any noise, and break persons by facilities: household in 1 must"
    assert refused_by(topdown, *command, "--geo", "geo.csv")[-1] == f"{rule} be from 0 to 297, got 300"
    Frame({**homes, "count": [4, 3, 1, 1]}).to_csv(anew("units.csv"))
    code, out, err = topdown(*command, "--geo", "geo.csv")
    assert code == DONE
    assert beside_reading(err)[0].startswith("warning: rare groups are far off: 18 and over of votingage (")
    assert "bounds taken as public: persons by facilities." in out
    result = Counter((row["county"], row["district"], row["hhgq"]) for row in rows_of(Path("out/microdata.csv")))
    somewhere = {("1", "1", "household"), ("1", "2", "household"), ("2", "1", "correctional")}
    assert somewhere <= set(result) <= somewhere | {("2", "2", "household")}
    assert result.total() == 600  # the state's total is an invariant


def test_columns_named_after_levels_choose_them():
    persons = PRESETS["pl94-2020"]
    assert persons.levels_of(["county", "Block_Group"]) == ["state", "county", "block group"]
    assert persons.levels_of(["state"]) == ["nation", "state"]
    assert persons.levels_of(["nation"]) is persons.levels_of(["county", "ward"]) is None
    assert PRESETS["micro"].levels_of(["county"]) == ["nation", "county"]  # a preset that names no levels


BAD = [
    ({"county": ["1", "1 ", "1", "1"]}, {}, "data: codes of county must not begin or end with a space; 1 row broke it"),
    ({"persons": ["-7", "7.5", "nan", "inf"]}, {}, "; 4 rows broke it, such as '-7', '7.5', 'inf', 'nan'"),
    ({"persons": ["40", f"{10**15}", "", "0"]}, {}, f"and below 10^15; 2 rows broke it, such as '{10**15}', a missing"),
    ({"persons": ["9" * 15] * 4}, {}, "data: persons must add up to less than 2**40, got 3999999999999996"),
    ({}, {"areas": ["state", "State"]}, "areas, attributes and count must be different columns, got state"),
]


@pytest.mark.parametrize(("columns", "options", "rule"), BAD)
def test_data_that_are_wrong(tmp_path, columns, options, rule):
    Frame({**MICRO, **columns}).to_csv(tmp_path / "persons.csv")
    given = {"areas": ["state", "county"], "count": "persons", **options}
    with pytest.raises(ValueError, match=r"^[^\n]+$") as error:
        read_histogram(tmp_path / "persons.csv", PRESETS["micro"].schema, **given)
    assert rule in str(error.value)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (arguments(data=None), "--data and --areas are needed, or --bundled"),
        (arguments("--bundled"), "--bundled goes without --data, --recode, --areas, --geo, --count and --facilities"),
        (arguments("--relation", "both"), 'relation must be "add_remove" or "replace_one", got \'both\''),
        (arguments("--rho", "1e-30"), "rho 1e-30 leaves detailed at level 0 3.33e-31, "),
        (arguments("--facilities", "persons.csv"), "facilities must be of an attribute of the schema, sex, age, not"),
    ],
)
def test_options_that_are_wrong(topdown, given, rule):
    assert rule in refused_by(topdown, *given)[-1]


def test_a_release_that_is_broken_off_leaves_nothing(topdown, monkeypatch):
    def broken(*_, **options):
        raise RuntimeError("the solver does not converge")

    monkeypatch.setattr(MODULE, "estimated", broken)
    assert refused_by(topdown, *arguments())[-1] == "the solver does not converge; nothing was written"
