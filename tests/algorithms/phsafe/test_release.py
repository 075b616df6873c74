"""A release: production's counts where noise is nil, the right noise where it is not, whole or not there at all."""

import json
import re
import sys

import numpy as np
import pytest
from scipy import stats

from algorithms.noise import DiscreteGaussian
from algorithms.phsafe import read_config, release
from algorithms.phsafe.budget import noise_law
from algorithms.phsafe.layout import check_release, lay_out, zeros
from algorithms.phsafe.measurement import PHSafe
from algorithms.phsafe.schema import STATES
from algorithms.phsafe.tables import PUBLISHED, QUERIES
from algorithms.release.engine import whole_folder, write_rows
from algorithms.release.frames import Frame
from tests.golden.phsafe import CONFIG, PATHS, columns, rows
from tests.golden.phsafe import settings as config
from tests.helpers import contents, refuses

MODULE, RNG = sys.modules["algorithms.phsafe.release"], np.random.default_rng


def counts_of(tables):
    """The rows of all tables, as production's table of counts has them, and sorted as that is."""
    result = []
    for name, table in tables.items():
        codes = table["ITERATION_CODE"] if "ITERATION_CODE" in table.columns else [""] * len(table)
        parts = (table["REGION_TYPE"], table["REGION_ID"], codes, table[f"{name}_DATA_CELL"], table["COUNT"].tolist())
        result += [(name, *row) for row in zip(*parts, strict=True)]
    return sorted(result)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release without noise, while which the input is not touched."""
    before = [(path.read_bytes(), path.stat().st_mtime_ns) for path in PATHS]
    made = release(*PATHS, CONFIG, out=tmp_path_factory.mktemp("made") / "out", rng=RNG(0))
    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in PATHS] == before
    return made


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("noisy") / "new" / "out"


@pytest.fixture(scope="module")
def noisy(out):
    return release(*PATHS, config(0.01), rng=RNG(1), out=out)


def test_counts_and_columns_are_those_of_production(made):
    assert counts_of(made.tables) == sorted(rows("truncated"))
    assert list(made.tables) == list(PUBLISHED)
    assert made.states == ("10", "11", "56")
    assert made.ledger.unbounded.rho == pytest.approx(46e9)
    for name in PUBLISHED:
        codes = () if name in ("PH2", "PH6") else ("ITERATION_CODE",)
        wanted = ("REGION_ID", "REGION_TYPE", *codes, f"{name}_DATA_CELL", "COUNT", "NOISE_DISTRIBUTION", "VARIANCE")
        assert made.tables[name].columns == wanted
        assert set(made.tables[name]["NOISE_DISTRIBUTION"]) == {"Discrete Gaussian"}


def test_variances_are_those_of_the_settings():
    # (2 tau + 2)^2 / (2 rho) for persons, 2 / rho for households, and twice that for the sum of two cells.
    taus = {"PH1_num": 10, "PH2": 3, "PH3": 6, "PH4": 1, "PH6": 40, "PH7": 99}
    budgets = {name: 0.1 * (1 + place) for place, name in enumerate(QUERIES)}
    tables = release(*PATHS, config(tau=taus, **budgets), rng=RNG(0)).tables
    for name in PUBLISHED:
        source = {"PH5_num": "PH4", "PH8_num": "PH7"}.get(name, name)
        change = 2 * taus[source] + 2 if source in taus else 2
        variance = change**2 / (2 * budgets[source])
        cells, result = tables[name][f"{name}_DATA_CELL"], tables[name]["VARIANCE"]
        wanted = np.where((cells == "2") & (name == "PH8_num"), 2 * variance, variance)
        np.testing.assert_allclose(result, wanted, rtol=1e-12)


def test_ph5_and_ph8_numerators_are_the_noisy_cells_of_ph4_and_ph7(noisy):
    tables = {}
    for name, _, region, code, cell, count in counts_of(noisy.tables):
        tables.setdefault(name, {})[region, code, cell] = count
    assert tables["PH5_num"] == tables["PH4"]
    sums = {}
    for (region, code, cell), count in tables["PH7"].items():
        place = region, code, {"2": "2", "3": "2", "4": "3"}[cell]
        sums[place] = sums.get(place, 0) + count
    assert tables["PH8_num"] == sums
    assert counts_of(noisy.tables) != sorted(rows("truncated"))
    assert min(count for *_, count in counts_of(noisy.tables)) < 0  # as published: nothing is cut off


def test_levels_and_tables_without_a_budget_are_left_out():
    none = {name: dict.fromkeys(query.levels, 0) for name, query in QUERIES.items()}
    none["PH7"]["state_H,I"] = none["PH6"]["usa_*"] = 1e9
    made = release(*PATHS, {**read_config(CONFIG).to_dict(), "privacy_budget": none}, rng=RNG(0))
    assert list(made.tables) == ["PH6", "PH7", "PH8_num"]
    kept = {("PH6", "USA", ""), *((name, "STATE", code) for name in ("PH7", "PH8_num") for code in "HI")}
    assert counts_of(made.tables) == sorted(row for row in rows("truncated") if (row[0], row[1], row[3]) in kept)
    assert made.ledger.unbounded.rho == 2e9


@pytest.mark.parametrize("source", ["seeded", pytest.param("secure", marks=pytest.mark.slow)])
def test_noise_has_the_law_it_is_published_with(source):
    # Three releases, 31,824 draws. Kolmogorov's p-value is below 1e-6 with probability 1e-6 where the law is right;
    # scales that are 10% off are missed with probability below 1e-4 (4 deviations: the distance is 0.024, 0.015 do).
    if source == "secure":
        pytest.importorskip("opendp")
    settings, spread = read_config("us"), RNG(5)
    rng = "secure" if source == "secure" else RNG(6)
    nobody = zeros(settings, tuple(sorted(STATES)))  # of the whole United States: what comes back is noise
    drawn = {1.0: [], 0.9: [], 1.1: []}
    for _ in range(3):
        for (table, level), noise in PHSafe(settings).measured(nobody, rng).counts.items():
            published, flat = noise_law(settings, table, level), noise.ravel()
            for factor, result in drawn.items():  # uniform, exactly, if it has the law: spread within each step
                law = DiscreteGaussian(factor * published.scale)
                result.append(law.cdf(flat - 1) + spread.random(flat.size) * np.exp(law.logpmf(flat)))
    p = {factor: stats.kstest(np.concatenate(result), "uniform").pvalue for factor, result in drawn.items()}
    assert sum(map(len, drawn[1.0])) == 3 * 10_608
    assert p[1.0] > 1e-6
    assert p[0.9] < 1e-6
    assert p[1.1] < 1e-6


def test_without_opendp_nothing_is_counted_and_no_other_noise_is_used(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "opendp", None)
    unread = [tmp_path / "nowhere.csv"] * 3
    with pytest.raises(ImportError, match=r"^secure noise needs the extra release: pip install 'plaudit\[release\]'$"):
        release(*unread, CONFIG, out=tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_what_is_written_is_what_is_read_in_files_like_those_of_production(out, noisy):
    assert {path.name for path in out.iterdir() if path.is_dir()} == set(PUBLISHED)
    for name, table in noisy.tables.items():
        assert [path.name for path in (out / name).iterdir()] == [f"{name}.csv"]
        lines = (out / name / f"{name}.csv").read_text().splitlines()
        assert lines == ["|".join(map(str, row)) for row in (table.columns, *table.rows())]
        assert (table["COUNT"].dtype, table["VARIANCE"].dtype) == (np.int64, np.float64)
    assert read_config(out / "config.json") == noisy.config
    assert json.loads((out / "release.json").read_text())["promise"]["rho"] == noisy.config.total


def test_an_empty_folder_is_replaced_in_one_step_and_a_link_stays(tmp_path, monkeypatch):
    """Whom files are for, `tests/hostile/test_endings.py` says."""

    def write(out):
        with whole_folder(out) as staged:
            (staged / "inner").mkdir()
            write_rows(staged / "inner" / "b.csv", ["A"], [])

    out, other, linked = tmp_path / "out", tmp_path / "other", tmp_path / "linked"
    out.mkdir(0o700)
    other.mkdir()
    linked.symlink_to(other, target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    for folder in ("out", "new", linked):
        write(folder)
    assert linked.is_symlink()
    assert out.stat().st_mode & 0o777 == 0o700
    assert all(contents(folder) == {"inner/b.csv": b"A\n"} for folder in (out, tmp_path / "new", other))
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    refuses(ValueError, "out must not be the current folder or a mount, got .", write, ".")
    late = tmp_path / "late"
    late.mkdir()
    with pytest.raises(OSError, match="not empty"), whole_folder(late):
        (late / "notes.txt").write_text("mine")  # what others put there meanwhile is kept
    assert contents(late) == {"notes.txt": b"mine"}


def test_a_release_says_how_often_its_intervals_hold_the_truth():
    """From its noise alone, of 24.6 and 15.7 persons, and from its own noisy sums; averages are not counts."""
    made = release(*PATHS, config(0.0, PH2=0.4, PH3=0.4), rng=RNG(1), published=True)
    cell, totals, other = made.coverage.splitlines()
    half = "and one of at least half the noise's standard deviation in 90%"
    assert cell == f"The published 90% interval of a cell holds a true count of 0 in 25% to 48% of releases, {half}."
    assert re.fullmatch(r"Totals .*: \d+ of 140 published totals are outside the 90% interval of .*\.", totals)
    meaning = made.files["published/PH2.csv"].columns[-1].meaning
    assert meaning.startswith("upper end of the 90% interval, which holds a true count of 0 in 25% of releases, and ")
    assert other.removesuffix(", and so do sums of COUNT with sums of VARIANCE.") in meaning
    made = release(*PATHS, config(0.0, PH1_num=0.4, PH1_denom=0.4, tau={"PH1_num": 4}), rng=RNG(1), published=True)
    assert (made.coverage, "true average" in made.files["published/PH1.csv"].columns[-1].meaning) == ("", True)
    assert made.published["PH1"]["UPPER"].max() <= 4 + 1e-6  # averages reach up to the threshold of their numerator


def test_a_release_that_does_not_pass_its_own_check_is_not_written(tmp_path, monkeypatch):
    def spoiled(noisy, settings):
        tables = lay_out(noisy, settings)
        return tables | {"PH6": tables["PH6"].where(np.arange(len(tables["PH6"])) > 0)}

    monkeypatch.setattr(MODULE, "lay_out", spoiled)
    with pytest.raises(ValueError, match=r"^PH6 must have each of 64 cells once, and the noise of its budget$"):
        release(*PATHS, config(0.01), rng=RNG(1), out=tmp_path / "out")
    assert not list(tmp_path.iterdir())


def changed(table, column, place, value):
    values = table[column].astype(object)
    values[place] = value
    kind = table[column].dtype
    return Frame({**table.to_dict(), column: values.astype(kind)})


CELLS = "PH3 must have each of 280 cells once, and the noise of its budget"
DAMAGES = {
    "a row less": (lambda t: t.where(np.arange(len(t)) != 5), CELLS),
    "a state that is not in the data": (lambda t: changed(t, "REGION_ID", 279, "01"), CELLS),
    "another law": (lambda t: changed(t, "NOISE_DISTRIBUTION", 0, "Two-Sided Geometric"), CELLS),
    "a variance a little off": (lambda t: changed(t, "VARIANCE", 9, 9800.02), CELLS),
    "columns in another order": (lambda t: Frame({n: t[n] for n in reversed(t.columns)}), CELLS),
    "another count": (lambda t: changed(t, "COUNT", 0, t["COUNT"][0] + 1), "PH3.csv must hold the noisy table"),
}


@pytest.mark.reliability(row=7)
@pytest.mark.parametrize(("change", "words"), DAMAGES.values(), ids=DAMAGES.keys())
def test_the_output_validation_finds_damage(noisy, out, change, words):
    tables = {**noisy.tables, "PH3": change(noisy.tables["PH3"])}
    refuses(ValueError, words, check_release, out, tables, noisy.config, noisy.states)


@pytest.mark.reliability(row=7)
def test_the_output_validation_knows_the_tables_and_the_settings(noisy, out):
    tables, few = noisy.tables, {name: table for name, table in noisy.tables.items() if name != "PH5_num"}
    check_release(out, tables, noisy.config, noisy.states)
    for wrong in (few, {**tables, "PH9": tables["PH7"]}, {}):
        with pytest.raises(ValueError, match=r"^a release must hold PH1_num, .*, PH8_denom, got "):
            check_release(out, wrong, noisy.config, noisy.states)
    for settings, states in ((config(0.02), noisy.states), (noisy.config, ("10", "11"))):
        with pytest.raises(ValueError, match=r"^PH1_num must have each of "):
            check_release(out, tables, settings, states)


def test_what_cannot_be_released_is_refused():
    empty = [Frame({name: np.array([], dtype=object) for name in columns(path)}) for path in PATHS]
    words = "geo must hold a housing unit (RTYPE 2) at least, got none: there is no state to publish"
    refuses(ValueError, words, release, *empty, "pr", rng=RNG(0))
    words = "published must be false for puredp: post-processing is for discrete Gaussian noise"
    refuses(ValueError, words, release, *PATHS, config(2.0, "puredp"), published=True)
