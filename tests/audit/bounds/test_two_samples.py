"""The test of two probabilities: exact error probabilities at the edge of a promise, and the same by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from audit.bounds.two_samples import _few, fewest_hits, surprises

LAWS = [(0.0, 0.1, 0.3), (0.5, 0.0, 0.03), (0.5, 0.0, 0.4), (1.0, 0.0, 0.25), (2.0, 0.05, 0.06), (3.0, 0.0, 1 / 40)]


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(("epsilon", "delta", "rare"), LAWS)
def test_a_promise_that_is_kept_is_refuted_no_oftener_than_it_says(epsilon, delta, rare, confidence):
    """By all counts of 40 and 30 runs, at laws that spend the whole promise."""
    likely = min(1.0, math.exp(epsilon) * rare + delta)
    known = surprises(np.arange(41)[:, None], 40, np.arange(31), 30)
    chance = np.outer(binom.pmf(np.arange(41), 40, likely), binom.pmf(np.arange(31), 30, rare))
    refuted = known.refute(epsilon, delta, confidence=confidence)
    assert chance[refuted].sum() <= 1 - confidence
    # Negative control: a promise of half as much is not kept, and refuted oftener.
    if confidence == 0.5 and rare > 0.05:
        less = known.refute(epsilon / 2, delta / 2, confidence=confidence)
        assert chance[less].sum() > 0.5 > chance[refuted].sum() > 0.2


def sup(hits, runs, hits_other, runs_other, epsilon, delta):
    """Return the least weighted sum of two quantiles, over a fine grid of rates and without cells."""
    q = np.linspace(0, math.pi / 2, 100_001)[1:-1]
    q = np.sin(q) ** 2
    p = np.minimum(math.exp(epsilon) * q + delta, 1.0)
    q, p = q[p < 1], p[p < 1]
    many, few = norm.isf(binom.sf(hits - 1, runs, p)), norm.isf(binom.cdf(hits_other, runs_other, q))
    by = np.sqrt(p * (1 - p) / runs), math.exp(epsilon) * np.sqrt(q * (1 - q) / runs_other)
    with np.errstate(invalid="ignore"):  # far from the counts
        sums = (by[0] * many + by[1] * few) / np.hypot(*by)
    return float(sums[np.isfinite(many) & np.isfinite(few)].min())


@pytest.mark.parametrize(
    ("hits", "runs", "hits_other", "runs_other", "delta"),
    [(41, 60, 1, 60, 0.0), (30, 60, 12, 90, 0.0), (12, 25, 30, 400, 0.0), (40, 60, 10, 60, 0.1)],
)
def test_cells_cost_a_tenth_of_a_standard_error_at_most(hits, runs, hits_other, runs_other, delta):
    known = surprises(hits, runs, hits_other, runs_other)
    for epsilon in (0.0, 0.2, 0.6, 1.0):  # at 0 both edges of a cell are rates of the grid
        by_hand = sup(hits, runs, hits_other, runs_other, epsilon, delta)
        assert known.refute(epsilon, delta, confidence=norm.cdf(by_hand - 0.1))
        assert not known.refute(epsilon, delta, confidence=norm.cdf(by_hand + 1e-9))


@given(st.integers(0, 300), st.integers(1, 300), st.floats(1e-9, 1 - 1e-9))
def test_quantiles_are_exact_or_refute_less(hits, runs, rate):
    """Where a float has no such probability, the logarithms of scipy tell."""
    hits = min(hits, runs)
    found = float(_few(np.array(hits), runs, np.array([rate]))[0])
    with np.errstate(all="ignore"):
        below, beyond = binom.logcdf(hits, runs, rate), binom.logsf(hits, runs, rate)
    if below > -600 and beyond > -600 and hits < runs:
        exact = norm.isf(math.exp(below)) if below < math.log(0.5) else norm.ppf(math.exp(beyond))
        assert found == pytest.approx(exact, rel=1e-6, abs=1e-6)
    elif hits == runs:
        assert found == -math.inf
    else:
        assert abs(found) > 30
        assert (found > 0) == (below < beyond)


def test_the_fewest_hits_are_those_of_every_pair_of_counts():
    needed = fewest_hits(12, 20, 0.7, 0.05, confidence=0.9)
    every = surprises(np.arange(13)[:, None], 12, np.arange(21), 20).refute(0.7, 0.05, confidence=0.9)
    assert needed.tolist() == [int(np.argmax([*column, True])) for column in every.T]
    assert (needed[0], needed[-1]) == (5, 13)


@pytest.mark.parametrize("runs", [1, 7, 100_000])
def test_no_runs_prove_too_much(runs):
    """Nothing is refuted by counts that say nothing, and what is refuted ends somewhere."""
    assert not surprises(0, runs, 0, runs).refute(0.0, 0.0, confidence=0.95)
    assert not surprises(runs, runs, runs, runs).refute(0.0, 0.0, confidence=0.95)
    assert not surprises(runs, runs, 0, runs).refute(30.0, 0.0, confidence=0.95)
    assert not surprises(runs, runs, 0, runs).refute(0.0, 1.0, confidence=0.95)
    assert surprises(runs, runs, 0, runs).refute(0.0, 0.0, confidence=0.95) == (runs > 1)
    with pytest.raises(ValueError, match=r"confidence must be in \(0, 1\), got 1"):
        surprises(1, 2, 1, 2).refute(1.0, 0.0, confidence=1)
