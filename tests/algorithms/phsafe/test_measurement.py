"""The noisy counts as a mechanism: their law, what they promise, and what a pair of databases really spends."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from algorithms.phsafe import read_config
from algorithms.phsafe.measurement import PHSafe
from algorithms.phsafe.tabulation.tabulate import Tabulation, tabulation
from algorithms.release.duck import DuckDB
from algorithms.release.frames import Frame
from audit.claims import ZCDP, PureDP
from tests.golden.phsafe import CONFIG, PATHS, columns
from tests.golden.phsafe import settings as config
from tests.helpers import refuses


@pytest.fixture(scope="module")
def pair():
    """The golden households, and the same without the householder of one of 5."""
    persons, units, _ = map(columns, PATHS)
    mafid = units["MAFID"][units["FINAL_POP"].index("5")]
    leaves = next(i for i, m in enumerate(persons["MAFID"]) if m == mafid and persons["RELSHIP"][i] == "20")
    fewer = Frame({name: [v for i, v in enumerate(values) if i != leaves] for name, values in persons.items()})
    engine = DuckDB(PATHS, threads=1)
    x = tabulation(*PATHS, engine=engine, validation="none")
    y = tabulation(fewer, *PATHS[1:], engine=engine, validation="none")
    engine.close()
    return SimpleNamespace(x=x, y=y)


def swapped(pair):
    return SimpleNamespace(x=pair.y, y=pair.x)


PH2 = ("PH2", "usa_*")
ONE = PHSafe(config(0.5), only=[PH2])


def test_outputs_are_counts_in_the_order_of_the_settings(pair):
    mechanism = PHSafe(config(1e9))
    assert mechanism.queries == tuple((table, level) for table, level, _ in mechanism.config.budgets())
    exact = mechanism.exact(pair.x)
    assert exact.shape == (sum(array.size for array in pair.x.counts.values()),) == (816,)
    assert np.array_equal(exact, np.concatenate([pair.x.counts[query].ravel() for query in mechanism.queries]))
    noisy = mechanism.measured(pair.x, np.random.default_rng(0))  # one run, as a tabulation
    assert (noisy.states, noisy.counts.keys()) == (pair.x.states, pair.x.counts.keys())
    for query, counts in noisy.counts.items():
        assert np.array_equal(counts, pair.x.counts[query])
        assert counts is not pair.x.counts[query]


def test_some_of_the_queries(pair):
    only = [("PH7", "usa_*"), ("PH1_denom", "state_H,I")]
    mechanism = PHSafe(config(0.1, PH7=0.3), only=only)
    assert mechanism.queries == (only[1], only[0])  # as the settings have them
    assert mechanism(pair.x, 5, np.random.default_rng(0)).shape == (5, 6 + 3)
    assert mechanism.claim == ZCDP(0.4)


@pytest.mark.parametrize("definition", ["zcdp", "puredp"])
def test_every_query_has_noise_of_its_own_law(pair, definition, scripted):
    mechanism = PHSafe(config(0.5, definition, PH7=0.3))
    errors = mechanism(pair.x, 3, np.random.default_rng(3)) - mechanism.exact(pair.x)
    parameters = [one for law in mechanism.laws.values() for one in vars(law).values()]
    assert [parameter for parameter, _ in scripted] == parameters
    assert np.array_equal(errors, np.hstack([noise for _, noise in scripted]))


def test_claims_are_the_sum_of_the_budgets():
    assert PHSafe(read_config("us")).claim.rho == pytest.approx(1.257281, abs=1e-9)
    assert PHSafe(read_config("pr")).claim.rho == pytest.approx(1.226649, abs=1e-9)
    assert PHSafe(config(0.5, "puredp")).claim == PureDP(23.0)
    assert PHSafe(config(0.5)).claim.relation == "add_remove"


def test_spent_is_half_the_squared_change_in_units_of_sigma(pair):
    mechanism = PHSafe(config(0.3, PH3=0.7))
    total = 0.0
    for table, level in mechanism.queries:
        change = pair.y.counts[table, level] - pair.x.counts[table, level]
        delta = 2 * CONFIG["tau"][table] + 2 if table in CONFIG["tau"] else 2
        total += (0.7 if table == "PH3" else 0.3) * int((change**2).sum()) / delta**2
    assert total > 0
    assert mechanism.spent(pair) == pytest.approx(total, rel=1e-12)
    assert mechanism.spent(swapped(pair)) == mechanism.spent(pair)
    assert mechanism.spent(pair) < mechanism.claim.rho
    assert mechanism.spent(SimpleNamespace(x=pair.x, y=pair.x)) == 0


def test_the_exact_loss_of_all_queries_is_at_least_theirs_and_hardly_more(pair):
    mechanism = PHSafe(config(0.5))
    loss = mechanism.exact_loss(pair)
    for order in (1.5, 2, 8):
        divergence = order * mechanism.spent(pair)
        assert divergence * (1 - 1e-9) <= loss.renyi(order) <= divergence * 1.001
    # Mironov 2017, proposition 3: Gaussian noise, so delta by the Gaussian profile; within a per mille of it.
    mu = math.sqrt(2 * mechanism.spent(pair))
    for epsilon in (0.1, 0.3):
        gaussian = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        assert loss.delta_at(epsilon) == pytest.approx(gaussian, rel=2e-3)


def test_an_exact_loss_of_nothing_and_one_that_is_out_of_reach(pair):
    for definition in ("zcdp", "puredp"):
        loss = PHSafe(config(0.5, definition)).exact_loss(SimpleNamespace(x=pair.x, y=pair.x))
        assert (loss.maximum, loss.delta_at(0.0)) == (0, 0)
    assert PHSafe(config(1e-9)).exact_loss(pair) is None


def test_pure_noise_loses_its_rate_for_every_step_of_a_count(pair):
    mechanism = PHSafe(config(0.5, "puredp"))
    losses = [
        one.laws[one.only[0]].epsilon * np.abs(one.exact(pair.y) - one.exact(pair.x)).sum()
        for one in mechanism.components()
    ]
    assert mechanism.exact_loss(pair).maximum == pytest.approx(math.fsum(losses), rel=1e-12)
    assert 0 < math.fsum(losses) < mechanism.claim.epsilon


@pytest.mark.parametrize("definition", ["zcdp", "puredp"])
def test_log_likelihood_is_the_sum_of_the_log_masses(pair, definition):
    mechanism = PHSafe(config(0.5, definition))
    outputs = mechanism(pair.x, 3, np.random.default_rng(4))
    result = mechanism.log_likelihood(outputs, pair.y)
    assert result.shape == (3,)
    for run, value in zip(outputs, result, strict=True):
        total, start = 0.0, 0
        for query in mechanism.queries:
            exact = pair.y.counts[query].ravel()
            total += mechanism.laws[query].logpmf(run[start : start + exact.size] - exact).sum()
            start += exact.size
        assert value == pytest.approx(total, rel=1e-12)
    assert mechanism.log_likelihood(outputs[:0], pair.x).shape == (0,)


def test_an_impossible_output_has_no_likelihood(pair):
    assert ONE.log_likelihood([[0.5] * 8], pair.x).tolist() == [-math.inf]


def test_queries_without_a_budget_or_counts(pair):
    without = Tabulation(pair.x.states, {q: counts for q, counts in pair.x.counts.items() if q != ("PH4", "state_*")})
    mechanism, rng = PHSafe(config(1.0)), np.random.default_rng(0)
    for act in (lambda: mechanism(without, 1, rng), lambda: mechanism.measured(without, rng)):
        refuses(ValueError, "every query and level must be tabulated, and PH4 state_* is not", act)
    for only, words in (
        ([PH2, ("PH3", "usa_*")], "every query and level must have a budget, and PH3 usa_* has none"),
        ([], "only must name at least one query and level, got none"),
    ):
        refuses(ValueError, words, PHSafe, config(1.0, PH3=0), only)


def test_what_is_refused(pair):
    moved = SimpleNamespace(x=pair.x, y=Tabulation(("10", "11", "55"), pair.x.counts))
    states = "the two databases must have the same states, got ('10', '11', '56') and ('10', '11', '55')"
    for act in (PHSafe(config(1.0)).spent, PHSafe(config(1.0)).exact_loss):
        refuses(ValueError, states, act, moved)
    pure = PHSafe(config(1.0, "puredp"))
    refuses(ValueError, "rho is spent by Gaussian noise only, got puredp", pure.spent, pair)
    for shape in ((8,), (2, 7)):
        words = f"outputs must have one column for each of 8 cells, got shape {shape}"
        refuses(ValueError, words, ONE.log_likelihood, np.zeros(shape), pair.x)
