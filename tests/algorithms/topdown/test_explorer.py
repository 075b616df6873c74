"""TopDown's sheet: the noise of the published settings, and shares that always add up."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from algorithms.hierarchy import Hierarchy
from algorithms.noise.margins import exact_margin_of_error
from algorithms.topdown import preset
from algorithms.topdown.budget import Budget
from algorithms.topdown.explorer.sheet import LEVELS, PLACES, POINTS, WIDEST, compute, sheet, sheet_of
from algorithms.topdown.ledger import Ledger
from algorithms.topdown.presets import PRESETS, settings_of
from audit.claims import ZCDP, PureDP
from tests.docs.pages import ROOT
from tests.helpers import plaudit

pytestmark = pytest.mark.usefixtures("remembered")
SHEET, BUDGET = sheet(), "topdown/all/all/budget"
SURVEY, DEATHS = (ROOT / "examples" / f"{name}.json" for name in ("survey", "deaths"))


@pytest.mark.parametrize("name", SHEET.presets)
def test_presets_have_the_noise_and_the_promise_of_a_release(name):
    result = compute(SHEET.checked({"topdown/all/all/preset": name, "topdown/all/all/delta": 1e-6}))
    levels = list(PRESETS[name].levels)
    release = Ledger(preset(name, Hierarchy.regular(1, len(levels) - 1)), delta=1e-6)
    rows = list(release.noise.rows())
    assert len(rows) == sum(key.endswith("/sigma") and value is not None for key, value in result.items())
    for level, query, _, share, budget, scale, variance in rows:
        place = f"topdown/{query}/{PLACES[levels[level]]}"
        assert result[f"{place}/budget"] == pytest.approx(budget, rel=1e-14), (place, share)
        sigma = scale if isinstance(release.replaced, ZCDP) else variance**0.5
        assert result[f"{place}/sigma"] == pytest.approx(sigma, rel=1e-12)
    for way, replaced, added in release.epsilons.rows():
        assert result[f"topdown/total/all/replaced_epsilon_{way.lower()}"] == replaced
        assert result[f"topdown/total/all/added_epsilon_{way.lower()}"] == added
    for side, promise in (("replaced", release.replaced), ("added", release.added)):
        assert result[f"topdown/total/all/{side}_guessed"] == promise.guessed_right
    if name == "pl94-2020":
        assert result["topdown/total/block/margin"] == 147  # the published one


@pytest.mark.parametrize(("areas", "rho"), [((), None), (("Region", "district"), 0.5)])
def test_settings_of_ones_own_have_the_noise_of_their_release(areas, rho):
    settings = settings_of(spec=SURVEY)
    own = sheet_of(settings, areas, epsilon=None, rho=rho)
    result, keys = own.compute(own.published), {name: key for key, name in own.words.items()}
    rows = list(Ledger(preset(settings, Hierarchy.regular(1, 2), rho=rho)).noise.rows())
    assert len(rows) == sum(key.endswith("/sigma") and value is not None for key, value in result.items())
    for level, query, _, _, budget, scale, variance in rows:
        named = [keys[name].partition(".")[2] for name in (query, list(settings.levels)[level])]
        assert result[f"topdown/{'/'.join(named)}/budget"] == pytest.approx(budget, rel=1e-14)
        assert result[f"topdown/{'/'.join(named)}/sigma"] == pytest.approx(scale if rho else variance**0.5, rel=1e-12)


def test_the_command_shows_the_settings(capsys, monkeypatch, tmp_path):  # five commands
    monkeypatch.setattr("algorithms.systems.sheets", lambda: [SHEET])
    monkeypatch.setenv("COLUMNS", "200")
    for options, words in (
        ((), "Block group Total "),
        (("--preset", "e2e-1940", "--epsilon", "4"), "Enumeration district"),
        (("--rho", "1"), ", one record replaced 1.000000"),
        (("--spec", SURVEY), "region sex*age 1 10.00% 0.200000 14.136 23"),
    ):
        assert plaudit("explore", "topdown", *options) == 0
        assert words in " ".join(capsys.readouterr().out.split())
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps({"attributes": {"sex": ["f", "m"]}, "invariants": {"county": "total"}}))
    given = ("--spec", plain, "--areas", "state,county", "--epsilon", "3", "--html", tmp_path / "own.html")
    assert plaudit("explore", "topdown", *given) == 0
    page = (tmp_path / "own.html").read_text()
    assert page.count("Settings of plain.json. Published exactly: total of county.") >= 2  # in either language


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("kind", ["zcdp", "puredp"])
@pytest.mark.parametrize("pays", ["total", "share"])
def test_a_margin_costs_the_least_budget_that_gives_it(kind, relation, pays):
    """By the exact law of a release: a hundred-millionth less has a larger margin."""
    row, wanted = "hispanic/tract", 9
    state = {"topdown/all/all/privacy": kind, "topdown/all/all/relation": relation, "topdown/all/all/budget": 20.0}
    before = compute(SHEET.checked(state | {"topdown/curve/all/row": row}))
    state |= {"topdown/curve/all/row": row, "topdown/all/all/margin": wanted, "topdown/all/all/pays": pays}
    result = compute(SHEET.checked(state))
    promise = (ZCDP if kind == "zcdp" else PureDP)(result[f"topdown/{row}/budget"], relation)
    assert result["topdown/all/all/needed"] == pytest.approx(promise.budget, rel=1e-12)
    for part, margin in ((1, wanted), (1 - 1e-8, wanted + 1)):
        law = Budget(promise.at(promise.budget * part), [1], [{"total": 1}]).law(Fraction(1), "total", 0)
        assert exact_margin_of_error(law) == margin
    shares = {key: value for key, value in result.items() if key.endswith("/share") and "/all/" not in key and value}
    assert math.fsum(shares.values()) == pytest.approx(1, rel=1e-12)
    ratio = {round(value / before[key], 9) for key, value in shares.items() if row not in key}
    assert len(ratio) == 1  # what the others have stays in proportion
    assert (ratio == {1.0}) == (pays == "total") == (result["topdown/all/all/budget"] != 20.0)
    assert result["topdown/all/all/margin"] == (wanted if pays == "total" else None)


def test_the_curve_has_the_least_total_for_each_margin():
    result = compute(SHEET.published)
    now = result["topdown/curve/now/margin"]
    points = [(result[f"topdown/curve/{at}/budget"], result[f"topdown/curve/{at}/margin"]) for at in POINTS]
    assert (points[0][1], points[-1][1]) == (now * 2 // 5, now * 2 // 5 + now * 21 // 10)
    for budget, margin in (points[0], points[7], points[-1]):
        for part, wanted in ((1, margin), (1 - 1e-8, margin + 1)):
            state = {"topdown/all/all/budget": budget * part}
            assert compute(SHEET.checked(state))["topdown/curve/now/margin"] == wanted


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"topdown/all/all/margin": 1, "topdown/all/all/budget": 0.5, "topdown/all/all/pays": "share"}, "share"),
        ({"topdown/all/all/margin": 9, "topdown/curve/all/row": "detailed/district"}, "measured"),
    ],
)
def test_a_margin_out_of_reach_is_refused_and_changes_nothing(state, why):
    result = compute(SHEET.checked(state))
    assert result["topdown/all/all/refused"] == f"topdown.refused.{why}"
    without = compute(SHEET.checked({key: value for key, value in state.items() if "margin" not in key}))
    for key in result:
        assert not key.endswith(("sigma", "budget", "share")) or result[key] == without[key]


def test_totals_of_ones_own_and_the_same_relative_error():
    rows = {"total/county": "5 30 100000", "detailed/tract": "12"}
    state = {f"topdown/{row}/totals": totals for row, totals in rows.items()}
    result = compute(SHEET.checked(state))
    numbers = np.arange(-5000, 5001)
    masses = np.exp(-((numbers / result["topdown/total/county/sigma"]) ** 2) / 2)
    assert result["topdown/total/county/relative"] == result["topdown/total/county/margin"] / 30
    wrong = [sum(masses[abs(numbers) > total / 10]) / sum(masses) for total in (5, 30, 100_000)]
    assert result["topdown/total/county/off"] == pytest.approx(sum(wrong) / 3, abs=1e-12)
    even = [result[f"topdown/{row}/even"] for row in rows]
    assert sum(even) == pytest.approx(sum(result[f"topdown/{row}/budget"] for row in rows), rel=1e-12)
    assert math.sqrt(1 / even[0]) / 30 == pytest.approx(math.sqrt(1 / even[1]) / 12, rel=1e-12)


def test_the_command_goes_from_a_margin_to_its_budget(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shared = ("--spec", SURVEY, "--rho", "1", "--margin", "sex*age:region=20", "--share")
    for options, *words in (
        (
            ("--margin", "hispanic*cenrace:county=20"),
            "County, Hispanic origin by race: a margin of 20 needs a total rho of 8.634, instead of the 2.556 of the ",
            ", one record replaced 8.633605",
        ),
        (shared, "region, sex*age: a margin of 20 needs ", ", one record replaced 1.000000", " 20 200 "),
    ):
        assert plaudit("explore", "topdown", *options) == 0
        message = " ".join(capsys.readouterr().out.split())
        assert [text for text in words if text not in message] == []


def test_shares_are_parts_of_what_is_asked():
    state = {key: 0 for key in SHEET.published if key.endswith("/parts")}
    nothing = compute(SHEET.checked(state))
    assert {value for key, value in nothing.items() if "total/all" not in key and key != BUDGET} == {None}
    parts = {"all/state": 3, "all/block": 1, "all/tract": 5, "total/state": 1, "detailed/state": 1, "detailed/block": 7}
    result = compute(SHEET.checked(state | {f"topdown/{place}/parts": part for place, part in parts.items()}))
    shares = [result[f"topdown/all/{PLACES[level]}/share"] for level in LEVELS]
    assert shares == [None, 0.75, None, None, None, 0.25, None]
    assert result["topdown/total/state/share"] == 0.375
    assert result["topdown/detailed/block/share"] == 0.25


def test_a_budget_too_small_for_noise_has_none():
    weak = {"topdown/all/all/privacy": "puredp", "topdown/all/all/budget": 0.001}
    small = {"topdown/all/nation/parts": 400, "topdown/all/block/parts": 1, "topdown/cenrace/block/parts": 1}
    small |= {f"topdown/detailed/{place}/parts": 400 for place in PLACES.values()}
    assert 1e9 < compute(SHEET.checked(weak | small))["topdown/cenrace/block/sigma"] <= WIDEST
    smallest = {f"topdown/all/{place}/parts": 9999 for place in PLACES.values()} | {"topdown/all/block/parts": 1}
    smallest |= {key: 9999 for key in SHEET.published if key.endswith("block/parts") and "/all/" not in key}
    result = compute(SHEET.checked(weak | smallest | {"topdown/cenrace/block/parts": 1}))
    assert result["topdown/cenrace/block/share"] > 0
    assert result["topdown/cenrace/block/sigma"] is None
    assert result["topdown/total/block/sigma"] is not None


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (("--preset", "micro"), "preset must be one of pl94-2020, e2e-1940, h1, got 'micro'"),
        (("--rho", "1", "--epsilon", "1"), "epsilon and rho exclude each other, got 1.0 and 1.0"),
        (("--areas", "state"), "--areas goes with --spec"),
        (("--share",), "--share goes with --margin"),
        (
            ("--margin", "total=20"),
            "--margin must name a query at one of the levels nation, state, county, tract, "
            "block_group, block, district, as total:county=20, got 'total=20'",
        ),
        (("--spec", DEATHS), "--areas is needed: deaths.json names no levels"),
        (("--spec", DEATHS, "--areas", "a,b"), "a budget is needed, --epsilon or --rho: deaths.json has no promise"),
    ],
)
def test_bad_options_are_refused(capsys, options, rule):
    assert plaudit("explore", "topdown", *options) == 2
    assert capsys.readouterr().err == f"plaudit: error: {rule}\n"
