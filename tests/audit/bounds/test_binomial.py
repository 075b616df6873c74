"""Known truth: scipy.stats, which audits do not import, as that takes longer than most of them."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from audit.bounds.binomial import binomial_pmf, binomial_quantile, binomial_sf

RNG = np.random.default_rng(1)
RUNS = np.floor(10 ** RNG.uniform(0, 6, 3000))
RATES = np.where(RNG.random(3000) < 0.5, RNG.random(3000), 10 ** RNG.uniform(-6, 0, 3000))
HITS = np.clip(np.floor(RUNS * RATES + 3 * RNG.normal(size=3000) * np.sqrt(RUNS * RATES * (1 - RATES))), 0, RUNS)


def test_tails_are_those_of_scipy_to_the_bit():
    for hits in (HITS, HITS - 1, RUNS, 0 * RUNS, 0 * RUNS - 1):
        assert np.array_equal(binomial_sf(hits, RUNS, RATES), stats.binom.sf(hits, RUNS, RATES))


def test_probabilities_are_those_of_scipy():
    """To 12 digits, which is all that either has at a million runs."""
    for hits in (HITS, RUNS, 0 * RUNS):
        np.testing.assert_allclose(
            binomial_pmf(hits, RUNS, RATES), stats.binom.pmf(hits, RUNS, RATES), rtol=3e-12, atol=1e-300
        )


@pytest.mark.parametrize("error", [1e-13, 1e-11, 1e-3, 0.05, 0.5, 0.95])
def test_quantiles_are_those_of_scipy(error):
    assert np.array_equal(binomial_quantile(error, RUNS, RATES), stats.binom.isf(error, RUNS, RATES))
    if error > 1e-9:
        assert np.array_equal(binomial_quantile(1 - error, RUNS, RATES), stats.binom.ppf(error, RUNS, RATES))


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("runs", [0, 1, 5])
def test_few_runs_and_sure_events_are_those_of_scipy(runs, rate):
    hits = np.arange(runs + 1)
    np.testing.assert_allclose(binomial_pmf(hits, runs, rate), stats.binom.pmf(hits, runs, rate), rtol=1e-12)
    assert binomial_quantile(0.05, runs, rate) == stats.binom.isf(0.05, runs, rate)


def test_the_smallest_errors_have_quantiles():
    """Where scipy returns all runs."""
    needed = binomial_quantile(1e-40, 13_811, 0.4)
    assert stats.binom.sf(needed, 13_811, 0.4) <= 1e-40 < stats.binom.sf(needed - 1, 13_811, 0.4)


FIRST = """
import sys
import numpy as np
import audit

def laplace(data, size, rng):
    return data + rng.laplace(size=(size, 1))

def words(data, size, rng):
    return [(str(draw), "a") for draw in rng.integers(data[0] + 2, size=size)]

def counts(data, size, rng):
    return data + rng.laplace(size=(size, data.size))

pair, pure, approximate = audit.NeighborPair.add_people([1], 0), audit.PureDP(1), audit.ApproxDP(1, 1e-5)
for claim in (pure, approximate, audit.GaussianDP(1), audit.ZCDP(0.5), audit.ApproxDP(0, 0.5)):
    audit.measure_loss(laplace, pair, claim, size=2000, rng=1)
audit.measure_loss(words, pair, pure, size=2000, rng=1)
audit.measure_loss(laplace, pair, pure, size=2000, stop="early", rng=1)
audit.measure_loss_one_run(counts, audit.Canaries([1] * 50), approximate)
audit.measure_loss_from_outputs(np.arange(30.0) % 7, np.arange(20.0) % 5, pure, relation="add_remove")
slow = "scipy.stats", "scipy.optimize", "scipy.sparse", "sklearn", "matplotlib", "typer"
print([name for name in slow if name in sys.modules])
"""


@pytest.mark.slow  # 2 s
def test_audits_import_nothing_slow():
    """Audits of all families in a new process: nothing else shows what they import."""
    assert subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True).stdout == "[]\n"
