"""Margins of error of PHSafe's noise: the printed table, exact laws summed term by term; the sheet of the explorer."""

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from algorithms.noise import DiscreteGaussian, TwoTailedGeometric
from algorithms.noise.budgets import exact_budget_for
from algorithms.noise.margins import coverage, exact_margin_of_error
from algorithms.phsafe.budget import noise_law, read_config
from algorithms.phsafe.explore import choose, compute, explore, rho_for, sheet, state_of
from algorithms.phsafe.ledger import Ledger
from algorithms.phsafe.tabulation.tabulate import household_sizes
from experiments.phsafe import table10 as phsafe_table10
from experiments.phsafe.table10 import margin_of_error
from tests.golden.phsafe import CONFIG, PATHS
from tests.helpers import plaudit, refuses

US = read_config("us")
US_PURE = replace(US, privacy_definition="puredp")
PRINTED = phsafe_table10.printed_table()
TARGETS = {
    table: {row["level"]: row["target"] for row in PRINTED if row["table"] == table}
    for table in dict.fromkeys(row["table"] for row in PRINTED)
}
pytestmark = pytest.mark.usefixtures("remembered")
STABILITIES = st.integers(1, 400)
LAWS = st.builds(DiscreteGaussian, st.floats(0.05, 1e5)) | st.builds(TwoTailedGeometric, st.floats(1e-4, 20))


@given(st.floats(104, 1e9))
def test_whole_part_of_164_sigma_never_covers_ninety_percent_of_large_noise(sigma):
    assert coverage(DiscreteGaussian(sigma), math.floor(1.64 * sigma)) < 0.9


TINY = float(np.finfo(float).tiny)  # ndtr is 0 from 38.4 standard deviations on, where a sum still is 2e-322


@given(st.floats(0.05, 1e4), st.integers(1, 10**5))
def test_proposition_1_discrete_tails_lie_below_continuous_ones_one_step_nearer(sigma, m):
    discrete, continuous = DiscreteGaussian(sigma).sf(m - 1), ndtr((1 - m) / sigma)  # P[X >= m] of each
    assert discrete <= continuous * (1 + 1e-9) + TINY


@given(st.floats(0.05, 1e4), st.floats(1, 1e5))
def test_corollary_1_discrete_tails_lie_below_continuous_ones_at_the_whole_part(sigma, x):
    assert DiscreteGaussian(sigma).sf(x) <= ndtr(-math.floor(x) / sigma) * (1 + 1e-9) + TINY


@pytest.mark.parametrize("sigma", [0.5, 12.158, 304.0])
def test_proposition_1_needs_its_step(sigma):
    m = round(sigma) or 1
    assert DiscreteGaussian(sigma).sf(m - 1) > ndtr(-m / sigma)  # P[X >= m] of each, without the step


@pytest.mark.parametrize("law", [DiscreteGaussian(0.3), DiscreteGaussian(12.158), TwoTailedGeometric(0.05)])
@pytest.mark.parametrize("confidence", [0.5, 0.999])
def test_exact_margin_by_summing_the_law(law, confidence):
    k = np.arange(2000)
    inside = np.exp(law.logpmf(k)) * np.where(k > 0, 2, 1)
    covered = inside.cumsum()
    margin = exact_margin_of_error(law, confidence)
    assert margin == int(np.argmax(covered >= confidence))
    assert coverage(law, margin) == pytest.approx(covered[margin], rel=1e-12)
    assert coverage(law, margin + 0.7) == coverage(law, margin)


@given(st.integers(1, 10**6), STABILITIES, st.floats(0.5, 4))
def test_margin_and_budget_are_inverse(margin, stability, z):
    assert margin_of_error(rho_for(margin, stability, z=z), stability, z) == margin


@given(LAWS, st.floats(0.01, 0.9999))
def test_exact_margin_is_the_least_that_covers(law, confidence):
    margin = exact_margin_of_error(law, confidence)
    assert coverage(law, margin) >= confidence - 1e-15
    if margin:
        assert coverage(law, margin - 1) < confidence + 1e-15


@settings(max_examples=60)
@given(st.integers(0, 3000), STABILITIES, st.floats(0.05, 0.999), st.sampled_from(["zcdp", "puredp"]))
def test_exact_budget_is_the_least_that_meets_the_margin(margin, stability, confidence, definition):
    budget = exact_budget_for(margin, stability, confidence=confidence, privacy_definition=definition)

    def exact(spent):
        pure = definition == "puredp"
        law = TwoTailedGeometric(spent / stability) if pure else DiscreteGaussian(stability / math.sqrt(2 * spent))
        return exact_margin_of_error(law, confidence)

    assert exact(budget) == margin
    assert exact(budget * (1 - 1e-6)) == margin + 1


def test_of_wide_margins_the_budget_is_that_of_continuous_noise():
    """Exponential tails are a tenth at log(10) scales, normal ones at 1.6449 sigma."""
    for margin in (10**9 - 1, 10**13):
        budget = exact_budget_for(margin, 1, privacy_definition="puredp")
        assert budget == pytest.approx(math.log(10) / margin, 1e-9)
        assert exact_budget_for(margin, 1) == pytest.approx((1.6448536269514722 / margin) ** 2 / 2, 3e-9)


@pytest.mark.parametrize("settings", [US, US_PURE])
def test_explored_rows_are_those_of_the_settings(settings):
    frame = explore(settings)
    assert list(zip(frame["TABLE"], frame["LEVEL"], frame["BUDGET"], strict=True)) == list(US.budgets())
    for table, level, budget, stability, sigma, margin, covered, exact in frame.rows():
        law, pure = noise_law(settings, table, level), settings is US_PURE
        assert stability == US.stability(table)
        assert sigma == pytest.approx(math.sqrt(law.variance) if pure else law.scale, rel=1e-9)
        assert margin == (math.floor(1.645 * sigma) if pure else margin_of_error(budget, stability, 1.645))
        assert covered == coverage(law, margin)
        assert exact == exact_margin_of_error(law)


def test_only_chosen_levels_are_left():
    config = choose("us", margins={"PH3": {"state_*": 20}, "PH2": {"usa_*": 500}}, tau={"PH3": 4})
    assert list(config.budgets()) == [("PH2", "usa_*", rho_for(500, 22)), ("PH3", "state_*", rho_for(20, 10))]
    assert config.tau == {**US.tau, "PH3": 4}
    assert choose(config) == config
    assert choose("us", margins=TARGETS).total == pytest.approx(1.257281, abs=46 * 5e-7)


SHEET = sheet()


def test_the_published_state_is_table_10():
    """Its margins alone give its budgets, to the printed digits."""
    result = compute(SHEET.published)
    anew = compute(SHEET.checked({f"phsafe/{row['table']}/{row['level']}/rho": None for row in PRINTED}))
    assert len(PRINTED) == 46
    for row in PRINTED:
        place = f"phsafe/{row['table']}/{row['level']}"
        assert result[f"{place}/rho"] == float(row["unbounded"])
        assert SHEET.published[f"{place}/margin"] == row["target"]
        digits = len(row["unbounded"].partition(".")[2])
        assert round(anew[f"{place}/rho"], digits) == float(row["unbounded"])
    assert f"{result['phsafe/total/all/rho']:.6f}" == "1.257281"
    assert f"{result['phsafe/total/all/bounded_rho']:.6f}" == "2.514562"


@pytest.mark.parametrize("config", ["us", "pr", CONFIG])
def test_settings_are_a_state_with_the_numbers_of_explore(config):
    result = compute(SHEET.checked(state_of(config)))
    for table, level, budget, _, *accuracy in explore(config).rows():
        names = ("rho", "sigma", "margin", "coverage", "exact")
        assert [result[f"phsafe/{table}/{level}/{name}"] for name in names] == [budget, *accuracy]
    assert result["phsafe/total/all/rho"] == read_config(config).total


def test_pure_privacy_takes_its_budgets_from_exact_margins():
    result = compute(SHEET.checked({"phsafe/all/all/privacy": "puredp"}))
    config = choose(US_PURE, margins=TARGETS)
    assert result["phsafe/total/all/epsilon"] == config.total
    assert result["phsafe/total/all/rho"] is None
    assert result["phsafe/total/all/bounded_epsilon_tight"] == Ledger(config).bounded.epsilon_at(1e-10)
    for row in PRINTED:
        assert result[f"phsafe/{row['table']}/{row['level']}/exact"] == row["target"]


def test_what_is_not_released_costs_nothing():
    off = {key: False for key in SHEET.published if key.endswith("/on")}
    result = compute(SHEET.checked(off))
    assert {value for key, value in result.items() if "/total/" not in key and "/all/" not in key} == {None}
    assert result["phsafe/total/all/rho"] == result["phsafe/total/all/epsilon_tight"] == 0
    alone = compute(SHEET.checked({**off, "phsafe/PH2/usa_*/on": True}))
    assert alone["phsafe/PH2/usa_*/share"] == 1


def test_the_curve_is_the_price_of_margins_around_the_current_one():
    result = compute(SHEET.checked({"phsafe/curve/all/row": "PH1_denom/usa_*"}))
    assert result["phsafe/curve/now/margin"] == result["phsafe/PH1_denom/usa_*/margin"]
    for step, margin in (("10", 247), ("20", 495), ("40", 990)):
        assert result[f"phsafe/curve/{step}/margin"] == margin
        assert result[f"phsafe/curve/{step}/budget"] == pytest.approx((1.645 * 2 / margin) ** 2 / 2)


def test_what_a_threshold_leaves_out_of_the_households_at_hand():
    sizes = household_sizes(*PATHS, CONFIG)
    assert sizes.keys() == US.tau.keys()
    result, homes = compute(SHEET.checked({"phsafe/PH1_num/all/tau": 4}), sizes), sizes["PH1_num"]
    left_out = sum((size - 4) * number for size, number in homes.items() if size > 4)
    people = sum(size * number for size, number in homes.items())
    assert result["phsafe/PH1_num/all/left_out"] == left_out > 0
    assert result["phsafe/PH1_num/all/left_out_share"] == left_out / people
    assert compute(SHEET.published)["phsafe/PH1_num/all/left_out"] is None
    assert compute(SHEET.published, {"PH2": {}})["phsafe/PH2/all/left_out_share"] is None


def test_a_page_with_data_is_confidential(tmp_path, monkeypatch, capsys):  # households are read twice
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("algorithms.systems.sheets", lambda: [SHEET])  # of other systems, a second for three pages
    persons, units = [f"--persons={PATHS[0]}"], [f"--units={PATHS[1]}"]
    Path("recode.json").write_text('{"geo": {"TABBLKST": {"from": "state"}}}')
    Path("geo.csv").write_text(PATHS[2].read_text("utf-8").replace("TABBLKST", "state"))
    recoded = [*persons, *units, "--geo=geo.csv", "--recode=recode.json"]
    for name, files in (("page", [*persons, *units, f"--geo={PATHS[2]}"]), ("other", recoded), ("public", [])):
        assert plaudit("explore", "phsafe", *files, "--html", f"{name}.html") == 0
        head = Path(f"{name}.html").read_text("utf-8").partition("<main")[0]
        assert ("CONFIDENTIAL" in head) == (name != "public")
    assert os.stat("page.html").st_mode & 0o777 == 0o600
    assert Path("other.html").read_text("utf-8") == Path("page.html").read_text("utf-8")
    capsys.readouterr()
    for wrong in (recoded, [*persons, *units, "--html", "third.html"], ["--recode=recode.json", "--html=a.html"]):
        assert plaudit("explore", "phsafe", *wrong) == 2
        message = "--persons, --units and --geo go together, with --recode and --derive if any, and with --html FILE"
        assert capsys.readouterr().err == f"plaudit: error: {message}\n"


def test_bad_arguments_are_refused():
    refuses(ValueError, "margin must be finite and at least 1, got 0.5", rho_for, 0.5, 22)
    refuses(ValueError, "margin must be finite and at least 0, got -1.0", coverage, DiscreteGaussian(1), -1)
    refuses(ValueError, "confidence must be between 0 and 1, got 1", exact_margin_of_error, DiscreteGaussian(1), 1)
    refuses(ValueError, "confidence must be between 0 and 1, got 90", exact_budget_for, 1, 2, confidence=90)
    wrong = 'privacy_definition must be "zcdp" or "puredp", got \'pure\''
    refuses(ValueError, wrong, exact_budget_for, 1, 2, privacy_definition="pure")
