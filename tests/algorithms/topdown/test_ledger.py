"""What a TopDown release spends and promises, against the published numbers of production."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from algorithms.hierarchy import Hierarchy
from algorithms.release.ledger import conversions
from algorithms.schema import Schema
from algorithms.topdown import TopDown, preset
from algorithms.topdown.budget import Budget
from algorithms.topdown.estimation.constraints import Invariant
from algorithms.topdown.estimation.splitting import BETWEEN_PASSES
from algorithms.topdown.ledger import Ledger, noise_table
from algorithms.topdown.presets import PRESETS
from audit.claims import ZCDP, PureDP

SIX_LEVELS = Hierarchy.regular(1, 5)
SCHEMA = Schema({"sex": ("female", "male")})
PERSONS, TEST = PRESETS["pl94-2020"], PRESETS["e2e-1940"]
PAGE = (Path(__file__).parents[3] / "docs/explanation/topdown_production.md").read_text("utf-8").replace("\\*", "*")
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
SHARES = (
    Path(__file__).with_name("shares.csv").read_text("utf-8").splitlines()
)  # of the Bureau's person_US.ini, strategies.py


def test_shares_are_those_of_production():
    rows = []
    for level, share in PERSONS.levels.items():
        queries = [*PERSONS.queries[level].values()]
        whole = math.lcm(*(part.denominator for part in queries))
        rows.append([level, *map(str, [share * 4099, whole, *(part * whole for part in queries)])])
    assert rows == [row.split(",") for row in SHARES[1:]]
    noise = noise_table(preset(PERSONS, SIX_LEVELS))
    assert np.array(noise["SCALE"]) ** 2 * noise["BUDGET"] == pytest.approx(1, rel=1e-12)


def test_settings_are_those_that_the_page_on_production_says():
    run, levels = preset(PERSONS, SIX_LEVELS, facilities=np.ones((1, 8), int)), [*PERSONS.levels]
    first, passes = ", ".join(levels[j] for j in run.passes), {level: run.rounded(j) for j, level in enumerate(levels)}
    nested, other = passes["state"][1], ", ".join(level for level in levels if len(passes[level]) == 1)
    lower, upper = run.bounds[0].lower[0], run.bounds[0].upper[0]
    shares = ", ".join(f"{float(share):g} {name}" for name, share in TEST.queries["nation"].items())
    result = {
        "budget of persons": f"= {run.claim.budget:.4f}",
        "delta": f"delta {Ledger(run).delta:g}",
        f"shares of the 6 levels and {sum(map(len, PERSONS.queries.values()))} queries": "as published",
        "slack between the two": f"{BETWEEN_PASSES:g}",
        "order of queries": f"at {first} the total is fitted first, then all others; at {other} all at once",
        "passes of rounding": f"at {first} the total, then {len(nested)} nested queries; at {other} all 6 at once",
        "failsafe for persons": f"a failsafe on {run.minimal}",
        "persons in a housing unit": f"{lower[0]} to {upper[0]:,}",
        "persons in a facility": f"{lower[1]} to {upper[1]:,}",
        "end-to-end test: persons in a housing unit": "{} to {}".format(*TEST.persons_a_unit),
        "end-to-end test: budget": f"{TEST.levels['nation']} for each of the {len(TEST.levels)} levels; {shares}",
        "end-to-end test: failsafe, rounding": f"on {TEST.minimal}; {TEST.rounding or 'cell by cell'}",
    }
    texts = {row[0]: str(row) for row in ROWS}
    assert {name: words for name, words in result.items() if words not in texts[name]} == {}
    assert all(passes[level] == [["total"], nested] for level in first.split(", "))
    assert passes["block"] == passes["nation"] == [["total", *nested]]


def rounded(value, printed):
    return f"{value:.{len(printed.partition('.')[2])}f}"


@pytest.mark.parametrize(
    ("name", "rho", "epsilons"),
    [
        ("pl94-2020", "2.5562", {"simple": "17.90", "tight": "17.144", "Gaussian": "16.47"}),
        ("h1", "0.0749", {"tight": "2.475", "Gaussian": "2.36"}),
    ],
)
def test_totals_are_those_of_the_redistricting_data(name, rho, epsilons):
    account = Ledger(preset(name, SIX_LEVELS))
    assert account.replaced.relation == "replace_one"
    assert rounded(account.replaced.rho, rho) == rho
    result = {way: replaced for way, replaced, _ in account.epsilons.rows()}
    assert list(result) == ["simple", "tight", "Gaussian"]
    assert {way: rounded(result[way], printed) for way, printed in epsilons.items()} == epsilons
    assert f"{epsilons['tight']}" in str(account)


def test_parameters_are_those_of_the_1940_runs():
    for epsilon, parameters in ((1.0, ["0.0125", "0.0281", "0.0844"]), (0.25, ["0.0031", "0.0070", "0.0211"])):
        table = noise_table(preset("e2e-1940", Hierarchy.regular(2, 3), epsilon=epsilon))
        assert [f"{scale:.4f}" for scale in table["SCALE"]] == parameters * 4
        assert table["AREAS"].tolist() == [areas for areas in (1, 2, 4, 8) for _ in range(3)]


def test_shares_are_exact_and_add_up_along_every_path():
    # Root with two parts: one is split in two and these once more, one is a leaf.
    tree = Hierarchy.from_parents([-1, 0, 0, 1, 1, 3, 4, 4])
    budget = Budget(ZCDP(0.7), ["1/7", "2/7", "1/7", "3/7"], [{"total": "1/3", "detailed": "2/3"}] * 4)
    plan, shares = TopDown(SCHEMA, tree, budget), {}
    for level, query, areas, share, spent, scale, variance in noise_table(plan).rows():
        (places,) = (places for places, law in plan.laws(level, query) if law.scale == scale)
        assert places.size == areas
        shares |= {(tree.level(level).start + place, query): Fraction(share) for place in places}
        assert spent == pytest.approx(0.7 * float(Fraction(share)), rel=1e-15)
        assert variance == pytest.approx(1 / (2 * spent), rel=1e-6)  # sigma is large: the variance is its square
    for leaf in range(tree.n_leaves):
        assert sum(shares[node, query] for node in tree.path(leaf) for query in ("total", "detailed")) == 1
    assert len(shares) == 2 * tree.n_nodes


def test_areas_of_one_level_with_different_shares_have_rows_of_their_own():
    tree = Hierarchy.from_parents([-1, 0, 0, 1])
    budget = Budget(PureDP(1.0, "replace_one"), ["1/2", "1/3", "1/6"], [{"detailed": 1}] * 3)
    table = noise_table(TopDown(SCHEMA, tree, budget))
    rows = [(level, areas, share) for level, _, areas, share, *_ in table.rows()]
    assert rows == [(0, 1, "1/2"), (1, 1, "1/3"), (1, 1, "1/2"), (2, 1, "1/6")]
    np.testing.assert_allclose(table["SCALE"], table["BUDGET"] / 2, rtol=1e-12)
    assert all(table["SCALE"] < table["BUDGET"] / 2)  # rounded towards more noise


@pytest.mark.parametrize("promise", [PureDP(1.5, "replace_one"), ZCDP(0.5, "replace_one"), ZCDP(0.25)])
def test_one_record_replaced_costs_twice_one_added(promise):
    budget = Budget(promise, ["1/2", "1/2"], [{"detailed": 1}] * 2)
    account = Ledger(TopDown(SCHEMA, Hierarchy.regular(2, 1), budget), delta=1e-6)
    claims = replaced, added = account.replaced, account.added
    assert (replaced.relation, added.relation, replaced.budget) == ("replace_one", "add_remove", 2 * added.budget)
    assert promise in claims
    for way, *epsilons in account.epsilons.rows():
        assert epsilons == [conversions(claim, 1e-6)[way] for claim in claims]


def test_the_page_ends_in_what_the_promise_is_relative_to():
    tree = Hierarchy.regular(2, 3)
    fitted, last = str(Ledger(preset("e2e-1940", tree))).splitlines()[-2:]
    assert fitted.endswith("Tables are fitted to them: rare groups are too large.")
    assert last.startswith("The promise is relative to the invariants, which are published exactly (total of level 1):")
    assert last.endswith("none added or removed, which changes them.")
    bounded = preset("e2e-1940", tree, facilities=np.ones((8, 8)), invariants=[Invariant("total", 0)])
    for settings, end in (
        (preset("micro", tree), "The promise is relative to no invariant: no answer is published exactly"),
        (bounded, "; bounds taken as public: persons by facilities"),
    ):
        page, other = (str(Ledger(settings, listed=listed)) for listed in (True, False))
        assert page.endswith(f"{end}.")
        assert other == f"{page[:-1]}; which areas there are was read from the data, and is taken as public."
