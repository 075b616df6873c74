"""TopDown's sheet: the noise of the published settings, and shares that always add up."""

from __future__ import annotations

import json

import pytest

from algorithms.hierarchy import Hierarchy
from algorithms.topdown import preset
from algorithms.topdown.explorer.sheet import LEVELS, PLACES, compute, sheet, sheet_of
from algorithms.topdown.ledger import Ledger
from algorithms.topdown.presets import PRESETS, settings_of
from tests.docs.pages import ROOT
from tests.helpers import plaudit

SHEET = sheet()
SURVEY, DEATHS = (ROOT / "examples" / f"{name}.json" for name in ("survey", "deaths"))


@pytest.mark.parametrize("name", SHEET.presets)
def test_presets_have_the_noise_and_the_promise_of_a_release(name):
    found = compute(SHEET.checked({"topdown/all/all/preset": name, "topdown/all/all/delta": 1e-6}))
    levels = list(PRESETS[name].levels)
    release = Ledger(preset(name, Hierarchy.regular(1, len(levels) - 1)), delta=1e-6)
    rows = list(release.noise.rows())
    assert len(rows) == sum(key.endswith("/sigma") and value is not None for key, value in found.items())
    discrete = "rho" in str(release.replaced)
    for level, query, _, share, budget, scale, variance in rows:
        place = f"topdown/{query}/{PLACES[levels[level]]}"
        assert found[f"{place}/budget"] == pytest.approx(budget, rel=1e-14), (place, share)
        assert found[f"{place}/sigma"] == pytest.approx(scale if discrete else variance**0.5, rel=1e-12)
    for way, replaced, added in release.epsilons.rows():
        assert found[f"topdown/total/all/replaced_epsilon_{way.lower()}"] == replaced
        assert found[f"topdown/total/all/added_epsilon_{way.lower()}"] == added


@pytest.mark.parametrize(("areas", "rho"), [((), None), (("Region", "district"), 0.5)])
def test_settings_of_ones_own_have_the_noise_of_their_release(areas, rho):
    settings = settings_of(spec=SURVEY)
    own = sheet_of(settings, areas, epsilon=None, rho=rho)
    found, keys = own.compute(own.published), {name: key for key, name in own.words.items()}
    rows = list(Ledger(preset(settings, Hierarchy.regular(1, 2), rho=rho)).noise.rows())
    assert len(rows) == sum(key.endswith("/sigma") and value is not None for key, value in found.items())
    for level, query, _, _, budget, scale, variance in rows:
        named = [keys[name].partition(".")[2] for name in (query, list(settings.levels)[level])]
        assert found[f"topdown/{'/'.join(named)}/budget"] == pytest.approx(budget, rel=1e-14)
        assert found[f"topdown/{'/'.join(named)}/sigma"] == pytest.approx(scale if rho else variance**0.5, rel=1e-12)


def test_the_command_shows_settings_of_ones_own(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps({"attributes": {"sex": ["f", "m"]}, "invariants": {"county": "total"}}))
    assert plaudit("explore", "topdown", "--spec", SURVEY) == 0
    assert "region sex*age 1 10.00% 0.200000 14.136 23" in " ".join(capsys.readouterr().out.split())
    given = ("--spec", plain, "--areas", "state,county", "--epsilon", "3", "--html", tmp_path / "own.html")
    assert plaudit("explore", "topdown", *given) == 0
    page = (tmp_path / "own.html").read_text()
    assert page.count("Settings of plain.json. Published exactly: total of county.") >= 2  # in either language


def test_the_published_margin_of_a_block():
    assert compute(SHEET.published)["topdown/total/block/margin"] == 147


def test_shares_are_parts_of_what_is_asked():
    state = {key: 0 for key in SHEET.published if key.endswith("/parts")}
    nothing = compute(SHEET.checked(state))
    assert {value for key, value in nothing.items() if "total/all" not in key} == {None}
    state |= {"topdown/all/state/parts": 3, "topdown/all/block/parts": 1, "topdown/all/tract/parts": 5}
    state |= {"topdown/total/state/parts": 1, "topdown/detailed/state/parts": 1, "topdown/detailed/block/parts": 7}
    found = compute(SHEET.checked(state))
    shares = [found[f"topdown/all/{PLACES[level]}/share"] for level in LEVELS]
    assert shares == [None, 0.75, None, None, None, 0.25, None]
    assert found["topdown/total/state/share"] == 0.375
    assert found["topdown/detailed/block/share"] == 0.25


def test_a_budget_too_small_for_noise_has_none():
    state = {"topdown/all/all/privacy": "puredp", "topdown/all/all/budget": 0.001}
    state |= {"topdown/all/nation/parts": 9999, "topdown/all/block/parts": 1, "topdown/cenrace/block/parts": 1}
    state |= {f"topdown/detailed/{place}/parts": 9999 for place in PLACES.values()}
    assert compute(SHEET.checked(state))["topdown/cenrace/block/sigma"] is not None
    smallest = {f"topdown/all/{place}/parts": 9999 for place in PLACES.values()} | {"topdown/all/block/parts": 1}
    smallest |= {key: 9999 for key in SHEET.published if key.endswith("block/parts") and "/all/" not in key}
    smallest |= {"topdown/cenrace/block/parts": 1, "topdown/all/all/privacy": "puredp", "topdown/all/all/budget": 0.001}
    found = compute(SHEET.checked(smallest))
    assert found["topdown/cenrace/block/share"] > 0
    assert found["topdown/cenrace/block/sigma"] is None
    assert found["topdown/total/block/sigma"] is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "Block group Total "),
        (("--preset", "e2e-1940", "--epsilon", "4"), "Enumeration district"),
        (("--rho", "1"), ", one record replaced 1.000000"),
    ],
)
def test_the_command_prints_the_tables(capsys, monkeypatch, options, words):
    monkeypatch.setenv("COLUMNS", "200")
    assert plaudit("explore", "topdown", *options) == 0
    assert words in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (("--preset", "micro"), "preset must be one of pl94-2020, e2e-1940, h1, got 'micro'"),
        (("--rho", "1", "--epsilon", "1"), "one of epsilon and rho must be given at most, got 1.0 and 1.0"),
        (("--areas", "state"), "--areas goes with --spec"),
        (
            ("--spec", SURVEY, "--preset", "h1"),
            f"one of --preset and --spec must be given at most, got h1 and {SURVEY}",
        ),
        (
            ("--spec", SURVEY, "--rho", "1e7"),
            "topdown/all/all/budget must be a number from 0.001 to 1e+06, got 10000000.0",
        ),
        (("--spec", DEATHS), "--areas is needed: deaths.json names no levels"),
        (("--spec", DEATHS, "--areas", "a,b"), "a budget is needed, --epsilon or --rho: deaths.json has no promise"),
        (("--rho", "-1"), "topdown/all/all/budget must be a number from 0.001 to 1e+06, got -1.0"),
    ],
)
def test_bad_options_are_refused(capsys, options, rule):
    assert plaudit("explore", "topdown", *options) == 2
    assert capsys.readouterr().err == f"plaudit: error: {rule}\n"
