"""PHSafe's budget: the production settings against the printed numbers, the noise they give, and refused settings."""

import copy
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from algorithms.noise import DiscreteGaussian
from algorithms.phsafe.budget import Config, noise_law, noise_parameters, read_config
from algorithms.phsafe.ledger import Ledger
from algorithms.phsafe.schema import STATES
from algorithms.phsafe.tables import LEVELS, QUERIES
from audit.claims import ZCDP, PureDP

US, PR = read_config("us"), read_config("pr")
US_PURE = replace(US, privacy_definition="puredp")

# Sexton et al. (2024), table 10: levels in the order of LEVELS, queries by what they count and their threshold.
TEN = (0.002619, 0.002619, 0.002619, 0.016371, 0.141622, 0.016371)
SIX = (0.001061, 0.001061, 0.001061, 0.006630, 0.662976, 0.006630)
HOUSEHOLDS = (0.000022, 0.000022, 0.000022, 0.000135, 0.001170, 0.000135)
TABLE_10 = {"PH1_num": TEN, "PH2": TEN, "PH3": SIX, "PH4": TEN, "PH6": SIX, "PH7": TEN}
TABLE_10 |= dict.fromkeys(("PH1_denom", "PH5_denom", "PH8_denom"), HOUSEHOLDS)


def changed(*path, value, preset="us"):
    """What the file of a preset holds, with one value replaced."""
    values = read_config(preset).to_dict()
    place = values
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return values


def test_us_preset_is_table_10():
    assert set(TABLE_10) == set(QUERIES)
    for table, query in QUERIES.items():
        budgets = dict(zip(LEVELS, TABLE_10[table], strict=True))
        assert US.privacy_budget[table] == {level: budgets[level] for level in query.levels}
    assert US.tau == {"PH1_num": 10, "PH2": 10, "PH3": 6, "PH4": 10, "PH6": 6, "PH7": 10}
    assert (US.privacy_definition, US.states, len(US.states)) == ("zcdp", STATES, 51)
    assert len(list(US.budgets())) == 46


def test_pr_preset_is_its_state_levels():
    assert (PR.states, PR.tau) == (("72",), US.tau)
    assert list(PR.budgets()) == [row for row in US.budgets() if row[1].startswith("state_")]


def test_ledger_lists_every_query_and_prints_the_sums():
    account = Ledger(US)
    assert (account.unbounded, account.bounded) == (ZCDP(US.total), ZCDP(2 * US.total, relation="replace_one"))
    assert list(account.queries.rows()) == [(*row, 2 * row[2]) for row in US.budgets()]
    lines = str(account).partition("\n\n")[0].splitlines()
    assert lines[-1].startswith("For one person added or removed (unbounded) or replaced (bounded)")
    assert lines[0].split() == ["rho", "unbounded", "bounded"]
    assert "PH3        state_A-G             0.662976     1.325952" in lines
    assert "total                            1.257281     2.514562" in lines
    assert len(set(map(len, lines[:-1]))) == 1


def test_ledger_says_what_each_table_counts_and_what_spends_nothing():
    def legend(**spent):
        none = {table: dict.fromkeys(levels, 0.0) for table, levels in US.privacy_budget.items()}
        budget = {table: {**levels, "usa_*": spent.get(table, 0.0)} for table, levels in none.items()}
        return str(Ledger(read_config({**US.to_dict(), "privacy_budget": budget}))).partition("\n\n")[2].splitlines()

    persons = legend(PH2=0.1, PH4=0.1)
    assert [line.split()[0] for line in persons[:3]] == ["PH2", "PH4", "PH5_num"]
    assert persons[0].endswith("persons in households by type of household, at most 10 of a household (tau)")
    assert persons[2].endswith(": PH4 again, spends nothing")
    assert persons[3] == "Persons beyond tau are left out of the counts; this bias is not in VARIANCE."
    assert "PH8_num    persons in households by tenure: sums of cells of PH7, spends nothing" in str(Ledger(US))
    assert legend(PH5_denom=0.1)[0] == "PH5_denom  families"
    assert legend(PH5_denom=0.1)[1].startswith("Levels: ")


def test_pure_ledger_adds_up_epsilon_and_doubles_it():
    account = Ledger(US_PURE, delta=1e-6)
    assert account.unbounded == PureDP(US.total)
    assert account.bounded == PureDP(2 * US.total, relation="replace_one") == account.unbounded.under("replace_one")
    ((way, *losses),) = account.epsilons.rows()
    assert way == "tight"
    # The largest delta of an epsilon, solved for it: (exp(e) - exp(e')) / (1 + exp(e)) = delta (randomized response).
    exact = [math.log(math.exp(e) - 1e-6 * (1 + math.exp(e))) for e in (US.total, 2 * US.total)]
    assert losses == pytest.approx(exact, rel=1e-9)
    assert str(account).splitlines()[0].split() == ["epsilon", "unbounded", "bounded"]


def test_noise_is_that_of_production():
    frame = noise_parameters("us")
    assert frame.columns == ("TABLE", "LEVEL", "BUDGET", "STABILITY", "VARIANCE", "NOISE_DISTRIBUTION")
    assert len(frame) == 46
    assert set(frame["NOISE_DISTRIBUTION"]) == {"Discrete Gaussian"}
    result = {(table, level): values for table, level, _, *values in frame.rows()}
    # Of the production release: two digits after the point, a sensitivity of 2 tau + 2 or 2.
    for (table, level), stability, variance in (
        (("PH1_num", "usa_*"), 22, 92401.68),
        (("PH2", "state_*"), 22, 14782.24),
        (("PH7", "state_A-G"), 22, 1708.774),
        (("PH6", "usa_*"), 14, 92365.69),
        (("PH3", "state_A-G"), 14, 147.8183),
        (("PH1_denom", "usa_A-G"), 2, 90909.09),
        (("PH5_denom", "state_*"), 2, 14814.81),
        (("PH8_denom", "state_A-G"), 2, 1709.402),
    ):
        assert result[table, level][:2] == [stability, pytest.approx(variance, rel=1e-6)]


def test_pure_noise_is_geometric_with_its_own_variance():
    frame = noise_parameters(US_PURE)
    assert set(frame["NOISE_DISTRIBUTION"]) == {"Two-Sided Geometric"}
    for table, level, epsilon, stability, variance, _ in frame.rows():
        law = noise_law(US_PURE, table, level)
        assert law.epsilon <= epsilon / stability  # rounded towards more noise
        assert law.epsilon == pytest.approx(epsilon / stability, rel=1e-15)
        q = math.exp(-epsilon / stability)
        assert variance == pytest.approx(2 * q / (1 - q) ** 2, rel=1e-9)  # 1 - q cancels digits


def fill(budget):
    return {table: dict.fromkeys(query.levels, budget) for table, query in QUERIES.items()}


def test_law_has_the_published_scale():
    law = noise_law(US, "PH3", "state_A-G")
    assert isinstance(law, DiscreteGaussian)
    assert law.scale == pytest.approx(math.sqrt(147.8183), rel=1e-6)
    smaller = noise_law(replace(US, tau={**US.tau, "PH3": 1}), "PH3", "state_A-G")
    assert smaller.scale == pytest.approx(law.scale * 4 / 14)


def test_zero_budgets_are_left_out():
    config = read_config(changed("privacy_budget", "PH2", "usa_*", value=0))
    assert config.budget("PH2", "usa_*") == 0
    assert [row for row in US.budgets() if row not in list(config.budgets())] == [("PH2", "usa_*", 0.002619)]
    assert len(noise_parameters(config)) == len(Ledger(config).queries) == 45
    with pytest.raises(ValueError, match=r"^budget of PH2 usa_\* must be positive for there to be noise, got 0\.0$"):
        noise_law(config, "PH2", "usa_*")


def test_file_of_the_bureau_is_read(tmp_path):
    values = changed("state_filter", value=["10", "11", "56"]) | {"privacy_budget": fill(1e9)}
    path, marked = tmp_path / "config.json", tmp_path / "marked.json"
    path.write_text(json.dumps(values, indent=4))
    marked.write_text(json.dumps(values), encoding="utf-8-sig")  # with a byte order mark
    for source in (path, str(path), values, marked):
        config = read_config(source)
        assert (config.states, config.total) == (("10", "11", "56"), 46e9)
        assert config.to_dict() == values
    variances = noise_parameters(path)["VARIANCE"]
    assert min(variances) == 2e-9
    assert max(variances) == pytest.approx(2.42e-7, rel=1e-12)


def test_name_of_a_preset_is_no_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("us").write_text("no config")
    assert read_config("us") == US
    with pytest.raises(ValueError, match=r"config .* must be a \.json file, got us"):
        read_config(Path("us"))


def test_settings_stay_whatever_happens_to_what_they_were_made_of():
    values = US.to_dict()
    config = read_config(values)
    values["privacy_budget"]["PH2"]["usa_*"] = -1
    values["state_filter"].clear()
    assert config == US == copy.deepcopy(US) == read_config(US)
    for mapping in (US.privacy_budget["PH2"], US.tau):
        with pytest.raises(TypeError):
            mapping["usa_*"] = 1
    numbers = Config(fill(np.float32(0.5)), dict.fromkeys(US.tau, np.int64(3)), US.states)
    assert (numbers.total, numbers.stability("PH2")) == (23, 8)


PH3 = ("privacy_budget", "PH3", "usa_*")
NOT_NEGATIVE = r"of PH3 usa_\* must be 0 or more and finite, got"
REFUSED = [  # where in the settings, what is there, and what is told
    (("extra",), 1, ValueError, "config must have the keys privacy_budget, tau, .* got unknown 'extra'"),
    (("privacy_budget",), [1], TypeError, r"privacy_budget must be an object with the keys .*, got \[1\]$"),
    (("privacy_budget",), fill(0), ValueError, "add up to a positive finite number, got 0"),
    (("privacy_budget", "PH3"), {"usa_*": 1.0}, ValueError, "of PH3 must have the keys .*, got no usa_A-G, usa_H,I, "),
    (PH3, -1, ValueError, f"{NOT_NEGATIVE} -1$"),
    (PH3, math.nan, ValueError, f"{NOT_NEGATIVE} nan$"),
    (PH3, 10**400, ValueError, rf"{NOT_NEGATIVE} 1000000000\d*\.\.\.0+$"),
    (PH3, True, TypeError, r"of PH3 usa_\* must be a number, got True$"),
    (PH3, 1e-300, ValueError, r"out of reach of the noise, got 1e-300$"),
    (PH3, 1e300, ValueError, r"out of reach of the noise, got 1e\+300$"),
    (("privacy_budget", "PH9"), {}, ValueError, "privacy_budget must have the keys .* got unknown 'PH9'"),
    (("tau", "PH5_denom"), 1, ValueError, "tau must have the keys .* got unknown 'PH5_denom'"),
    (("tau", "PH4"), 0, ValueError, r"tau of PH4 must be at least 1, got 0$"),
    (("tau", "PH4"), 10**5, ValueError, r"tau of PH4 must be at most 99999, got 100000$"),
    (("tau", "PH4"), 10.0, TypeError, r"tau of PH4 must be an integer, got 10.0$"),
    (("state_filter",), [], ValueError, r"distinct codes .* alone, got \[\]$"),
    (("state_filter",), ["01", "02", "01"], ValueError, r"distinct codes .* alone, got \['01'\]$"),
    (("state_filter",), ["01", "72"], ValueError, r"distinct codes .* alone, got \['72'\]$"),
    (("state_filter",), "72", ValueError, "state_filter must be a list of .*, got '72'$"),
    (("state_filter",), ["72"], ValueError, r"PH1_num usa_\* must be 0 where state_filter is Puerto Rico"),
    (("reader",), "cef", ValueError, "reader must be \"csv\": there is no other here, got 'cef'"),
    (("privacy_defn",), "z\n" * 1000, ValueError, r"privacy_defn must be .*, got 'z\\nz\\n.*\.\.\..*'$"),
]
REFUSED = [(changed(*path, value=value), kind, words) for path, value, kind, words in REFUSED]
REFUSED += [
    ({}, ValueError, "got no privacy_budget, tau, state_filter, reader, privacy_defn"),
    ({**US.to_dict(), "privacy_defn": "puredp", "privacy_budget": fill(1e308)}, ValueError, "finite number, got inf"),
    (7, TypeError, "config must be a path, the name of a preset, a mapping or a Config, got 7"),
]


@pytest.mark.parametrize(("values", "kind", "words"), REFUSED)
def test_bad_settings_are_one_line_with_rule_and_value(values, kind, words):
    with pytest.raises(kind, match=words) as caught:
        read_config(values)
    assert str(caught.value).count("\n") == 0
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", r"{path}: config must be an object with the keys privacy_budget, .*, got \[\]$"),
        (json.dumps(US.to_dict()).replace("0.662976", "1e999"), "{path}: .*of PH3 state_A-G must be .*, got inf"),
        ('{"tau": 1, "reader": "csv", "tau": 2}', r"config \(us, pr or a file\) must be JSON, got {path}: "),
    ],
)
def test_bad_files_are_one_line_with_their_name(tmp_path, text, words):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises((TypeError, ValueError), match=f"^{words.replace('{path}', str(path))}") as caught:
        read_config(path)
    assert str(caught.value).count("\n") == 0


def test_other_bad_arguments_are_refused():
    for act, words in (
        (lambda: US.stability("PH5_num"), "table must be one of PH1_num, .*, got 'PH5_num'"),
        (lambda: noise_law(US, "PH9", "usa_*"), "table must be one of PH1_num, .*, got 'PH9'"),
        (lambda: US.budget("PH2", "usa_A-G"), r"of PH2 must be one of usa_\*, state_\*, got 'usa_A-G'"),
        (lambda: Ledger(US, delta=0), "between 0 and 1, got 0"),
    ):
        with pytest.raises(ValueError, match=words):
            act()
