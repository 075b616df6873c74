"""PHSafe's sheet: Table 10 of the paper, budgets and margins that drive each other, and data at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from algorithms.phsafe.budget import read_config
from algorithms.phsafe.explore import choose, explore
from algorithms.phsafe.explorer import compute, sheet, state_of
from algorithms.phsafe.ledger import ledger
from algorithms.phsafe.tabulation.sizes import household_sizes
from experiments.phsafe.table10 import printed_table
from tests.golden.phsafe import CONFIG, PATHS
from tests.helpers import plaudit

SHEET = sheet()
TABLE_10 = printed_table()


def results(**changes):
    return compute(SHEET.checked({key.replace("__", "/"): value for key, value in changes.items()}))


def at(place, **values):
    return {f"phsafe/{place}/{name}": value for name, value in values.items()}


def test_the_published_state_is_table_10():
    found = compute(SHEET.published)
    assert len(TABLE_10) == 46
    for row in TABLE_10:
        place = f"phsafe/{row['table']}/{row['level']}"
        assert found[f"{place}/rho"] == float(row["unbounded"])
        assert SHEET.published[f"{place}/margin"] == row["target"]
    assert f"{found['phsafe/total/all/rho']:.6f}" == "1.257281"
    assert f"{found['phsafe/total/all/bounded_rho']:.6f}" == "2.514562"
    epsilons = {
        way: [f"{found[f'phsafe/total/all/{kind}epsilon_{way}']:.3f}" for kind in ("", "bounded_")] for way in WAYS
    }
    assert epsilons == WAYS


WAYS = {"simple": ["12.018", "17.733"], "tight": ["11.412", "16.980"], "gaussian": ["10.944", "16.308"]}


def test_margins_alone_give_the_budgets_of_table_10_to_the_printed_digits():
    found = compute(SHEET.checked({f"phsafe/{row['table']}/{row['level']}/rho": None for row in TABLE_10}))
    for row in TABLE_10:
        digits = len(row["unbounded"].partition(".")[2])
        assert round(found[f"phsafe/{row['table']}/{row['level']}/rho"], digits) == float(row["unbounded"])


@pytest.mark.parametrize("config", ["us", "pr", CONFIG])
def test_settings_are_a_state_with_the_numbers_of_explore(config):
    found = compute(SHEET.checked(state_of(config)))
    for table, level, budget, _, sigma, margin, covered, exact in explore(config).rows():
        place = f"phsafe/{table}/{level}"
        shown = [found[f"{place}/{name}"] for name in ("rho", "sigma", "margin", "coverage", "exact")]
        assert shown == [budget, sigma, margin, covered, exact]
    assert found["phsafe/total/all/rho"] == read_config(config).total


def test_a_margin_that_is_halved_costs_four_times_the_budget():
    one = compute(SHEET.checked(at("PH3/state_A-G", rho=None)))
    half = compute(SHEET.checked(at("PH3/state_A-G", rho=None, margin=10)))
    key = "phsafe/PH3/state_A-G/rho"
    assert half[key] == pytest.approx(4 * one[key], rel=1e-12)
    assert half["phsafe/total/all/rho"] - one["phsafe/total/all/rho"] == pytest.approx(3 * one[key], rel=1e-12)


def test_pure_privacy_takes_its_budgets_from_exact_margins():
    state = SHEET.checked({"phsafe/all/all/privacy": "puredp"})
    found = compute(state)
    margins = {}
    for row in TABLE_10:
        margins.setdefault(row["table"], {})[row["level"]] = row["target"]
    config = choose({**read_config("us").to_dict(), "privacy_defn": "puredp"}, margins=margins, z=None)
    assert found["phsafe/total/all/epsilon"] == config.total
    assert found["phsafe/total/all/rho"] is None
    assert found["phsafe/total/all/bounded_epsilon_tight"] == ledger(config).bounded.epsilon_at(1e-10)
    assert [found[f"phsafe/{row['table']}/{row['level']}/exact"] for row in TABLE_10] == [
        row["target"] for row in TABLE_10
    ]


def test_what_is_not_released_costs_nothing():
    off = {key: False for key in SHEET.published if key.endswith("/on")}
    found = compute(SHEET.checked(off))
    assert {value for key, value in found.items() if "/total/" not in key and "/all/" not in key} == {None}
    assert found["phsafe/total/all/rho"] == found["phsafe/total/all/epsilon_tight"] == 0
    alone = compute(SHEET.checked({**off, "phsafe/PH2/usa_*/on": True}))
    assert alone["phsafe/PH2/usa_*/share"] == 1


def test_the_curve_is_the_price_of_margins_around_the_current_one():
    found = compute(SHEET.checked({"phsafe/curve/all/row": "PH1_denom/usa_*"}))
    assert found["phsafe/curve/now/margin"] == found["phsafe/PH1_denom/usa_*/margin"]
    points = [
        (found[f"phsafe/curve/{step:02}/margin"], found[f"phsafe/curve/{step:02}/budget"]) for step in (10, 20, 40)
    ]
    assert [margin for margin, _ in points] == [247, 495, 990]
    assert all(budget == pytest.approx((1.645 * 2 / margin) ** 2 / 2) for margin, budget in points)


# Households at hand


def test_what_a_threshold_leaves_out_of_the_households_at_hand():
    sizes = household_sizes(*PATHS, CONFIG)
    assert sizes.keys() == {name for name in read_config("us").tau}
    found = compute(SHEET.checked({"phsafe/PH1_num/all/tau": 4}), sizes)
    people = [(size, homes) for size, homes in sizes["PH1_num"].items()]
    assert sum(size > 4 for size, _ in people) > 0
    assert found["phsafe/PH1_num/all/left_out"] == sum((size - 4) * homes for size, homes in people if size > 4)
    assert 0 < found["phsafe/PH1_num/all/left_out_share"] < 1
    assert compute(SHEET.published)["phsafe/PH1_num/all/left_out"] is None
    assert compute(SHEET.published, {"PH2": {}})["phsafe/PH2/all/left_out_share"] is None


def test_a_page_with_data_is_confidential(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files = [
        word for name, path in zip(("persons", "units", "geo"), PATHS, strict=True) for word in (f"--{name}", path)
    ]
    assert plaudit("explore", "phsafe", *files, "--html", "page.html") == 0
    assert "CONFIDENTIAL" in Path("page.html").read_text("utf-8").partition("<main")[0]
    assert os.stat("page.html").st_mode & 0o777 == 0o600
    assert plaudit("explore", "phsafe", "--html", "public.html") == 0
    assert "CONFIDENTIAL" not in Path("public.html").read_text("utf-8").partition("<main")[0]
    capsys.readouterr()
    for wrong in (files, [*files[:4], "--html", "other.html"]):
        assert plaudit("explore", "phsafe", *wrong) == 2
        told = "plaudit: error: --persons, --units and --geo go together, and with --html FILE\n"
        assert capsys.readouterr().err == told
