"""How often comparisons of audits call a change what is none, and find one that is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from audit.methods import Gaussian
from audit.review.compare import compare_results
from tests.audit.review.test_two_samples import guessed, one, weighed
from tests.helpers import audited


def laplace(rng, scale, threshold, runs):
    """Counts of a rule on a count with Laplace noise that a person moves by 1; below 0.5 it never abstains."""

    def above(z):
        return 0.5 * math.exp(-z / scale) if z >= 0 else 1 - 0.5 * math.exp(z / scale)

    sizes = rng.multinomial(runs, [0.5, 0.5])
    chances = [(1 - above(1 - threshold), above(threshold)), (1 - above(-threshold), above(threshold - 1))]
    counts = []
    for size, (low, high) in zip(sizes, chances, strict=True):
        hits = rng.multinomial(size, [low, high, max(0.0, 1 - low - high)])
        counts.append((size, *hits[:2]))
    return audited(counts=guessed(*counts), seed_entropy=int(rng.integers(2**60)))


def bins(rng, shift, runs):
    edges = [-np.inf, -1.5, -0.5, 0.0, 0.5, 1.5, np.inf]
    x, y = (np.diff(stats.norm.cdf(edges, loc)) for loc in (-shift / 2, shift / 2))
    seed = int(rng.integers(2**60))
    return weighed(rng.multinomial(runs // 2, x), rng.multinomial(runs // 2, y), seed_entropy=seed)


def false_alarms(rng, times, runs, binning):
    """How often any of several audits is called changed, at confidence 0.95, where none did."""
    changed = 0
    for _ in range(times):
        old, new = (
            [
                ("narrow", laplace(rng, 1.0, 0.5, runs)),
                ("wide", replace(laplace(rng, 1.0, 2.0, runs), bound=Gaussian.bound)),
                *([("bins", bins(rng, 1.0, runs))] if binning else []),
            ]
            for _ in range(2)
        )
        changed += any(change.counts == "changed" for change in compare_results(old, new, confidence=0.95).changes)
    return changed


def found(rng, times, scale, runs=200_000, counting=0.7):
    """How often another scale is seen, and how often with a larger loss, by default confidence."""
    seen = grown = 0
    for _ in range(times):
        change = one(laplace(rng, 1.0, 1.0, int(runs * counting)), laplace(rng, scale, 1.0, int(runs * counting)))
        seen += change.counts == "changed"
        grown += any("grew" in words for words in change.regressions)
    return seen, grown


def test_what_did_not_change_is_seldom_called_changed():
    # 40 times with probability 0.05 at most: more than 9 with probability 3e-5.
    assert false_alarms(np.random.default_rng(7), 40, 2000, binning=False) <= 9


def test_a_scale_five_percent_off_is_found():
    # With probability 0.9 or more each (the slow test counts 400): fewer than 5 of 10 with probability 2e-4.
    rng = np.random.default_rng(8)
    seen, grown = found(rng, 10, 0.95)
    assert min(seen, grown) >= 5
    seen, grown = found(rng, 10, 1.05)
    assert seen >= 5
    assert grown == 0  # less is lost: no regression
    assert found(rng, 10, 1.0) == (0, 0)  # a false alarm with probability 0.01


@pytest.mark.slow
def test_false_alarms_are_as_seldom_as_said():
    # 2,000 times with probability 0.05 at most: more than 138 with probability 1e-4.
    assert false_alarms(np.random.default_rng(9), 2000, 5000, binning=True) <= 138


@pytest.mark.slow
def test_power_as_said():
    rng = np.random.default_rng(10)
    less, more = found(rng, 400, 0.95), found(rng, 400, 1.05)
    assert min(less) >= 352  # 88%: were it 94%, fewer with probability 1e-5
    assert more[0] >= 340
    assert more[1] == 0
    bigger = [one(bins(rng, 1.0, 140_000), bins(rng, 1.05, 140_000)) for _ in range(100)]
    assert sum(any("grew" in words for words in change.regressions) for change in bigger) >= 80
